/* bench/cpp/memory.h: adapters of sources of memory for containers.
 *
 * `allocator<T>` is the allocator of a container, `nesting<T>` that of a container whose elements
 * take memory from the same source; both are made from handle(). end() is called at the end of a
 * repeat, age() once before the first one. */
#ifndef BENCH_CPP_MEMORY_H
#define BENCH_CPP_MEMORY_H

#include <boost/container/pmr/polymorphic_allocator.hpp>
#include <boost/container/pmr/unsynchronized_pool_resource.hpp>

#include <cstddef>
#include <memory_resource>
#include <vector>

#include "harness/ageing.h"
#include "harness/clock.h"

namespace bench {

template <class Resource> void age_through(Resource &r) {
	constexpr size_t align = alignof(std::max_align_t);
	age([&](size_t size) { return r.allocate(size, align); },
		[&](void *p, size_t size) { r.deallocate(p, size, align); });
}

/* Hides the resource's type from the compiler, so that calls stay virtual. */
template <class Base> Base *hidden(Base *resource) {
	escape(resource);
	return resource;
}

/* std's polymorphic allocator; end() and age() have nothing to do. */
class std_memory {
public:
	template <class T> using allocator = std::pmr::polymorphic_allocator<T>;
	template <class T> using nesting = allocator<T>;

	void end() {
	}
	void age() {
	}
};

/* A resource that lives through all repeats and reuses memory that containers return. */
template <class Resource> class pmr_memory : public std_memory {
public:
	std::pmr::memory_resource *handle() {
		return hidden<std::pmr::memory_resource>(&resource_);
	}
	void age() {
		age_through(resource_);
	}

protected:
	Resource resource_;
};

/* The workload's setup has aged this heap before any subject is made. */
class glibc_memory : public std_memory {
public:
	std::pmr::memory_resource *handle() {
		return hidden(std::pmr::new_delete_resource());
	}
};

/* Starts in the caller's buffer, and again after every release. */
template <size_t bytes> class monotonic_memory : public std_memory {
public:
	std::pmr::memory_resource *handle() {
		return hidden<std::pmr::memory_resource>(&resource_);
	}
	void end() {
		resource_.release();
	}

private:
	std::vector<std::max_align_t> buffer_{bytes / sizeof(std::max_align_t)};
	std::pmr::monotonic_buffer_resource resource_{buffer_.data(), bytes};
};

/* Boost's resources do not derive from std's, but Boost's allocator fits std's containers. */
class boost_memory {
public:
	template <class T> using allocator = boost::container::pmr::polymorphic_allocator<T>;
	template <class T> using nesting = allocator<T>;

	boost::container::pmr::memory_resource *handle() {
		return hidden<boost::container::pmr::memory_resource>(&resource_);
	}
	void end() {
	}
	void age() {
		age_through(resource_);
	}

private:
	boost::container::pmr::unsynchronized_pool_resource resource_;
};

}
#endif
