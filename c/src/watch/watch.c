/* The watch: looks at all listed allocators now and then, and remembers of each the few figures that
 * tell a silent failure from use. It calls tn_stats_snapshot as any program can.
 *
 * A scope is looked at by itself, and with all allocators below it, when the snapshot has left it: a
 * connection that keeps its requests is as bad as one that allocates in its own scope, and requests
 * that come and go below it do not hide the latter. Growth below a scope that was reported is not
 * reported again for the scopes above it.
 *
 * The watch remembers in two tables by id: the one of the last look, and the one that this look fills.
 * So it forgets an allocator that has gone. Each finding is a streak: looks in a row, over a time, at
 * which it held.
 *
 * watch_look      tn_stats_snapshot, leave_levels, keep_table
 *   watch_visit   leave_levels, look_at, count_below
 *   look_at       take_entry, find_growth, and find_idle, find_sparse or find_waste
 *   find_...      keep_streak, report */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <tenure/stats.h>

#include "../base/lock.h"
#include "../base/modes.h"
#include "../base/text.h"
#include "../pages/pages.h"
#include "observer.h"

enum {
	WATCH_LOOKS_MIN = 3, /* in a row, whatever the times are */
	WATCH_TABLE_MIN = 256,
	WATCH_TABLE_MAX = 1 << 17, /* entries; half as many allocators are watched */
	WATCH_LEVELS = 64,         /* a scope further down is looked at without the ones below it */
	WATCH_FINDINGS = TN_FOUND_WASTE + 1,
};

typedef struct streak {
	uint64_t since_ms; /* 0: it does not hold */
	unsigned looks;
} streak;

/* Live bytes that grow, and are never less. */
typedef struct growth {
	streak streak;
	uint64_t grew_ms;            /* when they were seen to be more than before */
	size_t live_bytes, at_first; /* at the last look, and at the first of the streak */
} growth;

typedef struct watched {
	uint64_t id; /* 0: none */
	uint64_t resets, refills;
	size_t slot_count;
	growth own, subtree; /* the latter of scopes */
	streak streaks[WATCH_FINDINGS];
	bool told[WATCH_FINDINGS];
} watched;

typedef struct watch_table {
	watched *entries;
	size_t capacity, count; /* a power of two; at most half of it used */
} watch_table;

/* A scope that the snapshot is in; the figures are its own and of all below it that were visited. */
typedef struct pending {
	tn_listed listed;
	size_t own_bytes; /* live and external, without those below */
	bool told_below;  /* an allocator below it was reported for growing, now or before */
} pending;

static struct {
	tn_lock lock; /* of tn_watch */
	/* Of the observer's thread while it is on. */
	tn_watch_options options;
	tn_watch_callback callback;
	watch_table before, now;
	uint64_t now_ms;
	pending levels[WATCH_LEVELS];
	unsigned depth; /* levels that are in use */
} watch;

/* ---- the tables ---- */

static bool watch_make_table(watch_table *t, size_t capacity) {
	*t = (watch_table){.capacity = capacity};
	t->entries = tn_pages_acquire(capacity * sizeof(watched), TN_OS_PAGE);
	if (t->entries == NULL)
		return false;
	memset(t->entries, 0, capacity * sizeof(watched));
	return true;
}

static void watch_drop_table(watch_table *t) {
	if (t->entries != NULL)
		tn_pages_release(t->entries, t->capacity * sizeof(watched), TN_OS_PAGE);
	*t = (watch_table){.capacity = 0};
}

/* The entry of an id, or the empty one where it belongs (Fibonacci hashing, Knuth 1973). */
static watched *watch_find_entry(const watch_table *t, uint64_t id) {
	size_t i = (size_t)(id * 0x9e3779b97f4a7c15u >> 32) & (t->capacity - 1);
	while (t->entries[i].id != 0 && t->entries[i].id != id)
		i = (i + 1) & (t->capacity - 1);
	return &t->entries[i];
}

/* An entry of the new table for an allocator, as the last look left it; NULL when the table is full. */
static watched *watch_take_entry(const tn_listed *listed) {
	if (watch.now.count >= watch.now.capacity / 2)
		return NULL;
	watched *w = watch_find_entry(&watch.now, listed->id);
	*w = *watch_find_entry(&watch.before, listed->id);
	if (w->id == 0)
		*w = (watched){.id = listed->id,
			.resets = listed->stats.resets,
			.refills = listed->stats.refills,
			.slot_count = listed->stats.slot_count};
	watch.now.count++;
	return w;
}

/* Keeps the filled table for the next look. The other one is emptied; where the filled one is getting
 * full, a larger one takes its place. */
static void watch_keep_table(void) {
	watch_table empty = watch.before, larger;
	watch.before = watch.now;
	size_t capacity = watch.before.capacity;
	if (watch.before.count >= capacity / 4 && capacity < WATCH_TABLE_MAX)
		capacity *= 2;
	if (empty.capacity < capacity && watch_make_table(&larger, capacity)) {
		watch_drop_table(&empty);
		empty = larger;
	}
	empty.count = 0;
	memset(empty.entries, 0, empty.capacity * sizeof(watched));
	watch.now = empty;
}

/* ---- findings ---- */

typedef struct bytes_text {
	char text[24];
} bytes_text;

static bytes_text watch_print_bytes(size_t bytes) {
	static const char *const units[] = {"bytes", "KiB", "MiB", "GiB"};
	bytes_text t;
	double value = (double)bytes;
	size_t unit = 0;
	for (; value >= 1024 && unit < 3; unit++)
		value /= 1024;
	snprintf(t.text, sizeof t.text, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
	return t;
}

/* Names an allocator; one that a scope owns, also by the scope. Returns the length. */
static int watch_print_name(char *text, size_t size, const tn_listed *listed) {
	const char *ident = listed->ident;
	int length = snprintf(text, size, "%s \"%s\"%s%s%s", tn_kind_name(listed->kind), listed->stats.name,
		ident[0] == '\0' ? "" : " (", ident, ident[0] == '\0' ? "" : ")");
	bool owned = listed->kind != TN_KIND_SCOPE && listed->depth > 0 && listed->depth <= watch.depth;
	if (!owned)
		return length;
	length += snprintf(text + length, size - (size_t)length, " of ");
	return length + watch_print_name(
						text + length, size - (size_t)length, &watch.levels[listed->depth - 1].listed);
}

/* Reports a finding once for each allocator. */
TN_PRINTF(4, 5)
static void watch_report(
	watched *w, tn_finding finding, const tn_listed *listed, const char *format, ...) {
	char message[512];
	va_list rest;
	if (w->told[finding])
		return;
	w->told[finding] = true;
	int length = watch_print_name(message, sizeof message, listed);
	length += snprintf(message + length, sizeof message - (size_t)length, ": ");
	va_start(rest, format);
	vsnprintf(message + length, sizeof message - (size_t)length, format, rest);
	va_end(rest);
	tn_text_clean(message);
	watch.callback(finding, listed, message, watch.options.ctx);
}

/* Continues a streak, or ends it. Returns whether it has been long enough. */
static bool watch_keep_streak(streak *s, bool holds, uint64_t since_ms, unsigned least_ms) {
	if (!holds) {
		*s = (streak){.since_ms = 0};
		return false;
	}
	if (s->since_ms == 0)
		s->since_ms = since_ms;
	s->looks++;
	/* The next look would be too late. */
	return s->looks >= WATCH_LOOKS_MIN &&
	       watch.now_ms + watch.options.interval_ms / 2 >= s->since_ms + least_ms;
}

static double watch_seconds_of(const streak *s) {
	return (double)(watch.now_ms - s->since_ms) / 1000;
}

static unsigned watch_percent_of(size_t part, size_t whole) {
	return whole == 0 ? 100 : (unsigned)((double)part / (double)whole * 100);
}

/* Growing: never less, not reset, and more within the last half of the time. */
static bool watch_keep_growth(growth *g, size_t live_bytes, bool reset, uint64_t known_ms) {
	if (live_bytes > g->live_bytes || g->streak.since_ms == 0)
		g->grew_ms = watch.now_ms;
	bool undone = reset || live_bytes < g->live_bytes;
	bool still = watch.now_ms - g->grew_ms > watch.options.growing_ms / 2;
	if (undone || still || g->streak.since_ms == 0)
		g->at_first = live_bytes;
	g->live_bytes = live_bytes;
	bool long_enough = watch_keep_streak(
		&g->streak, !undone && !still, watch.now_ms - known_ms, watch.options.growing_ms);
	return long_enough && live_bytes > g->at_first;
}

static void watch_find_growth(watched *w, const pending *p) {
	const tn_stats *stats = &p->listed.stats;
	bool scope = p->listed.kind == TN_KIND_SCOPE;
	bool reset = stats->resets != w->resets;
	uint64_t known =
		p->listed.age_ms < watch.options.interval_ms ? p->listed.age_ms : watch.options.interval_ms;
	bool own = watch_keep_growth(&w->own, p->own_bytes, reset, known);
	bool below = scope && watch_keep_growth(&w->subtree, stats->live_bytes, reset, known);
	if (!own && (!below || p->told_below))
		return;
	const growth *g = own ? &w->own : &w->subtree;
	bool frees = !scope && p->listed.kind != TN_KIND_ARENA;
	watch_report(w, TN_FOUND_GROWING, &p->listed, "grew from %s to %s in %.1f s and %s",
		watch_print_bytes(g->at_first).text, watch_print_bytes(g->live_bytes).text,
		watch_seconds_of(&g->streak), frees ? "gives nothing back" : "is never reset");
}

/* Idle objects of a pool, and a pool at its bound. */
static void watch_find_idle(watched *w, const pending *p) {
	const tn_stats *stats = &p->listed.stats;
	/* Objects that were built and are not there were taken apart. */
	uint64_t built = stats->refills - w->refills;
	uint64_t stayed = stats->slot_count > w->slot_count ? stats->slot_count - w->slot_count : 0;
	bool thrashes = built > stayed;
	if (watch_keep_streak(&w->streaks[TN_FOUND_AT_BOUND], thrashes, watch.now_ms, 0))
		watch_report(w, TN_FOUND_AT_BOUND, &p->listed,
			"is at its bound: objects are taken apart and built again, %llu in %u ms",
			(unsigned long long)built, watch.options.interval_ms);
	size_t idle = stats->slot_count - stats->live_count;
	bool burst =
		idle > stats->slot_count / 2 && stats->cached_bytes >= watch.options.least_bytes && !thrashes;
	streak *s = &w->streaks[TN_FOUND_IDLE];
	if (watch_keep_streak(s, burst && built == 0, watch.now_ms, watch.options.idle_ms))
		watch_report(w, TN_FOUND_IDLE, &p->listed, "keeps %zu of %zu objects (%s) idle for %.1f s",
			idle, stats->slot_count, watch_print_bytes(stats->cached_bytes).text, watch_seconds_of(s));
}

static void watch_find_sparse(watched *w, const pending *p) {
	const tn_stats *stats = &p->listed.stats;
	streak *s = &w->streaks[TN_FOUND_SPARSE];
	unsigned used = watch_percent_of(stats->live_count, stats->slot_count);
	bool sparse = stats->chunk_count > 1 && used < watch.options.slab_percent;
	if (watch_keep_streak(s, sparse, watch.now_ms, watch.options.growing_ms))
		watch_report(w, TN_FOUND_SPARSE, &p->listed, "uses %u %% of %zu chunks (%s) for %.1f s", used,
			stats->chunk_count, watch_print_bytes(stats->committed_bytes).text, watch_seconds_of(s));
}

static void watch_find_waste(watched *w, const pending *p) {
	const tn_stats *stats = &p->listed.stats;
	unsigned wasted =
		stats->live_bytes == 0 ? 0 : watch_percent_of(stats->waste_bytes, stats->live_bytes);
	bool much = stats->live_bytes >= watch.options.least_bytes && wasted > watch.options.waste_percent;
	if (watch_keep_streak(&w->streaks[TN_FOUND_WASTE], much, watch.now_ms, 0))
		watch_report(w, TN_FOUND_WASTE, &p->listed, "%u %% of %s live is rounding", wasted,
			watch_print_bytes(stats->live_bytes).text);
}

/* ---- looks ---- */

#define WATCH_FINDING(constant, number, name, finding) [constant] = finding,
static const unsigned char watch_finding_of_kind[] = {TN_KINDS(WATCH_FINDING)};
static void (*const watch_find[WATCH_FINDINGS])(watched *w, const pending *p) = {
	[TN_FOUND_IDLE] = watch_find_idle,
	[TN_FOUND_SPARSE] = watch_find_sparse,
	[TN_FOUND_WASTE] = watch_find_waste,
};

/* Looks at one allocator, and counts it to the level above. */
static void watch_look_at(const pending *p) {
	const tn_stats *stats = &p->listed.stats;
	unsigned finding = watch_finding_of_kind[p->listed.kind];
	bool looks = stats->committed_bytes >= watch.options.least_bytes && finding != 0;
	watched *w = looks ? watch_take_entry(&p->listed) : NULL;
	if (w != NULL) {
		watch_find_growth(w, p);
		if (watch_find[finding] != NULL)
			watch_find[finding](w, p);
		w->resets = stats->resets;
		w->refills = stats->refills;
		w->slot_count = stats->slot_count;
	}
	if (watch.depth == 0)
		return;
	pending *above = &watch.levels[watch.depth - 1];
	above->listed.stats.live_bytes += stats->live_bytes;
	above->listed.stats.committed_bytes += stats->committed_bytes;
	above->told_below |= p->told_below || (w != NULL && w->told[TN_FOUND_GROWING]);
}

/* The snapshot has left all levels from `depth` on. */
static void watch_leave_levels(unsigned depth) {
	while (watch.depth > depth)
		watch_look_at(&watch.levels[--watch.depth]);
}

static bool watch_visit(const tn_listed *listed, void *ctx) {
	(void)ctx;
	pending p = {
		.listed = *listed, .own_bytes = listed->stats.live_bytes + listed->stats.external_bytes};
	watch_leave_levels(listed->depth);
	if (listed->kind == TN_KIND_SCOPE && watch.depth < WATCH_LEVELS) {
		p.listed.stats.live_bytes += listed->stats.external_bytes;
		p.listed.stats.committed_bytes += listed->stats.external_bytes;
		watch.levels[watch.depth++] = p;
	} else {
		watch_look_at(&p);
	}
	return true;
}

static void watch_look(void) {
	watch.now_ms = tn_os_milliseconds();
	watch.depth = 0;
	tn_stats_snapshot(watch_visit, NULL);
	watch_leave_levels(0);
	watch_keep_table();
}

/* ---- on and off ---- */

static void watch_set_options(const tn_watch_options *o) {
	watch.options = *o;
	if (o->interval_ms == 0)
		watch.options.interval_ms = 1000;
	if (o->growing_ms == 0)
		watch.options.growing_ms = 60 * 1000;
	if (o->idle_ms == 0)
		watch.options.idle_ms = 60 * 1000;
	if (o->slab_percent == 0)
		watch.options.slab_percent = 25;
	if (o->waste_percent == 0)
		watch.options.waste_percent = 30;
	if (o->least_bytes == 0)
		watch.options.least_bytes = (size_t)256 << 10;
}

static void watch_end(void) {
	tn_observer_set(TN_OBSERVED_WATCH, 0, NULL);
	watch_drop_table(&watch.before);
	watch_drop_table(&watch.now);
}

static bool watch_begin(const tn_watch_options *o, tn_watch_callback callback) {
	watch_set_options(o);
	watch.callback = callback;
	bool made = watch_make_table(&watch.before, WATCH_TABLE_MIN) &&
	            watch_make_table(&watch.now, WATCH_TABLE_MIN);
	if (made && tn_observer_set(TN_OBSERVED_WATCH, watch.options.interval_ms, watch_look))
		return true;
	int error = made ? errno : ENOMEM;
	watch_end();
	return errno = error, false;
}

/* The child of a fork is not watched. Stores only. */
static void watch_in_child(void) {
	tn_set(&watch.lock.state, LOCK_FREE, TN_RELAXED);
	/* They may have been changing hands. */
	watch.before = watch.now = (watch_table){.capacity = 0};
}

bool tn_watch(const tn_watch_options *options, tn_watch_callback callback) {
	static const tn_watch_options defaults;
	const tn_watch_options *o = options == NULL ? &defaults : options;
	if (o->slab_percent > 100 || o->waste_percent > 100)
		return errno = EINVAL, false;
	tn_os_on_fork(TN_FORK_WATCH, NULL, NULL, watch_in_child);
	tn_lock_take(&watch.lock);
	watch_end();
	bool done = callback == NULL || watch_begin(o, callback);
	tn_lock_give(&watch.lock);
	return done;
}
