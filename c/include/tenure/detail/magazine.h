/* Not API. The inlined part of a magazine: an array of free slots that ends where a page ends. */
#ifndef TENURE_DETAIL_MAGAZINE_H
#define TENURE_DETAIL_MAGAZINE_H

#include "../base.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TN_MAGAZINE_BYTES = 4096 };

/* `at` holds the top: the position of the newest free slot. The word below the oldest slot is NULL, and
 * the magazine is full when top is the last word of its page. Written by the thread that the magazine
 * belongs to, read by threads that collect figures. */

/* Takes the newest slot; NULL when the magazine is empty. */
TN_INLINE void *tn_top_pop(void ***at) {
	void **top = TN_LOAD(at);
	void *p = *top;
	if (TN_LIKELY(p != NULL))
		TN_STORE(at, top - 1);
	return p;
}

/* Puts a slot into the magazine; false when it is full. */
TN_INLINE bool tn_top_push(void ***at, void *p) {
	void **top = TN_LOAD(at) + 1;
	if (TN_UNLIKELY((uintptr_t)top % TN_MAGAZINE_BYTES == 0))
		return false;
	/* Objects freed in the reverse order of allocation find their word in place. Skipping the store
	 * takes it out of the chain from this free to the next alloc. */
	if (*top != p)
		*top = p;
	TN_STORE(at, top);
	return true;
}

/* Compare with a word that another thread may change at any time, in one instruction on x86-64.
 * Compilers load such a word into a register first. */
#if defined(__x86_64__) && SIZE_MAX == UINT64_MAX && defined(__GCC_ASM_FLAG_OUTPUTS__)
TN_INLINE bool tn_is_above_word(uintptr_t value, const uintptr_t *word) {
	bool above;
	__asm__ volatile("cmpq %1, %2" : "=@cca"(above) : "m"(*word), "r"(value));
	return above;
}

TN_INLINE bool tn_is_below_word(uintptr_t value, const uintptr_t *word) {
	bool below;
	__asm__ volatile("cmpq %1, %2" : "=@ccb"(below) : "m"(*word), "r"(value));
	return below;
}

TN_INLINE bool tn_is_zero_word(const uint32_t *word) {
	bool zero;
	__asm__ volatile("cmpl $0, %1" : "=@ccz"(zero) : "m"(*word));
	return zero;
}
#else
TN_INLINE bool tn_is_above_word(uintptr_t value, const uintptr_t *word) {
	return value > TN_LOAD(word);
}

TN_INLINE bool tn_is_below_word(uintptr_t value, const uintptr_t *word) {
	return value < TN_LOAD(word);
}

TN_INLINE bool tn_is_zero_word(const uint32_t *word) {
	return TN_LOAD(word) == 0;
}
#endif

#ifdef __cplusplus
}
#endif
#endif
