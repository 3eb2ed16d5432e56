/* Everything is freed once more than it was allocated.
 *
 * release   undefined
 * hardened  ABRT tenure: slab "s": free: {p} is free already
 * debug     ABRT tenure: slab "s": free: {p} is free already, allocated at SITE(alloc),
 *           freed at SITE(free)
 */
#include "misuse.h"

int main(void) {
	void *slots[1000];
	tn_slab *s = make_slab("s", 64, 0);
	for (int i = 0; i < 1000; i++)
		slots[i] = tn_slab_alloc(s); /* alloc */
	for (int i = 0; i < 1000; i++)
		tn_slab_free(s, slots[i]); /* free */
	tell("p", slots[0]);
	for (int i = 0; i < 1000; i++)
		tn_slab_free(s, slots[i]);
	return 0;
}
