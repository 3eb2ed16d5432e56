/* The shared slab in release and hardened: a stock of chunks under a lock, behind each thread's
 * magazines.
 *
 *   alloc, free (inline)      this thread's loaded magazine
 *   `- take, give             thread_cache.c: previous, depot; and if these do not help
 *      |- shared_take_slots   slots of the stock: free in chunks, the fullest chunk first; fresh ones
 *      `- shared_give_slots   slots back into their chunks; an empty chunk goes
 *
 * A magazine's page is taken when a thread needs one. Without a page, slots go straight into the stock:
 * so a free never needs memory. In debug a shared slab is a slab behind a lock: see
 * shared_slab_debug.c.
 *
 * I1 to I4 are the stock's (stock.c); its slots outside are handed out, or in a magazine.
 * I5  in use = outside - slots in magazines.
 * I6  hardened: the state of a slot is SLOT_LIVE exactly while it is handed out, so that of two frees
 *     of one slot, by any threads, one finds it free. */
#include <tenure/shared_slab.h>

#include <tenure/detail/front.h>

#include <errno.h>

#include "shared_slab.h"

#if TN_MODE != TN_MODE_DEBUG

#include "../base/list.h"
#include "../base/modes.h"
#include "../pages/pages.h"
#include "thread_cache.h"

/* As in slab.c: the record's first words and slot 0 must not share their low 12 bits. */
enum { RECORD_GAP = 13 * TN_OS_LINE };
#define SHARED_WINDOW_MS ((size_t)1000)
#define MAGAZINE_REACH ((size_t)256 << 10) /* most bytes of slots in a magazine */

/* Create sets most fields for good; the others are written under the lock. */
typedef struct shared_slab {
	cache cache; /* begins with the key, which is all of tn_shared_slab */
	tn_lock lock;
	uint32_t state;
	size_t retain_chunks;
	size_t peak;
	uint64_t refills;
	char *own; /* the pages that hold this struct */
	size_t own_bytes;
	struct tn_node *node; /* in the listing, or NULL */
	stock stock;
} shared_slab;
_Static_assert(
	offsetof(shared_slab, state) + sizeof(uint32_t) <= sizeof(tn_shared_slab) + TN_STAND_IN_BYTES,
	"stand-in");
_Static_assert(_Alignof(shared_slab) <= TN_STAND_IN_ALIGN, "stand-in");

_Static_assert(
	offsetof(shared_slab, cache) == 0 && offsetof(cache, key) == offsetof(tn_shared_slab, key),
	"one key");

static tn_shared_slab *shared_front_of(shared_slab *s) {
	return (tn_shared_slab *)(void *)s;
}

static shared_slab *shared_of_cache(const cache *c) {
	return (shared_slab *)(void *)((char *)(uintptr_t)c - offsetof(shared_slab, cache));
}

/* Begins a call: hardened panics at a slab that is not alive. */
static shared_slab *shared_enter(const tn_shared_slab *hot, const char *operation) {
	shared_slab *s = (shared_slab *)(uintptr_t)hot;
	if (TN_MODE != TN_MODE_RELEASE && s->state != TN_ALIVE)
		tn_panic("shared slab", NULL, "%s: %p is not a live shared slab", operation, (const void *)hot);
	return s;
}

/* ---- figures ---- */

static size_t shared_count_live(const shared_slab *s) {
	size_t outside = stock_count_outside(&s->stock);
	return outside - tn_min(outside, tn_cache_idle((cache *)(uintptr_t)&s->cache).count);
}

/* Counts the slots in magazines as live. In a chunk that is in no rank every slot is outside. */
static void shared_read(const shared_slab *s, tn_stats *stats) {
	const stock *k = &s->stock;
	size_t outside = stock_count_outside(k);
	size_t full = k->chunk_count - k->ranked_count;
	*stats = (tn_stats){.live_count = outside,
		.reserved_bytes = k->taken_bytes,
		.committed_bytes = k->taken_bytes,
		.peak_bytes = s->peak * k->grid.slot_size,
		.chunk_count = k->chunk_count,
		.partial_count = k->ranked_count - k->empty_count,
		.refills = s->refills,
		.slot_bytes = k->grid.slot_size,
		.slot_count = k->slot_count,
		.partial_live_count = outside - full * k->grid.count};
}

static void shared_read_idle(const shared_slab *s, tn_stats *stats, idle_slots idle) {
	stats->live_count -= tn_min(stats->live_count, idle.count);
	stats->live_bytes = stats->live_count * stats->slot_bytes;
	stats->cached_bytes = stats->slot_count * stats->slot_bytes - stats->live_bytes;
	stats->waste_bytes = stats->live_count * grid_waste(&s->stock.grid);
	stats->thread_cached_bytes = (idle.count - idle.in_depot) * stats->slot_bytes;
	stats->peak_bytes = tn_max(stats->peak_bytes, stats->live_bytes);
}

static void shared_read_nodes(const shared_slab *s, tn_stats *stats) {
	const stock *k = &s->stock;
	for (size_t i = 0; i < k->nodes; i++)
		stats->node_bytes[i] = tn_get(&k->at_node[i].chunk_count, TN_RELAXED) * k->grid.chunk_bytes;
}

void tn_shared_slab_look(const void *object, tn_position from, tn_listed *listed) {
	(void)from;
	const shared_slab *s = object;
	/* Chunks may come and go at this moment. */
	listed->stats.live_count = tn_min(stock_count_outside(&s->stock), listed->stats.slot_count);
	shared_read_idle(s, &listed->stats, tn_cache_glance((cache *)(uintptr_t)&s->cache));
	tn_cache_read_exchanges(&s->cache, &listed->stats);
	shared_read_nodes(s, &listed->stats);
}

/* Ends a call that holds the lock: does the trim that a reader asked for, publishes the figures, gives
 * the lock. */
static void shared_leave(shared_slab *s) {
	if (TN_UNLIKELY(tn_get(&s->cache.trim_wanted, TN_RELAXED))) {
		int error = errno;
		tn_set(&s->cache.trim_wanted, false, TN_RELAXED);
		tn_stock_trim(&s->stock, 0);
		errno = error;
	}
	if (s->node != NULL) {
		tn_stats stats;
		shared_read(s, &stats);
		tn_list_publish(s->node, &stats, TN_FIGURES_ALL, (tn_position){0, 0});
	}
	tn_cache_unlock_owner(&s->lock);
}

/* ---- for the magazines ---- */

static size_t shared_take_slots(cache *c, void **slots, size_t count) {
	shared_slab *s = shared_of_cache(c);
	tn_cache_lock_owner(&s->lock);
	/* Now it needs a new chunk, and more slots may be in use than ever before. */
	if (s->stock.ranked_count == 0)
		s->peak = tn_max(s->peak, shared_count_live(s));
	size_t found = tn_stock_take(&s->stock, slots, count, count);
	s->refills++;
	shared_leave(s);
	return found == STOCK_REFUSED ? CACHE_REFUSED : found;
}

static void shared_give_slots(cache *c, void **slots, size_t count) {
	shared_slab *s = shared_of_cache(c);
	tn_cache_lock_owner(&s->lock);
	tn_stock_give(&s->stock, slots, count, "flush");
	tn_stock_trim(&s->stock, s->retain_chunks);
	shared_leave(s);
}

/* Slots weigh nothing. Release panics at a pointer of a magazine that is in no chunk of this slab;
 * hardened has looked at each free. */
static size_t shared_weight_of(const cache *c, void *const *slots, size_t count) {
	const shared_slab *s = shared_of_cache(c);
	if (TN_MODE != TN_MODE_RELEASE)
		return 0;
	size_t first = tn_pages_first_foreign(&s->stock, slots, count, s->stock.grid.chunk_bytes);
	if (TN_UNLIKELY(first < count))
		tn_stock_refuse(&s->stock, slots[first], "flush");
	return 0;
}

/* The newest slot tells the node. Those of other nodes are moved to the front, and from there to their
 * chunks; the rest stays in its order. */
static size_t shared_sort_home(cache *c, magazine *m) {
	const stock *k = &shared_of_cache(c)->stock;
	void **slots = depot_first_slot(m);
	const size_t count = m->count, home = stock_chunk_of(k, slots[count - 1], "flush")->node;
	size_t others = count;
	for (size_t i = count; i-- > 0;) {
		if (stock_chunk_of(k, slots[i], "flush")->node != home)
			continue;
		void *slot = slots[i];
		slots[i] = slots[--others];
		slots[others] = slot;
	}
	if (others > 0)
		shared_give_slots(c, slots, others);
	m->count -= others;
	return home;
}

static magazine *shared_take_magazine(cache *c) {
	shared_slab *s = shared_of_cache(c);
	stock *k = &s->stock;
	magazine *m = NULL;
	tn_cache_lock_owner(&s->lock);
	if (k->limit_bytes - k->taken_bytes >= TN_MAGAZINE_BYTES)
		m = tn_chunk_acquire(&k->source, TN_MAGAZINE_BYTES, TN_MAGAZINE_BYTES);
	k->taken_bytes += m == NULL ? 0 : TN_MAGAZINE_BYTES;
	tn_cache_unlock_owner(&s->lock);
	return m;
}

static void shared_give_magazine(cache *c, magazine *m) {
	shared_slab *s = shared_of_cache(c);
	tn_cache_lock_owner(&s->lock);
	s->stock.taken_bytes -= TN_MAGAZINE_BYTES;
	tn_chunk_release(&s->stock.source, m, TN_MAGAZINE_BYTES, TN_MAGAZINE_BYTES);
	tn_cache_unlock_owner(&s->lock);
}

/* As many as go out and come back in a steady use of all slots. */
static size_t shared_window_of(cache *c) {
	return 2 * stock_count_outside(&shared_of_cache(c)->stock) + 1;
}

static size_t shared_trim(cache *c) {
	return tn_shared_slab_drain(shared_front_of(shared_of_cache(c)));
}

static const cache_owner slab_owner = {
	.take_slots = shared_take_slots,
	.give_slots = shared_give_slots,
	.weight_of = shared_weight_of,
	.take_magazine = shared_take_magazine,
	.give_magazine = shared_give_magazine,
	.sort_home = shared_sort_home,
	.window_of = shared_window_of,
	.trim = shared_trim,
};

/* ---- the states of slots, in hardened ---- */

/* Marks a slot that is about to be handed out; NULL stays NULL. */
static void *shared_set_live(const shared_slab *s, void *p) {
	if (TN_MODE == TN_MODE_RELEASE || p == NULL)
		return p;
	/* A slot in a magazine was looked up when it was freed. */
	state_byte *state = stock_state_at(&s->stock, p);
	if (TN_UNLIKELY(tn_get(state, TN_RELAXED) != SLOT_FREE))
		tn_panic(s->stock.kind, s->stock.name, "alloc: %p is both free and live", p);
	tn_set(state, SLOT_LIVE, TN_RELAXED);
	return p;
}

static TN_COLD _Noreturn void shared_refuse_state(
	const shared_slab *s, const void *p, unsigned state, const char *operation) {
	tn_stock_chunk_of_slot(&s->stock, p, operation);
	tn_panic(s->stock.kind, s->stock.name, "%s: %p is %s already", operation, p,
		(const char *[]){"free", "live", "idle"}[state]);
}

void tn_shared_slab_set_state(tn_shared_slab *hot, void *p, enum slot_state from, enum slot_state to,
	const char *operation, const void *site) {
	(void)site;
	shared_slab *s = shared_enter(hot, operation);
	if (TN_MODE == TN_MODE_RELEASE)
		return;
	state_byte *state = stock_state_of(&s->stock, p, operation);
	uint8_t seen = (uint8_t)from;
	if (TN_UNLIKELY(!tn_replace(state, &seen, (uint8_t)to, TN_RELAXED)))
		shared_refuse_state(s, p, seen, operation);
}

/* Marks and wipes a slot that is freed. */
static void shared_set_free(shared_slab *s, void *p) {
	if (TN_MODE == TN_MODE_RELEASE)
		return;
	tn_shared_slab_set_state(shared_front_of(s), p, SLOT_LIVE, SLOT_FREE, "free", NULL);
	if (s->stock.init == NULL)
		tn_wipe_slot(p, s->stock.grid.slot_size);
}

/* ---- alloc and free ---- */

void *tn_shared_slab_alloc_slow(tn_shared_slab *hot) {
	shared_slab *s = shared_enter(hot, "alloc");
	return shared_set_live(s, tn_cache_take(&s->cache, &tn_near_slab));
}

void tn_shared_slab_free_slow(tn_shared_slab *hot, void *p) {
	shared_slab *s = shared_enter(hot, "free");
	if (p == NULL)
		return;
	shared_set_free(s, p);
	tn_cache_give(&s->cache, &tn_near_slab, p);
}

void *tn_shared_slab_local_alloc_slow(tn_local *l) {
	cache *c = tn_cache_of_handle((local *)l, "local_alloc");
	return shared_set_live(shared_of_cache(c), tn_cache_take_by(c, (local *)l));
}

void tn_shared_slab_local_free_slow(tn_local *l, void *p) {
	cache *c = tn_cache_of_handle((local *)l, "local_free");
	if (p == NULL)
		return;
	shared_set_free(shared_of_cache(c), p);
	tn_cache_give_by(c, (local *)l, p);
}

tn_local *tn_shared_slab_local(tn_shared_slab *hot) {
	local *l = tn_cache_handle(&shared_enter(hot, "local")->cache);
	return l != NULL ? &l->hot : (errno = ENOMEM, (tn_local *)NULL);
}

bool tn_shared_slab_alloc_batch(tn_shared_slab *hot, void **slots, size_t count) {
	shared_slab *s = shared_enter(hot, "alloc_batch");
	if (count > tn_min(s->stock.limit_bytes, PTRDIFF_MAX) / s->stock.grid.slot_size)
		return errno = ENOMEM, false;
	size_t done = 0;
	/* A slab of which many are taken comes near at once. */
	for (; done < count; done++)
		if (!tn_shared_slab_pop(hot, &slots[done]) &&
			(slots[done] = shared_set_live(s, tn_cache_take_slow(&s->cache, &tn_near_slab))) == NULL)
			break;
	bool all = done == count;
	/* Backwards, so that the thread gets the same slots in the same order again. */
	while (!all && done > 0)
		tn_shared_slab_free(hot, slots[--done]);
	return all || (errno = ENOMEM, false);
}

void tn_shared_slab_free_batch(tn_shared_slab *hot, void **slots, size_t count) {
	shared_enter(hot, "free_batch");
	for (size_t i = 0; i < count; i++)
		tn_shared_slab_free(hot, slots[i]);
}

void *tn_shared_slab_take(tn_shared_slab *hot, const void *site) {
	(void)site;
	shared_slab *s = shared_enter(hot, "get");
	void *p;
	return shared_take_slots(&s->cache, &p, 1) == 1 ? shared_set_live(s, p) : NULL;
}

void tn_shared_slab_give(tn_shared_slab *hot, void *p, const void *site) {
	(void)site;
	shared_slab *s = shared_enter(hot, "put");
	shared_set_free(s, p);
	shared_give_slots(&s->cache, &p, 1);
}

/* ---- flush and trim ---- */

void tn_shared_slab_flush(tn_shared_slab *hot) {
	tn_cache_flush(&shared_enter(hot, "flush")->cache);
}

size_t tn_shared_slab_drain(tn_shared_slab *hot) {
	shared_slab *s = shared_enter(hot, "trim");
	tn_cache_lock_owner(&s->lock);
	size_t before = s->stock.taken_bytes;
	tn_cache_unlock_owner(&s->lock);
	tn_cache_drain(&s->cache);
	tn_cache_lock_owner(&s->lock);
	tn_stock_trim(&s->stock, 0);
	size_t after = s->stock.taken_bytes;
	shared_leave(s);
	/* Other threads may have taken more meanwhile. */
	return before - tn_min(before, after);
}

/* ---- looking ---- */

size_t tn_shared_slab_in_use(const tn_shared_slab *hot) {
	return shared_count_live(shared_enter(hot, "in_use"));
}

size_t tn_shared_slab_slot_size(const tn_shared_slab *hot) {
	return shared_enter(hot, "slot_size")->stock.grid.slot_size;
}

bool tn_shared_slab_owns(const tn_shared_slab *hot, const void *p) {
	shared_slab *s = shared_enter(hot, "owns");
	const stock *k = &s->stock;
	uintptr_t base = grid_base_of(&k->grid, p);
	/* Under the lock a chunk does not go back. */
	tn_cache_lock_owner(&s->lock);
	bool owns = false;
	if (tn_pages_owner(base) == k) {
		const chunk *c = stock_chunk_at(k, base);
		owns = grid_find_slot(&k->grid, c->base, stock_carved_of(c), p) != NULL;
	}
	tn_cache_unlock_owner(&s->lock);
	return owns;
}

bool tn_shared_slab_holds(const tn_shared_slab *hot, const void *p) {
	const stock *k = &((const shared_slab *)(uintptr_t)hot)->stock;
	return tn_pages_owner(grid_base_of(&k->grid, p)) == k;
}

void tn_shared_slab_tune(tn_shared_slab *hot, const tn_shared_slab_knobs *knobs) {
	shared_slab *s = shared_enter(hot, "tune");
	tn_set(&s->cache.depots.shard_slots, tn_option(knobs->shard_slots, SIZE_MAX), TN_RELAXED);
	tn_cache_lock_owner(&s->lock);
	s->retain_chunks = tn_option(knobs->retain_chunks, 1);
	shared_leave(s);
}

typedef struct mark_job {
	stock *stock;
	const char *operation;
	bool as_free;
} mark_job;

static void shared_mark_slots(void *const *slots, size_t count, void *ctx) {
	const mark_job *job = ctx;
	tn_stock_mark(job->stock, slots, count, job->as_free, job->operation);
}

/* Calls `visit` for each carved slot that is neither free in its chunk nor in a magazine. */
static void shared_each(
	shared_slab *s, void (*visit)(void *slot, void *ctx), void *ctx, const char *operation) {
	mark_job job = {&s->stock, operation, true};
	tn_cache_each(&s->cache, shared_mark_slots, &job);
	tn_stock_each(&s->stock, visit, ctx);
	job.as_free = false;
	tn_cache_each(&s->cache, shared_mark_slots, &job);
}

void tn_shared_slab_each(tn_shared_slab *hot, void (*visit)(void *slot, void *ctx), void *ctx) {
	shared_slab *s = shared_enter(hot, "each");
	tn_cache_begin_walk(&s->cache);
	shared_each(s, visit, ctx, "each");
	tn_cache_end_walk(&s->cache);
}

void tn_shared_slab_stats(const tn_shared_slab *hot, tn_stats *stats) {
	shared_slab *s = shared_enter(hot, "stats");
	tn_cache_lock_owner(&s->lock);
	shared_read(s, stats);
	shared_read_idle(s, stats, tn_cache_idle(&s->cache));
	tn_cache_read_exchanges(&s->cache, stats);
	shared_read_nodes(s, stats);
	s->peak = stats->peak_bytes / s->stock.grid.slot_size;
	tn_cache_unlock_owner(&s->lock);
	memcpy(stats->name, s->stock.name, sizeof stats->name);
}

typedef struct live_job {
	const shared_slab *slab;
	size_t count;
} live_job;

static void shared_verify_slot(void *slot, void *ctx) {
	live_job *job = ctx;
	const shared_slab *s = job->slab;
	job->count++;
	if (TN_MODE == TN_MODE_RELEASE || s->cache.orphaned)
		return;
	unsigned state = tn_get(stock_state_at(&s->stock, slot), TN_RELAXED);
	tn_stock_require(&s->stock, state != SLOT_FREE, "I6: a slot that is nowhere free is not live");
}

bool tn_shared_slab_verify(const tn_shared_slab *hot) {
	shared_slab *s = shared_enter(hot, "verify");
	live_job job = {s, 0};
	tn_cache_begin_walk(&s->cache);
	shared_each(s, shared_verify_slot, &job, "verify");
	tn_stock_verify(&s->stock);
	tn_stock_require(
		&s->stock, job.count == shared_count_live(s), "I5: the slots in use do not add up");
	tn_cache_end_walk(&s->cache);
	return true;
}

/* ---- create and destroy ---- */

static void shared_set_capacity(shared_slab *s, size_t asked) {
	size_t most = tn_min(tn_max(MAGAZINE_REACH / s->stock.grid.slot_size, 1), TN_MAGAZINE_SLOTS_MAX);
	s->cache.most_capacity = (uint32_t)(asked != 0 ? asked : most);
	s->cache.least_capacity = (uint32_t)(asked != 0 ? asked : tn_min(most, STOCK_RUN));
}

tn_shared_slab *tn_shared_slab_make(
	const char *kind, size_t size, size_t align, const tn_shared_slab_options *o) {
	align = align == 0 ? 16 : align;
	if (!grid_valid(size, align, o->chunk_bytes, o->source) || (o->fini != NULL && o->init == NULL) ||
		o->magazine_slots > TN_MAGAZINE_SLOTS_MAX)
		return errno = EINVAL, NULL;
	shared_slab draft = {.cache = {.owner = &slab_owner,
							 .kind = kind,
							 .window_ms = SHARED_WINDOW_MS,
							 .depots = {.most_slots = SIZE_MAX,
								 .most_weight = SIZE_MAX,
								 .shard_slots = tn_option(o->shard_slots, SIZE_MAX)}},
		.state = TN_ALIVE,
		.retain_chunks = tn_option(o->retain_chunks, 1),
		.own_bytes = tn_round_up(RECORD_GAP + sizeof(shared_slab), TN_OS_PAGE),
		.stock = {.grid = {.slot_size = tn_round_up(size, align), .asked_size = size},
			.source = tn_chunks_from(o->source),
			.limit_bytes = o->limit_bytes == 0 ? TN_NONE : o->limit_bytes,
			.init = o->init,
			.fini = o->fini,
			.ctx = o->ctx,
			.kind = kind,
			.nodes = tn_os_nodes()}};
	stock *k = &draft.stock;
	if (!tn_stock_lay_out(k, align, grid_chunk_bytes(o->chunk_bytes, size, o->limit_bytes)))
		return errno = EINVAL, NULL;
	shared_set_capacity(&draft, o->magazine_slots);
	tn_copy_name(k->name, o->name, kind);
	k->taken_bytes = draft.own_bytes;
	if (draft.own_bytes > k->limit_bytes)
		return errno = ENOMEM, NULL;
	draft.own = tn_chunk_acquire(&k->source, draft.own_bytes, TN_OS_PAGE);
	if (draft.own == NULL)
		return NULL;
	shared_slab *s = (shared_slab *)(void *)(draft.own + RECORD_GAP);
	*s = draft;
	s->cache.name = s->stock.name;
	s->cache.owner_lock = &s->lock;
	tn_cache_make(&s->cache);
	return shared_front_of(s);
}

bool tn_shared_slab_list(
	tn_shared_slab *hot, const tn_node_kind *kind, void *object, const char *name) {
	shared_slab *s = shared_enter(hot, "create");
	if (!tn_list_object(NULL, kind, object, name, &s->node))
		return false;
	tn_cache_lock_owner(&s->lock);
	shared_leave(s);
	return true;
}

void tn_shared_slab_unlist(tn_shared_slab *hot) {
	shared_slab *s = shared_enter(hot, "destroy");
	/* Threads that are ending may still give slots back, and publish that. */
	tn_cache_lock_owner(&s->lock);
	tn_node *node = s->node;
	s->node = NULL;
	tn_cache_unlock_owner(&s->lock);
	tn_unlist_object(node);
}

void tn_shared_slab_destroy(tn_shared_slab *hot) {
	if (hot == NULL)
		return;
	shared_slab *s = shared_enter(hot, "destroy");
	tn_shared_slab_unlist(hot);
	tn_cache_unlink(&s->cache);
	tn_cache_end(&s->cache);
	tn_stock_end(&s->stock);
	tn_chunk_source source = s->stock.source;
	s->state = TN_DEAD;
	s->cache.key = DEAD_KEY;
	tn_chunk_release(&source, s->own, s->own_bytes, TN_OS_PAGE);
}

#endif

/* ---- in all modes ---- */

size_t tn_shared_slab_trim(tn_shared_slab *s) {
	size_t bytes = tn_shared_slab_drain(s);
	tn_pages_trim();
	return bytes;
}

static const tn_node_kind shared_slab_kind = {
	.kind = TN_KIND_SHARED_SLAB,
	.figures = TN_FIGURES_ALL,
	.look = tn_shared_slab_look,
};

tn_shared_slab *tn_shared_slab_create(
	size_t size, size_t align, const tn_shared_slab_options *options) {
	static const tn_shared_slab_options defaults;
	const tn_shared_slab_options *o = options == NULL ? &defaults : options;
	tn_shared_slab *s = tn_shared_slab_make("shared slab", size, align, o);
	if (s == NULL || tn_shared_slab_list(s, &shared_slab_kind, s, o->name))
		return s;
	tn_shared_slab_destroy(s);
	return errno = ENOMEM, NULL;
}
