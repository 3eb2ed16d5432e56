/* bench/harness/harness.h: workloads, the subjects that run them, and the rounds that compare them.
 *
 * A family is a set of workloads; a file adds workloads to a family with one static `registration`.
 * Every workload runs in a process of its own (a fork of the driver), so that its heap is fresh and no
 * workload inherits the ageing of another. In it all subjects are made first; then they are run in
 * rounds, every subject once a round, the order rotated from round to round and reversed in every other
 * one. What is compared is the quotient of two subjects' times in the same round; what is published is
 * its median with a 95 % interval.
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
	std::map<std::string, double> fields;
	std::map<std::string, interval> ratio;
};

/* p50_ns, p99_ns, p999_ns and max_ns of a histogram of ticks. */
void describe_percentiles(const histogram &h, row &r);

/* One subject at one workload. */
class contestant {
public:
	virtual ~contestant() = default;

	/* Does the work `repeats` times and returns the ticks of the part that is measured, which need not
	 * be all of it. */
	virtual uint64_t run(size_t repeats) = 0;

	/* Whether threads of the last run lost their CPUs to another process; asked where the workload uses
	 * all CPUs (for the others the process is asked). */
	virtual bool interrupted() {
		return false;
	}

	/* The last run counts (it was no warm-up, and nothing interrupted it): keep what it recorded. */
	virtual void accept() {
	}

	/* Adds what only the subject knows, after the last round. */
	virtual void describe(row &) {
	}
};

/* A contestant each of whose repeats is timed by itself. */
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

/* A subject whose contestant is a C, made from copies of `arguments`. */
template <class C, class... Arguments> subject make_subject(const char *name, Arguments... arguments) {
	return {name, [=] { return std::make_unique<C>(arguments...); }};
}

struct workload {
	std::string name;
	double ops = 1; /* operations in one repeat: what ns_per_op is divided by */
	std::vector<subject> subjects;
	size_t rounds = 0;           /* at most; 0: as many as were asked for */
	double round_ns = 2e6;       /* how long one run takes */
	size_t total_repeats = 0;    /* in all rounds together; 0: so many that a run takes round_ns */
	size_t least_repeats = 1;    /* in one round */
	size_t unmeasured = 0;       /* repeats before every round that do not count: for work whose memory
	                              the other subjects push out of the caches */
	double objects = 0;          /* most objects live at once: asks for peak_rss_bytes and
	                              bytes_per_object */
	std::function<void()> setup; /* runs before any subject is made: ages the heap, loads input */
	unsigned threads = 1;
	bool all_cpus = false; /* its threads choose their CPUs themselves */
	bool alone = false;    /* every run is one repeat in a process of its own: for what is measured
	                              in memory */
};

/* `static const registration r{"arena", workloads};` in any file adds workloads to a family. */
struct registration {
	registration(const char *family, std::vector<workload> (*workloads)());
};

std::vector<std::string> family_names();
std::vector<workload> family_workloads(const std::string &family);

struct run_options {
	size_t rounds = 61;
	std::string only; /* part of a workload's name */
};

/* Runs one workload in a process of its own; no rows when that process fails. */
std::vector<row> run_workload(const workload &w, const run_options &options);

/* Median with the 95 % interval of a sign test (order statistics). */
interval median_interval(std::vector<double> values);
double median(std::vector<double> values);

/* What the process has cost so far. */
struct process_figures {
	uint64_t minor_faults, major_faults, involuntary_switches;
};
process_figures read_process();

/* Resident bytes now, and the most since reset_peak, as the kernel counts while it runs: on each CPU it
 * may be behind by 32 pages of a kind. The exact figure takes a walk through the page tables. */
size_t resident_bytes();
size_t resident_bytes_exact();
size_t peak_resident_bytes();
void reset_peak();

/* Pins the calling thread and those that it starts to one CPU: member 0 of a crew to CPU 1, so that
 * CPU 0 is left to interrupts, where there are two, member 1 to the one after it, and so on round. */
void pin(unsigned member = 0);
void use_all_cpus();

/* Call first in main: starts the program again where the loader has kept too little thread-local
 * storage for a library that is opened at run time (jemalloc asks for 2.6 KiB). */
void reserve_static_tls(char **argv);

/* Ends the process unless malloc is the C library's own. */
void require_plain_malloc();

void write_json(const std::vector<row> &rows, const std::string &path);
void print_table(const std::vector<row> &rows);

}
#endif
