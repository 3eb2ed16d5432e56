/* Limits of scopes: every chunk that a scope or an allocator of it takes is charged to each scope with
 * limits from there up. A chunk is the quantum: calls that fit a chunk that is there pay nothing. */
#ifndef TENURE_SCOPE_LIMITS_H
#define TENURE_SCOPE_LIMITS_H

#include <errno.h>

#include "scope.h"

/* The next scope with limits above one that has them. */
static inline scope *limited_above(const scope *s) {
	return s->parent == NULL ? NULL : s->parent->limited;
}

static inline void uncharge_one(scope *s, size_t bytes) {
	size_t now = tn_add(&s->charged_bytes, (size_t)0 - bytes, TN_RELAXED) - bytes;
	if (now <= s->soft_bytes)
		tn_set(&s->told, false, TN_RELAXED);
}

static inline bool charge_one(scope *s, size_t bytes) {
	size_t now = tn_get(&s->charged_bytes, TN_RELAXED);
	do
		if (bytes > s->hard_bytes || now > s->hard_bytes - bytes)
			return false;
	while (!tn_replace(&s->charged_bytes, &now, now + bytes, TN_RELAXED));
	return true;
}

static inline void tell_soft(scope *s) {
	size_t now = tn_get(&s->charged_bytes, TN_RELAXED);
	if (now > s->soft_bytes && !tn_swap(&s->told, true, TN_RELAXED))
		s->on_soft(&s->hot, now, s->ctx);
}

/* From `from`, a scope with limits or NULL, up to but not with `until`. */
static inline void uncharge(scope *from, const scope *until, size_t bytes) {
	for (scope *s = from; s != until; s = limited_above(s))
		uncharge_one(s, bytes);
}

/* fails  ENOMEM, with nothing charged, where one has too little left */
static inline bool charge(scope *from, const scope *until, size_t bytes) {
	for (scope *s = from; s != until; s = limited_above(s))
		if (!charge_one(s, bytes)) {
			uncharge(from, s, bytes);
			return errno = ENOMEM, false;
		}
	for (scope *s = from; s != until; s = limited_above(s))
		tell_soft(s);
	return true;
}

/* The least hard limit from s up; 0: none. */
static inline size_t least_limit(const scope *s) {
	size_t least = SIZE_MAX;
	for (const scope *l = s->limited; l != NULL; l = limited_above(l))
		least = l->hard_bytes < least ? l->hard_bytes : least;
	return least == SIZE_MAX ? 0 : least;
}

/* The first scope with limits that is on the way up from both. */
static inline scope *common_limited(scope *a, scope *b) {
	for (; a != NULL; a = limited_above(a))
		for (scope *s = b; s != NULL; s = limited_above(s))
			if (s == a)
				return s;
	return NULL;
}

#endif
