/* The source of an arena calls the arena that asked it for a chunk.
 *
 * release   undefined
 * hardened  ABRT tenure: arena "a": alloc: overlaps another call
 * debug     ABRT tenure: arena "a": alloc: thread {t} overlaps a call of thread {t}
 */
#include "reentry.h"

static tn_arena *a;

static void *acquire(void *ctx, size_t size, size_t align) {
	return a != NULL && tn_arena_alloc(a, 1, 0) == NULL ? NULL : take(size, align);
}

int main(void) {
	tell_thread();
	a = tn_arena_create(&(tn_arena_options){.name = "a", .source = &(tn_source){acquire, give, NULL}});
	tn_arena_alloc(a, 1 << 20, 0);
	return 0;
}
