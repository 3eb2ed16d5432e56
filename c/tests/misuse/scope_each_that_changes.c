/* What visits children changes the tree that it is called from.
 *
 * args      create adopt external
 * release   undefined
 * hardened  ABRT tenure: scope "root": {op}: overlaps another call
 * debug     ABRT tenure: scope "root": {op}: thread {t} overlaps a call of thread {t}
 */
#include "misuse.h"

#include <sys/syscall.h>
#include <unistd.h>

long syscall(long number, ...);

static void visit(tn_scope *child, void *ctx) {
	const char *op = ctx;
	tn_scope *root = tn_scope_parent(child);
	if (strcmp(op, "create") == 0)
		tn_scope_create(root, NULL, NULL);
	else if (strcmp(op, "adopt") == 0)
		tn_scope_adopt(child, root);
	else
		tn_scope_external(root, 1);
}

int main(int argc, char **argv) {
	tell_size("t", (size_t)syscall(SYS_gettid));
	tell_word("op", argv[1]);
	tn_scope *root = tn_scope_create(NULL, "root", NULL);
	tn_scope_create(root, "child", NULL);
	tn_scope_each(root, visit, argv[1]);
	return 0;
}
