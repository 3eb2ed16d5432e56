/* Magazines in the hands of threads. See thread_cache.h for the purpose and depot.h for the exchange.
 *
 *   take                        the loaded magazine is empty
 *   |- previous has slots       exchange the two
 *   |- a depot has some         load it; the spare empty one stays there
 *   |- the owner has some       into the loaded one; without a magazine, one slot
 *   `- others need some         as from any depot
 *   give                        the loaded magazine is full
 *   |- previous is empty        exchange the two
 *   |- the depots have room     previous goes there, loaded becomes previous, an empty one is loaded
 *   `- else                     the slots in previous go to the owner; without a magazine, one slot
 *
 * I1  below the slots of a loaded magazine stands NULL; a top in `no_magazine` is one of a magazine
 *     that is both empty and full.
 * I2  a thread's magazines change only in that thread, between cache_begin_change and cache_end_change,
 *     or after that thread has ended (the registry's lock held).
 * I3  a local is in its thread's chain until the thread ends or meets it dead; its place is used again
 *     only after DEAD_LOCALS others, so that a stale handle finds it dead.
 * I4  while a local is near, its real top lives in the tn_near entry; hot.top points into no_magazine,
 *     so calls through the handle take the slow path.
 * I5  destroying a cache leaves the near entries to their threads, which may be going over to another
 *     cache just then: the key there is never asked for again, and the dead local gets no top back.
 * I6  a local whose key differs from the cache's in its upper bits has not followed a request; no
 *     inlined call finds it, near or far. A handle finds `asked` set instead.
 * I7  callbacks of an owner run while the local is `busy` or its magazines are whole. While it is busy,
 *     calls that come back from them go to the owner.
 *
 * Locks are taken in this order: an owner's, the registry's, a depot's, the page layer's. Callbacks of
 * users run with none of these held but the owner's. */
#include "thread_cache.h"

#include <tenure/shared_slab.h>

#include <errno.h>

#include "../base/bits.h"
#include "../base/list.h"
#include "../base/os.h"
#include "../base/panic.h"
#include "../pages/pages.h"

enum {
	EXCHANGES_TO_GROW = 4,
	SURPLUS_AT_ONCE = 2, /* magazines that one exchange or tick gives back: bounds its pause */
	SURPLUS_MORE = 16,   /* the same for a tick that comes some time after the last one */
	DEAD_LOCALS = 64,
	/* Caches differ in where their magazines begin and in the slot that they hand out first. Otherwise
	 * a thread that goes from cache to cache would find all these words in a few sets of its
	 * processor's first cache. */
	COLOURS = 8,
	COLOUR_WORDS = 64 / sizeof(void *),
	COLOUR_SLOTS = 5,
	FAR_TAKES = 256, /* then a cache that is far comes near */
	FAR_TICKS = 16,  /* the same where a tick comes first */
	SLOW_PART = 64,  /* of a window: takes are slow when a tick comes so long after the last one */
	/* Locals must not share the low 12 bits of address with the records of slabs (which have those of
	 * objects): a load of one after a store to the other would wait for it. */
	LOCALS_GAP = 16 * TN_OS_LINE,
	LOCAL_BYTES = TN_OS_LINE,
	FORK_WAIT_MS = 1, /* then a thread looks again whether the fork is over */
	FORK_WAITS_MAX = 20,
	TRIM_YIELDS = 200, /* then the lock that a trim waits for is held by a callback */
};
_Static_assert(sizeof(magazine) == TN_MAGAZINE_BYTES, "a magazine is a page");
_Static_assert(sizeof(local) <= LOCAL_BYTES, "a local fits into its place");
_Static_assert(TN_DEPOT_WORDS - 1 >= TN_MAGAZINE_SLOTS_MAX, "a magazine has room for the most slots");

TN_THREAD tn_near tn_near_slab, tn_near_pool;

/* Owner thread only. */
TN_THREAD local_chains tn_cache_locals;

TN_ATOMIC(uint32_t) tn_cache_forks;
TN_THREAD unsigned tn_cache_owners;

/* Under its lock. Locals live in pages that are never given back. */
static struct {
	tn_lock lock;
	uint64_t last_key;
	cache *caches;
	local *oldest_dead, *youngest_dead;
	size_t dead_count;
	char *fresh, *fresh_end;
} registry;

static _Alignas(TN_MAGAZINE_BYTES) magazine no_magazine;
static void **const no_top = &no_magazine.words[TN_DEPOT_WORDS - 1];

/* The key without its requests. */
static uint64_t cache_number_of(const cache *c) {
	return tn_get(&c->key, TN_RELAXED) % CACHE_REQUEST;
}

/* ---- a thread's magazines ---- */

static size_t cache_fill_of(const local *l) {
	void **top = tn_get(tn_get(&l->top_at, TN_RELAXED), TN_RELAXED);
	return (size_t)(top - tn_get(&l->bottom, TN_RELAXED));
}

/* Slots in another thread's magazines, by a sequence lock that is written with releases where Linux has
 * barriers. In the middle of a change the result is the count before it. A top in another magazine than
 * the bottom means that the two are of different moments. */
static size_t cache_count_of(const local *l) {
	for (int looks = 0; looks < 100; looks++) {
		uint32_t before = tn_get(&l->changes, TN_ACQUIRE);
		if (before % 2 != 0)
			break;
		uintptr_t bottom = (uintptr_t)tn_get(&l->bottom, TN_ACQUIRE);
		uintptr_t top = (uintptr_t)tn_get(tn_get(&l->top_at, TN_ACQUIRE), TN_ACQUIRE);
		size_t previous = tn_get(&l->previous_count, TN_ACQUIRE);
		bool same = (top ^ bottom) < TN_MAGAZINE_BYTES && top >= bottom;
		if (same && tn_get(&l->changes, TN_RELAXED) == before)
			return (top - bottom) / sizeof(void *) + previous;
	}
	return tn_get(&l->count, TN_RELAXED);
}

static void cache_begin_change(local *l) {
	size_t count = cache_fill_of(l) + tn_get(&l->previous_count, TN_RELAXED);
	tn_set(&l->count, (uint32_t)count, TN_RELAXED);
	tn_set(&l->changes, tn_get(&l->changes, TN_RELAXED) + 1, TN_RELEASE);
}

static void cache_end_change(local *l) {
	tn_set(&l->changes, tn_get(&l->changes, TN_RELAXED) + 1, TN_RELEASE);
}

static void cache_set_loaded(local *l, magazine *m, void **bottom, size_t fill) {
	l->loaded = m;
	tn_set(&l->bottom, bottom, TN_RELEASE);
	tn_set(tn_get(&l->top_at, TN_RELAXED), bottom + fill, TN_RELEASE);
}

static void cache_set_previous(local *l, magazine *m, size_t count) {
	l->previous = m;
	if (m != NULL)
		m->count = count;
	tn_set(&l->previous_count, (uint32_t)count, TN_RELEASE);
}

/* Loads a magazine with room for so many slots at its end; the lowest `fill` of them are there. */
static void cache_load(local *l, magazine *m, size_t room, size_t fill) {
	void **bottom = &m->words[TN_DEPOT_WORDS - 1 - room];
	*bottom = NULL;
	cache_set_loaded(l, m, bottom, fill);
}

/* Loads a magazine at rest. Few slots are moved down, where they leave room for more: else a magazine
 * that once had few would stay small for ever. */
static void cache_load_full(local *l, magazine *m) {
	size_t room = tn_max(m->count, l->capacity);
	if (m->count < room)
		memmove(&m->words[TN_DEPOT_WORDS - room], depot_first_slot(m), m->count * sizeof(void *));
	cache_load(l, m, room, m->count);
}

static void cache_load_none(local *l) {
	cache_set_loaded(l, NULL, no_top, 0);
}

/* Puts the loaded magazine, if there is one, at rest. */
static magazine *cache_unload(local *l) {
	magazine *m = l->loaded;
	if (m == NULL)
		return NULL;
	m->count = cache_fill_of(l);
	void **bottom = tn_get(&l->bottom, TN_RELAXED);
	memmove(depot_first_slot(m), bottom + 1, m->count * sizeof(void *));
	cache_load_none(l);
	return m;
}

/* Leaves the thread without magazines; NULL where it had none. */
static void cache_unload_both(local *l, magazine *held[2]) {
	cache_begin_change(l);
	held[0] = l->previous;
	cache_set_previous(l, NULL, 0);
	held[1] = cache_unload(l);
	cache_end_change(l);
}

static void *cache_pop(local *l) {
	return tn_top_pop(tn_get(&l->top_at, TN_RELAXED));
}

static bool cache_push(local *l, void *p) {
	return tn_top_push(tn_get(&l->top_at, TN_RELAXED), p);
}

/* ---- between threads, depot and owner ---- */

/* Exchanges of more than one thread, or of several nodes, need shards. Without memory for them all
 * threads go on with the common depot. Shards lie in pages as magazines do, and stay until the cache
 * ends: other threads look at them without a lock. Around a fork the registry's lock keeps their
 * number. */
static TN_COLD void cache_make_shards(cache *c) {
	bool alone = tn_get(&c->local_count, TN_RELAXED) < 2 && c->depots.nodes == 1;
	if (alone || tn_get(&c->sharded, TN_RELAXED) != 0 || tn_swap(&c->sharded, 1, TN_RELAXED) != 0)
		return;
	size_t count = tn_depots_shards_for(tn_os_processors(), c->depots.nodes);
	for (size_t i = 0; i * DEPOTS_IN_PAGE < count; i++) {
		c->depots.pages[i] = (char *)c->owner->take_magazine(c);
		if (c->depots.pages[i] == NULL)
			count = tn_min(count, i * DEPOTS_IN_PAGE);
	}
	tn_lock_take(&registry.lock);
	tn_depots_make_shards(&c->depots, count);
	tn_lock_give(&registry.lock);
}

/* Before an exchange: notes on which node the thread runs now. A node's slots need its depots. */
static void cache_set_node(cache *c, local *l) {
	if (c->depots.nodes == 1)
		return;
	l->seat.node = (uint8_t)tn_os_node();
	cache_make_shards(c);
}

/* The node that a magazine is to go to, when its slots are sorted. */
static size_t cache_home_of(cache *c, const local *l, magazine *m) {
	bool sorted = c->depots.nodes > 1 && m->count > 0 && c->owner->sort_home != NULL;
	return sorted ? c->owner->sort_home(c, m) : l->seat.node;
}

static magazine *cache_take_magazine(cache *c, local *l) {
	magazine *m = tn_depots_take_empty(&c->depots, &l->seat);
	return m != NULL ? m : c->owner->take_magazine(c);
}

/* Empties a magazine: its slots go to the owner. */
static void cache_return_slots(cache *c, magazine *m) {
	if (m->count > 0)
		c->owner->give_slots(c, depot_first_slot(m), m->count);
	m->count = 0;
}

static void cache_return_magazine(cache *c, magazine *m) {
	cache_return_slots(c, m);
	c->owner->give_magazine(c, m);
}

/* Both magazines go to the owner. Others may take all that the thread's shard holds. */
static void cache_return_all(cache *c, local *l) {
	magazine *held[2];
	tn_depots_end_need(&c->depots, &l->seat);
	cache_unload_both(l, held);
	for (size_t i = 0; i < 2; i++)
		if (held[i] != NULL)
			cache_return_magazine(c, held[i]);
}

/* Both magazines go to the common depot, or where there is no room to the owner. Others may take all
 * that the thread's shard holds. */
static void cache_give_all(cache *c, local *l) {
	magazine *held[2];
	tn_depots_end_need(&c->depots, &l->seat);
	cache_set_node(c, l);
	cache_unload_both(l, held);
	for (size_t i = 0; i < 2; i++) {
		magazine *m = held[i];
		if (m == NULL)
			continue;
		m->weight = m->count == 0 ? 0 : c->owner->weight_of(c, depot_first_slot(m), m->count);
		if (!tn_depots_give_some(&c->depots, cache_home_of(c, l, m), m, false))
			cache_return_magazine(c, m);
	}
	tn_pages_tell_idle();
}

static tn_near *cache_near_of(const local *l) {
	if (tn_near_slab.local == &l->hot)
		return &tn_near_slab;
	return tn_near_pool.local == &l->hot ? &tn_near_pool : NULL;
}

/* Other threads have asked for the slots of this one. A request at this moment is followed now or with
 * the next call: when `asked` is cleared, the key is at least the one that was set before it. */
static TN_COLD void cache_obey(cache *c, local *l) {
	if (l->busy)
		return;
	(void)tn_swap(&l->hot.asked, 0, TN_ACQ_REL);
	l->key = tn_get(&c->key, TN_RELAXED);
	tn_near *near = cache_near_of(l);
	if (near != NULL)
		near->key = l->key;
	l->capacity = (uint16_t)c->least_capacity;
	cache_return_all(c, l);
	tn_pages_trim();
}

static inline void cache_obey_if_asked(cache *c, local *l) {
	if (TN_UNLIKELY(l->key != tn_get(&c->key, TN_RELAXED) || tn_get(&l->hot.asked, TN_RELAXED) != 0))
		cache_obey(c, l);
}

/* After an exchange with a depot: a thread that exchanges often gets larger magazines, and what is
 * surplus goes back. */
static void cache_settle(cache *c, local *l) {
	if (++l->exchanges >= EXCHANGES_TO_GROW && l->capacity < l->most_capacity) {
		l->exchanges = 0;
		l->capacity = (uint16_t)tn_min(l->capacity * 2, l->most_capacity);
	}
	bool turn = tn_depots_turn(&c->depots, &l->seat);
	for (int i = 0; i < SURPLUS_AT_ONCE; i++) {
		bool ended = turn && tn_depots_end_window(&c->depots, &l->seat, c->owner->window_of(c));
		magazine *m = tn_depots_take_surplus(&c->depots, &l->seat, turn);
		if (m != NULL)
			cache_return_magazine(c, m);
		else if (!ended)
			return;
	}
}

/* Gives all empty magazines to the owner: where there is no memory for slots, theirs may do. Returns
 * whether there were any. */
static bool cache_return_empties(cache *c, local *l) {
	magazine *held[2], *m;
	cache_unload_both(l, held);
	bool any = held[0] != NULL || held[1] != NULL;
	for (size_t i = 0; i < 2; i++)
		if (held[i] != NULL)
			c->owner->give_magazine(c, held[i]);
	for (size_t i = 0; i < tn_depots_count(&c->depots); i++)
		for (; (m = tn_depot_take_empty(depot_at(&c->depots, i))) != NULL; any = true)
			c->owner->give_magazine(c, m);
	return any;
}

/* The loaded magazine is empty: loads previous, or one of a depot, if there are slots. `all_of_it`:
 * also what other threads need. */
static bool cache_refill(cache *c, local *l, bool all_of_it) {
	cache_set_node(c, l);
	cache_begin_change(l);
	magazine *full = l->previous;
	bool exchanged = tn_get(&l->previous_count, TN_RELAXED) == 0;
	if (exchanged)
		full = tn_depots_take_full(&c->depots, &l->seat, l->previous, all_of_it);
	if (full != NULL) {
		cache_set_previous(l, l->loaded, 0);
		cache_load_full(l, full);
	}
	cache_end_change(l);
	if (full != NULL && exchanged)
		cache_settle(c, l);
	return full != NULL;
}

/* The first slot that the owner finds is the result, the others are loaded below it. Without a magazine
 * for them they go back. */
static void *cache_take_from_owner(cache *c, local *l) {
	void *found[TN_DEPOT_WORDS];
	size_t count = c->owner->take_slots(c, found, tn_max(l->capacity, 1));
	if (count == 0 && cache_refill(c, l, true))
		return cache_pop(l);
	if (count == 0 && cache_return_empties(c, l))
		count = c->owner->take_slots(c, found, 1);
	if (count == 0 || count == CACHE_REFUSED)
		return NULL;
	cache_settle(c, l);
	magazine *m = l->loaded;
	if (m == NULL && count > 1)
		m = cache_take_magazine(c, l);
	/* Callbacks of the owner may have put slots there. */
	if (m != NULL && m == l->loaded && cache_fill_of(l) > 0)
		m = NULL;
	if (m == NULL) {
		if (count > 1)
			c->owner->give_slots(c, found + 1, count - 1);
		return found[0];
	}
	m->count = count;
	for (size_t i = 0, from = cache_number_of(c) * COLOUR_SLOTS % count; i < count; i++) {
		m->words[TN_DEPOT_WORDS - 1 - i] = found[from];
		from = from + 1 == count ? 0 : from + 1;
	}
	cache_begin_change(l);
	cache_load_full(l, m);
	cache_end_change(l);
	return cache_pop(l);
}

static void *cache_take_one(cache *c) {
	void *p;
	return c->owner->take_slots(c, &p, 1) == 1 ? p : NULL;
}

/* Not inlined, as cache_return_and_push: a call that finds its slot would save registers for it. */
static __attribute__((noinline)) void *cache_refill_and_pop(cache *c, local *l) {
	if (TN_UNLIKELY(l->busy))
		return cache_take_one(c);
	l->busy = true;
	void *p = cache_refill(c, l, false) ? cache_pop(l) : cache_take_from_owner(c, l);
	l->busy = false;
	return p;
}

static inline void *cache_take_slot(cache *c, local *l) {
	void *p = cache_pop(l);
	return TN_LIKELY(p != NULL) ? p : cache_refill_and_pop(c, l);
}

/* Slots in a magazine by the weight of the one that is given. */
static size_t cache_fit_of(const cache *c, size_t weight) {
	size_t reach = tn_min(c->depots.most_weight / TN_SHARES_OF_BOUND, TN_MAGAZINE_REACH);
	return weight == 0 ? c->most_capacity : tn_min(tn_max(reach / weight, 1), c->most_capacity);
}

/* Both magazines are full: previous goes to a depot. If there is no room, the slots go to the owner.
 * Returns an empty magazine, or NULL. */
static magazine *cache_return_previous(cache *c, local *l) {
	magazine *full = l->previous, *empty = NULL;
	full->weight = c->owner->weight_of(c, depot_first_slot(full), full->count);
	/* If slots have weight, a thread's magazines must be a small part of what may be idle. */
	size_t each = full->weight / full->count;
	l->most_capacity = (uint16_t)cache_fit_of(c, each);
	l->capacity = (uint16_t)tn_min(l->capacity, l->most_capacity);
	cache_make_shards(c);
	cache_set_node(c, l);
	size_t home = cache_home_of(c, l, full);
	cache_begin_change(l);
	bool taken = tn_depots_give_full(&c->depots, &l->seat, home, full, &empty);
	cache_set_previous(l, NULL, 0);
	cache_end_change(l);
	tn_pages_tell_idle();
	if (taken)
		return empty;
	cache_return_slots(c, full);
	return full;
}

/* The loaded magazine is full or missing: loads one with room, if there is memory. */
static void cache_return(cache *c, local *l) {
	magazine *empty = NULL;
	if (tn_get(&l->previous_count, TN_RELAXED) > 0 && l->loaded != NULL) {
		cache_settle(c, l);
		empty = cache_return_previous(c, l);
	} else if (l->previous != NULL && l->loaded != NULL) {
		empty = l->previous;
	}
	if (empty == NULL && l->capacity > 0)
		empty = cache_take_magazine(c, l);
	cache_begin_change(l);
	if (l->loaded != NULL)
		cache_set_previous(l, l->loaded, cache_fill_of(l));
	if (empty != NULL)
		cache_load(l, empty, l->capacity, 0);
	else
		cache_load_none(l);
	cache_end_change(l);
}

static __attribute__((noinline)) void cache_return_and_push(cache *c, local *l, void *p) {
	if (TN_LIKELY(!l->busy)) {
		l->busy = true;
		cache_return(c, l);
		l->busy = false;
		if (cache_push(l, p))
			return;
	}
	c->owner->give_slots(c, &p, 1);
}

static inline void cache_give_slot(cache *c, local *l, void *p) {
	if (TN_UNLIKELY(!cache_push(l, p)))
		cache_return_and_push(c, l, p);
}

/* ---- near and far ---- */

/* A local whose cache is destroyed gets no top back: its magazines are gone. If a caller has the
 * handle, another thread may be destroying the cache now, and the last store to the handle's top must
 * be no_top. It is: if this exchange comes last, it has seen the other thread's store, and the next
 * load sees that the cache is gone. */
static void cache_move_far(tn_near *at) {
	local *l = (local *)at->local;
	if (l == NULL)
		return;
	at->key = 0;
	at->local = NULL;
	cache_begin_change(l);
	if (l->handled)
		(void)tn_swap(&l->hot.top, tn_get(&at->top, TN_RELAXED), TN_ACQ_REL);
	else
		tn_set(&l->hot.top, tn_get(&at->top, TN_RELAXED), TN_RELAXED);
	if (tn_get(&l->cache, TN_RELAXED) == NULL)
		tn_set(&l->hot.top, no_top, TN_RELAXED);
	tn_set(&l->top_at, &l->hot.top, TN_RELEASE);
	tn_set(&at->top, no_top, TN_RELAXED);
	cache_end_change(l);
}

static void cache_move_near(local *l, tn_near *at) {
	cache_move_far(at);
	cache_begin_change(l);
	tn_set(&at->top, tn_get(&l->hot.top, TN_RELAXED), TN_RELEASE);
	tn_set(&l->top_at, &at->top, TN_RELEASE);
	tn_set(&l->hot.top, no_top, TN_RELAXED);
	cache_end_change(l);
	at->local = &l->hot;
	at->key = l->key;
}

static void cache_move_local_far(const local *l) {
	tn_near *near = cache_near_of(l);
	if (near != NULL)
		cache_move_far(near);
}

/* ---- locals come and go ---- */

/* Marks a local dead; its place waits until it may be used again. */
static void cache_end_local(local *l) {
	tn_set(&l->cache, NULL, TN_RELAXED);
	l->next_of_thread = NULL;
	if (registry.dead_count++ == 0)
		registry.oldest_dead = l;
	else
		registry.youngest_dead->next_of_thread = l;
	registry.youngest_dead = l;
}

static void cache_unlink_local(cache *c, local *l) {
	tn_lock_take(&c->depots.common.lock);
	TN_LIST_UNLINK(l, next_of_cache, link_of_cache);
	tn_lock_give(&c->depots.common.lock);
	tn_add(&c->local_count, (uint32_t)-1, TN_RELAXED);
}

static void cache_give_all_and_unlink(cache *c, local *l) {
	cache_give_all(c, l);
	cache_unlink_local(c, l);
}

/* Ends the locals of a chain whose cache was destroyed. */
static void cache_end_dead_locals(local **chain) {
	for (local **at = chain; *at != NULL;) {
		local *l = *at;
		if (tn_get(&l->cache, TN_RELAXED) != NULL) {
			at = &l->next_of_thread;
			continue;
		}
		*at = l->next_of_thread;
		cache_move_local_far(l);
		cache_end_local(l);
	}
}

/* Under the registry's lock, which is free between the two: callbacks of the owner's user may call the
 * library again. Destroying the cache waits for its guests. */
static void cache_begin_visit(cache *c) {
	c->guests++;
	tn_lock_give(&registry.lock);
}

static void cache_end_visit(cache *c) {
	tn_lock_take(&registry.lock);
	/* 0 in the child of a fork that such a callback made. */
	if (c->guests > 0)
		c->guests--;
}

static void cache_visit_as_guest(local *l, void (*visit)(cache *c, local *l)) {
	cache *c = tn_get(&l->cache, TN_RELAXED);
	if (c == NULL)
		return;
	cache_begin_visit(c);
	visit(c, l);
	cache_end_visit(c);
}

/* First all are flushed, twice: a callback may give slots, by a handle, to a local that is flushed. */
static void cache_end_thread(void) {
	tn_cache_locals.state = LOCALS_CLOSED;
	cache_move_far(&tn_near_slab);
	cache_move_far(&tn_near_pool);
	tn_lock_take(&registry.lock);
	for (size_t i = 0; i < 2 * CACHE_CHAINS; i++)
		for (local *l = tn_cache_locals.chain[i % CACHE_CHAINS]; l != NULL; l = l->next_of_thread)
			cache_visit_as_guest(l, cache_give_all);
	for (size_t i = 0; i < CACHE_CHAINS; i++)
		while (tn_cache_locals.chain[i] != NULL) {
			local *l = tn_cache_locals.chain[i];
			tn_cache_locals.chain[i] = l->next_of_thread;
			cache_visit_as_guest(l, cache_give_all_and_unlink);
			cache_end_local(l);
		}
	tn_lock_give(&registry.lock);
}

/* A place for a local: one of a dead local, or a fresh one. */
static local *cache_take_place(void) {
	if (registry.dead_count > DEAD_LOCALS) {
		local *l = registry.oldest_dead;
		registry.oldest_dead = l->next_of_thread;
		registry.dead_count--;
		return l;
	}
	if (registry.fresh == registry.fresh_end) {
		char *page = tn_pages_acquire_kept(TN_OS_PAGE);
		if (page == NULL)
			return NULL;
		registry.fresh = page + LOCALS_GAP;
		registry.fresh_end = page + TN_OS_PAGE;
	}
	local *l = (local *)(void *)registry.fresh;
	registry.fresh += LOCAL_BYTES;
	return l;
}

static local *cache_make_local(cache *c) {
	if (tn_cache_locals.state == LOCALS_NEW && !tn_os_on_thread_exit(TN_EXIT_LOCALS, cache_end_thread))
		return NULL;
	tn_cache_locals.state = LOCALS_OPEN;
	local **chain = &tn_cache_locals.chain[cache_number_of(c) % CACHE_CHAINS];
	tn_lock_take(&registry.lock);
	cache_end_dead_locals(chain);
	local *l = cache_take_place();
	if (l != NULL) {
		*l = (local){.hot = {.takes = 1},
			.key = tn_get(&c->key, TN_RELAXED),
			.cache = c,
			.capacity = (uint16_t)c->least_capacity,
			.most_capacity = (uint16_t)c->most_capacity,
			.pace = 1,
			.thread = &tn_cache_locals,
			.next_of_thread = *chain};
		tn_set(&l->top_at, &l->hot.top, TN_RELAXED);
		cache_load_none(l);
		*chain = l;
		tn_lock_take(&c->depots.common.lock);
		TN_LIST_PUSH(&c->locals, l, next_of_cache, link_of_cache);
		tn_lock_give(&c->depots.common.lock);
		tn_add(&c->local_count, 1, TN_RELAXED);
	}
	tn_lock_give(&registry.lock);
	return l;
}

/* The calling thread's part, however many requests it has followed. */
static local *cache_find_any(const cache *c) {
	return cache_find_local(c, 0 - CACHE_REQUEST);
}

/* The same, made if there is none. */
static local *cache_local_of(cache *c) {
	if (tn_cache_locals.state == LOCALS_CLOSED)
		return NULL;
	local *l = cache_find_any(c);
	return l == NULL ? cache_make_local(c) : l;
}

/* ---- for the owner ---- */

local *tn_cache_handle(cache *c) {
	local *l = cache_local_of(c);
	if (l != NULL)
		l->handled = true;
	return l;
}

cache *tn_cache_of_handle(const local *l, const char *operation) {
	cache *c = tn_get(&l->cache, TN_RELAXED);
	if (c == NULL)
		tn_panic(
			"handle", NULL, "%s: the slab or the thread of %p is no more", operation, (const void *)l);
	if (TN_MODE != TN_MODE_RELEASE && l->thread != &tn_cache_locals)
		tn_panic(c->kind, c->name, "%s: the handle %p is another thread's", operation, (const void *)l);
	return c;
}

void *tn_cache_take_by(cache *c, local *l) {
	cache_move_local_far(l);
	cache_obey_if_asked(c, l);
	return cache_take_slot(c, l);
}

void tn_cache_give_by(cache *c, local *l, void *p) {
	cache_move_local_far(l);
	cache_obey_if_asked(c, l);
	cache_give_slot(c, l, p);
}

/* ---- ticks ---- */

/* Gives back what is surplus in any depot, up to `most` magazines; returns whether it looked at all. */
static bool cache_return_surplus(cache *c, size_t most) {
	for (size_t i = 0; i < tn_depots_count(&c->depots); i++)
		for (magazine *m; (m = depot_take_surplus(&c->depots, depot_at(&c->depots, i))) != NULL;) {
			cache_return_magazine(c, m);
			if (--most == 0)
				return false;
		}
	return true;
}

/* Ends the windows that are over, and gives back what is surplus then, up to `most` magazines. */
static void cache_tend(cache *c, depot_seat *seat, size_t most) {
	while (tn_depots_end_window(&c->depots, seat, c->owner->window_of(c)))
		tn_pages_age();
	if (tn_get(&c->depots.due, TN_RELAXED) == 0)
		return;
	tn_set(&c->depots.due, 0, TN_RELAXED);
	if (!cache_return_surplus(c, most))
		tn_set(&c->depots.due, 1, TN_RELAXED);
}

/* Takes that follow each other quickly do so seldom, and give little back at a time; slow ones do so
 * each time, and give back all that is surplus. */
static void cache_look_at_clock(cache *c, local *l) {
	uint64_t now = tn_os_coarse_milliseconds(), before = tn_get(&c->ticked, TN_RELAXED);
	/* Another thread's clock may be later. */
	uint64_t elapsed = now > before ? now - before : 0;
	bool slow = elapsed >= c->window_ms / SLOW_PART + 1;
	if (elapsed > 0)
		tn_set(&c->ticked, now, TN_RELAXED);
	l->pace = slow ? (uint8_t)tn_max(l->pace * (c->window_ms / SLOW_PART) / elapsed, 1)
	               : (uint8_t)tn_min(l->pace * 2u, c->most_pace);
	/* The thread that saw this time first has looked whether a window was over. */
	bool nothing_new = elapsed == 0 && tn_get(&c->depots.due, TN_RELAXED) == 0;
	if (!l->busy && !nothing_new)
		cache_tend(c, &l->seat, slow ? SIZE_MAX : elapsed > 0 ? SURPLUS_MORE : SURPLUS_AT_ONCE);
}

/* The calling thread's part, at the beginning of a call on the slow path; NULL if there is none to be
 * had. It comes near, unless only a look at the clock was due. Hardened and debug do not look for one
 * that is near. */
static local *cache_begin_call(cache *c, tn_near *at) {
	local *l = cache_local_of(c);
	if (l == NULL)
		return NULL;
	cache_obey_if_asked(c, l);
	bool near = at->local == &l->hot, comes = !near && TN_MODE == TN_MODE_RELEASE;
	if (c->most_pace == 0) {
		l->hot.takes = FAR_TAKES;
	} else if ((near ? at->takes : l->hot.takes) == 0) {
		cache_look_at_clock(c, l);
		comes = comes && ++l->ticks >= FAR_TICKS;
		l->hot.takes = l->pace;
		if (at->local == &l->hot)
			at->takes = l->pace;
	}
	if (comes) {
		l->ticks = 0;
		cache_move_near(l, at);
		at->takes = c->most_pace == 0 ? SIZE_MAX : l->hot.takes;
	}
	return l;
}

__attribute__((noinline)) void *tn_cache_take_slow(cache *c, tn_near *at) {
	local *l = cache_begin_call(c, at);
	return l != NULL ? cache_take_slot(c, l) : cache_take_one(c);
}

__attribute__((noinline)) void tn_cache_give_slow(cache *c, tn_near *at, void *p) {
	local *l = cache_begin_call(c, at);
	if (l != NULL)
		cache_give_slot(c, l, p);
	else
		c->owner->give_slots(c, &p, 1);
}

/* ---- flush, trim and maintenance ---- */

void tn_cache_flush(cache *c) {
	local *l = cache_find_any(c);
	if (l != NULL && !l->busy)
		cache_give_all(c, l);
}

/* A magazine with up to `most` slots of the owner; NULL where there is no memory for all of them. */
static magazine *cache_build(cache *c, size_t most) {
	magazine *m = c->owner->take_magazine(c);
	void *found[TN_DEPOT_WORDS];
	size_t fit = 1;
	if (m == NULL)
		return NULL;
	for (m->count = 0; m->count < tn_min(fit, most); m->count++) {
		if (c->owner->take_slots(c, &found[m->count], 1) != 1)
			break;
		if (m->count == 0)
			fit = cache_fit_of(c, c->owner->weight_of(c, found, 1));
	}
	bool all = m->count == tn_min(fit, most);
	memcpy(depot_first_slot(m), found, m->count * sizeof(void *));
	if (all)
		m->weight = c->owner->weight_of(c, depot_first_slot(m), m->count);
	else
		cache_return_magazine(c, m);
	return all ? m : NULL;
}

bool tn_cache_prefill(cache *c, size_t count) {
	magazine *built = NULL, *m;
	size_t slots = tn_get(&c->depots.slots, TN_RELAXED);
	if (c->most_capacity == 0 || count > c->depots.most_slots - tn_min(slots, c->depots.most_slots))
		return count == 0 || (errno = ENOMEM, false);
	while (count > 0 && (m = cache_build(c, count)) != NULL) {
		count -= m->count;
		m->next = built;
		built = m;
	}
	bool done = count == 0;
	while ((m = built) != NULL) {
		built = m->next;
		/* Bytes that size_of tells are known only now. */
		done = done && tn_depots_give_some(&c->depots, 0, m, false);
		if (!done)
			cache_return_magazine(c, m);
	}
	tn_pages_tell_idle();
	return done || (errno = ENOMEM, false);
}

void tn_cache_ask(cache *c) {
	tn_add(&c->key, CACHE_REQUEST, TN_RELAXED);
	if (c->front_key != NULL)
		tn_add(c->front_key, CACHE_REQUEST, TN_RELAXED);
	tn_lock_take(&c->depots.common.lock);
	for (local *l = c->locals; l != NULL; l = l->next_of_cache)
		tn_set(&l->hot.asked, 1, TN_RELEASE);
	tn_lock_give(&c->depots.common.lock);
}

static void cache_drain_depot(cache *c, depot *d) {
	/* Other threads may fill it again meanwhile. */
	for (size_t left = tn_depot_count(d); left > 0; left--) {
		magazine *m = tn_depot_take_any(&c->depots, d);
		if (m == NULL)
			return;
		cache_return_magazine(c, m);
	}
}

void tn_cache_drain(cache *c) {
	tn_cache_ask(c);
	local *l = cache_find_any(c);
	if (l != NULL)
		cache_obey(c, l);
	for (size_t i = 0; i < tn_depots_count(&c->depots); i++)
		cache_drain_depot(c, depot_at(&c->depots, i));
}

static void cache_set_hooks(void);

/* Calls `visit` for every cache that is in no walk, newest first, without the registry's lock; returns
 * the sum. */
static size_t cache_visit_all(size_t (*visit)(cache *c)) {
	size_t sum = 0;
	cache_set_hooks();
	tn_lock_take(&registry.lock);
	for (cache *c = registry.caches; c != NULL;) {
		uint64_t number = cache_number_of(c);
		if (c->walks == 0) {
			cache_begin_visit(c);
			sum += visit(c);
			cache_end_visit(c);
		}
		bool ends = c->link == NULL;
		c = ends ? registry.caches : c->next;
		while (ends && c != NULL && cache_number_of(c) >= number)
			c = c->next;
	}
	tn_lock_give(&registry.lock);
	return sum;
}

/* The lock of a shared slab is held during its callbacks: one of them may be the caller. Then the
 * thread that holds it does the rest. A thread that waits here holds no such lock that another one
 * could wait for, because that one would have found it held. */
static size_t cache_trim(cache *c) {
	tn_lock *lock = c->owner_lock;
	for (int looks = 0; lock != NULL && !tn_lock_try(lock); looks++) {
		bool callback = tn_cache_owners != 0 || looks == TN_LOCK_LOOKS + TRIM_YIELDS;
		if (looks >= TN_LOCK_LOOKS && callback)
			return tn_cache_ask(c), tn_set(&c->trim_wanted, true, TN_RELAXED), 0;
		if (looks < TN_LOCK_LOOKS)
			tn_os_relax();
		else
			tn_os_yield();
	}
	if (lock != NULL)
		tn_lock_give(lock);
	return c->owner->trim(c);
}

size_t tn_caches_trim(void) {
	return cache_visit_all(cache_trim);
}

/* Ends the window that is over, gives back what is surplus, and returns the slots in depots. */
static size_t cache_serve(cache *c) {
	depot_seat seat = {.own = 0};
	if (c->owner->window_of == NULL)
		return 0;
	uint64_t now = tn_os_coarse_milliseconds(), before = tn_get(&c->served, TN_RELAXED);
	bool over = c->most_pace == 0 && now > before && now - before >= c->window_ms;
	if (over && tn_replace(&c->served, &before, now, TN_RELAXED))
		tn_depots_end_window(&c->depots, &seat, 0);
	cache_tend(c, &seat, SIZE_MAX);
	size_t slots = 0;
	for (size_t i = 0; i < tn_depots_count(&c->depots); i++)
		slots += tn_get(&depot_at(&c->depots, i)->slots, TN_RELAXED);
	/* Without decay they stay. */
	return c->window_ms == SIZE_MAX ? 0 : slots;
}

size_t tn_caches_serve(void) {
	return cache_visit_all(cache_serve);
}

/* Under the common depot's lock, which it gives back. */
static idle_slots cache_count_idle(cache *c) {
	idle_slots idle = {0, 0, 0};
	for (size_t i = 0; i < tn_depots_count(&c->depots); i++) {
		const depot *d = depot_at(&c->depots, i);
		idle.in_depot += tn_get(&d->slots, TN_RELAXED);
		idle.weight += tn_get(&d->weight, TN_RELAXED);
	}
	idle.count = idle.in_depot;
	for (const local *l = c->locals; l != NULL; l = l->next_of_cache)
		idle.count += cache_count_of(l);
	tn_lock_give(&c->depots.common.lock);
	return idle;
}

idle_slots tn_cache_idle(cache *c) {
	tn_lock_take(&c->depots.common.lock);
	return cache_count_idle(c);
}

idle_slots tn_cache_glance(cache *c) {
	for (int looks = 0; looks < TN_LOCK_LOOKS; looks++) {
		if (tn_lock_try(&c->depots.common.lock))
			return cache_count_idle(c);
		tn_os_relax();
	}
	return (idle_slots){0, 0, 0};
}

void tn_cache_read_exchanges(const cache *c, tn_stats *stats) {
	for (size_t i = 0; i < tn_depots_count(&c->depots); i++) {
		const depot *d = depot_at((depots *)(uintptr_t)&c->depots, i);
		stats->exchanges += tn_get(&d->exchanges, TN_RELAXED);
		stats->foreign += tn_get(&d->foreign, TN_RELAXED);
		stats->waits += tn_get(&d->waits, TN_RELAXED);
	}
}

void tn_cache_each(cache *c, void (*visit)(void *const *slots, size_t count, void *ctx), void *ctx) {
	for (const local *l = c->locals; l != NULL; l = l->next_of_cache) {
		visit(tn_get(&l->bottom, TN_RELAXED) + 1, cache_fill_of(l), ctx);
		if (l->previous != NULL)
			visit(depot_first_slot(l->previous), l->previous->count, ctx);
	}
	for (size_t i = 0; i < tn_depots_count(&c->depots); i++) {
		depot *d = depot_at(&c->depots, i);
		for (magazine *m = d->full.newest; m != NULL; m = m->next)
			visit(depot_first_slot(m), m->count, ctx);
		if (d->partial != NULL)
			visit(depot_first_slot(d->partial), d->partial->count, ctx);
	}
}

/* ---- fork ---- */

static void cache_give_depots(cache *c) {
	for (size_t i = 0; i < tn_depots_count(&c->depots); i++)
		tn_lock_give(&depot_at(&c->depots, i)->lock);
}

/* Takes the owners' locks of all caches, or none if one of them is held. */
static bool cache_try_owners(void) {
	for (cache *c = registry.caches; c != NULL; c = c->next) {
		if (c->owner_lock == NULL || tn_lock_try(c->owner_lock))
			continue;
		for (cache *done = registry.caches; done != c; done = done->next)
			if (done->owner_lock != NULL)
				tn_lock_give(done->owner_lock);
		return false;
	}
	return true;
}

/* A thread that holds an owner's lock may be in a callback that waits for any other lock. So this one
 * holds none while it waits. Threads that come later wait for it; so it has waited long enough when the
 * calls that are under way are over. Depots' locks are held for moments, and last in the order. */
static void cache_take_locks(void) {
	tn_add(&tn_cache_forks, 1, TN_RELAXED);
	tn_lock_take(&registry.lock);
	while (!cache_try_owners()) {
		tn_lock_give(&registry.lock);
		tn_os_yield();
		tn_lock_take(&registry.lock);
	}
	for (cache *c = registry.caches; c != NULL; c = c->next)
		for (size_t i = 0; i < tn_depots_count(&c->depots); i++)
			tn_lock_take(&depot_at(&c->depots, i)->lock);
}

/* Gives the lock meanwhile. The wait is bounded: this thread may hold a lock of its program that the
 * callback under way waits for. */
void tn_cache_wait_for_forks(tn_lock *held) {
	for (int i = 0; i < FORK_WAITS_MAX; i++) {
		uint32_t forks = tn_get(&tn_cache_forks, TN_RELAXED);
		if (forks == 0)
			return;
		tn_lock_give(held);
		tn_os_wait_for(&tn_cache_forks, forks, FORK_WAIT_MS);
		tn_lock_take(held);
	}
}

static void cache_give_locks(void) {
	for (cache *c = registry.caches; c != NULL; c = c->next) {
		cache_give_depots(c);
		if (c->owner_lock != NULL)
			tn_lock_give(c->owner_lock);
	}
	tn_lock_give(&registry.lock);
	/* Each waiter that is woken finds the next one asleep no longer than FORK_WAIT_MS. */
	tn_add(&tn_cache_forks, (uint32_t)-1, TN_RELAXED);
	tn_os_wake(&tn_cache_forks);
}

/* The magazines of a thread that is lost go to the common depot, whatever the bounds. */
static void cache_adopt_magazines(cache *c, local *l) {
	magazine *held[2];
	cache_unload_both(l, held);
	for (size_t i = 0; i < 2; i++)
		if (held[i] != NULL) {
			held[i]->weight = 0;
			tn_depots_give_some(&c->depots, l->seat.node, held[i], true);
		}
}

/* The child has one thread. The depots adopt the other threads' magazines, except those that were
 * changing hands at the fork: their state is unknown. */
static void cache_end_lost_threads(void) {
	cache_give_locks();
	tn_set(&tn_cache_forks, 0, TN_RELAXED);
	tn_lock_take(&registry.lock);
	for (cache *c = registry.caches; c != NULL; c = c->next) {
		c->orphaned |= c->guests > 0;
		c->guests = c->walks = 0;
		for (local *l = c->locals, *next; l != NULL; l = next) {
			next = l->next_of_cache;
			if (l->thread == &tn_cache_locals)
				continue;
			c->orphaned = true;
			if (tn_get(&l->changes, TN_RELAXED) % 2 == 0)
				cache_adopt_magazines(c, l);
			cache_unlink_local(c, l);
			cache_end_local(l);
		}
	}
	tn_lock_give(&registry.lock);
}

/* Before the registry's lock is taken for the first time. */
static void cache_set_hooks(void) {
	tn_os_on_fork(TN_FORK_CACHES, cache_take_locks, cache_give_locks, cache_end_lost_threads);
}

/* ---- make and end ---- */

void tn_cache_make(cache *c) {
	c->depots.magazine_slots = c->most_capacity;
	c->depots.nodes = tn_os_nodes();
	cache_set_hooks();
	tn_lock_take(&registry.lock);
	c->key = ++registry.last_key;
	if (c->front_key != NULL)
		*c->front_key = c->key;
	size_t colour = c->key % COLOURS * COLOUR_WORDS;
	c->least_capacity = (uint32_t)tn_min(c->least_capacity + colour, c->most_capacity);
	TN_LIST_PUSH(&registry.caches, c, next, link);
	tn_lock_give(&registry.lock);
}

/* A magazine of a thread goes to the common depot as if it were empty. */
static void cache_keep_magazine(cache *c, magazine *m) {
	if (m != NULL)
		depot_push(&c->depots.common.empty, m);
}

/* Under the registry's lock, which it gives meanwhile. */
static void cache_wait_for_guests(cache *c) {
	while (c->guests > 0) {
		tn_lock_give(&registry.lock);
		tn_os_yield();
		tn_lock_take(&registry.lock);
	}
}

void tn_cache_begin_walk(cache *c) {
	tn_lock_take(&registry.lock);
	c->walks++;
	cache_wait_for_guests(c);
	tn_lock_give(&registry.lock);
}

void tn_cache_end_walk(cache *c) {
	tn_lock_take(&registry.lock);
	/* After a fork in between there is none. */
	if (c->walks > 0)
		c->walks--;
	tn_lock_give(&registry.lock);
}

void tn_cache_unlink(cache *c) {
	tn_lock_take(&registry.lock);
	TN_LIST_UNLINK(c, next, link);
	cache_wait_for_guests(c);
	/* Their threads may be going over to other caches now, so the near entries are left to them. */
	for (local *l = c->locals; l != NULL; l = l->next_of_cache) {
		cache_keep_magazine(c, l->loaded);
		cache_keep_magazine(c, l->previous);
		tn_set(&l->cache, NULL, TN_RELAXED);
		tn_set(&l->hot.top, no_top, TN_RELEASE);
	}
	c->locals = NULL;
	tn_lock_give(&registry.lock);
}

void tn_cache_end(cache *c) {
	size_t count = tn_depots_count(&c->depots);
	for (size_t i = 0; i < count; i++)
		for (magazine *m; (m = tn_depot_take_any(&c->depots, depot_at(&c->depots, i))) != NULL;)
			c->owner->give_magazine(c, m);
	for (size_t i = 0; i * DEPOTS_IN_PAGE < count - 1; i++)
		c->owner->give_magazine(c, (magazine *)(void *)c->depots.pages[i]);
}
