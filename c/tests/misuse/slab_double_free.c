/* A slot is freed twice: at once, with another in between, and after 300 other operations.
 *
 * args      at-once a-b-a later
 * release   undefined
 * hardened  ABRT tenure: slab "s": free: {p} is free already
 * debug     ABRT tenure: slab "s": free: {p} is free already, allocated at SITE(alloc),
 *           freed at SITE(free)
 */
#include "misuse.h"

int main(int argc, char **argv) {
	void *other[150];
	tn_slab *s = make_slab("s", 64, 0);
	void *p = tn_slab_alloc(s); /* alloc */
	tell("p", p);
	for (int i = 0; i < 150; i++)
		other[i] = tn_slab_alloc(s);
	tn_slab_free(s, p); /* free */
	if (IS("a-b-a"))
		tn_slab_free(s, other[0]);
	for (int i = 0; IS("later") && i < 150; i++)
		tn_slab_free(s, other[i]);
	for (int i = 0; IS("later") && i < 75; i++)
		tn_slab_free(s, tn_slab_alloc(s));
	tn_slab_free(s, p);
	return 0;
}
