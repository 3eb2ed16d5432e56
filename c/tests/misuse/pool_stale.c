/* An object is read or written after the end of its pool.
 *
 * args      read write x first middle last x 1 64 5000
 * release   undefined
 * hardened  undefined
 * debug     SEGV
 */
#include "misuse.h"

int main(int argc, char **argv) {
	size_t size = (size_t)atoi(argv[3]);
	tn_pool *p = make_pool("p", size);
	void *object = tn_pool_get(p);
	tn_pool_put(p, object);
	tn_pool_destroy(p);
	touch(argv[1], object, offset_of(argv[2], size));
	return 0;
}
