/* A slot is read or written after free, reset or destroy.
 *
 * args      free reset destroy x read write x first middle last x 1 16 64 5000
 * release   undefined
 * hardened  undefined
 * debug     SEGV
 */
#include "misuse.h"

int main(int argc, char **argv) {
	size_t size = (size_t)atoi(argv[4]);
	tn_slab *s = make_slab("s", size, 1);
	tn_slab_alloc(s);
	void *p = tn_slab_alloc(s);
	tn_slab_alloc(s);
	if (IS("free"))
		tn_slab_free(s, p);
	else if (IS("reset"))
		tn_slab_reset(s);
	else
		tn_slab_destroy(s);
	touch(argv[2], p, offset_of(argv[3], size));
	return 0;
}
