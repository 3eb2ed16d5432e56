/* A pointer into a block with a chunk of its own is freed, in its first page or behind it.
 *
 * args      16 4096 99999
 * release   ABRT tenure: heap "h": free: {p} is {n} bytes inside the block at {q}
 * hardened  ABRT tenure: heap "h": free: {p} is {n} bytes inside the block at {q}
 * debug     ABRT tenure: heap "h": free: {p} is {n} bytes inside the block at {q},
 *           allocated at SITE(alloc)
 */
#include "misuse.h"

int main(int argc, char **argv) {
	tn_heap *h = make_heap("h");
	char *q = tn_heap_alloc(h, 100000, 0); /* alloc */
	size_t n = (size_t)atoi(argv[1]);
	tell("p", q + n);
	tell("q", q);
	tell_size("n", n);
	tn_heap_free(h, q + n);
	return 0;
}
