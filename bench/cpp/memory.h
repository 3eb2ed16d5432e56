/* bench/cpp/memory.h: where containers get their memory, one small adapter each.
 *
 * An adapter says which allocators containers have, `allocator<T>`, and `nesting<T>` for containers
 * whose elements are to have their memory from the same place; handle() is what either is made from.
 * end() is the end of a repeat, age() what came before the first one. */
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

/* A resource as a container sees it: nobody can know which one it is, so that calls are virtual. */
template <class Base> Base *hidden(Base *resource) {
	escape(resource);
	return resource;
}

/* std's containers; nothing came before, and nothing happens at the end. */
class std_memory {
public:
	template <class T> using allocator = std::pmr::polymorphic_allocator<T>;
	template <class T> using nesting = allocator<T>;

	void end() {
	}
	void age() {
	}
};

/* A resource that is kept, and that takes back what containers give back. */
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

/* Its heap is aged before anybody's memory is made. */
class glibc_memory : public std_memory {
public:
	std::pmr::memory_resource *handle() {
		return hidden(std::pmr::new_delete_resource());
	}
};

/* Begins with a buffer of its caller's, and again after every release. */
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

/* Boost's resources are none of std's, but its allocator fits std's containers. */
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
