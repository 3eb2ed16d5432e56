/* tenure/heap.h: a private malloc that can be dropped whole.
 *
 * A heap is for blocks of mixed sizes that are freed one by one but all belong to one thing: a virtual
 * machine, a document, a connection. Sizes are rounded up to a class; each class has chunks of its own,
 * cut into slots without headers, and large blocks have a chunk to themselves. Dropping or resetting
 * the heap frees every block without visiting it.
 *
 * It is what a library with allocator hooks needs: a hook with a context gets the heap there; for hooks
 * without one, keep the current heap in a thread-local variable around the calls (docs/choosing.md).
 *
 * A heap is for one thread at a time: handing it over between threads under a lock or a join is legal,
 * overlapping calls are not (hardened and debug report them). */
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
	const char *name;   /* shown in statistics and panics; a heap with a name is listed (stats.h) */
	size_t limit_bytes; /* the most that is ever taken from the source, the heap's own records (4 KiB
	                       at least) included; default none */
	bool zero;          /* alloc and what realloc adds are zeroed */
	bool expendable;    /* live blocks at destroy are meant: debug does not list them */
	const tn_source *source; /* where chunks come from; default Tenure's page layer */
} tn_heap_options;

typedef struct tn_heap tn_heap;

/* Ends the heap and every block in it. Live blocks are no error; debug lists them by the site that
 * allocated them, unless the heap is expendable.
 *
 * h        from tn_heap_create; NULL is a no-op
 * threads  one at a time
 * cost     O(chunks); no block is touched */
TN_API void tn_heap_destroy(tn_heap *h) TN_SYMBOL(tn_heap_destroy);

/* Makes a heap.
 *
 * options  NULL for the defaults; read during the call only
 * returns  the heap, with no chunk for blocks yet
 * fails    EINVAL for a source without its calls; ENOMEM
 * threads  any
 * cost     in steady state neither a system call nor malloc
 * cites    Bonwick 1994, "The slab allocator"; Lemire, Kaser and Kurz 2019, "Faster remainder by direct
 *          computation" */
TN_RELEASED_BY(tn_heap_destroy, 1)
TN_API tn_heap *tn_heap_create(const tn_heap_options *options) TN_SYMBOL(tn_heap_create);

/* Gives a block back; what it is part of is found from its address, in the page layer's table.
 *
 * p        a live block of this heap; NULL is a no-op. Anything else is misuse, and refused at once in
 *          every mode: what is no block, inside of a block, or free already
 * threads  one at a time
 * cost     two dependent loads, and the block's bit is set; does not touch the block */
TN_API void tn_heap_free(tn_heap *h, void *p) TN_SYMBOL(tn_heap_free);

/* Allocates `size` bytes.
 *
 * size     bytes; 0 is valid and yields a unique pointer
 * align    bytes, a power of two up to TN_ALIGN_MAX; 0 means 16
 * returns  memory, uninitialised unless the heap is made with `zero`
 * fails    EINVAL for a bad alignment; ENOMEM when the source has no more or at limit_bytes
 * threads  one at a time
 * cost     a look-up of the class and of its lowest free bit; once for up to 64 blocks the slow path
 *          looks for more bits, or takes a chunk */
TN_RELEASED_BY(tn_heap_free, 2)
TN_API void *tn_heap_alloc(tn_heap *h, size_t size, size_t align) TN_SYMBOL(tn_heap_alloc);

/* Gives a block back whose size the caller knows.
 *
 * p, size  a live block of this heap, and the size that it was last allocated or reallocated with, at
 *          an alignment of up to 16; NULL is a no-op. Hardened and debug check the size
 * threads  one at a time
 * cost     as free */
TN_API void tn_heap_free_sized(tn_heap *h, void *p, size_t size) TN_SYMBOL(tn_heap_free_sized);

/* Resizes a block: in place where the class (or, for a large block, its chunk) has room and the block
 * would not waste more than half of it, else by allocating, copying and freeing; debug always moves it.
 *
 * p         a live block of this heap, or NULL for a new one
 * new_size  bytes
 * returns   the block, with the first min(old, new) bytes kept; its alignment is kept up to 16 only
 * fails     as alloc; the block is unchanged
 * threads   one at a time
 * cost      O(1) in place, O(new_size) else */
TN_API void *tn_heap_realloc(tn_heap *h, void *p, size_t new_size) TN_SYMBOL(tn_heap_realloc);

/* Bytes that the block has room for: what was asked for, rounded up.
 *
 * p        a live block of this heap; NULL yields 0
 * returns  bytes; in debug what was asked for, so that the rest can be fenced
 * threads  one at a time
 * cost     as free */
TN_API size_t tn_heap_usable_size(const tn_heap *h, const void *p) TN_SYMBOL(tn_heap_usable_size);

/* Forgets every block and keeps the chunks warm; large blocks go back.
 *
 * threads  one at a time
 * cost     O(chunks). Hardened wipes what was used, debug makes it inaccessible */
TN_API void tn_heap_reset(tn_heap *h) TN_SYMBOL(tn_heap_reset);

/* Gives back every chunk that holds no live block.
 *
 * returns  bytes given back
 * threads  one at a time
 * cost     O(chunks) */
TN_API size_t tn_heap_trim(tn_heap *h) TN_SYMBOL(tn_heap_trim);

/* Whether `p` points into a live or free block of this heap.
 *
 * threads  one at a time
 * cost     O(1); for a pointer past the first page of a large block O(large blocks); reads nothing
 *          behind p */
TN_API bool tn_heap_owns(const tn_heap *h, const void *p) TN_SYMBOL(tn_heap_owns);

/* Calls `visit` for every live block, in no particular order; `visit` must not call the heap.
 *
 * size     that it has room for, as tn_heap_usable_size
 * threads  one at a time
 * cost     O(slots); allocates nothing */
TN_API void tn_heap_each(tn_heap *h, void (*visit)(void *p, size_t size, void *ctx), void *ctx)
	TN_SYMBOL(tn_heap_each);

/* Fills `stats` with the figures of this moment. waste_bytes is estimated: the sizes asked for are
 * sampled where a class takes new slots.
 *
 * threads  one at a time
 * cost     O(chunks) */
TN_API void tn_heap_stats(const tn_heap *h, tn_stats *stats) TN_SYMBOL(tn_heap_stats);

/* Walks every chunk and large block; panics at the first broken invariant.
 *
 * returns  true
 * threads  one at a time
 * cost     O(slots); allocates nothing */
TN_API bool tn_heap_verify(const tn_heap *h) TN_SYMBOL(tn_heap_verify);

#ifdef __cplusplus
}
#endif
#endif
