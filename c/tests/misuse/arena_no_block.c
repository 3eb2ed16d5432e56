/* resize and realloc are told a pointer that is no block: of another arena, of no allocator, inside a
 * block, or of before a reset or rewind.
 *
 * args            other local reset rewind interior x resize realloc
 * release         undefined
 * hardened        undefined
 * debug           ABRT tenure: arena "a": {op}: {p} is no live block of this arena
 * debug:interior  ABRT tenure: arena "a": {op}: {p} is byte 16 of the 64 at {block},
 *                 allocated at SITE(alloc)
 */
#include "misuse.h"

int main(int argc, char **argv) {
	char local[64] = {0};
	tn_arena *a = make_arena("a"), *other = make_arena("other");
	tn_checkpoint start = tn_arena_mark(a);
	char *block = tn_arena_alloc(a, 64, 0); /* alloc */
	char *p = block + 16;
	if (IS("other"))
		p = tn_arena_alloc(other, 64, 0);
	else if (IS("local"))
		p = local;
	else if (!IS("interior"))
		p = block;
	if (IS("reset"))
		tn_arena_reset(a);
	if (IS("rewind"))
		tn_arena_rewind(a, start);
	tell("block", block);
	tell("p", p);
	tell_word("op", argv[2]);
	if (strcmp(argv[2], "resize") == 0)
		tn_arena_resize(a, p, 64, 32);
	else
		tn_arena_realloc(a, p, 64, 100, 0);
	return 0;
}
