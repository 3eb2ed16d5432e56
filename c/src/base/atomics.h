/* Words for what threads hand to each other, so that a model checker can put its own in their place
 * (TN_ATOMICS names the header) and try the orders in which threads may run and see each other's
 * stores. It is C++: what it compiles, from lock.h to pool.c, initialises members in their order.
 *
 *   TN_ATOMIC(type)        a variable that several threads may use at once
 *   TN_GUARDED(type)       a variable that a lock or a hand-over protects; TN_AT reads or writes it */
#ifndef TENURE_ATOMICS_H
#define TENURE_ATOMICS_H

#ifdef TN_ATOMICS
#include TN_ATOMICS
#else

#include <stdatomic.h>

#define TN_ATOMIC(type) _Atomic(type)
#define TN_GUARDED(type) type
#define TN_AT(variable) (variable)

#define TN_RELAXED memory_order_relaxed
#define TN_ACQUIRE memory_order_acquire
#define TN_RELEASE memory_order_release

#define tn_get(at, order) atomic_load_explicit(at, order)
#define tn_set(at, value, order) atomic_store_explicit(at, value, order)
#define tn_swap(at, value, order) atomic_exchange_explicit(at, value, order)
#define tn_add(at, value, order) atomic_fetch_add_explicit(at, value, order)
/* Whether `*at` was `*seen` and is `value` now; else `*seen` is what it was. A failure is relaxed. */
#define tn_replace(at, seen, value, order)                                                             \
	atomic_compare_exchange_strong_explicit(at, seen, value, order, TN_RELAXED)

#endif
#endif
