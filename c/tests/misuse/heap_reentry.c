/* The source of a heap calls the heap that asked it for a chunk.
 *
 * release   undefined
 * hardened  ABRT tenure: heap "h": alloc: overlaps another call
 * debug     ABRT tenure: heap "h": alloc: thread {t} overlaps a call of thread {t}
 */
#include "reentry.h"

static tn_heap *h;

static void *acquire(void *ctx, size_t size, size_t align) {
	return h != NULL && tn_heap_alloc(h, 1, 0) == NULL ? NULL : take(size, align);
}

int main(void) {
	tell_thread();
	h = tn_heap_create(&(tn_heap_options){.name = "h", .source = &(tn_source){acquire, give, NULL}});
	tn_heap_alloc(h, 100000, 0);
	return 0;
}
