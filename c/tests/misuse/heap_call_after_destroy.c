/* The heap itself is used after its end.
 *
 * args      alloc free realloc reset usable_size
 * release   undefined
 * hardened  ABRT tenure: heap: {op}: {h} is not a live heap
 * debug     SEGV
 */
#include "misuse.h"

int main(int argc, char **argv) {
	tn_heap *h = tn_heap_create(&(tn_heap_options){.name = "h", .expendable = true});
	void *p = tn_heap_alloc(h, 64, 0);
	tell("h", h);
	tell_word("op", argv[1]);
	tn_heap_destroy(h);
	if (IS("alloc"))
		tn_heap_alloc(h, 64, 0);
	else if (IS("free"))
		tn_heap_free(h, p);
	else if (IS("realloc"))
		tn_heap_realloc(h, p, 100);
	else if (IS("reset"))
		tn_heap_reset(h);
	else
		tn_heap_usable_size(h, p);
	return 0;
}
