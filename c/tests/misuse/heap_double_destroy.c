/* The heap is destroyed twice.
 *
 * release   undefined
 * hardened  ABRT tenure: heap: destroy: {h} is not a live heap
 * debug     SEGV
 */
#include "misuse.h"

int main(void) {
	tn_heap *h = tn_heap_create(NULL);
	tell("h", h);
	tn_heap_destroy(h);
	tn_heap_destroy(h);
	return 0;
}
