/* Destroying a shared slab with live slots is legal; debug lists them by site in any thread.
 *
 * release   EXIT
 * hardened  EXIT
 * debug     EXIT tenure: shared slab "s": destroy: 1 live slots (48 bytes) allocated at SITE(one)
 *           tenure: shared slab "s": destroy: 2 live slots (96 bytes) allocated at SITE(handle)
 *           tenure: shared slab "s": destroy: 37 live slots (1776 bytes) allocated at SITE(many)
 *           tenure: shared slab "s": destroy: 16 live slots (768 bytes) allocated at SITE(batch)
 *           tenure: shared slab "s": destroy: 300 live slots (14400 bytes) allocated at SITE(thread)
 */
#include "thread.h"

static tn_shared_slab *s;

static void take(void *count) {
	for (int i = 0; i < *(int *)count; i++)
		tn_shared_slab_alloc(s); /* thread */
}

int main(void) {
	void *slots[16];
	s = make_shared_slab("s", 48, 0);
	take(&(int){100});
	tn_shared_slab_alloc(s); /* one */
	for (int i = 0; i < 2; i++)
		tn_shared_slab_local_alloc(tn_shared_slab_local(s)); /* handle */
	void *freed = tn_shared_slab_alloc(s);
	for (int i = 0; i < 40; i++) {
		void *slot = tn_shared_slab_alloc(s); /* many */
		if (i % 15 == 0)
			tn_shared_slab_free(s, slot);
	}
	tn_shared_slab_alloc_batch(s, slots, 16); /* batch */
	in_thread(take, &(int){200});
	tn_shared_slab_free(s, freed);
	tn_shared_slab_destroy(s);
	return 0;
}
