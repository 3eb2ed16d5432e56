/* tenure/shared_slab.h: objects of one size, allocated by any thread and freed by any thread.
 *
 * Each thread keeps free slots in two magazines of its own, arrays of pointers; full ones are exchanged
 * for empty ones at a depot that all threads share, and what nobody has needed for a while goes back to
 * the chunks, empty chunks to where they came from. A slot that one thread allocates and another one
 * frees goes into the magazine of the thread that frees it: nobody waits for an owner, and there is no
 * atomic operation on the way.
 *
 * What idle magazines can pin: a thread holds at most two magazines of free slots for each shared slab
 * that it has used (by default 508 slots or 256 KiB each, whichever is less, and fewer where it has
 * used it little; magazine_slots says otherwise), until it ends, flushes, or meets its next slow path
 * after a trim. */
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
	const char *name;      /* shown in statistics and panics; one with a name is listed (stats.h) */
	size_t chunk_bytes;    /* rounded up to a power of two that holds a slot; default 64 KiB, less where
	                          a limit leaves room for few of them */
	size_t magazine_slots; /* how many slots a thread exchanges at a time, at most
	                          TN_MAGAZINE_SLOTS_MAX; default: few at first, more as it exchanges more */
	size_t limit_bytes;    /* the most that is ever taken from the source, the slab's own record and the
	                          magazines included; default none */
	size_t retain_chunks;  /* chunks with no slot outside them that stay; default 1; TN_NONE: none.
	                          Trim keeps none. */
	/* Builds a slot once, when it is carved, and takes it apart when its chunk goes back and at
	 * destroy. In between the built state survives free and the next alloc. `init` returns whether it
	 * could; if not, alloc returns NULL and the slot stays as it was. One call at a time, and other
	 * threads that need more slots, or fork, wait for it; neither may call the slab or fork. */
	bool (*init)(void *slot, void *ctx);
	void (*fini)(void *slot, void *ctx);
	void *ctx;
	const tn_source *source; /* where chunks and magazines come from, at an alignment of their size (4
	                            KiB at least), one call at a time; must not call the slab or fork;
	                            default Tenure's page layer */
	bool expendable;         /* live slots at destroy are meant: debug does not list them */
} tn_shared_slab_options;

/* Private, the part that the inlined paths read; the rest lies behind it. */
typedef struct tn_shared_slab {
	uint64_t key; /* of this slab and no other, ever */
} tn_shared_slab;

/* Ends the slab. Live slots are no error; debug lists them by the site that allocated them. Threads
 * that still have slots of it in their magazines lose these; their handles are dead, and a call with
 * one panics (until the place of the handle is used again, some 64 handles later).
 *
 * s        from tn_shared_slab_create; NULL is a no-op
 * threads  any, when no other call on this slab is under way or follows
 * cost     O(chunks + threads that used it); with fini, O(slots) */
TN_API void tn_shared_slab_destroy(tn_shared_slab *s) TN_SYMBOL(tn_shared_slab_destroy);

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
TN_RELEASED_BY(tn_shared_slab_destroy, 1)
TN_API tn_shared_slab *tn_shared_slab_create(
	size_t size, size_t align, const tn_shared_slab_options *options) TN_SYMBOL(tn_shared_slab_create);

/* Not API: the parts of alloc and free that exchange magazines and check. */
TN_API void *tn_shared_slab_alloc_slow(tn_shared_slab *s) TN_SYMBOL(tn_shared_slab_alloc_slow);
TN_API void tn_shared_slab_free_slow(tn_shared_slab *s, void *p) TN_SYMBOL(tn_shared_slab_free_slow);
TN_API void *tn_shared_slab_local_alloc_slow(tn_local *l) TN_SYMBOL(tn_shared_slab_local_alloc_slow);
TN_API void tn_shared_slab_local_free_slow(tn_local *l, void *p)
	TN_SYMBOL(tn_shared_slab_local_free_slow);

/* Not API: takes a slot from the magazine of the shared slab that is near; false when it takes more
 * than that. */
TN_INLINE bool tn_shared_slab_pop(tn_shared_slab *s, void **slot) {
	return TN_LIKELY(!tn_hook_checked() && tn_near_slab.key == s->key) &&
	       TN_LIKELY((*slot = tn_top_pop(&tn_near_slab.top)) != NULL);
}

/* Takes a slot: the one that this thread freed last, else one that others freed, else a fresh one.
 *
 * returns  uninitialised memory of tn_shared_slab_slot_size bytes (with `init`, as it was built and
 *          left)
 * fails    ENOMEM when the source has no more, at limit_bytes, or when init fails
 * threads  any
 * cost     a handful of instructions inlined, no atomic operation; one call in a magazine's worth goes
 *          to the depot. Inlined is the shared slab that the thread uses most; others are a short
 *          function call, or the handle. */
TN_INLINE void *tn_shared_slab_alloc(tn_shared_slab *s) {
	void *p;
	return TN_LIKELY(tn_shared_slab_pop(s, &p)) ? p : tn_shared_slab_alloc_slow(s);
}

/* Gives a slot back, whichever thread allocated it. Its contents stay as they are in release, are wiped
 * in hardened and poisoned in debug (slots with `init` are left alone), where it waits in quarantine.
 *
 * p        a live slot of this slab; NULL is a no-op
 * threads  any
 * cost     as alloc; does not touch the slot, never fails, never needs memory */
TN_INLINE void tn_shared_slab_free(tn_shared_slab *s, void *p) {
	if (TN_UNLIKELY(tn_hook_checked() || p == NULL || tn_near_slab.key != s->key ||
					!tn_top_push(&tn_near_slab.top, p)))
		tn_shared_slab_free_slow(s, p);
}

/* Takes `count` slots, or none.
 *
 * slots    room for `count` pointers
 * count    0 succeeds
 * returns  whether all were had
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

/* The calling thread's handle, for loops that go from one slab to another and for callers whose
 * language has no cheap thread-local storage. The same handle is returned until the thread ends or the
 * slab is destroyed; a call with a handle of a destroyed slab panics.
 *
 * returns  the handle; using it and calling the slab directly in turns costs a function call each time,
 *          and destructors of thread-local storage should not use it
 * fails    NULL with ENOMEM, also in a thread whose thread-local storage is being torn down
 * threads  any; the handle is for the thread that got it */
TN_API tn_local *tn_shared_slab_local(tn_shared_slab *s) TN_SYMBOL(tn_shared_slab_local);

/* As tn_shared_slab_alloc, through the handle.
 *
 * fails    as tn_shared_slab_alloc
 * threads  owner only
 * cost     as tn_slab_alloc */
TN_INLINE void *tn_shared_slab_local_alloc(tn_local *l) {
	void *p;
	if (TN_UNLIKELY(tn_hook_checked() || (p = tn_top_pop(&l->top)) == NULL))
		return tn_shared_slab_local_alloc_slow(l);
	return p;
}

/* As tn_shared_slab_free, through the handle of the thread that frees.
 *
 * p        a live slot of the handle's slab; NULL is a no-op
 * threads  owner only
 * cost     as tn_slab_free */
TN_INLINE void tn_shared_slab_local_free(tn_local *l, void *p) {
	if (TN_UNLIKELY(tn_hook_checked() || p == NULL || !tn_top_push(&l->top, p)))
		tn_shared_slab_local_free_slow(l, p);
}

/* Gives what this thread has in its magazines to the depot, for others. A thread that ends does so by
 * itself.
 *
 * threads  any
 * cost     a copy of the pointers */
TN_API void tn_shared_slab_flush(tn_shared_slab *s) TN_SYMBOL(tn_shared_slab_flush);

/* Gives back what can be at once: flushes this thread, empties the depot, returns every chunk with no
 * slot outside, empties the page layer's cache (tn_trim_all), and asks every other thread to flush when
 * it next meets a slow path.
 *
 * returns  bytes that this slab gave back
 * threads  any
 * cost     O(free slots); other threads are let in between magazines */
TN_API size_t tn_shared_slab_trim(tn_shared_slab *s) TN_SYMBOL(tn_shared_slab_trim);

/* returns  slots handed out: exact while no other thread allocates, frees or ends, else within what
 *          they did meanwhile and the magazines that they exchanged
 * threads  any
 * cost     O(threads that use the slab) */
TN_API size_t tn_shared_slab_in_use(const tn_shared_slab *s) TN_SYMBOL(tn_shared_slab_in_use);

/* returns  bytes of a slot: `size` rounded up to `align`
 * threads  any
 * cost     O(1) */
TN_API size_t tn_shared_slab_slot_size(const tn_shared_slab *s) TN_SYMBOL(tn_shared_slab_slot_size);

/* Whether `p` points into a slot that this slab has carved, live or free.
 *
 * threads  any
 * cost     O(1); reads nothing behind p */
TN_API bool tn_shared_slab_owns(const tn_shared_slab *s, const void *p) TN_SYMBOL(tn_shared_slab_owns);

/* Calls `visit` for every live slot, in no particular order; `visit` must not call the slab.
 *
 * threads  any, when no other call on this slab is under way and no thread that used it is ending
 * cost     O(carved slots); allocates nothing */
TN_API void tn_shared_slab_each(tn_shared_slab *s, void (*visit)(void *slot, void *ctx), void *ctx)
	TN_SYMBOL(tn_shared_slab_each);

/* Fills `stats` with the figures of this moment; live ones as tn_shared_slab_in_use.
 *
 * threads  any
 * cost     O(chunks + threads that use the slab) */
TN_API void tn_shared_slab_stats(const tn_shared_slab *s, tn_stats *stats)
	TN_SYMBOL(tn_shared_slab_stats);

/* Walks every chunk and magazine; panics at a pointer that is not a slot of this slab, at one that is
 * free twice, and at any other broken invariant.
 *
 * returns  true
 * threads  any, when no other call on this slab is under way and no thread that used it is ending
 * cost     O(carved slots); allocates nothing */
TN_API bool tn_shared_slab_verify(const tn_shared_slab *s) TN_SYMBOL(tn_shared_slab_verify);

#ifdef __cplusplus
}
#endif
#endif
