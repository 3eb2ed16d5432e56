/* What the tests of the shared slab have in common. */
#ifndef TENURE_TESTS_SHARED_SLAB_USE_H
#define TENURE_TESTS_SHARED_SLAB_USE_H

#include "allocators.h"
#include "ledger.h"
#include "program.h"

#include <algorithm>
#include <thread>

constexpr size_t default_chunk = 64 * kib;

template <typename F> void in_thread(F work) {
	std::thread(work).join();
}

inline tn_shared_slab_options with_source(const ledger &books) {
	tn_shared_slab_options options = {};
	options.source = books.source();
	return options;
}

inline std::vector<void *> take(tn_shared_slab *s, size_t count) {
	std::vector<void *> slots;
	for (size_t i = 0; i < count; i++) {
		slots.push_back(tn_shared_slab_alloc(s));
		EXPECT_NE(slots.back(), nullptr);
	}
	return slots;
}

inline void give(tn_shared_slab *s, const std::vector<void *> &slots) {
	for (void *slot : slots)
		tn_shared_slab_free(s, slot);
}

/* All that the slab has. */
inline std::vector<void *> exhaust(tn_shared_slab *s) {
	std::vector<void *> slots;
	/* A limit that does not hold should not take the machine with it. */
	constexpr size_t too_many = 500000;
	while (slots.size() < too_many) {
		void *p = tn_shared_slab_alloc(s);
		if (p == nullptr)
			break;
		slots.push_back(p);
	}
	EXPECT_LT(slots.size(), too_many);
	return slots;
}

inline bool disjoint(std::vector<void *> slots, size_t size) {
	std::sort(slots.begin(), slots.end());
	for (size_t i = 1; i < slots.size(); i++)
		if (address(slots[i]) - address(slots[i - 1]) < size)
			return false;
	return true;
}

inline void shuffle(std::vector<void *> &slots, uint64_t seed) {
	dice d(seed);
	for (size_t i = slots.size(); i > 1; i--)
		std::swap(slots[i - 1], slots[d.below(i)]);
}

#endif
