/* A pointer into an object is put, not its beginning.
 *
 * args      1 8 16 47
 * release   undefined
 * hardened  ABRT tenure: pool "p": put: {o} is {n} bytes inside the slot at {q}
 * debug     ABRT tenure: pool "p": put: {o} is {n} bytes inside the slot at {q}, allocated at SITE(get)
 */
#include "misuse.h"

int main(int argc, char **argv) {
	tn_pool *p = make_pool("p", 48);
	char *q = tn_pool_get(p); /* get */
	size_t n = (size_t)atoi(argv[1]);
	tell("o", q + n);
	tell("q", q);
	tell_size("n", n);
	tn_pool_put(p, q + n);
	return 0;
}
