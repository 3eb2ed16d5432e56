/* bench/harness/crew.h: threads for one job at the same time, and waiting without a system call.
 *
 * A process starts its threads once; all subjects of a workload share them, and they sleep between
 * jobs. A module of another build mode gets the driver's crew. */
#ifndef BENCH_HARNESS_CREW_H
#define BENCH_HARNESS_CREW_H

#include <sched.h>

#include <cstdint>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace bench {

/* The work of each member; `member` counts from 0. */
class job {
public:
	virtual ~job() = default;

	virtual void work(unsigned member) = 0;
	/* Called before the clock starts and after it has stopped. */
	virtual void enter(unsigned) {
	}
	virtual void leave(unsigned) {
	}
};

enum class measure {
	members, /* sum of the members' CPU times */
	process, /* CPU time of the process: for members that start threads */
	wall,    /* from the first member's start to the last one's end */
};

class crew {
public:
	virtual ~crew() = default;

	/* Every member does the job once, all at the same time; returns ticks. In a crew of one the caller
	 * does it. */
	virtual uint64_t run(job &j, measure what) = 0;
	virtual unsigned size() const = 0;

	/* Whether a member lost its CPU to another process during the last job. False where members share
	 * CPUs or start threads, because the counts cannot tell then. */
	virtual bool interrupted() const = 0;
};

/* Member i runs on CPU (i + 1) % CPUs. The first call makes the crew; it never ends. */
crew &crew_of(unsigned size);

/* For loops that wait for another thread: pauses, and yields the CPU every 64th time. */
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
