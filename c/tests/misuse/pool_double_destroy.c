/* The pool is destroyed twice.
 *
 * release   undefined
 * hardened  ABRT tenure: pool: destroy: {p} is not a live pool
 * debug     SEGV
 */
#include "misuse.h"

int main(void) {
	tn_pool *p = make_pool("p", 64);
	tell("p", p);
	tn_pool_put(p, tn_pool_get(p));
	tn_pool_destroy(p);
	tn_pool_destroy(p);
	return 0;
}
