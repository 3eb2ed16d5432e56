/* One byte past a block is written; seen by the next check of the block.
 *
 * args      free realloc usable_size verify each reset destroy x 1 24 40 100 4096 20000
 * release   undefined
 * hardened  undefined
 * debug     ABRT tenure: heap "h": {op}: {p} was written past its end, at byte {n} of {n},
 *           allocated at SITE(alloc)
 */
#include "misuse.h"

static void visit(void *p, size_t size, void *ctx) {
}

int main(int argc, char **argv) {
	size_t size = (size_t)atoi(argv[2]);
	tn_heap *h = make_heap("h");
	char *p = tn_heap_alloc(h, size, 0); /* alloc */
	tell("p", p);
	tell_size("n", size);
	tell_word("op", argv[1]);
	p[size] ^= 1;
	if (IS("free"))
		tn_heap_free(h, p);
	else if (IS("realloc"))
		tn_heap_realloc(h, p, 2 * size);
	else if (IS("usable_size"))
		tn_heap_usable_size(h, p);
	else if (IS("verify"))
		tn_heap_verify(h);
	else if (IS("each"))
		tn_heap_each(h, visit, NULL);
	else if (IS("reset"))
		tn_heap_reset(h);
	else
		tn_heap_destroy(h);
	return 0;
}
