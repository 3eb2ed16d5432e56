/* What a shared slab and a pool have in common: every thread's two magazines in front of a depot.
 *
 * `cache` is the allocator's part, `local` a thread's. The owner of a cache gives it slots when the
 * depot has none, and takes back what is surplus; for the cache they are pointers that it never looks
 * behind. */
#ifndef TENURE_MAGAZINES_H
#define TENURE_MAGAZINES_H

#include <tenure/detail/local.h>

#include "depot.h"

typedef struct cache cache;

#define CACHE_REFUSED SIZE_MAX
/* What a destroyed allocator has for a key: nothing near ever has it. */
#define DEAD_KEY UINT64_MAX
/* A magazine is at most this part of what may be idle. */
#define TN_SHARES_OF_BOUND 16

/* Called without the depot's lock, by any thread. */
typedef struct cache_owner {
	/* Finds up to `count` slots and writes them from slots[0] on; how many it found. 0: there is no
	 * memory; CACHE_REFUSED: there is, but something else failed. Both set errno. */
	size_t (*find)(cache *c, void **slots, size_t count);
	/* Takes slots back for good. */
	void (*take_back)(cache *c, void **slots, size_t count);
	/* Looks at slots on their way to the depot; may panic. Returns what they weigh. */
	size_t (*weigh)(const cache *c, void *const *slots, size_t count);
	/* A page for a magazine, or NULL; and back. */
	magazine *(*add_magazine)(cache *c);
	void (*drop_magazine)(cache *c, magazine *m);
	/* After how many slots that came or went a window of the depot is over; 0 ends it now. */
	size_t (*window)(cache *c);
	/* Its lock, for fork; whether it could be had. */
	bool (*try_lock)(cache *c);
	void (*unlock)(cache *c);
} cache_owner;

typedef struct local {
	tn_local hot;
	uint64_t key;
	uint32_t far_takes;              /* left until it comes near */
	uint32_t flushes;                /* of the cache, that it has followed */
	TN_ATOMIC(cache *) cache;        /* NULL: destroyed meanwhile */
	TN_ATOMIC(uint32_t) changes;     /* odd while the magazines change hands */
	TN_ATOMIC(uint32_t) count;       /* slots that they held before that */
	TN_ATOMIC(void ***) top_at;      /* where the top is: in `hot`, or near */
	TN_ATOMIC(void **) bottom;       /* the word below the loaded magazine's oldest slot */
	TN_GUARDED(magazine *) loaded;   /* or NULL */
	TN_GUARDED(magazine *) previous; /* or NULL */
	TN_ATOMIC(size_t) previous_count;
	uint32_t capacity;  /* slots of the magazines that it fills */
	uint32_t exchanges; /* with the depot, since it grew */
	bool handled;       /* a caller has its address */
	const void *thread;
	struct local *next_of_thread;
	/* Under the depot's lock. */
	TN_GUARDED(struct local *) next_of_cache;
	TN_GUARDED(TN_GUARDED(struct local *) *) link_of_cache;
} local;

struct cache {
	uint64_t key;
	const cache_owner *owner;
	const char *kind, *name;
	uint32_t least_capacity, most_capacity;
	TN_ATOMIC(uint32_t) flushes; /* asked for, by trim */
	/* What is above is read with many calls, what is below is written with every exchange. */
	_Alignas(TN_OS_LINE) depot depot;
	TN_GUARDED(local *) locals;  /* under the depot's lock */
	TN_GUARDED(magazine *) left; /* in the hands of threads, when it was closed */
	cache *next, **link;         /* in the registry, under its lock */
	bool orphaned; /* forked while other threads used it: they may have had slots in their hands */
	/* Threads that end and still have slots of it; under the registry's lock. */
	TN_GUARDED(unsigned) guests;
};

/* Fills in a cache whose owner, kind, name and bounds are set, and makes it known. The capacity of a
 * thread's magazines grows from least_capacity to most_capacity. */
void tn_cache_init(cache *c);
/* Makes it unknown: waits for threads that are ending, and then no local is alive. What was in the
 * hands of threads is lost. */
void tn_cache_close(cache *c);
/* After that: all magazines go back to the owner, but not the slots in them. */
void tn_cache_deinit(cache *c);

/* The calling thread's part, for a caller to keep; NULL when the thread is about to end or there is no
 * memory. */
local *tn_cache_handle(cache *c);

/* What the inlined pop and push could not do, for the calling thread: `take` returns NULL with errno
 * when there is no slot, `give` never fails. A cache that is asked often comes near. */
void *tn_cache_take(cache *c, tn_near *at);
void tn_cache_give(cache *c, tn_near *at, void *p);

/* The same through a handle, which is not near from then on, and the cache that a handle is of; panics
 * unless that is alive and the handle this thread's. */
void *tn_local_take(local *l, const char *operation);
void tn_local_give(local *l, void *p, const char *operation);
cache *tn_local_cache(const local *l, const char *operation);

/* This thread's slots to the depot. */
void tn_cache_flush(cache *c);
/* All that the depot and this thread hold to the owner; other threads are asked to flush. */
void tn_cache_drain(cache *c);
/* Slots in all magazines, those in the depot, and what the latter weigh; for the owners' figures. */
typedef struct idle_slots {
	size_t count, in_depot, weight;
} idle_slots;
idle_slots tn_cache_idle(cache *c);
/* The same without waiting; no slots when somebody holds the depot for long. */
idle_slots tn_cache_glance(cache *c);
/* Calls `visit` with the slots of each magazine, of a closed cache of those in the depot; nobody may
 * use the cache meanwhile. */
void tn_cache_each(cache *c, void (*visit)(void *const *slots, size_t count, void *ctx), void *ctx);

#endif
