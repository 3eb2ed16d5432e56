/* bench/slab/peers.h: adapters of allocators for objects of 32 bytes that are freed one by one:
 * alloc(), free(p), reset(slots, count). Chunks are 64 KiB wherever the allocator can be told so. */
#ifndef BENCH_SLAB_PEERS_H
#define BENCH_SLAB_PEERS_H

#include <boost/pool/pool.hpp>
#include <foonathan/memory/memory_pool.hpp>
#include <glib.h>

#include <cstdlib>
#include <memory_resource>

#include "harness/loaded_malloc.h"
#include "slab/tenure.h"

namespace bench {

constexpr size_t chunk_bytes = 65536;
constexpr size_t chunk_slots = chunk_bytes / slot_bytes;

/* The reset of an allocator without one: frees every object. */
template <class A> class one_by_one {
public:
	void reset(void **slots, size_t count) {
		for (size_t i = 0; i < count; i++)
			give(*static_cast<A *>(this), slots[i]);
	}
	void describe(row &) const {
	}
};

/* The slab with a memset beside it: the promise of calloc. */
class tenure_slab_zeroed : public tenure_slab {
public:
	void *alloc() {
		return __builtin_memset(tenure_slab::alloc(), 0, slot_bytes);
	}
};

/* Floor: an array of pointers to free slots, with a test of both ends. */
class floor_slab : public one_by_one<floor_slab> {
public:
	floor_slab() : memory_(most_slots * slot_bytes), stack_(most_slots) {
		bottom_ = stack_.data();
		top_ = limit_ = bottom_ + most_slots;
		for (size_t i = 0; i < most_slots; i++)
			stack_[i] = memory_.data() + (most_slots - 1 - i) * slot_bytes;
	}

	void *alloc() {
		void **top = top_;
		if (__builtin_expect(top == bottom_, 0))
			std::abort();
		top_ = top - 1;
		return top[-1];
	}
	void free(void *p) {
		void **top = top_;
		if (__builtin_expect(top == limit_, 0))
			std::abort();
		*top = p;
		top_ = top + 1;
	}

private:
	std::vector<char> memory_;
	std::vector<void *> stack_;
	void **top_, **bottom_, **limit_;
};

class glibc_malloc : public one_by_one<glibc_malloc> {
public:
	void *alloc() {
		return std::malloc(slot_bytes);
	}
	void free(void *p) {
		std::free(p);
	}
};

class glibc_calloc : public one_by_one<glibc_calloc> {
public:
	void *alloc() {
		return std::calloc(1, slot_bytes);
	}
	void free(void *p) {
		std::free(p);
	}
};

template <const malloc_calls &(*load)()> class loaded_malloc : public one_by_one<loaded_malloc<load>> {
public:
	void *alloc() {
		return calls_.alloc(slot_bytes);
	}
	void free(void *p) {
		calls_.free(p);
	}

private:
	malloc_calls calls_ = load();
};

class boost_pool {
public:
	void *alloc() {
		return (pool_.malloc)();
	}
	void free(void *p) {
		(pool_.free)(p);
	}
	void reset(void **, size_t) {
		pool_.purge_memory();
	}
	void describe(row &) const {
	}

private:
	boost::pool<boost::default_user_allocator_malloc_free> pool_{slot_bytes, chunk_slots, chunk_slots};
};

class foonathan_pool : public one_by_one<foonathan_pool> {
public:
	void *alloc() {
		return pool_.allocate_node();
	}
	void free(void *p) {
		pool_.deallocate_node(p);
	}

private:
	foonathan::memory::memory_pool<foonathan::memory::node_pool> pool_{slot_bytes, chunk_bytes};
};

class pmr_pool {
public:
	void *alloc() {
		return pool_.allocate(slot_bytes, 16);
	}
	void free(void *p) {
		pool_.deallocate(p, slot_bytes, 16);
	}
	void reset(void **, size_t) {
		pool_.release();
	}
	void describe(row &) const {
	}

private:
	std::pmr::unsynchronized_pool_resource pool_{std::pmr::pool_options{chunk_slots, slot_bytes}};
};

class glib_slice : public one_by_one<glib_slice> {
public:
	void *alloc() {
		return g_slice_alloc(slot_bytes);
	}
	void free(void *p) {
		g_slice_free1(slot_bytes, p);
	}
};

}
#endif
