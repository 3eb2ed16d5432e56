/* A pointer into a block is given to a call, not its beginning.
 *
 * args      free realloc usable_size x 1 16 47
 * release   ABRT tenure: heap "h": {op}: {p} is {n} bytes inside the block at {q}
 * hardened  ABRT tenure: heap "h": {op}: {p} is {n} bytes inside the block at {q}
 * debug     ABRT tenure: heap "h": {op}: {p} is {n} bytes inside the slot at {q},
 *           allocated at SITE(alloc)
 */
#include "misuse.h"

int main(int argc, char **argv) {
	tn_heap *h = make_heap("h");
	char *q = tn_heap_alloc(h, 48, 0); /* alloc */
	size_t n = (size_t)atoi(argv[2]);
	tell("p", q + n);
	tell("q", q);
	tell_size("n", n);
	tell_word("op", argv[1]);
	if (IS("free"))
		tn_heap_free(h, q + n);
	else if (IS("realloc"))
		tn_heap_realloc(h, q + n, 100);
	else
		tn_heap_usable_size(h, q + n);
	return 0;
}
