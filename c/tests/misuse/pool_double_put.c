/* An object is put twice: at once, with another in between, after a flush, and the second time by
 * another thread.
 *
 * args      at-once a-b-a flush thread
 * release   undefined
 * hardened  ABRT tenure: pool "p": put: {o} is idle already
 * debug     ABRT tenure: pool "p": put: {o} is idle already, got at SITE(get), put at SITE(put)
 */
#include "thread.h"

static tn_pool *p;

static void put_it(void *object) {
	tn_pool_put(p, object);
}

int main(int argc, char **argv) {
	p = make_pool("p", 64);
	void *other = tn_pool_get(p);
	void *object = tn_pool_get(p); /* get */
	tell("o", object);
	tn_pool_put(p, object); /* put */
	if (IS("a-b-a"))
		tn_pool_put(p, other);
	if (IS("flush"))
		tn_pool_flush(p);
	if (IS("thread"))
		in_thread(put_it, object);
	tn_pool_put(p, object);
	return 0;
}
