/* Release also sees a foreign pointer when the slab is verified or trimmed, when the thread flushes,
 * and when it ends: long before its magazine is full.
 *
 * args      verify trim flush end
 * release   ABRT tenure: shared slab "s": flush: {p} is not a slot of this shared slab
 * release:verify  ABRT tenure: shared slab "s": verify: {p} is not a slot of this shared slab
 * hardened  undefined
 * debug     undefined
 */
#include "thread.h"

static tn_shared_slab *s;

static void misuse(void *p) {
	tn_shared_slab_free(s, tn_shared_slab_alloc(s));
	tn_shared_slab_free(s, p);
}

int main(int argc, char **argv) {
	static char here[64];
	s = make_shared_slab("s", 64, 0);
	tell("p", here);
	if (IS("end"))
		in_thread(misuse, here);
	else
		misuse(here);
	if (IS("verify"))
		tn_shared_slab_verify(s);
	else if (IS("trim"))
		tn_shared_slab_trim(s);
	else
		tn_shared_slab_flush(s);
	return 0;
}
