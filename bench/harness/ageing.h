/* bench/harness/ageing.h: an aged heap: many blocks lived in it, and some still do. */
#ifndef BENCH_HARNESS_AGEING_H
#define BENCH_HARNESS_AGEING_H

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <new>
#include <random>

namespace bench {

struct aged_block {
	char *start;
	size_t size;
};

/* Static, because a vector of this size would change how glibc treats later large blocks. */
inline aged_block aged_blocks[600000];

/* Ages the heap behind alloc(size) and free(start, size): takes and writes 600,000 blocks of 16 to 512
 * bytes, and frees 60 % of them in random order. */
template <class Alloc, class Free> void age(Alloc alloc, Free free) {
	std::mt19937_64 random(1);
	for (aged_block &b : aged_blocks) {
		size_t octave = static_cast<size_t>(16) << random() % 5;
		b.size = octave + random() % octave;
		b.start = static_cast<char *>(alloc(b.size));
		if (b.start == nullptr)
			throw std::bad_alloc();
		*b.start = 1;
	}
	std::shuffle(std::begin(aged_blocks), std::end(aged_blocks), random);
	for (size_t i = 0; i < std::size(aged_blocks) / 10 * 6; i++)
		free(aged_blocks[i].start, aged_blocks[i].size);
}

}
#endif
