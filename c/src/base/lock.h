/* A lock of four bytes that can stand anywhere, for critical sections of some ten nanoseconds. A thread
 * that finds it held looks a few times more and then sleeps, so that a holder that lost its CPU does
 * not cost other threads theirs.
 *
 * The three states are those of Drepper 2011, "Futexes Are Tricky", mutex 2. */
#ifndef TENURE_LOCK_H
#define TENURE_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "atomics.h"
#include "os.h"

#ifndef TN_LOCK_LOOKS
#define TN_LOCK_LOOKS 60
#endif

typedef struct tn_lock {
	TN_ATOMIC(uint32_t) state;
} tn_lock;

enum {
	LOCK_FREE,
	LOCK_HELD,
	LOCK_AWAITED, /* held, and a thread may sleep until it is free */
};

static inline void lock_wait(tn_lock *l) {
	for (int looks = 0; looks < TN_LOCK_LOOKS; looks++) {
		uint32_t seen = LOCK_FREE;
		if (tn_get(&l->state, TN_RELAXED) == LOCK_FREE &&
			tn_replace(&l->state, &seen, LOCK_HELD, TN_ACQUIRE))
			return;
		tn_os_relax();
	}
	while (tn_swap(&l->state, LOCK_AWAITED, TN_ACQUIRE) != LOCK_FREE)
		tn_os_wait(&l->state, LOCK_AWAITED);
}

static inline bool tn_lock_try(tn_lock *l) {
	uint32_t seen = LOCK_FREE;
	return tn_replace(&l->state, &seen, LOCK_HELD, TN_ACQUIRE);
}

static inline void tn_lock_take(tn_lock *l) {
	if (!tn_lock_try(l))
		lock_wait(l);
}

static inline void tn_lock_give(tn_lock *l) {
	if (tn_swap(&l->state, LOCK_FREE, TN_RELEASE) == LOCK_AWAITED)
		tn_os_wake(&l->state);
}

#endif
