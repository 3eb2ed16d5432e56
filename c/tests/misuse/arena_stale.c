/* A block is read or written after reset or destroy: the only block of a chunk that is partly used,
 * one in a full chunk, one in the partly used chunk after full ones, one with a chunk of its own.
 *
 * args      reset destroy deinit x read write x first middle last x only full current large
 * release   undefined
 * hardened  undefined
 * debug     SEGV
 */
#include "misuse.h"

static void fill(tn_arena *a) {
	for (int i = 0; i < 100; i++)
		tn_arena_alloc(a, 4000, 0);
}

int main(int argc, char **argv) {
	tn_arena storage;
	tn_arena *a = IS("deinit") ? &storage : make_arena("a");
	if (IS("deinit"))
		tn_arena_init(a, NULL);
	size_t size = strcmp(argv[4], "large") == 0 ? 1 << 20 : 64;
	if (strcmp(argv[4], "current") == 0)
		fill(a);
	void *p = tn_arena_alloc(a, size, 0);
	if (strcmp(argv[4], "full") == 0)
		fill(a);
	if (IS("reset"))
		tn_arena_reset(a);
	else if (IS("deinit"))
		tn_arena_deinit(a);
	else
		tn_arena_destroy(a);
	touch(argv[2], p, offset_of(argv[3], size));
	return 0;
}
