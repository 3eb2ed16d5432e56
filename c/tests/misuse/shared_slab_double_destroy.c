/* The shared slab is destroyed twice.
 *
 * release   undefined
 * hardened  ABRT tenure: shared slab: destroy: {s} is not a live shared slab
 * debug     SEGV
 */
#include "misuse.h"

int main(void) {
	tn_shared_slab *s = make_shared_slab("s", 64, 0);
	tell("s", s);
	tn_shared_slab_free(s, tn_shared_slab_alloc(s));
	tn_shared_slab_destroy(s);
	tn_shared_slab_destroy(s);
	return 0;
}
