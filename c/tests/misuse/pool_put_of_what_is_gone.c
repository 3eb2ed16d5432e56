/* An object is put that the pool has taken apart meanwhile.
 *
 * args      trim bound
 * release   undefined
 * hardened  ABRT tenure: pool "p": put: {o} is free already
 * debug     ABRT tenure: pool "p": put: {o} is free already, allocated at SITE(get), freed at SITE(put)
 */
#include "misuse.h"

int main(int argc, char **argv) {
	tn_pool *p = tn_pool_create(
		64, 0, &(tn_pool_options){.name = "p", .max_idle_objects = IS("bound") ? TN_NONE : 0});
	void *kept = tn_pool_get(p);
	void *object = tn_pool_get(p); /* get */
	tell("o", object);
	tn_pool_put(p, object); /* put */
	if (IS("trim"))
		tn_pool_trim(p);
	tn_pool_put(p, object);
	return 0;
}
