/* The byte before a slot is written; seen by the next check of the slot.
 *
 * args      free verify reset destroy x 1 24 32 100 4096
 * release   undefined
 * hardened  undefined
 * debug     ABRT tenure: slab "s": {op}: {p} was written before its start, at byte -1 of {n},
 *           allocated at SITE(alloc)
 */
#include "misuse.h"

int main(int argc, char **argv) {
	size_t size = (size_t)atoi(argv[2]);
	tn_slab *s = make_slab("s", size, size % 16 == 0 ? 16 : 1);
	char *p = tn_slab_alloc(s); /* alloc */
	tell("p", p);
	tell_size("n", size);
	tell_word("op", argv[1]);
	p[-1] ^= 1;
	if (IS("free"))
		tn_slab_free(s, p);
	else if (IS("verify"))
		tn_slab_verify(s);
	else if (IS("reset"))
		tn_slab_reset(s);
	else
		tn_slab_destroy(s);
	return 0;
}
