/* The arena is destroyed twice.
 *
 * release   undefined
 * hardened  ABRT tenure: arena: destroy: {a} is not a live arena
 * debug     SEGV
 */
#include "misuse.h"

int main(void) {
	tn_arena *a = make_arena("a");
	tell("a", a);
	tn_arena_destroy(a);
	tn_arena_destroy(a);
	return 0;
}
