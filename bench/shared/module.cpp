/* bench/shared/module.cpp: compiled into every module; BENCH_MODULE is the name of its export. */
#include "shared/module.h"
#include "shared/passing.h"
#include "shared/tenure.h"

extern "C" __attribute__((visibility("default"))) bench::contestant *BENCH_MODULE(
	bench::crew &c, bench::shared_shape s, size_t count) {
	using namespace bench;
	switch (s) {
	case shared_shape::pair:
		return new shared_pairs<tenure_shared<32>>(c, count);
	case shared_shape::batch:
		return new shared_batches<tenure_shared<64>>(c, count);
	case shared_shape::handoff:
		return new handoffs<tenure_shared<64>>(c, count);
	}
	return nullptr;
}
