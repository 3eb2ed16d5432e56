/* One thread that looks at the process now and then, for the live view and the watch. It exists only
 * while there is work for it, sleeps in between, and takes no signals. */
#ifndef TENURE_OBSERVER_H
#define TENURE_OBSERVER_H

#include <stdbool.h>

enum tn_observed {
	TN_OBSERVED_LIVE,
	TN_OBSERVED_WATCH,
	TN_OBSERVED_MAINTAIN,
	TN_OBSERVED_PRESSURE,
	TN_OBSERVED_COUNT
};

/* Has `work` called now and every `interval_ms` (at least 1) in the observer's thread, in place of the
 * work that was set before; NULL ends it. On return no call of the former work is under way, unless it
 * is the caller. Work may call everything, this too.
 *
 * fails    ENOMEM when there can be no thread, ENOTSUP where there are none; the former work stays then
 * threads  any, holding no lock that work takes */
bool tn_observer_set(enum tn_observed which, unsigned interval_ms, void (*work)(void));

/* Changes the interval of a work that is set; the next call is at most `interval_ms` away. UINT_MAX:
 * not before another change.
 *
 * threads  any, also in the work */
void tn_observer_set_pace(enum tn_observed which, unsigned interval_ms);

#endif
