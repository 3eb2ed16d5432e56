/* What is legal in every mode: no end to an arena, nothing to free, a slab that outlives main.
 *
 * release   EXIT
 * hardened  EXIT
 * debug     EXIT
 */
#include "misuse.h"

int main(void) {
	tn_arena a;
	tn_arena_init(&a, NULL);
	tn_arena_alloc(&a, 100, 0);
	tn_arena_alloc(make_arena("a"), 100, 0);
	tn_slab *s = make_slab("s", 64, 0);
	void *slots[3] = {NULL, tn_slab_alloc(s), NULL};
	tn_slab_free_batch(s, slots, 3);
	tn_slab_free(s, NULL);
	tn_slab_alloc(s);
	tn_slab_destroy(NULL);
	tn_arena_destroy(NULL);
	tn_arena_deinit(NULL);
	return 0;
}
