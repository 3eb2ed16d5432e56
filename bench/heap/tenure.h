/* bench/heap/tenure.h: Tenure's heap, in the build mode of the including file (see heap/hooks.h). */
#ifndef BENCH_HEAP_TENURE_H
#define BENCH_HEAP_TENURE_H

#include "heap/hooks.h"
#include "tenure/heap.h"

namespace bench {

class tenure_heap {
public:
	static constexpr bool can_drop = true;

	static void *make() {
		return tn_heap_create(nullptr);
	}
	static void end(void *heap) {
		tn_heap_destroy(of(heap));
	}
	static void *drop(void *heap) {
		tn_heap_reset(of(heap));
		return heap;
	}

	static void *alloc(void *heap, size_t size) {
		return tn_heap_alloc(of(heap), size, 0);
	}
	static void free(void *heap, void *p) {
		tn_heap_free(of(heap), p);
	}
	static void free_sized(void *heap, void *p, size_t size) {
		tn_heap_free_sized(of(heap), p, size);
	}
	static void *realloc(void *heap, void *p, size_t size) {
		return tn_heap_realloc(of(heap), p, size);
	}
	static size_t usable(void *heap, void *p) {
		return tn_heap_usable_size(of(heap), p);
	}

private:
	static tn_heap *of(void *heap) {
		return static_cast<tn_heap *>(heap);
	}
};

}
#endif
