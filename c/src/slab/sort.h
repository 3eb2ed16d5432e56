/* The free slots of a slab in the order of their addresses. Objects are freed in an order of their own.
 * Without sorting, the next objects would be strewn over all chunks, and a walk over them would wait
 * for memory at every step. Release only: the checks of hardened and debug cost more than is won. */
#ifndef TENURE_SORT_H
#define TENURE_SORT_H

#include "magazines.h"

/* Sets the bits of a magazine's slots, whose pointers were checked. Neighbours mostly share a word of
 * bits. It is written when the next slot needs another word: a chain of writes to one word would be
 * slower. */
static inline void slab_mark_magazine(const slab *s, void *const *slots) {
	const uintptr_t chunk_mask = s->grid.chunk_bytes - 1;
	const size_t bits_offset = s->grid.head_offset + offsetof(chunk, bits), count = s->magazine_slots;
	const unsigned grain_bits = s->grid.grain_bits;
	uint64_t *word = NULL, bits = 0;
	for (size_t i = 0; i < count; i++) {
		uintptr_t p = (uintptr_t)slots[i];
		size_t bit = (p & chunk_mask) >> grain_bits;
		uint64_t *next = (uint64_t *)((p & ~chunk_mask) + bits_offset) + bit / TN_WORD_BITS;
		if (next != word) {
			if (word != NULL)
				*word |= bits;
			word = next;
			bits = 0;
		}
		bits |= (uint64_t)1 << (bit % TN_WORD_BITS);
	}
	*word |= bits;
}

/* Whether a magazine's slots go now up, now down. Slots of objects that were freed in the order of
 * their addresses, or against it, for a while at least, need no sorting. */
static inline bool slab_is_disordered(const slab *s, void *const *slots) {
	enum { STEP = 8 };
	size_t turns = 0, count = 0;
	bool up = false;
	for (size_t i = STEP; i < s->magazine_slots; i += STEP, count++) {
		bool now = (uintptr_t)slots[i] > (uintptr_t)slots[i - 1];
		turns += now != up;
		up = now;
	}
	return turns > count / 8;
}

static inline void slab_sample_disorder(slab *s, uintptr_t magazine) {
	if (TN_MODE == TN_MODE_RELEASE && slab_is_disordered(s, slab_slots_of(magazine)))
		s->unsorted += s->magazine_slots;
}

/* Writes the slots whose bits are set into the full magazines, the lowest to come first. */
static inline void slab_write_sorted(const slab *s) {
	const unsigned grain_bits = s->grid.grain_bits;
	uintptr_t next = s->full;
	void **lowest = NULL, **at = NULL;
	for (const chunk *c = s->chunks; c != NULL; c = c->next) {
		char *base = c->base;
		const size_t words = (c->carved_bytes >> grain_bits) / TN_WORD_BITS + 1;
		for (size_t word = 0; word < words; word++, base += (size_t)TN_WORD_BITS << grain_bits)
			for (uint64_t bits = c->bits[word]; bits != 0; bits &= bits - 1) {
				if (at == lowest) {
					lowest = slab_slots_of(next);
					at = lowest + s->magazine_slots;
					next = *slab_link_of(next);
				}
				*--at = base + ((size_t)__builtin_ctzll(bits) << grain_bits);
			}
	}
	if (at != lowest || next != 0)
		tn_panic(s->kind, s->name, "flush: a slot is free twice");
}

/* Called before a full magazine is loaded. A walk over the free slots, done once for half as many that
 * were pushed in disorder. Not inlined into its caller, which is cold and compiled for size. */
static __attribute__((noinline)) void slab_sort_free(slab *s) {
	if (TN_MODE != TN_MODE_RELEASE || s->full_count <= 2 ||
		s->unsorted < s->full_count * s->magazine_slots / 2)
		return;
	s->unsorted = 0;
	for (chunk *c = s->chunks; c != NULL; c = c->next)
		slab_clear_bits(c);
	for (uintptr_t magazine = s->full; magazine != 0; magazine = *slab_link_of(magazine))
		slab_mark_magazine(s, slab_slots_of(magazine));
	slab_write_sorted(s);
}

#endif
