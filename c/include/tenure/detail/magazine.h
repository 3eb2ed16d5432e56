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

#ifdef __cplusplus
}
#endif
#endif
