/* Memory pressure: looks at one file of the system that tells of it, and gives idle memory back in
 * steps.
 *
 *   pressure_look     pressure_is_on, then a step; the callback
 *   pressure_is_on    an event of a trigger; or pressure_read_text
 *
 * A file is known by its first word: `some` is PSI, whose `total` counts stalled microseconds; `low` is
 * the memory.events of a cgroup, where `high`, `max` and `oom` count; `MemTotal:` is /proc/meminfo. */
#include <tenure/idle.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tenure/stats.h>

#include "../base/lock.h"
#include "../base/modes.h"
#include "../pages/pages.h"
#include "../shared/thread_cache.h"
#include "observer.h"
#include "os_view.h"

enum {
	PRESSURE_STEPS = 2,
	PRESSURE_AGAIN = 10, /* looks under lasting pressure between two repetitions of the last step */
	PRESSURE_TEXT_BYTES = 4096,
	PRESSURE_PATH_BYTES = 512,
	PRESSURE_TRIGGER_MS = 2000, /* the window of a trigger that Linux allows to every process */
};

static struct {
	tn_lock lock; /* of start and stop */
	bool on;
	/* Of the observer's thread while it is on. */
	tn_pressure_options options;
	char path[PRESSURE_PATH_BYTES];
	int trigger;      /* an open file, or -1 */
	bool known;       /* there was a look before */
	uint64_t counted; /* as of that look */
	uint64_t looked_ms;
	unsigned step, lasted;
} pressure = {.trigger = -1};

/* ---- what the system tells ---- */

/* The number behind `name` in a text of names and numbers; 0: it is not there. */
static uint64_t pressure_number_of(const char *text, const char *name) {
	const char *at = strstr(text, name);
	return at == NULL ? 0 : strtoull(at + strlen(name), NULL, 10);
}

/* Whether a count has grown by more than `least` since the last look. */
static bool pressure_has_grown(uint64_t count, uint64_t least) {
	bool grown = pressure.known && count > pressure.counted && count - pressure.counted > least;
	pressure.counted = count;
	pressure.known = true;
	return grown;
}

static bool pressure_is_in_text(const char *text, uint64_t elapsed_ms) {
	if (strncmp(text, "some ", 5) == 0)
		return pressure_has_grown(
			pressure_number_of(text, "total="), elapsed_ms * 10 * pressure.options.stall_percent);
	if (strncmp(text, "MemTotal:", 9) == 0) {
		uint64_t all = pressure_number_of(text, "MemTotal:");
		uint64_t available = pressure_number_of(text, "MemAvailable:");
		return available < all / 100 * pressure.options.available_percent;
	}
	/* `oom` is also the end of other names; all of them are counts of the same kind. */
	return pressure_has_grown(pressure_number_of(text, "\nhigh ") + pressure_number_of(text, "\nmax ") +
								  pressure_number_of(text, "\noom "),
		0);
}

static bool pressure_is_on(void) {
	char text[PRESSURE_TEXT_BYTES];
	uint64_t now = tn_os_milliseconds(), elapsed = now - pressure.looked_ms;
	pressure.looked_ms = now;
	if (pressure.trigger >= 0)
		return tn_os_has_event(pressure.trigger);
	return tn_os_read_text(pressure.path, text, sizeof text) && pressure_is_in_text(text, elapsed);
}

/* ---- steps ---- */

static void pressure_look(void) {
	if (!pressure_is_on()) {
		pressure.step = pressure.lasted = 0;
		return;
	}
	if (pressure.step == PRESSURE_STEPS && ++pressure.lasted % PRESSURE_AGAIN != 0)
		return;
	pressure.step += pressure.step < PRESSURE_STEPS;
	size_t bytes = pressure.step == 1 ? tn_caches_trim() + tn_pages_trim() : tn_trim_all();
	if (pressure.options.callback != NULL)
		pressure.options.callback(pressure.step, bytes, pressure.options.ctx);
}

/* ---- on and off ---- */

/* Looks for the best of the system's files: the PSI of the cgroup or the system, else the events of the
 * cgroup, else the available memory. */
static bool pressure_choose(void) {
	char group[PRESSURE_PATH_BYTES], text[PRESSURE_TEXT_BYTES];
	const char *const files[] = {"memory.pressure", NULL, "memory.events", "/proc/meminfo"};
	bool grouped = tn_os_find_cgroup(group, sizeof group);
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		bool whole = files[i] == NULL || files[i][0] == '/';
		if (!whole && !grouped)
			continue;
		int size = snprintf(pressure.path, sizeof pressure.path, "%s%s%s", whole ? "" : group,
			whole ? "" : "/", files[i] == NULL ? "/proc/pressure/memory" : files[i]);
		if (size > 0 && (size_t)size < sizeof pressure.path &&
			tn_os_read_text(pressure.path, text, sizeof text) && text[0] != '\0')
			return true;
	}
	return errno = ENOTSUP, false;
}

static bool pressure_open(const tn_pressure_options *o) {
	char text[PRESSURE_TEXT_BYTES];
	pressure.trigger = -1;
	if (o->file == NULL && !pressure_choose())
		return false;
	if (o->file != NULL) {
		if (strlen(o->file) >= sizeof pressure.path)
			return errno = EINVAL, false;
		strcpy(pressure.path, o->file);
	}
	if (!tn_os_read_text(pressure.path, text, sizeof text))
		return errno = EINVAL, false;
	if (o->file == NULL && strncmp(text, "some ", 5) == 0) {
		snprintf(text, sizeof text, "some %u %u",
			pressure.options.stall_percent * PRESSURE_TRIGGER_MS * 10, PRESSURE_TRIGGER_MS * 1000);
		pressure.trigger = tn_os_open_trigger(pressure.path, text);
	}
	return true;
}

static void pressure_end(void) {
	tn_observer_set(TN_OBSERVED_PRESSURE, 0, NULL);
	tn_os_close_trigger(pressure.trigger);
	pressure.trigger = -1;
	pressure.on = false;
}

static void pressure_set_options(const tn_pressure_options *o) {
	pressure.options = *o;
	if (o->interval_ms == 0)
		pressure.options.interval_ms = 100;
	if (o->stall_percent == 0)
		pressure.options.stall_percent = 10;
	if (o->available_percent == 0)
		pressure.options.available_percent = 10;
	pressure.known = false;
	pressure.step = pressure.lasted = 0;
	pressure.looked_ms = tn_os_milliseconds();
}

/* The child of a fork has no thread; the open file is the parent's too. Stores only. */
static void pressure_in_child(void) {
	tn_set(&pressure.lock.state, LOCK_FREE, TN_RELAXED);
	pressure.trigger = -1;
	pressure.on = false;
}

bool tn_pressure_start(const tn_pressure_options *options) {
	static const tn_pressure_options defaults;
	const tn_pressure_options *o = options == NULL ? &defaults : options;
	tn_os_on_fork(TN_FORK_PRESSURE, NULL, NULL, pressure_in_child);
	int held = tn_os_hold_cancel();
	tn_lock_take(&pressure.lock);
	pressure_end();
	pressure_set_options(o);
	errno = EINVAL;
	pressure.on = o->stall_percent <= 100 && o->available_percent <= 100 && pressure_open(o) &&
	              tn_observer_set(TN_OBSERVED_PRESSURE, pressure.options.interval_ms, pressure_look);
	int error = errno;
	bool on = pressure.on;
	if (!on)
		pressure_end();
	tn_lock_give(&pressure.lock);
	tn_os_let_cancel(held);
	return on || (errno = error, false);
}

void tn_pressure_stop(void) {
	int held = tn_os_hold_cancel();
	tn_lock_take(&pressure.lock);
	pressure_end();
	tn_lock_give(&pressure.lock);
	tn_os_let_cancel(held);
}
