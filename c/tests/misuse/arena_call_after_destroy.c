/* The arena itself is used after its end.
 *
 * args      alloc reset verify
 * release   undefined
 * hardened  undefined
 * debug     SEGV
 */
#include "misuse.h"

int main(int argc, char **argv) {
	tn_arena *a = make_arena("a");
	tn_arena_alloc(a, 64, 0);
	tn_arena_destroy(a);
	if (IS("alloc"))
		tn_arena_alloc(a, 64, 0);
	else if (IS("reset"))
		tn_arena_reset(a);
	else
		tn_arena_verify(a);
	return 0;
}
