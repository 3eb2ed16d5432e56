/* All listed allocators, for their owners. Nodes, and how readers walk them: node.h. */
#ifndef TENURE_LISTING_H
#define TENURE_LISTING_H

#include <string.h>

#include <tenure/stats.h>

#include "node.h"

/* The position that an owner writes with every call, as it was when the owner published: readers add
 * how far it has come since. `room` is how far it can come before the owner publishes again. */
typedef struct tn_position {
	size_t at, room;
} tn_position;

/* The figures of a node are those of tn_stats, in its order, as many as the kind has. Those after
 * external_bytes are not published: the kind's look reads them where they are counted. */
#define TN_FIGURE_COUNT(end)                                                                           \
	((offsetof(tn_stats, end) - offsetof(tn_stats, live_bytes)) / sizeof(size_t))
enum {
	TN_FIGURES_PLAIN = TN_FIGURE_COUNT(slot_bytes), /* up to resets */
	TN_FIGURES_ALL = TN_FIGURE_COUNT(exchanges),
};

typedef struct tn_node_kind {
	tn_kind kind;
	size_t figures; /* TN_FIGURES_... */
	/* Completes the published figures by the owner's position, which it reads while the owner goes on:
	 * see TN_RACY. The object does not end meanwhile. NULL: the published figures are complete. */
	void (*look)(const void *object, tn_position from, tn_listed *listed);
	/* For a scope that owns it: destroy (without a word about live objects), trim, stats and verify. */
	void (*end)(void *object);
	size_t (*trim)(void *object);
	void (*stats)(const void *object, tn_stats *stats);
	bool (*verify)(const void *object);
} tn_node_kind;

/* Defines `name`, the kind of an allocator that scopes can own: trim, stats and verify are those of its
 * API, tn_ALLOCATOR_trim and so on. */
#define TN_OWNED_KIND(name, allocator, number, figure_count, look_at, end_owned)                       \
	static size_t name##_trim(void *object) {                                                          \
		return tn_##allocator##_trim(object);                                                          \
	}                                                                                                  \
	static void name##_stats(const void *object, tn_stats *stats) {                                    \
		tn_##allocator##_stats(object, stats);                                                         \
	}                                                                                                  \
	static bool name##_verify(const void *object) {                                                    \
		return tn_##allocator##_verify(object);                                                        \
	}                                                                                                  \
	static const tn_node_kind name = {.kind = number,                                                  \
		.figures = figure_count,                                                                       \
		.look = look_at,                                                                               \
		.end = end_owned,                                                                              \
		.trim = name##_trim,                                                                           \
		.stats = name##_stats,                                                                         \
		.verify = name##_verify}

/* A function that reads one aligned word while another thread writes it with plain stores. Every
 * machine that Tenure runs on writes it at once, though C does not say so. The word is a figure: it is
 * checked against its range, and is no pointer to follow. */
#if defined(__GNUC__)
#define TN_RACY __attribute__((no_sanitize("thread")))
#else
#define TN_RACY
#endif

/* The parts of the next two that an allocator without a name never comes to. */
bool tn_list_add(
	tn_node *parent, const tn_node_kind *kind, void *object, const char *name, tn_node **node);
void tn_list_remove(tn_node *n);

/* Lists an allocator: as a root if it has a name; or below a scope, by its name or its kind.
 *
 * parent   NULL for a root
 * node     receives its node; NULL when it is not listed
 * returns  whether that is done
 * fails    ENOMEM */
static inline bool tn_list_object(
	tn_node *parent, const tn_node_kind *kind, void *object, const char *name, tn_node **node) {
	*node = NULL;
	return (parent == NULL && name == NULL) || tn_list_add(parent, kind, object, name, node);
}

/* Unlists an allocator: no reader looks at the object after it returns. NULL is a no-op. */
static inline void tn_unlist_object(tn_node *n) {
	if (n != NULL)
		tn_list_remove(n);
}

/* The name under which it is listed, for its owner. */
static inline const char *tn_node_name(const tn_node *n) {
	return (const char *)n->name;
}

/* Starts the age of an allocator. To be called when it first takes memory, and at its resets; otherwise
 * the next snapshot starts it. */
void tn_list_begin_age(tn_node *n, uint64_t resets);

/* Publishes the first `count` figures, as many as the kind has. To be called by the owner, where it
 * changes chunks or magazines. */
TN_INLINE void tn_list_publish(tn_node *n, const tn_stats *stats, size_t count, tn_position from) {
	size_t figures[2 + TN_FIGURES_ALL];
	figures[0] = from.at;
	figures[1] = from.room;
	memcpy(figures + 2, &stats->live_bytes, count * sizeof figures[0]);
	bool fresh = tn_get(&n->since_ms, TN_RELAXED) == 0 && stats->committed_bytes != 0;
	if (fresh || tn_get(&n->seen_resets, TN_RELAXED) != (size_t)stats->resets)
		tn_list_begin_age(n, stats->resets);
	tn_node_publish(n, figures, 2 + count);
}

/* The same figure by figure, between tn_node_begin_write and tn_node_end_write: without a struct, in
 * fewer instructions. */
#define TN_FIGURE_SET(n, figure, value)                                                                \
	tn_set(&(n)->figures[2 + TN_FIGURE_COUNT(figure)], value, TN_RELEASE)
#define TN_FIGURE_SET_64(n, figure, value) tn_node_set_64(n, 2 + TN_FIGURE_COUNT(figure), value)
TN_INLINE void tn_node_set_64(tn_node *n, size_t index, uint64_t value) {
	size_t words[sizeof value / sizeof(size_t)];
	memcpy(words, &value, sizeof value);
	for (size_t i = 0; i < sizeof value / sizeof(size_t); i++)
		tn_set(&n->figures[index + i], words[i], TN_RELEASE);
}

/* Takes a request of readers: TN_WANT_COUNT (of partly used chunks, which needs a walk).
 * Returns whether there was one; of NULL, none. */
static inline bool tn_list_take_wanted(tn_node *n, size_t what) {
	size_t wanted = n == NULL ? 0 : tn_get(&n->wanted, TN_RELAXED);
	if (TN_LIKELY((wanted & what) == 0))
		return false;
	/* A request at this moment may be lost; the next snapshot repeats it. */
	tn_set(&n->wanted, wanted & ~what, TN_RELAXED);
	return true;
}

/* ---- for scopes, which contain their nodes ---- */

/* Records that contain a node each, at `node_offset`. A record begins as zeros, or as it was given
 * back. Their memory never goes back to the page layer. */
typedef struct tn_records {
	size_t bytes, node_offset;
	/* Under the lock. */
	char *oldest, *youngest; /* unused ones, linked by `newer` of their nodes */
	size_t count, fresh;     /* of them; of these the first ones, never used */
} tn_records;

/* Records that stay unused before one is used again, so that a stale pointer finds an unused one. */
enum { TN_RECORDS_IDLE = TN_MODE == TN_MODE_DEBUG ? 1024 : 0 };

/* Takes up to `*count` records, linked by `newer` of their nodes, and stores their number there.
 *
 * returns  the first one
 * fails    NULL: ENOMEM */
void *tn_list_take_records(tn_records *store, size_t *count);
void tn_list_give_records(tn_records *store, void *first, size_t count);

/* To be called before an allocator is listed: sets the hooks of fork, and starts the live view if the
 * environment asks for it. */
void tn_list_begin(void);

/* Lists an object that contains its node. The parent's links are protected as I3 in node.h says. */
TN_INLINE void tn_list_node(
	tn_node *parent, tn_node *n, const tn_node_kind *kind, void *object, const char *name) {
	size_t size = 0;
	for (; size < TN_NAME_BYTES && name[size] != '\0'; size++)
		tn_set(&n->name[size], name[size], TN_RELEASE);
	tn_set(&n->name[size], '\0', TN_RELEASE);
	tn_set(&n->number, tn_get(&n->number, TN_RELAXED) + 1, TN_RELEASE);
	tn_set(&n->kind, (const void *)kind, TN_RELEASE);
	tn_set(&n->object, object, TN_RELEASE);
	tn_set(&n->version, 0, TN_RELEASE);
	tn_set(&n->since_ms, 0, TN_RELEASE);
	tn_set(&n->seen_resets, 0, TN_RELEASE);
	tn_set(&n->moved, 0, TN_RELEASE);
	tn_set(&n->wanted, 0, TN_RELAXED);
	tn_node_link(n, parent);
}

/* Gives a listed node another parent. I3 holds for both parents. */
void tn_list_move_node(tn_node *n, tn_node *parent);

/* The parent of all roots, and the lock under which it and shared parents are changed. A holder takes
 * no other lock than the page layer's. */
extern tn_node tn_list_root;
void tn_list_lock(void);
void tn_list_unlock(void);

/* ---- idle memory ---- */

/* An allocator, listed or not, whose memory only its owner may touch. Any thread may ask it to trim. */
typedef struct tn_keeper {
	/* Makes the owner's next call take the slow path. Called under the lock, by any thread. */
	void (*ask)(struct tn_keeper *k);
	struct tn_keeper *next, **link;
} tn_keeper;
void tn_list_add_keeper(tn_keeper *k, void (*ask)(tn_keeper *k));
/* No thread asks it after that. */
void tn_list_remove_keeper(tn_keeper *k);
/* Asks all keepers, and every arena by tn_list_trims. */
void tn_list_ask_all(void);
/* How often all were asked to trim: an arena compares it on its slow paths. */
extern TN_ATOMIC(uint32_t) tn_list_trims;

/* As tn_stats_snapshot, from one node on. */
size_t tn_list_each(tn_node *from, bool (*visit)(const tn_listed *listed, void *ctx), void *ctx);

#endif
