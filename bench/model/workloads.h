/* bench/model/workloads.h: what the simulated threads do. */
#ifndef BENCH_MODEL_WORKLOADS_H
#define BENCH_MODEL_WORKLOADS_H

#include <string>
#include <vector>

#include "model/subjects.h"

namespace model {

struct setting {
	unsigned threads;
	double warm_ns;     /* at first, not measured */
	double measured_ns; /* after that */
	uint64_t seed;
};

/* An operation is a pair of take and free. Figures of exchanges include the warm-up, the others do
 * not. */
struct outcome {
	double ops = 0;
	double ops_per_us = 0; /* of all threads, by the simulated clock */
	double cpu_ns = 0;     /* per operation */
	double fetches = 0;    /* cache lines from other cores, per operation */
	double exchanges = 0;  /* these three per million operations */
	double foreign = 0, waits = 0;
};

std::vector<std::string> workload_names();
/* Whether the workload has a part for so few threads. */
bool can_run(const std::string &workload, unsigned threads);
outcome measure(const std::string &workload, subject &s, const costs &c, const setting &how);

} /* namespace model */
#endif
