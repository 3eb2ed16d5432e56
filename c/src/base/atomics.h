/* The one dialect of atomics inside the library. A model checker can put its own words in their place
 * (TN_ATOMICS names the header) and try the orders in which threads may run and see each other's
 * stores. It compiles as C++: the files from lock.h to pool.c initialise members in their order.
 *
 *   TN_ATOMIC(type)        a variable that several threads may use at once
 *   TN_GUARDED(type)       a variable that a lock or a hand-over protects; TN_AT reads or writes it */
#ifndef TENURE_ATOMICS_H
#define TENURE_ATOMICS_H

#ifdef TN_ATOMICS
#include TN_ATOMICS
#else

#define TN_ATOMIC(type) type
#define TN_GUARDED(type) type
#define TN_AT(variable) (variable)

#define TN_RELAXED __ATOMIC_RELAXED
#define TN_ACQUIRE __ATOMIC_ACQUIRE
#define TN_RELEASE __ATOMIC_RELEASE
#define TN_ACQ_REL __ATOMIC_ACQ_REL

#define tn_get(at, order) __atomic_load_n(at, order)
#define tn_set(at, value, order) __atomic_store_n(at, value, order)
#define tn_swap(at, value, order) __atomic_exchange_n(at, value, order)
#define tn_add(at, value, order) __atomic_fetch_add(at, value, order)
#define tn_or(at, bits, order) __atomic_fetch_or(at, bits, order)
#define tn_and(at, bits, order) __atomic_fetch_and(at, bits, order)
/* Whether `*at` was `*seen` and is `value` now; else `*seen` is what it was. A failure is relaxed. */
#define tn_replace(at, seen, value, order)                                                             \
	__atomic_compare_exchange_n(at, seen, value, false, order, TN_RELAXED)

#endif
#endif
