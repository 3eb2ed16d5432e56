/* bench/shared/passing.cpp: the family `shared`: objects that one thread takes and another frees. */
#include "shared/passing.h"
#include "shared/peers.h"

namespace bench {
namespace {

workload handoffs_of(const char *name, size_t count) {
	setting s{2, count};
	std::vector<subject> all = all_and_floor<handoffs, floor_passing, 64>(s);
	all.push_back(hardened_subject(shared_shape::handoff, s));
	return make_workload(name, s, static_cast<double>(count), 5e6, std::move(all));
}

std::vector<workload> workloads() {
	setting four{4, 100};
	return {
		handoffs_of("handoff-7", 7),
		handoffs_of("handoff-120", 120),
		handoffs_of("handoff-1000", 1000),
		make_workload("msgpass-n-m", four, 200, 8e6, all_and_floor<messages, floor_passing, 64>(four)),
	};
}

const registration passing("shared", workloads);

}
}
