/* bench/slab/workloads.cpp: the family `slab`: objects of one size, freed one by one. */
#include "slab/peers.h"

namespace bench {
namespace {

/* The subjects of a workload share it; written before memory is measured. */
void *shared_slots[most_slots];

void touch_slots() {
	std::fill_n(shared_slots, most_slots, static_cast<void *>(shared_slots));
}

template <class A> subject slab_subject(const char *name, shape s, size_t count) {
	return {name, [s, count] { return make_contestant<A>(s, shared_slots, count); }};
}

std::unique_ptr<contestant> make_hardened(shape s, size_t count) {
	const loaded_library &module = driver_library("libtenure-bench-hardened.so");
	auto make = module.find<contestant *(shape, void **, size_t)>("tenure_bench_hardened");
	return std::unique_ptr<contestant>(make(s, shared_slots, count));
}

std::vector<subject> all_subjects(shape s, size_t n) {
	return {
		slab_subject<tenure_slab>("tenure-slab", s, n),
		slab_subject<tenure_slab_zeroed>("tenure-slab-zeroed", s, n),
		{"tenure-slab-hardened", [s, n] { return make_hardened(s, n); }},
		slab_subject<floor_slab>("floor", s, n),
		slab_subject<glibc_malloc>("glibc", s, n),
		slab_subject<glibc_calloc>("glibc-calloc", s, n),
		slab_subject<loaded_malloc<mimalloc_calls>>("mimalloc", s, n),
		slab_subject<loaded_malloc<jemalloc_calls>>("jemalloc", s, n),
		slab_subject<loaded_malloc<tcmalloc_calls>>("tcmalloc", s, n),
		slab_subject<boost_pool>("boost", s, n),
		slab_subject<foonathan_pool>("foonathan", s, n),
		slab_subject<pmr_pool>("pmr", s, n),
		slab_subject<glib_slice>("gslice", s, n),
	};
}

workload make_workload(const char *name, shape s, size_t count) {
	workload w;
	w.name = name;
	w.ops = static_cast<double>(count);
	w.subjects = all_subjects(s, count);
	w.setup = touch_slots;
	if (count == most_slots) {
		w.unmeasured = 1;
		w.least_repeats = 3;
	}
	return w;
}

std::vector<workload> workloads() {
	std::vector<workload> all = {
		make_workload("slab-pair-32", shape::pair, 1),
		make_workload("slab-batch-16", shape::batch, 16),
		make_workload("slab-batch-256", shape::batch, 256),
		make_workload("slab-batch-4096", shape::batch, 4096),
		make_workload("slab-batch-65536", shape::batch, 65536),
		make_workload("slab-random-65536", shape::random, 65536),
		make_workload("slab-reset-65536", shape::reset, 65536),
	};
	all[4].objects = 65536;
	return all;
}

const registration slab("slab", workloads);

}
}
