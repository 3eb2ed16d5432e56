/* A second part of a program, whose main is elsewhere. */
#include <tenure/tenure.h>

bool other_part(void);

bool other_part(void) {
	tn_slab *s = tn_slab_create(32, 0, NULL);
	bool ok = tn_slab_alloc(s) != NULL;
	tn_slab_destroy(s);
	return ok;
}
