/* All listed allocators: where their nodes come from, and snapshots. How a node is read while its owner
 * goes on: node.h.
 *
 * tn_list_add        take_records, tn_list_node
 * tn_stats_snapshot  begin_walk, visit_pages, visit_below
 *   visit_below      for each node: visit (read), then what is below it, then find_next
 *
 * The lock is held for one record, one node, one visit: never while a callback runs. */
#include "listing.h"

#include <errno.h>
#include <string.h>

#include "../base/list.h"
#include "../base/lock.h"
#include "../base/modes.h"
#include "../pages/pages.h"
#include "../watch/live.h"

enum {
	LIST_TRAIL = 64,      /* levels that a walk remembers above the one that it is on */
	LIST_RECORD_STEP = 64 /* records that are carved at a time */
};
_Static_assert(2 + TN_FIGURES_ALL <= TN_NODE_FIGURES, "a node has room for the figures");
_Static_assert(TN_NODE_NAME_BYTES == TN_NAME_BYTES + 1, "and for the name");

tn_node tn_list_root = {.life = 1};
TN_ATOMIC(uint32_t) tn_list_trims;

static struct {
	tn_lock lock;
	size_t last_index;
	tn_records nodes;
	bool on_fork;            /* the hooks are set */
	TN_ATOMIC(size_t) walks; /* that have begun */
	tn_keeper *keepers;      /* under the lock */
} listing = {.nodes = {.bytes = sizeof(tn_node)}, .last_index = 1 /* the page layer's */};

void tn_list_lock(void) {
	tn_lock_take(&listing.lock);
}

void tn_list_unlock(void) {
	tn_lock_give(&listing.lock);
}

/* ---- records ---- */

static tn_node *list_node_of(const tn_records *store, char *record) {
	return (tn_node *)(void *)(record + store->node_offset);
}

static void list_push_record(tn_records *store, char *record) {
	list_node_of(store, record)->newer = NULL;
	if (store->oldest == NULL)
		store->oldest = record;
	else
		list_node_of(store, store->youngest)->newer = (tn_node *)(void *)record;
	store->youngest = record;
	store->count++;
}

/* Carves a chunk into records, which are taken before those that were used. */
static bool list_carve_records(tn_records *store) {
	size_t bytes = tn_round_up(LIST_RECORD_STEP * store->bytes, TN_OS_PAGE);
	char *chunk = tn_pages_acquire_kept(bytes);
	if (chunk == NULL)
		return false;
	memset(chunk, 0, bytes);
	for (size_t i = bytes / store->bytes; i > 0; i--) {
		char *record = chunk + (i - 1) * store->bytes;
		tn_node *n = list_node_of(store, record);
		n->index = ++listing.last_index;
		n->newer = (tn_node *)(void *)store->oldest;
		store->oldest = record;
		store->youngest = store->youngest == NULL ? record : store->youngest;
	}
	store->count += bytes / store->bytes;
	store->fresh += bytes / store->bytes;
	return true;
}

static bool list_has_spare(const tn_records *store) {
	return store->count > TN_RECORDS_IDLE || store->fresh > 0;
}

void *tn_list_take_records(tn_records *store, size_t *count) {
	tn_node *last = NULL;
	size_t taken = 0;
	tn_list_lock();
	/* Without memory, a record that was used just now will do. */
	bool more = list_has_spare(store) || list_carve_records(store) || store->count > 0;
	void *first = more ? store->oldest : NULL;
	for (; more && taken < *count; taken++) {
		last = list_node_of(store, store->oldest);
		store->oldest = (char *)last->newer;
		store->count--;
		store->fresh -= store->fresh > 0;
		more = list_has_spare(store);
	}
	if (store->oldest == NULL)
		store->youngest = NULL;
	if (last != NULL)
		last->newer = NULL;
	*count = taken;
	tn_list_unlock();
	return first;
}

void tn_list_give_records(tn_records *store, void *first, size_t count) {
	tn_list_lock();
	for (char *record = first; count > 0; count--) {
		char *next = (char *)list_node_of(store, record)->newer;
		list_push_record(store, record);
		record = next;
	}
	tn_list_unlock();
}

/* ---- owners ---- */

static void list_set_hooks(void) {
	if (tn_get(&listing.on_fork, TN_ACQUIRE))
		return;
	tn_os_on_fork(TN_FORK_LISTING, tn_list_lock, tn_list_unlock, tn_list_unlock);
	tn_set(&listing.on_fork, true, TN_RELEASE);
}

void tn_list_begin(void) {
	list_set_hooks();
	tn_live_begin_if_asked();
}

void tn_list_move_node(tn_node *n, tn_node *parent) {
	tn_node_unlink(n);
	tn_set(&n->moved, tn_get(&listing.walks, TN_RELAXED), TN_RELEASE);
	tn_node_link(n, parent);
}

bool tn_list_add(
	tn_node *parent, const tn_node_kind *kind, void *object, const char *name, tn_node **node) {
	size_t count = 1;
	tn_list_begin();
	tn_node *n = tn_list_take_records(&listing.nodes, &count);
	if (n == NULL)
		return false;
	*node = n;
	tn_list_lock();
	tn_list_node(parent == NULL ? &tn_list_root : parent, n, kind, object,
		name == NULL ? tn_kind_name(kind->kind) : name);
	tn_list_unlock();
	if (parent != NULL)
		TN_LIST_PUSH(&parent->owned, n, next_owned, link_owned);
	return true;
}

/* A reader looks at the object under the lock; so any parent's child is unlisted under it. */
void tn_list_remove(tn_node *n) {
	TN_LIST_UNLINK(n, next_owned, link_owned);
	tn_list_lock();
	tn_node_unlink(n);
	list_push_record(&listing.nodes, (char *)n);
	tn_list_unlock();
}

void tn_list_begin_age(tn_node *n, uint64_t resets) {
	tn_set(&n->since_ms, (size_t)tn_os_coarse_milliseconds(), TN_RELAXED);
	tn_set(&n->seen_resets, (size_t)resets, TN_RELAXED);
}

/* ---- idle memory ---- */

void tn_list_add_keeper(tn_keeper *k, void (*ask)(tn_keeper *k)) {
	list_set_hooks();
	k->ask = ask;
	tn_list_lock();
	TN_LIST_PUSH(&listing.keepers, k, next, link);
	tn_list_unlock();
}

void tn_list_remove_keeper(tn_keeper *k) {
	if (k->ask == NULL)
		return;
	tn_list_lock();
	TN_LIST_UNLINK(k, next, link);
	tn_list_unlock();
}

void tn_list_ask_all(void) {
	tn_add(&tn_list_trims, 1, TN_RELAXED);
	list_set_hooks();
	tn_list_lock();
	for (tn_keeper *k = listing.keepers; k != NULL; k = k->next)
		k->ask(k);
	tn_list_unlock();
}

/* ---- readers ---- */

/* The time since the age began; if the owner has not begun it, it begins now. */
static uint64_t list_age_of(tn_node *n, const tn_stats *stats) {
	size_t since = tn_get(&n->since_ms, TN_RELAXED);
	bool taken = since == 0 && stats->committed_bytes != 0;
	if (taken || tn_get(&n->seen_resets, TN_RELAXED) != (size_t)stats->resets) {
		tn_list_begin_age(n, stats->resets);
		return 0;
	}
	return since == 0 ? 0 : (size_t)tn_os_coarse_milliseconds() - since;
}

/* Reads a node that stays listed meanwhile. */
static void list_read(tn_node *n, tn_listed *listed) {
	size_t figures[TN_NODE_FIGURES];
	const tn_node_kind *kind = tn_get(&n->kind, TN_ACQUIRE);
	*listed = (tn_listed){.kind = kind->kind};
	for (size_t i = 0; i < TN_NAME_BYTES; i++)
		listed->stats.name[i] = tn_get(&n->name[i], TN_ACQUIRE);
	tn_position from = {0, 0};
	if (tn_node_read(n, figures, 2 + kind->figures)) {
		memcpy(&listed->stats.live_bytes, figures + 2, kind->figures * sizeof(size_t));
		from = (tn_position){figures[0], figures[1]};
	}
	if (kind->look != NULL)
		kind->look(tn_get(&n->object, TN_ACQUIRE), from, listed);
	listed->age_ms = list_age_of(n, &listed->stats);
}

typedef struct visit_job {
	bool (*visit)(const tn_listed *listed, void *ctx);
	void *ctx;
	size_t wanted; /* TN_WANT_..., of each */
	size_t walk;   /* its number: a node that was moved since it began may have been visited */
	size_t visited;
	bool stopped;
} visit_job;

/* The way from the start of a walk to the node that it is at. A walk must know the way back when that
 * node has gone, and allocates nothing; so it remembers the last levels, and the first one, from which
 * it goes on when it is lost. */
typedef struct trail {
	tn_step start, first; /* depths 0 and 1 */
	tn_step steps[LIST_TRAIL];
	unsigned depth, kept; /* levels below the start; of these, how many parents are kept */
} trail;

static void list_push_step(trail *t, tn_step at) {
	if (t->depth == 1)
		t->first = at;
	t->steps[t->depth++ % LIST_TRAIL] = at;
	t->kept += t->kept < LIST_TRAIL;
}

/* Takes back the node above `at`, which is at t->depth: remembered, or found from `at`. There is none
 * when the way is lost: `at` has gone, or the node above was moved since the walk began. */
static tn_step list_pop_step(trail *t, tn_step at, size_t walk) {
	tn_step above = {NULL, 0, 0, 0};
	t->depth--;
	if (t->kept > 0) {
		t->kept--;
		return t->steps[t->depth % LIST_TRAIL];
	}
	if (t->depth <= 1)
		return t->depth == 0 ? t->start : t->first;
	tn_node *parent = tn_get(&at.node->parent, TN_ACQUIRE);
	tn_node *grandparent = tn_get(&parent->parent, TN_ACQUIRE);
	bool found = grandparent != NULL && tn_node_find(parent, grandparent, &above);
	/* A node ends before its parent does. */
	if (!found || !tn_node_is(at.node, at.life) || tn_get(&parent->moved, TN_ACQUIRE) >= walk)
		above.node = NULL;
	return above;
}

/* Finds the node to visit after `at` and all below it. If the way back is lost, that is the one after
 * the first node of the way. */
static tn_step list_find_next(trail *t, tn_step at, size_t walk) {
	while (t->depth > 0) {
		tn_step above = list_pop_step(t, at, walk);
		if (above.node == NULL) {
			t->depth = 1;
			at = t->first;
			continue;
		}
		tn_step next = tn_node_find_next(at, above.node, above.life);
		if (next.node != NULL) {
			list_push_step(t, above);
			return next;
		}
		at = above;
	}
	return (tn_step){NULL, 0, 0, 0};
}

static uint64_t list_id_of(tn_step at) {
	return at.node == &tn_list_root ? 0 : (uint64_t)at.node->index << 32 | (uint32_t)at.number;
}

/* Copies and visits one node. Returns false when it had gone, or may have been visited elsewhere. */
static bool list_visit(visit_job *job, tn_step at, unsigned depth, uint64_t parent_id) {
	tn_listed listed;
	tn_list_lock();
	bool there = tn_node_is(at.node, at.life) && tn_get(&at.node->moved, TN_ACQUIRE) < job->walk;
	if (there) {
		list_read(at.node, &listed);
		size_t wanted = tn_get(&at.node->wanted, TN_RELAXED) | job->wanted;
		/* A request that the owner takes at this moment may be repeated. */
		tn_set(&at.node->wanted, wanted, TN_RELAXED);
		there = tn_node_is(at.node, at.life);
	}
	tn_list_unlock();
	if (!there)
		return false;
	listed.depth = depth;
	listed.id = list_id_of(at);
	listed.parent_id = parent_id;
	job->visited++;
	job->stopped = !job->visit(&listed, job->ctx);
	return true;
}

/* Visits the nodes below `start`, whose own depth is `depth`. */
static void list_visit_below(visit_job *job, tn_step start, unsigned depth) {
	trail t = {.start = start};
	list_push_step(&t, start);
	tn_step at = tn_node_find_below(start.node, start.life, SIZE_MAX);
	while (at.node != NULL && !job->stopped) {
		tn_step below = {NULL, 0, 0, 0}, parent = t.steps[(t.depth - 1) % LIST_TRAIL];
		if (list_visit(job, at, depth + t.depth, list_id_of(parent)))
			below = tn_node_find_below(at.node, at.life, SIZE_MAX);
		if (below.node != NULL)
			list_push_step(&t, at);
		at = below.node != NULL ? below : list_find_next(&t, at, job->walk);
	}
}

static visit_job list_begin_walk(
	bool (*visit)(const tn_listed *listed, void *ctx), void *ctx, size_t wanted) {
	size_t walk = tn_add(&listing.walks, 1, TN_RELAXED) + 1;
	return (visit_job){.visit = visit, .ctx = ctx, .wanted = wanted, .walk = walk};
}

static void list_visit_roots(visit_job *job) {
	list_visit_below(job, (tn_step){&tn_list_root, 1, 0, 0}, (unsigned)-1);
}

size_t tn_stats_snapshot(bool (*visit)(const tn_listed *listed, void *ctx), void *ctx) {
	visit_job job = list_begin_walk(visit, ctx, TN_WANT_COUNT);
	tn_listed pages = {.kind = TN_KIND_PAGES, .id = (uint64_t)1 << 32 | 1};
	tn_pages_stats(&pages.stats);
	job.visited = 1;
	if (visit(&pages, ctx))
		list_visit_roots(&job);
	return job.visited;
}

size_t tn_list_each(tn_node *from, bool (*visit)(const tn_listed *listed, void *ctx), void *ctx) {
	visit_job job = list_begin_walk(visit, ctx, TN_WANT_COUNT);
	tn_step start = {from, tn_get(&from->life, TN_ACQUIRE), 0, tn_get(&from->number, TN_ACQUIRE)};
	if (list_visit(&job, start, 0, 0) && !job.stopped)
		list_visit_below(&job, start, 0);
	return job.visited;
}

const char *tn_kind_name(tn_kind kind) {
	switch (kind) { TN_KINDS(TN_KIND_NAME) }
	return "?";
}
