/* bench/shared/passing.cpp: the family `shared`: objects that one thread takes and another
 * one frees. */
#include "shared/passing.h"
#include "shared/peers.h"

namespace bench {
namespace {

workload make_workload(const char *name, setting s, double ops, std::vector<subject> subjects) {
	workload w;
	w.name = name;
	w.threads = s.threads;
	w.all_cpus = true;
	w.ops = ops;
	w.round_ns = s.threads > 2 ? 8e6 : 5e6;
	w.subjects = std::move(subjects);
	return w;
}

workload handoffs_of(const char *name, size_t count) {
	setting s{2, count};
	std::vector<subject> all = everybody_and_floor<handoffs, floor_passing, 64>(s);
	all.push_back(hardened_subject(shared_shape::handoff, s));
	return make_workload(name, s, static_cast<double>(count), std::move(all));
}

std::vector<workload> workloads() {
	setting four{4, 100};
	return {
		handoffs_of("handoff-7", 7),
		handoffs_of("handoff-120", 120),
		handoffs_of("handoff-1000", 1000),
		make_workload("msgpass-n-m", four, 200, everybody_and_floor<messages, floor_passing, 64>(four)),
	};
}

const registration passing("shared", workloads);

}
}
