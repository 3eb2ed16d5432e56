/* A second thread enters the slab while the first is inside a call, in the source of its chunks.
 *
 * args      alloc free alloc_batch free_batch reset trim in_use each stats verify destroy
 * release   undefined
 * hardened  ABRT tenure: slab "s": {op}: overlaps another call
 * debug     ABRT tenure: slab "s": {op}: thread N overlaps a call of thread M
 */
#include "overlap.h"

static tn_slab *s;
static void *slot;

static void visit(void *p, void *ctx) {
}

static void call(const char *op) {
	tn_stats stats;
	void *slots[2];
	if (strcmp(op, "alloc") == 0)
		tn_slab_alloc(s);
	else if (strcmp(op, "free") == 0)
		tn_slab_free(s, slot);
	else if (strcmp(op, "alloc_batch") == 0)
		tn_slab_alloc_batch(s, slots, 2);
	else if (strcmp(op, "free_batch") == 0)
		tn_slab_free_batch(s, &slot, 1);
	else if (strcmp(op, "reset") == 0)
		tn_slab_reset(s);
	else if (strcmp(op, "trim") == 0)
		tn_slab_trim(s);
	else if (strcmp(op, "in_use") == 0)
		tn_slab_in_use(s);
	else if (strcmp(op, "each") == 0)
		tn_slab_each(s, visit, NULL);
	else if (strcmp(op, "stats") == 0)
		tn_slab_stats(s, &stats);
	else if (strcmp(op, "verify") == 0)
		tn_slab_verify(s);
	else
		tn_slab_destroy(s);
}

int main(int argc, char **argv) {
	s = tn_slab_create(64, 0, &(tn_slab_options){.name = "s", .source = &overlap_source});
	slot = tn_slab_alloc(s);
	overlap_from_here(argv[1], call);
	for (;;)
		tn_slab_alloc(s);
}
