/* Helpers of the arena's tests. */
#ifndef TENURE_TESTS_ARENA_USE_H
#define TENURE_TESTS_ARENA_USE_H

#include "allocators.h"
#include "ledger.h"

constexpr size_t default_chunk_max = 2 * mib;

/* Allocates blocks of `size` until `total` bytes are reached, and writes to each. */
inline void allocate_total(tn_arena *a, size_t total, size_t size) {
	for (size_t done = 0; done < total; done += size) {
		void *p = tn_arena_alloc(a, size, 16);
		ASSERT_NE(p, nullptr);
		std::memset(p, 0x11, size);
	}
}

/* Allocates blocks of 64 bytes until the arena refuses; returns the total. */
inline size_t exhaust(tn_arena *a) {
	size_t total = 0;
	while (char *p = static_cast<char *>(tn_arena_alloc(a, 64, 16))) {
		p[0] = p[63] = 1;
		total += 64;
	}
	return total;
}

#endif
