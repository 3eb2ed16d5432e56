/* An object is put that the pool never had. Release sees it when the magazine leaves the thread.
 *
 * args      static stack malloc other slab
 * release   ABRT tenure: pool "p": flush: {o} is not an object of this pool
 * hardened  ABRT tenure: pool "p": put: {o} is not a slot of this pool
 * debug     ABRT tenure: pool "p": put: {o} is not a slot of this pool; nothing of Tenure is there
 * debug:other  ABRT tenure: pool "p": put: {o} is not a slot of this pool; it is in pool "other",
 *           slot {o}
 * debug:slab  ABRT tenure: pool "p": put: {o} is not a slot of this pool; it is in shared slab "slab",
 *           slot {o}
 */
#include "misuse.h"

int main(int argc, char **argv) {
	static char here[64];
	char there[64];
	tn_pool *p = make_pool("p", 64);
	void *object = IS("static")   ? here
	               : IS("stack")  ? there
	               : IS("malloc") ? malloc(64)
	               : IS("other")  ? tn_pool_get(make_pool("other", 64))
	                              : tn_shared_slab_alloc(make_shared_slab("slab", 64, 0));
	tell("o", object);
	tn_pool_put(p, tn_pool_get(p));
	tn_pool_put(p, object);
	tn_pool_flush(p);
	return 0;
}
