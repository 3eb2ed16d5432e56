/* bench/harness/harness.h: workloads, the subjects that run them, and the rounds that compare them.
 *
 * A family is a set of workloads; a file adds workloads to a family with one static `registration`.
 * Every workload runs in a process of its own (a fork of the driver), so that its heap is fresh and no
 * workload inherits the ageing of another. The process makes all subjects first, then runs every
 * subject once a round; the order rotates from round to round and is reversed in every other one. A
 * ratio is the quotient of two subjects' times in the same round; its median is published with a 95 %
 * interval.
 *
 * Workloads run on CPU 1 unless they set `all_cpus`; harness/crew.h has the threads of those. */
#ifndef BENCH_HARNESS_HARNESS_H
#define BENCH_HARNESS_HARNESS_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/clock.h"
#include "harness/histogram.h"

namespace bench {

/* A median and its 95 % interval. */
struct interval {
	double median = 0, low = 0, high = 0;
};

/* One line of the output. `fields` are the optional numbers (p50_ns, bytes_per_object, ...). */
struct row {
	std::string workload, subject;
	unsigned threads = 1;
	double ns_per_op = 0;
	double ops = 1; /* in one repeat */
	std::map<std::string, double> fields;
	std::map<std::string, interval> ratio;
};

/* p50_ns, p99_ns, p999_ns and max_ns of a histogram of ticks. */
void describe_percentiles(const histogram &h, row &r);

/* One subject at one workload. */
class contestant {
public:
	virtual ~contestant() = default;

	/* Does the work `repeats` times and returns the ticks of the measured part of it. */
	virtual uint64_t run(size_t repeats) = 0;

	/* Whether threads of the last run lost their CPUs to another process. Asked only where the
	 * workload uses all CPUs; elsewhere the process's own count tells. */
	virtual bool interrupted() {
		return false;
	}

	/* The last run counts: it was no warm-up, and not interrupted. Keeps its records. */
	virtual void accept() {
	}

	/* Adds the subject's own figures, after the last round. */
	virtual void describe(row &) {
	}
};

/* Times each repeat by itself. */
class timed_contestant : public contestant {
public:
	uint64_t run(size_t repeats) override {
		last_.clear();
		uint64_t sum = 0;
		for (size_t r = 0; r < repeats; r++) {
			uint64_t took = time_one();
			last_.record(took);
			sum += took;
		}
		return sum;
	}
	void accept() override {
		all_.merge(last_);
	}
	void describe(row &r) override {
		describe_percentiles(all_, r);
	}

private:
	/* Does one repeat and returns its ticks. */
	virtual uint64_t time_one() = 0;

	histogram last_, all_;
};

struct subject {
	std::string name;
	std::function<std::unique_ptr<contestant>()> make;
};

/* A subject that makes a C from copies of `arguments`. */
template <class C, class... Arguments> subject make_subject(const char *name, Arguments... arguments) {
	return {name, [=] { return std::make_unique<C>(arguments...); }};
}

struct workload {
	std::string name;
	double ops = 1; /* operations in one repeat; ns_per_op is per operation */
	std::vector<subject> subjects;
	size_t rounds = 0;           /* at most; 0: as many as run_options asks for */
	double round_ns = 2e6;       /* length of one run */
	size_t total_repeats = 0;    /* over all rounds; 0: chosen so that a run takes round_ns */
	size_t least_repeats = 1;    /* in one round */
	size_t unmeasured = 0;       /* repeats before every round that do not count: for work whose memory
	                                the other subjects push out of the caches */
	double objects = 0;          /* most objects live at once: asks for peak_rss_bytes and
	                                bytes_per_object */
	std::function<void()> setup; /* runs before any subject is made, to age the heap or load input */
	unsigned threads = 1;
	bool all_cpus = false; /* its threads pin themselves */
	bool alone = false;    /* every run is one repeat in a process of its own */
};

/* `const registration r("arena", workloads);` in any file of the driver adds workloads to a family. */
struct registration {
	registration(const char *family, std::vector<workload> (*workloads)());
};

std::vector<std::string> family_names();
std::vector<workload> family_workloads(const std::string &family);

struct run_options {
	size_t rounds = 61;
	std::string only; /* part of a workload's name */
};

/* Runs one workload in a process of its own; returns no rows when that process fails. */
std::vector<row> run_workload(const workload &w, const run_options &options);

/* Median with the 95 % interval of a sign test (order statistics). */
interval median_interval(std::vector<double> values);
double median(std::vector<double> values);

/* Counts of the process so far. */
struct process_figures {
	uint64_t minor_faults, major_faults, involuntary_switches;
};
process_figures read_process();

/* Resident bytes now, and their peak since reset_peak, from the kernel's running counts: on each CPU
 * these may lag by 32 pages of a kind. The exact figure walks the page tables. */
size_t resident_bytes();
size_t resident_bytes_exact();
/* The exact figure without pages of files, such as a library's code. */
size_t anonymous_bytes_exact();
size_t peak_resident_bytes();
void reset_peak();

/* Pins the calling thread, and those that it starts, to one CPU. Member 0 of a crew gets CPU 1, which
 * leaves CPU 0 to interrupts; member 1 gets the next CPU, and so on round. A single CPU is left
 * alone. */
void pin(unsigned member = 0);
void use_all_cpus();

/* Call first in main. Starts the program again with more static thread-local storage for libraries
 * opened at run time (jemalloc needs 2.6 KiB), unless GLIBC_TUNABLES is set. */
void reserve_static_tls(char **argv);

/* Ends the process unless malloc is the C library's own. */
void require_plain_malloc();

void write_json(const std::vector<row> &rows, const std::string &path);
void print_table(const std::vector<row> &rows);

}
#endif
