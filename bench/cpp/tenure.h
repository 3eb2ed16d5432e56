/* bench/cpp/tenure.h: adapters of Tenure's resources (see cpp/memory.h). */
#ifndef BENCH_CPP_TENURE_H
#define BENCH_CPP_TENURE_H

#include <scoped_allocator>

#include <tenure/allocator.hpp>
#include <tenure/arena_resource.hpp>
#include <tenure/slab_resource.hpp>

#include "cpp/memory.h"

namespace bench {

/* The arena reuses nothing before its reset, so ageing would leave no trace in it. */
class tenure_arena_memory : public pmr_memory<tenure::arena_resource> {
public:
	void end() {
		resource_.reset();
	}
	void age() {
	}
};

using tenure_slab_memory = pmr_memory<tenure::slab_resource>;
using tenure_shared_memory = pmr_memory<tenure::shared_slab_resource>;

/* The same memory through tenure::allocator, which knows the resource's type: no virtual call. */
template <class Memory, class Resource> class allocator_memory : public Memory {
public:
	template <class T> using allocator = tenure::allocator<T, Resource>;
	template <class T> using nesting = std::scoped_allocator_adaptor<allocator<T>>;

	Resource &handle() {
		return *hidden(&this->resource_);
	}
};

using tenure_arena_allocator = allocator_memory<tenure_arena_memory, tenure::arena_resource>;
using tenure_slab_allocator = allocator_memory<tenure_slab_memory, tenure::slab_resource>;

}
#endif
