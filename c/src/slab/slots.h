/* Slots: how a chunk is divided into them, and from a pointer back to its slot.
 *
 *   | slot 0 | slot 1 | ... carved up to here ...| | head | bits | debug: records | magazines |
 *
 * A chunk is aligned to its size, so its head is found from any pointer into it; that it is one of this
 * slab's is asked of the page layer's side table first, never of the memory behind the pointer. */
#ifndef TENURE_SLOTS_H
#define TENURE_SLOTS_H

#include <tenure/slab.h>

#include "../base/checkers.h"
#include "../base/modes.h"
#include "../pages/pages.h"
#include "grid.h"

enum {
	MAGAZINE_WORDS_MIN = 8,
	MAGAZINE_WORDS_MAX = 512,
	NO_BASE = 1, /* not the base of any pointer */
};

/* Debug: what is known of a slot, out of its reach. */
typedef struct slot_record {
	const void *alloc_site;
	const void *free_site;
	struct slot_record *younger; /* the next in the quarantine */
	bool idle;                   /* live, but nobody may use it: in a pool */
} slot_record;

/* How slots lie in a chunk: slot i at i * stride + lead. */
typedef struct shape {
	size_t stride;
	size_t lead;
	size_t count;
	unsigned grain_bits; /* the largest power of two that divides the stride */
} shape;

typedef struct chunk {
	struct chunk *next;
	const shape *shape;
	char *base;
	size_t carved;       /* slots */
	size_t carved_bytes; /* the same times the stride */
	size_t free;         /* scratch: slots found in magazines */
	bool leaving;        /* scratch: about to go back */
	uint64_t bits[];
} chunk;

/* Written by whoever calls the slab. */
typedef struct slab {
	tn_slab hot;
	/* Beside it what hardened reads and writes with every call. */
	uintptr_t busy;
	uintptr_t known_base; /* hardened and debug: the chunk that was looked up last, or NO_BASE */
	size_t chunk_bytes;
	size_t head_offset;
	size_t slot_size;
	bool (*init)(void *slot, void *ctx);
	shape plain;
	uint32_t state;

	uintptr_t previous; /* a full or an empty magazine */
	bool previous_full;
	uintptr_t full; /* newest first, linked by word 0 */
	uintptr_t empty;
	size_t full_count;
	size_t magazine_slots;
	size_t carved;
	size_t quarantined; /* debug: slots */
	size_t quarantine_bytes;

	char *own; /* what the slab itself lies in: two magazines, then this struct */
	size_t own_bytes;
	size_t record_offset;
	size_t magazine_offset;
	size_t chunk_magazines;
	shape guarded; /* debug: slots with pages of their own; count 0 where that is not done */

	chunk *chunks; /* oldest first */
	chunk *last;
	chunk *carving; /* the first chunk with slots still to carve, or NULL */
	size_t chunk_count;
	size_t slot_count; /* that they have room for */
	size_t taken_bytes;
	size_t limit_bytes;
	size_t retain_chunks;
	bool expendable;
	void (*fini)(void *slot, void *ctx);
	void *ctx;
	tn_chunk_source source;

	size_t unsorted;     /* listed since the free slots were sorted */
	size_t freed;        /* by listed magazines, since the last return of chunks */
	size_t window_freed; /* the same, since the window of the high-water mark began */
	size_t window_peak;  /* most slots in use seen in this window, and in the one before */
	size_t earlier_peak;
	size_t peak;
	uint64_t refills;
	uint64_t resets;
	slot_record *oldest; /* debug: the quarantine */
	slot_record *youngest;
	/* Partly used chunks when they were counted last, and what is live in them. */
	size_t partial_count, partial_live;
	struct tn_node *node; /* where it is listed, or NULL */
	const char *kind;     /* what panics call it */
	char name[TN_NAME_BYTES + 1];
} slab;

static inline uintptr_t base_of(const slab *s, const void *p) {
	return (uintptr_t)p & ~(uintptr_t)(s->chunk_bytes - 1);
}

static inline chunk *chunk_at(const slab *s, uintptr_t base) {
	return (chunk *)(base + s->head_offset);
}

/* How slots lie in this chunk; all chunks are alike but in debug. */
static inline const shape *shape_of(const slab *s, const chunk *c) {
	return TN_MODE == TN_MODE_DEBUG ? c->shape : &s->plain;
}

static inline char *slot_at(const slab *s, const chunk *c, size_t index) {
	const shape *shape = shape_of(s, c);
	return c->base + index * shape->stride + shape->lead;
}

static inline slot_record *record_at(const slab *s, const chunk *c, size_t index) {
	return (slot_record *)(void *)(c->base + s->record_offset) + index;
}

/* Debug: what else a pointer is, for the panic that refuses it. */
static TN_COLD _Noreturn void panic_foreign(const slab *s, const void *p, const char *operation) {
	for (unsigned bits = 12; TN_MODE == TN_MODE_DEBUG && bits < 48; bits++) {
		uintptr_t base = (uintptr_t)p & ~(((uintptr_t)1 << bits) - 1);
		const slab *other = tn_pages_owner(base);
		if (other == NULL || other->chunk_bytes != (size_t)1 << bits)
			continue;
		const chunk *c = chunk_at(other, base);
		size_t index = ((uintptr_t)p - base) / c->shape->stride;
		if (index < c->carved)
			tn_panic(s->kind, s->name, "%s: %p is not a slot of this %s; it is in %s \"%s\", slot %p",
				operation, p, s->kind, other->kind, other->name, (void *)slot_at(other, c, index));
	}
	tn_panic(s->kind, s->name, "%s: %p is not a slot of this %s%s", operation, p, s->kind,
		TN_MODE == TN_MODE_DEBUG ? "; nothing of Tenure is there" : "");
}

static TN_COLD _Noreturn void panic_inside(
	const slab *s, const void *p, const chunk *c, size_t index, const char *operation) {
	const char *slot = slot_at(s, c, index);
	if ((const char *)p < slot || (const char *)p >= slot + s->slot_size)
		panic_foreign(s, p, operation);
	if (TN_MODE == TN_MODE_DEBUG)
		tn_panic(s->kind, s->name, "%s: %p is %zu bytes inside the slot at %p, allocated at %s",
			operation, p, (size_t)((const char *)p - slot), (const void *)slot,
			tn_site(record_at(s, c, index)->alloc_site).text);
	tn_panic(s->kind, s->name, "%s: %p is %zu bytes inside the slot at %p", operation, p,
		(size_t)((const char *)p - slot), (const void *)slot);
}

/* The chunk of the slot that p points to exactly; panics at anything else. */
static inline chunk *slot_chunk(const slab *s, const void *p, const char *operation) {
	uintptr_t base = base_of(s, p);
	if (tn_pages_owner(base) != s)
		panic_foreign(s, p, operation);
	chunk *c = chunk_at(s, base);
	const shape *shape = shape_of(s, c);
	size_t offset = (uintptr_t)p - base;
	size_t index = offset / shape->stride;
	if (index >= c->carved)
		panic_foreign(s, p, operation);
	if (offset - index * shape->stride != shape->lead)
		panic_inside(s, p, c, index, operation);
	return c;
}

static inline size_t index_of(const slab *s, const chunk *c, const void *slot) {
	return (size_t)((const char *)slot - c->base) / shape_of(s, c)->stride;
}

/* The number of a slot's bit: there is one for every grain, so that finding it takes no division. */
TN_INLINE size_t bit_of(const slab *s, const chunk *c, const void *slot) {
	const shape *shape = shape_of(s, c);
	return ((size_t)((const char *)slot - c->base) - shape->lead) >> shape->grain_bits;
}

TN_INLINE bool get_bit(const chunk *c, size_t number) {
	return tn_test_bit(c->bits, number);
}

TN_INLINE void flip_bit(chunk *c, size_t number) {
	tn_flip_bit(c->bits, number);
}

static inline void clear_bits(chunk *c) {
	const shape *shape = c->shape;
	memset(c->bits, 0, bit_words(shape->stride, shape->grain_bits, shape->count) * sizeof c->bits[0]);
}

/* Lays out a chunk for `count` slots: head, bits, records and magazines from the end backwards. Returns
 * whether the slots leave room for them. */
static inline bool lay_out(slab *s, size_t count, size_t slot_end) {
	size_t magazine_bytes = s->hot.magazine_mask + 1;
	size_t bits = bit_words(s->plain.stride, s->plain.grain_bits, count) * sizeof(uint64_t);
	size_t records = TN_MODE == TN_MODE_DEBUG ? count * sizeof(slot_record) : 0;
	s->chunk_magazines = (count + s->magazine_slots - 1) / s->magazine_slots;
	size_t magazines = s->chunk_magazines * magazine_bytes;
	size_t head = sizeof(chunk) + bits;
	if (magazines + records + head + 64 > s->chunk_bytes)
		return false;
	s->magazine_offset = s->chunk_bytes - magazines;
	s->record_offset = (s->magazine_offset - records) & ~(size_t)15;
	s->head_offset = (s->record_offset - head) & ~(size_t)15;
	return slot_end <= s->head_offset;
}

static inline void choose_magazines(slab *s) {
	size_t slots = s->chunk_bytes / (s->plain.stride + WORD);
	size_t words = tn_power_of_two((slots < MAGAZINE_WORDS_MAX ? slots : MAGAZINE_WORDS_MAX - 1) + 1);
	words = words < MAGAZINE_WORDS_MIN ? MAGAZINE_WORDS_MIN : words;
	s->hot.magazine_mask = words * WORD - 1;
	s->magazine_slots = words - 1;
}

/* The most slots of the plain shape that a chunk holds; 0 when it is too small for one. */
static inline size_t count_slots(slab *s) {
	size_t low = 0, high = s->chunk_bytes / s->plain.stride;
	while (low < high) {
		size_t middle = low + (high - low + 1) / 2;
		if (lay_out(s, middle, middle * s->plain.stride))
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

/* Decides chunk size and shapes for slots of slot_size bytes aligned to `align`. */
static inline bool choose_layout(slab *s, size_t align, size_t chunk_bytes) {
	size_t fence = TN_MODE == TN_MODE_DEBUG ? tn_round_up(TN_FENCE_BYTES, align) : 0;
	size_t trail = TN_MODE == TN_MODE_DEBUG ? TN_FENCE_BYTES : 0;
	s->plain = (shape){.lead = fence, .stride = tn_round_up(fence + s->slot_size + trail, align)};
	s->plain.grain_bits = grain_bits_of(s->plain.stride);
	s->chunk_bytes = chunk_bytes;
	do {
		choose_magazines(s);
		s->plain.count = count_slots(s);
	} while (s->plain.count == 0 && s->chunk_bytes < CHUNK_BYTES_MAX && (s->chunk_bytes *= 2) != 0);
	if (s->plain.count == 0)
		return false;
	lay_out(s, s->plain.count, 0);
	return true;
}

/* Debug: slots at the end of pages of their own, where memory can be made to fault and nothing bounds
 * how much there is. */
static inline void choose_guarded(slab *s, size_t align) {
	if (TN_MODE != TN_MODE_DEBUG || !tn_is_paged(&s->source) || s->limit_bytes != TN_NONE ||
		align > TN_OS_PAGE)
		return;
	size_t stride = tn_round_up(s->plain.lead + s->slot_size + TN_FENCE_BYTES, TN_OS_PAGE);
	size_t count = s->head_offset / stride;
	s->guarded = (shape){.stride = stride,
		.lead = (stride - TN_FENCE_BYTES - s->slot_size) & ~(align - 1),
		.count = count < s->plain.count ? count : s->plain.count,
		.grain_bits = grain_bits_of(stride)};
}

static inline bool is_live(const slab *s, const chunk *c, size_t index) {
	return get_bit(c, bit_of(s, c, slot_at(s, c, index))) == (TN_MODE != TN_MODE_RELEASE);
}

static inline size_t count_live(const slab *s, const chunk *c) {
	size_t live = 0;
	for (size_t i = 0; i < c->carved; i++)
		live += is_live(s, c, i);
	return live;
}

/* Debug: a slot with pages of its own, so that they can be made to fault. */
static inline bool is_guarded(const slab *s, const chunk *c) {
	return TN_MODE == TN_MODE_DEBUG && c->shape == &s->guarded;
}

static inline void check_fences(const slab *s, const chunk *c, size_t index, const char *operation) {
	if (TN_MODE != TN_MODE_DEBUG)
		return;
	const char *slot = slot_at(s, c, index);
	const void *site = record_at(s, c, index)->alloc_site;
	size_t after = tn_first_change(slot + s->slot_size, TN_FENCE_BYTES, TN_FILL_FENCE);
	if (after < TN_FENCE_BYTES)
		tn_panic(s->kind, s->name,
			"%s: %p was written past its end, at byte %zu of %zu, allocated at %s", operation,
			(const void *)slot, s->slot_size + after, s->slot_size, tn_site(site).text);
	size_t before = tn_first_change(slot - TN_FENCE_BYTES, TN_FENCE_BYTES, TN_FILL_FENCE);
	if (before < TN_FENCE_BYTES)
		tn_panic(s->kind, s->name,
			"%s: %p was written before its start, at byte -%zu of %zu, allocated at %s", operation,
			(const void *)slot, TN_FENCE_BYTES - before, s->slot_size, tn_site(site).text);
}

/* Debug: the slot as its next owner gets it. */
static inline void dress(const slab *s, const chunk *c, size_t index, const void *site) {
	char *slot = slot_at(s, c, index);
	slot_record *r = record_at(s, c, index);
	tn_permit(slot, s->slot_size);
	size_t changed = s->slot_size;
	if (r->free_site != NULL && s->init == NULL)
		changed = tn_first_change(slot, s->slot_size, TN_FILL_DEAD);
	if (changed < s->slot_size)
		tn_panic(s->kind, s->name,
			"alloc: %p was written after it was freed, at byte %zu of %zu, freed at %s", (void *)slot,
			changed, s->slot_size, tn_site(r->free_site).text);
	*r = (slot_record){.alloc_site = site};
	memset(slot - TN_FENCE_BYTES, TN_FILL_FENCE, TN_FENCE_BYTES);
	memset(slot + s->slot_size, TN_FILL_FENCE, TN_FENCE_BYTES);
	if (s->init != NULL)
		return;
	memset(slot, TN_FILL_FRESH, s->slot_size);
	tn_hand_out(slot, s->slot_size);
}

static inline bool is_lost(const slab *s, const chunk *c, size_t index) {
	return is_live(s, c, index) && !record_at(s, c, index)->idle;
}

/* Debug: one line for every site that allocated slots which are live now. */
static inline void report_live(slab *s) {
	if (TN_MODE != TN_MODE_DEBUG || s->expendable)
		return;
	for (chunk *c = s->chunks; c != NULL; c = c->next)
		for (size_t i = 0; i < c->carved; i++) {
			if (!is_lost(s, c, i))
				continue;
			const void *site = record_at(s, c, i)->alloc_site;
			size_t count = 0;
			for (chunk *d = c; d != NULL; d = d->next)
				for (size_t k = 0; k < d->carved; k++)
					if (is_lost(s, d, k) && record_at(s, d, k)->alloc_site == site) {
						flip_bit(d, bit_of(s, d, slot_at(s, d, k)));
						count++;
					}
			tn_report(s->kind, s->name, "destroy: %zu live slots (%zu bytes) allocated at %s", count,
				count * s->slot_size, tn_site(site).text);
		}
}

static inline void slab_look(const slab *s, const char *operation) {
	tn_look(&s->busy, s->kind, s->name, operation);
}

#endif
