/* The shared slab itself is used after its end.
 *
 * args      alloc free free_batch flush in_use
 * release   undefined
 * hardened  ABRT tenure: shared slab: {op}: {s} is not a live shared slab
 * debug     SEGV tenure: shared slab "s": destroy: 1 live slots (64 bytes) allocated at SITE(alloc)
 */
#include "misuse.h"

int main(int argc, char **argv) {
	tn_shared_slab *s = make_shared_slab("s", 64, 0);
	void *p = tn_shared_slab_alloc(s); /* alloc */
	tell("s", s);
	tell_word("op", argv[1]);
	tn_shared_slab_free(s, tn_shared_slab_alloc(s));
	tn_shared_slab_destroy(s);
	if (IS("alloc"))
		tn_shared_slab_alloc(s);
	else if (IS("free"))
		tn_shared_slab_free(s, p);
	else if (IS("free_batch"))
		tn_shared_slab_free_batch(s, &p, 1);
	else if (IS("flush"))
		tn_shared_slab_flush(s);
	else
		tn_shared_slab_in_use(s);
	return 0;
}
