/* A second thread enters the heap while the first is inside a call, in the source of its chunks.
 *
 * args      alloc free free_sized realloc usable_size reset trim each stats verify destroy
 * release   undefined
 * hardened  ABRT tenure: heap "h": {op}: overlaps another call
 * debug     ABRT tenure: heap "h": {op}: thread N overlaps a call of thread M
 */
#include "overlap.h"

static tn_heap *h;
static void *block;

static void visit(void *p, size_t size, void *ctx) {
}

static void call(const char *op) {
	tn_stats stats;
	if (strcmp(op, "alloc") == 0)
		tn_heap_alloc(h, 40, 0);
	else if (strcmp(op, "free") == 0)
		tn_heap_free(h, block);
	else if (strcmp(op, "free_sized") == 0)
		tn_heap_free_sized(h, block, 40);
	else if (strcmp(op, "realloc") == 0)
		tn_heap_realloc(h, block, 40);
	else if (strcmp(op, "usable_size") == 0)
		tn_heap_usable_size(h, block);
	else if (strcmp(op, "reset") == 0)
		tn_heap_reset(h);
	else if (strcmp(op, "trim") == 0)
		tn_heap_trim(h);
	else if (strcmp(op, "each") == 0)
		tn_heap_each(h, visit, NULL);
	else if (strcmp(op, "stats") == 0)
		tn_heap_stats(h, &stats);
	else if (strcmp(op, "verify") == 0)
		tn_heap_verify(h);
	else
		tn_heap_destroy(h);
}

int main(int argc, char **argv) {
	h = tn_heap_create(&(tn_heap_options){.name = "h", .source = &overlap_source});
	block = tn_heap_alloc(h, 40, 0);
	overlap_from_here(argv[1], call);
	for (;;)
		tn_heap_alloc(h, 40, 0);
}
