/* A scope is used after its end: seen in every mode, by every call but print, which reads what any
 * thread may read.
 *
 * args      destroy create alloc copy printf reset trim defer undefer adopt into arena slab heap limit
 *           external parent owns each stats verify
 * release   ABRT tenure: scope: {op}: {s} is not a live scope
 * hardened  ABRT tenure: scope: {op}: {s} is not a live scope
 * debug     ABRT tenure: scope: {op}: {s} is not a live scope
 */
#include "misuse.h"

static void none(void *arg) {
}

static void look(tn_scope *child, void *ctx) {
}

static void change(const char *op, tn_scope *s, tn_scope *child) {
	if (strcmp(op, "destroy") == 0)
		tn_scope_destroy(s);
	else if (strcmp(op, "create") == 0)
		tn_scope_create(s, NULL, NULL);
	else if (strcmp(op, "alloc") == 0)
		tn_scope_alloc(s, 8, 8);
	else if (strcmp(op, "copy") == 0)
		tn_scope_copy(s, "copy", 5);
	else if (strcmp(op, "printf") == 0)
		tn_scope_printf(s, "%d", 5);
	else if (strcmp(op, "reset") == 0)
		tn_scope_reset(s);
	else if (strcmp(op, "trim") == 0)
		tn_scope_trim(s);
	else if (strcmp(op, "defer") == 0)
		tn_scope_defer(s, none, NULL);
	else if (strcmp(op, "undefer") == 0)
		tn_scope_undefer(s, none, NULL);
	else if (strcmp(op, "adopt") == 0)
		tn_scope_adopt(s, tn_scope_parent(child));
	else
		tn_scope_adopt(child, s);
}

static void own_or_look(const char *op, tn_scope *s) {
	tn_stats stats;
	if (strcmp(op, "arena") == 0)
		tn_scope_arena(s, NULL);
	else if (strcmp(op, "slab") == 0)
		tn_scope_slab(s, 8, 8, NULL);
	else if (strcmp(op, "heap") == 0)
		tn_scope_heap(s, NULL);
	else if (strcmp(op, "limit") == 0)
		tn_scope_limit(s, NULL);
	else if (strcmp(op, "external") == 0)
		tn_scope_external(s, 0);
	else if (strcmp(op, "parent") == 0)
		tn_scope_parent(s);
	else if (strcmp(op, "owns") == 0)
		tn_scope_owns(s, s);
	else if (strcmp(op, "each") == 0)
		tn_scope_each(s, look, NULL);
	else if (strcmp(op, "stats") == 0)
		tn_scope_stats(s, &stats, NULL);
	else if (strcmp(op, "verify") == 0)
		tn_scope_verify(s);
}

int main(int argc, char **argv) {
	tn_scope *root = tn_scope_create(NULL, "root", NULL);
	tn_scope *child = tn_scope_create(root, "child", NULL);
	tn_scope *s = tn_scope_create(root, "s", NULL);
	tn_scope_alloc(s, 100, 8);
	tell("s", s);
	tell_word("op", IS("into") ? "adopt" : argv[1]);
	tn_scope_destroy(s);
	own_or_look(argv[1], s);
	change(argv[1], s, child);
	return 0;
}
