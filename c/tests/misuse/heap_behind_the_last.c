/* A pointer behind the last slot of a chunk, where a further one would begin that the chunk has no room
 * for.
 *
 * args      free realloc usable_size free_sized
 * release   ABRT tenure: heap "h": {op}: {p} is not a block of this heap
 * hardened  ABRT tenure: heap "h": {op}: {p} is not a block of this heap
 * debug     undefined
 */
#include "misuse.h"

int main(int argc, char **argv) {
	tn_heap *h = make_heap("h");
	char *first = tn_heap_alloc(h, 7168, 0);
	char *p = first + (64 << 10) / 7168 * 7168;
	tell("p", p);
	tell_word("op", IS("free_sized") && TN_MODE == TN_MODE_RELEASE ? "free" : argv[1]);
	if (IS("free"))
		tn_heap_free(h, p);
	else if (IS("realloc"))
		tn_heap_realloc(h, p, 100);
	else if (IS("free_sized"))
		tn_heap_free_sized(h, p, 7168);
	else
		tn_heap_usable_size(h, p);
	return 0;
}
