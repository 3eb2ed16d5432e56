/* bench/harness/crew.h: threads that do one job together, and how to wait without a system call.
 *
 * The threads of a process are started once and shared by all subjects of a workload; between jobs they
 * sleep. A module of another build mode is handed the driver's crew. */
#ifndef BENCH_HARNESS_CREW_H
#define BENCH_HARNESS_CREW_H

#include <sched.h>

#include <cstdint>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace bench {

/* What one member does; `member` counts from 0. */
class job {
public:
	virtual ~job() = default;

	virtual void work(unsigned member) = 0;
	/* Before the clock starts and after it has stopped. */
	virtual void enter(unsigned) {
	}
	virtual void leave(unsigned) {
	}
};

enum class measure {
	members, /* the CPU time of all members, added */
	process, /* the CPU time of the process: where members start threads of their own */
	wall,    /* from the first member's beginning to the last one's end */
};

class crew {
public:
	virtual ~crew() = default;

	/* Every member does the job once, all at the same time; in ticks. A crew of one is the caller. */
	virtual uint64_t run(job &j, measure what) = 0;
	virtual unsigned size() const = 0;

	/* Whether a member lost its CPU to another process during the last job; false where that cannot be
	 * told: where members have to share CPUs, or start threads of their own. */
	virtual bool interrupted() const = 0;
};

/* Member i runs on CPU (i + 1) % CPUs. Made at the first call, and never ended. */
crew &crew_of(unsigned size);

/* For loops that wait for another thread: pauses at first, then lets others have the CPU. */
class patience {
public:
	void wait() {
		if (++turns_ % 64 == 0)
			sched_yield();
#if defined(__x86_64__)
		else
			_mm_pause();
#endif
	}

private:
	unsigned turns_ = 0;
};

}
#endif
