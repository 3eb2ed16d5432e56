/* The pool: built objects in magazines. Their memory is a shared slab's, used past its magazines.
 *
 *   get, put (inline)         this thread's loaded magazine
 *   `- take, give             thread_cache.c: previous, depot; and if these do not help
 *      |- pool_take_object    a slot of the shared slab, init
 *      `- pool_give_objects   fini, the slot goes back: over bounds, after two idle windows, in trim
 *
 * I1  every live slot of `memory` is a built object: handed out, or idle in a magazine.
 * I2  hardened and debug: the state of its slot is SLOT_IDLE exactly while it is in a magazine.
 *
 * A pool has no verify; hardened and debug check I2 with each change of a state. */
#include <tenure/pool.h>

#include <errno.h>

#include "../base/checkers.h"
#include "../base/modes.h"
#include "../pages/pages.h"
#include "shared_slab.h"
#include "thread_cache.h"

enum {
	MOST_POOL_CAPACITY = 64,
	LEAST_POOL_CAPACITY = 8,
	POOL_PACE = 16, /* gets of a thread from one look at the clock to the next, at most */
};
#define POOL_IDLE_BYTES ((size_t)64 << 20)
#define POOL_IDLE_OBJECTS ((size_t)16384)
#define POOL_DECAY_MS ((size_t)1000)

typedef struct pool {
	tn_pool hot;
	cache cache;
	uint32_t state;
	tn_shared_slab *memory;
	size_t size;
	bool (*init)(void *object, void *ctx);
	void (*fini)(void *object, void *ctx);
	size_t (*size_of)(const void *object, void *ctx);
	size_t decay_ms;
	TN_ATOMIC(uint64_t) window_began; /* milliseconds */
	TN_ATOMIC(size_t) magazine_count;
	size_t own_bytes;
	char name[TN_NAME_BYTES + 1];
} pool;

static pool *pool_of(const cache *c) {
	return (pool *)(void *)((char *)(uintptr_t)c - offsetof(pool, cache));
}

static pool *pool_enter(const tn_pool *hot, const char *operation) {
	pool *p = (pool *)(uintptr_t)hot;
	if (TN_MODE != TN_MODE_RELEASE && p->state != TN_ALIVE)
		tn_panic("pool", NULL, "%s: %p is not a live pool", operation, (const void *)hot);
	return p;
}

/* ---- figures ---- */

/* Adds the pool's own pages and its magazines. */
static void pool_read_own(const pool *p, tn_stats *stats) {
	size_t own = p->own_bytes + tn_get(&p->magazine_count, TN_RELAXED) * TN_MAGAZINE_BYTES;
	stats->committed_bytes += own;
	stats->reserved_bytes += own;
}

static void pool_read(const pool *p, tn_stats *stats) {
	tn_shared_slab_stats(p->memory, stats);
	pool_read_own(p, stats);
}

/* Every live slot of the memory is an object; some of the objects are idle. */
static void pool_read_idle(const pool *p, tn_stats *stats, idle_slots idle) {
	size_t beside = idle.weight - tn_min(idle.weight, idle.in_depot * p->size);
	size_t waste = stats->live_count == 0 ? 0 : stats->waste_bytes / stats->live_count;
	stats->slot_count = stats->live_count;
	stats->live_count -= tn_min(stats->live_count, idle.count);
	stats->live_bytes = stats->live_count * p->size;
	stats->waste_bytes = stats->live_count * waste;
	stats->cached_bytes = idle.count * p->size + beside;
	stats->thread_cached_bytes = (idle.count - idle.in_depot) * p->size;
}

/* ---- for the magazines ---- */

static size_t pool_take_object(cache *c, void **slots, size_t count) {
	pool *p = pool_of(c);
	(void)count;
	void *object = tn_shared_slab_take(p->memory, NULL);
	if (object == NULL)
		return 0;
	if (p->init == NULL)
		memset(object, 0, p->size);
	else if (!p->init(object, p->hot.ctx)) {
		tn_shared_slab_give(p->memory, object, NULL);
		return errno = ENOMEM, CACHE_REFUSED;
	}
	tn_shared_slab_set_state(p->memory, object, SLOT_LIVE, SLOT_IDLE, "get", NULL);
	slots[0] = object;
	return 1;
}

static void pool_give_objects(cache *c, void **slots, size_t count) {
	pool *p = pool_of(c);
	for (size_t i = 0; i < count; i++) {
		tn_shared_slab_set_state(p->memory, slots[i], SLOT_IDLE, SLOT_LIVE, "drop", NULL);
		if (p->fini != NULL)
			p->fini(slots[i], p->hot.ctx);
		tn_shared_slab_give(p->memory, slots[i], NULL);
	}
}

static size_t pool_weight_of(const cache *c, void *const *slots, size_t count) {
	const pool *p = pool_of(c);
	size_t weight = count * p->size;
	for (size_t i = 0; i < count; i++) {
		if (TN_MODE == TN_MODE_RELEASE && !tn_shared_slab_holds(p->memory, slots[i]))
			tn_panic("pool", p->name, "flush: %p is not an object of this pool", slots[i]);
		if (p->size_of == NULL)
			continue;
		tn_permit(slots[i], p->size);
		size_t beside = p->size_of(slots[i], p->hot.ctx);
		tn_forbid(slots[i], p->size);
		weight += tn_min(beside, PTRDIFF_MAX - weight);
	}
	return weight;
}

static magazine *pool_take_magazine(cache *c) {
	magazine *m = tn_pages_acquire(TN_MAGAZINE_BYTES, TN_MAGAZINE_BYTES);
	tn_add(&pool_of(c)->magazine_count, m != NULL, TN_RELAXED);
	return m;
}

static void pool_give_magazine(cache *c, magazine *m) {
	tn_pages_release(m, TN_MAGAZINE_BYTES, TN_MAGAZINE_BYTES);
	tn_add(&pool_of(c)->magazine_count, (size_t)-1, TN_RELAXED);
}

/* One thread ends a window. After a long silence three of them are over: the one that the silence began
 * in, and two more. */
static size_t pool_window_of(cache *c) {
	pool *p = pool_of(c);
	/* In this order: `began` may be later than a clock that was read before. */
	uint64_t began = tn_get(&p->window_began, TN_ACQUIRE);
	uint64_t now = tn_os_coarse_milliseconds();
	if (p->decay_ms == TN_NONE || now - began < c->window_ms)
		return SIZE_MAX;
	uint64_t next = tn_max(began + c->window_ms, now - tn_min(now, 2 * c->window_ms));
	return tn_replace(&p->window_began, &began, next, TN_RELEASE) ? 0 : SIZE_MAX;
}

static size_t pool_trim(cache *c) {
	pool *p = pool_of(c);
	tn_stats before, after;
	pool_read(p, &before);
	tn_cache_drain(&p->cache);
	tn_shared_slab_drain(p->memory);
	tn_set(&p->window_began, tn_os_coarse_milliseconds(), TN_RELAXED);
	pool_read(p, &after);
	/* Other threads may have taken more meanwhile. */
	return before.committed_bytes - tn_min(before.committed_bytes, after.committed_bytes);
}

static const cache_owner pool_owner = {
	.take_slots = pool_take_object,
	.give_slots = pool_give_objects,
	.weight_of = pool_weight_of,
	.take_magazine = pool_take_magazine,
	.give_magazine = pool_give_magazine,
	.window_of = pool_window_of,
	.trim = pool_trim,
};

/* ---- get and put ---- */

void *tn_pool_get_slow(tn_pool *hot) {
	pool *p = pool_enter(hot, "get");
	void *object = tn_cache_take(&p->cache, &tn_near_pool);
	if (object != NULL)
		tn_shared_slab_set_state(p->memory, object, SLOT_IDLE, SLOT_LIVE, "get", TN_CALLER);
	return object;
}

void tn_pool_put_slow(tn_pool *hot, void *object) {
	pool *p = pool_enter(hot, "put");
	if (object == NULL)
		return;
	tn_shared_slab_set_state(p->memory, object, SLOT_LIVE, SLOT_IDLE, "put", TN_CALLER);
	if (p->hot.reset != NULL) {
		tn_permit(object, p->size);
		p->hot.reset(object, p->hot.ctx);
		tn_forbid(object, p->size);
	}
	tn_cache_give(&p->cache, &tn_near_pool, object);
}

void tn_pool_put_full(tn_pool *hot, void *object) {
	tn_cache_give(&pool_enter(hot, "put")->cache, &tn_near_pool, object);
}

/* ---- prefill, flush, trim and looking ---- */

bool tn_pool_prefill(tn_pool *hot, size_t count) {
	return tn_cache_prefill(&pool_enter(hot, "prefill")->cache, count);
}

void tn_pool_flush(tn_pool *hot) {
	tn_cache_flush(&pool_enter(hot, "flush")->cache);
}

size_t tn_pool_trim(tn_pool *hot) {
	size_t bytes = pool_trim(&pool_enter(hot, "trim")->cache);
	tn_pages_trim();
	return bytes;
}

void tn_pool_stats(const tn_pool *hot, tn_stats *stats) {
	const pool *p = pool_enter(hot, "stats");
	pool_read(p, stats);
	pool_read_idle(p, stats, tn_cache_idle((cache *)(uintptr_t)&p->cache));
	tn_cache_read_exchanges(&p->cache, stats);
	memcpy(stats->name, p->name, sizeof stats->name);
}

/* ---- create and destroy ---- */

/* Three inner windows fit into two of decay_ms: a burst ends somewhere in the first of them. Objects
 * that are needed once in decay_ms are needed in one of two inner windows. */
static size_t pool_window_ms(size_t decay_ms) {
	size_t decay = decay_ms == 0 ? POOL_DECAY_MS : decay_ms;
	return decay == TN_NONE ? SIZE_MAX : tn_max(decay / 8 * 5 + decay % 8 * 5 / 8, 1);
}

static void pool_set_bounds(pool *p, const tn_pool_options *o) {
	depots *d = &p->cache.depots;
	d->most_slots = tn_option(o->max_idle_objects, POOL_IDLE_OBJECTS);
	d->most_weight = tn_option(o->max_idle_bytes, POOL_IDLE_BYTES);
	tn_set(&d->shard_slots, SIZE_MAX, TN_RELAXED);
	size_t bound = tn_min(d->most_slots, d->most_weight / p->size);
	size_t share = tn_min(tn_max(bound / TN_SHARES_OF_BOUND, 1), bound);
	size_t most = tn_min(share, tn_min(MOST_POOL_CAPACITY, tn_max(TN_MAGAZINE_REACH / p->size, 1)));
	p->cache.most_capacity = (uint32_t)most;
	/* With size_of, objects are weighed before there are many. */
	p->cache.least_capacity = (uint32_t)tn_min(most, p->size_of == NULL ? LEAST_POOL_CAPACITY : 1);
}

static void pool_look(const void *object, tn_position from, tn_listed *listed) {
	const pool *p = object;
	tn_shared_slab_look(p->memory, from, listed);
	pool_read_own(p, &listed->stats);
	pool_read_idle(p, &listed->stats, tn_cache_glance((cache *)(uintptr_t)&p->cache));
	tn_cache_read_exchanges(&p->cache, &listed->stats);
}

static const tn_node_kind pool_kind = {
	.kind = TN_KIND_POOL,
	.figures = TN_FIGURES_ALL,
	.look = pool_look,
};

tn_pool *tn_pool_create(size_t size, size_t align, const tn_pool_options *options) {
	static const tn_pool_options defaults;
	const tn_pool_options *o = options == NULL ? &defaults : options;
	tn_shared_slab_options memory = {.name = o->name};
	pool draft = {.hot = {.reset = o->reset, .ctx = o->ctx},
		.cache = {.owner = &pool_owner,
			.kind = "pool",
			.most_pace = POOL_PACE,
			.window_ms = pool_window_ms(o->decay_ms)},
		.state = TN_ALIVE,
		.memory = tn_shared_slab_make("pool", size, align, &memory),
		.init = o->init,
		.fini = o->fini,
		.size_of = o->size_of,
		.decay_ms = o->decay_ms == 0 ? POOL_DECAY_MS : o->decay_ms,
		.window_began = tn_os_coarse_milliseconds(),
		.own_bytes = tn_round_up(sizeof(pool), TN_OS_PAGE)};
	if (draft.memory == NULL)
		return NULL;
	draft.size = tn_shared_slab_slot_size(draft.memory);
	pool_set_bounds(&draft, o);
	pool *p = tn_pages_acquire(draft.own_bytes, TN_OS_PAGE);
	if (p == NULL) {
		tn_shared_slab_destroy(draft.memory);
		return errno = ENOMEM, NULL;
	}
	*p = draft;
	tn_copy_name(p->name, o->name, "pool");
	p->cache.name = p->name;
	p->cache.front_key = &p->hot.key;
	tn_cache_make(&p->cache);
	if (tn_shared_slab_list(p->memory, &pool_kind, p, o->name))
		return &p->hot;
	tn_pool_destroy(&p->hot);
	return errno = ENOMEM, NULL;
}

static void pool_end_object(void *object, void *ctx) {
	const pool *p = ctx;
	tn_permit(object, p->size);
	if (p->fini != NULL)
		p->fini(object, p->hot.ctx);
}

static void pool_end_objects(void *const *slots, size_t count, void *ctx) {
	for (size_t i = 0; i < count; i++)
		pool_end_object(slots[i], ctx);
}

/* In the child of a fork the objects of lost threads may be half built or half taken apart. Only idle
 * objects are sure to be whole. */
void tn_pool_destroy(tn_pool *hot) {
	if (hot == NULL)
		return;
	pool *p = pool_enter(hot, "destroy");
	tn_shared_slab_unlist(p->memory);
	if (p->cache.orphaned)
		tn_cache_flush(&p->cache);
	tn_cache_unlink(&p->cache);
	if (p->cache.orphaned)
		tn_cache_each(&p->cache, pool_end_objects, p);
	else
		tn_shared_slab_each(p->memory, pool_end_object, p);
	tn_cache_end(&p->cache);
	tn_shared_slab_destroy(p->memory);
	p->state = TN_DEAD;
	p->hot.key = DEAD_KEY;
	tn_pages_release(p, p->own_bytes, TN_OS_PAGE);
}
