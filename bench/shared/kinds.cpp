/* bench/shared/kinds.cpp: the family `shared`: objects of several sizes in turn, each from a slab of
 * its own; all of the slabs but one are not near. */
#include <array>
#include <tuple>
#include <utility>

#include "shared/peers.h"
#include "slab/peers.h"

namespace bench {
namespace {

template <size_t size> using mimalloc_shared = loaded_shared<size, mimalloc_calls>;
template <size_t size> using jemalloc_shared = loaded_shared<size, jemalloc_calls>;
template <size_t size> using tcmalloc_shared = loaded_shared<size, tcmalloc_calls>;
template <size_t size> using tbb_shared = loaded_shared<size, tbb_calls>;
template <size_t size> using snmalloc_shared = loaded_shared<size, snmalloc_calls>;
template <size_t size> using mimalloc3_shared = loaded_shared<size, mimalloc3_calls>;
template <size_t> using floor_kind = floor_slab; /* slots of 32 bytes: only the first word is written */

/* Every multiple of 16 up to 256; a workload of fewer kinds has the first of them. */
constexpr std::array<size_t, 16> kind_sizes = {
	32, 48, 64, 96, 128, 160, 192, 256, 16, 80, 112, 144, 176, 208, 224, 240};

/* One object of each kind taken and written, then all freed in the same order. */
template <template <size_t> class A, class Kinds> class kinds;
template <template <size_t> class A, size_t... kind>
class kinds<A, std::index_sequence<kind...>> : public contestant {
public:
	uint64_t run(size_t repeats) override {
		uint64_t from = ticks();
		for (size_t r = 0; r < repeats; r++) {
			void *objects[] = {take(std::get<kind>(all_), r)...};
			(give(std::get<kind>(all_), objects[kind]), ...);
		}
		return ticks() - from;
	}

private:
	std::tuple<A<kind_sizes[kind]>...> all_;
};

template <size_t count> workload kinds_of(const char *name) {
	using all = std::make_index_sequence<count>;
	workload w;
	w.name = name;
	w.ops = count;
	w.subjects = {
		make_subject<kinds<tenure_shared, all>>("tenure-shared"),
		make_subject<kinds<tenure_handle, all>>("tenure-shared-local"),
		make_subject<kinds<floor_kind, all>>("floor"),
		make_subject<kinds<glibc_shared, all>>("glibc"),
		make_subject<kinds<mimalloc_shared, all>>("mimalloc"),
		make_subject<kinds<jemalloc_shared, all>>("jemalloc"),
		make_subject<kinds<tcmalloc_shared, all>>("tcmalloc"),
		make_subject<kinds<tbb_shared, all>>("tbb"),
		make_subject<kinds<gslice_shared, all>>("gslice"),
	};
	if (has_cargo_peers) {
		w.subjects.push_back(make_subject<kinds<snmalloc_shared, all>>("snmalloc"));
		w.subjects.push_back(make_subject<kinds<mimalloc3_shared, all>>("mimalloc3"));
	}
	return w;
}

std::vector<workload> workloads() {
	return {
		kinds_of<4>("shared-kinds-4"), kinds_of<8>("shared-kinds-8"), kinds_of<16>("shared-kinds-16")};
}

const registration kinds_of_objects("shared", workloads);

}
}
