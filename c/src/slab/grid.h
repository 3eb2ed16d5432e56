/* Arithmetic of chunks that are cut into slots of one size, and of their bits: one bit for every grain
 * of a chunk, so that finding a slot's takes no division. */
#ifndef TENURE_LAYOUT_H
#define TENURE_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tenure/base.h>

#include "../base/bits.h"
#include "../base/os.h"
#include "../pages/pages.h"

#define WORD sizeof(void *)
#define CHUNK_BYTES_MAX ((size_t)PTRDIFF_MAX / 4 + 1)
#define SLAB_CHUNK_BYTES ((size_t)64 << 10)

/* The grain is the largest power of two that divides the stride. */
static inline unsigned grain_bits_of(size_t stride) {
	unsigned bits = 0;
	while ((stride >> bits & 1) == 0)
		bits++;
	return bits;
}

/* Words of bits for `count` slots. */
static inline size_t bit_words(size_t stride, unsigned grain_bits, size_t count) {
	return (count * stride >> grain_bits) / TN_WORD_BITS + 1;
}

/* As asked for, or the default, less where the limit would leave much of a chunk unused. 0: none. */
static inline size_t slab_chunk_bytes(size_t asked, size_t limit) {
	if (asked != 0)
		return tn_power_of_two((asked + TN_OS_PAGE - 1) & ~(TN_OS_PAGE - 1));
	size_t bytes = SLAB_CHUNK_BYTES;
	while (limit != 0 && bytes > TN_OS_PAGE && bytes > limit / 8)
		bytes /= 2;
	return bytes;
}

/* What is refused of a size, an alignment, a chunk size and a source, whatever the kind of slab. */
static inline bool slots_valid(size_t size, size_t align, size_t chunk_bytes, const tn_source *source) {
	bool aligned = (align & (align - 1)) == 0 && align <= TN_ALIGN_MAX;
	bool sized = size > 0 && size <= CHUNK_BYTES_MAX / 2 && chunk_bytes <= CHUNK_BYTES_MAX / 2;
	return aligned && sized && tn_source_valid(source);
}

#endif
