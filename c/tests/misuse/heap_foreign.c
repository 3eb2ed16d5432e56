/* A pointer that the heap never had is given to a call.
 *
 * args      free realloc usable_size free_sized x static stack malloc heap slab arena behind itself
 * release   ABRT tenure: heap "h": {op}: {p} is not a block of this heap
 * hardened  ABRT tenure: heap "h": {op}: {p} is not a block of this heap
 * debug     ABRT tenure: heap "h": {op}: {p} is not a block of this heap
 */
#include "misuse.h"

int main(int argc, char **argv) {
	static char here[64];
	char there[64];
	tn_heap *h = make_heap("h");
	tn_heap_alloc(h, 48, 0);
	const char *from = argv[2];
	void *p = *from == 'm'                               ? malloc(48)
	          : *from == 'h'                             ? tn_heap_alloc(make_heap("other"), 48, 0)
	          : strcmp(from, "slab") == 0                ? tn_slab_alloc(make_slab("s", 48, 0))
	          : *from == 'a'                             ? tn_arena_alloc(make_arena("a"), 48, 0)
	          : *from == 'b'                             ? (void *)(uintptr_t)0xfff0000000000010
	          : *from == 'i'                             ? (void *)h
	          : *(from + 2) == 'a' && *(from + 3) == 't' ? here
	                                                     : there;
	tell("p", p);
	/* Release serves free_sized by free, and names that. */
	tell_word("op", IS("free_sized") && TN_MODE == TN_MODE_RELEASE ? "free" : argv[1]);
	if (IS("free"))
		tn_heap_free(h, p);
	else if (IS("realloc"))
		tn_heap_realloc(h, p, 100);
	else if (IS("free_sized"))
		tn_heap_free_sized(h, p, 48);
	else
		tn_heap_usable_size(h, p);
	return 0;
}
