/* The live view: snapshots in a file of memory that other processes can only read. The library reads
 * nothing back from it, and the file has its full size from the start; so neither a reader nor a lack
 * of memory matters to the process.
 *
 * tn_live_start   live_begin: show the file, set the observer's work
 * live_publish    in the observer's thread: keep the file shown, one row for each listed allocator */
#include "live.h"

#include <tenure/stats.h>

#include <errno.h>
#include <string.h>

#include "../base/atomics.h"
#include "../base/lock.h"
#include "../base/os.h"
#include "../listing/listing.h"
#include "live_format.h"
#include "observer.h"
#include "os_view.h"
#include "totals.h"

enum { LIVE_INTERVAL_MS = 250, LIVE_PROCESS_INTERVAL_MS = 1000 };

static struct {
	tn_lock lock; /* of tn_live_start and tn_live_stop */
	bool on;
	TN_ATOMIC(bool) asked; /* the environment was looked at */
	/* Of the observer's thread while the view is on. */
	tn_os_shown shown;
	uint64_t process; /* whose view it is; 0 before */
	uint64_t started_ms;
	uint64_t process_ms; /* when the figures of the process were read; 0: not yet */
	tn_live_state state;
	tn_totals totals;
} live;

_Static_assert((int)TN_LIVE_DEBUG == TN_MODE_DEBUG, "the modes have their numbers");

static bool live_show(tn_os_shown *shown) {
	if (!tn_os_show(shown, TN_LIVE_NAME, sizeof(tn_live_file)))
		return false;
	tn_live_file *file = shown->p;
	file->header = (tn_live_header){.version = TN_LIVE_VERSION,
		.header_bytes = offsetof(tn_live_file, rows),
		.row_bytes = sizeof(tn_live_row),
		.row_max = TN_LIVE_ROWS,
		.process = live.process,
		.started_ms = live.started_ms,
		.mode = TN_MODE};
	memcpy(file->header.magic, TN_LIVE_MAGIC, sizeof file->header.magic);
	return true;
}

static tn_live_row live_row_of(const tn_listed *listed) {
	const tn_stats *s = &listed->stats;
	tn_live_row row = {.id = listed->id,
		.parent_id = listed->parent_id,
		.age_ms = listed->age_ms,
		.kind = (uint32_t)listed->kind,
		.depth = listed->depth,
		.live_bytes = s->live_bytes,
		.live_count = s->live_count,
		.cached_bytes = s->cached_bytes,
		.reserved_bytes = s->reserved_bytes,
		.committed_bytes = s->committed_bytes,
		.peak_bytes = s->peak_bytes,
		.chunk_count = s->chunk_count,
		.partial_count = s->partial_count,
		.refills = s->refills,
		.resets = s->resets,
		.slot_bytes = s->slot_bytes,
		.slot_count = s->slot_count,
		.partial_live_count = s->partial_live_count,
		.thread_cached_bytes = s->thread_cached_bytes,
		.waste_bytes = s->waste_bytes,
		.external_bytes = s->external_bytes,
		.exchanges = s->exchanges,
		.foreign = s->foreign,
		.waits = s->waits};
	_Static_assert(sizeof row.name == sizeof s->name, "a row holds every name");
	_Static_assert(sizeof row.ident == sizeof listed->ident, "and every ident");
	_Static_assert(TN_LIVE_NODES == TN_NODES, "and every memory node");
	for (size_t i = 0; i < TN_NODES; i++)
		row.node_bytes[i] = s->node_bytes[i];
	memcpy(row.name, s->name, sizeof row.name);
	memcpy(row.ident, listed->ident, sizeof row.ident);
	return row;
}

static bool live_push_row(const tn_listed *listed, void *ctx) {
	tn_live_file *file = ctx;
	tn_totals_add(&live.totals, listed);
	if (live.state.row_count == TN_LIVE_ROWS) {
		live.state.left_out_count++;
		return true;
	}
	tn_live_row row = live_row_of(listed);
	tn_live_store(&file->rows[live.state.row_count++], &row, sizeof row);
	return true;
}

/* A program that closes all its files, as a daemon does, has closed this one too: then there is a new
 * one. */
static void live_keep_shown(void) {
	tn_os_shown other = {0};
	if (tn_os_is_shown(&live.shown) || !live_show(&other))
		return;
	tn_os_hide(&live.shown);
	live.shown = other;
}

static void live_publish(void) {
	live_keep_shown();
	tn_live_file *file = live.shown.p;
	uint64_t now = tn_os_milliseconds();
	if (live.process_ms == 0 || now - live.process_ms >= LIVE_PROCESS_INTERVAL_MS) {
		tn_os_read_process(&live.state);
		live.process_ms = now;
	}
	live.state.taken_ms = now;
	live.state.row_count = live.state.left_out_count = 0;
	tn_live_begin(file);
	tn_totals_begin(&live.totals);
	tn_stats_snapshot(live_push_row, file);
	live.state.total_count = live.totals.count;
	tn_live_store(file->totals, live.totals.rows, live.totals.count * sizeof file->totals[0]);
	tn_live_store(&file->state, &live.state, sizeof live.state);
	tn_live_end(file);
}

static bool live_begin(void) {
	tn_os_find_malloc();
	live.process = tn_os_process();
	live.started_ms = tn_os_milliseconds();
	live.process_ms = 0;
	if (!live_show(&live.shown))
		return false;
	if (tn_observer_set(TN_OBSERVED_LIVE, LIVE_INTERVAL_MS, live_publish))
		return true;
	tn_os_hide(&live.shown);
	return false;
}

/* In the child of a fork there is no live view, and the parent's file is closed. Calls only functions
 * that a signal handler may call. */
static TN_RACY void live_in_child(void) {
	tn_set(&live.lock.state, LOCK_FREE, TN_RELAXED);
	tn_set(&live.asked, false, TN_RELAXED);
	if (live.on) {
		tn_os_hide_in_child(&live.shown);
		/* The parent may have been changing it; its memory is lost to the child. */
		live.totals = (tn_totals){.count = 0};
	}
	live.on = false;
}

static void live_on_fork(void) {
	tn_os_on_fork(TN_FORK_LIVE, NULL, NULL, live_in_child);
}

static int live_enter(void) {
	int held = tn_os_hold_cancel();
	live_on_fork();
	tn_lock_take(&live.lock);
	return held;
}

static void live_leave(int held) {
	tn_lock_give(&live.lock);
	tn_os_let_cancel(held);
}

bool tn_live_start(void) {
	int held = live_enter();
	live.on = live.on || live_begin();
	bool on = live.on;
	live_leave(held);
	return on;
}

void tn_live_stop(void) {
	int held = live_enter();
	if (live.on) {
		tn_observer_set(TN_OBSERVED_LIVE, 0, NULL);
		tn_os_hide(&live.shown);
		tn_totals_end(&live.totals);
	}
	live.on = false;
	live_leave(held);
}

/* When the module that holds this copy of Tenure is closed; at exit it makes no difference. A child
 * that was made without the hooks of fork has no view, and may have a lock that is held for ever. */
#if defined(__GNUC__)
__attribute__((destructor)) static void live_end(void) {
	if (live.process == tn_os_process())
		tn_live_stop();
}
#endif

void tn_live_begin_if_asked(void) {
	if (tn_get(&live.asked, TN_RELAXED))
		return;
	live_on_fork();
	if (tn_swap(&live.asked, true, TN_RELAXED))
		return;
	int before = errno;
	const char *value = tn_os_variable("TENURE_LIVE");
	if (value != NULL && strcmp(value, "1") == 0)
		tn_live_start();
	errno = before;
}
