/* Not API. A thread's two magazines of a shared allocator, and the way of the inlined calls to them. */
#ifndef TENURE_DETAIL_LOCAL_H
#define TENURE_DETAIL_LOCAL_H

#include "magazine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Private: the part that the inlined paths use. The rest follows it in memory. */
typedef struct tn_local {
	void **top; /* of the loaded magazine */
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

#ifdef __cplusplus
}
#endif
#endif
