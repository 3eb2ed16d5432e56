/* bench/idle/traffic.cpp: what a burst left, after the traffic that follows it, after a trim from
 * another thread, and under memory pressure. `left_share` is the part of the burst's bytes that is
 * left: of a pool what it says that it holds, elsewhere what is resident. */
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "harness/harness.h"
#include "tenure/tenure.h"

namespace bench {
namespace {

using steady = std::chrono::steady_clock;

constexpr size_t burst_objects = 1024, object_bytes = 4096;
constexpr size_t idle_bytes = size_t(32) << 20;
constexpr size_t block_bytes = 1024;

/* Takes so many blocks, writes them, and gives them back. */
template <class Alloc, class Free> void burst_of(size_t count, size_t size, Alloc alloc, Free free) {
	std::vector<void *> out(count);
	for (void *&p : out)
		std::memset(p = alloc(), 1, size);
	for (size_t i = count; i > 0; i--)
		free(out[i - 1]);
}

/* ---- a pool in its own traffic ---- */

class pool_traffic : public contestant {
public:
	explicit pool_traffic(size_t at_a_time) : at_a_time_(at_a_time) {
	}
	uint64_t run(size_t) override {
		constexpr auto window = std::chrono::milliseconds(1000); /* the default of decay_ms */
		tn_pool *p = tn_pool_create(object_bytes, 0, nullptr);
		auto get = [p] { return tn_pool_get(p); };
		auto put = [p](void *object) { tn_pool_put(p, object); };
		burst_of(burst_objects, object_bytes, get, put);
		if (at_a_time_ == 0)
			tn_maintain_start();
		uint64_t from = ticks();
		auto end = steady::now() + 2 * window;
		if (at_a_time_ == 0)
			std::this_thread::sleep_until(end + std::chrono::milliseconds(250)); /* its interval */
		while (at_a_time_ != 0 && steady::now() < end)
			burst_of(at_a_time_, 1, get, put);
		uint64_t took = ticks() - from;
		tn_stats stats;
		tn_pool_stats(p, &stats);
		left_ = static_cast<double>(stats.cached_bytes) / (burst_objects * object_bytes);
		tn_maintain_stop();
		tn_pool_destroy(p);
		return took;
	}
	void describe(row &r) override {
		r.fields["left_share"] = left_;
	}

private:
	size_t at_a_time_;
	double left_ = 0;
};

/* ---- trimmed from another thread ---- */

class slab_use {
public:
	void *alloc() {
		return tn_slab_alloc(slab_);
	}
	void free(void *p) {
		tn_slab_free(slab_, p);
	}
	void go_on() {
		free(alloc());
	}

private:
	tn_slab *slab_ = tn_slab_create(block_bytes, 0, nullptr);
};

class shared_use {
public:
	void *alloc() {
		return tn_shared_slab_alloc(slab_);
	}
	void free(void *p) {
		tn_shared_slab_free(slab_, p);
	}
	void go_on() {
		free(alloc());
	}

private:
	tn_shared_slab *slab_ = tn_shared_slab_create(block_bytes, 0, nullptr);
};

class pool_use {
public:
	pool_use() {
		tn_pool_options o = {};
		o.max_idle_objects = idle_bytes / block_bytes;
		pool_ = tn_pool_create(block_bytes, 0, &o);
	}
	void *alloc() {
		return tn_pool_get(pool_);
	}
	void free(void *p) {
		tn_pool_put(pool_, p);
	}
	void go_on() {
		free(alloc());
	}

private:
	tn_pool *pool_;
};

class heap_use {
public:
	void *alloc() {
		return tn_heap_alloc(heap_, block_bytes, 0);
	}
	void free(void *p) {
		tn_heap_free(heap_, p);
	}
	void go_on() {
		free(alloc());
	}

private:
	tn_heap *heap_ = tn_heap_create(nullptr);
};

class arena_use {
public:
	void *alloc() {
		return tn_arena_alloc(arena_, block_bytes, 0);
	}
	void free(void *) {
		freed_++;
	}
	/* The burst ends with a reset, as does each pair. */
	void go_on() {
		alloc();
		tn_arena_reset(arena_);
	}
	void end_burst() {
		tn_arena_reset(arena_);
	}

private:
	tn_arena *arena_ = tn_arena_create(nullptr);
	size_t freed_ = 0;
};

template <class A> void end_burst(A &) {
}
void end_burst(arena_use &a) {
	a.end_burst();
}

/* `at_once`: before the owner's next call. */
template <class A> class trimmed : public contestant {
public:
	explicit trimmed(bool at_once) : at_once_(at_once) {
	}
	uint64_t run(size_t) override {
		A &a = *new A;
		tn_trim_all();
		std::thread(tn_trim_all).join(); /* its stack */
		size_t before = anonymous_bytes_exact();
		burst_of(
			idle_bytes / block_bytes, block_bytes, [&a] { return a.alloc(); },
			[&a](void *p) { a.free(p); });
		end_burst(a);
		size_t full = anonymous_bytes_exact();
		uint64_t from = ticks();
		std::thread(tn_trim_all).join();
		for (int i = 0; !at_once_ && i < 1000; i++)
			a.go_on();
		uint64_t took = ticks() - from;
		size_t after = anonymous_bytes_exact();
		left_ = static_cast<double>(after - std::min(after, before)) / static_cast<double>(idle_bytes);
		idle_ = static_cast<double>(full - std::min(full, before)) / static_cast<double>(idle_bytes);
		return took;
	}
	void describe(row &r) override {
		r.fields["left_share"] = left_;
		r.fields["idle_share"] = idle_; /* before the trim: most is idle, or the row shows nothing */
	}

private:
	bool at_once_;
	double left_ = 0, idle_ = 0;
};

/* ---- pressure ---- */

/* 256 MiB idle over 20 allocators; then a file of PSI tells of stalls. The owner goes on a pair at a
 * time, and notes when the callback says that all were asked. */
class pressed : public contestant {
public:
	uint64_t run(size_t) override {
		constexpr size_t each = (size_t(256) << 20) / 20;
		std::vector<slab_use> slabs(5);
		std::vector<shared_use> shared(5);
		std::vector<heap_use> heaps(5);
		std::vector<arena_use> arenas(5);
		tn_trim_all();
		size_t before = anonymous_bytes_exact();
		auto fill = [](auto &all) {
			for (auto &a : all) {
				burst_of(
					each / block_bytes, block_bytes, [&a] { return a.alloc(); },
					[&a](void *p) { a.free(p); });
				end_burst(a);
			}
		};
		fill(slabs);
		fill(shared);
		fill(heaps);
		fill(arenas);
		std::string path = "/tmp/tenure-bench-pressure." + std::to_string(getpid());
		stalled_ = 0;
		write(path);
		tn_pressure_options o = {};
		o.file = path.c_str();
		if (!tn_pressure_start(&o))
			std::abort();
		uint64_t from = ticks();
		auto begin = steady::now();
		while (steady::now() - begin < std::chrono::seconds(2)) {
			stalled_ += 100000;
			write(path);
			for (auto &a : slabs)
				a.go_on();
			for (auto &a : shared)
				a.go_on();
			for (auto &a : heaps)
				a.go_on();
			for (auto &a : arenas)
				a.go_on();
			size_t now = anonymous_bytes_exact();
			left_ = static_cast<double>(now - std::min(now, before)) / (20.0 * each);
			react_ms_ = std::chrono::duration<double, std::milli>(steady::now() - begin).count();
			if (left_ <= 0.1)
				break;
			std::this_thread::sleep_for(std::chrono::milliseconds(5));
		}
		uint64_t took = ticks() - from;
		tn_pressure_stop();
		std::remove(path.c_str());
		return took;
	}
	void describe(row &r) override {
		r.fields["left_share"] = left_;
		r.fields["react_ms"] = react_ms_;
	}

private:
	void write(const std::string &path) const {
		std::string next = path + ".next";
		std::FILE *f = std::fopen(next.c_str(), "w");
		if (f == nullptr)
			std::abort();
		std::fprintf(f, "some avg10=0.00 avg60=0.00 avg300=0.00 total=%zu\n", stalled_);
		std::fclose(f);
		std::rename(next.c_str(), path.c_str());
	}
	size_t stalled_ = 0;
	double left_ = 0, react_ms_ = 0;
};

/* ---- */

template <class C, class... Arguments>
workload workload_of(const char *name, const char *subject, size_t ops, Arguments... arguments) {
	workload w;
	w.name = name;
	w.ops = static_cast<double>(ops);
	w.rounds = 3;
	w.alone = true;
	w.subjects = {make_subject<C>(subject, arguments...)};
	return w;
}

std::vector<workload> workloads() {
	return {
		workload_of<pool_traffic>("idle-pool-1", "tenure-pool", burst_objects, 1),
		workload_of<pool_traffic>("idle-pool-20", "tenure-pool", burst_objects, 20),
		workload_of<pool_traffic>("idle-pool-40", "tenure-pool", burst_objects, 40),
		workload_of<pool_traffic>("idle-pool-silent", "tenure-pool", burst_objects, 0),
		workload_of<trimmed<slab_use>>("idle-trim-slab", "tenure-slab", 1000, false),
		workload_of<trimmed<shared_use>>("idle-trim-shared", "tenure-shared", 1000, true),
		workload_of<trimmed<pool_use>>("idle-trim-pool", "tenure-pool", 1000, true),
		workload_of<trimmed<heap_use>>("idle-trim-heap", "tenure-heap", 1000, false),
		workload_of<trimmed<arena_use>>("idle-trim-arena", "tenure-arena", 1000, false),
		workload_of<pressed>("idle-pressure", "tenure", 1),
	};
}

const registration traffic("idle", workloads);

}
}
