/* tenure/heap.h: a private malloc that can be dropped whole.
 *
 * A heap is for blocks of mixed sizes that are freed one by one but all belong to one thing: a virtual
 * machine, a document, a connection. Sizes are rounded up to a size class. Each class has chunks of its
 * own, cut into slots without headers; a large block has a chunk to itself. Destroying or resetting the
 * heap frees every block without visiting it.
 *
 * A heap fits libraries with allocator hooks. Pass it as the context of the hooks. For hooks without a
 * context, keep the current heap in a thread-local variable around the calls (docs/choosing.md).
 *
 * A heap is for one thread at a time. Threads may hand it over under a lock or a join; overlapping
 * calls are misuse (hardened and debug report them). */
#ifndef TENURE_HEAP_H
#define TENURE_HEAP_H

#include "base.h"
#include "detail/hooks.h"
#include "stats.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All sizes are bytes; 0 takes the default. */
typedef struct tn_heap_options {
	const char *name;   /* shown in statistics and panics; a named heap is listed (stats.h) */
	size_t limit_bytes; /* the most ever taken from the source, with the heap's own records (at least
	                       4 KiB); default: no limit */
	bool zero;          /* alloc zeroes new blocks; realloc the bytes that it adds to usable_size;
	                       those below are 0 unless their user has written them */
	bool expendable;    /* live blocks at destroy are intended: debug does not list them */
	const tn_source *source; /* source of chunks; default: Tenure's page layer */
} tn_heap_options;

typedef struct tn_heap tn_heap;

/* Makes a heap.
 *
 * options  NULL for the defaults; read during the call only
 * returns  the heap, with no chunk for blocks yet
 * fails    EINVAL for a source without its calls; ENOMEM
 * threads  any
 * cost     in steady state neither a system call nor malloc
 * cites    Bonwick 1994, "The slab allocator"; Lemire, Kaser and Kurz 2019, "Faster remainder by direct
 *          computation" */
TN_API tn_heap *tn_heap_create(const tn_heap_options *options) TN_SYMBOL(tn_heap_create);

/* Ends the heap and every block in it. Live blocks are no error; debug lists them by the site that
 * allocated them, unless the heap is expendable.
 *
 * h        from tn_heap_create; NULL is a no-op
 * threads  one at a time
 * cost     O(chunks); no block is touched */
TN_API void tn_heap_destroy(tn_heap *h) TN_SYMBOL(tn_heap_destroy);
TN_RELEASED_BY(tn_heap_destroy, 1, tn_heap *tn_heap_create(const tn_heap_options *options))

/* Allocates `size` bytes.
 *
 * size     bytes; 0 is valid and yields a unique pointer
 * align    bytes, a power of two up to TN_ALIGN_MAX; 0 means 16
 * returns  memory, uninitialised unless the heap was made with `zero`
 * fails    EINVAL for a bad alignment; ENOMEM when the source has no more or at limit_bytes
 * threads  one at a time
 * cost     a look-up of the class and of its lowest free bit; once in up to 64 blocks the slow path
 *          finds more bits or takes a chunk */
TN_API void *tn_heap_alloc(tn_heap *h, size_t size, size_t align) TN_SYMBOL(tn_heap_alloc);

/* Gives a block back. The page layer's table leads from its address to its chunk.
 *
 * p        a live block of this heap; NULL is a no-op. Anything else is misuse, and every mode refuses
 *          it at once: a foreign pointer, one into the middle of a block, a block that is free
 * threads  one at a time
 * cost     two dependent loads, and one bit is set; does not touch the block */
TN_API void tn_heap_free(tn_heap *h, void *p) TN_SYMBOL(tn_heap_free);
TN_RELEASED_BY(tn_heap_free, 2, void *tn_heap_alloc(tn_heap *h, size_t size, size_t align))

/* Gives a block back whose size the caller knows.
 *
 * p, size  a live block of this heap, and the size that it was last allocated or reallocated with, at
 *          an alignment of up to 16; NULL is a no-op. Hardened and debug check the size
 * threads  one at a time
 * cost     as free */
TN_API void tn_heap_free_sized(tn_heap *h, void *p, size_t size) TN_SYMBOL(tn_heap_free_sized);

/* Resizes a block: in place if its slot (or the chunk of a large block) has room and the block would
 * not waste more than half of it, else by allocating, copying and freeing. Debug always moves it.
 *
 * p         a live block of this heap, or NULL for a new one
 * new_size  bytes
 * returns   the block, with the first min(old, new) bytes kept; alignment is kept only up to 16
 * fails     as alloc; the block is unchanged
 * threads   one at a time
 * cost      O(1) in place, else O(new_size) */
TN_API void *tn_heap_realloc(tn_heap *h, void *p, size_t new_size) TN_SYMBOL(tn_heap_realloc);

/* Forgets every block and keeps the chunks warm; large blocks go back.
 *
 * threads  one at a time
 * cost     O(chunks). Hardened wipes the used bytes, debug makes them inaccessible */
TN_API void tn_heap_reset(tn_heap *h) TN_SYMBOL(tn_heap_reset);

/* Gives back every chunk without a live block.
 *
 * returns  bytes given back
 * threads  one at a time
 * cost     O(chunks) */
TN_API size_t tn_heap_trim(tn_heap *h) TN_SYMBOL(tn_heap_trim);

/* Tells whether `p` points into a live or free block of this heap.
 *
 * threads  one at a time
 * cost     O(1); for a pointer past the first page of a large block O(large blocks); reads no memory
 *          at p */
TN_API bool tn_heap_owns(const tn_heap *h, const void *p) TN_SYMBOL(tn_heap_owns);

/* Calls `visit` for every live block, in no particular order. `visit` must not call the heap.
 *
 * size     the bytes that the block has room for, as from tn_heap_usable_size
 * threads  one at a time
 * cost     O(slots); allocates nothing */
TN_API void tn_heap_each(tn_heap *h, void (*visit)(void *p, size_t size, void *ctx), void *ctx)
	TN_SYMBOL(tn_heap_each);

/* Returns the bytes that a block has room for: the size asked for, rounded up.
 *
 * p        a live block of this heap; NULL yields 0
 * returns  bytes; in debug the size asked for, because the rest is fenced
 * threads  one at a time
 * cost     as free */
TN_API size_t tn_heap_usable_size(const tn_heap *h, const void *p) TN_SYMBOL(tn_heap_usable_size);

/* Fills `stats` with the current figures. waste_bytes is an estimate from samples: the sizes asked for
 * when a class takes new slots.
 *
 * threads  one at a time
 * cost     O(chunks) */
TN_API void tn_heap_stats(const tn_heap *h, tn_stats *stats) TN_SYMBOL(tn_heap_stats);

/* Walks every chunk and large block. Panics at the first broken invariant.
 *
 * returns  true
 * threads  one at a time
 * cost     O(slots); allocates nothing */
TN_API bool tn_heap_verify(const tn_heap *h) TN_SYMBOL(tn_heap_verify);

#ifdef __cplusplus
}
#endif
#endif
