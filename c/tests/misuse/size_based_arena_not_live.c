/* Slots that are not live are given back: a second time, a part of an array or all of it, after a
 * reset, one that was never handed out, and more than there were.
 *
 * args      twice later part rest array reset never too-many
 * release   undefined
 * hardened  ABRT tenure: size_based_arena "r": deallocate: {n} slots at {p} are not all live
 * debug     ABRT tenure: size_based_arena "r": deallocate: {n} slots at {p} are not all live
 * debug:reset  ABRT tenure: size_based_arena "r": deallocate: {p} is not a slot of this arena
 */
#include "runs.h"

int main(int argc, char **argv) {
	size_t n = IS("array") ? 4 : IS("too-many") ? 40 : IS("rest") ? 2 : 1;
	char *p = take(IS("part") || IS("rest") || IS("array") || IS("too-many") ? 4 : 1);
	if (IS("part") || IS("rest") || IS("array")) {
		give(p, 4);
		p += IS("array") ? 0 : 96;
	} else if (IS("never")) {
		p += 5 * 48;
	} else if (!IS("too-many")) {
		give(p, 1);
	}
	for (int i = 0; IS("later") && i < 300; i++)
		give(take(1), 1);
	if (IS("reset"))
		tn_runs_reset(&runs);
	tell("p", p);
	tell_size("n", n);
	give(p, n);
	return 0;
}
