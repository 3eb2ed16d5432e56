/* bench/slab/hardened.cpp: the slab's loops in the mode hardened. They are in a module because two
 * modes do not link into one program. */
#include "slab/tenure.h"

extern "C" __attribute__((visibility("default"))) bench::contestant *tenure_bench_hardened(
	bench::shape s, void **slots, size_t count) {
	return bench::make_contestant<bench::tenure_slab>(s, slots, count).release();
}
