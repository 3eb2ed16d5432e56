/* bench/heap/hardened.cpp: hooks of the heap in the mode hardened. They are in a module because two
 * modes do not link into one program. */
#include "heap/tenure.h"

extern "C" __attribute__((visibility("default"))) bench::heap_hooks tenure_bench_heap_hardened() {
	return bench::hooks_of<bench::tenure_heap>();
}
