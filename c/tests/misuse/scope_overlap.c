/* A second thread enters a scope while the first is inside a call, in the source of the tree's chunks.
 *
 * args      create alloc copy printf reset trim undefer adopt arena slab heap limit external owns each
 *           stats verify destroy
 * release   undefined
 * hardened  ABRT tenure: scope "s": {op}: overlaps another call
 * debug     ABRT tenure: scope "s": {op}: thread N overlaps a call of thread M
 */
#include "overlap.h"

static tn_scope *s, *other;

static void look(tn_scope *child, void *ctx) {
}

static void change(const char *op) {
	if (strcmp(op, "create") == 0)
		tn_scope_create(s, NULL, NULL);
	else if (strcmp(op, "alloc") == 0)
		tn_scope_alloc(s, 64, 64);
	else if (strcmp(op, "copy") == 0)
		tn_scope_copy(s, "copy", 5);
	else if (strcmp(op, "printf") == 0)
		tn_scope_printf(s, "%d", 5);
	else if (strcmp(op, "reset") == 0)
		tn_scope_reset(s);
	else if (strcmp(op, "trim") == 0)
		tn_scope_trim(s);
	else if (strcmp(op, "undefer") == 0)
		tn_scope_undefer(s, free, NULL);
	else if (strcmp(op, "adopt") == 0)
		tn_scope_adopt(other, s);
	else if (strcmp(op, "limit") == 0)
		tn_scope_limit(s, NULL);
	else if (strcmp(op, "external") == 0)
		tn_scope_external(s, 1);
	else if (strcmp(op, "destroy") == 0)
		tn_scope_destroy(s);
}

static void call(const char *op) {
	tn_stats stats;
	if (strcmp(op, "arena") == 0)
		tn_scope_arena(s, NULL);
	else if (strcmp(op, "slab") == 0)
		tn_scope_slab(s, 8, 8, NULL);
	else if (strcmp(op, "heap") == 0)
		tn_scope_heap(s, NULL);
	else if (strcmp(op, "owns") == 0)
		tn_scope_owns(s, s);
	else if (strcmp(op, "each") == 0)
		tn_scope_each(s, look, NULL);
	else if (strcmp(op, "stats") == 0)
		tn_scope_stats(s, &stats, NULL);
	else if (strcmp(op, "verify") == 0)
		tn_scope_verify(s);
	else
		change(op);
}

int main(int argc, char **argv) {
	tn_scope *root = tn_scope_create(NULL, "root", &(tn_scope_options){.source = &overlap_source});
	other = tn_scope_create(root, "other", NULL);
	s = tn_scope_create(root, "s", NULL);
	tn_scope_alloc(s, 64, 0);
	overlap_from_here(argv[1], call);
	for (;;)
		tn_scope_alloc(s, 4096, 0);
}
