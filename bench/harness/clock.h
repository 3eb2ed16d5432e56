/* bench/harness/clock.h: the time stamp counter, and barriers that keep a compiler from deleting the
 * measured work. */
#ifndef BENCH_HARNESS_CLOCK_H
#define BENCH_HARNESS_CLOCK_H

#include <chrono>
#include <cstdint>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace bench {

/* Waits for earlier loads, so that the stamp does not move into the work; about 10 ns. */
inline uint64_t ticks() {
#if defined(__x86_64__)
	_mm_lfence();
	return __rdtsc();
#else
	auto now = std::chrono::steady_clock::now().time_since_epoch();
	return static_cast<uint64_t>(std::chrono::nanoseconds(now).count());
#endif
}

/* Calibrated once, against the monotonic clock. */
double ns_per_tick();

/* The compiler must assume that the pointer is used and any memory changed here. */
template <class T> inline void escape(T *&p) {
	asm volatile("" : "+r"(p) : : "memory");
}

/* Earlier writes are in memory, and later reads come from memory. */
inline void barrier() {
	asm volatile("" : : : "memory");
}

}
#endif
