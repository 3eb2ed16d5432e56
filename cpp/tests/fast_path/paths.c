/* The arena's function of paths.cpp, in C: check.py counts the instructions of both. */
#include <tenure/tenure.h>

struct point {
	long x, y, z;
};
struct scene {
	tn_arena *arena;
};

struct point *make_point_in_c(struct scene *s, long x) {
	struct point *p = tn_arena_alloc(s->arena, sizeof *p, _Alignof(struct point));
	*p = (struct point){x, x, x};
	return p;
}
