/* The observer's thread. It goes through the works and calls those that are due, then sleeps until the
 * next one is due; it ends when there is none. It also ends when it is the last thread of a process
 * whose main thread has called pthread_exit: else that process would never end, and as this thread
 * takes no signals, not by SIGTERM either. A work is called without a lock; setting it waits for the
 * end of the call.
 *
 * tn_observer_set   waits for the call, begins the thread, wakes it
 * observer_run      call, wait, until no work is left */
#include "observer.h"

#include <errno.h>

#include "../base/atomics.h"
#include "../base/lock.h"
#include "../base/os.h"
#include "../listing/listing.h"

enum { OBSERVER_SLEEP_MS = 1000 }; /* at most: then it looks for other threads */

typedef struct observed {
	void (*work)(void);
	unsigned interval_ms;
	uint64_t next_ms;
} observed;

static struct {
	tn_lock lock;              /* of all fields but the two that threads sleep on */
	TN_ATOMIC(uint32_t) bell;  /* the thread sleeps on it; changes when it has to look again */
	TN_ATOMIC(uint32_t) calls; /* that have ended; threads that wait for a call sleep on it */
	const observed *called;    /* whose call is under way; NULL: none */
	bool running;              /* the thread has not yet found that there is no work */
	bool unjoined;             /* there is a thread, or has been one */
	bool closed;               /* there will be no other one */
	uint64_t process;          /* in which the thread was started; 0 before */
	uintptr_t thread;          /* its number, once it runs */
	observed works[TN_OBSERVED_COUNT];
} observer;

static void observer_enter(void) {
	tn_lock_take(&observer.lock);
}

static void observer_leave(void) {
	tn_lock_give(&observer.lock);
}

/* Calls a work if it is due. Returns false in the child of a fork that the work made: there the thread
 * is the only one, no work is set, and it leaves at once. */
static bool observer_call(observed *o, uint64_t process) {
	observer_enter();
	void (*work)(void) = tn_os_milliseconds() >= o->next_ms ? o->work : NULL;
	observer.called = work == NULL ? NULL : o;
	observer_leave();
	if (work == NULL)
		return true;
	work();
	if (tn_os_process() != process)
		return false;
	observer_enter();
	/* Counted from the end of the call: a thread that waits for it comes before the next one. */
	o->next_ms = tn_os_milliseconds() + o->interval_ms;
	observer.called = NULL;
	tn_add(&observer.calls, 1, TN_RELEASE);
	observer_leave();
	tn_os_wake(&observer.calls);
	return true;
}

/* Sleeps until some work is due, the bell is no longer what it was, or a while has passed. Returns
 * false when there is no work: then the thread is over, and the next work gets a new one. Also when
 * there is no other thread: then the process is over. */
static bool observer_wait(uint32_t bell) {
	uint64_t now = tn_os_milliseconds(), next = UINT64_MAX;
	observer_enter();
	for (size_t i = 0; i < TN_OBSERVED_COUNT; i++)
		if (observer.works[i].work != NULL && observer.works[i].next_ms < next)
			next = observer.works[i].next_ms;
	observer.running = next != UINT64_MAX;
	observer_leave();
	if (next == UINT64_MAX)
		return false;
	uint64_t sleep = next > now ? next - now : 0;
	if (sleep > 0)
		tn_os_wait_for(
			&observer.bell, bell, sleep < OBSERVER_SLEEP_MS ? (unsigned)sleep : OBSERVER_SLEEP_MS);
	return !tn_os_is_last_thread();
}

static void observer_run(void) {
	uint64_t process = tn_os_process();
	uint32_t bell;
	observer_enter();
	observer.thread = tn_os_thread();
	observer_leave();
	do {
		bell = tn_get(&observer.bell, TN_ACQUIRE);
		for (size_t i = 0; i < TN_OBSERVED_COUNT; i++)
			if (!observer_call(&observer.works[i], process))
				return;
	} while (observer_wait(bell));
}

/* Under the lock. A thread that is over is joined before the next one starts: after its last use of the
 * lock it takes no lock of this file. */
static bool observer_begin_thread(void) {
	if (observer.closed)
		return errno = ENOTSUP, false;
	if (observer.running)
		return true;
	if (observer.unjoined)
		tn_os_join();
	observer.thread = 0;
	observer.process = tn_os_process();
	observer.unjoined = observer.running = tn_os_start(observer_run);
	return observer.running;
}

/* Under the lock, which is free meanwhile: waits for the end of a call of `o`. A wake reaches one of
 * the threads that wait; each passes it on. */
static void observer_wait_for_call(const observed *o) {
	while (observer.called == o && observer.thread != tn_os_thread()) {
		uint32_t calls = tn_get(&observer.calls, TN_RELAXED);
		observer_leave();
		tn_os_wait(&observer.calls, calls);
		tn_os_wake(&observer.calls);
		observer_enter();
	}
}

/* In the child of a fork there is no thread and no work. Stores only. */
static TN_RACY void observer_in_child(void) {
	for (size_t i = 0; i < TN_OBSERVED_COUNT; i++)
		observer.works[i].work = NULL;
	tn_set(&observer.lock.state, LOCK_FREE, TN_RELAXED);
	observer.called = NULL;
	observer.running = observer.unjoined = false;
	observer.thread = 0;
}

bool tn_observer_set(enum tn_observed which, unsigned interval_ms, void (*work)(void)) {
	observed *o = &observer.works[which];
	tn_os_on_fork(TN_FORK_OBSERVER, NULL, NULL, observer_in_child);
	observer_enter();
	observer_wait_for_call(o);
	bool done = work == NULL || observer_begin_thread();
	if (done)
		*o = (observed){work, interval_ms, .next_ms = 0};
	observer_leave();
	tn_add(&observer.bell, 1, TN_RELEASE);
	tn_os_wake(&observer.bell);
	return done;
}

void tn_observer_set_pace(enum tn_observed which, unsigned interval_ms) {
	observed *o = &observer.works[which];
	observer_enter();
	uint64_t next = tn_os_milliseconds() + interval_ms;
	o->interval_ms = interval_ms;
	o->next_ms = o->next_ms < next ? o->next_ms : next;
	observer_leave();
	tn_add(&observer.bell, 1, TN_RELEASE);
	tn_os_wake(&observer.bell);
}

/* When the module that holds this copy of Tenure is closed, or at exit: its code, and the owners of the
 * works, must not go away under the thread. */
#if defined(__GNUC__)
__attribute__((destructor)) static void observer_end(void) {
	/* A child that was made without the hooks of fork has no thread, and may have a lock that is held
	 * for ever. */
	if (observer.process != tn_os_process())
		return;
	observer_enter();
	observer.closed = true;
	bool inside = observer.thread == tn_os_thread();
	observer_leave();
	if (inside)
		return;
	for (size_t i = 0; i < TN_OBSERVED_COUNT; i++)
		tn_observer_set((enum tn_observed)i, 0, NULL);
	observer_enter();
	bool join = observer.unjoined;
	observer.unjoined = false;
	observer_leave();
	if (join)
		tn_os_join();
}
#endif
