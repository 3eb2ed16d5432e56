/* A pointer that the slab never had is freed. Release sees it when the magazine leaves the thread.
 *
 * args      static stack malloc other other-interior
 * release   ABRT tenure: shared slab "s": flush: {p} is not a slot of this shared slab
 * hardened  ABRT tenure: shared slab "s": free: {p} is not a slot of this shared slab
 * debug     ABRT tenure: shared slab "s": free: {p} is not a slot of this shared slab; nothing of
 *           Tenure is there
 * debug:other  ABRT tenure: shared slab "s": free: {p} is not a slot of this shared slab; it is in
 *           shared slab "other", slot {q}
 * debug:other-interior  ABRT tenure: shared slab "s": free: {p} is not a slot of this shared slab; it
 *           is in shared slab "other", slot {q}
 */
#include "misuse.h"

int main(int argc, char **argv) {
	static char here[64];
	char there[64];
	void *slots[2000];
	tn_shared_slab *s = make_shared_slab("s", 64, 0);
	char *q = tn_shared_slab_alloc(make_shared_slab("other", 64, 0));
	for (int i = 0; i < 2000; i++)
		slots[i] = tn_shared_slab_alloc(s);
	void *p = IS("static") ? here : IS("stack") ? there : IS("malloc") ? malloc(64) : q;
	if (IS("other-interior"))
		p = q + 8;
	tell("p", p);
	tell("q", q);
	tn_shared_slab_free(s, p);
	for (int i = 0; i < 2000; i++)
		tn_shared_slab_free(s, slots[i]);
	return 0;
}
