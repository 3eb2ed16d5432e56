/* bench/model/machine.h: a machine of many cores that is computed, not run: one simulated thread on
 * each core, a clock for each, and stated costs of cache lines, locks and system calls.
 *
 * The core whose clock is least runs, so all cores meet in the order of simulated time and the result
 * depends on nothing but the costs and the seed. A cache line is in one core's cache to be written or
 * in several to be read; an access from another core fetches it, and fetches of one line come one after
 * the other. machine.cpp implements c/tests/relacy/engine.h, behind which the library's sources are
 * compiled unchanged: every access that they mark as one to shared data comes here. */
#ifndef BENCH_MODEL_MACHINE_H
#define BENCH_MODEL_MACHINE_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace model {

constexpr unsigned most_cores = 128;
constexpr size_t line_bytes = 64;

/* In nanoseconds, as tenure-model-costs has measured them on the machine of the committed results. */
struct costs {
	double hit = 1.9;       /* a read that waits for the core's own cache */
	double transfer = 50;   /* the same for a line that another core has written */
	double stream = 1.9;    /* such a line that is one of many: the core fetches several at a time */
	double atomic = 6.6;    /* a read-modify-write of a line in the own cache */
	double pause = 16;      /* one look at a lock that is held */
	double call = 220;      /* a system call to sleep or to wake */
	double wake = 5900;     /* from the call that wakes to the thread that runs */
	double pair = 3.5;      /* take, write and free, all in the thread's own magazines */
	double exchanged = 5.4; /* more for a slot that went through an exchange at one thread */
};

/* Reads lines `NAME NANOSECONDS`, with the names of the members; exits on anything else. */
void read_costs(costs &c, const char *path);
/* By name; nullptr if there is none. */
double *find_cost(costs &c, const std::string &name);
std::map<std::string, double> list_costs(const costs &c);

/* Forgets the memory of the run before, and which core has which line. */
void reset_memory();
/* One run: each core runs `work` until it returns. The figures are of the time from warm_ns to
 * end_ns. */
struct figures {
	double busy_ns = 0;   /* sum over the cores, without sleep */
	uint64_t fetches = 0; /* lines that came from another core */
};
figures run(const costs &c, unsigned cores, double warm_ns, double end_ns,
	const std::function<void(unsigned)> &work);

/* For the running thread. */
double now_ns();
/* Time that passes in the core alone. */
void spend(double ns);
/* Reads or writes a line that the thread knows in advance, as objects and the words of magazines are:
 * from another core it costs `stream`. */
void touch(const void *at, bool write);
/* Variables that in truth are in each thread's own memory: accesses cost what `spend` says. */
void keep_private(const void *from, size_t bytes);

} /* namespace model */
#endif
