/* bench/shared/kinds.cpp: the family `shared`: objects of four sizes in turn, each from a slab of its
 * own; three of the slabs are not near. */
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

/* One object of each kind taken and written, then all freed in the same order. */
template <template <size_t> class A> class kinds : public contestant {
public:
	uint64_t run(size_t repeats) override {
		uint64_t from = ticks();
		for (size_t r = 0; r < repeats; r++) {
			void *a = take(a_, r), *b = take(b_, r), *c = take(c_, r), *d = take(d_, r);
			give(a_, a);
			give(b_, b);
			give(c_, c);
			give(d_, d);
		}
		return ticks() - from;
	}

private:
	A<32> a_;
	A<48> b_;
	A<64> c_;
	A<96> d_;
};

std::vector<workload> workloads() {
	workload w;
	w.name = "shared-kinds-4";
	w.ops = 4;
	w.subjects = {
		make_subject<kinds<tenure_shared>>("tenure-shared"),
		make_subject<kinds<tenure_handle>>("tenure-shared-local"),
		make_subject<kinds<floor_kind>>("floor"),
		make_subject<kinds<glibc_shared>>("glibc"),
		make_subject<kinds<mimalloc_shared>>("mimalloc"),
		make_subject<kinds<jemalloc_shared>>("jemalloc"),
		make_subject<kinds<tcmalloc_shared>>("tcmalloc"),
		make_subject<kinds<tbb_shared>>("tbb"),
		make_subject<kinds<gslice_shared>>("gslice"),
	};
	if (has_cargo_peers) {
		w.subjects.push_back(make_subject<kinds<snmalloc_shared>>("snmalloc"));
		w.subjects.push_back(make_subject<kinds<mimalloc3_shared>>("mimalloc3"));
	}
	return {w};
}

const registration kinds_of_objects("shared", workloads);

}
}
