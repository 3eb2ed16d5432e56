/* A second thread enters the arena while the first is inside a call, in the source of its chunks.
 *
 * args      alloc resize realloc copy printf mark rewind reset trim owns stats verify destroy
 * release   undefined
 * hardened  ABRT tenure: arena "a": {op}: overlaps another call
 * debug     ABRT tenure: arena "a": {op}: thread N overlaps a call of thread M
 */
#include "overlap.h"

static tn_arena *a;
static tn_checkpoint checkpoint;
static void *block;

static void call(const char *op) {
	tn_stats stats;
	if (strcmp(op, "alloc") == 0)
		tn_arena_alloc(a, 64, 0);
	else if (strcmp(op, "resize") == 0)
		tn_arena_resize(a, block, 64, 32);
	else if (strcmp(op, "realloc") == 0)
		tn_arena_realloc(a, block, 64, 128, 0);
	else if (strcmp(op, "copy") == 0)
		tn_arena_copy(a, "copy", 5);
	else if (strcmp(op, "printf") == 0)
		tn_arena_printf(a, "%d", 5);
	else if (strcmp(op, "mark") == 0)
		tn_arena_mark(a);
	else if (strcmp(op, "rewind") == 0)
		tn_arena_rewind(a, checkpoint);
	else if (strcmp(op, "reset") == 0)
		tn_arena_reset(a);
	else if (strcmp(op, "trim") == 0)
		tn_arena_trim(a);
	else if (strcmp(op, "owns") == 0)
		tn_arena_owns(a, block);
	else if (strcmp(op, "stats") == 0)
		tn_arena_stats(a, &stats);
	else if (strcmp(op, "verify") == 0)
		tn_arena_verify(a);
	else
		tn_arena_destroy(a);
}

int main(int argc, char **argv) {
	a = tn_arena_create(&(tn_arena_options){.name = "a", .source = &overlap_source});
	block = tn_arena_alloc(a, 64, 0);
	checkpoint = tn_arena_mark(a);
	overlap_from_here(argv[1], call);
	for (;;)
		tn_arena_alloc(a, 4096, 0);
}
