/* Release also sees a foreign pointer when the slab is verified or trimmed, long before a flush.
 *
 * args      verify trim
 * release   ABRT tenure: slab "s": {op}: {p} is not a slot of this slab
 * hardened  undefined
 * debug     undefined
 */
#include "misuse.h"

int main(int argc, char **argv) {
	static char here[64];
	tn_slab *s = make_slab("s", 64, 0);
	tn_slab_alloc(s);
	tell("p", here);
	tell_word("op", argv[1]);
	tn_slab_free(s, here);
	if (IS("verify"))
		tn_slab_verify(s);
	else
		tn_slab_trim(s);
	return 0;
}
