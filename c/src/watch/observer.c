/* The observer's thread. Two kinds of locks: one for each work, held while it is called and while it is
 * replaced, so that whoever replaces it waits for the call; and inside of it one for all that is known,
 * held for some stores. The thread goes through the works, then sleeps until the next one is due, and
 * ends when there is none. */
#include "observer.h"

#include <errno.h>

#include "../base/atomics.h"
#include "../base/lock.h"
#include "../base/os.h"
#include "../listing/listing.h"

typedef struct observed {
	tn_lock calling; /* outermost */
	void (*work)(void);
	unsigned interval_ms;
	uint64_t next_ms;
} observed;

static struct {
	tn_lock lock;             /* what follows, and all of `observed` but `calling` */
	TN_ATOMIC(uint32_t) bell; /* what the thread sleeps on; changes when it has to look again */
	bool running;             /* the thread has not yet found that there is no work */
	bool unjoined;            /* there is a thread, or has been one */
	bool closed;              /* there will be no other one */
	uint64_t process;         /* that it was started in; 0 before */
	uintptr_t thread;         /* its number, once it runs */
	observed works[TN_OBSERVED_COUNT];
} observer;

/* The work of `o` if it is due. Under its `calling`. */
static void (*due_work(observed *o))(void) {
	tn_lock_take(&observer.lock);
	void (*work)(void) = tn_os_milliseconds() >= o->next_ms ? o->work : NULL;
	tn_lock_give(&observer.lock);
	return work;
}

/* From the end of a call on, so that who waits for `calling` gets it also when calls take long. */
static void put_off(observed *o) {
	tn_lock_take(&observer.lock);
	o->next_ms = tn_os_milliseconds() + o->interval_ms;
	tn_lock_give(&observer.lock);
}

/* Milliseconds until some work is due. UINT64_MAX when there is none: then the thread is over, and the
 * next work gets a new one. */
static uint64_t time_to_sleep(void) {
	uint64_t now = tn_os_milliseconds(), next = UINT64_MAX;
	tn_lock_take(&observer.lock);
	for (size_t i = 0; i < TN_OBSERVED_COUNT; i++)
		if (observer.works[i].work != NULL && observer.works[i].next_ms < next)
			next = observer.works[i].next_ms;
	observer.running = next != UINT64_MAX;
	tn_lock_give(&observer.lock);
	return next == UINT64_MAX ? next : next > now ? next - now : 0;
}

/* In the child of a fork that a work called, the thread is the only one and has no work any more: it
 * leaves at once, and touches no lock that is not its own. */
static bool call_work(void) {
	uint64_t process = tn_os_process();
	for (size_t i = 0; i < TN_OBSERVED_COUNT; i++) {
		observed *o = &observer.works[i];
		tn_lock_take(&o->calling);
		void (*work)(void) = due_work(o);
		if (work != NULL)
			work();
		if (tn_os_process() != process)
			return false;
		if (work != NULL)
			put_off(o);
		tn_lock_give(&o->calling);
	}
	return true;
}

static void observe(void) {
	tn_lock_take(&observer.lock);
	observer.thread = tn_os_thread();
	tn_lock_give(&observer.lock);
	for (;;) {
		uint32_t bell = tn_get(&observer.bell, TN_ACQUIRE);
		if (!call_work())
			return;
		uint64_t sleep = time_to_sleep();
		if (sleep == UINT64_MAX)
			return;
		if (sleep > 0)
			tn_os_wait_for(&observer.bell, bell, sleep < UINT32_MAX ? (unsigned)sleep : UINT32_MAX);
	}
}

static void ring(void) {
	tn_add(&observer.bell, 1, TN_RELEASE);
	tn_os_wake(&observer.bell);
}

/* A thread that is over is joined before the next one starts: what it does after its last use of the
 * lock takes no lock of this file. Under the lock. */
static bool have_thread(void) {
	if (observer.closed)
		return errno = ENOTSUP, false;
	if (observer.running)
		return true;
	if (observer.unjoined)
		tn_os_join();
	observer.thread = 0;
	observer.process = tn_os_process();
	observer.unjoined = observer.running = tn_os_start(observe);
	return observer.running;
}

static bool set_work(observed *o, unsigned interval_ms, void (*work)(void)) {
	tn_lock_take(&observer.lock);
	bool done = work == NULL || have_thread();
	if (done) {
		o->work = work;
		o->interval_ms = interval_ms;
		o->next_ms = 0;
	}
	tn_lock_give(&observer.lock);
	ring();
	return done;
}

static bool is_observer(void) {
	tn_lock_take(&observer.lock);
	bool is = observer.thread == tn_os_thread();
	tn_lock_give(&observer.lock);
	return is;
}

/* In the child of a fork there is no thread and no work. */
static TN_RACY void observer_in_child(void) {
	for (size_t i = 0; i < TN_OBSERVED_COUNT; i++) {
		observed *o = &observer.works[i];
		o->work = NULL;
		tn_set(&o->calling.state, LOCK_FREE, TN_RELAXED);
	}
	tn_set(&observer.lock.state, LOCK_FREE, TN_RELAXED);
	observer.running = observer.unjoined = false;
	observer.thread = 0;
}

bool tn_observer_set(enum tn_observed which, unsigned interval_ms, void (*work)(void)) {
	observed *o = &observer.works[which];
	tn_os_on_fork(TN_FORK_OBSERVER, NULL, NULL, observer_in_child);
	bool inside = is_observer();
	if (!inside)
		tn_lock_take(&o->calling);
	bool done = set_work(o, interval_ms, work);
	if (!inside)
		tn_lock_give(&o->calling);
	return done;
}

/* When the module that holds this copy of Tenure is closed, or at exit: its code, and what the works
 * belong to, must not go away under the thread. */
#if defined(__GNUC__)
__attribute__((destructor)) static void end_observer(void) {
	/* A child that was made without what fork calls has neither the thread nor whoever held a lock. */
	if (observer.process != tn_os_process())
		return;
	tn_lock_take(&observer.lock);
	observer.closed = true;
	tn_lock_give(&observer.lock);
	if (is_observer())
		return;
	for (size_t i = 0; i < TN_OBSERVED_COUNT; i++)
		tn_observer_set((enum tn_observed)i, 0, NULL);
	tn_lock_take(&observer.lock);
	bool join = observer.unjoined;
	observer.unjoined = false;
	tn_lock_give(&observer.lock);
	if (join)
		tn_os_join();
}
#endif
