/* One byte before a block is written; seen when it is freed.
 *
 * release   undefined
 * hardened  undefined
 * debug     ABRT tenure: heap "h": free: {p} was written before its start, at byte -1 of 64,
 *           allocated at SITE(alloc)
 */
#include "misuse.h"

int main(void) {
	tn_heap *h = make_heap("h");
	char *p = tn_heap_alloc(h, 40, 0); /* alloc */
	tell("p", p);
	p[-1] ^= 1;
	tn_heap_free(h, p);
	return 0;
}
