/* A pointer into an object is given back, not its beginning.
 *
 * args      1 8 47
 * release   undefined
 * hardened  ABRT tenure: size_based_arena "r": deallocate: {p} is {n} bytes inside a slot
 * debug     ABRT tenure: size_based_arena "r": deallocate: {p} is {n} bytes inside a slot
 */
#include "runs.h"

int main(int argc, char **argv) {
	size_t n = (size_t)atoi(argv[1]);
	char *p = take(1) + n;
	tell("p", p);
	tell_size("n", n);
	give(p, 1);
	return 0;
}
