/* The same from C++. */
#include <cstdio>

#include <tenure/tenure.h>

int main() {
	tn_arena *a = tn_arena_create(nullptr);
	const int *number = TN_NEW(a, int);
	const bool zero = number != nullptr && *number == 0;
	tn_arena_destroy(a);
	std::printf("mode %d\n", TN_MODE);
	return zero ? 0 : 1;
}
