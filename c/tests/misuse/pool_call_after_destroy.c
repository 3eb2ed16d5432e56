/* The pool itself is used after its end.
 *
 * args      get put flush trim stats destroy
 * release   undefined
 * hardened  ABRT tenure: pool: {op}: {p} is not a live pool
 * debug     SEGV tenure: pool "p": destroy: 1 live slots (64 bytes) allocated at SITE(get)
 */
#include "misuse.h"

int main(int argc, char **argv) {
	tn_stats stats;
	tn_pool *p = make_pool("p", 64);
	void *object = tn_pool_get(p); /* get */
	tell("p", p);
	tell_word("op", argv[1]);
	tn_pool_put(p, tn_pool_get(p));
	tn_pool_destroy(p);
	if (IS("get"))
		tn_pool_get(p);
	else if (IS("put"))
		tn_pool_put(p, object);
	else if (IS("flush"))
		tn_pool_flush(p);
	else if (IS("trim"))
		tn_pool_trim(p);
	else if (IS("stats"))
		tn_pool_stats(p, &stats);
	else
		tn_pool_destroy(p);
	return 0;
}
