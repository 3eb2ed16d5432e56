/* A block is read or written after free, realloc, reset or destroy.
 *
 * args      free realloc reset destroy x read write x first middle last x 1 16 64 5000 50000
 * release   undefined
 * hardened  undefined
 * debug     SEGV
 */
#include "misuse.h"

int main(int argc, char **argv) {
	size_t size = (size_t)atoi(argv[4]);
	tn_heap *h = tn_heap_create(&(tn_heap_options){.name = "h", .expendable = true});
	void *blocks[3];
	for (int i = 0; i < 3; i++)
		blocks[i] = tn_heap_alloc(h, size, 0);
	void *p = blocks[1];
	if (IS("free"))
		tn_heap_free(h, p);
	else if (IS("realloc"))
		tn_heap_realloc(h, p, size + 1);
	else if (IS("reset"))
		tn_heap_reset(h);
	else
		tn_heap_destroy(h);
	touch(argv[2], p, offset_of(argv[3], size));
	return 0;
}
