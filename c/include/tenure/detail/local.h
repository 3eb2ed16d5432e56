/* Not API. A thread's two magazines of a shared allocator, and how the inlined calls find them. */
#ifndef TENURE_DETAIL_LOCAL_H
#define TENURE_DETAIL_LOCAL_H

#include "../base.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
	TN_WAY_COUNT = 16, /* shared allocators whose calls are inlined, for a thread at a time */
	TN_MAGAZINE_BYTES = 4096,
};

/* Private, the part that the inlined paths use; the rest lies behind it. */
typedef struct tn_local {
	/* The newest free slot in the loaded magazine, which is aligned to its size: low bits of all ones
	 * but the last three mean that it is full. Below the oldest one stands NULL. Written by the thread
	 * that it belongs to, read by whoever asks for figures. */
	void **top;
} tn_local;

typedef struct tn_way {
	uint64_t key;
	tn_local *local;
} tn_way;

/* The allocators that this thread used last, by the low bits of their keys. A key is never used again,
 * so that what was destroyed is never found. */
TN_API extern TN_THREAD tn_way tn_ways[TN_WAY_COUNT] TN_SYMBOL(tn_ways) TN_THREAD_NEAR;

/* The calling thread's part of the allocator with this key; NULL when it must be looked for. */
TN_INLINE tn_local *tn_local_near(uint64_t key) {
	const tn_way *way = &tn_ways[key % TN_WAY_COUNT];
	return way->key == key ? way->local : NULL;
}

#if defined(__GNUC__)
#define TN_LOAD(from) __atomic_load_n(from, __ATOMIC_RELAXED)
#define TN_STORE(to, value) __atomic_store_n(to, value, __ATOMIC_RELAXED)
#else
#define TN_LOAD(from) (*(void **volatile *)(from))
#define TN_STORE(to, value) (*(void **volatile *)(to) = (value))
#endif

/* Takes the newest slot; NULL when the loaded magazine is empty. */
TN_INLINE void *tn_local_pop(tn_local *l) {
	void **top = TN_LOAD(&l->top);
	void *p = *top;
	if (TN_LIKELY(p != NULL))
		TN_STORE(&l->top, top - 1);
	return p;
}

/* Gives a slot to the loaded magazine; false when that is full. */
TN_INLINE bool tn_local_push(tn_local *l, void *p) {
	void **top = TN_LOAD(&l->top) + 1;
	if (TN_UNLIKELY((uintptr_t)top % TN_MAGAZINE_BYTES == 0))
		return false;
	/* As in tn_slab_free: the word is often there already. */
	if (*top != p)
		*top = p;
	TN_STORE(&l->top, top);
	return true;
}

#ifdef __cplusplus
}
#endif
#endif
