/* bench/model/costs.cpp: tenure-model-costs, which measures the costs of bench/model/machine.h on the
 * CPUs 0 and 1 and prints them, one `NAME NANOSECONDS` a line. Each is the median of some rounds. */
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "base/os.h"
#include "harness/clock.h"
#include "tenure/shared_slab.h"

namespace {

constexpr int rounds = 41;

void pin_to(int cpu) {
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (pthread_setaffinity_np(pthread_self(), sizeof set, &set) != 0) {
		std::fprintf(stderr, "tenure-model-costs: two CPUs are needed, 0 and 1\n");
		std::exit(1);
	}
}

double time_ns(const std::function<void()> &work) {
	auto from = std::chrono::steady_clock::now();
	work();
	std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - from;
	return took.count();
}

double median_of(const std::function<double()> &round) {
	std::vector<double> all;
	for (int i = 0; i < rounds; i++)
		all.push_back(round());
	std::nth_element(all.begin(), all.begin() + rounds / 2, all.end());
	return all[rounds / 2];
}

double time_each(size_t count, const std::function<void()> &work) {
	return median_of([&] { return time_ns(work) / static_cast<double>(count); });
}

/* Runs `mine` on CPU 1 while `other` runs on CPU 0. */
double time_beside(const std::function<void()> &other, const std::function<void()> &mine) {
	std::atomic<bool> ready{false};
	std::thread beside([&] {
		pin_to(0);
		ready = true;
		other();
	});
	while (!ready)
		bench::barrier();
	double ns = time_ns(mine);
	beside.join();
	return ns;
}

/* A chain of reads of one line, each at an address that the one before gives. */
double measure_hit() {
	constexpr size_t count = 100000;
	void *self = &self;
	return time_each(count, [&] {
		void *p = self;
		for (size_t i = 0; i < count; i++) {
			bench::escape(p);
			p = *static_cast<void *volatile *>(p);
		}
		bench::escape(p);
	});
}

constexpr size_t lines = 4096;
struct alignas(64) line {
	line *next;
	uint64_t word;
};
line all_lines[lines];

/* Links all lines to a circle, in an order that no processor foresees, and so writes them. */
void link_lines() {
	static std::vector<line *> order;
	if (order.empty()) {
		for (line &l : all_lines)
			order.push_back(&l);
		std::shuffle(order.begin(), order.end(), std::mt19937(1));
	}
	for (size_t i = 0; i < lines; i++)
		order[i]->next = order[(i + 1) % lines];
}

void follow_lines() {
	line *at = all_lines;
	for (size_t i = 0; i < lines; i++)
		at = at->next;
	bench::escape(at);
}

void write_lines() {
	for (line &l : all_lines)
		++*const_cast<volatile uint64_t *>(&l.word);
}

/* The extra time of `use` per line when the other core has written the lines just before. */
double measure_lines(void (*use)()) {
	double others = median_of([&] {
		std::thread before([] {
			pin_to(0);
			link_lines();
		});
		before.join();
		return time_ns(use) / lines;
	});
	link_lines();
	return others - time_each(lines, use);
}

double measure_atomic() {
	constexpr size_t count = 100000;
	static std::atomic<uint32_t> word;
	return time_each(count, [] {
		for (size_t i = 0; i < count; i++)
			word.exchange(1, std::memory_order_acq_rel);
	});
}

double measure_pause() {
	constexpr size_t count = 10000;
	return time_each(count, [] {
		for (size_t i = 0; i < count; i++)
			tn_os_relax();
	});
}

void call_futex(std::atomic<uint32_t> &word, int operation, uint32_t value) {
	syscall(SYS_futex, &word, operation, value, nullptr, nullptr, 0);
}

/* A call that neither sleeps nor wakes. */
double measure_call() {
	constexpr size_t count = 10000;
	static std::atomic<uint32_t> word{1};
	return time_each(count, [] {
		for (size_t i = 0; i < count; i++)
			call_futex(word, FUTEX_WAIT_PRIVATE, 0);
	});
}

/* Two threads that sleep until the other one has answered. */
double measure_wake() {
	constexpr uint32_t turns = 200;
	static std::atomic<uint32_t> turn;
	auto play = [](uint32_t mine) {
		for (uint32_t i = 0; i < turns; i++) {
			for (uint32_t seen; (seen = turn.load()) % 2 != mine;)
				call_futex(turn, FUTEX_WAIT_PRIVATE, seen);
			turn.fetch_add(1);
			call_futex(turn, FUTEX_WAKE_PRIVATE, 1);
		}
	};
	return median_of([&] {
		turn = 0;
		return time_beside([&] { play(0); }, [&] { play(1); }) / (2 * turns);
	});
}

/* Pairs of one thread that takes and writes `batch` objects of 64 bytes, then frees them. */
double measure_pair(size_t batch) {
	constexpr size_t pairs = 1 << 20;
	tn_shared_slab *s = tn_shared_slab_create(64, 0, nullptr);
	std::vector<void *> held(batch);
	if (s == nullptr)
		std::exit(1);
	auto work = [&] {
		for (size_t done = 0; done < pairs; done += batch) {
			for (void *&p : held) {
				p = tn_shared_slab_alloc(s);
				*static_cast<volatile size_t *>(p) = done;
			}
			for (void *p : held)
				tn_shared_slab_free(s, p);
		}
	};
	work();
	double ns = time_each(pairs, work);
	tn_shared_slab_destroy(s);
	return ns;
}

}

int main() {
	pin_to(1);
	double pair = measure_pair(256);
	const std::pair<const char *, double> all[] = {
		{"hit", measure_hit()},
		{"transfer", measure_lines(follow_lines)},
		{"stream", measure_lines(write_lines)},
		{"atomic", measure_atomic()},
		{"pause", measure_pause()},
		{"call", measure_call()},
		{"wake", measure_wake()},
		{"pair", pair},
		{"exchanged", std::max(0.0, measure_pair(4096) - pair)},
	};
	for (const auto &[name, ns] : all)
		std::printf("%-10s %10.3f\n", name, ns);
}
