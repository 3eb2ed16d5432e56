/* The slab itself is used after its end.
 *
 * args      alloc free
 * release   undefined
 * hardened  undefined
 * debug:alloc  SEGV
 * debug:free  SEGV tenure: slab "s": destroy: 1 live slots (64 bytes) allocated at SITE(alloc)
 */
#include "misuse.h"

int main(int argc, char **argv) {
	tn_slab *s = make_slab("s", 64, 0);
	void *p = tn_slab_alloc(s); /* alloc */
	tn_slab_free(s, tn_slab_alloc(s));
	if (IS("alloc"))
		tn_slab_free(s, p);
	tn_slab_destroy(s);
	if (IS("alloc"))
		tn_slab_alloc(s);
	else
		tn_slab_free(s, p);
	return 0;
}
