/* Scopes: their storage, their tree, and what their limits count. */
#ifndef TENURE_SRC_SCOPE_H
#define TENURE_SRC_SCOPE_H

#include <tenure/scope.h>

#include "../base/atomics.h"
#include "../base/modes.h"
#include "../listing/listing.h"
#include "../pages/pages.h"

enum { IDENT_WORDS = (TN_IDENT_BYTES + 1) / sizeof(size_t) };

enum scope_state {
	SCOPE_FREE,
	SCOPE_ALIVE,
	SCOPE_ENDING, /* or being reset: what is in it goes, nothing comes */
};

typedef struct deferred {
	struct deferred *older;
	void (*fn)(void *arg);
	void *arg;
} deferred;

/* Lies in memory that is never anything else, so that readers and stale pointers find it there. Written
 * by whoever calls it, but for what says otherwise. */
typedef struct scope {
	tn_scope hot;
	uint32_t state;
	bool shared;
	struct scope *parent;
	/* Children, newest first; of a shared one under the list's lock. */
	struct scope *newest, *older, *newer;
	deferred *deferred;
	tn_account account; /* of its own chunks, and of the allocators that it owns */
	TN_ATOMIC(size_t) external_bytes;
	tn_limit limit; /* its own limits, if account.limit is this one */
	void (*on_soft)(tn_scope *scope, size_t held_bytes, void *ctx);
	void *ctx;
	TN_ATOMIC(size_t) ident[IDENT_WORDS];
	tn_node node;
} scope;

static inline scope *scope_of(const tn_scope *hot) {
	return (scope *)(uintptr_t)hot;
}

static inline bool has_limits(const scope *s) {
	return s->account.limit == &s->limit;
}

static inline size_t scope_holds(const scope *s) {
	return s->account.held_bytes + tn_get(&s->external_bytes, TN_RELAXED);
}

/* The scope to visit after `s` and before what is not below `top`: parents before children. */
static inline scope *next_below(const scope *s, const scope *top) {
	if (s->newest != NULL)
		return s->newest;
	while (s != top && s->older == NULL)
		s = s->parent;
	return s == top ? NULL : s->older;
}

/* The same without what is below s. */
static inline scope *next_beside(const scope *s, const scope *top) {
	while (s != top && s->older == NULL)
		s = s->parent;
	return s == top ? NULL : s->older;
}

#endif
