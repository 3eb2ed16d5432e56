/* Spans: chunks that are cut into slots of one size. A span's record is in memory of the heap's own,
 * apart from the chunk. The page layer's table leads to the record from every page of the chunk (of a
 * large block: from the first page).
 *
 * One bit a slot tells which slots are free. These bits are the truth, all other figures follow from
 * them, and nothing is written into free slots. */
#ifndef TENURE_HEAP_SPANS_H
#define TENURE_HEAP_SPANS_H

#include <tenure/heap.h>

#include "../base/modes.h"
#include "../pages/pages.h"

enum {
	SPAN_WORDS = 16,
	SPAN_SLOTS_MAX = SPAN_WORDS * TN_WORD_BITS,
	SPAN_RECORD_BYTES = 192,
	SPAN_ALIGN = 64,
	/* An entry of the table is the record's address and this tag. The low bits alone tell it from the
	 * entries of other allocators. */
	SPAN_TAG = 2,
};

enum span_state {
	SPAN_GONE,    /* the record is not in use */
	SPAN_SPARE,   /* without blocks, for any class; linked */
	SPAN_CURRENT, /* its class allocates from it */
	SPAN_FULL,    /* or nearly: with too few free slots to be linked */
	SPAN_PARTIAL, /* linked by its class */
	SPAN_LARGE,   /* one block; linked */
};

typedef struct span {
	tn_heap *heap;
	char *base;
	/* 2^32 / slot size, rounded up. Of its product with an offset, the upper half is the slot's index,
	 * and the lower half is below the reciprocal exactly at a slot's start (Lemire, Kaser and Kurz
	 * 2019). Large: 1, so that only the block's start is one. */
	uint32_t reciprocal;
	/* Frees until the heap looks at the span again. Full: until enough slots are free. Partial: at most
	 * until all are free. Large: 1. */
	uint32_t countdown;
	uint16_t count;      /* slots */
	uint16_t known_live; /* live slots that the heap's figures include */
	uint8_t class;
	uint8_t state;
	union {
		uint64_t free[SPAN_WORDS]; /* a bit for each slot */
		struct {
			uint64_t large_free; /* large: the word of the only slot */
			size_t asked;        /* large: the size asked for */
		};
	};
	struct span *next, **link; /* in a list of the heap */
	size_t chunk_bytes;
	size_t room; /* bytes of a slot */
} span;

_Static_assert(sizeof(span) <= SPAN_RECORD_BYTES, "a span fits its record");

static inline unsigned span_count_bits(uint64_t word) {
	word -= word >> 1 & 0x5555555555555555;
	word = (word & 0x3333333333333333) + (word >> 2 & 0x3333333333333333);
	word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0f;
	return (unsigned)(word * 0x0101010101010101 >> 56);
}

static inline size_t span_count_words(const span *s) {
	return ((size_t)s->count + TN_WORD_BITS - 1) / TN_WORD_BITS;
}

static inline size_t span_count_free(const span *s) {
	size_t free = 0;
	for (size_t i = 0; i < span_count_words(s); i++)
		free += span_count_bits(s->free[i]);
	return free;
}

static inline size_t span_count_live(const span *s) {
	return s->count - span_count_free(s);
}

/* Free slots from which on a span that was full is worth another pass. */
static inline uint32_t span_count_wanted(const span *s) {
	return ((uint32_t)s->count + 7) / 8;
}

static inline char *span_slot_at(const span *s, size_t index) {
	return s->base + index * s->room;
}

static inline bool span_is_live(const span *s, size_t index) {
	return !tn_test_bit(s->free, index);
}

/* Makes all slots free. */
static inline void span_give_all(span *s) {
	size_t whole = s->count / TN_WORD_BITS;
	memset(s->free, 0xff, whole * sizeof s->free[0]);
	if (s->count % TN_WORD_BITS != 0)
		s->free[whole] = ((uint64_t)1 << s->count % TN_WORD_BITS) - 1;
}

/* Whether a block is a mapping of its own. Wiping it would take memory for all of it, and no block has
 * that memory next. */
static inline bool span_is_alone(const tn_chunk_source *source, const span *s) {
	return s->state == SPAN_LARGE && tn_chunk_is_alone(source, s->chunk_bytes);
}

/* Hardened: the contents of a block must not reach the next user of its memory. */
static inline void span_wipe_slot(const tn_chunk_source *source, const span *s, void *p) {
	if (s->room <= TN_WIPE_SLOT_BYTES)
		tn_wipe_slot(p, s->room);
	else if (!span_is_alone(source, s))
		tn_wipe(p, s->room);
}

/* Wipes the live blocks. */
static inline void span_wipe(const tn_chunk_source *source, const span *s) {
	if (TN_MODE != TN_MODE_HARDENED || span_is_alone(source, s))
		return;
	for (size_t i = 0; i < s->count; i++)
		if (span_is_live(s, i))
			tn_wipe(span_slot_at(s, i), s->room);
}

/* Pages of the chunk from which the table leads to the span. */
static inline size_t span_count_pages(const span *s) {
	return s->state == SPAN_LARGE ? 1 : s->chunk_bytes >> TN_TABLE_PAGE_BITS;
}

/* Writes the table for each of the span's pages; `owner` is the span, or NULL. */
static inline bool span_set_owner(const span *s, const span *owner) {
	char *value = owner == NULL ? NULL : (char *)(uintptr_t)owner + SPAN_TAG;
	if (!tn_pages_set_owner(s->base, value))
		return false;
	/* All entries are in one leaf: a chunk of several pages is aligned to its size. */
	tn_table_entry *e = tn_table_at((uintptr_t)s->base);
	for (size_t i = 1; i < span_count_pages(s); i++)
		tn_set(&e[i], (uintptr_t)value, TN_RELAXED);
	return true;
}

/* The address of the record that the table has for the page of p, of any heap; no multiple of
 * SPAN_ALIGN where it has none. Reads only the table. */
TN_INLINE uintptr_t span_record_at(const void *p) {
	const tn_table_entry *e = tn_table_at((uintptr_t)p);
	return (e == NULL ? 0 : tn_get(e, TN_RELAXED)) - SPAN_TAG;
}

/* The span of this heap that p points into, or NULL. */
TN_INLINE span *span_of(const tn_heap *h, const void *p) {
	uintptr_t at = span_record_at(p);
	return TN_LIKELY(at % SPAN_ALIGN == 0 && ((span *)at)->heap == h) ? (span *)at : NULL;
}

/* Whether a slot begins at p, which points into the chunk; `*number` is that slot's. */
TN_INLINE bool span_find_slot(const span *s, const void *p, size_t *number) {
	uint64_t product = (uint64_t)((uintptr_t)p - (uintptr_t)s->base) * s->reciprocal;
	*number = (size_t)(product >> 32);
	return (uint32_t)product < s->reciprocal && *number < s->count;
}

/* Makes a live slot free; false: it was free already. */
TN_INLINE bool span_give_slot(span *s, size_t number) {
	uint64_t *word = &s->free[number / TN_WORD_BITS];
	uint64_t bits = *word;
	if (TN_UNLIKELY((bits >> number % TN_WORD_BITS & 1) != 0))
		return false;
	*word = bits | (uint64_t)1 << number % TN_WORD_BITS;
	return true;
}

#endif
