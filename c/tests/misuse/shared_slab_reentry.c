/* A callback of a shared slab calls the slab.
 *
 * release   undefined
 * hardened  undefined
 * debug     ABRT tenure: shared slab "s": alloc: called from a callback of its own
 */
#include "misuse.h"

static tn_shared_slab *s;

static bool init(void *slot, void *ctx) {
	return tn_shared_slab_alloc(s) != NULL;
}

int main(void) {
	s = tn_shared_slab_create(64, 0, &(tn_shared_slab_options){.name = "s", .init = init});
	tn_shared_slab_alloc(s);
	return 0;
}
