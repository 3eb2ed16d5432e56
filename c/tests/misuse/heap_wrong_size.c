/* A block is freed with a size that it never had.
 *
 * args      1 400 100000
 * release   undefined
 * hardened  ABRT tenure: heap "h": free_sized: {p} has room for 160 bytes; {n} was never its size
 * debug     ABRT tenure: heap "h": free_sized: {p} has 150 bytes, not {n}
 */
#include "misuse.h"

int main(int argc, char **argv) {
	tn_heap *h = make_heap("h");
	void *p = tn_heap_alloc(h, 150, 0);
	tell("p", p);
	tell_word("n", argv[1]);
	tn_heap_free_sized(h, p, (size_t)atoi(argv[1]));
	return 0;
}
