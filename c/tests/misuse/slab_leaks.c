/* Destroying a slab with live slots is legal; debug lists them by site.
 *
 * release   EXIT
 * hardened  EXIT
 * debug     EXIT tenure: slab "s": destroy: 1 live slots (48 bytes) allocated at SITE(one)
 *           tenure: slab "s": destroy: 2 live slots (96 bytes) allocated at SITE(two)
 *           tenure: slab "s": destroy: 37 live slots (1776 bytes) allocated at SITE(many)
 *           tenure: slab "s": destroy: 16 live slots (768 bytes) allocated at SITE(batch)
 *           tenure: slab "s": destroy: 300 live slots (14400 bytes) allocated at SITE(function)
 */
#include "misuse.h"

static void take(tn_slab *s, int count) {
	for (int i = 0; i < count; i++)
		tn_slab_alloc(s); /* function */
}

int main(void) {
	void *slots[37];
	tn_slab *s = make_slab("s", 48, 0);
	take(s, 100);
	tn_slab_alloc(s); /* one */
	for (int i = 0; i < 2; i++)
		slots[i] = tn_slab_alloc(s); /* two */
	void *freed = tn_slab_alloc(s);
	for (int i = 0; i < 40; i++) {
		void *slot = tn_slab_alloc(s); /* many */
		if (i % 15 == 0)
			tn_slab_free(s, slot);
	}
	tn_slab_alloc_batch(s, slots, 16); /* batch */
	take(s, 200);
	tn_slab_free(s, freed);
	tn_slab_destroy(s);
	return 0;
}
