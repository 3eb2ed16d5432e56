/* The byte before a block of a scope is written; seen by the next check of the block.
 *
 * args      reset verify destroy x 1 7 100 100000
 * release   undefined
 * hardened  undefined
 * debug     ABRT tenure: scope "s": {op}: {p} was written before its start, at byte -1 of {n},
 *           allocated at SITE(alloc)
 */
#include "misuse.h"

int main(int argc, char **argv) {
	size_t size = (size_t)atoi(argv[2]);
	tn_scope *s = tn_scope_create(NULL, "s", NULL);
	tn_scope_alloc(s, 64, 0);
	char *p = tn_scope_alloc(s, size, 1); /* alloc */
	tell("p", p);
	tell_size("n", size);
	tell_word("op", argv[1]);
	p[-1] ^= 1;
	if (IS("reset"))
		tn_scope_reset(s);
	else if (IS("verify"))
		tn_scope_verify(s);
	else
		tn_scope_destroy(s);
	return 0;
}
