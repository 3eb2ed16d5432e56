/* Prints the mode that it was built for, after using an arena and a slab. */
#include <stdio.h>
#include <tenure/tenure.h>

int main(void) {
	tn_arena *a = tn_arena_create(NULL);
	tn_slab *s = tn_slab_create(32, 0, NULL);
	int *numbers = TN_NEW_ARRAY(a, int, 100);
	void *slot = tn_slab_alloc(s);
	if (numbers == NULL || slot == NULL)
		return 1;
	tn_slab_free(s, slot);
	tn_slab_destroy(s);
	tn_arena_destroy(a);
	printf("mode %d\n", TN_MODE);
	return 0;
}
