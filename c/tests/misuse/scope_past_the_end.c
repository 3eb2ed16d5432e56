/* One byte past a block of a scope is written; seen by the next check of the block.
 *
 * args      reset verify destroy parent x 0 7 100 100000
 * release   undefined
 * hardened  undefined
 * debug:parent  ABRT tenure: scope "s": destroy: {p} was written past its end, at byte {n} of {n},
 *           allocated at SITE(alloc)
 * debug     ABRT tenure: scope "s": {op}: {p} was written past its end, at byte {n} of {n},
 *           allocated at SITE(alloc)
 */
#include "misuse.h"

int main(int argc, char **argv) {
	size_t size = (size_t)atoi(argv[2]);
	tn_scope *root = tn_scope_create(NULL, "root", NULL);
	tn_scope *s = tn_scope_create(root, "s", NULL);
	char *p = tn_scope_alloc(s, size, 1); /* alloc */
	tn_scope_alloc(s, 64, 0);
	tell("p", p);
	tell_size("n", size);
	tell_word("op", argv[1]);
	p[size] ^= 1;
	if (IS("reset"))
		tn_scope_reset(s);
	else if (IS("verify"))
		tn_scope_verify(root);
	else
		tn_scope_destroy(IS("parent") ? root : s);
	return 0;
}
