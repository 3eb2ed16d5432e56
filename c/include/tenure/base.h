/* tenure/base.h: shared by every allocator: version, modes, sizes, sources, panics.
 *
 * Words of every contract: `size` is bytes, `count` is elements, `align` is bytes and a power of two
 * (0 means 16). A call that fails returns NULL or false, sets errno to EINVAL (the caller's mistake) or
 * ENOMEM (no memory, or a limit reached), and changes nothing. Misuse that the mode promises to detect
 * ends in a panic. There is no third behaviour. */
#ifndef TENURE_BASE_H
#define TENURE_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TN_VERSION_MAJOR 0
#define TN_VERSION_MINOR 1
#define TN_VERSION_PATCH 0

/* The library that a program links defines TN_MODE; do not define it by hand. Link tenure::tenure,
 * tenure::hardened or tenure::debug (pkg-config: tenure, tenure-hardened, tenure-debug). */
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

/* Means "none" in an option where 0 already means "the default". */
#define TN_NONE SIZE_MAX

/* The largest alignment that any call accepts, bytes. */
#define TN_ALIGN_MAX (sizeof(char) << 20)

/* Names are copied; longer ones are cut to this many bytes. */
#define TN_NAME_BYTES 31

/* A source of chunks for one allocator, in place of Tenure's own page layer.
 *
 * acquire  returns `size` bytes aligned to `align` (a power of two), or NULL when it has none. A block
 *          that is not aligned is released at once and counts as NULL. Must not return a slot of a
 *          Tenure slab or shared slab: the page table would lose the owner of that slot's chunk. A
 *          block of a heap serves arenas and scopes; slabs, shared slabs, pools and heaps release it
 *          at once, and fail with ENOMEM (debug takes it).
 * release  takes back one block that acquire returned, with the same size.
 * ctx      is passed to both. A source is copied; the object behind ctx must outlive the allocator.
 * threads  called on the thread that calls the allocator; one call at a time for one allocator. */
typedef struct tn_source {
	void *(*acquire)(void *ctx, size_t size, size_t align);
	void (*release)(void *ctx, void *p, size_t size);
	void *ctx;
} tn_source;

/* Receives the line of text that describes a misuse. Must not call Tenure, whose locks may be held.
 * The process aborts when the hook returns. */
typedef void (*tn_panic_hook)(const char *message);

/* Replaces the hook that misuse calls; the default hook writes the line to standard error.
 *
 * hook     NULL restores the default
 * returns  the hook that was set before
 * threads  any */
TN_API tn_panic_hook tn_on_panic(tn_panic_hook hook) TN_SYMBOL(tn_on_panic);

#ifdef __cplusplus
}
#endif
#endif
