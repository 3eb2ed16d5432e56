/* The watch: looks at all listed allocators now and then, and remembers of each what tells a silent
 * failure from use. It is a caller of tn_stats_snapshot like any other.
 *
 * A scope is looked at with all that is below it, when the snapshot has left it: the connection that
 * keeps its requests is as bad as the one that allocates in its own. What grows below one that was
 * reported is not reported again above.
 *
 * What is remembered lies in two tables by id, the one of the last look and the one that is being
 * filled: so what has gone is forgotten. Each finding is a streak: looks in a row, over a time, at
 * which it held. */
#include <tenure/stats.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../base/lock.h"
#include "../base/modes.h"
#include "../pages/pages.h"
#include "observer.h"

enum {
	LOOKS_LEAST = 3, /* in a row, whatever the times are */
	TABLE_LEAST = 256,
	TABLE_MOST = 1 << 17, /* allocators above the least size; more are not watched */
	FINDINGS = TN_FOUND_WASTE + 1,
};

typedef struct streak {
	uint64_t since_ms; /* 0: it does not hold */
	unsigned looks;
} streak;

typedef struct watched {
	uint64_t id; /* 0: none */
	uint64_t resets, refills;
	uint64_t grew_ms; /* when live bytes were seen to be more than before */
	size_t live_bytes, slot_count;
	size_t live_at_first; /* of the streak of growing */
	streak streaks[FINDINGS];
	bool told[FINDINGS];
} watched;

typedef struct watch_table {
	watched *entries;
	size_t capacity, count; /* a power of two; at most half of it used */
} watch_table;

/* A scope that the snapshot is in, and what it and the ones below it hold. */
typedef struct pending {
	tn_listed listed;
	bool told_below; /* something below it was reported for growing, now or before */
} pending;

enum { LEVELS = 64 }; /* what is deeper is looked at without what is below it */

static struct {
	tn_lock lock; /* of tn_watch */
	/* Of the observer's thread while it is on. */
	tn_watch_options options;
	tn_watch_callback callback;
	watch_table before, now;
	uint64_t now_ms;
	pending levels[LEVELS];
	unsigned depth; /* levels that are in use */
} watch;

/* ---- the tables ---- */

static bool make_table(watch_table *t, size_t capacity) {
	*t = (watch_table){.capacity = capacity};
	t->entries = tn_pages_acquire(capacity * sizeof(watched), TN_OS_PAGE);
	if (t->entries == NULL)
		return false;
	memset(t->entries, 0, capacity * sizeof(watched));
	return true;
}

static void drop_table(watch_table *t) {
	if (t->entries != NULL)
		tn_pages_release(t->entries, t->capacity * sizeof(watched), TN_OS_PAGE);
	*t = (watch_table){.capacity = 0};
}

/* The entry of an id, or the empty one where it belongs (Fibonacci hashing, Knuth 1973). */
static watched *find_entry(const watch_table *t, uint64_t id) {
	size_t i = (size_t)(id * 0x9e3779b97f4a7c15u >> 32) & (t->capacity - 1);
	while (t->entries[i].id != 0 && t->entries[i].id != id)
		i = (i + 1) & (t->capacity - 1);
	return &t->entries[i];
}

/* The entry of an allocator in the new table, as it was left at the last look; NULL when that is full.
 * */
static watched *recall(const tn_listed *listed) {
	if (watch.now.count >= watch.now.capacity / 2)
		return NULL;
	watched *w = find_entry(&watch.now, listed->id);
	*w = *find_entry(&watch.before, listed->id);
	if (w->id == 0)
		*w = (watched){.id = listed->id,
			.resets = listed->stats.resets,
			.refills = listed->stats.refills,
			.live_bytes = listed->stats.live_bytes,
			.slot_count = listed->stats.slot_count};
	watch.now.count++;
	return w;
}

/* The filled table is the old one now; the next one has room for twice as many. */
static void turn_tables(void) {
	watch_table filled = watch.now;
	size_t capacity = filled.capacity;
	if (filled.count >= capacity / 4 && capacity < TABLE_MOST)
		capacity *= 2;
	watch.now = watch.before;
	watch.before = filled;
	if (watch.now.capacity < capacity) {
		watch_table larger;
		if (make_table(&larger, capacity)) {
			drop_table(&watch.now);
			watch.now = larger;
			return;
		}
	}
	watch.now.count = 0;
	memset(watch.now.entries, 0, watch.now.capacity * sizeof(watched));
}

/* ---- what is looked for ---- */

typedef struct bytes_text {
	char text[24];
} bytes_text;

static bytes_text show_bytes(size_t bytes) {
	static const char *const units[] = {"bytes", "KiB", "MiB", "GiB"};
	bytes_text t;
	double value = (double)bytes;
	size_t unit = 0;
	for (; value >= 1024 && unit < 3; unit++)
		value /= 1024;
	snprintf(t.text, sizeof t.text, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
	return t;
}

/* Carries a streak on, or ends it; whether it has been long enough. */
static bool hold_streak(streak *s, bool holds, uint64_t since_ms, unsigned least_ms) {
	if (!holds) {
		*s = (streak){.since_ms = 0};
		return false;
	}
	if (s->since_ms == 0)
		s->since_ms = since_ms;
	s->looks++;
	/* The next look would be too late. */
	return s->looks >= LOOKS_LEAST &&
	       watch.now_ms + watch.options.interval_ms / 2 >= s->since_ms + least_ms;
}

/* Which allocator: of one that a scope owns, also which scope. */
static int show_name(char *text, size_t size, const tn_listed *listed) {
	const char *ident = listed->ident;
	int length = snprintf(text, size, "%s \"%s\"%s%s%s", tn_kind_name(listed->kind), listed->stats.name,
		ident[0] == '\0' ? "" : " (", ident, ident[0] == '\0' ? "" : ")");
	bool owned = listed->kind != TN_KIND_SCOPE && listed->depth > 0 && listed->depth <= watch.depth;
	if (!owned)
		return length;
	length += snprintf(text + length, size - (size_t)length, " of ");
	return length +
	       show_name(text + length, size - (size_t)length, &watch.levels[listed->depth - 1].listed);
}

static void report(watched *w, tn_finding finding, const tn_listed *listed, const char *what) {
	char message[512];
	if (w->told[finding])
		return;
	w->told[finding] = true;
	int length = show_name(message, sizeof message, listed);
	snprintf(message + length, sizeof message - (size_t)length, ": %s", what);
	for (char *c = message; *c != '\0'; c++)
		*c = tn_plain(*c);
	watch.callback(finding, listed, message, watch.options.ctx);
}

static double seconds_of(const streak *s) {
	return (double)(watch.now_ms - s->since_ms) / 1000;
}

/* Growing: not once less, not reset, and more within the last half of the time. */
static void look_for_growth(watched *w, const tn_listed *listed, bool told_below) {
	const tn_stats *stats = &listed->stats;
	streak *s = &w->streaks[TN_FOUND_GROWING];
	if (stats->live_bytes > w->live_bytes || s->since_ms == 0)
		w->grew_ms = watch.now_ms;
	bool undone = stats->resets != w->resets || stats->live_bytes < w->live_bytes;
	bool still = watch.now_ms - w->grew_ms > watch.options.growing_ms / 2;
	if (undone || still || s->since_ms == 0)
		w->live_at_first = stats->live_bytes;
	uint64_t known =
		listed->age_ms < watch.options.interval_ms ? listed->age_ms : watch.options.interval_ms;
	bool long_enough =
		hold_streak(s, !undone && !still, watch.now_ms - known, watch.options.growing_ms);
	if (!long_enough || stats->live_bytes <= w->live_at_first || told_below)
		return;
	char what[128];
	snprintf(what, sizeof what, "grew from %s to %s in %.1f s and is never reset",
		show_bytes(w->live_at_first).text, show_bytes(stats->live_bytes).text, seconds_of(s));
	report(w, TN_FOUND_GROWING, listed, what);
}

/* Idle objects, and what is at its bound. */
static void look_for_idle(watched *w, const tn_listed *listed, bool told_below) {
	(void)told_below;
	const tn_stats *stats = &listed->stats;
	char what[128];
	/* What was built and is not there was taken apart. */
	uint64_t built = stats->refills - w->refills;
	uint64_t stayed = stats->slot_count > w->slot_count ? stats->slot_count - w->slot_count : 0;
	bool thrashes = built > stayed;
	streak *s = &w->streaks[TN_FOUND_AT_BOUND];
	if (hold_streak(s, thrashes, watch.now_ms, 0)) {
		snprintf(what, sizeof what,
			"is at its bound: objects are taken apart and built again, %llu in %u ms",
			(unsigned long long)built, watch.options.interval_ms);
		report(w, TN_FOUND_AT_BOUND, listed, what);
	}
	size_t idle = stats->slot_count - stats->live_count;
	bool burst =
		idle > stats->slot_count / 2 && stats->cached_bytes >= watch.options.least_bytes && !thrashes;
	s = &w->streaks[TN_FOUND_IDLE];
	if (hold_streak(s, burst && built == 0, watch.now_ms, watch.options.idle_ms)) {
		snprintf(what, sizeof what, "keeps %zu of %zu objects (%s) idle for %.1f s", idle,
			stats->slot_count, show_bytes(stats->cached_bytes).text, seconds_of(s));
		report(w, TN_FOUND_IDLE, listed, what);
	}
}

static unsigned percent_of(size_t part, size_t whole) {
	return whole == 0 ? 100 : (unsigned)((double)part / (double)whole * 100);
}

static void look_for_sparse(watched *w, const tn_listed *listed, bool told_below) {
	(void)told_below;
	const tn_stats *stats = &listed->stats;
	streak *s = &w->streaks[TN_FOUND_SPARSE];
	unsigned used = percent_of(stats->live_count, stats->slot_count);
	bool sparse = stats->chunk_count > 1 && used < watch.options.slab_percent;
	if (!hold_streak(s, sparse, watch.now_ms, watch.options.growing_ms))
		return;
	char what[128];
	snprintf(what, sizeof what, "uses %u %% of %zu chunks (%s) for %.1f s", used, stats->chunk_count,
		show_bytes(stats->committed_bytes).text, seconds_of(s));
	report(w, TN_FOUND_SPARSE, listed, what);
}

static void look_for_waste(watched *w, const tn_listed *listed, bool told_below) {
	(void)told_below;
	const tn_stats *stats = &listed->stats;
	unsigned wasted = stats->live_bytes == 0 ? 0 : percent_of(stats->waste_bytes, stats->live_bytes);
	bool much = stats->live_bytes >= watch.options.least_bytes && wasted > watch.options.waste_percent;
	if (!hold_streak(&w->streaks[TN_FOUND_WASTE], much, watch.now_ms, 0))
		return;
	char what[128];
	snprintf(
		what, sizeof what, "%u %% of %s live is rounding", wasted, show_bytes(stats->live_bytes).text);
	report(w, TN_FOUND_WASTE, listed, what);
}

#define WATCH_FINDING(constant, number, name, finding) [constant] = finding,
static const unsigned char finding_of_kind[] = {TN_KINDS(WATCH_FINDING)};
static void (*const looks[FINDINGS])(watched *w, const tn_listed *listed, bool told_below) = {
	[TN_FOUND_GROWING] = look_for_growth,
	[TN_FOUND_IDLE] = look_for_idle,
	[TN_FOUND_SPARSE] = look_for_sparse,
	[TN_FOUND_WASTE] = look_for_waste,
};

/* Whether it is, or was, reported for growing. */
static bool look_at_one(const tn_listed *listed, bool told_below) {
	unsigned finding = finding_of_kind[listed->kind];
	if (listed->stats.committed_bytes < watch.options.least_bytes || finding == 0)
		return false;
	watched *w = recall(listed);
	if (w == NULL)
		return false;
	looks[finding](w, listed, told_below);
	w->resets = listed->stats.resets;
	w->refills = listed->stats.refills;
	w->live_bytes = listed->stats.live_bytes;
	w->slot_count = listed->stats.slot_count;
	return w->told[TN_FOUND_GROWING];
}

/* Counts what was below a level to the level above. */
static void count_below(const tn_listed *listed, bool told) {
	if (watch.depth == 0)
		return;
	pending *above = &watch.levels[watch.depth - 1];
	above->listed.stats.live_bytes += listed->stats.live_bytes;
	above->listed.stats.committed_bytes += listed->stats.committed_bytes;
	above->told_below |= told;
}

/* The snapshot has left all levels from `depth` on. */
static void leave_levels(unsigned depth) {
	while (watch.depth > depth) {
		const pending *p = &watch.levels[--watch.depth];
		bool told = look_at_one(&p->listed, p->told_below);
		count_below(&p->listed, told || p->told_below);
	}
}

static bool look_at_listed(const tn_listed *listed, void *ctx) {
	(void)ctx;
	leave_levels(listed->depth);
	if (listed->kind == TN_KIND_SCOPE && watch.depth < LEVELS) {
		pending *p = &watch.levels[watch.depth++];
		*p = (pending){.listed = *listed};
		p->listed.stats.live_bytes += listed->stats.external_bytes;
		p->listed.stats.committed_bytes += listed->stats.external_bytes;
	} else {
		count_below(listed, look_at_one(listed, false));
	}
	return true;
}

static void look_at_all(void) {
	watch.now_ms = tn_os_milliseconds();
	watch.depth = 0;
	tn_stats_snapshot(look_at_listed, NULL);
	leave_levels(0);
	turn_tables();
}

/* ---- on and off ---- */

static unsigned or_default(unsigned value, unsigned otherwise) {
	return value == 0 ? otherwise : value;
}

static void take_options(const tn_watch_options *o) {
	watch.options = (tn_watch_options){
		.interval_ms = or_default(o->interval_ms, 1000),
		.growing_ms = or_default(o->growing_ms, 60 * 1000),
		.idle_ms = or_default(o->idle_ms, 60 * 1000),
		.slab_percent = or_default(o->slab_percent, 25),
		.waste_percent = or_default(o->waste_percent, 30),
		.least_bytes = o->least_bytes == 0 ? (size_t)256 << 10 : o->least_bytes,
		.ctx = o->ctx,
	};
}

static bool begin_watch(const tn_watch_options *o, tn_watch_callback callback) {
	take_options(o);
	watch.callback = callback;
	bool made = make_table(&watch.before, TABLE_LEAST) && make_table(&watch.now, TABLE_LEAST);
	if (made && tn_observer_set(TN_OBSERVED_WATCH, watch.options.interval_ms, look_at_all))
		return true;
	int why = made ? errno : ENOMEM;
	drop_table(&watch.before);
	drop_table(&watch.now);
	return errno = why, false;
}

/* The child of a fork is not watched. */
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
	tn_observer_set(TN_OBSERVED_WATCH, 0, NULL);
	drop_table(&watch.before);
	drop_table(&watch.now);
	bool done = callback == NULL || begin_watch(o, callback);
	tn_lock_give(&watch.lock);
	return done;
}
