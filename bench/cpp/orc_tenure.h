/* bench/cpp/orc_tenure.h: Tenure's base classes (see cpp/orc_peers.h). */
#ifndef BENCH_CPP_ORC_TENURE_H
#define BENCH_CPP_ORC_TENURE_H

#include <tenure/allocated.hpp>

#include "cpp/orc_peers.h"

namespace bench {

template <class T> class from_size_based_arena : public tenure::arena_allocated<T, most_orcs> {
public:
	static void prepare() {
	}
	static void start_again() {
		if (!tenure::size_based_arena<T, most_orcs>::get().reset())
			std::abort();
	}
};

template <class T> class from_slab : public tenure::slab_allocated<T>, public plain_source {};
template <class T>
class from_shared_slab : public tenure::shared_slab_allocated<T>, public plain_source {};

}
#endif
