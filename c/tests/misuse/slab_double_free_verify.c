/* Release does not see a double free, but verify does while the slot is still in a magazine.
 *
 * release   ABRT tenure: slab "s": verify: {p} is free twice
 * hardened  ABRT tenure: slab "s": free: {p} is free already
 * debug     ABRT tenure: slab "s": free: {p} is free already, allocated at SITE(alloc),
 *           freed at SITE(free)
 */
#include "misuse.h"

int main(void) {
	tn_slab *s = make_slab("s", 64, 0);
	tn_slab_alloc(s);
	void *p = tn_slab_alloc(s); /* alloc */
	tell("p", p);
	tn_slab_free(s, p); /* free */
	tn_slab_free(s, p);
	tn_slab_verify(s);
	return 0;
}
