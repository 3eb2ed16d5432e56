/* The slab's records, and what is done with one slot: found by its pointer, checked, fenced.
 *
 *   | slot 0 | slot 1 | ... carved up to here ...| | head | bits | debug: records | magazines |
 *
 * A chunk's head is found from any pointer into the chunk (grid.h). The page layer's side table says
 * first that the chunk is one of this slab's, so memory behind a foreign pointer is never read. */
#ifndef TENURE_SLOTS_H
#define TENURE_SLOTS_H

#include <tenure/slab.h>

#include "../base/checkers.h"
#include "../base/modes.h"
#include "grid.h"

enum { NO_BASE = 1 }; /* not the base of any chunk */

/* Debug: a slot's history, out of reach of writes past its end. */
typedef struct slot_record {
	const void *alloc_site;
	const void *free_site;
	struct slot_record *younger; /* the next in the quarantine */
	bool idle;                   /* live, but in a pool: its bytes must not be touched */
} slot_record;

typedef struct chunk {
	struct chunk *next;
	const grid *grid;
	char *base;
	size_t carved;       /* slots */
	size_t carved_bytes; /* carved times the stride */
	size_t free;         /* scratch: slots found in magazines */
	bool leaving;        /* scratch: about to go back */
	uint64_t bits[];
} chunk;

/* Written by the thread that calls the slab. */
typedef struct slab {
	tn_slab hot;
	/* Touched by every call in hardened, so kept next to `hot`. */
	uintptr_t busy;
	uintptr_t known_base; /* hardened and debug: the chunk that was looked up last, or NO_BASE */
	grid grid;
	uint32_t state;
	bool (*init)(void *slot, void *ctx);

	uintptr_t previous; /* a full or an empty magazine */
	bool previous_full;
	uintptr_t full; /* newest first, linked by word 0 */
	uintptr_t empty;
	size_t full_count;
	size_t magazine_slots;
	size_t carved;
	size_t quarantined; /* debug: slots */
	size_t quarantine_bytes;

	char *own; /* memory of the slab itself: two magazines, then this struct */
	size_t own_bytes;
	size_t record_offset;
	size_t magazine_offset;
	size_t chunk_magazines;
	grid guarded; /* debug: slots with pages of their own; count 0 where there are none */

	chunk *chunks; /* oldest first */
	chunk *last;
	chunk *carving; /* the first chunk with slots still to carve, or NULL */
	size_t chunk_count;
	size_t slot_count; /* room in all chunks */
	size_t taken_bytes;
	size_t limit_bytes;
	size_t retain_chunks;
	bool expendable;
	void (*fini)(void *slot, void *ctx);
	void *ctx;
	tn_chunk_source source;

	size_t unsorted;     /* pushed to `full` since the free slots were sorted */
	size_t freed;        /* by pushed magazines, since chunks were last given back */
	size_t window_freed; /* the same, since the window of the high-water mark began */
	size_t window_peak;  /* most slots in use seen in this window, and in the one before */
	size_t earlier_peak;
	size_t peak;
	uint64_t refills;
	uint64_t resets;
	slot_record *oldest; /* debug: the quarantine */
	slot_record *youngest;
	/* Partly used chunks when they were counted last, and their live slots. */
	size_t partial_count, partial_live;
	struct tn_node *node; /* where it is listed, or NULL */
	const char *kind;     /* its name in panics */
	char name[TN_NAME_BYTES + 1];
} slab;

/* ---- from a pointer to its slot ---- */

static inline chunk *slab_chunk_at(const slab *s, uintptr_t base) {
	return grid_head_at(&s->grid, base);
}

/* All chunks have the same grid, except in debug. */
static inline const grid *slab_grid_of(const slab *s, const chunk *c) {
	return TN_MODE == TN_MODE_DEBUG ? c->grid : &s->grid;
}

static inline char *slab_slot_at(const chunk *c, size_t index) {
	return grid_slot_at(c->grid, c->base, index);
}

static inline size_t slab_bit_of(const chunk *c, const void *slot) {
	return grid_bit_of(c->grid, c->base, slot);
}

/* Debug: the records of a chunk's slots. */
static inline slot_record *slab_records_of(const slab *s, const chunk *c) {
	return (slot_record *)(void *)(c->base + s->record_offset);
}

static inline slot_record *slab_record_of(const slab *s, const chunk *c, const void *slot) {
	return slab_records_of(s, c) + grid_index_of(c->grid, c->base, slot);
}

/* A pointer that is in no slot of this slab; debug looks for the slab that it belongs to. */
static TN_COLD _Noreturn void slab_refuse_foreign(const slab *s, const void *p, const char *operation) {
	for (unsigned bits = 12; TN_MODE == TN_MODE_DEBUG && bits < 48; bits++) {
		uintptr_t base = (uintptr_t)p & ~(((uintptr_t)1 << bits) - 1);
		const slab *other = tn_pages_owner(base);
		if (other == NULL || other->grid.chunk_bytes != (size_t)1 << bits)
			continue;
		const chunk *c = slab_chunk_at(other, base);
		size_t index = grid_index_of(c->grid, c->base, p);
		if (index < c->carved)
			tn_panic(s->kind, s->name, "%s: %p is not a slot of this %s; it is in %s \"%s\", slot %p",
				operation, p, s->kind, other->kind, other->name, (void *)slab_slot_at(c, index));
	}
	tn_panic(s->kind, s->name, "%s: %p is not a slot of this %s%s", operation, p, s->kind,
		TN_MODE == TN_MODE_DEBUG ? "; nothing of Tenure is there" : "");
}

/* A pointer into a chunk of this slab that is not the start of a slot. */
static TN_COLD _Noreturn void slab_refuse(
	const slab *s, const chunk *c, const void *p, const char *operation) {
	const char *slot = grid_find_slot(slab_grid_of(s, c), c->base, c->carved, p);
	if (slot == NULL)
		slab_refuse_foreign(s, p, operation);
	size_t bytes = (size_t)((const char *)p - slot);
	if (TN_MODE != TN_MODE_DEBUG)
		tn_panic(s->kind, s->name, "%s: %p is %zu bytes inside the slot at %p", operation, p, bytes,
			(const void *)slot);
	tn_panic(s->kind, s->name, "%s: %p is %zu bytes inside the slot at %p, allocated at %s", operation,
		p, bytes, (const void *)slot, tn_site(slab_record_of(s, c, slot)->alloc_site).text);
}

/* The chunk of the slot that begins at p; panics at any other pointer. */
static inline chunk *slab_chunk_of(const slab *s, const void *p, const char *operation) {
	uintptr_t base = grid_base_of(&s->grid, p);
	if (tn_pages_owner(base) != s)
		slab_refuse_foreign(s, p, operation);
	chunk *c = slab_chunk_at(s, base);
	if (!grid_has_slot(slab_grid_of(s, c), (const char *)base, c->carved, p))
		slab_refuse(s, c, p, operation);
	return c;
}

/* A slot without a live bit: free already. */
static TN_COLD _Noreturn void slab_refuse_free(const slab *s, const void *p, const char *operation) {
	const chunk *c = slab_chunk_of(s, p, operation);
	if (TN_MODE != TN_MODE_DEBUG)
		tn_panic(s->kind, s->name, "%s: %p is free already", operation, p);
	const slot_record *r = slab_record_of(s, c, p);
	tn_panic(s->kind, s->name, "%s: %p is free already, allocated at %s, freed at %s", operation, p,
		tn_site(r->alloc_site).text, tn_site(r->free_site).text);
}

/* ---- bits ---- */

static inline void slab_clear_bits(chunk *c) {
	memset(c->bits, 0, grid_bit_words(c->grid, c->grid->count) * sizeof c->bits[0]);
}

static inline bool slab_is_live(const chunk *c, const void *slot) {
	return tn_test_bit(c->bits, slab_bit_of(c, slot)) == (TN_MODE != TN_MODE_RELEASE);
}

static inline size_t slab_count_live(const chunk *c) {
	size_t live = 0;
	for (size_t i = 0; i < c->carved; i++)
		live += slab_is_live(c, slab_slot_at(c, i));
	return live;
}

/* ---- debug ---- */

/* Whether the chunk's slots have pages of their own, which can be made to fault. */
static inline bool slab_is_guarded(const slab *s, const chunk *c) {
	return TN_MODE == TN_MODE_DEBUG && c->grid == &s->guarded;
}

static inline void slab_check_fences(
	const slab *s, const chunk *c, const char *slot, const char *operation) {
	if (TN_MODE != TN_MODE_DEBUG)
		return;
	const size_t size = s->grid.slot_size;
	const void *site = slab_record_of(s, c, slot)->alloc_site;
	size_t after = tn_first_change(slot + size, TN_FENCE_BYTES, TN_FILL_FENCE);
	if (after < TN_FENCE_BYTES)
		tn_panic(s->kind, s->name,
			"%s: %p was written past its end, at byte %zu of %zu, allocated at %s", operation,
			(const void *)slot, size + after, size, tn_site(site).text);
	size_t before = tn_first_change(slot - TN_FENCE_BYTES, TN_FENCE_BYTES, TN_FILL_FENCE);
	if (before < TN_FENCE_BYTES)
		tn_panic(s->kind, s->name,
			"%s: %p was written before its start, at byte -%zu of %zu, allocated at %s", operation,
			(const void *)slot, TN_FENCE_BYTES - before, size, tn_site(site).text);
}

/* Panics if a free slot was written to. */
static inline void slab_check_fill(const slab *s, const char *slot, const slot_record *r) {
	if (r->free_site == NULL || s->init != NULL)
		return;
	size_t changed = tn_first_change(slot, s->grid.slot_size, TN_FILL_DEAD);
	if (changed < s->grid.slot_size)
		tn_panic(s->kind, s->name,
			"alloc: %p was written after it was freed, at byte %zu of %zu, freed at %s",
			(const void *)slot, changed, s->grid.slot_size, tn_site(r->free_site).text);
}

/* Checks a free slot and makes it one that alloc returns: recorded, fenced, filled. */
static inline void slab_set_fresh(const slab *s, const chunk *c, char *slot, const void *site) {
	const size_t size = s->grid.slot_size;
	slot_record *r = slab_record_of(s, c, slot);
	tn_permit(slot, size);
	slab_check_fill(s, slot, r);
	*r = (slot_record){.alloc_site = site};
	memset(slot - TN_FENCE_BYTES, TN_FILL_FENCE, TN_FENCE_BYTES);
	memset(slot + size, TN_FILL_FENCE, TN_FENCE_BYTES);
	if (s->init != NULL)
		return;
	memset(slot, TN_FILL_FRESH, size);
	tn_hand_out(slot, size);
}

/* The record of the chunk's slot of that index, if it is live and was not put into a pool; or NULL. */
static inline const slot_record *slab_find_lost(const slab *s, const chunk *c, size_t index) {
	const slot_record *r = slab_records_of(s, c) + index;
	return slab_is_live(c, slab_slot_at(c, index)) && !r->idle ? r : NULL;
}

/* Clears the live bits of slots in this chunk and the later ones that were allocated at `site`, and
 * returns how many there were. */
static inline size_t slab_clear_lost(const slab *s, chunk *c, const void *site) {
	size_t count = 0;
	for (; c != NULL; c = c->next)
		for (size_t i = 0; i < c->carved; i++) {
			const slot_record *r = slab_find_lost(s, c, i);
			if (r == NULL || r->alloc_site != site)
				continue;
			tn_flip_bit(c->bits, slab_bit_of(c, slab_slot_at(c, i)));
			count++;
		}
	return count;
}

/* One line for every site that allocated slots which are live now; clears their live bits. */
static inline void slab_report_lost(const slab *s) {
	if (TN_MODE != TN_MODE_DEBUG || s->expendable)
		return;
	for (chunk *c = s->chunks; c != NULL; c = c->next)
		for (size_t i = 0; i < c->carved; i++) {
			const slot_record *r = slab_find_lost(s, c, i);
			if (r == NULL)
				continue;
			size_t count = slab_clear_lost(s, c, r->alloc_site);
			tn_report(s->kind, s->name, "destroy: %zu live slots (%zu bytes) allocated at %s", count,
				count * s->grid.slot_size, tn_site(r->alloc_site).text);
		}
}

#endif
