/* resize and realloc are told another size than the block was allocated with.
 *
 * args      resize realloc
 * release   undefined
 * hardened  undefined
 * debug     ABRT tenure: arena "a": {op}: {p} has 64 bytes, not 60, allocated at SITE(alloc)
 */
#include "misuse.h"

int main(int argc, char **argv) {
	tn_arena *a = make_arena("a");
	void *p = tn_arena_alloc(a, 64, 0); /* alloc */
	tell("p", p);
	tell_word("op", argv[1]);
	if (IS("resize"))
		tn_arena_resize(a, p, 60, 32);
	else
		tn_arena_realloc(a, p, 60, 100, 0);
	return 0;
}
