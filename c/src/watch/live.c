/* The live view: snapshots in a file of memory that others can only read. Nothing in it is ever read
 * back, and it is large enough from the start, so that neither a reader nor a full disk of memory
 * matters to the process. */
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

enum { LIVE_INTERVAL_MS = 250, MALLOC_INTERVAL_MS = 1000 };

static struct {
	tn_lock lock; /* starts and ends; the observer does without */
	bool on;
	TN_ATOMIC(bool) asked; /* whether the environment was */
	/* Of the observer, while it is on. */
	tn_os_shown shown;
	uint64_t process; /* that it is of; 0 before */
	uint64_t started_ms;
	uint64_t malloc_ms; /* when malloc was asked */
	tn_live_state state;
} live;

_Static_assert((int)TN_LIVE_DEBUG == TN_MODE_DEBUG, "the modes have their numbers");

static bool show_live(tn_os_shown *shown) {
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

static tn_live_row row_of(const tn_listed *listed) {
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
		.external_bytes = s->external_bytes};
	_Static_assert(sizeof row.name == sizeof s->name, "a row holds every name");
	_Static_assert(sizeof row.ident == sizeof listed->ident, "and every ident");
	memcpy(row.name, s->name, sizeof row.name);
	memcpy(row.ident, listed->ident, sizeof row.ident);
	return row;
}

static bool add_row(const tn_listed *listed, void *ctx) {
	tn_live_file *file = ctx;
	if (live.state.row_count == TN_LIVE_ROWS) {
		live.state.left_out_count++;
		return true;
	}
	tn_live_row row = row_of(listed);
	tn_live_store(&file->rows[live.state.row_count++], &row, sizeof row);
	return true;
}

static void ask_malloc(uint64_t now) {
	if (live.malloc_ms != 0 && now - live.malloc_ms < MALLOC_INTERVAL_MS)
		return;
	tn_os_malloc is;
	tn_os_ask_malloc(&is);
	live.malloc_ms = now;
	_Static_assert(sizeof live.state.malloc_name == sizeof is.name, "a state holds malloc's name");
	memcpy(live.state.malloc_name, is.name, sizeof is.name);
	live.state.malloc_allocated_bytes = is.allocated_bytes;
	live.state.malloc_active_bytes = is.active_bytes;
	live.state.malloc_held_bytes = is.held_bytes;
	live.state.resident_bytes = tn_os_resident_bytes();
}

/* A program that closes all files, as one that goes into the background does, has closed this one too:
 * it gets another. */
static void keep_shown(void) {
	tn_os_shown other = {0};
	if (tn_os_is_shown(&live.shown) || !show_live(&other))
		return;
	tn_os_hide(&live.shown);
	live.shown = other;
}

static void publish_live(void) {
	keep_shown();
	tn_live_file *file = live.shown.p;
	uint64_t now = tn_os_milliseconds();
	ask_malloc(now);
	live.state.taken_ms = now;
	live.state.row_count = live.state.left_out_count = 0;
	tn_live_begin(file);
	tn_stats_snapshot(add_row, file);
	tn_live_store(&file->state, &live.state, sizeof live.state);
	tn_live_end(file);
}

static bool start_live(void) {
	tn_os_find_malloc();
	live.process = tn_os_process();
	live.started_ms = tn_os_milliseconds();
	live.malloc_ms = 0;
	if (!show_live(&live.shown))
		return false;
	if (tn_observer_set(TN_OBSERVED_LIVE, LIVE_INTERVAL_MS, publish_live))
		return true;
	tn_os_hide(&live.shown);
	return false;
}

/* In the child of a fork there is no live view, and the parent's file is closed. Calls only functions
 * that a signal handler may call. */
static TN_RACY void live_in_child(void) {
	tn_set(&live.lock.state, LOCK_FREE, TN_RELAXED);
	tn_set(&live.asked, false, TN_RELAXED);
	if (live.on)
		tn_os_hide_in_child(&live.shown);
	live.on = false;
}

static void live_on_fork(void) {
	tn_os_on_fork(TN_FORK_LIVE, NULL, NULL, live_in_child);
}

static void live_enter(void) {
	live_on_fork();
	tn_lock_take(&live.lock);
}

bool tn_live_start(void) {
	live_enter();
	live.on = live.on || start_live();
	bool on = live.on;
	tn_lock_give(&live.lock);
	return on;
}

void tn_live_stop(void) {
	live_enter();
	if (live.on) {
		tn_observer_set(TN_OBSERVED_LIVE, 0, NULL);
		tn_os_hide(&live.shown);
	}
	live.on = false;
	tn_lock_give(&live.lock);
}

/* The module that holds this copy of Tenure is closed; at exit it makes no difference. A child that was
 * made without what fork calls has no view, and maybe a lock that nobody will give back. */
#if defined(__GNUC__)
__attribute__((destructor)) static void end_live(void) {
	if (live.process == tn_os_process())
		tn_live_stop();
}
#endif

void tn_live_if_asked(void) {
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
