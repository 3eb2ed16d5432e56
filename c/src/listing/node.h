/* A listed allocator: its name, its place in the tree, and its figures, for readers on other threads
 * that neither stop nor slow down its owner.
 *
 * Nodes are type-stable: memory that was a node once is one for ever, so that a reader may read a node
 * that has gone. Its reads count only if `life` was odd and the same before and after them.
 *
 *   owner                                      reader, on any thread
 *   list: fields, life odd, link               walk by newest and older; below each node in turn
 *   publish: version odd, figures, even        copy until the version is even and the same
 *   unlist: unlink, life even                  a node that has gone: back to its parent, and on from
 *                                              the place that it had there
 *
 * I1  newest and older link the children of one parent, by falling places; a parent gives a place once.
 * I2  a node is unlinked before it is used again; a reader that stands on it then finds another life.
 * I3  the links below one parent are changed by one thread at a time: its owner, or under the lock of
 *     listing.c.
 *
 * No verify can check these while owners go on; c/tests/relacy/listed.cpp tries the orders of stores
 * and loads.
 *
 * Every field is stored with release and loaded with acquire, where Linux would have barriers: a read
 * after one of a field of a later life sees that life. The sequence lock is that of Lameter 2005. */
#ifndef TENURE_LISTED_H
#define TENURE_LISTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/atomics.h"

#ifndef TN_NODE_FIGURES
#define TN_NODE_FIGURES (sizeof(size_t) == 8 ? 18 : 20) /* two take 64 bits everywhere */
#endif
enum { TN_NODE_NAME_BYTES = 32, TN_NODE_LOOKS = 100 };
enum { TN_WANT_COUNT = 1 };

typedef struct tn_node {
	TN_ATOMIC(size_t) life;   /* odd while it is listed */
	TN_ATOMIC(size_t) number; /* counts the allocators that were here; the same after a move */
	TN_ATOMIC(struct tn_node *) parent;
	TN_ATOMIC(struct tn_node *) newest; /* child */
	TN_ATOMIC(struct tn_node *) older;  /* below the same parent */
	TN_ATOMIC(size_t) place;            /* below its parent */
	TN_ATOMIC(size_t) version; /* of the figures: odd while they are written, 0 before the first */
	TN_ATOMIC(size_t) figures[TN_NODE_FIGURES];
	TN_ATOMIC(char) name[TN_NODE_NAME_BYTES]; /* its owner reads it as a string */
	TN_ATOMIC(const void *) kind;
	TN_ATOMIC(void *) object;
	TN_ATOMIC(size_t) since_ms;
	TN_ATOMIC(size_t) seen_resets;
	TN_ATOMIC(size_t) moved;  /* walks that had begun when it last got another parent */
	TN_ATOMIC(size_t) wanted; /* requests of readers to the owner: TN_WANT_COUNT */
	/* Owner only. */
	TN_GUARDED(struct tn_node *) newer;
	TN_GUARDED(size_t) places; /* given so far */
	/* The allocators that a scope owns, newest first (base/list.h). */
	struct tn_node *owned, *next_owned, **link_owned;
	TN_GUARDED(size_t) index; /* of this memory, among all nodes */
} tn_node;

/* ---- owners ---- */

/* Begins a life, when all other fields are stored. Readers find the node only after that. */
static inline void tn_node_link(tn_node *n, tn_node *parent) {
	tn_node *older = tn_get(&parent->newest, TN_RELAXED);
	size_t place = TN_AT(parent->places) + 1;
	TN_AT(parent->places) = place;
	tn_set(&n->parent, parent, TN_RELEASE);
	tn_set(&n->place, place, TN_RELEASE);
	tn_set(&n->older, older, TN_RELEASE);
	TN_AT(n->newer) = NULL;
	if (older != NULL)
		TN_AT(older->newer) = n;
	tn_set(&n->life, tn_get(&n->life, TN_RELAXED) + 1, TN_RELEASE);
	tn_set(&parent->newest, n, TN_RELEASE);
}

/* Ends a life, when no reader can find the node any more. */
static inline void tn_node_unlink(tn_node *n) {
	tn_node *older = tn_get(&n->older, TN_RELAXED);
	tn_node *newer = TN_AT(n->newer);
	if (older != NULL)
		TN_AT(older->newer) = newer;
	if (newer != NULL)
		tn_set(&newer->older, older, TN_RELEASE);
	else
		tn_set(&tn_get(&n->parent, TN_RELAXED)->newest, older, TN_RELEASE);
	tn_set(&n->life, tn_get(&n->life, TN_RELAXED) + 1, TN_RELEASE);
}

/* Around the stores of figures: the version is odd in between. */
static inline void tn_node_begin_write(tn_node *n) {
	tn_set(&n->version, tn_get(&n->version, TN_RELAXED) + 1, TN_RELEASE);
}

static inline void tn_node_end_write(tn_node *n) {
	tn_set(&n->version, tn_get(&n->version, TN_RELAXED) + 1, TN_RELEASE);
}

static inline void tn_node_publish(tn_node *n, const size_t *figures, size_t count) {
	tn_node_begin_write(n);
	for (size_t i = 0; i < count; i++)
		tn_set(&n->figures[i], figures[i], TN_RELEASE);
	tn_node_end_write(n);
}

/* ---- readers ---- */

/* A node as a reader found it. */
typedef struct tn_step {
	tn_node *node; /* NULL: none */
	size_t life, place, number;
} tn_step;

static inline bool tn_node_is(const tn_node *n, size_t life) {
	return tn_get(&n->life, TN_ACQUIRE) == life;
}

/* Copies the figures as the owner published them. Returns false when it has not, or when it writes them
 * all the time: a snapshot is not worth a wait. */
static inline bool tn_node_read(const tn_node *n, size_t *figures, size_t count) {
	for (int looks = 0; looks < TN_NODE_LOOKS; looks++) {
		size_t version = tn_get(&n->version, TN_ACQUIRE);
		if (version == 0)
			return false;
		for (size_t i = 0; i < count; i++)
			figures[i] = tn_get(&n->figures[i], TN_ACQUIRE);
		if (version % 2 == 0 && tn_get(&n->version, TN_RELAXED) == version)
			return true;
	}
	return false;
}

/* Finds n, if it is listed below `parent` now. */
static inline bool tn_node_find(tn_node *n, const tn_node *parent, tn_step *step) {
	size_t life = tn_get(&n->life, TN_ACQUIRE);
	tn_step found = {n, life, tn_get(&n->place, TN_ACQUIRE), tn_get(&n->number, TN_ACQUIRE)};
	if (life % 2 == 0 || tn_get(&n->parent, TN_ACQUIRE) != parent || !tn_node_is(n, life))
		return false;
	*step = found;
	return true;
}

/* Finds the newest child with a place under `place`. There is none when the parent has no such child or
 * has gone, or when the list changes faster than it can be read. */
static inline tn_step tn_node_find_below(const tn_node *parent, size_t parent_life, size_t place) {
	const tn_step none = {NULL, 0, 0, 0};
	tn_step at = none;
	for (int looks = 0; looks < TN_NODE_LOOKS; looks++) {
		tn_node *n = tn_get(&parent->newest, TN_ACQUIRE);
		size_t last = SIZE_MAX;
		if (!tn_node_is(parent, parent_life))
			return none;
		/* A node that went and came back is at the front of the list again. */
		while (n != NULL && tn_node_find(n, parent, &at) && at.place < last) {
			/* The parent is asked once more: the node may be below its next life, whose places are
			 * higher. */
			if (at.place < place)
				return tn_node_is(parent, parent_life) ? at : none;
			last = at.place;
			n = tn_get(&n->older, TN_ACQUIRE);
			if (!tn_node_is(at.node, at.life))
				break;
		}
		if (n == NULL && (last == SIZE_MAX || tn_node_is(at.node, at.life)))
			return none;
	}
	return none;
}

/* Finds the child after `at` below the same parent. */
static inline tn_step tn_node_find_next(tn_step at, const tn_node *parent, size_t parent_life) {
	tn_node *older = tn_get(&at.node->older, TN_ACQUIRE);
	tn_step next = {NULL, 0, 0, 0};
	bool here = tn_node_is(at.node, at.life);
	if (here && (older == NULL || (tn_node_find(older, parent, &next) && next.place < at.place)))
		return next;
	return tn_node_find_below(parent, parent_life, at.place);
}

#endif
