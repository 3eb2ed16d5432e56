/* A pointer that the arena never had is given back.
 *
 * args      static stack malloc other slab
 * release   undefined
 * hardened  ABRT tenure: size_based_arena "r": deallocate: {p} is not a slot of this arena
 * debug     ABRT tenure: size_based_arena "r": deallocate: {p} is not a slot of this arena
 */
#include "runs.h"

int main(int argc, char **argv) {
	static char here[48];
	char there[48];
	static tn_runs other = {.name = "o", .slot_bytes = 48, .align = 8, .count = 10, .lease_slots = 1};
	static _Thread_local tn_lease lease_of_other;
	void *p = IS("static")   ? here
	          : IS("stack")  ? there
	          : IS("malloc") ? malloc(48)
	          : IS("other")  ? tn_runs_alloc_slow(&other, &lease_of_other, 1)
	                         : tn_slab_alloc(make_slab("s", 48, 8));
	tell("p", p);
	give(take(1), 1);
	give(p, 1);
	return 0;
}
