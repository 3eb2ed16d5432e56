/* Not API. A thread's two magazines of a shared allocator, and the way of the inlined calls to them. */
#ifndef TENURE_DETAIL_LOCAL_H
#define TENURE_DETAIL_LOCAL_H

#include "magazine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Private: the part that the inlined paths use. The rest follows it in memory. */
typedef struct tn_local {
	void **top;     /* of the loaded magazine */
	uint32_t asked; /* another thread asks for the slots: the next call takes the slow path */
	uint32_t takes; /* until a local that is not near takes the slow path */
} tn_local;

/* The allocator that a thread uses most. While it is near, its top is here instead of in the local, at
 * a constant address: a processor that renames memory then forwards it in no time. A key is never used
 * again, so an allocator that was destroyed is never found. An allocator that asks its threads for
 * their idle slots changes its key: then none of them finds it, and each takes the slow path once. */
typedef struct tn_near {
	uint64_t key;
	void **top;
	size_t takes; /* of a pool: until get takes the slow path, which looks at the clock */
	tn_local *local;
} tn_near;

TN_API extern TN_THREAD tn_near tn_near_slab TN_THREAD_SYMBOL(tn_near_slab) TN_THREAD_NEAR;
TN_API extern TN_THREAD tn_near tn_near_pool TN_THREAD_SYMBOL(tn_near_pool) TN_THREAD_NEAR;

#ifdef __cplusplus
}
#endif
#endif
