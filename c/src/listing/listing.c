/* All listed allocators: where their nodes come from, and snapshots. How a node is read while its owner
 * goes on: node.h. */
#include "listing.h"

#include <errno.h>
#include <string.h>

#include "../base/lock.h"
#include "../base/modes.h"
#include "../pages/pages.h"
#include "../watch/live.h"

enum {
	TRAIL = 64,       /* levels that a walk finds back to from a node that has gone */
	STABLE_STEP = 64, /* records that are made at a time */
};
_Static_assert(2 + TN_FIGURES_ALL <= TN_NODE_FIGURES, "a node has room for the figures");
_Static_assert(TN_NODE_NAME_BYTES == TN_NAME_BYTES + 1, "and for the name");

tn_node tn_list_root = {.life = 1};

static struct {
	tn_lock lock;
	size_t last_index;
	tn_records nodes;
	bool on_fork;            /* it is arranged */
	TN_ATOMIC(size_t) walks; /* that have begun */
} listing = {.nodes = {.bytes = sizeof(tn_node)}, .last_index = 1 /* the page layer's */};

void tn_list_lock(void) {
	tn_lock_take(&listing.lock);
}

void tn_list_unlock(void) {
	tn_lock_give(&listing.lock);
}

/* ---- records that stay what they are ---- */

static tn_node *node_in(const tn_records *store, char *record) {
	return (tn_node *)(void *)(record + store->node_offset);
}

static void add_record(tn_records *store, char *record) {
	tn_node *n = node_in(store, record);
	n->newer = NULL;
	if (store->oldest == NULL)
		store->oldest = record;
	else
		node_in(store, store->youngest)->newer = (tn_node *)(void *)record;
	store->youngest = record;
	store->count++;
}

static bool make_records(tn_records *store) {
	size_t bytes = tn_round_up(STABLE_STEP * store->bytes, TN_OS_PAGE);
	char *chunk = tn_pages_acquire(bytes, TN_OS_PAGE);
	if (chunk == NULL)
		return false;
	bytes = tn_pages_reserved(bytes, TN_OS_PAGE);
	memset(chunk, 0, bytes);
	/* Before those that were used. */
	for (size_t i = bytes / store->bytes; i > 0; i--) {
		char *record = chunk + (i - 1) * store->bytes;
		tn_node *n = node_in(store, record);
		n->index = ++listing.last_index;
		n->newer = (tn_node *)(void *)store->oldest;
		store->oldest = record;
		store->youngest = store->youngest == NULL ? record : store->youngest;
	}
	store->count += bytes / store->bytes;
	store->fresh += bytes / store->bytes;
	return true;
}

/* Where there is no memory, one that was used just now will do. */
static bool have_record(tn_records *store) {
	return store->count > TN_RECORDS_IDLE || store->fresh > 0 || make_records(store) ||
	       store->count > 0;
}

void *tn_list_take_records(tn_records *store, size_t *count) {
	tn_list_lock();
	char *first = have_record(store) ? store->oldest : NULL;
	size_t taken = first != NULL;
	for (char *last = first; first != NULL; taken++) {
		store->oldest = (char *)node_in(store, last)->newer;
		store->count--;
		store->fresh -= store->fresh > 0;
		if (store->oldest == NULL)
			store->youngest = NULL;
		if (taken == *count || store->oldest == NULL ||
			(store->count <= TN_RECORDS_IDLE && store->fresh == 0)) {
			node_in(store, last)->newer = NULL;
			break;
		}
		last = store->oldest;
	}
	*count = taken;
	tn_list_unlock();
	return first;
}

void tn_list_give_records(tn_records *store, void *first, size_t count) {
	tn_list_lock();
	for (char *record = first; count > 0; count--) {
		char *next = (char *)node_in(store, record)->newer;
		add_record(store, record);
		record = next;
	}
	tn_list_unlock();
}

/* ---- owners ---- */

void tn_list_begin(void) {
	if (!tn_get(&listing.on_fork, TN_ACQUIRE)) {
		tn_os_on_fork(TN_FORK_LISTING, tn_list_lock, tn_list_unlock, tn_list_unlock);
		tn_set(&listing.on_fork, true, TN_RELEASE);
	}
	tn_live_if_asked();
}

void tn_list_move_node(tn_node *n, tn_node *parent) {
	tn_node_unlink(n);
	tn_set(&n->moved, tn_get(&listing.walks, TN_RELAXED), TN_RELEASE);
	tn_node_link(n, parent);
}

static tn_node *take_node(void) {
	size_t count = 1;
	return tn_list_take_records(&listing.nodes, &count);
}

static void own_node(tn_node *owner, tn_node *n) {
	n->next_owned = owner->owned;
	n->link_owned = &owner->owned;
	if (n->next_owned != NULL)
		n->next_owned->link_owned = &n->next_owned;
	owner->owned = n;
}

static void disown_node(tn_node *n) {
	if (n->link_owned == NULL)
		return;
	*n->link_owned = n->next_owned;
	if (n->next_owned != NULL)
		n->next_owned->link_owned = n->link_owned;
	n->link_owned = NULL;
}

bool tn_list_object(
	tn_node *parent, const tn_node_kind *kind, void *object, const char *name, tn_node **node) {
	*node = NULL;
	if (parent == NULL && name == NULL)
		return true;
	tn_list_begin();
	tn_node *n = take_node();
	if (n == NULL)
		return false;
	*node = n;
	tn_list_lock();
	tn_list_node(parent == NULL ? &tn_list_root : parent, n, kind, object,
		name == NULL ? tn_kind_name(kind->kind) : name);
	tn_list_unlock();
	if (parent != NULL)
		own_node(parent, n);
	return true;
}

/* Under the lock a reader looks at the object; so that is unlisted under it, whoever the parent is. */
void tn_unlist_object(tn_node *n) {
	if (n == NULL)
		return;
	disown_node(n);
	tn_list_lock();
	tn_node_unlink(n);
	add_record(&listing.nodes, (char *)n);
	tn_list_unlock();
}

void tn_list_begin_age(tn_node *n, uint64_t resets) {
	tn_set(&n->since_ms, (size_t)tn_os_coarse_milliseconds(), TN_RELAXED);
	tn_set(&n->seen_resets, (size_t)resets, TN_RELAXED);
}

/* ---- readers ---- */

static void read_name(const tn_node *n, char name[TN_NAME_BYTES + 1]) {
	for (size_t i = 0; i < TN_NAME_BYTES; i++)
		name[i] = tn_get(&n->name[i], TN_ACQUIRE);
	name[TN_NAME_BYTES] = '\0';
}

/* Since the time that was noted; what the owner has not noted is noted now. */
static uint64_t age_of(tn_node *n, const tn_stats *stats) {
	size_t since = tn_get(&n->since_ms, TN_RELAXED);
	bool taken = since == 0 && stats->committed_bytes != 0;
	if (taken || tn_get(&n->seen_resets, TN_RELAXED) != (size_t)stats->resets) {
		tn_list_begin_age(n, stats->resets);
		return 0;
	}
	return since == 0 ? 0 : (size_t)tn_os_coarse_milliseconds() - since;
}

static uint64_t id_of(tn_step at) {
	return (uint64_t)at.node->index << 32 | (uint32_t)at.number;
}

/* Under the lock. What the owner takes from there just now may be asked of it again. */
static void want(tn_node *n, size_t what) {
	tn_set(&n->wanted, tn_get(&n->wanted, TN_RELAXED) | what, TN_RELAXED);
}

/* What readers see of a node that is listed while this runs, without what is below it. */
static void read_node(tn_node *n, tn_listed *listed) {
	size_t figures[TN_NODE_FIGURES];
	const tn_node_kind *kind = tn_get(&n->kind, TN_ACQUIRE);
	*listed = (tn_listed){.kind = kind->kind};
	read_name(n, listed->stats.name);
	tn_position from = {0, 0};
	if (tn_node_read(n, figures, 2 + kind->figures)) {
		memcpy(&listed->stats.live_bytes, figures + 2, kind->figures * sizeof(size_t));
		from = (tn_position){figures[0], figures[1]};
	}
	if (kind->look != NULL)
		kind->look(tn_get(&n->object, TN_ACQUIRE), from, listed);
	listed->age_ms = age_of(n, &listed->stats);
}

typedef struct visit_job {
	bool (*visit)(const tn_listed *listed, void *ctx);
	void *ctx;
	size_t wanted; /* of each */
	size_t number; /* of the walk: what was moved since it began may have been visited */
	size_t visited;
	bool stopped;
} visit_job;

/* The way from where a walk began to where it is, of which the levels between the first and the last
 * ones are forgotten. */
typedef struct trail {
	tn_step start, first; /* depths 0 and 1 */
	tn_step steps[TRAIL];
	unsigned depth, kept; /* levels below the start; of these, how many parents are kept */
} trail;

static void descend(trail *t, tn_step at) {
	if (t->depth == 1)
		t->first = at;
	t->steps[t->depth++ % TRAIL] = at;
	t->kept += t->kept < TRAIL;
}

static tn_step parent_of(const trail *t) {
	return t->steps[(t->depth - 1) % TRAIL];
}

/* The node above `at`, which is at t->depth: remembered, or found from there. No node when the way is
 * lost: it has gone, or was moved since the walk began. */
static tn_step ascend(trail *t, tn_step at, size_t walk) {
	tn_step above = {NULL, 0, 0, 0};
	t->depth--;
	if (t->kept > 0) {
		t->kept--;
		return t->steps[t->depth % TRAIL];
	}
	if (t->depth <= 1)
		return t->depth == 0 ? t->start : t->first;
	tn_node *parent = tn_get(&at.node->parent, TN_ACQUIRE);
	tn_node *grandparent = tn_get(&parent->parent, TN_ACQUIRE);
	bool met = grandparent != NULL && tn_node_find(parent, grandparent, &above);
	/* What is below a node lives no longer than it. */
	if (!met || !tn_node_is(at.node, at.life) || tn_get(&parent->moved, TN_ACQUIRE) >= walk)
		above.node = NULL;
	return above;
}

/* The node to visit after `at` and what is below it. Where the way back is lost, that is what comes
 * after the first node on it. */
static tn_step step_on(trail *t, tn_step at, size_t walk) {
	while (t->depth > 0) {
		tn_step above = ascend(t, at, walk);
		if (above.node == NULL) {
			t->depth = 1;
			at = t->first;
			continue;
		}
		tn_step next = tn_node_find_next(at, above.node, above.life);
		if (next.node != NULL) {
			descend(t, above);
			return next;
		}
		at = above;
	}
	return (tn_step){NULL, 0, 0, 0};
}

/* Copies and visits one node; false when it had gone, or may have been visited elsewhere. */
static bool visit_node(visit_job *job, tn_step at, unsigned depth, uint64_t parent_id) {
	tn_listed listed;
	tn_list_lock();
	bool there = tn_node_is(at.node, at.life) && tn_get(&at.node->moved, TN_ACQUIRE) < job->number;
	if (there) {
		read_node(at.node, &listed);
		want(at.node, job->wanted);
	}
	there = there && tn_node_is(at.node, at.life);
	tn_list_unlock();
	if (!there)
		return false;
	listed.depth = depth;
	listed.id = id_of(at);
	listed.parent_id = parent_id;
	job->visited++;
	job->stopped = !job->visit(&listed, job->ctx);
	return true;
}

/* Visits what is below `start`, whose own depth is `depth`. */
static void walk_below(visit_job *job, tn_step start, unsigned depth) {
	trail t = {.start = start};
	descend(&t, start);
	tn_step at = tn_node_find_below(start.node, start.life, SIZE_MAX);
	while (at.node != NULL && !job->stopped) {
		tn_step first = {NULL, 0, 0, 0};
		tn_step parent = parent_of(&t);
		if (visit_node(job, at, depth + t.depth, parent.node == &tn_list_root ? 0 : id_of(parent)))
			first = tn_node_find_below(at.node, at.life, SIZE_MAX);
		if (first.node != NULL)
			descend(&t, at);
		at = first.node != NULL ? first : step_on(&t, at, job->number);
	}
}

static visit_job begin_walk(
	bool (*visit)(const tn_listed *listed, void *ctx), void *ctx, size_t wanted) {
	size_t number = tn_add(&listing.walks, 1, TN_RELAXED) + 1;
	return (visit_job){.visit = visit, .ctx = ctx, .wanted = wanted, .number = number};
}

static const tn_step all_roots = {&tn_list_root, 1, 0, 0};

static bool visit_pages(visit_job *job) {
	tn_listed pages = {.kind = TN_KIND_PAGES, .id = (uint64_t)1 << 32 | 1};
	tn_pages_stats(&pages.stats);
	job->visited++;
	job->stopped = !job->visit(&pages, job->ctx);
	return !job->stopped;
}

size_t tn_stats_snapshot(bool (*visit)(const tn_listed *listed, void *ctx), void *ctx) {
	visit_job job = begin_walk(visit, ctx, TN_WANT_COUNT);
	if (visit_pages(&job))
		walk_below(&job, all_roots, (unsigned)-1);
	return job.visited;
}

size_t tn_list_each(tn_node *from, bool (*visit)(const tn_listed *listed, void *ctx), void *ctx) {
	visit_job job = begin_walk(visit, ctx, TN_WANT_COUNT);
	tn_step start = {from, tn_get(&from->life, TN_ACQUIRE), 0, tn_get(&from->number, TN_ACQUIRE)};
	if (visit_node(&job, start, 0, 0) && !job.stopped)
		walk_below(&job, start, 0);
	return job.visited;
}

static bool pass(const tn_listed *listed, void *ctx) {
	(void)listed, (void)ctx;
	return true;
}

size_t tn_trim_all(void) {
	visit_job job = begin_walk(pass, NULL, TN_WANT_TRIM);
	walk_below(&job, all_roots, (unsigned)-1);
	return tn_pages_trim();
}

const char *tn_kind_name(tn_kind kind) {
	switch (kind) { TN_KINDS(TN_KIND_NAME) }
	return "?";
}
