/* A slot is read or written after free or destroy, also by the thread that did not free it.
 *
 * args      free elsewhere destroy x read write x first last x 1 64 5000
 * release   undefined
 * hardened  undefined
 * debug     SEGV
 * debug:destroy  SEGV tenure: shared slab "s": destroy: 3 live slots ({bytes} bytes) allocated at
 *           SITE(alloc)
 */
#include "thread.h"

static tn_shared_slab *s;

static void free_it(void *p) {
	tn_shared_slab_free(s, p);
}

int main(int argc, char **argv) {
	size_t size = (size_t)atoi(argv[4]);
	s = make_shared_slab("s", size, 1);
	void *slots[3];
	for (int i = 0; i < 3; i++)
		slots[i] = tn_shared_slab_alloc(s); /* alloc */
	void *p = slots[1];
	tell_size("bytes", 3 * size);
	if (IS("free"))
		tn_shared_slab_free(s, p);
	else if (IS("elsewhere"))
		in_thread(free_it, p);
	else
		tn_shared_slab_destroy(s);
	touch(argv[2], p, offset_of(argv[3], size));
	return 0;
}
