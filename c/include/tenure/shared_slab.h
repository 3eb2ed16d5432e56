/* tenure/shared_slab.h: objects of one size, allocated by any thread and freed by any thread.
 *
 * Each thread keeps free slots in two magazines (arrays of pointers) of its own. Threads exchange full
 * magazines for empty ones at a shared depot. Slots that no thread has needed for a while go back to
 * their chunks, and empty chunks to their source. A slot that one thread allocates and another thread
 * frees goes into the magazine of the thread that frees it. So no thread waits for an owner, and this
 * path has no atomic operation.
 *
 * On a machine with several memory nodes (NUMA) a chunk belongs to a node. A thread gets slots of the
 * node that it runs on while that has memory, and a slot that another node frees goes home with its
 * magazine. Debug and slabs for one thread tell no nodes apart.
 *
 * Memory that idle magazines can pin: a thread holds at most two magazines of free slots for each
 * shared slab that it has used, until it ends, flushes, or calls the slab again after a trim. By
 * default a magazine has at most 508 slots and 256 KiB of them, and fewer if the thread has used the
 * slab little; magazine_slots changes this. */
#ifndef TENURE_SHARED_SLAB_H
#define TENURE_SHARED_SLAB_H

#include "base.h"
#include "detail/hooks.h"
#include "detail/local.h"
#include "stats.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The most slots that a magazine holds. */
#define TN_MAGAZINE_SLOTS_MAX ((size_t)508)

/* All sizes are bytes; 0 takes the default. */
typedef struct tn_shared_slab_options {
	const char *name;      /* shown in statistics and panics; a named slab is listed (stats.h) */
	size_t chunk_bytes;    /* rounded up to a power of two that holds a slot; default 64 KiB, up to
	                          256 KiB for slots over 2 KiB, less when a limit leaves room for few
	                          chunks */
	size_t magazine_slots; /* slots that a thread exchanges at a time, at most TN_MAGAZINE_SLOTS_MAX;
	                          default: few at first, more as the thread exchanges more */
	size_t limit_bytes;    /* the most ever taken from the source, with the slab's own record and the
	                          magazines; default: no limit */
	size_t retain_chunks;  /* chunks that stay when all their slots are back; default 1; TN_NONE: none;
	                          on each memory node so many. Trim keeps none. tn_shared_slab_tune changes
	                          it */
	size_t shard_slots;    /* free slots that a depot keeps for the threads of its shard; default: what
	                          recent use needed; TN_NONE: none. tn_shared_slab_tune changes it */
	/* `init` builds a slot once, when it is carved. `fini` takes it apart when its chunk goes back and
	 * at destroy. Between the two, the built state survives free and the next alloc. `init` returns
	 * whether it succeeded; if not, alloc returns NULL and the slot stays unbuilt. One of these calls
	 * runs at a time; other threads that need more slots, or fork, wait for it. Neither may call the
	 * slab or fork. */
	bool (*init)(void *slot, void *ctx);
	void (*fini)(void *slot, void *ctx);
	void *ctx;
	const tn_source *source; /* source of chunks and magazines, aligned to their size (at least 4 KiB);
	                            called by one thread at a time; must not call the slab or fork;
	                            default: Tenure's page layer */
	bool expendable;         /* live slots at destroy are intended: debug does not list them */
} tn_shared_slab_options;

/* The options that can be changed while the slab is in use; 0 takes the default. */
typedef struct tn_shared_slab_knobs {
	size_t retain_chunks;
	size_t shard_slots;
} tn_shared_slab_knobs;

/* Private: the part that the inlined paths read. The rest of the slab follows it in memory. */
typedef struct tn_shared_slab {
	uint64_t key; /* of this slab only; never used again */
} tn_shared_slab;

/* Makes a shared slab for slots of `size` bytes.
 *
 * size     bytes, at least 1; rounded up to a multiple of align
 * align    bytes, a power of two up to TN_ALIGN_MAX; 0 means 16
 * options  NULL for the defaults; read during the call only
 * returns  the slab, with no chunk yet
 * fails    EINVAL for size 0, a bad alignment, a size that no chunk can hold, more magazine_slots than
 *          there may be, or contradicting options; ENOMEM
 * threads  any
 * cites    Bonwick and Adams 2001, "Magazines and Vmem" */
TN_API tn_shared_slab *tn_shared_slab_create(
	size_t size, size_t align, const tn_shared_slab_options *options) TN_SYMBOL(tn_shared_slab_create);

/* Ends the slab. Live slots are no error; debug lists them by the site that allocated them. Threads
 * lose the slots of this slab in their magazines. Their handles are dead: a call with one panics, until
 * the memory of the handle is used again, some 64 handles later.
 *
 * s        from tn_shared_slab_create; NULL is a no-op
 * threads  any, when no other call on this slab is under way or follows
 * cost     O(chunks + threads that used it); with fini, O(slots) */
TN_API void tn_shared_slab_destroy(tn_shared_slab *s) TN_SYMBOL(tn_shared_slab_destroy);
TN_RELEASED_BY(tn_shared_slab_destroy, 1,
	tn_shared_slab *tn_shared_slab_create(
		size_t size, size_t align, const tn_shared_slab_options *options))

/* Not API: the parts of alloc and free that exchange magazines and check. */
TN_API void *tn_shared_slab_alloc_slow(tn_shared_slab *s) TN_SYMBOL(tn_shared_slab_alloc_slow);
TN_API void tn_shared_slab_free_slow(tn_shared_slab *s, void *p) TN_SYMBOL(tn_shared_slab_free_slow);
TN_API void *tn_shared_slab_local_alloc_slow(tn_local *l) TN_SYMBOL(tn_shared_slab_local_alloc_slow);
TN_API void tn_shared_slab_local_free_slow(tn_local *l, void *p)
	TN_SYMBOL(tn_shared_slab_local_free_slow);

/* Not API: takes a slot from the magazine of the near shared slab; false when the slow path is
 * needed. */
TN_INLINE bool tn_shared_slab_pop(tn_shared_slab *s, void **slot) {
	return TN_LIKELY(!tn_hook_checked() && tn_near_slab.key == TN_LOAD(&s->key)) &&
	       TN_LIKELY((*slot = tn_top_pop(&tn_near_slab.top)) != NULL);
}

/* Takes a slot: the one that this thread freed last, else one that another thread freed, else a fresh
 * one.
 *
 * returns  uninitialised memory of tn_shared_slab_slot_size bytes (with `init`, as it was built and
 *          left)
 * fails    ENOMEM when the source has no more, at limit_bytes, or when init fails
 * threads  any
 * cost     a handful of instructions, no atomic operation; one call in a magazine's worth goes to the
 *          depot. The call is inlined for the shared slab that the thread uses most. For other shared
 *          slabs it is a short function call; a handle avoids that. */
TN_INLINE void *tn_shared_slab_alloc(tn_shared_slab *s) {
	void *p;
	return TN_LIKELY(tn_shared_slab_pop(s, &p)) ? p : tn_shared_slab_alloc_slow(s);
}

/* Gives a slot back, whichever thread allocated it. Release keeps its contents, hardened wipes them,
 * debug poisons them; slots with `init` are left alone. In debug the slot waits in quarantine.
 *
 * p        a live slot of this slab; NULL is a no-op
 * threads  any
 * cost     as alloc; does not touch the slot, never fails, never needs memory */
TN_INLINE void tn_shared_slab_free(tn_shared_slab *s, void *p) {
	if (TN_UNLIKELY(tn_hook_checked() || p == NULL || tn_near_slab.key != TN_LOAD(&s->key) ||
					!tn_top_push(&tn_near_slab.top, p)))
		tn_shared_slab_free_slow(s, p);
}

/* Takes `count` slots, or none.
 *
 * slots    room for `count` pointers
 * count    0 succeeds
 * returns  whether it took all of them
 * fails    as alloc; nothing is kept
 * threads  any
 * cost     as so many calls */
TN_API bool tn_shared_slab_alloc_batch(tn_shared_slab *s, void **slots, size_t count)
	TN_SYMBOL(tn_shared_slab_alloc_batch);

/* Gives `count` slots back.
 *
 * slots    live slots of this slab; NULLs among them are skipped
 * threads  any
 * cost     as so many calls */
TN_API void tn_shared_slab_free_batch(tn_shared_slab *s, void **slots, size_t count)
	TN_SYMBOL(tn_shared_slab_free_batch);

/* Gives back all the memory that it can: flushes this thread, empties the depot, returns every chunk
 * whose slots are all back, and empties the page layer's cache. Every other thread gives back what it
 * holds with its next call of this slab.
 *
 * returns  bytes that this slab gave back
 * threads  any
 * cost     O(free slots); other threads may run between two magazines */
TN_API size_t tn_shared_slab_trim(tn_shared_slab *s) TN_SYMBOL(tn_shared_slab_trim);

/* Returns the calling thread's handle, for loops that go from one slab to another and for callers whose
 * language has no cheap thread-local storage. The handle stays the same until the thread ends or the
 * slab is destroyed; after that a call with it panics.
 *
 * returns  the handle. Calls through it that alternate with direct calls of the slab cost a function
 *          call each. Destructors of thread-local storage should not use it
 * fails    NULL with ENOMEM, also in a thread whose thread-local storage is being destroyed
 * threads  any; the handle is for the thread that got it */
TN_API tn_local *tn_shared_slab_local(tn_shared_slab *s) TN_SYMBOL(tn_shared_slab_local);

/* Takes a slot as tn_shared_slab_alloc, through the handle.
 *
 * returns  as tn_shared_slab_alloc
 * fails    as tn_shared_slab_alloc
 * threads  owner only
 * cost     as tn_slab_alloc */
TN_INLINE void *tn_shared_slab_local_alloc(tn_local *l) {
	void *p;
	if (TN_UNLIKELY(
			tn_hook_checked() || !tn_is_zero_word(&l->asked) || (p = tn_top_pop(&l->top)) == NULL))
		return tn_shared_slab_local_alloc_slow(l);
	return p;
}

/* Gives a slot back as tn_shared_slab_free, through the handle of the thread that frees.
 *
 * p        a live slot of the handle's slab; NULL is a no-op
 * threads  owner only
 * cost     as tn_slab_free */
TN_INLINE void tn_shared_slab_local_free(tn_local *l, void *p) {
	if (TN_UNLIKELY(
			tn_hook_checked() || p == NULL || !tn_is_zero_word(&l->asked) || !tn_top_push(&l->top, p)))
		tn_shared_slab_local_free_slow(l, p);
}

/* Gives the slots in this thread's magazines to the depot, for other threads. A thread that ends does
 * this by itself.
 *
 * threads  any
 * cost     a copy of the pointers */
TN_API void tn_shared_slab_flush(tn_shared_slab *s) TN_SYMBOL(tn_shared_slab_flush);

/* Tells whether `p` points into a slot that this slab has carved, live or free.
 *
 * threads  any
 * cost     O(1); reads no memory at p */
TN_API bool tn_shared_slab_owns(const tn_shared_slab *s, const void *p) TN_SYMBOL(tn_shared_slab_owns);

/* Calls `visit` for every live slot, in no particular order. `visit` must not call the slab.
 *
 * threads  any, when no other call on this slab is under way and no thread that used it is ending
 * cost     O(carved slots); allocates nothing */
TN_API void tn_shared_slab_each(tn_shared_slab *s, void (*visit)(void *slot, void *ctx), void *ctx)
	TN_SYMBOL(tn_shared_slab_each);

/* Sets how much the slab keeps for the next calls. A smaller value takes effect as threads exchange
 * magazines and free slots; trim obeys at once. Debug keeps what create was told.
 *
 * knobs    read during the call only
 * threads  any */
TN_API void tn_shared_slab_tune(tn_shared_slab *s, const tn_shared_slab_knobs *knobs)
	TN_SYMBOL(tn_shared_slab_tune);

/* Counts the live slots.
 *
 * returns  slots handed out. Exact while no other thread allocates, frees or ends; otherwise off by at
 *          most their calls meanwhile and the magazines that they exchanged
 * threads  any
 * cost     O(threads that use the slab) */
TN_API size_t tn_shared_slab_in_use(const tn_shared_slab *s) TN_SYMBOL(tn_shared_slab_in_use);

/* Returns the size of a slot.
 *
 * returns  bytes: `size` rounded up to `align`
 * threads  any
 * cost     O(1) */
TN_API size_t tn_shared_slab_slot_size(const tn_shared_slab *s) TN_SYMBOL(tn_shared_slab_slot_size);

/* Fills `stats` with the current figures; live slots as counted by tn_shared_slab_in_use.
 *
 * threads  any
 * cost     O(chunks + threads that use the slab) */
TN_API void tn_shared_slab_stats(const tn_shared_slab *s, tn_stats *stats)
	TN_SYMBOL(tn_shared_slab_stats);

/* Walks every chunk and magazine. Panics at a pointer that is not a slot of this slab, at a slot freed
 * twice, and at any other broken invariant.
 *
 * returns  true
 * threads  any, when no other call on this slab is under way and no thread that used it is ending
 * cost     O(carved slots); allocates nothing */
TN_API bool tn_shared_slab_verify(const tn_shared_slab *s) TN_SYMBOL(tn_shared_slab_verify);

#ifdef __cplusplus
}
#endif
#endif
