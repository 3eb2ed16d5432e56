/* Limits on what is taken from a source. Every chunk is charged to the account of its taker, and with
 * it to each limit from there up. A chunk is the quantum: calls that fit a chunk that is there pay
 * nothing.
 *
 * Limits and accounts lie in the scopes that have them; `above` and `limit` are set by their owner,
 * while charges come from every thread below. */
#ifndef TENURE_LIMIT_H
#define TENURE_LIMIT_H

#include <errno.h>

#include "../base/atomics.h"
#include "../base/bits.h"

typedef struct tn_limit {
	struct tn_limit *above;        /* the next limit that counts the same chunks, or NULL */
	size_t hard_bytes, soft_bytes; /* SIZE_MAX: none */
	TN_ATOMIC(size_t) charged_bytes;
	TN_ATOMIC(bool) told; /* on_soft was called, and the charge has not been below since */
	void (*on_soft)(struct tn_limit *limit, size_t charged_bytes);
} tn_limit;

/* One taker of chunks. */
typedef struct tn_account {
	tn_limit *limit;   /* the nearest limit from here up, or NULL */
	size_t held_bytes; /* chunks taken and not given back */
	bool refused;      /* a limit refused the last chunk that was asked for */
} tn_account;

static inline void limit_uncharge_one(tn_limit *l, size_t bytes) {
	size_t now = tn_add(&l->charged_bytes, (size_t)0 - bytes, TN_RELAXED) - bytes;
	if (now <= l->soft_bytes)
		tn_set(&l->told, false, TN_RELAXED);
}

static inline bool limit_charge_one(tn_limit *l, size_t bytes) {
	size_t now = tn_get(&l->charged_bytes, TN_RELAXED);
	do
		if (bytes > l->hard_bytes || now > l->hard_bytes - bytes)
			return false;
	while (!tn_replace(&l->charged_bytes, &now, now + bytes, TN_RELAXED));
	return true;
}

/* Calls on_soft when the charge has come above the soft limit. */
static inline void tn_limit_tell(tn_limit *l) {
	size_t now = tn_get(&l->charged_bytes, TN_RELAXED);
	if (now > l->soft_bytes && !tn_swap(&l->told, true, TN_RELAXED))
		l->on_soft(l, now);
}

/* Takes a charge back from the limits of `from`, which may be NULL, up to but not with `until`. */
static inline void tn_limit_uncharge(tn_limit *from, const tn_limit *until, size_t bytes) {
	for (tn_limit *l = from; l != until; l = l->above)
		limit_uncharge_one(l, bytes);
}

/* Charges the same limits.
 *
 * fails  ENOMEM, with nothing charged, where one of them has too little left */
static inline bool tn_limit_charge(tn_limit *from, const tn_limit *until, size_t bytes) {
	for (tn_limit *l = from; l != until; l = l->above)
		if (!limit_charge_one(l, bytes)) {
			tn_limit_uncharge(from, l, bytes);
			return errno = ENOMEM, false;
		}
	for (tn_limit *l = from; l != until; l = l->above)
		tn_limit_tell(l);
	return true;
}

/* The least hard limit from `from` up; SIZE_MAX: none. */
static inline size_t tn_limit_least(const tn_limit *from) {
	size_t least = SIZE_MAX;
	for (const tn_limit *l = from; l != NULL; l = l->above)
		least = tn_min(least, l->hard_bytes);
	return least;
}

/* The first limit that is on the way up from both, or NULL. */
static inline tn_limit *tn_limit_common(tn_limit *a, const tn_limit *b) {
	for (; a != NULL; a = a->above)
		for (const tn_limit *l = b; l != NULL; l = l->above)
			if (l == a)
				return a;
	return NULL;
}

#endif
