/* A reserved range: the one chunk of an arena with reserve_bytes, committed as it fills. */
#ifndef TENURE_RANGE_H
#define TENURE_RANGE_H

#include <errno.h>

#include <tenure/arena.h>

#include "../base/modes.h"

#define ARENA_CHUNK_BYTES ((size_t)64 << 10)
#define ARENA_CHUNK_BYTES_MAX ((size_t)2 << 20)
#define HEAD_BYTES ((sizeof(tn_arena_chunk) + 15) & ~(size_t)15)

static inline size_t commit_step(size_t committed) {
	if (committed < ARENA_CHUNK_BYTES)
		return ARENA_CHUNK_BYTES;
	return committed < ARENA_CHUNK_BYTES_MAX ? committed : ARENA_CHUNK_BYTES_MAX;
}

/* Commits so that `end` bytes of the range are usable, or some more. */
static inline bool commit_more(tn_arena *a, char *range, size_t committed, size_t end) {
	size_t most = committed + ((a->limit_bytes - a->taken_bytes) & ~(TN_OS_PAGE - 1));
	if (most > a->reserve_bytes)
		most = a->reserve_bytes;
	size_t step = commit_step(committed);
	size_t wanted = tn_round_up(end, TN_OS_PAGE);
	if (wanted < committed + step)
		wanted = committed + step;
	if (wanted > most)
		wanted = most;
	if (end > wanted)
		return errno = ENOMEM, false;
	if (!tn_os_commit(range + committed, wanted - committed))
		return false;
	a->taken_bytes += wanted - committed;
	a->refills++;
	tn_arena_chunk *chunk = (tn_arena_chunk *)range;
	chunk->bytes = wanted;
	chunk->limit = range + wanted;
	return true;
}

static inline tn_arena_chunk *reserve_range(tn_arena *a) {
	size_t align = a->reserve_bytes >= ARENA_CHUNK_BYTES_MAX ? ARENA_CHUNK_BYTES_MAX : TN_OS_PAGE;
	char *range = tn_os_reserve(a->reserve_bytes, align);
	if (range == NULL)
		return NULL;
	if (!commit_more(a, range, 0, HEAD_BYTES + 16)) {
		tn_os_release(range, a->reserve_bytes);
		return NULL;
	}
	tn_arena_chunk *chunk = (tn_arena_chunk *)range;
	chunk->next = chunk->previous = NULL;
	chunk->begin = chunk->used = range + HEAD_BYTES;
	return chunk;
}

/* Decommits the range from `keep` bytes on. */
static inline size_t shrink_range(tn_arena *a, size_t keep) {
	tn_arena_chunk *chunk = a->first;
	keep = tn_round_up(keep, TN_OS_PAGE);
	if (keep >= chunk->bytes)
		return 0;
	size_t bytes = chunk->bytes - keep;
	tn_os_decommit((char *)chunk + keep, bytes);
	tn_os_protect((char *)chunk + keep, bytes);
	a->taken_bytes -= bytes;
	chunk->bytes = keep;
	chunk->limit = (char *)chunk + keep;
	if (chunk == a->current)
		a->limit = chunk->limit;
	return bytes;
}

#endif
