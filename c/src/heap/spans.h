/* Spans: what a heap knows of a chunk. A span's record lies in memory of the heap's own, apart from the
 * chunk; the page layer's side table leads to it from every page of the chunk (of a large block: from
 * the first).
 *
 * One bit a slot says which are free. That is the truth, whatever else is written down follows from it,
 * and none of it is in the slots. */
#ifndef TENURE_HEAP_SPANS_H
#define TENURE_HEAP_SPANS_H

#include <errno.h>

#include "../listing/listing.h"
#include "../pages/pages.h"
#include "../slab/grid.h"
#include "classes.h"

enum {
	SPAN_WORDS = 16,
	SPAN_SLOTS_MAX = SPAN_WORDS * TN_WORD_BITS,
	RECORD_BYTES = 192,
};

enum span_state {
	SPAN_GONE,    /* the record is not in use */
	SPAN_SPARE,   /* without blocks, for whichever class comes first */
	SPAN_CURRENT, /* its class allocates from it */
	SPAN_FULL,    /* or nearly: with too few free slots to be listed */
	SPAN_PARTIAL, /* listed by its class */
	SPAN_LARGE,   /* one block */
};

typedef struct span {
	tn_heap *heap;
	char *base;
	/* 2^32 / slot size, rounded up: the upper half of its product with an offset is the slot's index,
	 * and the lower half is below the reciprocal exactly at a slot's start (Lemire, Kaser and Kurz
	 * 2019). Large: 1, so that only the block's start is one. */
	uint32_t reciprocal;
	/* Frees until somebody has to look. Full: until enough slots are free; partial: at most until all
	 * are; large: 1. */
	uint32_t countdown;
	uint16_t count;      /* slots */
	uint16_t known_live; /* of them, as the heap's live_bytes has it */
	uint8_t class;
	uint8_t state;
	union {
		uint64_t free[SPAN_WORDS]; /* a bit for each slot; large: the first one */
		struct {
			uint64_t large_free;
			size_t asked; /* large: the size asked for */
		};
	};
	struct span *next; /* in a list */
	struct span *previous;
	size_t chunk_bytes;
	size_t room; /* bytes of a slot */
} span;

_Static_assert(sizeof(span) <= RECORD_BYTES, "a record");

/* Memory with records, oldest first. */
typedef struct record_chunk {
	struct record_chunk *next;
	size_t bytes;
	char *begin;
	char *carved; /* records from here on were never used */
	char *end;
} record_chunk;

enum {
	FAST_BYTES = 1024, /* the inlined class table ends here */
	SPARE_KINDS = 5,   /* 4 to 64 KiB */
};
/* Spans without blocks that stay: twice what is in use, and this. */
#define SPARE_BYTES_MIN ((size_t)1 << 20)
#define NEVER UINT32_MAX
#define SAMPLED_MAX ((uint64_t)64 << 20)
#define SPAN_BYTES_MAX ((size_t)64 << 10)
#define RECORD_CHUNK_BYTES ((size_t)16 << 10)

/* A class as every call reads it. */
typedef struct bin {
	uint64_t *word; /* of the current span; without one, a word that is 0 */
	char *base;     /* the slot of that word's first bit */
	size_t room;
	span *current;
} bin;

/* The rest of it. */
typedef struct shelf {
	span *partial;
	size_t spans;
} shelf;

struct tn_heap {
	size_t fast_bytes; /* smaller sizes are inlined: FAST_BYTES + 1, or 0 */
	uintptr_t busy;
	uint32_t state;
	bool zero;
	bool expendable; /* of no meaning without a table of leaks */
	bin bins[HEAP_CLASS_COUNT];
	shelf shelves[HEAP_CLASS_COUNT];
	span *spare[SPARE_KINDS];
	span *large;
	span *gone; /* records to use again */
	size_t spare_bytes;
	size_t used_bytes; /* chunks of the other spans but large ones */
	/* As of the last look at each span. */
	size_t live_bytes, live_count;
	size_t large_bytes, large_asked;
	size_t chunk_count;
	size_t taken_bytes;
	size_t limit_bytes;
	size_t peak;
	/* What the words were taken for: bytes asked for, and what that came to. */
	uint64_t sampled_asked, sampled_room;
	uint64_t refills;
	uint64_t resets;
	tn_chunk_source source;
	record_chunk own;
	record_chunk *youngest;
	tn_node *node;
	char name[TN_NAME_BYTES + 1];
};

static inline unsigned bits_set(uint64_t word) {
	word -= word >> 1 & 0x5555555555555555;
	word = (word & 0x3333333333333333) + (word >> 2 & 0x3333333333333333);
	word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0f;
	return (unsigned)(word * 0x0101010101010101 >> 56);
}

static inline size_t span_words(const span *s) {
	return ((size_t)s->count + TN_WORD_BITS - 1) / TN_WORD_BITS;
}

static inline size_t free_in_span(const span *s) {
	size_t free = 0;
	for (size_t i = 0; i < span_words(s); i++)
		free += bits_set(s->free[i]);
	return free;
}

static inline size_t live_in_span(const span *s) {
	return s->count - free_in_span(s);
}

/* How many slots have to be free until a full span is worth a look again. */
static inline uint32_t worth_listing(const span *s) {
	return ((uint32_t)s->count + 7) / 8;
}

static inline char *span_slot(const span *s, size_t index) {
	return s->base + index * s->room;
}

static inline bool slot_is_live(const span *s, size_t index) {
	return !tn_test_bit(s->free, index);
}

/* All slots free. */
static inline void clear_span(span *s) {
	size_t whole = s->count / TN_WORD_BITS;
	memset(s->free, 0xff, whole * sizeof s->free[0]);
	if (s->count % TN_WORD_BITS != 0)
		s->free[whole] = ((uint64_t)1 << s->count % TN_WORD_BITS) - 1;
}

/* What is in the table for a span: its address and this, so that the low bits alone tell it from what
 * else may be there; records are aligned to 64 bytes. */
enum { SPAN_TAG = 2 };

/* Writes a span into the table for each of its pages, or takes it out. */
static inline bool enter_span(const span *s, bool in) {
	char *value = in ? (char *)(uintptr_t)s + SPAN_TAG : NULL;
	if (!tn_pages_set_owner(s->base, value))
		return false;
	size_t pages = s->state == SPAN_LARGE ? 1 : s->chunk_bytes >> TN_TABLE_PAGE_BITS;
	/* Aligned to its size, a chunk of several pages lies under one leaf. */
	tn_table_entry *e = tn_table_at((uintptr_t)s->base);
	for (size_t i = 1; i < pages; i++)
		tn_set(&e[i], (uintptr_t)value, TN_RELAXED);
	return true;
}

/* Where the record of the span is that the page of p is entered for, of whatever heap; not a multiple
 * of 64 when it is for none. Only the table is read. */
TN_INLINE uintptr_t span_entered(const void *p) {
	const tn_table_entry *e = tn_table_at((uintptr_t)p);
	return (e == NULL ? 0 : tn_get(e, TN_RELAXED)) - SPAN_TAG;
}

/* The span of this heap that p lies in, or NULL. */
TN_INLINE span *span_of(const tn_heap *h, const void *p) {
	uintptr_t at = span_entered(p);
	return TN_LIKELY(at % 64 == 0 && ((span *)at)->heap == h) ? (span *)at : NULL;
}

/* ---- chunks and records ---- */

static inline char *heap_take_chunk(tn_heap *h, size_t bytes, size_t align) {
	if (h->limit_bytes - h->taken_bytes < bytes)
		return errno = ENOMEM, NULL;
	char *base = tn_chunk_acquire(&h->source, bytes, align);
	if (base != NULL)
		h->taken_bytes += bytes;
	return base;
}

static inline void heap_give_chunk(tn_heap *h, void *base, size_t bytes) {
	h->taken_bytes -= bytes;
	tn_chunk_release(&h->source, base, bytes, TN_OS_PAGE);
}

/* Records lie where the table says that the owner is the heap itself (tn_heap_owns). */
static inline void set_up_records(record_chunk *r, char *begin, char *end) {
	*r = (record_chunk){.begin = begin, .carved = begin, .end = end};
	r->end = begin + (size_t)(end - begin) / RECORD_BYTES * RECORD_BYTES;
}

static inline bool add_record_chunk(tn_heap *h) {
	size_t bytes = h->youngest == &h->own ? TN_OS_PAGE : RECORD_CHUNK_BYTES;
	char *base = heap_take_chunk(h, bytes, TN_OS_PAGE);
	if (base == NULL)
		return false;
	for (size_t i = 0; i < bytes; i += TN_OS_PAGE)
		if (!tn_pages_set_owner(base + i, h)) {
			while (i > 0)
				tn_pages_set_owner(base + (i -= TN_OS_PAGE), NULL);
			return heap_give_chunk(h, base, bytes), errno = ENOMEM, false;
		}
	record_chunk *r = (record_chunk *)(void *)base;
	set_up_records(r, base + tn_round_up(sizeof *r, 64), base + bytes);
	r->bytes = bytes;
	h->youngest = h->youngest->next = r;
	return true;
}

static inline void drop_record_chunk(tn_heap *h, record_chunk *r) {
	char *base = (char *)r;
	size_t bytes = r->bytes;
	for (size_t i = 0; i < bytes; i += TN_OS_PAGE)
		tn_pages_set_owner(base + i, NULL);
	heap_give_chunk(h, base, bytes);
}

static inline span *take_record(tn_heap *h) {
	span *s = h->gone;
	if (s != NULL) {
		h->gone = s->next;
		return s;
	}
	if (h->youngest->carved == h->youngest->end && !add_record_chunk(h))
		return NULL;
	s = (span *)(void *)h->youngest->carved;
	h->youngest->carved += RECORD_BYTES;
	s->heap = h;
	s->state = SPAN_GONE;
	return s;
}

static inline void give_record(tn_heap *h, span *s) {
	s->state = SPAN_GONE;
	s->next = h->gone;
	h->gone = s;
}

/* The youngest record chunk goes back, which was added for one record. */
static inline void drop_youngest(tn_heap *h, record_chunk *before) {
	drop_record_chunk(h, h->youngest);
	before->next = NULL;
	h->youngest = before;
}

/* A span in a chunk of its own; of a list or a class it is not yet. */
static inline span *new_span(tn_heap *h, size_t bytes, size_t align, enum span_state state) {
	record_chunk *before = h->youngest;
	span *s = take_record(h);
	if (s == NULL)
		return NULL;
	s->base = heap_take_chunk(h, bytes, align);
	s->chunk_bytes = bytes;
	s->state = (uint8_t)state;
	if (s->base != NULL && enter_span(s, true))
		return h->chunk_count++, s;
	if (s->base != NULL)
		heap_give_chunk(h, s->base, bytes);
	if (h->youngest == before)
		give_record(h, s);
	else
		drop_youngest(h, before);
	return errno = ENOMEM, NULL;
}

static inline void end_span(tn_heap *h, span *s) {
	enter_span(s, false);
	h->chunk_count--;
	heap_give_chunk(h, s->base, s->chunk_bytes);
	give_record(h, s);
}

/* Visits every span, those with the oldest records first; what is visited may go meanwhile. */
typedef struct span_walk {
	const record_chunk *chunk;
	char *next;
} span_walk;

static inline span_walk walk_spans(const tn_heap *h) {
	return (span_walk){&h->own, h->own.begin};
}

static inline span *next_of(span_walk *w) {
	for (;;) {
		while (w->next == w->chunk->carved) {
			w->chunk = w->chunk->next;
			if (w->chunk == NULL)
				return NULL;
			w->next = w->chunk->begin;
		}
		span *s = (span *)(void *)w->next;
		w->next += RECORD_BYTES;
		if (s->state != SPAN_GONE)
			return s;
	}
}

/* ---- lists ---- */

static inline void push_span(span **list, span *s) {
	s->previous = NULL;
	s->next = *list;
	if (*list != NULL)
		(*list)->previous = s;
	*list = s;
}

static inline void unlink_span(span **list, span *s) {
	if (s->previous == NULL)
		*list = s->next;
	else
		s->previous->next = s->next;
	if (s->next != NULL)
		s->next->previous = s->previous;
}

static inline unsigned spare_kind(size_t chunk_bytes) {
	return (unsigned)__builtin_ctzll(chunk_bytes / TN_OS_PAGE);
}

#endif
