/* Magazines in the hands of threads. See thread_cache.h for what it does and depot.h for the exchange.
 *
 *   take                      the loaded magazine is empty
 *   |- previous has slots     exchange the two
 *   |- the depot has some     load it; the spare empty one stays there
 *   `- the owner finds some   into the loaded one; without a magazine, one slot
 *   give                      the loaded magazine is full
 *   |- previous is empty      exchange the two
 *   |- the depot has room     previous goes there, loaded becomes previous, an empty one is loaded
 *   `- else                   what is in previous goes to the owner; without a magazine, one slot
 *
 * I1  below the slots of a loaded magazine stands NULL; a top in `no_magazine` is one of a magazine
 *     that is both empty and full.
 * I2  a thread's magazines change only in that thread, between begin_change and end_change, or when
 *     that thread is no more (the registry's lock held).
 * I3  a local is in its thread's chain until the thread ends or meets it dead; its place is used again
 *     only after DEAD_LOCALS others, so that a stale handle finds it dead.
 * I4  the top of a local that is near is there, and the one in the local is in no_magazine, so that a
 *     handle's calls come here.
 * I5  destroying leaves what is near to its thread, which may be going over to another cache just then:
 *     the key there is never asked for again, and the dead local gets no top back.
 *
 * Locks are taken in this order: an owner's, registry, a depot's, the page layer's. Callbacks of users
 * run with none of these held but the owner's. */
#include "thread_cache.h"

#include <tenure/shared_slab.h>

#include <errno.h>

#include "../base/os.h"
#include "../base/panic.h"
#include "../pages/pages.h"

enum {
	EXCHANGES_TO_GROW = 4,
	SURPLUS_AT_ONCE = 2, /* magazines that one exchange gives back: bounds its pause */
	DEAD_LOCALS = 64,
	FAR_TAKES = 256, /* then what is far comes near */
	CHAIN_COUNT = 16,
	/* Locals should not have the low 12 bits of address of the records of slabs (which have those of
	 * objects): a load of one after a store to the other would wait for it. */
	LOCALS_GAP = 16 * TN_OS_LINE,
	LOCAL_BYTES = TN_OS_LINE,
};
_Static_assert(sizeof(magazine) == TN_MAGAZINE_BYTES, "a magazine is a page");
_Static_assert(sizeof(local) <= LOCAL_BYTES, "a local fits");
_Static_assert(TN_DEPOT_WORDS - 1 >= TN_MAGAZINE_SLOTS_MAX, "a magazine has room");

TN_THREAD tn_near tn_near_slab, tn_near_pool;

enum locals_state { LOCALS_NEW, LOCALS_OPEN, LOCALS_CLOSED };

/* Owner thread only. */
static _Thread_local struct {
	enum locals_state state;
	local *chain[CHAIN_COUNT]; /* by the low bits of their keys */
} thread_locals;

/* Under its lock; the locals lie in pages that are never given back. */
static struct {
	tn_lock lock;
	uint64_t last_key;
	cache *caches;
	local *oldest_dead, *youngest_dead;
	size_t dead_count;
	char *fresh, *fresh_end;
} registry;

static _Alignas(TN_MAGAZINE_BYTES) magazine no_magazine;

/* ---- a thread's magazines ---- */

static void **const no_top = &no_magazine.words[TN_DEPOT_WORDS - 1];

static size_t fill_of(const local *l) {
	return (size_t)(TN_LOAD(tn_get(&l->top_at, TN_RELAXED)) - tn_get(&l->bottom, TN_RELAXED));
}

/* What another thread's magazines hold, by a sequence lock that is written with releases where Linux
 * has barriers. In the middle of a change it is what they held before. A top that is in another
 * magazine than the bottom is a look in between. */
static size_t count_slots_of(const local *l) {
	for (int looks = 0; looks < 100; looks++) {
		uint32_t before = tn_get(&l->changes, TN_ACQUIRE);
		if (before % 2 != 0)
			break;
		uintptr_t bottom = (uintptr_t)tn_get(&l->bottom, TN_ACQUIRE);
		uintptr_t top = (uintptr_t)__atomic_load_n(tn_get(&l->top_at, TN_ACQUIRE), __ATOMIC_ACQUIRE);
		size_t previous = tn_get(&l->previous_count, TN_ACQUIRE);
		bool same = (top ^ bottom) < TN_MAGAZINE_BYTES && top >= bottom;
		if (same && tn_get(&l->changes, TN_RELAXED) == before)
			return (top - bottom) / sizeof(void *) + previous;
	}
	return tn_get(&l->count, TN_RELAXED);
}

static void begin_change(local *l) {
	size_t count = fill_of(l) + tn_get(&l->previous_count, TN_RELAXED);
	tn_set(&l->count, (uint32_t)count, TN_RELAXED);
	tn_set(&l->changes, tn_get(&l->changes, TN_RELAXED) + 1, TN_RELEASE);
}

static void end_change(local *l) {
	tn_set(&l->changes, tn_get(&l->changes, TN_RELAXED) + 1, TN_RELEASE);
}

static void set_loaded(local *l, magazine *m, void **bottom, size_t fill) {
	l->loaded = m;
	tn_set(&l->bottom, bottom, TN_RELEASE);
	__atomic_store_n(tn_get(&l->top_at, TN_RELAXED), bottom + fill, __ATOMIC_RELEASE);
}

/* Loads a magazine with room for so many slots at its end, of which the lowest `fill` are there. */
static void load(local *l, magazine *m, size_t room, size_t fill) {
	void **bottom = &m->words[TN_DEPOT_WORDS - 1 - room];
	*bottom = NULL;
	set_loaded(l, m, bottom, fill);
}

/* Loads a magazine at rest. Few slots are moved to where they leave room for more: or magazines that
 * once had few would stay small for ever. */
static void load_full(local *l, magazine *m) {
	size_t room = m->count > l->capacity ? m->count : l->capacity;
	if (m->count < room)
		memmove(&m->words[TN_DEPOT_WORDS - room], first_slot(m), m->count * sizeof(void *));
	load(l, m, room, m->count);
}

static void load_empty(local *l, magazine *m) {
	load(l, m, l->capacity, 0);
}

static void load_none(local *l) {
	set_loaded(l, NULL, no_top, 0);
}

static void set_previous(local *l, magazine *m, size_t count) {
	l->previous = m;
	if (m != NULL)
		m->count = count;
	tn_set(&l->previous_count, count, TN_RELEASE);
}

/* Puts the loaded magazine at rest. */
static magazine *unload(local *l) {
	magazine *m = l->loaded;
	m->count = fill_of(l);
	void **bottom = tn_get(&l->bottom, TN_RELAXED);
	memmove(first_slot(m), bottom + 1, m->count * sizeof(void *));
	load_none(l);
	return m;
}

static void *pop(local *l) {
	return tn_top_pop(tn_get(&l->top_at, TN_RELAXED));
}

static bool push(local *l, void *p) {
	return tn_top_push(tn_get(&l->top_at, TN_RELAXED), p);
}

static magazine *empty_magazine(cache *c) {
	magazine *m = tn_depot_take_empty(&c->depot);
	return m != NULL ? m : c->owner->add_magazine(c);
}

/* ---- between threads, depot and owner ---- */

static void return_slots(cache *c, magazine *m) {
	if (m->count > 0)
		c->owner->take_back(c, first_slot(m), m->count);
	m->count = 0;
}

/* What the depot cannot take goes back to the owner. */
static void give_some(cache *c, magazine *m) {
	m->weight = m->count == 0 ? 0 : c->owner->weigh(c, first_slot(m), m->count);
	if (tn_depot_give_some(&c->depot, m, false))
		return;
	return_slots(c, m);
	c->owner->drop_magazine(c, m);
}

/* Leaves the thread without magazines; NULL where it had none. */
static void take_magazines(local *l, magazine *held[2]) {
	begin_change(l);
	held[0] = l->previous;
	set_previous(l, NULL, 0);
	held[1] = l->loaded != NULL ? unload(l) : NULL;
	end_change(l);
}

static void give_all(cache *c, local *l) {
	magazine *held[2];
	take_magazines(l, held);
	for (size_t i = 0; i < 2; i++)
		if (held[i] != NULL)
			give_some(c, held[i]);
}

/* After an exchange with the depot: a thread that exchanges often gets larger magazines, and what
 * nobody has needed goes back. */
static void settle(cache *c, local *l) {
	if (++l->exchanges >= EXCHANGES_TO_GROW && l->capacity < c->most_capacity) {
		l->exchanges = 0;
		l->capacity = l->capacity * 2 < c->most_capacity ? l->capacity * 2 : c->most_capacity;
	}
	for (int i = 0; i < SURPLUS_AT_ONCE; i++) {
		magazine *m = tn_depot_settle(&c->depot, c->owner->window(c));
		if (m == NULL)
			continue;
		return_slots(c, m);
		c->owner->drop_magazine(c, m);
	}
}

static void follow_flush(cache *c, local *l) {
	uint32_t asked = tn_get(&c->flushes, TN_RELAXED);
	if (TN_LIKELY(l->flushes == asked))
		return;
	l->flushes = asked;
	l->capacity = c->least_capacity;
	give_all(c, l);
}

/* Without memory for slots, memory in empty magazines may be what is missing. Returns whether there
 * were any. */
static bool drop_empty_magazines(cache *c, local *l) {
	magazine *held[2];
	take_magazines(l, held);
	bool any = false;
	for (size_t i = 0; i < 2; i++)
		if (held[i] != NULL) {
			c->owner->drop_magazine(c, held[i]);
			any = true;
		}
	for (magazine *m; (m = tn_depot_take_empty(&c->depot)) != NULL; any = true)
		c->owner->drop_magazine(c, m);
	return any;
}

/* Loads the slots that the owner found, the first one on top; without a magazine for them, one is the
 * answer and the others go back. */
static void *load_found(cache *c, local *l, void *const *found, size_t count) {
	magazine *m = l->loaded != NULL || count == 1 ? TN_AT(l->loaded) : empty_magazine(c);
	if (m == NULL) {
		if (count > 1)
			c->owner->take_back(c, (void **)found + 1, count - 1);
		return found[0];
	}
	m->count = count;
	for (size_t i = 0; i < count; i++)
		m->words[TN_DEPOT_WORDS - 1 - i] = found[i];
	begin_change(l);
	load_full(l, m);
	end_change(l);
	return pop(l);
}

static void *find_slots(cache *c, local *l) {
	void *found[TN_DEPOT_WORDS];
	size_t wanted = l->capacity == 0 ? 1 : l->capacity;
	size_t count = c->owner->find(c, found, wanted);
	if (count == 0 && drop_empty_magazines(c, l))
		count = c->owner->find(c, found, 1);
	if (count == 0 || count == CACHE_REFUSED)
		return NULL;
	settle(c, l);
	return load_found(c, l, found, count);
}

/* The loaded magazine is empty: previous or the depot has slots. */
static bool refill_local(cache *c, local *l) {
	begin_change(l);
	magazine *full = l->previous;
	bool exchanged = tn_get(&l->previous_count, TN_RELAXED) == 0;
	if (exchanged)
		full = tn_depot_take_full(&c->depot, l->previous);
	if (full != NULL) {
		set_previous(l, l->loaded, 0);
		load_full(l, full);
	}
	end_change(l);
	if (full != NULL && exchanged)
		settle(c, l);
	return full != NULL;
}

static void *take_slot_of(cache *c, local *l) {
	void *p = pop(l);
	if (p != NULL)
		return p;
	follow_flush(c, l);
	return refill_local(c, l) ? pop(l) : find_slots(c, l);
}

/* Where what is idle is bounded in bytes, a magazine is a small part of that too. */
static void fit_capacity(const cache *c, local *l, const magazine *full) {
	size_t each = full->weight / full->count;
	size_t fit = each == 0 ? l->capacity : c->depot.most_weight / TN_SHARES_OF_BOUND / each;
	if (l->capacity > fit)
		l->capacity = fit == 0 ? 1 : (uint32_t)fit;
}

/* Both magazines are full: previous goes to the depot, and what the depot has no room for goes back to
 * the owner. Returns an empty magazine, or NULL. */
static magazine *exchange_previous(cache *c, local *l) {
	magazine *full = l->previous, *empty = NULL;
	full->weight = c->owner->weigh(c, first_slot(full), full->count);
	fit_capacity(c, l, full);
	begin_change(l);
	bool taken = tn_depot_give_full(&c->depot, full, &empty);
	set_previous(l, NULL, 0);
	end_change(l);
	if (taken)
		return empty;
	return_slots(c, full);
	return full;
}

/* The loaded magazine is full or missing: sees to it, if there is memory, that it has room. */
static void make_room(cache *c, local *l) {
	magazine *empty = NULL;
	if (tn_get(&l->previous_count, TN_RELAXED) > 0 && l->loaded != NULL) {
		settle(c, l);
		empty = exchange_previous(c, l);
	} else if (l->previous != NULL && l->loaded != NULL) {
		empty = l->previous;
	}
	if (empty == NULL && l->capacity > 0)
		empty = empty_magazine(c);
	begin_change(l);
	if (l->loaded != NULL)
		set_previous(l, l->loaded, fill_of(l));
	if (empty != NULL)
		load_empty(l, empty);
	else
		load_none(l);
	end_change(l);
}

static void give_slot_to(cache *c, local *l, void *p) {
	if (push(l, p))
		return;
	follow_flush(c, l);
	make_room(c, l);
	if (!push(l, p))
		c->owner->take_back(c, &p, 1);
}

/* ---- near and far ---- */

/* A local whose cache is destroyed gets no top back: its magazines are gone. Where a caller has the
 * handle, destroying may be under way in another thread: of the two stores to the handle's top the last
 * is no_top, for if it is the one here, the exchange has seen the other, and the next load sees that
 * the cache is gone. */
static void put_away(tn_near *at) {
	local *l = (local *)at->local;
	if (l == NULL)
		return;
	at->key = 0;
	at->local = NULL;
	begin_change(l);
	if (l->handled)
		(void)__atomic_exchange_n(&l->hot.top, TN_LOAD(&at->top), __ATOMIC_ACQ_REL);
	else
		TN_STORE(&l->hot.top, TN_LOAD(&at->top));
	if (tn_get(&l->cache, TN_RELAXED) == NULL)
		TN_STORE(&l->hot.top, no_top);
	tn_set(&l->top_at, &l->hot.top, TN_RELEASE);
	TN_STORE(&at->top, no_top);
	end_change(l);
}

static void bring_near(local *l, tn_near *at) {
	put_away(at);
	begin_change(l);
	__atomic_store_n(&at->top, TN_LOAD(&l->hot.top), __ATOMIC_RELEASE);
	tn_set(&l->top_at, &at->top, TN_RELEASE);
	TN_STORE(&l->hot.top, no_top);
	end_change(l);
	at->local = &l->hot;
	at->key = l->key;
}

static void put_away_local(const local *l) {
	if (tn_near_slab.local == &l->hot)
		put_away(&tn_near_slab);
	if (tn_near_pool.local == &l->hot)
		put_away(&tn_near_pool);
}

/* ---- locals come and go ---- */

static void bury(local *l) {
	tn_set(&l->cache, NULL, TN_RELAXED);
	l->next_of_thread = NULL;
	if (registry.dead_count++ == 0)
		registry.oldest_dead = l;
	else
		registry.youngest_dead->next_of_thread = l;
	registry.youngest_dead = l;
}

static void leave_cache(cache *c, local *l) {
	tn_lock_take(&c->depot.lock);
	*l->link_of_cache = l->next_of_cache;
	if (l->next_of_cache != NULL)
		l->next_of_cache->link_of_cache = l->link_of_cache;
	tn_lock_give(&c->depot.lock);
}

static void give_all_and_leave(cache *c, local *l) {
	give_all(c, l);
	leave_cache(c, l);
}

/* Buries the locals of a chain whose cache was destroyed. */
static void clear_chain(local **chain) {
	for (local **at = chain; *at != NULL;) {
		local *l = *at;
		if (tn_get(&l->cache, TN_RELAXED) != NULL) {
			at = &l->next_of_thread;
			continue;
		}
		*at = l->next_of_thread;
		put_away_local(l);
		bury(l);
	}
}

/* What the thread holds may go to callbacks of the owner's user, which may come here again: so without
 * the registry's lock, as a guest of the cache, for which destroying waits. */
static void visit_as_guest(local *l, void (*visit)(cache *c, local *l)) {
	cache *c = tn_get(&l->cache, TN_RELAXED);
	if (c == NULL)
		return;
	c->guests = c->guests + 1;
	tn_lock_give(&registry.lock);
	visit(c, l);
	tn_lock_take(&registry.lock);
	/* None in the child of a fork by one of them. */
	if (c->guests > 0)
		c->guests = c->guests - 1;
}

/* First all are flushed, twice, for callbacks may give to what has been flushed, by its handle. */
static void close_thread_locals(void) {
	thread_locals.state = LOCALS_CLOSED;
	put_away(&tn_near_slab);
	put_away(&tn_near_pool);
	tn_lock_take(&registry.lock);
	for (size_t i = 0; i < 2 * CHAIN_COUNT; i++)
		for (local *l = thread_locals.chain[i % CHAIN_COUNT]; l != NULL; l = l->next_of_thread)
			visit_as_guest(l, give_all);
	for (size_t i = 0; i < CHAIN_COUNT; i++)
		while (thread_locals.chain[i] != NULL) {
			local *l = thread_locals.chain[i];
			thread_locals.chain[i] = l->next_of_thread;
			visit_as_guest(l, give_all_and_leave);
			bury(l);
		}
	tn_lock_give(&registry.lock);
}

static local *place_for_local(void) {
	if (registry.dead_count > DEAD_LOCALS) {
		local *l = registry.oldest_dead;
		registry.oldest_dead = l->next_of_thread;
		registry.dead_count--;
		return l;
	}
	if (registry.fresh == registry.fresh_end) {
		char *page = tn_pages_acquire(TN_OS_PAGE, TN_OS_PAGE);
		if (page == NULL)
			return NULL;
		registry.fresh = page + LOCALS_GAP;
		registry.fresh_end = page + TN_OS_PAGE;
	}
	local *l = (local *)(void *)registry.fresh;
	registry.fresh += LOCAL_BYTES;
	return l;
}

static local *add_local(cache *c) {
	if (thread_locals.state == LOCALS_NEW && !tn_os_on_thread_exit(TN_EXIT_LOCALS, close_thread_locals))
		return NULL;
	thread_locals.state = LOCALS_OPEN;
	local **chain = &thread_locals.chain[c->key % CHAIN_COUNT];
	tn_lock_take(&registry.lock);
	clear_chain(chain);
	local *l = place_for_local();
	if (l != NULL) {
		*l = (local){.key = c->key,
			.far_takes = 1,
			.flushes = tn_get(&c->flushes, TN_RELAXED),
			.cache = c,
			.capacity = c->least_capacity,
			.thread = &thread_locals,
			.next_of_thread = *chain,
			.link_of_cache = &c->locals};
		tn_set(&l->top_at, &l->hot.top, TN_RELAXED);
		load_none(l);
		*chain = l;
		tn_lock_take(&c->depot.lock);
		l->next_of_cache = c->locals;
		if (c->locals != NULL)
			c->locals->link_of_cache = &l->next_of_cache;
		c->locals = l;
		tn_lock_give(&c->depot.lock);
	}
	tn_lock_give(&registry.lock);
	return l;
}

/* The calling thread's part if it has one. */
static local *known_local(const cache *c) {
	local *l = thread_locals.chain[c->key % CHAIN_COUNT];
	while (l != NULL && l->key != c->key)
		l = l->next_of_thread;
	return l;
}

/* The same, made if there is none. */
static local *find_local(cache *c) {
	if (thread_locals.state == LOCALS_CLOSED)
		return NULL;
	local *l = known_local(c);
	return l == NULL ? add_local(c) : l;
}

local *tn_cache_handle(cache *c) {
	local *l = find_local(c);
	if (l != NULL)
		l->handled = true;
	return l;
}

cache *tn_local_cache(const local *l, const char *operation) {
	cache *c = tn_get(&l->cache, TN_RELAXED);
	if (c == NULL)
		tn_panic(
			"handle", NULL, "%s: the slab or the thread of %p is no more", operation, (const void *)l);
	if (TN_MODE != TN_MODE_RELEASE && l->thread != &thread_locals)
		tn_panic(c->kind, c->name, "%s: the handle %p is another thread's", operation, (const void *)l);
	return c;
}

void *tn_local_take(local *l, const char *operation) {
	cache *c = tn_local_cache(l, operation);
	put_away_local(l);
	return take_slot_of(c, l);
}

void tn_local_give(local *l, void *p, const char *operation) {
	cache *c = tn_local_cache(l, operation);
	put_away_local(l);
	give_slot_to(c, l, p);
}

static local *come_near(cache *c, tn_near *at) {
	local *l = find_local(c);
	if (l != NULL)
		l->far_takes = FAR_TAKES;
	/* Hardened and debug do not look there. */
	if (l != NULL && TN_MODE == TN_MODE_RELEASE && at->local != &l->hot)
		bring_near(l, at);
	return l;
}

static __attribute__((noinline)) void *take_slowly(cache *c, tn_near *at) {
	local *l = come_near(c, at);
	if (l != NULL)
		return take_slot_of(c, l);
	void *p;
	return c->owner->find(c, &p, 1) == 1 ? p : NULL;
}

/* A local that is near has nothing here, and goes the slow way too. */
void *tn_cache_take(cache *c, tn_near *at) {
	local *l = known_local(c);
	void *p;
	if (TN_UNLIKELY(l == NULL || --l->far_takes == 0 || (p = tn_top_pop(&l->hot.top)) == NULL))
		return take_slowly(c, at);
	return p;
}

static __attribute__((noinline)) void give_slowly(cache *c, tn_near *at, void *p) {
	local *l = come_near(c, at);
	if (l != NULL)
		give_slot_to(c, l, p);
	else
		c->owner->take_back(c, &p, 1);
}

void tn_cache_give(cache *c, tn_near *at, void *p) {
	local *l = known_local(c);
	if (TN_UNLIKELY(l == NULL || !tn_top_push(&l->hot.top, p)))
		give_slowly(c, at, p);
}

void tn_cache_flush(cache *c) {
	local *l = known_local(c);
	if (l != NULL)
		give_all(c, l);
}

void tn_cache_drain(cache *c) {
	tn_add(&c->flushes, 1, TN_RELAXED);
	tn_cache_flush(c);
	/* Others may fill it again meanwhile. */
	for (size_t left = tn_depot_count(&c->depot); left > 0; left--) {
		magazine *m = tn_depot_take_any(&c->depot);
		if (m == NULL)
			return;
		return_slots(c, m);
		c->owner->drop_magazine(c, m);
	}
}

/* With the depot's lock, which it gives back. */
static idle_slots count_idle_slots(cache *c) {
	idle_slots idle = {c->depot.slots, c->depot.slots, c->depot.weight};
	for (const local *l = c->locals; l != NULL; l = l->next_of_cache)
		idle.count += count_slots_of(l);
	tn_lock_give(&c->depot.lock);
	return idle;
}

idle_slots tn_cache_idle(cache *c) {
	tn_lock_take(&c->depot.lock);
	return count_idle_slots(c);
}

idle_slots tn_cache_glance(cache *c) {
	for (int looks = 0; looks < TN_LOCK_LOOKS; looks++) {
		if (tn_lock_try(&c->depot.lock))
			return count_idle_slots(c);
		tn_os_relax();
	}
	return (idle_slots){0, 0, 0};
}

void tn_cache_each(cache *c, void (*visit)(void *const *slots, size_t count, void *ctx), void *ctx) {
	for (const local *l = c->locals; l != NULL; l = l->next_of_cache) {
		visit(tn_get(&l->bottom, TN_RELAXED) + 1, fill_of(l), ctx);
		if (l->previous != NULL)
			visit(first_slot(l->previous), l->previous->count, ctx);
	}
	for (magazine *m = c->depot.full.newest; m != NULL; m = m->next)
		visit(first_slot(m), m->count, ctx);
	if (c->depot.partial != NULL)
		visit(first_slot(c->depot.partial), c->depot.partial->count, ctx);
}

/* ---- fork ---- */

static void unlock_caches_until(const cache *end) {
	for (cache *c = registry.caches; c != end; c = c->next) {
		tn_lock_give(&c->depot.lock);
		c->owner->unlock(c);
	}
}

/* Returns the first cache whose locks could not be had, with none held then; NULL if all are. */
static const cache *try_all_caches(void) {
	for (cache *c = registry.caches; c != NULL; c = c->next) {
		bool owner = c->owner->try_lock(c);
		if (owner && tn_lock_try(&c->depot.lock))
			continue;
		if (owner)
			c->owner->unlock(c);
		unlock_caches_until(c);
		return c;
	}
	return NULL;
}

/* Who holds an owner's lock may be in a callback that waits for any other lock: so without waiting. */
static void lock_all_caches(void) {
	tn_lock_take(&registry.lock);
	while (try_all_caches() != NULL) {
		tn_lock_give(&registry.lock);
		tn_os_yield();
		tn_lock_take(&registry.lock);
	}
}

static void unlock_all_caches(void) {
	unlock_caches_until(NULL);
	tn_lock_give(&registry.lock);
}

static void adopt_magazines(cache *c, local *l) {
	magazine *held[2];
	take_magazines(l, held);
	for (size_t i = 0; i < 2; i++)
		if (held[i] != NULL) {
			held[i]->weight = 0;
			tn_depot_give_some(&c->depot, held[i], true);
		}
}

/* The child has one thread: what the others held goes to the depots, but for magazines that were
 * changing hands at that moment, which nobody can tell any more. */
static void adopt_orphans(void) {
	unlock_all_caches();
	tn_lock_take(&registry.lock);
	for (cache *c = registry.caches; c != NULL; c = c->next) {
		c->orphaned |= c->guests > 0;
		c->guests = 0;
		for (local *l = c->locals, *next; l != NULL; l = next) {
			next = l->next_of_cache;
			if (l->thread == &thread_locals)
				continue;
			c->orphaned = true;
			if (tn_get(&l->changes, TN_RELAXED) % 2 == 0)
				adopt_magazines(c, l);
			leave_cache(c, l);
			bury(l);
		}
	}
	tn_lock_give(&registry.lock);
}

/* ---- caches ---- */

void tn_cache_init(cache *c) {
	c->depot.magazine_slots = c->most_capacity;
	tn_os_on_fork(TN_FORK_CACHES, lock_all_caches, unlock_all_caches, adopt_orphans);
	tn_lock_take(&registry.lock);
	c->key = ++registry.last_key;
	c->next = registry.caches;
	c->link = &registry.caches;
	if (c->next != NULL)
		c->next->link = &c->next;
	registry.caches = c;
	tn_lock_give(&registry.lock);
}

static void leave_magazine(cache *c, magazine *m) {
	if (m == NULL)
		return;
	m->next = c->left;
	c->left = m;
}

void tn_cache_close(cache *c) {
	tn_lock_take(&registry.lock);
	*c->link = c->next;
	if (c->next != NULL)
		c->next->link = c->link;
	while (c->guests > 0) {
		tn_lock_give(&registry.lock);
		tn_os_yield();
		tn_lock_take(&registry.lock);
	}
	/* Their threads may be going over to other caches right now: what is near is left to them. */
	for (local *l = c->locals; l != NULL; l = l->next_of_cache) {
		leave_magazine(c, l->loaded);
		leave_magazine(c, l->previous);
		tn_set(&l->cache, NULL, TN_RELAXED);
		__atomic_store_n(&l->hot.top, no_top, __ATOMIC_RELEASE);
	}
	c->locals = NULL;
	tn_lock_give(&registry.lock);
}

void tn_cache_deinit(cache *c) {
	for (magazine *m = c->left, *next; m != NULL; m = next) {
		next = m->next;
		c->owner->drop_magazine(c, m);
	}
	for (magazine *m; (m = tn_depot_take_any(&c->depot)) != NULL;)
		c->owner->drop_magazine(c, m);
}
