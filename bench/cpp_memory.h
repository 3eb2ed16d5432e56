/* bench/cpp_memory.h: where containers get their memory, one small adapter each.
 *
 * An adapter says which allocators containers have, `allocator<T>`, and `nesting<T>` for containers
 * whose elements are to have their memory from the same place; handle() is what either is made from.
 * end() is the end of a repeat, age() what came before the first one. */
#ifndef BENCH_CPP_MEMORY_H
#define BENCH_CPP_MEMORY_H

#include <boost/container/pmr/polymorphic_allocator.hpp>
#include <boost/container/pmr/unsynchronized_pool_resource.hpp>

#include <algorithm>
#include <cstddef>
#include <memory_resource>
#include <random>
#include <vector>

#include "clock.h"

namespace bench {

struct aged_block {
	size_t size;
	void *start;
};

/* 600,000 blocks of 16 to 512 bytes, of which 60 % are freed in random order; the others stay. */
template <class Resource> void age_through(Resource &r) {
	std::mt19937_64 random(1);
	std::vector<aged_block> blocks(600000);
	for (aged_block &b : blocks) {
		size_t octave = static_cast<size_t>(16) << random() % 5;
		b.size = octave + random() % octave;
		b.start = r.allocate(b.size, alignof(std::max_align_t));
		*static_cast<char *>(b.start) = 1;
	}
	std::shuffle(blocks.begin(), blocks.end(), random);
	for (size_t i = 0; i < blocks.size() / 10 * 6; i++)
		r.deallocate(blocks[i].start, blocks[i].size, alignof(std::max_align_t));
}

/* A resource as a container sees it: nobody can know which one it is, so that calls are virtual. */
template <class Base> Base *hidden(Base *resource) {
	escape(resource);
	return resource;
}

/* A resource that is kept, and that takes back what containers give back. */
template <class Resource> class pmr_memory {
public:
	template <class T> using allocator = std::pmr::polymorphic_allocator<T>;
	template <class T> using nesting = allocator<T>;

	std::pmr::memory_resource *handle() {
		return hidden<std::pmr::memory_resource>(&resource_);
	}
	void end() {
	}
	void age() {
		age_through(resource_);
	}

protected:
	Resource resource_;
};

/* Its heap is aged before anybody's memory is made. */
class glibc_memory {
public:
	template <class T> using allocator = std::pmr::polymorphic_allocator<T>;
	template <class T> using nesting = allocator<T>;

	std::pmr::memory_resource *handle() {
		return hidden(std::pmr::new_delete_resource());
	}
	void end() {
	}
	void age() {
	}
};

/* Begins with a buffer of its caller's, and again after every release. */
template <size_t bytes> class monotonic_memory {
public:
	template <class T> using allocator = std::pmr::polymorphic_allocator<T>;
	template <class T> using nesting = allocator<T>;

	std::pmr::memory_resource *handle() {
		return hidden<std::pmr::memory_resource>(&resource_);
	}
	void end() {
		resource_.release();
	}
	void age() {
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
