/* One batch frees a slot twice.
 *
 * release   undefined
 * hardened  ABRT tenure: shared slab "s": free: {p} is free already
 * debug     ABRT tenure: shared slab "s": free: {p} is free already, allocated at SITE(alloc),
 *           freed at SITE(free)
 */
#include "misuse.h"

int main(void) {
	void *slots[16];
	tn_shared_slab *s = make_shared_slab("s", 64, 0);
	tn_shared_slab_alloc_batch(s, slots, 16); /* alloc */
	tell("p", slots[3]);
	slots[11] = slots[3];
	tn_shared_slab_free_batch(s, slots, 16); /* free */
	return 0;
}
