/* tenure/slab.h: objects of one size, freed one by one.
 *
 * A slab carves chunks into slots of one size, without headers, and keeps the free ones in array
 * magazines: nothing that is written to a free slot can mislead it, and an object is touched neither by
 * alloc nor by free. The last slot freed is the next one handed out.
 *
 * A slab is for one thread at a time: handing it over between threads under a lock or a join is
 * legal, overlapping calls are not (hardened and debug report them). */
#ifndef TENURE_SLAB_H
#define TENURE_SLAB_H

#include "base.h"
#include "detail/hooks.h"
#include "stats.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All sizes are bytes; 0 takes the default. */
typedef struct tn_slab_options {
	const char *name;     /* shown in statistics and panics; a slab with one is listed (stats.h) */
	size_t chunk_bytes;   /* rounded up to a power of two that holds a slot; default 64 KiB, less where
	                         a limit leaves room for few of them */
	size_t limit_bytes;   /* the most that is ever taken from the source, the slab's own record (4 to
	                         12 KiB) included; default none */
	size_t retain_chunks; /* chunks with no live slot that stay; default what recent use needs; TN_NONE:
	                         none. Decided when a magazine fills, at most once for half as many frees
	                         as slots are free: in between, half as many chunks again and two
	                         magazines' worth (up to 1,022 slots) may be there. Trim keeps none. */
	/* Builds a slot once, when it is carved, and takes it apart when its chunk goes back, at reset and
	 * at destroy. In between the built state survives free and the next alloc. `init` returns whether
	 * it could; if not, alloc returns NULL and the slot stays as it was. Neither may call the slab. */
	bool (*init)(void *slot, void *ctx);
	void (*fini)(void *slot, void *ctx);
	void *ctx;
	const tn_source *source; /* where chunks come from, at an alignment of their size (4 KiB at least);
	                            default Tenure's page layer */
	bool expendable;         /* live slots at destroy are meant: debug does not list them */
} tn_slab_options;

/* Private, the part that the inlined paths read; the rest lies behind it. */
typedef struct tn_slab {
	/* The newest free slot in the loaded magazine, which is aligned to its size and whose first word is
	 * its link: low bits all zero mean that it is empty, all but one slot set that it is full. */
	uintptr_t top;
	uintptr_t magazine_mask;
} tn_slab;

/* Ends the slab. Live slots are no error; debug lists them by the site that allocated them.
 *
 * s        from tn_slab_create; NULL is a no-op
 * threads  one at a time
 * cost     O(chunks); with fini, O(slots) */
TN_API void tn_slab_destroy(tn_slab *s) TN_SYMBOL(tn_slab_destroy);

/* Makes a slab for slots of `size` bytes.
 *
 * size     bytes, at least 1; rounded up to a multiple of align
 * align    bytes, a power of two up to TN_ALIGN_MAX; 0 means 16
 * options  NULL for the defaults; read during the call only
 * returns  the slab, with no chunk yet
 * fails    EINVAL for size 0, a bad alignment, a size that no chunk can hold, or contradicting options;
 *          ENOMEM
 * threads  any
 * cites    Bonwick 1994, "The slab allocator"; Bonwick and Adams 2001, "Magazines and Vmem" */
TN_RELEASED_BY(tn_slab_destroy, 1)
TN_API tn_slab *tn_slab_create(size_t size, size_t align, const tn_slab_options *options)
	TN_SYMBOL(tn_slab_create);

/* Not API: the parts of alloc and free that change magazines, carve and check. */
TN_API void *tn_slab_alloc_slow(tn_slab *s) TN_SYMBOL(tn_slab_alloc_slow);
TN_API void tn_slab_free_slow(tn_slab *s, void *p) TN_SYMBOL(tn_slab_free_slow);

/* Not API: takes a slot from the loaded magazine; false when it takes more than that. */
TN_INLINE bool tn_slab_pop(tn_slab *s, void **slot) {
	uintptr_t top = s->top;
	if (TN_UNLIKELY(tn_hook_checked() || (top & s->magazine_mask) == 0))
		return false;
	*slot = *(void **)top;
	s->top = top - sizeof(void *);
	return true;
}

/* Takes a slot: the one freed last, and so on back for a magazine's worth; of those freed before, in
 * disorder, the lowest; else a fresh one.
 *
 * returns  uninitialised memory of tn_slab_slot_size bytes (with `init`, as it was built and left)
 * fails    ENOMEM when the source has no more, at limit_bytes, or when init fails
 * threads  one at a time
 * cost     a handful of instructions inlined; one call in a magazine's worth is a function call */
TN_INLINE void *tn_slab_alloc(tn_slab *s) {
	void *p;
	return TN_LIKELY(tn_slab_pop(s, &p)) ? p : tn_slab_alloc_slow(s);
}

/* Gives a slot back. Its contents stay as they are in release, are wiped in hardened and poisoned in
 * debug (slots with `init` are left alone), where it waits in quarantine until younger ones fill that
 * or an alloc would fail.
 *
 * p        a live slot of this slab; NULL is a no-op
 * threads  one at a time
 * cost     as alloc; does not touch the slot */
TN_INLINE void tn_slab_free(tn_slab *s, void *p) {
	uintptr_t top = s->top + sizeof(void *);
	if (TN_UNLIKELY(tn_hook_checked() || p == NULL || (top & s->magazine_mask) == 0)) {
		tn_slab_free_slow(s, p);
		return;
	}
	/* Where objects are freed in the reverse order of their allocation the word is there already, and
	 * leaving it alone takes a store out of the chain from this free to the next alloc. */
	if (*(void **)top != p)
		*(void **)top = p;
	s->top = top;
}

/* Takes `count` slots, or none.
 *
 * slots    room for `count` pointers
 * count    0 succeeds
 * returns  whether all were had
 * fails    as alloc; the slab is as before
 * threads  one at a time
 * cost     a copy of the pointers */
TN_API bool tn_slab_alloc_batch(tn_slab *s, void **slots, size_t count) TN_SYMBOL(tn_slab_alloc_batch);

/* Gives `count` slots back.
 *
 * slots    live slots of this slab; NULLs among them are skipped
 * threads  one at a time
 * cost     a copy of the pointers */
TN_API void tn_slab_free_batch(tn_slab *s, void **slots, size_t count) TN_SYMBOL(tn_slab_free_batch);

/* Forgets every slot and keeps the chunks.
 *
 * threads  one at a time
 * cost     O(chunks), no slot is touched; with fini, one call for every built slot. Hardened wipes what
 *          was carved, debug makes it inaccessible. */
TN_API void tn_slab_reset(tn_slab *s) TN_SYMBOL(tn_slab_reset);

/* Gives back every chunk that holds no live slot.
 *
 * returns  bytes given back
 * threads  one at a time
 * cost     O(free slots) */
TN_API size_t tn_slab_trim(tn_slab *s) TN_SYMBOL(tn_slab_trim);

/* returns  slots handed out, exactly
 * threads  one at a time
 * cost     O(1) */
TN_API size_t tn_slab_in_use(const tn_slab *s) TN_SYMBOL(tn_slab_in_use);

/* returns  bytes of a slot: `size` rounded up to `align`
 * threads  any
 * cost     O(1) */
TN_API size_t tn_slab_slot_size(const tn_slab *s) TN_SYMBOL(tn_slab_slot_size);

/* Whether `p` points into a slot that this slab has carved, live or free.
 *
 * threads  any
 * cost     O(1); reads nothing behind p */
TN_API bool tn_slab_owns(const tn_slab *s, const void *p) TN_SYMBOL(tn_slab_owns);

/* Calls `visit` for every live slot, in no particular order; `visit` must not call the slab.
 *
 * threads  one at a time
 * cost     O(carved slots); allocates nothing */
TN_API void tn_slab_each(tn_slab *s, void (*visit)(void *slot, void *ctx), void *ctx)
	TN_SYMBOL(tn_slab_each);

/* Fills `stats` with the figures of this moment.
 *
 * threads  one at a time
 * cost     O(carved slots) */
TN_API void tn_slab_stats(const tn_slab *s, tn_stats *stats) TN_SYMBOL(tn_slab_stats);

/* Walks every chunk and magazine; panics at a pointer that is not a slot of this slab, at one that is
 * free twice, and at any other broken invariant.
 *
 * returns  true
 * threads  one at a time
 * cost     O(carved slots); allocates nothing */
TN_API bool tn_slab_verify(const tn_slab *s) TN_SYMBOL(tn_slab_verify);

#ifdef __cplusplus
}
#endif
#endif
