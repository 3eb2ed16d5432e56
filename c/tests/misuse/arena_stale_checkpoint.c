/* A rewind to a checkpoint from before a reset, or past an earlier rewind.
 *
 * args      reset rewound
 * release   ABRT tenure: arena "a": rewind: the checkpoint is stale
 * hardened  ABRT tenure: arena "a": rewind: the checkpoint is stale
 * debug     ABRT tenure: arena "a": rewind: the checkpoint is stale
 */
#include "misuse.h"

int main(int argc, char **argv) {
	tn_arena *a = make_arena("a");
	tn_checkpoint start = tn_arena_mark(a);
	tn_arena_alloc(a, 64, 0);
	tn_checkpoint later = tn_arena_mark(a);
	if (IS("reset"))
		tn_arena_reset(a);
	else
		tn_arena_rewind(a, start);
	tn_arena_rewind(a, later);
	return 0;
}
