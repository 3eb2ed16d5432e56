/* A slot is freed twice: at once, with another in between, after 300 other operations, after a flush,
 * through the handle, and the second time by another thread.
 *
 * args      at-once a-b-a later flush handle thread
 * release   undefined
 * hardened  ABRT tenure: shared slab "s": free: {p} is free already
 * debug     ABRT tenure: shared slab "s": free: {p} is free already, allocated at SITE(alloc),
 *           freed at SITE(free)
 */
#include "thread.h"

static tn_shared_slab *s;

static void free_it(void *p) {
	tn_shared_slab_free(s, p);
}

int main(int argc, char **argv) {
	void *other[150];
	s = make_shared_slab("s", 64, 0);
	void *p = tn_shared_slab_alloc(s); /* alloc */
	tell("p", p);
	for (int i = 0; i < 150; i++)
		other[i] = tn_shared_slab_alloc(s);
	tn_shared_slab_free(s, p); /* free */
	if (IS("a-b-a"))
		tn_shared_slab_free(s, other[0]);
	for (int i = 0; IS("later") && i < 150; i++)
		tn_shared_slab_free(s, other[i]);
	for (int i = 0; IS("later") && i < 75; i++)
		tn_shared_slab_free(s, tn_shared_slab_alloc(s));
	if (IS("flush"))
		tn_shared_slab_flush(s);
	if (IS("thread"))
		in_thread(free_it, p);
	if (IS("handle"))
		tn_shared_slab_local_free(tn_shared_slab_local(s), p);
	tn_shared_slab_free(s, p);
	return 0;
}
