/* Each thread's two magazines in front of depots: the part that a shared slab and a pool have in
 * common. `cache` is the allocator's part, `local` a thread's.
 *
 * The owner of a cache gives it slots when the depot has none, and takes back what is surplus. For the
 * cache slots are pointers; it never reads or writes what they point to. */
#ifndef TENURE_THREAD_CACHE_H
#define TENURE_THREAD_CACHE_H

#include <tenure/detail/local.h>
#include <tenure/stats.h>

#include "depot.h"

typedef struct cache cache;

#define CACHE_REFUSED SIZE_MAX
/* The key of a destroyed allocator, which nothing near ever has. */
#define DEAD_KEY UINT64_MAX
/* A magazine is at most this part of what may be idle, and if slots have weight, at most so much. */
#define TN_SHARES_OF_BOUND 16
#define TN_MAGAZINE_REACH ((size_t)64 << 10)

/* Called without a depot's lock, by any thread. */
typedef struct cache_owner {
	/* Takes up to `count` slots, and writes them from slots[0] on; returns how many. 0: there is no
	 * memory; CACHE_REFUSED: there is, but something else failed. Both set errno. */
	size_t (*take_slots)(cache *c, void **slots, size_t count);
	/* Gives slots back for good. */
	void (*give_slots)(cache *c, void **slots, size_t count);
	/* The weight of slots on their way to the depot; panics at a slot that is not the owner's. */
	size_t (*weight_of)(const cache *c, void *const *slots, size_t count);
	/* A page for a magazine, or NULL; and back. */
	magazine *(*take_magazine)(cache *c);
	void (*give_magazine)(cache *c, magazine *m);
	/* With several memory nodes: the node of the slots in a magazine that leaves the thread; those of
	 * other nodes go to the owner first. NULL: slots have no node. */
	size_t (*sort_home)(cache *c, magazine *m);
	/* After how many slots that came or went a window of the depot is over; 0 ends it now. */
	size_t (*window_of)(cache *c);
	/* Gives back what the depots and the owner's own store keep for later; returns the bytes. */
	size_t (*trim)(cache *c);
} cache_owner;

/* The key of a cache tells it from every other one by its lower bits. The upper ones count the requests
 * to its threads for their slots (tn_cache_ask). */
#define CACHE_REQUEST ((uint64_t)1 << 40)

typedef struct local {
	tn_local hot;
	uint64_t key;                    /* of the cache, with the requests that it has followed */
	TN_ATOMIC(cache *) cache;        /* NULL: destroyed meanwhile */
	TN_ATOMIC(uint32_t) changes;     /* odd while the magazines change hands */
	TN_ATOMIC(uint32_t) count;       /* slots that they held before that */
	TN_ATOMIC(void ***) top_at;      /* where the top is: in `hot`, or near */
	TN_ATOMIC(void **) bottom;       /* the word below the loaded magazine's oldest slot */
	TN_GUARDED(magazine *) loaded;   /* or NULL */
	TN_GUARDED(magazine *) previous; /* or NULL */
	TN_ATOMIC(uint32_t) previous_count;
	uint16_t capacity;      /* slots of the magazines that it fills */
	uint16_t most_capacity; /* by the weight of the slots seen last */
	uint8_t exchanges;      /* with depots, since it grew */
	uint8_t ticks;          /* while it was far */
	uint8_t pace;           /* takes from one look at the clock to the next */
	bool handled : 1;       /* a caller has its address */
	bool busy : 1;          /* the owner's callbacks may come back here */
	depot_seat seat;
	const void *thread;
	struct local *next_of_thread;
	/* Under the common depot's lock. */
	TN_GUARDED(struct local *) next_of_cache;
	TN_GUARDED(TN_GUARDED(struct local *) *) link_of_cache;
} local;

#define CACHE_CHAINS 16

enum locals_state { LOCALS_NEW, LOCALS_OPEN, LOCALS_CLOSED };

/* A thread's locals. */
typedef struct local_chains {
	enum locals_state state;
	local *chain[CACHE_CHAINS]; /* by the low bits of their keys */
} local_chains;
extern TN_THREAD local_chains tn_cache_locals TN_THREAD_NEAR;

struct cache {
	uint64_t key;
	uint64_t *front_key; /* where the inlined calls read the key, if not here */
	const cache_owner *owner;
	tn_lock *owner_lock; /* held by a fork; or NULL */
	const char *kind, *name;
	uint32_t least_capacity, most_capacity;
	uint32_t most_pace;         /* the most takes of a thread between two looks at the clock; 0: none */
	size_t window_ms;           /* while no slots come or go, a window is over after that time */
	TN_ATOMIC(uint64_t) ticked; /* milliseconds, the last look at the clock */
	TN_ATOMIC(uint64_t) served; /* the last window that time has ended, where slots end windows */
	TN_ATOMIC(bool) trim_wanted; /* from the thread that holds the owner's lock */
	/* The fields above are read with many calls, those below are written with exchanges. */
	_Alignas(TN_OS_LINE) depots depots;
	TN_GUARDED(local *) locals; /* under the common depot's lock */
	TN_ATOMIC(uint32_t) local_count;
	TN_ATOMIC(uint32_t) sharded; /* a thread has made the shards, or found no memory for them */
	cache *next, **link;         /* in the registry, under its lock */
	bool orphaned; /* forked while other threads used it: they may have had slots in their hands */
	/* Threads that end and still have slots of it; under the registry's lock. */
	TN_GUARDED(unsigned) guests;
	TN_GUARDED(unsigned) walks;
};

/* Around all that an owner does under its lock, callbacks included. A thread that holds no owner's lock
 * lets a fork that waits for these locks go first. */
extern TN_ATOMIC(uint32_t) tn_cache_forks; /* that wait for owners' locks */
extern TN_THREAD unsigned tn_cache_owners; /* whose locks this thread holds */
void tn_cache_wait_for_forks(tn_lock *held);
static inline void tn_cache_lock_owner(tn_lock *lock) {
	tn_lock_take(lock);
	if (TN_UNLIKELY(tn_get(&tn_cache_forks, TN_RELAXED) != 0) && tn_cache_owners == 0)
		tn_cache_wait_for_forks(lock);
	tn_cache_owners++;
}

static inline void tn_cache_unlock_owner(tn_lock *lock) {
	tn_lock_give(lock);
	tn_cache_owners--;
}

/* Fills in a cache whose owner, kind, name and bounds are set, and puts it into the registry. The
 * capacity of a thread's magazines grows from least_capacity to most_capacity. */
void tn_cache_make(cache *c);
/* Takes it out of the registry: waits for threads that are ending, and ends all locals. Slots in the
 * hands of threads are lost. */
void tn_cache_unlink(cache *c);

/* Around a walk over the owner's slots without its lock: trims, maintenance and pressure, which come
 * from any thread, leave the cache alone. Waits for those that are at it. */
void tn_cache_begin_walk(cache *c);
void tn_cache_end_walk(cache *c);
/* After that: gives all magazines back to the owner, but not the slots in them. */
void tn_cache_end(cache *c);

/* The calling thread's part, for a caller to keep; NULL when the thread is about to end or there is no
 * memory. */
local *tn_cache_handle(cache *c);

/* For tn_cache_take and tn_cache_give. */
void *tn_cache_take_slow(cache *c, tn_near *at);
void tn_cache_give_slow(cache *c, tn_near *at, void *p);

/* The calling thread's part. NULL: it has none, or one that has not followed all requests, which are
 * the bits to be `ignored`. */
static inline local *cache_find_local(const cache *c, uint64_t ignored) {
	uint64_t key = tn_get(&c->key, TN_RELAXED) | ignored;
	local *l = tn_cache_locals.chain[key % CACHE_CHAINS];
	while (TN_LIKELY(l != NULL) && TN_UNLIKELY((l->key | ignored) != key))
		l = l->next_of_thread;
	return l;
}

/* For the calling thread, when the inlined pop or push failed: `take` returns NULL with errno when
 * there is no slot, `give` never fails. A cache that is asked often comes near. A local that is near
 * has an empty top here, and takes the slow path too.
 *
 * Inlined, because jumps from function to function are much of the time of so short a call. */
static inline void *tn_cache_take(cache *c, tn_near *at) {
	local *l = cache_find_local(c, 0);
	void *p;
	if (TN_UNLIKELY(l == NULL || --l->hot.takes == 0 || (p = tn_top_pop(&l->hot.top)) == NULL))
		return tn_cache_take_slow(c, at);
	return p;
}

static inline void tn_cache_give(cache *c, tn_near *at, void *p) {
	local *l = cache_find_local(c, 0);
	if (TN_UNLIKELY(l == NULL || !tn_top_push(&l->hot.top, p)))
		tn_cache_give_slow(c, at, p);
}

/* The cache that a handle is of; panics unless it is alive and the handle this thread's. */
cache *tn_cache_of_handle(const local *l, const char *operation);
/* Take and give through a handle of that cache, which is not near from then on. */
void *tn_cache_take_by(cache *c, local *l);
void tn_cache_give_by(cache *c, local *l, void *p);

/* Takes `count` slots of the owner into the depot, within the bounds, or changes nothing.
 *
 * fails    false with ENOMEM */
bool tn_cache_prefill(cache *c, size_t count);
/* Gives this thread's slots to the depot. */
void tn_cache_flush(cache *c);
/* Gives all that the depot and this thread hold to the owner; asks other threads to flush. */
void tn_cache_drain(cache *c);
/* Asks every thread to flush with its next call. */
void tn_cache_ask(cache *c);
/* The same for all caches, without their threads' slots; returns the bytes. A cache of which this
 * thread, or one that waits, holds the owner's lock is left to that thread. */
size_t tn_caches_trim(void);
/* Ends the windows of all caches that are over, and gives back what is surplus; returns the slots that
 * stay in depots. */
size_t tn_caches_serve(void);
/* Slots in all magazines, those in the depot, and the weight of the latter; for the owners' figures. */
typedef struct idle_slots {
	size_t count, in_depot, weight;
} idle_slots;
idle_slots tn_cache_idle(cache *c);
/* The same without waiting; no slots when another thread holds the depot for long. */
idle_slots tn_cache_glance(cache *c);
/* Writes the figures of exchanges into `stats`. */
void tn_cache_read_exchanges(const cache *c, tn_stats *stats);
/* Calls `visit` with the slots of each magazine; of an unlinked cache only of those in the depot. No
 * other thread may use the cache meanwhile. */
void tn_cache_each(cache *c, void (*visit)(void *const *slots, size_t count, void *ctx), void *ctx);

#endif
