/* tenure/base.h: what every allocator shares: version, modes, sizes, sources, panics.
 *
 * Words used in every contract: `size` is bytes, `count` is elements, `align` is bytes and a power of
 * two (0 means 16). A call that fails returns NULL or false, sets errno to EINVAL (the caller's
 * mistake) or ENOMEM (no memory, or a limit reached), and has changed nothing. Misuse that the mode
 * promises to see ends in a panic. There is no third behaviour. */
#ifndef TENURE_BASE_H
#define TENURE_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TN_VERSION_MAJOR 0
#define TN_VERSION_MINOR 1
#define TN_VERSION_PATCH 0

/* The mode is chosen by the library that is linked, never by hand: tenure::tenure, tenure::hardened
 * and tenure::debug (or the pkg-config files tenure, tenure-hardened, tenure-debug) define TN_MODE. */
#define TN_MODE_RELEASE 0
#define TN_MODE_HARDENED 1
#define TN_MODE_DEBUG 2
#ifndef TN_MODE
#define TN_MODE TN_MODE_RELEASE
#endif

#include "detail/symbol.h"

#ifdef __cplusplus
extern "C" {
#endif

/* "None", in an option where 0 already means "the default". */
#define TN_NONE SIZE_MAX

/* The largest alignment that any call accepts, bytes. */
#define TN_ALIGN_MAX (sizeof(char) << 20)

/* Names are copied; longer ones are cut to this many bytes. */
#define TN_NAME_BYTES 31

/* Where an allocator takes its chunks from, in place of Tenure's own page layer.
 *
 * acquire  returns `size` bytes aligned to `align` (a power of two), or NULL when there are none.
 *          An answer that is not aligned is handed back and counts as NULL.
 *          Not slots of a slab or shared slab: the chunk there would forget whose it is.
 * release  takes back exactly what one acquire returned, with the same size.
 * ctx      is passed to both. A source is copied; what ctx points to must outlive the allocator.
 * threads  called by whoever calls the allocator, never by two threads at a time for one allocator. */
typedef struct tn_source {
	void *(*acquire)(void *ctx, size_t size, size_t align);
	void (*release)(void *ctx, void *p, size_t size);
	void *ctx;
} tn_source;

/* Receives the one line that describes a misuse; must not call Tenure, whose locks may be held. When it
 * returns, the process aborts. */
typedef void (*tn_panic_hook)(const char *message);

/* Replaces what is called on misuse; the default writes the line to standard error.
 *
 * hook     NULL restores the default
 * returns  the hook that was set before
 * threads  any */
TN_API tn_panic_hook tn_on_panic(tn_panic_hook hook) TN_SYMBOL(tn_on_panic);

#ifdef __cplusplus
}
#endif
#endif
