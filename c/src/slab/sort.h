/* The free slots of a slab in the order of their addresses. Objects are freed in an order of their own;
 * without this the next ones would be strewn over all chunks, and whoever walks them would wait for
 * memory at every step. Release only: hardened and debug take their time elsewhere. */
#ifndef TENURE_ORDER_H
#define TENURE_ORDER_H

#include "magazines.h"

/* Sets the bits of a magazine's slots, whose pointers were checked. Neighbours mostly share a word of
 * bits, which is written when the next one does not: a chain of writes to one word would be slower. */
static inline void mark_magazine(const slab *s, void *const *slots) {
	const uintptr_t chunk_mask = s->chunk_bytes - 1;
	const size_t bits_offset = s->head_offset + offsetof(chunk, bits), count = s->magazine_slots;
	const unsigned grain_bits = s->plain.grain_bits;
	uint64_t *word = NULL, bits = 0;
	for (size_t i = 0; i < count; i++) {
		uintptr_t p = (uintptr_t)slots[i];
		size_t number = (p & chunk_mask) >> grain_bits;
		uint64_t *next = (uint64_t *)((p & ~chunk_mask) + bits_offset) + number / TN_WORD_BITS;
		if (next != word) {
			if (word != NULL)
				*word |= bits;
			word = next;
			bits = 0;
		}
		bits |= (uint64_t)1 << (number % TN_WORD_BITS);
	}
	*word |= bits;
}

/* Whether a magazine's slots go now up, now down. Those of objects that were freed in the order of
 * their addresses, or against it, for a while at least, need no sorting. */
static inline bool is_disordered(const slab *s, void *const *slots) {
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

static inline void note_disorder(slab *s, uintptr_t listed) {
	if (TN_MODE == TN_MODE_RELEASE && is_disordered(s, slots_of(listed)))
		s->unsorted += s->magazine_slots;
}

/* Writes the slots whose bits are set into the listed magazines, the lowest to come first. */
static inline void list_sorted(const slab *s) {
	const unsigned grain_bits = s->plain.grain_bits;
	uintptr_t next = s->full;
	void **lowest = NULL, **at = NULL;
	for (const chunk *c = s->chunks; c != NULL; c = c->next) {
		char *base = c->base;
		const size_t words = (c->carved_bytes >> grain_bits) / TN_WORD_BITS + 1;
		for (size_t word = 0; word < words; word++, base += (size_t)TN_WORD_BITS << grain_bits)
			for (uint64_t bits = c->bits[word]; bits != 0; bits &= bits - 1) {
				if (at == lowest) {
					lowest = slots_of(next);
					at = lowest + s->magazine_slots;
					next = *link_of(next);
				}
				*--at = base + ((size_t)__builtin_ctzll(bits) << grain_bits);
			}
	}
	if (at != lowest || next != 0)
		tn_panic(s->kind, s->name, "flush: a slot is free twice");
}

/* Called before a listed magazine is loaded. A walk over the free slots, done once for half as many
 * that were listed in disorder. Not inlined into its caller, which is cold, and compiled for size. */
static __attribute__((noinline)) void sort_free(slab *s) {
	if (TN_MODE != TN_MODE_RELEASE || s->full_count <= 2 ||
		s->unsorted < s->full_count * s->magazine_slots / 2)
		return;
	s->unsorted = 0;
	for (chunk *c = s->chunks; c != NULL; c = c->next)
		clear_bits(c);
	for (uintptr_t magazine = s->full; magazine != 0; magazine = *link_of(magazine))
		mark_magazine(s, slots_of(magazine));
	list_sorted(s);
}

#endif
