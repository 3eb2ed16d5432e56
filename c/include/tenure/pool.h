/* tenure/pool.h: objects that are costly to build and come back used.
 *
 * A pool hands out built objects and takes them back with their buffers. Any thread may get an object
 * that another thread put. Idle objects wait in magazines, like the free slots of a shared slab. Their
 * number and bytes are bounded, and objects that no thread has needed for two windows of decay_ms are
 * taken apart. No idle object vanishes otherwise, and nothing runs in the background: the pool reads
 * the clock when magazines are exchanged, and in one get of at most 16. A pool that no thread uses
 * stays as it is, unless maintenance is on (idle.h). Not counted in its bounds are the objects in
 * threads' magazines, and memory that objects hold but size_of does not tell. */
#ifndef TENURE_POOL_H
#define TENURE_POOL_H

#include "base.h"
#include "detail/hooks.h"
#include "detail/local.h"
#include "stats.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Callbacks run on the thread that calls the pool or that ends, on several threads at a time, with no
 * lock held (in destroy, debug holds the lock of this pool). They may use other pools, but none whose
 * callbacks come back to this one. 0 takes the default. */
typedef struct tn_pool_options {
	const char *name; /* shown in statistics and panics; a named pool is listed (stats.h) */
	/* Builds an object in `size` uninitialised bytes when get finds no idle one; returns whether it
	 * succeeded. Default: zeroes the bytes. */
	bool (*init)(void *object, void *ctx);
	/* Makes a used object fit for its next user; runs in put. Default: leaves it as it was put. */
	void (*reset)(void *object, void *ctx);
	/* Takes an object apart; runs for an idle object that leaves, and for every object at destroy. */
	void (*fini)(void *object, void *ctx);
	/* Returns the bytes that an idle object holds beside its own `size`. Default: none. Called when
	 * magazines are exchanged. With it magazines begin at one object, and grow while the objects are
	 * small. */
	size_t (*size_of)(const void *object, void *ctx);
	void *ctx;
	size_t max_idle_objects; /* the most idle objects in the process, see below; default 16,384;
	                            TN_NONE: none */
	size_t max_idle_bytes;   /* the same in bytes, `size` plus size_of; default 64 MiB; TN_NONE: none */
	size_t decay_ms;         /* one window, milliseconds; default 1000; TN_NONE: idle objects stay until
	                            trim */
} tn_pool_options;

/* The bound on idle objects is enforced when magazines are exchanged. Each thread may hold idle objects
 * beyond it in its two magazines. A magazine holds at most a sixteenth of max_idle_objects and of the
 * objects that fit max_idle_bytes by `size`, at most 64 objects, and about 64 KiB of them as far as
 * `size` and size_of tell; but at least 1. */

/* Private: the part that the inlined paths read. The rest of the pool follows it in memory. */
typedef struct tn_pool {
	uint64_t key;
	void (*reset)(void *object, void *ctx);
	void *ctx;
} tn_pool;

/* Makes a pool of objects of `size` bytes, with none in it.
 *
 * size     bytes, at least 1; rounded up to a multiple of align
 * align    bytes, a power of two up to TN_ALIGN_MAX; 0 means 16
 * options  NULL for the defaults; read during the call only
 * returns  the pool
 * fails    EINVAL for size 0, a bad alignment, or a size that no chunk can hold; ENOMEM
 * threads  any
 * cites    Bonwick 1994, "The slab allocator" (objects that stay built) */
TN_API tn_pool *tn_pool_create(size_t size, size_t align, const tn_pool_options *options)
	TN_SYMBOL(tn_pool_create);

/* Ends the pool and takes every object apart. Objects that were not put back are no error; debug lists
 * them by the site that got them. In the child of a fork, when other threads used the pool, only the
 * objects in the depot and in this thread's magazines are taken apart: the others may have been in the
 * middle of `init` or `fini`.
 *
 * p        from tn_pool_create; NULL is a no-op
 * threads  any, when no other call on this pool is under way or follows
 * cost     O(objects) */
TN_API void tn_pool_destroy(tn_pool *p) TN_SYMBOL(tn_pool_destroy);
TN_RELEASED_BY(tn_pool_destroy, 1,
	tn_pool *tn_pool_create(size_t size, size_t align, const tn_pool_options *options))

/* Not API: the parts of get and put that exchange magazines, build, enforce the bound and check. */
TN_API void *tn_pool_get_slow(tn_pool *p) TN_SYMBOL(tn_pool_get_slow);
TN_API void tn_pool_put_slow(tn_pool *p, void *object) TN_SYMBOL(tn_pool_put_slow);
TN_API void tn_pool_put_full(tn_pool *p, void *object) TN_SYMBOL(tn_pool_put_full);

/* Not API: takes an idle object of the near pool; false when the slow path is needed. */
TN_INLINE bool tn_pool_pop(tn_pool *p, void **object) {
	return TN_LIKELY(!tn_hook_checked() && tn_near_pool.key == TN_LOAD(&p->key)) &&
	       TN_LIKELY(--tn_near_pool.takes != 0) &&
	       TN_LIKELY((*object = tn_top_pop(&tn_near_pool.top)) != NULL);
}

/* Takes an object: the one that this thread put last, else one that another thread put, else a new one.
 *
 * returns  a built object, as `init` or `reset` left it
 * fails    NULL with ENOMEM when there is no memory for a new one or `init` fails; nothing is lost
 * threads  any
 * cost     a handful of instructions inlined while this thread has idle objects */
TN_INLINE void *tn_pool_get(tn_pool *p) {
	void *object;
	return TN_LIKELY(tn_pool_pop(p, &object)) ? object : tn_pool_get_slow(p);
}

/* Gives an object back for its next user, on any thread.
 *
 * object   from tn_pool_get of this pool; NULL is a no-op
 * threads  any
 * cost     as get, plus the call of `reset` */
TN_INLINE void tn_pool_put(tn_pool *p, void *object) {
	if (TN_UNLIKELY(tn_hook_checked() || object == NULL || tn_near_pool.key != TN_LOAD(&p->key))) {
		tn_pool_put_slow(p, object);
		return;
	}
	if (p->reset != NULL)
		p->reset(object, p->ctx);
	if (TN_UNLIKELY(tn_near_pool.key != TN_LOAD(&p->key) || !tn_top_push(&tn_near_pool.top, object)))
		tn_pool_put_full(p, object);
}

/* Builds `count` objects ahead, for the next gets of any thread. They are idle objects like others:
 * what two windows do not need is taken apart.
 *
 * count    0 succeeds
 * returns  whether all were built
 * fails    ENOMEM when there is no memory for them, `init` fails, or the bounds on idle objects leave
 *          no room; what was built is taken apart
 * threads  any
 * cost     one `init` each */
TN_API bool tn_pool_prefill(tn_pool *p, size_t count) TN_SYMBOL(tn_pool_prefill);

/* Takes apart every idle object in the depot and in this thread's magazines, and gives their memory
 * back. Every other thread gives back what it holds with its next call of this pool.
 *
 * returns  bytes of objects and magazines given back, without the memory that `fini` freed
 * threads  any
 * cost     O(idle objects) */
TN_API size_t tn_pool_trim(tn_pool *p) TN_SYMBOL(tn_pool_trim);

/* Gives this thread's idle objects to the depot, for other threads. A thread that ends does this by
 * itself.
 *
 * threads  any */
TN_API void tn_pool_flush(tn_pool *p) TN_SYMBOL(tn_pool_flush);

/* Fills `stats` with the current figures: live counts objects handed out, cached counts idle objects,
 * and for those in the depot also the bytes from size_of. Exact while no other thread gets or puts.
 *
 * threads  any
 * cost     O(chunks + threads that use the pool) */
TN_API void tn_pool_stats(const tn_pool *p, tn_stats *stats) TN_SYMBOL(tn_pool_stats);

#ifdef __cplusplus
}
#endif
#endif
