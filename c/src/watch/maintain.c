/* Idle memory, given back from outside: at once by trim_all, as time passes by maintenance, and when
 * memory gets scarce (pressure.c).
 *
 * tn_trim_all      tn_list_ask_all, tn_caches_trim, tn_pages_trim
 * maintain_look    tn_caches_serve, tn_pages_age; sleeps longer while there is nothing idle */
#include <tenure/idle.h>

#include <errno.h>
#include <limits.h>

#include <tenure/stats.h>

#include "../base/lock.h"
#include "../base/os.h"
#include "../listing/listing.h"
#include "../pages/pages.h"
#include "../shared/thread_cache.h"
#include "observer.h"

enum { MAINTAIN_MS = 250 };

size_t tn_trim_all(void) {
	tn_list_ask_all();
	return tn_caches_trim() + tn_pages_trim();
}

/* ---- maintenance ---- */

static struct {
	tn_lock lock;
	bool on;
} maintenance;

static void maintain_wake(void) {
	tn_observer_set_pace(TN_OBSERVED_MAINTAIN, MAINTAIN_MS);
}

/* The thread is set to sleep, and the call on idle memory is set, before the look: a call during the
 * look wakes it again. */
static void maintain_look(void) {
	tn_observer_set_pace(TN_OBSERVED_MAINTAIN, UINT_MAX);
	tn_swap(&tn_pages_on_idle, (uintptr_t)maintain_wake, TN_ACQ_REL);
	if (tn_caches_serve() + tn_pages_age() == 0)
		return;
	tn_set(&tn_pages_on_idle, 0, TN_RELAXED);
	maintain_wake();
}

/* The child of a fork has no thread. Stores only. */
static void maintain_in_child(void) {
	tn_set(&maintenance.lock.state, LOCK_FREE, TN_RELAXED);
	tn_set(&tn_pages_on_idle, 0, TN_RELAXED);
	maintenance.on = false;
}

bool tn_maintain_start(void) {
	tn_os_on_fork(TN_FORK_MAINTAIN, NULL, NULL, maintain_in_child);
	tn_lock_take(&maintenance.lock);
	if (!maintenance.on)
		maintenance.on = tn_observer_set(TN_OBSERVED_MAINTAIN, MAINTAIN_MS, maintain_look);
	bool on = maintenance.on;
	tn_lock_give(&maintenance.lock);
	return on;
}

void tn_maintain_stop(void) {
	tn_lock_take(&maintenance.lock);
	if (maintenance.on)
		tn_observer_set(TN_OBSERVED_MAINTAIN, 0, NULL);
	tn_set(&tn_pages_on_idle, 0, TN_RELAXED);
	maintenance.on = false;
	tn_lock_give(&maintenance.lock);
}
