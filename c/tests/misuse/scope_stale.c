/* A block of a scope is read or written after the scope, or one above it, was reset or ended.
 *
 * args      reset destroy x s root x read write x 64 1000000
 * release   undefined
 * hardened  undefined
 * debug     SEGV
 */
#include "misuse.h"

int main(int argc, char **argv) {
	tn_scope *root = tn_scope_create(NULL, "root", NULL);
	tn_scope *s = tn_scope_create(root, "s", NULL);
	size_t size = (size_t)atoi(argv[4]);
	void *p = tn_scope_alloc(s, size, 0);
	tn_scope *end = strcmp(argv[2], "s") == 0 ? s : root;
	if (IS("reset"))
		tn_scope_reset(end);
	else
		tn_scope_destroy(end);
	touch(argv[3], p, offset_of("middle", size));
	return 0;
}
