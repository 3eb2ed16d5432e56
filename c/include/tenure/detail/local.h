/* Not API. A thread's two magazines of a shared allocator, and how the inlined calls find them. */
#ifndef TENURE_DETAIL_LOCAL_H
#define TENURE_DETAIL_LOCAL_H

#include "../base.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TN_MAGAZINE_BYTES = 4096 };

/* Private, the part that the inlined paths use; the rest lies behind it. */
typedef struct tn_local {
	/* The newest free slot in the loaded magazine, which is aligned to its size: the last word of it
	 * means that it is full. Below the oldest slot stands NULL. Written by the thread that it belongs
	 * to, read by whoever asks for figures. */
	void **top;
} tn_local;

/* What a thread uses most. While it is near, its top is here and not in the local, at an address that
 * does not depend on anything: a processor that renames memory then takes no time to pass it on. A key
 * is never used again, so that what was destroyed is never found. */
typedef struct tn_near {
	uint64_t key;
	void **top;
	tn_local *local;
} tn_near;

TN_API extern TN_THREAD tn_near tn_near_slab TN_THREAD_SYMBOL(tn_near_slab) TN_THREAD_NEAR;
TN_API extern TN_THREAD tn_near tn_near_pool TN_THREAD_SYMBOL(tn_near_pool) TN_THREAD_NEAR;

#if defined(__GNUC__)
#define TN_LOAD(from) __atomic_load_n(from, __ATOMIC_RELAXED)
#define TN_STORE(to, value) __atomic_store_n(to, value, __ATOMIC_RELAXED)
#else
#define TN_LOAD(from) (*(void **volatile *)(from))
#define TN_STORE(to, value) (*(void **volatile *)(to) = (value))
#endif

/* Takes the newest slot; NULL when the magazine is empty. */
TN_INLINE void *tn_top_pop(void ***at) {
	void **top = TN_LOAD(at);
	void *p = *top;
	if (TN_LIKELY(p != NULL))
		TN_STORE(at, top - 1);
	return p;
}

/* Gives a slot to the magazine; false when that is full. */
TN_INLINE bool tn_top_push(void ***at, void *p) {
	void **top = TN_LOAD(at) + 1;
	if (TN_UNLIKELY((uintptr_t)top % TN_MAGAZINE_BYTES == 0))
		return false;
	/* As in tn_slab_free: the word is often there already. */
	if (*top != p)
		*top = p;
	TN_STORE(at, top);
	return true;
}

#ifdef __cplusplus
}
#endif
#endif
