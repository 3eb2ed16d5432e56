/* A slot is read or written after free, reset or destroy.
 *
 * args      free reset destroy x read write x first middle last x 1 16 64 5000
 * release   undefined
 * hardened  undefined
 * debug     SEGV
 * debug:destroy  SEGV tenure: slab "s": destroy: 3 live slots ({bytes} bytes) allocated at SITE(alloc)
 */
#include "misuse.h"

int main(int argc, char **argv) {
	size_t size = (size_t)atoi(argv[4]);
	tn_slab *s = make_slab("s", size, 1);
	void *slots[3];
	for (int i = 0; i < 3; i++)
		slots[i] = tn_slab_alloc(s); /* alloc */
	void *p = slots[1];
	tell_size("bytes", 3 * size);
	if (IS("free"))
		tn_slab_free(s, p);
	else if (IS("reset"))
		tn_slab_reset(s);
	else
		tn_slab_destroy(s);
	touch(argv[2], p, offset_of(argv[3], size));
	return 0;
}
