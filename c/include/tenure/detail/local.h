/* Not API. A thread's two magazines of a shared allocator, and the way of the inlined calls to them. */
#ifndef TENURE_DETAIL_LOCAL_H
#define TENURE_DETAIL_LOCAL_H

#include "../base.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TN_MAGAZINE_BYTES = 4096 };

/* Private: the part that the inlined paths use. The rest follows it in memory. */
typedef struct tn_local {
	/* Position of the newest free slot in the loaded magazine. A magazine is aligned to its size: it is
	 * full when top is its last word. The word below the oldest slot is NULL. Written by the thread of
	 * this local, read by threads that collect figures. */
	void **top;
} tn_local;

/* The allocator that a thread uses most. While it is near, its top is here instead of in the local, at
 * a constant address: a processor that renames memory then forwards it in no time. A key is never used
 * again, so an allocator that was destroyed is never found. */
typedef struct tn_near {
	uint64_t key;
	void **top;
	tn_local *local;
} tn_near;

TN_API extern TN_THREAD tn_near tn_near_slab TN_THREAD_SYMBOL(tn_near_slab) TN_THREAD_NEAR;
TN_API extern TN_THREAD tn_near tn_near_pool TN_THREAD_SYMBOL(tn_near_pool) TN_THREAD_NEAR;

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
	/* As in tn_slab_free: the word is often in place already. */
	if (*top != p)
		*top = p;
	TN_STORE(at, top);
	return true;
}

#ifdef __cplusplus
}
#endif
#endif
