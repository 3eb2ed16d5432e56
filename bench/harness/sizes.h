/* bench/harness/sizes.h: sizes that look random and are the same for every subject. */
#ifndef BENCH_HARNESS_SIZES_H
#define BENCH_HARNESS_SIZES_H

#include <array>
#include <cstddef>
#include <cstdint>

namespace bench {

/* A linear congruential sequence of sizes from `least` to `most`. */
template <size_t count> constexpr std::array<size_t, count> mixed_sizes(size_t least, size_t most) {
	std::array<size_t, count> sizes{};
	uint32_t x = 1;
	for (size_t &size : sizes) {
		x = x * 1664525u + 1013904223u;
		size = least + (x >> 16) % (most - least + 1);
	}
	return sizes;
}

}
#endif
