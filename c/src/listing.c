/* All listed allocators: where their nodes come from, and snapshots. How a node is read while its owner
 * goes on: listed.h. */
#include "listing.h"

#include <errno.h>
#include <string.h>

#include "live.h"
#include "lock.h"
#include "modes.h"
#include "observer.h"
#include "pages.h"
#include "watch.h"

enum {
	TRAIL = 64,		  /* levels that a walk finds back to from a node that has gone */
	STABLE_STEP = 64, /* records that are made at a time */
};
_Static_assert(2 + TN_FIGURES_ALL <= TN_NODE_FIGURES, "a node has room for the figures");
_Static_assert(TN_NODE_NAME_BYTES == TN_NAME_BYTES + 1, "and for the name");

tn_node tn_list_root = {.life = 1};

static struct {
	tn_lock lock;
	size_t last_index;
	tn_stable nodes;
	bool on_fork; /* it is arranged */
} listing = {.nodes = {.bytes = sizeof(tn_node)}, .last_index = 1 /* the page layer's */};

void tn_list_lock(void) {
	tn_lock_take(&listing.lock);
}

void tn_list_unlock(void) {
	tn_lock_give(&listing.lock);
}

/* ---- records that stay what they are ---- */

static tn_node *node_in(const tn_stable *store, char *record) {
	return (tn_node *)(void *)(record + store->node_offset);
}

static void add_record(tn_stable *store, char *record) {
	tn_node *n = node_in(store, record);
	n->newer = NULL;
	if (store->oldest == NULL)
		store->oldest = record;
	else
		node_in(store, store->youngest)->newer = (tn_node *)(void *)record;
	store->youngest = record;
	store->count++;
}

static bool make_records(tn_stable *store) {
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

size_t tn_stable_take(tn_stable *store, void **records, size_t count) {
	size_t taken = 0;
	tn_list_lock();
	/* Where there is no memory, one that was used just now will do. */
	if (store->count > TN_STABLE_IDLE || store->fresh > 0 || make_records(store) || store->count > 0)
		do {
			char *record = store->oldest;
			records[taken++] = record;
			store->oldest = (char *)node_in(store, record)->newer;
			store->youngest = store->oldest == NULL ? NULL : store->youngest;
			store->count--;
			store->fresh -= store->fresh > 0;
		} while (taken < count && (store->count > TN_STABLE_IDLE || store->fresh > 0));
	tn_list_unlock();
	return taken;
}

void tn_stable_give(tn_stable *store, void **records, size_t count) {
	tn_list_lock();
	for (size_t i = 0; i < count; i++)
		add_record(store, records[i]);
	tn_list_unlock();
}

/* ---- owners ---- */

static void in_child(void) {
	tn_list_unlock();
	tn_observer_in_child();
	tn_live_in_child();
	tn_watch_in_child();
}

void tn_list_on_fork(void) {
	if (__atomic_load_n(&listing.on_fork, __ATOMIC_ACQUIRE))
		return;
	tn_os_on_fork(TN_FORK_LISTING, tn_list_lock, tn_list_unlock, in_child);
	__atomic_store_n(&listing.on_fork, true, __ATOMIC_RELEASE);
}

void tn_list_prepare(void) {
	tn_list_on_fork();
	tn_live_if_asked();
}

void tn_list_node(
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
	tn_set(&n->wanted, 0, TN_RELAXED);
	tn_node_link(n, parent);
}

void tn_unlist_node(tn_node *n) {
	tn_node_unlink(n);
}

static tn_node *take_node(void) {
	void *record = NULL;
	return tn_stable_take(&listing.nodes, &record, 1) == 0 ? NULL : record;
}

bool tn_list_at(
	tn_node *parent, const tn_node_kind *kind, void *object, const char *name, tn_node **node) {
	*node = NULL;
	if (parent == NULL && name == NULL)
		return true;
	tn_list_prepare();
	tn_node *n = take_node();
	if (n == NULL)
		return false;
	*node = n;
	tn_list_lock();
	tn_list_node(parent == NULL ? &tn_list_root : parent, n, kind, object,
		name == NULL ? tn_kind_name(kind->kind) : name);
	tn_list_unlock();
	return true;
}

/* Under the lock a reader looks at the object; so that is unlisted under it, whoever the parent is. */
void tn_unlist(tn_node *n) {
	if (n == NULL)
		return;
	tn_list_lock();
	tn_unlist_node(n);
	add_record(&listing.nodes, (char *)n);
	tn_list_unlock();
}

void tn_note_time(tn_node *n, uint64_t resets) {
	tn_set(&n->since_ms, (size_t)tn_os_coarse_milliseconds(), TN_RELAXED);
	tn_set(&n->seen_resets, (size_t)resets, TN_RELAXED);
}

/* ---- readers ---- */

static void read_name(const tn_node *n, char name[TN_NAME_BYTES + 1]) {
	for (size_t i = 0; i < TN_NAME_BYTES; i++)
		name[i] = tn_get(&n->name[i], TN_ACQUIRE);
	name[TN_NAME_BYTES] = '\0';
}

/* Since the node took memory, or the last reset that is seen here. */
static uint64_t age_of(tn_node *n, uint64_t resets) {
	size_t since = tn_get(&n->since_ms, TN_RELAXED);
	if (since == 0)
		return 0;
	uint64_t now = tn_os_coarse_milliseconds();
	if (tn_get(&n->seen_resets, TN_RELAXED) != (size_t)resets) {
		tn_set(&n->seen_resets, (size_t)resets, TN_RELAXED);
		tn_set(&n->since_ms, (size_t)now, TN_RELAXED);
		return 0;
	}
	return (size_t)now - since;
}

static uint64_t id_of(const tn_node *n) {
	return (uint64_t)n->index << 32 | (uint32_t)tn_get(&n->number, TN_ACQUIRE);
}

/* Under the lock. What the owner takes from there just now may be asked of it again. */
static void want(tn_node *n, size_t what) {
	tn_set(&n->wanted, tn_get(&n->wanted, TN_RELAXED) | what, TN_RELAXED);
}

void tn_list_read(tn_node *n, tn_listed *listed) {
	size_t figures[TN_NODE_FIGURES];
	const tn_node_kind *kind = tn_get(&n->kind, TN_ACQUIRE);
	*listed = (tn_listed){.kind = kind->kind};
	read_name(n, listed->stats.name);
	tn_position from = {0, 0};
	if (tn_node_read(n, figures, 2 + kind->figures)) {
		memcpy(&listed->stats.live_bytes, figures + 2, kind->figures * sizeof(size_t));
		from = (tn_position){figures[0], figures[1]};
	}
	kind->look(tn_get(&n->object, TN_ACQUIRE), from, listed);
	listed->age_ms = age_of(n, listed->stats.resets);
}

/* The way from where a walk began to where it is; the levels furthest up are forgotten. */
typedef struct trail {
	tn_step steps[TRAIL];
	unsigned depth, kept; /* levels below the start; of these, the last ones that are kept */
} trail;

static void descend(trail *t, tn_step at) {
	t->steps[t->depth++ % TRAIL] = at;
	t->kept += t->kept < TRAIL;
}

/* The node above `at`: remembered, or found from there. */
static tn_step ascend(trail *t, tn_step at) {
	tn_step above = {NULL, 0, 0};
	t->depth--;
	if (t->kept > 0) {
		t->kept--;
		return t->steps[t->depth % TRAIL];
	}
	tn_node *parent = tn_get(&at.node->parent, TN_ACQUIRE);
	if (!tn_node_is(at.node, at.life))
		return above;
	/* What is below a node lives no longer than it. */
	above = (tn_step){parent, tn_get(&parent->life, TN_ACQUIRE), tn_get(&parent->place, TN_ACQUIRE)};
	if (!tn_node_is(at.node, at.life))
		above.node = NULL;
	return above;
}

/* The node to visit after `at` and what is below it. */
static tn_step step_on(trail *t, tn_step at) {
	while (t->depth > 0 && at.node != NULL) {
		tn_step above = ascend(t, at);
		if (above.node == NULL)
			break;
		tn_step next = tn_node_after(at, above.node, above.life);
		if (next.node != NULL) {
			t->depth++;
			t->kept += t->kept < TRAIL;
			t->steps[(t->depth - 1) % TRAIL] = above;
			return next;
		}
		at = above;
	}
	return (tn_step){NULL, 0, 0};
}

typedef struct visit_job {
	bool (*visit)(const tn_listed *listed, void *ctx);
	void *ctx;
	size_t wanted; /* of each */
	size_t visited;
	bool stopped;
} visit_job;

/* Copies and visits one node; false when it had gone. */
static bool visit_node(visit_job *job, const trail *t, tn_step at, unsigned depth) {
	tn_listed listed;
	tn_list_lock();
	bool there = tn_node_is(at.node, at.life);
	if (there) {
		tn_list_read(at.node, &listed);
		want(at.node, job->wanted);
	}
	listed.id = id_of(at.node);
	there = there && tn_node_is(at.node, at.life);
	tn_list_unlock();
	if (!there)
		return false;
	listed.depth = depth;
	/* If that has gone meanwhile, this one was moved or is about to go. */
	if (depth > 0)
		listed.parent_id = id_of(t->steps[(t->depth - 1) % TRAIL].node);
	job->visited++;
	job->stopped = !job->visit(&listed, job->ctx);
	return true;
}

/* Visits what is below `start`, whose own depth is `depth`. */
static void walk_below(visit_job *job, tn_step start, unsigned depth) {
	trail t = {.depth = 0};
	descend(&t, start);
	tn_step at = tn_node_below(start.node, start.life, SIZE_MAX);
	while (at.node != NULL && !job->stopped) {
		tn_step first = {NULL, 0, 0};
		if (visit_node(job, &t, at, depth + t.depth))
			first = tn_node_below(at.node, at.life, SIZE_MAX);
		if (first.node != NULL)
			descend(&t, at);
		at = first.node != NULL ? first : step_on(&t, at);
	}
}

static bool visit_pages(visit_job *job) {
	tn_listed pages = {.kind = TN_KIND_PAGES, .id = (uint64_t)1 << 32 | 1};
	tn_pages_stats(&pages.stats);
	job->visited++;
	job->stopped = !job->visit(&pages, job->ctx);
	return !job->stopped;
}

size_t tn_stats_snapshot(bool (*visit)(const tn_listed *listed, void *ctx), void *ctx) {
	visit_job job = {visit, ctx, TN_WANT_COUNT, 0, false};
	if (visit_pages(&job))
		walk_below(&job, (tn_step){&tn_list_root, 1, 0}, (unsigned)-1);
	return job.visited;
}

size_t tn_list_walk(tn_node *from, bool (*visit)(const tn_listed *listed, void *ctx), void *ctx) {
	visit_job job = {visit, ctx, TN_WANT_COUNT, 0, false};
	tn_step start = {from, tn_get(&from->life, TN_ACQUIRE), 0};
	trail none = {.depth = 0};
	if (visit_node(&job, &none, start, 0) && !job.stopped)
		walk_below(&job, start, 0);
	return job.visited;
}

static bool pass(const tn_listed *listed, void *ctx) {
	(void)listed, (void)ctx;
	return true;
}

size_t tn_trim_all(void) {
	visit_job job = {pass, NULL, TN_WANT_TRIM, 0, false};
	walk_below(&job, (tn_step){&tn_list_root, 1, 0}, (unsigned)-1);
	return tn_pages_trim();
}

const char *tn_kind_name(tn_kind kind) {
	static const char *const names[] = {
		"?", "arena", "slab", "shared slab", "pool", "heap", "scope", "pages"};
	size_t number = (size_t)kind;
	return number < sizeof names / sizeof names[0] ? names[number] : names[0];
}
