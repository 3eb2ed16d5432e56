/* A grid: how a chunk is cut into slots of one size, and the way from a pointer back to its slot.
 *
 *   | slot 0 | slot 1 | ...              | head | bits | what else the owner keeps: the tail |
 *
 * A chunk is aligned to its size, so its base is found from any pointer into it. Slot i begins at
 * i * stride + lead. There is a bit for every grain, the largest power of two that divides the stride:
 * finding a slot's bit takes a shift where its index would take a division. Slabs and shared slabs are
 * grids; the spans of heaps have fewer slots and their bits elsewhere. */
#ifndef TENURE_GRID_H
#define TENURE_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tenure/base.h>
#include <tenure/detail/hooks.h>

#include "../base/bits.h"
#include "../base/os.h"
#include "../pages/pages.h"

#define GRID_CHUNK_BYTES ((size_t)64 << 10)
#define GRID_LARGE_CHUNK_BYTES ((size_t)256 << 10) /* the default of large slots */
#define GRID_CHUNK_BYTES_MAX ((size_t)PTRDIFF_MAX / 4 + 1)

typedef struct grid {
	size_t chunk_bytes;
	size_t head_offset;
	size_t slot_size;
	size_t stride;
	size_t lead; /* debug: bytes before the slot, for its fence */
	size_t count;
	unsigned grain_bits;
	size_t asked_size; /* of a slot, before it was rounded up to the alignment */
} grid;

/* Bytes of a chunk that are not for slots. */
typedef struct grid_tail {
	size_t head;
	size_t per_word; /* of bits: the word itself, and what the owner keeps for its grains */
	size_t per_slot;
	size_t align; /* of the head, a power of two */
} grid_tail;

/* The bytes that rounding adds to a slot. */
static inline size_t grid_waste(const grid *g) {
	return g->slot_size - g->asked_size;
}

/* Whether options may name these sizes and this source. */
static inline bool grid_valid(size_t size, size_t align, size_t chunk_bytes, const tn_source *source) {
	bool aligned = tn_is_power_of_two(align) && align <= TN_ALIGN_MAX;
	bool sized =
		size > 0 && size <= GRID_CHUNK_BYTES_MAX / 2 && chunk_bytes <= GRID_CHUNK_BYTES_MAX / 2;
	return aligned && sized && tn_chunk_source_valid(source);
}

/* The size asked for, or the default for slots of `size` bytes; that is more where the head would leave
 * room for few slots, and less where a limit (0: none) would leave much of a chunk unused. */
static inline size_t grid_chunk_bytes(size_t asked, size_t size, size_t limit) {
	enum { ENOUGH_SLOTS = 32 };
	if (asked != 0)
		return tn_power_of_two(tn_round_up(asked, TN_OS_PAGE));
	size_t bytes = GRID_CHUNK_BYTES;
	while (bytes < GRID_LARGE_CHUNK_BYTES && bytes / ENOUGH_SLOTS < size)
		bytes *= 2;
	while (limit != 0 && bytes > TN_OS_PAGE && bytes > limit / 8)
		bytes /= 2;
	return bytes;
}

/* The distance of slots that need `size` bytes each. Slots at multiples of 512 bytes would begin in few
 * of a cache's sets, and more of them than these hold would push each other out (colouring in Bonwick
 * 1994, "The slab allocator"). So they are a little further apart, by a cache line if that is a small
 * price, where the alignment allows it. */
static inline size_t grid_choose_stride(size_t size, size_t align) {
	enum { FEW_SETS_BYTES = 512, LEAST_SHIFT = 16, LINE = 64, PRICE = 32 };
	size_t most = size / PRICE, shift = tn_max(align, most < LINE ? LEAST_SHIFT : LINE);
	return size % FEW_SETS_BYTES == 0 && shift <= most ? size + shift : size;
}

/* Words of bits for `count` slots. */
static inline size_t grid_bit_words(const grid *g, size_t count) {
	return (count * g->stride >> g->grain_bits) / TN_WORD_BITS + 1;
}

/* Whether `count` slots leave room for the tail. */
static inline bool grid_set_count(grid *g, const grid_tail *t, size_t count) {
	size_t bytes = t->head + grid_bit_words(g, count) * t->per_word + count * t->per_slot;
	if (bytes + t->align > g->chunk_bytes)
		return false;
	g->count = count;
	g->head_offset = (g->chunk_bytes - bytes) & ~(t->align - 1);
	return count * g->stride <= g->head_offset;
}

/* Lays out chunks of chunk_bytes with as many slots as fit; whether one does. */
static inline bool grid_lay_out(grid *g, const grid_tail *t) {
	g->grain_bits = (unsigned)__builtin_ctzll(g->stride);
	size_t low = 0, high = g->chunk_bytes / g->stride;
	while (low < high) {
		size_t middle = high - (high - low) / 2;
		if (grid_set_count(g, t, middle))
			low = middle;
		else
			high = middle - 1;
	}
	return low > 0 && grid_set_count(g, t, low);
}

/* Outside debug no slot has a fence. */
static inline size_t grid_lead(const grid *g) {
	return TN_MODE == TN_MODE_DEBUG ? g->lead : 0;
}

/* The base of the chunk that p points into, if it points into a chunk of this grid. */
static inline uintptr_t grid_base_of(const grid *g, const void *p) {
	return (uintptr_t)p & ~(uintptr_t)(g->chunk_bytes - 1);
}

static inline void *grid_head_at(const grid *g, uintptr_t base) {
	return (void *)(base + g->head_offset);
}

static inline char *grid_slot_at(const grid *g, const char *base, size_t index) {
	return (char *)(uintptr_t)base + index * g->stride + grid_lead(g);
}

static inline size_t grid_index_of(const grid *g, const char *base, const void *slot) {
	return (size_t)((const char *)slot - base) / g->stride;
}

TN_INLINE size_t grid_bit_of(const grid *g, const char *base, const void *slot) {
	return ((size_t)((const char *)slot - base) - grid_lead(g)) >> g->grain_bits;
}

/* Whether there is a grain at `offset` from slot 0, before `end`: true for the start of every slot. For
 * other grains, the bit or the state that belongs to them says that no slot is there. */
TN_INLINE bool grid_has_grain(const grid *g, size_t offset, size_t end) {
	return offset < end && (offset & (((size_t)1 << g->grain_bits) - 1)) == 0;
}

/* Whether one of the first `count` slots of its chunk begins at p. */
static inline bool grid_has_slot(const grid *g, const char *base, size_t count, const void *p) {
	size_t offset = (size_t)((const char *)p - base);
	return offset / g->stride < count && offset % g->stride == grid_lead(g);
}

/* The slot that p points into, of the first `count` of its chunk, or NULL. */
static inline char *grid_find_slot(const grid *g, const char *base, size_t count, const void *p) {
	size_t index = grid_index_of(g, base, p);
	char *slot = grid_slot_at(g, base, index);
	return index < count && (uintptr_t)p - (uintptr_t)slot < g->slot_size ? slot : NULL;
}

#endif
