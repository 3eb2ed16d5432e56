/* Helpers of the heap's tests. */
#ifndef TENURE_TESTS_HEAP_USE_H
#define TENURE_TESTS_HEAP_USE_H

#include "allocators.h"
#include "ledger.h"

struct heap_ender {
	void operator()(tn_heap *h) const {
		tn_heap_destroy(h);
	}
};
using owned_heap = std::unique_ptr<tn_heap, heap_ender>;

/* Live blocks at the end are intended. */
inline owned_heap new_heap(tn_heap_options options = {}) {
	options.expendable = true;
	return owned_heap(tn_heap_create(&options));
}

inline owned_heap new_heap(const ledger &books) {
	tn_heap_options options = {};
	options.source = books.source();
	return new_heap(options);
}

inline tn_stats figures_of(const tn_heap *h) {
	tn_stats stats;
	tn_heap_stats(h, &stats);
	return stats;
}

inline char *take(tn_heap *h, size_t size, size_t align = 0) {
	return static_cast<char *>(tn_heap_alloc(h, size, align));
}

inline std::vector<char *> take_many(tn_heap *h, size_t count, size_t size) {
	std::vector<char *> blocks;
	for (size_t i = 0; i < count; i++)
		blocks.push_back(take(h, size));
	return blocks;
}

#endif
