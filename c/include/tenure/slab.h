/* tenure/slab.h: objects of one size, freed one by one.
 *
 * A slab carves chunks into slots of one size, without headers. It keeps pointers to the slots freed
 * last in two magazines, which are arrays, and a bit for each other free slot. So a write to a free
 * slot cannot mislead it, and neither alloc nor free touches the object. The last slot freed is the
 * next one handed out.
 *
 * A slab is for one thread at a time. Threads may hand it over under a lock or a join; overlapping
 * calls are misuse (hardened and debug report them). */
#ifndef TENURE_SLAB_H
#define TENURE_SLAB_H

#include "base.h"
#include "detail/hooks.h"
#include "detail/magazine.h"
#include "stats.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All sizes are bytes; 0 takes the default. */
typedef struct tn_slab_options {
	const char *name;     /* shown in statistics and panics; a named slab is listed (stats.h) */
	size_t chunk_bytes;   /* rounded up to a power of two that holds a slot; default 64 KiB, up to
	                         256 KiB for slots over 2 KiB, less when a limit leaves room for few
	                         chunks */
	size_t limit_bytes;   /* the most ever taken from the source, with the slab's own 8 or 12 KiB;
	                         default: no limit */
	size_t retain_chunks; /* empty chunks that stay; default: the need of recent use; TN_NONE: none.
	                         Decided when a magazine fills. The slots of two magazines (up to 1,022)
	                         keep their chunks. Trim keeps none. */
	/* `init` builds a slot once, when it is carved. `fini` takes it apart when its chunk goes back, at
	 * reset and at destroy. Between the two, the built state survives free and the next alloc. `init`
	 * returns whether it succeeded; if not, alloc returns NULL and the slot stays unbuilt. Neither may
	 * call the slab. */
	bool (*init)(void *slot, void *ctx);
	void (*fini)(void *slot, void *ctx);
	void *ctx;
	const tn_source *source; /* source of chunks, aligned to their size (at least 4 KiB); default:
	                            Tenure's page layer */
	bool expendable;         /* live slots at destroy are intended: debug does not list them */
} tn_slab_options;

/* Private: the part that the inlined paths read. The rest of the slab follows it in memory. */
typedef struct tn_slab {
	void **top; /* of the loaded magazine */
	/* Its bounds: alloc takes the slow path at `floor` and below, free at `ceiling` and above. A thread
	 * that asks the owner to trim writes others, which every call is beyond. */
	uintptr_t floor, ceiling;
} tn_slab;

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
TN_API tn_slab *tn_slab_create(size_t size, size_t align, const tn_slab_options *options)
	TN_SYMBOL(tn_slab_create);

/* Ends the slab. Live slots are no error; debug lists them by the site that allocated them.
 *
 * s        from tn_slab_create; NULL is a no-op
 * threads  one at a time
 * cost     O(chunks); with fini, O(slots) */
TN_API void tn_slab_destroy(tn_slab *s) TN_SYMBOL(tn_slab_destroy);
TN_RELEASED_BY(tn_slab_destroy, 1,
	tn_slab *tn_slab_create(size_t size, size_t align, const tn_slab_options *options))

/* Not API: the parts of alloc and free that change magazines, carve and check. */
TN_API void *tn_slab_alloc_slow(tn_slab *s) TN_SYMBOL(tn_slab_alloc_slow);
TN_API void tn_slab_free_slow(tn_slab *s, void *p) TN_SYMBOL(tn_slab_free_slow);

/* Not API: takes a slot from the loaded magazine; false when the slow path is needed. */
TN_INLINE bool tn_slab_pop(tn_slab *s, void **slot) {
	void **top = TN_LOAD(&s->top);
	if (tn_hook_checked() || TN_UNLIKELY(!tn_is_above_word((uintptr_t)top, &s->floor)))
		return false;
	*slot = *top;
	TN_STORE(&s->top, top - 1);
	return true;
}

/* Not API: puts a slot into the loaded magazine; false when the slow path is needed. */
TN_INLINE bool tn_slab_push(tn_slab *s, void *p) {
	void **top = TN_LOAD(&s->top) + 1;
	if (tn_hook_checked() || TN_UNLIKELY(!tn_is_below_word((uintptr_t)top, &s->ceiling)))
		return false;
	/* As tn_top_push. */
	if (*top != p)
		*top = p;
	TN_STORE(&s->top, top);
	return true;
}

/* Takes a slot: the one freed last, and so on back for a magazine's worth. Slots freed before that come
 * from the fullest chunk, lowest address first. Fresh slots come last.
 *
 * returns  uninitialised memory of tn_slab_slot_size bytes (with `init`, as it was built and left)
 * fails    ENOMEM when the source has no more, at limit_bytes, or when init fails
 * threads  one at a time
 * cost     a handful of instructions inlined; one call in a magazine's worth is a function call */
TN_INLINE void *tn_slab_alloc(tn_slab *s) {
	void *p;
	return TN_LIKELY(tn_slab_pop(s, &p)) ? p : tn_slab_alloc_slow(s);
}

/* Gives a slot back. Release keeps its contents, hardened wipes them, debug poisons them; slots with
 * `init` are left alone. In debug the slot waits in quarantine until newer ones fill the quarantine or
 * an alloc would fail.
 *
 * p        a live slot of this slab; NULL is a no-op
 * threads  one at a time
 * cost     as alloc; does not touch the slot */
TN_INLINE void tn_slab_free(tn_slab *s, void *p) {
	if (TN_UNLIKELY(p == NULL || !tn_slab_push(s, p)))
		tn_slab_free_slow(s, p);
}

/* Takes `count` slots, or none.
 *
 * slots    room for `count` pointers
 * count    0 succeeds
 * returns  whether it took all of them
 * fails    as alloc; the slab is unchanged
 * threads  one at a time
 * cost     a copy of the pointers */
TN_API bool tn_slab_alloc_batch(tn_slab *s, void **slots, size_t count) TN_SYMBOL(tn_slab_alloc_batch);

/* Gives `count` slots back.
 *
 * slots    live slots of this slab; NULLs among them are skipped
 * threads  one at a time
 * cost     a copy of the pointers */
TN_API void tn_slab_free_batch(tn_slab *s, void **slots, size_t count) TN_SYMBOL(tn_slab_free_batch);

/* Takes chunks ahead: the next `count` allocs take nothing from the source. Chunks that stay unused go
 * back as those of a burst do; retain_chunks, where it is set, says how many stay.
 *
 * count    slots beside the live ones; 0 succeeds
 * returns  whether there is room for them
 * fails    ENOMEM when the source has no more, or at limit_bytes; the slab is unchanged
 * threads  one at a time
 * cost     O(chunks taken); touches no slot */
TN_API bool tn_slab_reserve(tn_slab *s, size_t count) TN_SYMBOL(tn_slab_reserve);

/* Forgets every slot and keeps the chunks.
 *
 * threads  one at a time
 * cost     O(chunks), no slot is touched; with fini, one call for every built slot. Hardened wipes the
 *          carved slots, debug makes them inaccessible. */
TN_API void tn_slab_reset(tn_slab *s) TN_SYMBOL(tn_slab_reset);

/* Gives back every chunk without a live slot.
 *
 * returns  bytes given back
 * threads  one at a time
 * cost     O(slots in the magazines) and of the chunks that go */
TN_API size_t tn_slab_trim(tn_slab *s) TN_SYMBOL(tn_slab_trim);

/* Tells whether `p` points into a slot that this slab has carved, live or free.
 *
 * threads  any
 * cost     O(1); reads no memory at p */
TN_API bool tn_slab_owns(const tn_slab *s, const void *p) TN_SYMBOL(tn_slab_owns);

/* Calls `visit` for every live slot, in no particular order. `visit` must not call the slab.
 *
 * threads  one at a time
 * cost     O(carved slots); allocates nothing */
TN_API void tn_slab_each(tn_slab *s, void (*visit)(void *slot, void *ctx), void *ctx)
	TN_SYMBOL(tn_slab_each);

/* Counts the live slots.
 *
 * returns  slots handed out, exactly
 * threads  one at a time
 * cost     O(1) */
TN_API size_t tn_slab_in_use(const tn_slab *s) TN_SYMBOL(tn_slab_in_use);

/* Returns the size of a slot.
 *
 * returns  bytes: `size` rounded up to `align`
 * threads  any
 * cost     O(1) */
TN_API size_t tn_slab_slot_size(const tn_slab *s) TN_SYMBOL(tn_slab_slot_size);

/* Fills `stats` with the current figures.
 *
 * threads  one at a time
 * cost     O(chunks + slots in the magazines) */
TN_API void tn_slab_stats(const tn_slab *s, tn_stats *stats) TN_SYMBOL(tn_slab_stats);

/* Walks every chunk and magazine. Panics at a pointer that is not a slot of this slab, at a slot freed
 * twice, and at any other broken invariant.
 *
 * returns  true
 * threads  one at a time
 * cost     O(carved slots); allocates nothing */
TN_API bool tn_slab_verify(const tn_slab *s) TN_SYMBOL(tn_slab_verify);

#ifdef __cplusplus
}
#endif
#endif
