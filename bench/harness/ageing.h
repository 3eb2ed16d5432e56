/* bench/harness/ageing.h: what came before: a heap in which many blocks lived and some still do. */
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

/* Not from any heap: a vector of this size would change how glibc treats large blocks from then on. */
inline aged_block aged_blocks[600000];

/* 600,000 blocks of 16 to 512 bytes, of which 60 % are freed in random order; the others stay.
 * alloc(size) and free(start, size) are the heap that is aged; every block is written. */
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
