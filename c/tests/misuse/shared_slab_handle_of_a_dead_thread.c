/* A handle is used after the end of the thread that it was given to.
 *
 * release   ABRT tenure: handle: local_alloc: the slab or the thread of {l} is no more
 * hardened  ABRT tenure: handle: local_alloc: the slab or the thread of {l} is no more
 * debug     ABRT tenure: handle: local_alloc: the slab or the thread of {l} is no more
 */
#include "thread.h"

static tn_local *l;

static void get_handle(void *s) {
	l = tn_shared_slab_local(s);
	tn_shared_slab_local_free(l, tn_shared_slab_local_alloc(l));
}

int main(int argc, char **argv) {
	in_thread(get_handle, make_shared_slab("s", 64, 0));
	tell("l", l);
	tn_shared_slab_local_alloc(l);
	return 0;
}
