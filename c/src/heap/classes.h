/* The size classes of a heap: steps of 16 bytes up to 128, then four to a doubling. */
#ifndef TENURE_HEAP_CLASSES_H
#define TENURE_HEAP_CLASSES_H

#include <stddef.h>

enum {
	HEAP_GRAIN = 16,
	HEAP_EVEN_BYTES = 128, /* up to here in steps of a grain */
	HEAP_EVEN_CLASSES = HEAP_EVEN_BYTES / HEAP_GRAIN,
	HEAP_CLASS_COUNT = 32,
	HEAP_SMALL_BYTES = 8192, /* of the last class; larger blocks have chunks of their own */
};

/* The class of a size of up to HEAP_SMALL_BYTES. */
static inline unsigned heap_class_of(size_t size) {
	if (size <= HEAP_EVEN_BYTES)
		return size == 0 ? 0 : (unsigned)((size - 1) / HEAP_GRAIN);
	unsigned quarter_bits = (unsigned)(61 - __builtin_clzll(size - 1));
	return HEAP_EVEN_CLASSES + (quarter_bits - 5) * 4 + (unsigned)((size - 1) >> quarter_bits & 3);
}

static inline size_t heap_class_bytes(unsigned class) {
	if (class < HEAP_EVEN_CLASSES)
		return (class + 1) * (size_t)HEAP_GRAIN;
	unsigned above = class - HEAP_EVEN_CLASSES;
	return (size_t)(above % 4 + 5) << (above / 4 + 5);
}

#endif
