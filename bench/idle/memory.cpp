/* bench/idle/memory.cpp: the family `idle`: memory that holds no object. Here beside live objects: what
 * an allocator takes for as many objects as a program keeps. */
#include <cstdio>
#include <cstring>

#include "slab/sized.h"

namespace bench {
namespace {

constexpr size_t live_objects = 65536;

/* Written before memory is measured. */
void *live[live_objects];

void touch_live() {
	std::fill_n(live, live_objects, static_cast<void *>(live));
	anonymous_bytes_exact();
}

/* Takes the objects and writes every byte of them. The process ends where the allocator's own
 * statistics tell less than what is resident. */
template <class A> class held : public contestant {
public:
	explicit held(size_t size) : size_(size) {
	}
	uint64_t run(size_t) override {
		size_t before = anonymous_bytes_exact();
		A all(size_);
		uint64_t from = ticks();
		for (void *&p : live) {
			p = all.alloc();
			escape(p);
			std::memset(p, 1, size_);
		}
		uint64_t took = ticks() - from;
		size_t resident = anonymous_bytes_exact() - before, committed = all.committed_bytes();
		resident_ = ratio(resident);
		committed_ = committed == 0 ? resident_ : ratio(committed);
		if (resident_ > committed_ * allowed_difference) {
			std::fprintf(
				stderr, "tenure-bench: %zu bytes are resident, %zu told\n", resident, committed);
			std::exit(2);
		}
		return took;
	}
	void describe(row &r) override {
		r.fields["committed_ratio"] = committed_;
		r.fields["resident_ratio"] = resident_;
	}

private:
	/* For what a process needs only once, as the page table of the allocators. */
	static constexpr double allowed_difference = 1.01;

	double ratio(size_t bytes) const {
		return static_cast<double>(bytes) / static_cast<double>(live_objects * size_);
	}

	size_t size_;
	double committed_ = 0, resident_ = 0;
};

workload held_of(const char *name, size_t size) {
	workload w;
	w.name = name;
	w.ops = live_objects;
	w.rounds = 3;
	w.alone = true;
	w.setup = touch_live;
	w.subjects = sized_subjects<held>(size);
	return w;
}

std::vector<workload> workloads() {
	return {held_of("idle-memory-16", 16), held_of("idle-memory-24", 24), held_of("idle-memory-32", 32),
		held_of("idle-memory-48", 48), held_of("idle-memory-64", 64), held_of("idle-memory-128", 128),
		held_of("idle-memory-512", 512), held_of("idle-memory-4096", 4096)};
}

const registration memory("idle", workloads);

}
}
