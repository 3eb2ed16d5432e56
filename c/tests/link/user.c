/* A user who calls the library. */
#include <tenure/tenure.h>

int main(void) {
	tn_arena *a = tn_arena_create(NULL);
	bool ok = tn_arena_alloc(a, 100, 0) != NULL;
	tn_arena_destroy(a);
	return ok ? 0 : 1;
}
