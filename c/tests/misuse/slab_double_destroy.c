/* The slab is destroyed twice.
 *
 * release   undefined
 * hardened  ABRT tenure: slab: destroy: {s} is not a live slab
 * debug     SEGV
 */
#include "misuse.h"

int main(void) {
	tn_slab *s = make_slab("s", 64, 0);
	tell("s", s);
	tn_slab_destroy(s);
	tn_slab_destroy(s);
	return 0;
}
