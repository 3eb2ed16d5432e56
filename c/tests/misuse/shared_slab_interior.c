/* A pointer into a slot is freed, not its beginning, and one behind the last slot.
 *
 * args      1 8 16 47
 * release   undefined
 * hardened  ABRT tenure: shared slab "s": free: {p} is {n} bytes inside the slot at {q}
 * debug     ABRT tenure: shared slab "s": free: {p} is {n} bytes inside the slot at {q},
 *           allocated at SITE(alloc)
 */
#include "misuse.h"

int main(int argc, char **argv) {
	tn_shared_slab *s = make_shared_slab("s", 48, 0);
	char *q = tn_shared_slab_alloc(s); /* alloc */
	size_t n = (size_t)atoi(argv[1]);
	tell("p", q + n);
	tell("q", q);
	tell_size("n", n);
	tn_shared_slab_free(s, q + n);
	return 0;
}
