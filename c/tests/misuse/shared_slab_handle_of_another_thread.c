/* A handle is used by a thread that it was not given to.
 *
 * args      alloc free
 * release   undefined
 * hardened  ABRT tenure: shared slab "s": {op}: the handle {l} is another thread's
 * debug     ABRT tenure: shared slab "s": {op}: the handle {l} is another thread's
 */
#include "thread.h"

static const char *op;
static void *slot;

static void misuse(void *l) {
	if (strcmp(op, "alloc") == 0)
		tn_shared_slab_local_alloc(l);
	else
		tn_shared_slab_local_free(l, slot);
}

int main(int argc, char **argv) {
	tn_shared_slab *s = make_shared_slab("s", 64, 0);
	tn_local *l = tn_shared_slab_local(s);
	op = argv[1];
	slot = tn_shared_slab_local_alloc(l);
	tell("l", l);
	tell_word("op", IS("alloc") ? "local_alloc" : "local_free");
	in_thread(misuse, l);
	return 0;
}
