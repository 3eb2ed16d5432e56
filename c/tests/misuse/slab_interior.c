/* A pointer into a slot is freed, not its beginning.
 *
 * args      1 8 63
 * release   undefined
 * hardened  ABRT tenure: slab "s": free: {p} is {n} bytes inside the slot at {q}
 * debug     ABRT tenure: slab "s": free: {p} is {n} bytes inside the slot at {q},
 *           allocated at SITE(alloc)
 */
#include "misuse.h"

int main(int argc, char **argv) {
	tn_slab *s = make_slab("s", 64, 0);
	char *q = tn_slab_alloc(s); /* alloc */
	size_t n = (size_t)atoi(argv[1]);
	tell("p", q + n);
	tell("q", q);
	tell_size("n", n);
	tn_slab_free(s, q + n);
	return 0;
}
