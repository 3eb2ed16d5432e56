/* The depot: where threads exchange full magazines for empty ones.
 *
 *   | next | count | weight | NULL ... slots of `count` | a magazine at rest: its slots at the end
 *
 * A magazine belongs to one thread at a time, or to the depot: whoever takes the lock hands over whole
 * magazines and never follows a pointer that another thread may take away. That is why there is no tag
 * and no ABA here: the links are those of magazines, read and written under the lock.
 *
 * What nobody needs: the lowest number of full magazines in a window is what was not needed in it;
 * what was not needed in two windows in a row is surplus (as the victim generation of Go's sync.Pool,
 * with the low watermark of the h2o web server to tell what is used). How long a window is, the depot's
 * owner says.
 *
 * cites    Bonwick and Adams 2001, "Magazines and Vmem" */
#ifndef TENURE_DEPOT_H
#define TENURE_DEPOT_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

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

/* A stack of magazines and how low it has been. */
typedef struct magazine_list {
	TN_GUARDED(magazine *) newest;
	TN_GUARDED(size_t) count;
	TN_GUARDED(size_t) low;        /* fewest in this window */
	TN_GUARDED(size_t) low_before; /* in the window before */
	TN_GUARDED(size_t) surplus;    /* to leave: neither window needed them */
} magazine_list;

typedef struct depot {
	tn_lock lock;
	magazine_list full;
	magazine_list empty;
	TN_GUARDED(magazine *) partial; /* where what threads flush is gathered, or NULL */
	TN_GUARDED(size_t) slots;       /* in full magazines and the partial one */
	TN_GUARDED(size_t) weight;
	TN_GUARDED(size_t) moved; /* slots that came or went in this window */
	size_t magazine_slots;    /* the partial one is full then */
	size_t most_slots;        /* what the depot takes */
	size_t most_weight;
} depot;

/* The first of a magazine's slots at rest. */
static inline void **first_slot(magazine *m) {
	return &m->words[TN_DEPOT_WORDS - TN_AT(m->count)];
}

static inline void add_to_list(magazine_list *list, magazine *m) {
	TN_AT(m->next) = TN_AT(list->newest);
	TN_AT(list->newest) = m;
	TN_AT(list->count) = TN_AT(list->count) + 1;
}

static inline magazine *take_from_list(magazine_list *list) {
	magazine *m = TN_AT(list->newest);
	if (m == NULL)
		return NULL;
	TN_AT(list->newest) = TN_AT(m->next);
	TN_AT(list->count) = TN_AT(list->count) - 1;
	if (TN_AT(list->count) < TN_AT(list->low))
		TN_AT(list->low) = TN_AT(list->count);
	return m;
}

/* Takes a magazine that leaves for good: what was not needed before is one less too. */
static inline magazine *drop_from_list(magazine_list *list) {
	size_t low = TN_AT(list->low), before = TN_AT(list->low_before);
	magazine *m = take_from_list(list);
	if (m == NULL)
		return NULL;
	TN_AT(list->low) = low == 0 ? 0 : low - 1;
	TN_AT(list->low_before) = before == 0 ? 0 : before - 1;
	return m;
}

static inline void end_list_window(magazine_list *list) {
	size_t low = TN_AT(list->low), before = TN_AT(list->low_before);
	TN_AT(list->surplus) = low < before ? low : before;
	TN_AT(list->low_before) = low;
	TN_AT(list->low) = TN_AT(list->count);
}

static inline void count_in(depot *d, const magazine *m) {
	TN_AT(d->slots) = TN_AT(d->slots) + TN_AT(m->count);
	TN_AT(d->weight) = TN_AT(d->weight) + TN_AT(m->weight);
	TN_AT(d->moved) = TN_AT(d->moved) + TN_AT(m->count);
}

static inline void count_out(depot *d, const magazine *m) {
	TN_AT(d->slots) = TN_AT(d->slots) - TN_AT(m->count);
	TN_AT(d->weight) = TN_AT(d->weight) - TN_AT(m->weight);
	TN_AT(d->moved) = TN_AT(d->moved) + TN_AT(m->count);
}

/* By a fork, the depot of the child may come to hold more than it should. */
static inline bool is_beyond_bounds(const depot *d) {
	return TN_AT(d->slots) > d->most_slots || TN_AT(d->weight) > d->most_weight;
}

static inline bool has_room(const depot *d, const magazine *m) {
	return !is_beyond_bounds(d) && TN_AT(m->count) <= d->most_slots - TN_AT(d->slots) &&
	       TN_AT(m->weight) <= d->most_weight - TN_AT(d->weight);
}

/* ---- one exchange each, under the lock ---- */

/* Takes a magazine with slots in it, NULL when there is none; `spare` (NULL: none), an empty one, stays
 * in its place if there is. */
static inline magazine *tn_depot_take_full(depot *d, magazine *spare) {
	tn_lock_take(&d->lock);
	magazine *m = take_from_list(&d->full);
	if (m == NULL) {
		m = TN_AT(d->partial);
		TN_AT(d->partial) = NULL;
	}
	if (m != NULL) {
		count_out(d, m);
		if (spare != NULL)
			add_to_list(&d->empty, spare);
	}
	tn_lock_give(&d->lock);
	return m;
}

/* Gives a full magazine and takes an empty one, NULL when there is none. Returns whether the depot had
 * room: if not, `m` stays the caller's. */
static inline bool tn_depot_give_full(depot *d, magazine *m, magazine **empty) {
	tn_lock_take(&d->lock);
	bool room = has_room(d, m);
	*empty = room ? take_from_list(&d->empty) : NULL;
	if (room) {
		count_in(d, m);
		add_to_list(&d->full, m);
	}
	tn_lock_give(&d->lock);
	return room;
}

static inline magazine *tn_depot_take_empty(depot *d) {
	tn_lock_take(&d->lock);
	magazine *m = take_from_list(&d->empty);
	tn_lock_give(&d->lock);
	return m;
}

/* Moves slots from `m` to the partial magazine, as many as fit. */
static inline void top_up_partial(depot *d, magazine *m) {
	magazine *to = TN_AT(d->partial);
	size_t room = d->magazine_slots - TN_AT(to->count);
	size_t moved = TN_AT(m->count) < room ? TN_AT(m->count) : room;
	size_t weight = TN_AT(m->count) == 0 ? 0 : TN_AT(m->weight) / TN_AT(m->count) * moved;
	void **from = first_slot(m);
	TN_AT(to->count) = TN_AT(to->count) + moved;
	TN_AT(m->count) = TN_AT(m->count) - moved;
	TN_AT(to->weight) = TN_AT(to->weight) + weight;
	TN_AT(m->weight) = TN_AT(m->weight) - weight;
	memcpy(first_slot(to), from, moved * sizeof(void *));
}

/* Gives a magazine with any number of slots. Returns whether the depot had room, or took it in spite of
 * its bounds; if not, it stays the caller's. */
static inline bool tn_depot_give_some(depot *d, magazine *m, bool in_spite) {
	tn_lock_take(&d->lock);
	bool taken = in_spite || has_room(d, m);
	if (taken) {
		count_in(d, m);
		if (TN_AT(d->partial) != NULL)
			top_up_partial(d, m);
		if (TN_AT(d->partial) != NULL && TN_AT(TN_AT(d->partial)->count) >= d->magazine_slots) {
			add_to_list(&d->full, TN_AT(d->partial));
			TN_AT(d->partial) = NULL;
		}
		if (TN_AT(m->count) == 0)
			add_to_list(&d->empty, m);
		else
			TN_AT(d->partial) = m;
	}
	tn_lock_give(&d->lock);
	return taken;
}

/* Ends the window once `window` slots have come or gone in it. Returns a magazine that must leave, full
 * or empty, or NULL when none must. */
static inline magazine *tn_depot_settle(depot *d, size_t window) {
	tn_lock_take(&d->lock);
	if (TN_AT(d->moved) >= window) {
		TN_AT(d->moved) = 0;
		end_list_window(&d->full);
		end_list_window(&d->empty);
	}
	magazine_list *list = TN_AT(d->full.surplus) > 0 || is_beyond_bounds(d) ? &d->full : &d->empty;
	magazine *m = NULL;
	if (TN_AT(list->surplus) > 0 || list == &d->full)
		m = drop_from_list(list);
	if (TN_AT(list->surplus) > 0)
		TN_AT(list->surplus) = TN_AT(list->surplus) - 1;
	if (m != NULL && list == &d->full)
		count_out(d, m);
	tn_lock_give(&d->lock);
	return m;
}

/* Magazines that the depot holds. */
static inline size_t tn_depot_count(depot *d) {
	tn_lock_take(&d->lock);
	size_t count = TN_AT(d->full.count) + TN_AT(d->empty.count) + (TN_AT(d->partial) != NULL);
	tn_lock_give(&d->lock);
	return count;
}

/* Takes any magazine there is; NULL when the depot holds none. */
static inline magazine *tn_depot_take_any(depot *d) {
	magazine *m = tn_depot_take_full(d, NULL);
	return m != NULL ? m : tn_depot_take_empty(d);
}

#endif
