/* bench/footprint/footprint.cpp: the family `footprint`: small heaps, and heaps with a limit. */
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>

#include "harness/harness.h"
#include "heap/tenure.h"

namespace bench {
namespace {

/* The result of a measurement in a child of its own, whose memory is as fresh as this process's. */
double in_child(const std::function<double()> &measure) {
	int ends[2];
	double result = 0;
	if (pipe(ends) != 0)
		std::exit(2);
	pid_t child = fork();
	if (child == 0) {
		result = measure();
		_exit(write(ends[1], &result, sizeof result) == sizeof result ? 0 : 2);
	}
	close(ends[1]);
	bool whole = read(ends[0], &result, sizeof result) == sizeof result;
	close(ends[0]);
	int status = 0;
	if (child < 0 || waitpid(child, &status, 0) != child || status != 0 || !whole)
		std::exit(2);
	return result;
}

/* ---- limits ---- */

/* The share of a limit that is not served at the first refusal, as the mean of 64 programs that take
 * blocks of 16 to 4,096 bytes, whose logarithms are uniform, and free none. */
class limited : public contestant {
public:
	explicit limited(size_t limit) : limit_(limit) {
	}
	uint64_t run(size_t) override {
		uint64_t from = ticks();
		double served = 0;
		for (unsigned seed = 1; seed <= programs; seed++)
			served += static_cast<double>(serve(seed));
		refused_share_ = 1 - served / programs / static_cast<double>(limit_);
		return ticks() - from;
	}
	void describe(row &r) override {
		r.fields["refused_share"] = refused_share_;
	}

private:
	static constexpr unsigned programs = 64;

	size_t serve(unsigned seed) const {
		std::mt19937_64 random(seed);
		std::uniform_real_distribution<double> logarithm(std::log(16.0), std::log(4096.0));
		tn_heap_options options = {};
		options.limit_bytes = limit_;
		tn_heap *heap = tn_heap_create(&options);
		for (size_t served = 0;;) {
			auto size = static_cast<size_t>(std::exp(logarithm(random)));
			if (tn_heap_alloc(heap, size, 0) == nullptr) {
				tn_heap_destroy(heap);
				return served;
			}
			served += size;
		}
	}

	size_t limit_;
	double refused_share_ = 0;
};

workload limit_of(const char *name, size_t limit) {
	workload w;
	w.name = name;
	w.rounds = 1;
	w.alone = true;
	w.subjects = {make_subject<limited>("tenure-heap", limit)};
	return w;
}

/* ---- states of Lua ---- */

void *lua_malloc(void *, void *p, size_t, size_t size) {
	if (size != 0)
		return std::realloc(p, size);
	std::free(p);
	return nullptr;
}

constexpr size_t states = 500;

lua_State *open_state(lua_Alloc hook, void *heap) {
	lua_State *state = lua_newstate(hook, heap);
	luaL_openlibs(state);
	return state;
}

/* Resident bytes of states with the standard libraries. */
double resident_states(bool on_heaps) {
	size_t before = anonymous_bytes_exact();
	for (size_t i = 0; i < states; i++)
		on_heaps ? open_state(hooks<tenure_heap>::lua, tenure_heap::make())
				 : open_state(lua_malloc, nullptr);
	return static_cast<double>(anonymous_bytes_exact() - before);
}

class lua_states : public contestant {
public:
	explicit lua_states(bool on_heaps) : on_heaps_(on_heaps) {
	}
	uint64_t run(size_t) override {
		double glibc = in_child([] { return resident_states(false); });
		uint64_t from = ticks();
		bytes_ = resident_states(on_heaps_);
		uint64_t took = ticks() - from;
		ratio_ = bytes_ / glibc;
		return took;
	}
	void describe(row &r) override {
		r.fields["bytes_per_object"] = bytes_ / states;
		r.fields["resident_ratio"] = ratio_;
	}

private:
	bool on_heaps_;
	double bytes_ = 0, ratio_ = 0;
};

workload lua_state() {
	workload w;
	w.name = "lua-state";
	w.ops = states;
	w.rounds = 3;
	w.alone = true;
	w.subjects = {
		make_subject<lua_states>("tenure-heap", true), make_subject<lua_states>("glibc", false)};
	return w;
}

/* ---- short lives ---- */

constexpr size_t life_sizes[] = {16, 512, 48, 200, 32, 96, 400, 64, 24, 128};
constexpr size_t life_blocks = sizeof life_sizes / sizeof life_sizes[0];

class heap_lives : public contestant {
public:
	uint64_t run(size_t repeats) override {
		uint64_t from = ticks();
		for (size_t r = 0; r < repeats; r++) {
			tn_heap *heap = tn_heap_create(nullptr);
			for (size_t size : life_sizes) {
				void *p = tn_heap_alloc(heap, size, 0);
				escape(p);
			}
			tn_heap_destroy(heap);
		}
		return ticks() - from;
	}
};

class malloc_lives : public contestant {
public:
	uint64_t run(size_t repeats) override {
		uint64_t from = ticks();
		void *blocks[life_blocks];
		for (size_t r = 0; r < repeats; r++) {
			for (size_t i = 0; i < life_blocks; i++)
				escape(blocks[i] = std::malloc(life_sizes[i]));
			for (void *p : blocks)
				std::free(p);
		}
		return ticks() - from;
	}
};

workload heap_life() {
	workload w;
	w.name = "heap-life-10";
	w.subjects = {make_subject<heap_lives>("tenure-heap"), make_subject<malloc_lives>("glibc")};
	return w;
}

std::vector<workload> workloads() {
	return {limit_of("limit-32k", 32 << 10), limit_of("limit-128k", 128 << 10),
		limit_of("limit-1m", 1 << 20), limit_of("limit-4m", 4 << 20), lua_state(), heap_life()};
}

const registration footprint("footprint", workloads);

}
}
