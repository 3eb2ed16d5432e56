/* A slab's magazines: arrays of 2^k words, aligned to their size, of which word 0 is a link. */
#ifndef TENURE_SLAB_MAGAZINES_H
#define TENURE_SLAB_MAGAZINES_H

#include "slots.h"

static inline uintptr_t loaded(const slab *s) {
	return s->hot.top & ~s->hot.magazine_mask;
}

static inline size_t fill_of_loaded(const slab *s) {
	return (s->hot.top & s->hot.magazine_mask) / WORD;
}

static inline void load_magazine(slab *s, uintptr_t magazine, size_t fill) {
	s->hot.top = magazine + fill * WORD;
}

static inline uintptr_t *link_of(uintptr_t magazine) {
	return (uintptr_t *)magazine;
}

static inline void push_magazine(uintptr_t *list, uintptr_t magazine) {
	*link_of(magazine) = *list;
	*list = magazine;
}

static inline uintptr_t pop_magazine(uintptr_t *list) {
	uintptr_t magazine = *list;
	if (magazine != 0)
		*list = *link_of(magazine);
	return magazine;
}

static inline void **slots_of(uintptr_t magazine) {
	return (void **)magazine + 1;
}

static inline size_t free_slots(const slab *s) {
	size_t full = s->full_count + (s->previous_full ? 1 : 0);
	return full * s->magazine_slots + fill_of_loaded(s);
}

static inline size_t in_use(const slab *s) {
	return s->carved - free_slots(s) - s->quarantined;
}

#endif
