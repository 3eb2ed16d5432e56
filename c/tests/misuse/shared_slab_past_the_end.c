/* One byte past a slot is written; seen by the next check of the slot.
 *
 * args      free verify destroy x 1 24 100 4096
 * release   undefined
 * hardened  undefined
 * debug     ABRT tenure: shared slab "s": {op}: {p} was written past its end, at byte {n} of {n},
 *           allocated at SITE(alloc)
 */
#include "misuse.h"

int main(int argc, char **argv) {
	size_t size = (size_t)atoi(argv[2]);
	tn_shared_slab *s = make_shared_slab("s", size, size % 16 == 0 ? 16 : 1);
	char *p = tn_shared_slab_alloc(s); /* alloc */
	tell("p", p);
	tell_size("n", size);
	tell_word("op", argv[1]);
	p[size] ^= 1;
	if (IS("free"))
		tn_shared_slab_free(s, p);
	else if (IS("verify"))
		tn_shared_slab_verify(s);
	else
		tn_shared_slab_destroy(s);
	return 0;
}
