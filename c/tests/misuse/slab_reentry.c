/* A callback calls the slab that called it.
 *
 * release   undefined
 * hardened  ABRT tenure: slab "s": alloc: overlaps another call
 * debug     ABRT tenure: slab "s": alloc: thread {t} overlaps a call of thread {t}
 */
#include "reentry.h"

static tn_slab *s;

static bool init(void *slot, void *ctx) {
	return tn_slab_alloc(s) != NULL;
}

int main(void) {
	tell_thread();
	s = tn_slab_create(64, 0, &(tn_slab_options){.name = "s", .init = init});
	tn_slab_alloc(s);
	return 0;
}
