/* The depot: where threads exchange full magazines for empty ones.
 *
 *   | next | count | weight | NULL ... slots of `count` | a magazine at rest: its slots at the end
 *
 * A magazine belongs to one thread at a time, or to the depot. A thread that takes the lock hands over
 * whole magazines and never follows a pointer that another thread may take away. So there is no tag and
 * no ABA here: only magazines are linked, and the links are read and written under the lock.
 *
 * A cache has one common depot, and shards as soon as several threads exchange magazines. A thread
 * finds the magazines again that it put into its shard, and its processor has the slots' lines still.
 *
 *   full magazine                                empty magazine
 *   |- give   to the own shard                   |- give   to the depot where a full one was taken
 *   |- flush  to the common depot                `- take   from the own shard, the common depot
 *   |- take   from the own shard, the common
 *   |         depot, the shards of others
 *   |         what these can spare
 *   `- take   without memory, what others need
 *
 * On a machine with several memory nodes (NUMA) each node has a common depot and shards. A thread uses
 * those of the node that it runs on, and a magazine goes to those of the node that its slots belong to.
 * The depots' numbers take turns: number n is of node n % nodes, and the first of each node is common.
 *
 * Surplus: the fewest full magazines in a window are those that the window did not need. Those that two
 * windows in a row did not need are surplus (as the victim generation of Go's sync.Pool, with the low
 * watermark of the h2o web server). The owner says how long a window is. It ends for all depots at
 * once, by a number that each follows when a thread comes by.
 *
 * cites    Bonwick and Adams 2001, "Magazines and Vmem" */
#ifndef TENURE_DEPOT_H
#define TENURE_DEPOT_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "../base/bits.h"
#include "../base/lock.h"

#ifndef TN_DEPOT_WORDS
#define TN_DEPOT_WORDS (4096 / sizeof(void *) - 3) /* of a page, less the header */
#endif

typedef struct magazine {
	TN_GUARDED(struct magazine *) next;
	TN_GUARDED(size_t) count;  /* slots */
	TN_GUARDED(size_t) weight; /* bytes, where the owner weighs them */
	void *words[TN_DEPOT_WORDS];
} magazine;

/* A stack of magazines, and the fewest that it has held. */
typedef struct magazine_list {
	TN_GUARDED(magazine *) newest;
	TN_GUARDED(size_t) count;
	TN_GUARDED(size_t) low;        /* fewest in this window */
	TN_GUARDED(size_t) low_before; /* fewest in the window before */
	TN_GUARDED(size_t) surplus;    /* must leave: neither window needed them */
} magazine_list;

typedef struct depot {
	tn_lock lock;
	magazine_list full;
	magazine_list empty;
	TN_GUARDED(magazine *) partial; /* gathers the slots that threads flush; or NULL */
	TN_GUARDED(size_t) untouched;   /* windows that ended since it last changed */
	/* Of a shard: how many more magazines its threads took, or wanted, than they gave; and the most in
	 * this window and in the one before. */
	TN_GUARDED(size_t) run;
	TN_GUARDED(size_t) need;
	TN_GUARDED(size_t) need_before;
	/* Written under the lock, read by anyone. */
	TN_ATOMIC(size_t) slots; /* in full magazines and the partial one */
	TN_ATOMIC(size_t) weight;
	TN_ATOMIC(size_t) to_spare;    /* full magazines that its own threads do not need */
	TN_ATOMIC(size_t) windows;     /* of all depots, that it has followed */
	TN_ATOMIC(size_t) surplus;     /* of both lists */
	TN_ATOMIC(uint64_t) exchanges; /* magazines that threads put in or took */
	TN_ATOMIC(uint64_t) foreign;   /* of them, those that threads with another depot took */
	TN_ATOMIC(uint64_t) waits;     /* times that the lock was held by another thread */
} depot;

enum {
	DEPOT_BYTES = 256,
	DEPOTS_IN_PAGE = 4096 / DEPOT_BYTES,
	SHARDS_LEAST = 8,
	SHARDS_MOST = 32,
	DEPOT_PAGES = SHARDS_MOST / DEPOTS_IN_PAGE,
};
_Static_assert(sizeof(depot) <= DEPOT_BYTES, "a depot fits into its place");

/* All depots of a cache. Number 0 is the common one, the others are shards: with several nodes the
 * first of these are the common ones of the other nodes. */
typedef struct depots {
	size_t magazine_slots; /* with so many a partial magazine is full */
	size_t nodes;          /* that it tells apart */
	size_t most_slots;     /* bounds of what all depots hold, SIZE_MAX: none */
	size_t most_weight;
	TN_ATOMIC(size_t) shard_slots; /* bound of what each depot keeps, SIZE_MAX: none */
	char *pages[DEPOT_PAGES];      /* of the shards */
	TN_ATOMIC(size_t) shard_count; /* 0: not made yet */
	TN_ATOMIC(size_t) windows;     /* that have ended */
	TN_ATOMIC(size_t) due;         /* not 0: a window has ended, or some depot may have surplus left */
	/* The fields above are read with every exchange, those below are written now and then. */
	_Alignas(TN_OS_LINE) TN_ATOMIC(size_t) moved; /* slots that came or went in this window */
	TN_ATOMIC(size_t) slots;                      /* in all depots, where that is bounded */
	TN_ATOMIC(size_t) weight;
	TN_ATOMIC(size_t) seats; /* given to threads */
	_Alignas(TN_OS_LINE) depot common;
} depots;

/* A thread's place among the depots. It is given shard after shard, so that few threads share one. */
typedef struct depot_seat {
	uint8_t own;    /* the number of its depot */
	uint8_t node;   /* that the thread was on lately */
	uint8_t from;   /* of the last shard in which it found a foreign magazine */
	uint8_t tended; /* of the depot that it looks after next */
	uint8_t rest;   /* exchanges until then */
	uint32_t moved; /* slots that it moved, and has not added to those of all depots */
} depot_seat;

/* With shards, a thread looks after another depot once in so many exchanges: it may be another
 * processor's line. */
enum { DEPOT_REST = 8 };

static inline depot *depot_at(depots *all, size_t number) {
	if (number == 0)
		return &all->common;
	char *page = all->pages[(number - 1) / DEPOTS_IN_PAGE];
	return (depot *)(void *)(page + (number - 1) % DEPOTS_IN_PAGE * DEPOT_BYTES);
}

/* Depots, the common one included. */
static inline size_t tn_depots_count(const depots *all) {
	return 1 + tn_get(&all->shard_count, TN_ACQUIRE);
}

/* Whether a node has depots: the first one always, the others once there are shards. */
static inline bool depots_has_node(const depots *all, size_t node) {
	return node < tn_depots_count(all);
}

static inline bool depots_are_near(const depots *all, size_t number, size_t node) {
	return all->nodes == 1 || number % all->nodes == node;
}

/* The first of a magazine's slots at rest. */
static inline void **depot_first_slot(magazine *m) {
	return &m->words[TN_DEPOT_WORDS - m->count];
}

static inline void depot_push(magazine_list *list, magazine *m) {
	m->next = list->newest;
	list->newest = m;
	list->count++;
}

static inline magazine *depot_pop(magazine_list *list) {
	magazine *m = list->newest;
	if (m == NULL)
		return NULL;
	list->newest = m->next;
	list->count--;
	list->low = tn_min(list->low, list->count);
	return m;
}

/* Takes a magazine that leaves for good. The lowest counts fall with it. */
static inline magazine *depot_drop(magazine_list *list) {
	size_t low = list->low, before = list->low_before;
	magazine *m = depot_pop(list);
	if (m == NULL)
		return NULL;
	list->low = low - (low > 0);
	list->low_before = before - (before > 0);
	return m;
}

static inline void depot_end_window(magazine_list *list) {
	list->surplus = tn_min(list->low, list->low_before);
	list->low_before = list->low;
	list->low = list->count;
}

/* ---- figures ---- */

/* Adds to a figure that is written under a lock. */
static inline void depot_add(TN_ATOMIC(size_t) * figure, size_t more) {
	tn_set(figure, tn_get(figure, TN_RELAXED) + more, TN_RELAXED);
}

static inline void depot_count(TN_ATOMIC(uint64_t) * figure) {
	tn_set(figure, tn_get(figure, TN_RELAXED) + 1, TN_RELAXED);
}

/* Adds to the sum of all depots, if it stays within `most`. */
static inline bool depot_charge(TN_ATOMIC(size_t) * sum, size_t more, size_t most) {
	size_t seen = tn_get(sum, TN_RELAXED);
	do
		if (seen > most || more > most - seen)
			return false;
	while (!tn_replace(sum, &seen, seen + more, TN_RELAXED));
	return true;
}

static inline bool depots_bounded(const depots *all) {
	return all->most_slots != SIZE_MAX || all->most_weight != SIZE_MAX;
}

/* Whether there is room for m in the sum of all depots; from then on it is counted there. */
static inline bool depots_charge(depots *all, const magazine *m) {
	if (!depots_bounded(all))
		return true;
	if (!depot_charge(&all->slots, m->count, all->most_slots))
		return false;
	if (depot_charge(&all->weight, m->weight, all->most_weight))
		return true;
	tn_add(&all->slots, 0 - (size_t)m->count, TN_RELAXED);
	return false;
}

/* The same whether or not there is room. */
static inline void depots_charge_in_spite(depots *all, const magazine *m) {
	tn_add(&all->slots, (size_t)m->count, TN_RELAXED);
	tn_add(&all->weight, (size_t)m->weight, TN_RELAXED);
}

/* A fork may leave the child's depots with more than their bounds allow. */
static inline bool depots_are_over(const depots *all) {
	return depots_bounded(all) && (tn_get(&all->slots, TN_RELAXED) > all->most_slots ||
									  tn_get(&all->weight, TN_RELAXED) > all->most_weight);
}

static inline void depot_count_in(depot *d, const magazine *m) {
	depot_add(&d->slots, m->count);
	depot_add(&d->weight, m->weight);
}

static inline void depot_count_out(depots *all, depot *d, const magazine *m) {
	depot_add(&d->slots, 0 - (size_t)m->count);
	depot_add(&d->weight, 0 - (size_t)m->weight);
	if (depots_bounded(all)) {
		tn_add(&all->slots, 0 - (size_t)m->count, TN_RELAXED);
		tn_add(&all->weight, 0 - (size_t)m->weight, TN_RELAXED);
	}
}

/* ---- one depot ---- */

/* Threads that give at one time may exceed the bound by a magazine each. */
static inline bool depot_has_room(const depots *all, const depot *d, const magazine *m) {
	size_t slots = tn_get(&d->slots, TN_RELAXED), most = tn_get(&all->shard_slots, TN_RELAXED);
	return slots <= most && m->count <= most - slots;
}

static inline void depot_enter(depot *d) {
	if (TN_LIKELY(tn_lock_try(&d->lock)))
		return;
	tn_lock_take(&d->lock);
	depot_count(&d->waits);
}

/* Threads out of phase would rob each other in a circle: one shard is full just when another is empty.
 * So a shard keeps as many full magazines as its threads took in a row, and they find them again. */
static inline void depot_leave(depot *d) {
	size_t kept = tn_max(d->need, d->need_before), full = d->full.count;
	tn_set(&d->to_spare, full - tn_min(full, kept), TN_RELAXED);
	tn_lock_give(&d->lock);
}

/* Under the lock. */
static inline magazine *depot_pop_full(depots *all, depot *d, magazine *spare) {
	magazine *m = depot_pop(&d->full);
	if (m == NULL) {
		m = d->partial;
		d->partial = NULL;
		d->untouched = 0;
	}
	if (m != NULL) {
		depot_count_out(all, d, m);
		depot_count(&d->exchanges);
		if (spare != NULL)
			depot_push(&d->empty, spare);
	}
	return m;
}

/* Takes a magazine with slots in it. A depot that has none is not worth its lock. */
static inline magazine *depot_take_full(depots *all, depot *d, magazine *spare) {
	if (tn_get(&d->slots, TN_RELAXED) == 0)
		return NULL;
	depot_enter(d);
	magazine *m = depot_pop_full(all, d, spare);
	depot_leave(d);
	return m;
}

/* The same for a thread of this shard. A magazine that it took in vain counts as needed too. */
static inline magazine *depot_take_own(depots *all, depot *d, magazine *spare) {
	depot_enter(d);
	d->run++;
	d->need = tn_max(d->need, d->run);
	magazine *m = depot_pop_full(all, d, spare);
	depot_leave(d);
	return m;
}

/* The same for a thread of another shard: what is to spare, or `all_of_it`. */
static inline magazine *depot_take_foreign(depots *all, depot *d, magazine *spare, bool all_of_it) {
	if (tn_get(all_of_it ? &d->slots : &d->to_spare, TN_RELAXED) == 0)
		return NULL;
	depot_enter(d);
	bool may = all_of_it || d->full.count > tn_max(d->need, d->need_before);
	magazine *m = may ? depot_pop_full(all, d, spare) : NULL;
	if (m != NULL)
		depot_count(&d->foreign);
	depot_leave(d);
	return m;
}

/* Takes an empty magazine; NULL when there is none. */
static inline magazine *tn_depot_take_empty(depot *d) {
	depot_enter(d);
	magazine *m = depot_pop(&d->empty);
	tn_lock_give(&d->lock);
	return m;
}

/* Takes any magazine there is; NULL when the depot holds none. */
static inline magazine *tn_depot_take_any(depots *all, depot *d) {
	magazine *m = depot_take_full(all, d, NULL);
	return m != NULL ? m : tn_depot_take_empty(d);
}

/* Magazines that the depot holds. */
static inline size_t tn_depot_count(depot *d) {
	tn_lock_take(&d->lock);
	size_t count = d->full.count + d->empty.count + (d->partial != NULL);
	tn_lock_give(&d->lock);
	return count;
}

/* Ends the windows that ended for all depots since the last time. In a silence of many, none was in
 * use after the first: three are as good. */
static inline void depot_end_windows(depots *all, depot *d) {
	size_t windows = tn_get(&all->windows, TN_RELAXED);
	for (size_t i = tn_min(windows - tn_get(&d->windows, TN_RELAXED), 3); i > 0; i--) {
		depot_end_window(&d->full);
		depot_end_window(&d->empty);
		d->need_before = d->need;
		d->need = 0;
		d->run = 0;
		d->untouched++;
	}
	tn_set(&d->windows, windows, TN_RELAXED);
}

static inline bool depot_is_over(const depots *all, const depot *d) {
	size_t slots = tn_get(&d->slots, TN_RELAXED);
	return slots > tn_get(&all->shard_slots, TN_RELAXED) || (slots > 0 && depots_are_over(all));
}

/* Two windows in a row did not touch the partial magazine, after the one that did. */
static inline bool depot_partial_is_surplus(const depot *d) {
	return d->partial != NULL && d->untouched > 2;
}

static inline magazine *depot_find_surplus(depots *all, depot *d) {
	bool over = depot_is_over(all, d);
	depot_enter(d);
	depot_end_windows(all, d);
	bool full = d->full.surplus > 0 || over;
	magazine_list *list = full ? &d->full : &d->empty;
	magazine *m = full || list->surplus > 0 ? depot_drop(list) : NULL;
	if (list->surplus > 0)
		list->surplus--;
	if (m == NULL && depot_partial_is_surplus(d)) {
		m = d->partial;
		d->partial = NULL;
		full = true;
	}
	if (m != NULL && full)
		depot_count_out(all, d, m);
	size_t left = d->full.surplus + d->empty.surplus + depot_partial_is_surplus(d);
	tn_set(&d->surplus, left, TN_RELAXED);
	depot_leave(d);
	return m;
}

/* Returns a magazine that must leave, full or empty; NULL when none must. Mostly none must, and that is
 * seen without the lock. */
static inline magazine *depot_take_surplus(depots *all, depot *d) {
	if (TN_LIKELY(tn_get(&d->windows, TN_RELAXED) == tn_get(&all->windows, TN_RELAXED) &&
				  tn_get(&d->surplus, TN_RELAXED) == 0 && !depot_is_over(all, d)))
		return NULL;
	return depot_find_surplus(all, d);
}

/* ---- exchanges ---- */

/* Gives a thread a shard of its node, once there are shards; another one when it is on another node. A
 * node without shards has its common depot. */
static inline void depots_take_seat(depots *all, depot_seat *seat) {
	const size_t count = tn_depots_count(all);
	if (count == 1 || (seat->own != 0 && depots_are_near(all, seat->own, seat->node)))
		return;
	const size_t of_node = count / all->nodes;
	size_t turn = of_node == 1 ? 0 : 1 + tn_add(&all->seats, 1, TN_RELAXED) % (of_node - 1);
	seat->own = (uint8_t)(turn * all->nodes + seat->node);
}

/* Looks into the shards of other threads on the node, or for `all_of_it` on all nodes, first into the
 * one that had some the last time. */
static inline magazine *depots_take_foreign(
	depots *all, depot_seat *seat, magazine *spare, bool all_of_it) {
	size_t count = tn_get(&all->shard_count, TN_ACQUIRE), at = seat->from;
	for (size_t i = 0; i < count; i++, at++) {
		at = at == 0 || at > count ? 1 : at;
		bool may = at != seat->own && (all_of_it || depots_are_near(all, at, seat->node));
		magazine *m = may ? depot_take_foreign(all, depot_at(all, at), spare, all_of_it) : NULL;
		if (m == NULL)
			continue;
		seat->from = (uint8_t)at;
		return m;
	}
	return NULL;
}

/* Takes a magazine with slots in it, NULL when there is none: the one that the thread gave last, else
 * one of the common depot, else one that other threads can spare, or `all_of_it`. In exchange the depot
 * where it was gets `spare`, an empty magazine or NULL, which the threads that fill that depot find
 * there. Without a magazine to take, `spare` stays the caller's. */
static inline magazine *tn_depots_take_full(
	depots *all, depot_seat *seat, magazine *spare, bool all_of_it) {
	depots_take_seat(all, seat);
	magazine *m = NULL;
	if (seat->own != 0)
		m = depot_take_own(all, depot_at(all, seat->own), spare);
	if (m == NULL && depots_has_node(all, seat->node))
		m = depot_take_full(all, depot_at(all, seat->node), spare);
	if (m == NULL)
		m = depots_take_foreign(all, seat, spare, all_of_it);
	if (m == NULL && all_of_it)
		m = depot_take_full(all, &all->common, spare);
	seat->moved += m == NULL ? 0 : (uint32_t)m->count;
	return m;
}

/* Gives a full magazine, whose slots are of node `home`, and takes an empty one, NULL when there is
 * none. Returns whether there was room, in the thread's depot and in all together: if not, `m` stays
 * the caller's. A magazine that is another node's goes to the shard there that stands for the
 * thread's. */
static inline bool tn_depots_give_full(
	depots *all, depot_seat *seat, size_t home, magazine *m, magazine **empty) {
	*empty = NULL;
	depots_take_seat(all, seat);
	if (!depots_has_node(all, home))
		return false;
	depot *d = depot_at(all, seat->own == 0 ? home : seat->own - seat->node + home);
	if (!depot_has_room(all, d, m) || !depots_charge(all, m))
		return false;
	seat->moved += (uint32_t)m->count;
	depot_enter(d);
	if (d->run > 0)
		d->run--;
	*empty = depot_pop(&d->empty);
	depot_count_in(d, m);
	depot_count(&d->exchanges);
	depot_push(&d->full, m);
	depot_leave(d);
	return true;
}

/* Takes an empty magazine of the thread's shard or of the common depot; NULL when there is none. */
static inline magazine *tn_depots_take_empty(depots *all, const depot_seat *seat) {
	magazine *m = tn_depot_take_empty(depot_at(all, seat->own));
	return m != NULL || seat->own == 0 ? m : tn_depot_take_empty(depot_at(all, seat->node));
}

/* Moves slots from `m` to the partial magazine `to`, as many as fit. */
static inline void depot_move_slots(const depots *all, magazine *to, magazine *m) {
	size_t moved = tn_min(m->count, all->magazine_slots - to->count);
	size_t weight = m->count == 0 ? 0 : m->weight / m->count * moved;
	void **from = depot_first_slot(m);
	to->count += moved;
	m->count -= moved;
	to->weight += weight;
	m->weight -= weight;
	memcpy(depot_first_slot(to), from, moved * sizeof(void *));
}

/* A thread that flushes leaves all that its shard holds to others. */
static inline void tn_depots_end_need(depots *all, const depot_seat *seat) {
	if (seat->own == 0)
		return;
	depot *d = depot_at(all, seat->own);
	depot_enter(d);
	d->run = d->need = d->need_before = 0;
	depot_leave(d);
}

/* Gives the common depot of node `home` a magazine with any number of slots. Returns whether there was
 * room: if not, `m` stays the caller's. `in_spite` of the bounds there always is. */
static inline bool tn_depots_give_some(depots *all, size_t home, magazine *m, bool in_spite) {
	if (in_spite)
		depots_charge_in_spite(all, m);
	else if (!depots_has_node(all, home) || !depots_charge(all, m))
		return false;
	tn_add(&all->moved, (size_t)m->count, TN_RELAXED);
	depot *d = depot_at(all, depots_has_node(all, home) ? home : 0);
	depot_enter(d);
	depot_count_in(d, m);
	depot_count(&d->exchanges);
	d->untouched = 0;
	if (d->partial != NULL)
		depot_move_slots(all, d->partial, m);
	if (d->partial != NULL && d->partial->count >= all->magazine_slots) {
		depot_push(&d->full, d->partial);
		d->partial = NULL;
	}
	if (m->count == 0)
		depot_push(&d->empty, m);
	else
		d->partial = m;
	tn_lock_give(&d->lock);
	return true;
}

/* ---- after an exchange ---- */

/* Whether it is this thread's turn to end the window and to look after another depot. */
static inline bool tn_depots_turn(const depots *all, depot_seat *seat) {
	if (seat->rest > 0)
		return seat->rest--, false;
	seat->rest = tn_get(&all->shard_count, TN_RELAXED) == 0 ? 0 : DEPOT_REST - 1;
	return true;
}

/* Ends the window of all depots once `window` slots have come or gone in it; returns whether it did. */
static inline bool tn_depots_end_window(depots *all, depot_seat *seat, size_t window) {
	size_t moved = tn_add(&all->moved, seat->moved, TN_RELAXED) + seat->moved;
	seat->moved = 0;
	/* Of two threads that see the end of a window, one ends it; a window of 0 is one thread's. */
	bool ended = window == 0 || (moved >= window && tn_replace(&all->moved, &moved, 0, TN_RELAXED));
	if (ended) {
		tn_add(&all->windows, 1, TN_RELAXED);
		tn_set(&all->due, 1, TN_RELAXED);
	}
	return ended;
}

/* Returns a magazine that must leave, full or empty, or NULL: of the thread's own depot, and in its
 * turn of one other after the other, so that shards without threads decay too. */
static inline magazine *tn_depots_take_surplus(depots *all, depot_seat *seat, bool turn) {
	magazine *m = depot_take_surplus(all, depot_at(all, seat->own));
	if (m != NULL || !turn || tn_get(&all->shard_count, TN_RELAXED) == 0)
		return m;
	m = depot_take_surplus(all, depot_at(all, seat->tended));
	if (m == NULL)
		seat->tended = seat->tended < tn_get(&all->shard_count, TN_ACQUIRE) ? seat->tended + 1 : 0;
	else
		seat->rest = 0;
	return m;
}

/* ---- shards ---- */

/* One for each processor, and a few where these are few: more gain nothing. Above SHARDS_MOST a look
 * through all of them costs more than it saves (docs/scaling.md). With the common depot, as many for
 * each node. */
static inline size_t tn_depots_shards_for(size_t processors, size_t nodes) {
	size_t count = SHARDS_LEAST;
	while (count < processors && count < SHARDS_MOST)
		count *= 2;
	return nodes == 1 ? count : count / nodes * nodes - 1;
}

/* Puts so many shards into the pages. */
static inline void tn_depots_make_shards(depots *all, size_t count) {
	for (size_t i = 0; i * DEPOTS_IN_PAGE < count; i++)
		memset(all->pages[i], 0, 4096);
	tn_set(&all->shard_count, count, TN_RELEASE);
}

#endif
