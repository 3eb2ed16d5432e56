/* A slab's magazines: arrays of 2^k words, aligned to their size. Word 0 is the link of a list, the
 * others are pointers to slots. Alignment makes "is it full" and "is it empty" a test of the top's low
 * bits. The magazines of shared slabs (depot.h in ../shared) have another format: a page each, with
 * a header. */
#ifndef TENURE_SLAB_MAGAZINES_H
#define TENURE_SLAB_MAGAZINES_H

#include "slots.h"

#define WORD sizeof(void *)

static inline uintptr_t slab_loaded(const slab *s) {
	return s->hot.top & ~s->hot.magazine_mask;
}

static inline size_t slab_loaded_count(const slab *s) {
	return (s->hot.top & s->hot.magazine_mask) / WORD;
}

static inline void slab_load(slab *s, uintptr_t magazine, size_t count) {
	s->hot.top = magazine + count * WORD;
}

static inline uintptr_t *slab_link_of(uintptr_t magazine) {
	return (uintptr_t *)magazine;
}

static inline void **slab_slots_of(uintptr_t magazine) {
	return (void **)magazine + 1;
}

static inline void slab_push(uintptr_t *list, uintptr_t magazine) {
	*slab_link_of(magazine) = *list;
	*list = magazine;
}

static inline uintptr_t slab_pop(uintptr_t *list) {
	uintptr_t magazine = *list;
	if (magazine != 0)
		*list = *slab_link_of(magazine);
	return magazine;
}

/* Moves a whole list; its order is reversed. */
static inline void slab_move(uintptr_t *from, uintptr_t *to) {
	while (*from != 0)
		slab_push(to, slab_pop(from));
}

static inline size_t slab_count_free(const slab *s) {
	size_t full = s->full_count + (s->previous_full ? 1 : 0);
	return full * s->magazine_slots + slab_loaded_count(s);
}

static inline size_t slab_in_use(const slab *s) {
	return s->carved - slab_count_free(s) - s->quarantined;
}

#endif
