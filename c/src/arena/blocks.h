/* Debug: every block of an arena stands between a record and a fence. The records are linked, the
 * newest first, so that all fences can be checked. In the other modes nothing of this is there. */
#ifndef TENURE_BLOCKS_H
#define TENURE_BLOCKS_H

#include <tenure/arena.h>

#include "../base/checkers.h"
#include "../base/modes.h"

/* Debug: stands before every block. */
typedef struct block_record {
	struct block_record *previous;
	size_t size;
	const void *site;
	unsigned char fence[8];
} block_record;

static inline void *block_make(tn_arena *a, char *p, size_t size, const void *site) {
	if (TN_MODE != TN_MODE_DEBUG || p == NULL)
		return p;
	block_record *r = (block_record *)(void *)p - 1;
	tn_permit(r, sizeof *r + size + TN_FENCE_BYTES);
	*r = (block_record){.previous = a->newest, .size = size, .site = site};
	memset(r->fence, TN_FILL_FENCE, sizeof r->fence);
	tn_fill_fresh(p, size);
	memset(p + size, TN_FILL_FENCE, TN_FENCE_BYTES);
	tn_hand_out(p, size);
	a->newest = r;
	return p;
}

static inline void block_check(const tn_arena *a, const block_record *r, const char *operation) {
	const char *p = (const char *)(r + 1);
	size_t before = tn_first_change(r->fence, sizeof r->fence, TN_FILL_FENCE);
	if (before < sizeof r->fence)
		tn_panic(a->kind, a->name,
			"%s: %p was written before its start, at byte -%zu of %zu, allocated at %s", operation,
			(const void *)p, sizeof r->fence - before, r->size, tn_site(r->site).text);
	size_t after = tn_first_change(p + r->size, TN_FENCE_BYTES, TN_FILL_FENCE);
	if (after < TN_FENCE_BYTES)
		tn_panic(a->kind, a->name,
			"%s: %p was written past its end, at byte %zu of %zu, allocated at %s", operation,
			(const void *)p, r->size + after, r->size, tn_site(r->site).text);
}

/* Checks the blocks that are newer than `until`. */
static inline void block_check_all(const tn_arena *a, const void *until, const char *operation) {
	if (TN_MODE != TN_MODE_DEBUG)
		return;
	for (const block_record *r = a->newest; r != until; r = r->previous)
		block_check(a, r, operation);
}

static inline _Noreturn void block_refuse(const tn_arena *a, const void *p, const char *operation) {
	for (const block_record *r = a->newest; r != NULL; r = r->previous) {
		size_t offset = (size_t)((uintptr_t)p - (uintptr_t)(r + 1));
		if (offset < r->size)
			tn_panic(a->kind, a->name, "%s: %p is byte %zu of the %zu at %p, allocated at %s",
				operation, p, offset, r->size, (const void *)(r + 1), tn_site(r->site).text);
	}
	tn_panic(a->kind, a->name, "%s: %p is no live block of this arena", operation, p);
}

static inline bool block_is_live(const tn_arena *a, const void *p) {
	const block_record *r = a->newest;
	while (r != NULL && (const void *)(r + 1) != p)
		r = r->previous;
	return r != NULL;
}

/* Debug: the record of a block that the caller names with its size. The pointer may be any; `in_arena`:
 * the record that it would have is memory of the arena that is in use. If that looks like a record, the
 * list of all is not searched. */
static inline void block_check_size(
	const tn_arena *a, const void *p, size_t old_size, bool in_arena, const char *operation) {
	if (TN_MODE != TN_MODE_DEBUG)
		return;
	const block_record *r = (const block_record *)p - 1;
	bool looks = in_arena && ((uintptr_t)p & 7) == 0 &&
	             tn_first_change(r->fence, sizeof r->fence, TN_FILL_FENCE) == sizeof r->fence;
	if (!looks && !block_is_live(a, p))
		block_refuse(a, p, operation);
	block_check(a, r, operation);
	if (r->size != old_size)
		tn_panic(a->kind, a->name, "%s: %p has %zu bytes, not %zu, allocated at %s", operation, p,
			r->size, old_size, tn_site(r->site).text);
}

static inline void block_set_size(void *p, size_t size) {
	if (TN_MODE != TN_MODE_DEBUG)
		return;
	((block_record *)p - 1)->size = size;
	tn_permit(p, size + TN_FENCE_BYTES);
	memset((char *)p + size, TN_FILL_FENCE, TN_FENCE_BYTES);
}

#endif
