/* A block is freed twice: at once, with another in between, and after 300 other operations.
 *
 * args      at-once a-b-a later x 40 3000
 * release   ABRT tenure: heap "h": free: {p} is free already
 * hardened  ABRT tenure: heap "h": free: {p} is free already
 * debug     ABRT tenure: heap "h": free: {p} is free already, allocated at SITE(alloc),
 *           freed at SITE(free)
 */
#include "misuse.h"

int main(int argc, char **argv) {
	void *other[150];
	size_t size = (size_t)atoi(argv[2]);
	tn_heap *h = make_heap("h");
	void *p = tn_heap_alloc(h, size, 0); /* alloc */
	tell("p", p);
	for (int i = 0; i < 150; i++)
		other[i] = tn_heap_alloc(h, size, 0);
	tn_heap_free(h, p); /* free */
	if (IS("a-b-a"))
		tn_heap_free(h, other[0]);
	for (int i = 1; IS("later") && i < 150; i++)
		tn_heap_free(h, other[i]);
	for (int i = 0; IS("later") && i < 75; i++)
		tn_heap_free(h, tn_heap_alloc(h, 2 * size, 0));
	tn_heap_free(h, p);
	return 0;
}
