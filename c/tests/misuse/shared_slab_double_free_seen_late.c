/* Release sees a double free late, where the slot meets itself: when the slab is verified or visited,
 * and when the slots go back to their chunks.
 *
 * args      verify each trim
 * release   ABRT tenure: shared slab "s": {op}: {p} is free twice
 * release:trim  ABRT tenure: shared slab "s": flush: {p} is free twice
 * hardened  ABRT tenure: shared slab "s": free: {p} is free already
 * debug     ABRT tenure: shared slab "s": free: {p} is free already, allocated at SITE(alloc),
 *           freed at SITE(free)
 */
#include "misuse.h"

static void visit(void *slot, void *ctx) {
}

int main(int argc, char **argv) {
	tn_shared_slab *s = make_shared_slab("s", 64, 0);
	void *kept = tn_shared_slab_alloc(s);
	void *p = tn_shared_slab_alloc(s); /* alloc */
	tell("p", p);
	tell_word("op", argv[1]);
	tn_shared_slab_free(s, p); /* free */
	tn_shared_slab_free(s, p);
	if (IS("verify"))
		tn_shared_slab_verify(s);
	else if (IS("each"))
		tn_shared_slab_each(s, visit, NULL);
	else
		tn_shared_slab_trim(s);
	return 0;
}
