/* bench/shared/lives.cpp: the family `shared`: threads that end before their objects, and the memory
 * that remains after threads. */
#include "shared/lives.h"
#include "shared/peers.h"

namespace bench {
namespace {

constexpr double round_ns = 6e6;

workload larson_of(unsigned threads) {
	setting s{threads, 1000};
	return make_workload("larson-64", s, static_cast<double>(larson_replacements * threads), round_ns,
		all_and_floor<larson, floor_shared, lives_size>(s));
}

workload alone(workload w, size_t rounds) {
	w.alone = true;
	w.rounds = rounds;
	return w;
}

std::vector<workload> workloads() {
	setting churning{4, 10000}, bursting{2, (size_t{512} << 20) / lives_size};
	return {
		larson_of(2),
		larson_of(4),
		alone(make_workload(
				  "thread-churn", churning, 10000, round_ns, mallocs<churn, lives_size>(churning)),
			3),
		alone(make_workload("burst-1g", bursting, static_cast<double>(2 * bursting.count), round_ns,
				  mallocs<burst, lives_size>(bursting)),
			1),
	};
}

const registration lives("shared", workloads);

}
}
