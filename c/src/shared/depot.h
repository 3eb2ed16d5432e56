/* The depot: where threads exchange full magazines for empty ones.
 *
 *   | next | count | weight | NULL ... slots of `count` | a magazine at rest: its slots at the end
 *
 * A magazine belongs to one thread at a time, or to the depot. A thread that takes the lock hands over
 * whole magazines and never follows a pointer that another thread may take away. So there is no tag and
 * no ABA here: only magazines are linked, and the links are read and written under the lock.
 *
 * Surplus: the fewest full magazines in a window are those that the window did not need. Those that two
 * windows in a row did not need are surplus (as the victim generation of Go's sync.Pool, with the low
 * watermark of the h2o web server). The depot's owner says how long a window is.
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
	TN_GUARDED(size_t) slots;       /* in full magazines and the partial one */
	TN_GUARDED(size_t) weight;
	TN_GUARDED(size_t) moved; /* slots that came or went in this window */
	size_t magazine_slots;    /* with so many the partial magazine is full */
	size_t most_slots;        /* bounds of what the depot holds */
	size_t most_weight;
	/* Written under the lock, read by anyone. */
	TN_ATOMIC(uint64_t) exchanges; /* magazines that threads put in or took */
	TN_ATOMIC(uint64_t) waits;     /* times that the lock was held by another thread */
} depot;

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

static inline void depot_count_in(depot *d, const magazine *m) {
	d->slots += m->count;
	d->weight += m->weight;
	d->moved += m->count;
}

static inline void depot_count_out(depot *d, const magazine *m) {
	d->slots -= m->count;
	d->weight -= m->weight;
	d->moved += m->count;
}

/* A fork may leave the child's depot with more than its bounds allow. */
static inline bool depot_is_over(const depot *d) {
	return d->slots > d->most_slots || d->weight > d->most_weight;
}

static inline bool depot_has_room(const depot *d, const magazine *m) {
	return !depot_is_over(d) && m->count <= d->most_slots - d->slots &&
	       m->weight <= d->most_weight - d->weight;
}

static inline void depot_count(TN_ATOMIC(uint64_t) * figure) {
	tn_set(figure, tn_get(figure, TN_RELAXED) + 1, TN_RELAXED);
}

static inline void depot_enter(depot *d) {
	if (TN_LIKELY(tn_lock_try(&d->lock)))
		return;
	tn_lock_take(&d->lock);
	depot_count(&d->waits);
}

/* ---- one exchange each, under the lock ---- */

/* Takes a magazine with slots in it, NULL when there is none. In exchange the depot gets `spare`, an
 * empty magazine or NULL; without one to take, `spare` stays the caller's. */
static inline magazine *tn_depot_take_full(depot *d, magazine *spare) {
	depot_enter(d);
	magazine *m = depot_pop(&d->full);
	if (m == NULL) {
		m = d->partial;
		d->partial = NULL;
	}
	if (m != NULL) {
		depot_count_out(d, m);
		depot_count(&d->exchanges);
		if (spare != NULL)
			depot_push(&d->empty, spare);
	}
	tn_lock_give(&d->lock);
	return m;
}

/* Gives a full magazine and takes an empty one, NULL when there is none. Returns whether the depot had
 * room: if not, `m` stays the caller's. */
static inline bool tn_depot_give_full(depot *d, magazine *m, magazine **empty) {
	depot_enter(d);
	bool room = depot_has_room(d, m);
	*empty = room ? depot_pop(&d->empty) : NULL;
	if (room) {
		depot_count_in(d, m);
		depot_count(&d->exchanges);
		depot_push(&d->full, m);
	}
	tn_lock_give(&d->lock);
	return room;
}

static inline magazine *tn_depot_take_empty(depot *d) {
	depot_enter(d);
	magazine *m = depot_pop(&d->empty);
	tn_lock_give(&d->lock);
	return m;
}

/* Moves slots from `m` to the partial magazine `to`, as many as fit. */
static inline void depot_move_slots(depot *d, magazine *to, magazine *m) {
	size_t moved = tn_min(m->count, d->magazine_slots - to->count);
	size_t weight = m->count == 0 ? 0 : m->weight / m->count * moved;
	void **from = depot_first_slot(m);
	to->count += moved;
	m->count -= moved;
	to->weight += weight;
	m->weight -= weight;
	memcpy(depot_first_slot(to), from, moved * sizeof(void *));
}

/* Gives a magazine with any number of slots. Returns whether the depot took it: if not, `m` stays the
 * caller's. `in_spite` of its bounds the depot takes it always. */
static inline bool tn_depot_give_some(depot *d, magazine *m, bool in_spite) {
	depot_enter(d);
	bool taken = in_spite || depot_has_room(d, m);
	if (taken) {
		depot_count_in(d, m);
		depot_count(&d->exchanges);
		if (d->partial != NULL)
			depot_move_slots(d, d->partial, m);
		if (d->partial != NULL && d->partial->count >= d->magazine_slots) {
			depot_push(&d->full, d->partial);
			d->partial = NULL;
		}
		if (m->count == 0)
			depot_push(&d->empty, m);
		else
			d->partial = m;
	}
	tn_lock_give(&d->lock);
	return taken;
}

/* Ends the window once `window` slots have come or gone in it. Returns a magazine that must leave, full
 * or empty, or NULL when none must. */
static inline magazine *tn_depot_take_surplus(depot *d, size_t window) {
	depot_enter(d);
	if (d->moved >= window) {
		d->moved = 0;
		depot_end_window(&d->full);
		depot_end_window(&d->empty);
	}
	bool full = d->full.surplus > 0 || depot_is_over(d);
	magazine_list *list = full ? &d->full : &d->empty;
	magazine *m = full || list->surplus > 0 ? depot_drop(list) : NULL;
	if (list->surplus > 0)
		list->surplus--;
	if (m != NULL && full)
		depot_count_out(d, m);
	tn_lock_give(&d->lock);
	return m;
}

/* Magazines that the depot holds. */
static inline size_t tn_depot_count(depot *d) {
	depot_enter(d);
	size_t count = d->full.count + d->empty.count + (d->partial != NULL);
	tn_lock_give(&d->lock);
	return count;
}

/* Takes any magazine there is; NULL when the depot holds none. */
static inline magazine *tn_depot_take_any(depot *d) {
	magazine *m = tn_depot_take_full(d, NULL);
	return m != NULL ? m : tn_depot_take_empty(d);
}

#endif
