/* bench/shared/loops.cpp: the family `shared`: objects of one size that any thread takes and any
 * thread frees. Here each thread frees its own objects. */
#include "shared/loops.h"
#include "shared/peers.h"
#include "slab/peers.h"

namespace bench {
namespace {

/* Wall time of one run: longer than a scheduler's turn where threads share CPUs. */
double round_of(unsigned threads) {
	return threads <= 2 ? 4e6 : 2e6 * threads;
}

workload own_objects(const char *name, setting s, double ops_each, std::vector<subject> subjects) {
	return make_workload(name, s, ops_each * s.threads, round_of(s.threads), std::move(subjects));
}

/* tenure-shared is the static library in the driver; these are the other linkages. */
void add_linkages(std::vector<subject> &to, setting s) {
	to.push_back({"tenure-shared-linked", [s] {
					  return std::unique_ptr<contestant>(
						  tenure_bench_shared_linked(crew_of(s.threads), shared_shape::pair, s.count));
				  }});
	to.push_back(module_subject("tenure-shared-dlopen", "libtenure-bench-dlopen.so",
		"tenure_bench_shared_dlopen", shared_shape::pair, s));
}

workload pairs_of(unsigned threads) {
	setting s{threads, 1};
	std::vector<subject> all = all_and_floor<shared_pairs, floor_shared, 32>(s);
	all.push_back(hardened_subject(shared_shape::pair, s));
	if (threads == 1)
		add_linkages(all, s);
	return own_objects("shared-pair-32", s, 1, std::move(all));
}

workload batches_of(const char *name, size_t count, unsigned threads) {
	setting s{threads, count};
	std::vector<subject> all = all_and_floor<shared_batches, floor_shared, 64>(s);
	all.push_back(hardened_subject(shared_shape::batch, s));
	return own_objects(name, s, static_cast<double>(count), std::move(all));
}

workload local_pairs() {
	return own_objects("shared-pair-32-local", {1, 1}, 1,
		{
			make_subject<pairs<tenure_handle<slot_bytes>>>("tenure-shared"),
			make_subject<pairs<tenure_slab>>("tenure-slab"),
			make_subject<pairs<floor_slab>>("floor"),
			make_subject<pairs<glibc_malloc>>("glibc"),
			make_subject<pairs<loaded_malloc<mimalloc_calls>>>("mimalloc"),
		});
}

/* Writes to an object of 8 bytes. */
constexpr size_t writes = 200;

std::vector<workload> workloads() {
	setting two{2, writes};
	std::vector<workload> all;
	for (unsigned threads : {1u, 2u, 4u, 8u})
		all.push_back(pairs_of(threads));
	all.push_back(local_pairs());
	for (unsigned threads : {1u, 2u})
		all.push_back(batches_of("shared-batch-16", 16, threads));
	for (unsigned threads : {1u, 2u, 4u, 8u}) {
		all.push_back(batches_of("shared-batch-256", 256, threads));
		all.push_back(batches_of("shared-batch-4096", 4096, threads));
	}
	all.push_back(
		own_objects("false-sharing-8", two, 1, all_and_floor<shared_writes, floor_shared, 8>(two)));
	all.push_back(
		own_objects("false-sharing-8-passed", two, 1, all_subjects<shared_writes_passed, 8>(two)));
	return all;
}

const registration shared("shared", workloads);

}
}
