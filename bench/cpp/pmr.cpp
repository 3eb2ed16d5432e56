/* bench/cpp/pmr.cpp: the family `cpp`: containers of one thread, on several sources of memory. */
#include "cpp/containers.h"
#include "cpp/tenure.h"
#include "harness/harness.h"

namespace bench {
namespace {

template <class Life, class Memory> class container_lives : public contestant {
public:
	explicit container_lives(bool aged) {
		if (aged)
			memory_.age();
	}
	uint64_t run(size_t repeats) override {
		uint64_t from = ticks();
		for (size_t r = 0; r < repeats; r++) {
			Life::live(memory_);
			memory_.end();
		}
		return ticks() - from;
	}

private:
	Memory memory_;
};

/* More bytes than a repeat uses. */
constexpr size_t ample = 4 << 20;

template <class Life> workload make_workload(std::string name, bool aged) {
	workload w;
	w.name = std::move(name);
	w.ops = static_cast<double>(Life::elements());
	if (aged)
		w.setup = [] { age_through(*std::pmr::new_delete_resource()); };
	w.subjects = {
		make_subject<container_lives<Life, tenure_arena_memory>>("tenure-arena", aged),
		make_subject<container_lives<Life, tenure_slab_memory>>("tenure-slab", aged),
		make_subject<container_lives<Life, tenure_shared_memory>>("tenure-shared", aged),
		make_subject<container_lives<Life, tenure_arena_allocator>>("tenure-arena-allocator", aged),
		make_subject<container_lives<Life, tenure_slab_allocator>>("tenure-slab-allocator", aged),
		make_subject<container_lives<Life, glibc_memory>>("glibc", aged),
		make_subject<container_lives<Life, pmr_memory<std::pmr::unsynchronized_pool_resource>>>(
			"pmr", aged),
		make_subject<container_lives<Life, pmr_memory<std::pmr::synchronized_pool_resource>>>(
			"pmr-synchronized", aged),
		make_subject<container_lives<Life, monotonic_memory<ample>>>("pmr-monotonic", aged),
		make_subject<container_lives<Life, monotonic_memory<65536>>>("pmr-monotonic-64k", aged),
		make_subject<container_lives<Life, boost_memory>>("boost", aged),
	};
	return w;
}

std::vector<workload> workloads() {
	std::vector<workload> all;
	for (bool aged : {false, true}) {
		std::string end = aged ? "-aged" : "";
		all.push_back(make_workload<map_life>("pmr-map" + end, aged));
		all.push_back(make_workload<list_life>("pmr-list" + end, aged));
		all.push_back(make_workload<unordered_map_life>("pmr-unordered_map" + end, aged));
		all.push_back(make_workload<vector_string_life>("pmr-vector-string" + end, aged));
	}
	return all;
}

const registration containers_of_one("cpp", workloads);

}
}
