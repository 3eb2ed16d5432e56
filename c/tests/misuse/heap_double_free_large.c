/* A block with a chunk of its own is freed twice.
 *
 * release   ABRT tenure: heap "h": free: {p} is not a block of this heap
 * hardened  ABRT tenure: heap "h": free: {p} is not a block of this heap
 * debug     ABRT tenure: heap "h": free: {p} is free already, allocated at SITE(alloc),
 *           freed at SITE(free)
 */
#include "misuse.h"

int main(void) {
	tn_heap *h = make_heap("h");
	void *p = tn_heap_alloc(h, 100000, 0); /* alloc */
	tell("p", p);
	tn_heap_free(h, p); /* free */
	tn_heap_free(h, p);
	return 0;
}
