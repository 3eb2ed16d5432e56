/* bench/slab/workloads.h: loops over objects of 32 bytes that are freed one by one, as templates over
 * the adapter, so that a module of another build mode can hold the same loops. */
#ifndef BENCH_SLAB_WORKLOADS_H
#define BENCH_SLAB_WORKLOADS_H

#include <algorithm>
#include <cstddef>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "harness/harness.h"

namespace bench {

constexpr size_t slot_bytes = 32;
constexpr size_t most_slots = 65536;

enum class shape { pair, batch, random, reset };

template <class A> inline void *take(A &a, size_t value) {
	void *p = a.alloc();
	escape(p);
	*static_cast<size_t *>(p) = value;
	return p;
}

/* The barrier keeps frees apart, as in a program: no allocator state stays in a register. */
template <class A> inline void give(A &a, void *p) {
	a.free(p);
	barrier();
}

/* Takes, writes and frees one object. */
template <class A> class pairs : public contestant {
public:
	uint64_t run(size_t repeats) override {
		uint64_t from = ticks();
		for (size_t r = 0; r < repeats; r++)
			give(a_, take(a_, r));
		return ticks() - from;
	}

private:
	A a_;
};

/* Takes and writes `count` objects, then frees them in the same order. */
template <class A> class batches : public contestant {
public:
	batches(void **slots, size_t count) : slots_(slots), count_(count) {
	}
	uint64_t run(size_t repeats) override {
		uint64_t from = ticks();
		for (size_t r = 0; r < repeats; r++) {
			for (size_t i = 0; i < count_; i++)
				slots_[i] = take(a_, i);
			for (size_t i = 0; i < count_; i++)
				give(a_, slots_[i]);
		}
		return ticks() - from;
	}
	void describe(row &r) override {
		a_.describe(r);
	}

private:
	A a_;
	void **slots_;
	size_t count_;
};

/* Frees `count` live objects in random order and takes them again. */
template <class A> class random_order : public contestant {
public:
	explicit random_order(size_t count) : slots_(count), order_(count) {
		std::iota(order_.begin(), order_.end(), 0u);
		std::shuffle(order_.begin(), order_.end(), std::mt19937(1));
		for (size_t i = 0; i < count; i++)
			slots_[i] = take(a_, i);
	}
	uint64_t run(size_t repeats) override {
		uint64_t from = ticks();
		for (size_t r = 0; r < repeats; r++) {
			for (uint32_t i : order_)
				give(a_, slots_[i]);
			for (size_t i = 0; i < slots_.size(); i++)
				slots_[i] = take(a_, i);
		}
		return ticks() - from;
	}

private:
	A a_;
	std::vector<void *> slots_;
	std::vector<uint32_t> order_;
};

/* Measures only the freeing of `count` objects, all at once where the allocator can. */
template <class A> class slab_resets : public contestant {
public:
	slab_resets(void **slots, size_t count) : slots_(slots), count_(count) {
	}
	uint64_t run(size_t repeats) override {
		uint64_t sum = 0;
		for (size_t r = 0; r < repeats; r++) {
			for (size_t i = 0; i < count_; i++)
				slots_[i] = take(a_, i);
			uint64_t from = ticks();
			a_.reset(slots_, count_);
			sum += ticks() - from;
		}
		return sum;
	}

private:
	A a_;
	void **slots_;
	size_t count_;
};

/* `slots` has room for `count` pointers; the subjects of one workload share it. */
template <class A> std::unique_ptr<contestant> make_contestant(shape s, void **slots, size_t count) {
	switch (s) {
	case shape::pair:
		return std::make_unique<pairs<A>>();
	case shape::batch:
		return std::make_unique<batches<A>>(slots, count);
	case shape::random:
		return std::make_unique<random_order<A>>(count);
	case shape::reset:
		return std::make_unique<slab_resets<A>>(slots, count);
	}
	return nullptr;
}

}
#endif
