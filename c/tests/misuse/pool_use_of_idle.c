/* An object is read or written after it was put, while it is idle: it keeps its contents, so only ASan
 * sees it.
 *
 * args      get put x read write x first last x 24 64 5000
 * release   undefined
 * hardened  undefined
 * debug     EXIT
 * debug-address  SEGV
 */
#include "misuse.h"

int main(int argc, char **argv) {
	size_t size = (size_t)atoi(argv[4]);
	tn_pool *p = make_pool("p", size);
	void *object = tn_pool_get(p);
	void *other = tn_pool_get(p);
	tn_pool_put(p, object);
	if (IS("get"))
		tn_pool_put(p, other);
	touch(argv[2], object, offset_of(argv[3], size));
	if (IS("get"))
		tn_pool_put(p, tn_pool_get(p));
	else
		tn_pool_put(p, other);
	tn_pool_destroy(p);
	return 0;
}
