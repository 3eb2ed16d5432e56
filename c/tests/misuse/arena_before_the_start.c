/* The byte before a block is written; seen by the next check of the block.
 *
 * args      reset verify rewind destroy x 0 1 7 24 100 5000 100000
 * release   undefined
 * hardened  undefined
 * debug     ABRT tenure: arena "a": {op}: {p} was written before its start, at byte -1 of {n},
 *           allocated at SITE(alloc)
 */
#include "misuse.h"

int main(int argc, char **argv) {
	size_t size = (size_t)atoi(argv[2]);
	tn_arena *a = make_arena("a");
	tn_checkpoint start = tn_arena_mark(a);
	char *p = tn_arena_alloc(a, size, 1); /* alloc */
	tn_arena_alloc(a, 64, 0);
	tell("p", p);
	tell_size("n", size);
	tell_word("op", argv[1]);
	p[-1] ^= 1;
	if (IS("reset"))
		tn_arena_reset(a);
	else if (IS("verify"))
		tn_arena_verify(a);
	else if (IS("rewind"))
		tn_arena_rewind(a, start);
	else
		tn_arena_destroy(a);
	return 0;
}
