/* tenure/idle.h: a thread that gives idle memory back, and what happens when memory gets scarce.
 *
 * A pool gives back by itself what a burst left, in its own traffic, and tn_trim_all (stats.h) gives
 * everything back at once. The calls here are for processes that fall silent, and for those that share
 * a machine or a cgroup with others. Both use one thread of Tenure, which they share with tn_watch and
 * the live view. Callbacks of allocators (fini, size_of, release of a source) may then run in it. */
#ifndef TENURE_IDLE_H
#define TENURE_IDLE_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- maintenance ---- */

/* Starts maintenance: a thread gives back, within two windows, what pools, shared slabs and the page
 * layer keep and no call has needed, also when the process is silent. The window of a shared slab is a
 * second, that of a pool its decay_ms. While nothing is idle, the thread sleeps. It cannot reach what
 * lies in the magazines of other threads (at most 64 KiB of objects each, where their size is known)
 * or in slabs, heaps and arenas: those give back at tn_trim_all and under pressure.
 *
 * returns  whether maintenance is on; true if it was on before
 * fails    ENOMEM for lack of a thread; ENOTSUP on a system without threads
 * threads  any; after a fork the child has no maintenance */
TN_API bool tn_maintain_start(void) TN_SYMBOL(tn_maintain_start);

/* Ends maintenance; a no-op when it is off. No callback runs in the thread for it after that.
 *
 * threads  any, but not in a callback that maintenance has called */
TN_API void tn_maintain_stop(void) TN_SYMBOL(tn_maintain_stop);

/* ---- memory pressure ---- */

/* Is told of each step.
 *
 * step     1: what needs no owner went back; 2: every owner was asked too (tn_trim_all). Step 2 is
 *          repeated about once a second while the pressure lasts
 * bytes    given back at once in this step
 * threads  called in Tenure's thread; may call anything but tn_pressure_start and tn_pressure_stop */
typedef void (*tn_pressure_callback)(unsigned step, size_t bytes, void *ctx);

/* 0 takes the default. */
typedef struct tn_pressure_options {
	/* Tells of pressure, in the format of a file of PSI, of memory.events of a cgroup, or of
	 * /proc/meminfo; a test writes its own. Default: the PSI of the process's cgroup, else of the
	 * system; else memory.events; else /proc/meminfo. */
	const char *file;
	unsigned interval_ms;   /* time between two looks at it; default 100 */
	unsigned stall_percent; /* PSI: some task waits for memory for this part of the time; default 10 */
	unsigned available_percent;    /* meminfo: less of the memory than this is available; default 10 */
	tn_pressure_callback callback; /* default: none */
	void *ctx;
} tn_pressure_options;

/* Starts to give idle memory back when memory gets scarce, in steps: one with each look at which there
 * is pressure. A second call replaces the first.
 *
 * options  NULL for the defaults; read during the call only
 * returns  whether it is on
 * fails    EINVAL for a percentage above 100, and for a file that cannot be read; ENOMEM for lack of a
 *          thread; ENOTSUP where the system tells nothing. A pressure that was on before has ended then
 * threads  any but the callback; after a fork the child has none
 * cost     a thread that sleeps, and one system call an interval (without a trigger of PSI: three) */
TN_API bool tn_pressure_start(const tn_pressure_options *options) TN_SYMBOL(tn_pressure_start);

/* Ends it; a no-op when it is off. No callback runs after that.
 *
 * threads  any but the callback */
TN_API void tn_pressure_stop(void) TN_SYMBOL(tn_pressure_stop);

#ifdef __cplusplus
}
#endif
#endif
