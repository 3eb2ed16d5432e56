/* A user with templates and inline functions over the headers only, none of them used. */
#include <new>

#include <tenure/tenure.h>

template <class T> T *make(tn_arena *a) {
	return new (tn_arena_alloc(a, sizeof(T), alignof(T))) T();
}

inline void give_back(tn_slab *s, void *p) {
	tn_slab_free(s, p);
}

int main() {
	return 0;
}
