/* Not API. Slots of one size, used once between two resets and leased to threads a run at a time. The
 * C++ class size_based_arena is built on them.
 *
 * A tn_runs is constant-initialised, so it works before main and after it. A tn_lease is zero. */
#ifndef TENURE_DETAIL_RUNS_H
#define TENURE_DETAIL_RUNS_H

#include "../base.h"
#include "../stats.h"
#include "hooks.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A thread's part. The first three members are written by the thread (and by reset) and read by threads
 * that count; the others are under the lock. */
typedef struct tn_lease {
	char *cursor, *limit; /* the rest of the run */
	size_t credit;        /* TN_LEASE_CREDIT less the slots given back; 0: not linked */
	struct tn_runs *runs;
	struct tn_lease *next, **link;   /* list of its tn_runs */
	struct tn_lease *next_of_thread; /* owner only */
	const void *thread;
} tn_lease;

#define TN_LEASE_CREDIT (SIZE_MAX / 2)

typedef struct tn_runs {
	const char *name;
	size_t slot_bytes, align;
	size_t count;       /* slots in all */
	size_t lease_slots; /* slots of a run */
	/* Under the lock. */
	tn_lease *leases;
	size_t granted;  /* slots leased since the reset, less those that came back unused */
	size_t returned; /* slots given back, less those counted in the leases */
	struct tn_runs_chunk *first, *current, *large;
	char *fresh; /* in the current chunk: the first slot not leased yet */
	struct tn_runs_spare *spares;
	struct tn_runs_notes *notes;
	size_t chunk_bytes, peak_slots;
	size_t taken_bytes; /* atomic */
	uint64_t refills, resets;
	struct tn_runs *next_runs, **runs_link; /* list of all tn_runs with leases */
} tn_runs;

/* Allocates `count` slots side by side; NULL with ENOMEM. */
TN_API void *tn_runs_alloc_slow(tn_runs *r, tn_lease *l, size_t count) TN_SYMBOL(tn_runs_alloc_slow);
TN_API void tn_runs_free_slow(tn_runs *r, tn_lease *l, void *p, size_t count)
	TN_SYMBOL(tn_runs_free_slow);

/* The same for slots that may come back without their count. */
TN_API void *tn_runs_alloc_noted(tn_runs *r, tn_lease *l, size_t count) TN_SYMBOL(tn_runs_alloc_noted);
TN_API void tn_runs_free_noted(tn_runs *r, tn_lease *l, void *p) TN_SYMBOL(tn_runs_free_noted);

/* Takes a slot of `slot_bytes` bytes from the lease; false when a new run is needed.
 *
 * threads  owner only */
TN_INLINE bool tn_runs_pop(tn_lease *l, size_t slot_bytes, void **slot) {
	char *p = TN_LOAD(&l->cursor);
	if (TN_UNLIKELY(tn_hook_checked() || p == TN_LOAD(&l->limit)))
		return false;
	TN_STORE(&l->cursor, p + slot_bytes);
	*slot = p;
	return true;
}

/* Takes `count` off the credit; false when the lease is not linked, and the credit is then 0 or
 * meaningless. On x86-64 this is one instruction on memory. Compilers make a load and a store of the
 * atomic form, which takes twice the time. */
#if defined(__x86_64__) && SIZE_MAX == UINT64_MAX && defined(__GCC_ASM_FLAG_OUTPUTS__)
TN_INLINE bool tn_lease_spend(tn_lease *l, size_t count) {
	bool enough;
	__asm__("subq %2, %0" : "+m"(l->credit), "=@ccnc"(enough) : "er"(count));
	return enough;
}
#else
TN_INLINE bool tn_lease_spend(tn_lease *l, size_t count) {
	size_t credit = TN_LOAD(&l->credit);
	TN_STORE(&l->credit, credit - count);
	return credit >= count;
}
#endif

/* Gives back `count` slots side by side; NULL is a no-op. They are counted only, and not used again
 * before the reset. */
TN_INLINE void tn_runs_free(tn_runs *r, tn_lease *l, void *p, size_t count) {
	if (TN_UNLIKELY(p == NULL))
		return;
	if (TN_UNLIKELY(tn_hook_checked() || !tn_lease_spend(l, count)))
		tn_runs_free_slow(r, l, p, count);
}

/* Starts again at the first slot; false, and nothing changes, while some slots are not given back.
 *
 * threads  any, when no other call is under way */
TN_API bool tn_runs_reset(tn_runs *r) TN_SYMBOL(tn_runs_reset);

/* Gives back the chunks without a slot leased since the reset; returns their bytes. */
TN_API size_t tn_runs_trim(tn_runs *r) TN_SYMBOL(tn_runs_trim);

/* Count the slots handed out since the reset, and those of them not given back. Exact while no other
 * thread allocates or frees. */
TN_API size_t tn_runs_used(const tn_runs *r) TN_SYMBOL(tn_runs_used);
TN_API size_t tn_runs_in_use(const tn_runs *r) TN_SYMBOL(tn_runs_in_use);

/* Tells whether `p` points into memory that r took for its slots. */
TN_API bool tn_runs_owns(const tn_runs *r, const void *p) TN_SYMBOL(tn_runs_owns);

TN_API void tn_runs_stats(const tn_runs *r, tn_stats *stats) TN_SYMBOL(tn_runs_stats);

#ifdef __cplusplus
}
#endif
#endif
