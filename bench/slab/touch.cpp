/* bench/slab/touch.cpp: the family `slab`: what it costs to touch objects, by where their first words
 * lie in the caches. */
#include <array>
#include <string>

#include "slab/sized.h"

namespace bench {
namespace {

constexpr size_t most_touched = 1024;
constexpr std::array<size_t, 5> touched_counts = {64, 128, 256, 512, most_touched};

/* Adds one to the first word of each of 64, 128, 256, 512 and 1,024 live objects in turn, each number
 * of objects for 1,024 touches. */
template <class A> class touches : public contestant {
public:
	explicit touches(size_t size) : all_(size) {
		for (size_t *&p : objects_) {
			p = static_cast<size_t *>(all_.alloc());
			*p = 0;
		}
	}
	uint64_t run(size_t repeats) override {
		last_ = {};
		for (size_t r = 0; r < repeats; r++)
			for (size_t i = 0; i < touched_counts.size(); i++)
				last_[i] += time_touches(touched_counts[i]);
		uint64_t sum = 0;
		for (uint64_t took : last_)
			sum += took;
		touched_ = repeats * most_touched;
		return sum;
	}
	void accept() override {
		for (size_t i = 0; i < last_.size(); i++)
			ns_[i].push_back(
				static_cast<double>(last_[i]) * ns_per_tick() / static_cast<double>(touched_));
	}
	/* The five numbers of objects by themselves. */
	void describe(row &r) override {
		for (size_t i = 0; i < ns_.size(); i++)
			r.fields["touch_" + std::to_string(touched_counts[i]) + "_ns"] = median(ns_[i]);
	}

private:
	uint64_t time_touches(size_t count) {
		uint64_t from = ticks();
		for (size_t pass = 0; pass < most_touched / count; pass++)
			for (size_t i = 0; i < count; i++)
				++*objects_[i];
		barrier();
		return ticks() - from;
	}

	A all_;
	std::array<size_t *, most_touched> objects_;
	std::array<uint64_t, touched_counts.size()> last_;
	std::array<std::vector<double>, touched_counts.size()> ns_;
	size_t touched_ = 0;
};

/* Floor: objects that are a cache line further apart than they are long. */
class spaced_floor : public sized_peer {
public:
	explicit spaced_floor(size_t size) : sized_peer(size), memory_(most_touched * spacing() + 64) {
		next_ = memory_.data() + 64 - reinterpret_cast<uintptr_t>(memory_.data()) % 64;
	}
	void *alloc() {
		char *p = next_;
		next_ = p + spacing();
		return p;
	}

private:
	size_t spacing() const {
		return size_ + 64;
	}

	std::vector<char> memory_;
	char *next_;
};

workload touches_of(const char *name, size_t size) {
	workload w;
	w.name = name;
	w.ops = static_cast<double>(touched_counts.size() * most_touched);
	w.subjects = sized_subjects<touches>(size);
	w.subjects.push_back(make_subject<touches<spaced_floor>>("floor", size));
	return w;
}

std::vector<workload> workloads() {
	return {touches_of("slab-touch-512", 512), touches_of("slab-touch-1024", 1024),
		touches_of("slab-touch-2048", 2048), touches_of("slab-touch-4096", 4096),
		touches_of("slab-touch-8192", 8192)};
}

const registration touch("slab", workloads);

}
}
