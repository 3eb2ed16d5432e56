/* A rewind to a checkpoint of another arena.
 *
 * release   ABRT tenure: arena "a": rewind: the checkpoint is of another arena
 * hardened  ABRT tenure: arena "a": rewind: the checkpoint is of another arena
 * debug     ABRT tenure: arena "a": rewind: the checkpoint is of another arena
 */
#include "misuse.h"

int main(void) {
	tn_arena *a = make_arena("a");
	tn_arena_rewind(a, tn_arena_mark(make_arena("other")));
	return 0;
}
