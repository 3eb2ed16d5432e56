/* The chunks of an arena: taken, chained, and given back. */
#ifndef TENURE_ARENA_CHUNKS_H
#define TENURE_ARENA_CHUNKS_H

#include <errno.h>

#include "../base/checkers.h"
#include "arena_figures.h"

static inline void make_current(tn_arena *a, tn_arena_chunk *chunk, char *cursor) {
	a->current = chunk;
	a->cursor = cursor;
	a->limit = chunk == NULL ? NULL : chunk->limit;
}

static inline void arena_sample_peak(tn_arena *a) {
	a->peak_bytes = peak_bytes(a);
}

/* Notes whether a reset is only a matter of the cursor: blocks in the first chunk and nowhere else.
 * Called after everything that changes it. */
static inline void note_restart(tn_arena *a) {
	arena_sample_peak(a);
	const tn_arena_chunk *first = a->first;
	bool simple = first != NULL && a->current == first && first->next == NULL && a->large == NULL;
	a->restart = a->highest = simple && a->reserve_bytes == 0 ? first->begin : NULL;
	if (a->node != NULL)
		publish_arena(a);
}

/* Writes the head of a new chunk, whose blocks begin `head` bytes into it. */
static inline tn_arena_chunk *open_chunk(tn_arena_chunk *chunk, size_t bytes, size_t head) {
	char *base = (char *)chunk;
	*chunk = (tn_arena_chunk){
		.bytes = bytes, .begin = base + head, .limit = base + bytes, .used = base + head};
	return chunk;
}

/* A chunk of `bytes`, or of what the limit leaves if that is `least_bytes` or more. */
static inline tn_arena_chunk *take_chunk(tn_arena *a, size_t bytes, size_t least_bytes) {
	size_t left = (a->limit_bytes - a->taken_bytes) & ~(size_t)15;
	if (bytes > left)
		bytes = left;
	if (bytes < least_bytes)
		return errno = ENOMEM, NULL;
	tn_arena_chunk *chunk = tn_chunk_acquire(&a->source, bytes, CHUNK_ALIGN);
	if (chunk == NULL)
		return NULL;
	a->taken_bytes += bytes;
	a->refills++;
	open_chunk(chunk, bytes, HEAD_BYTES);
	count_chunk(a, chunk);
	return chunk;
}

/* The same; a scope at a limit may have a smaller one. */
static inline tn_arena_chunk *take_chunk_at_last(tn_arena *a, size_t bytes, size_t least_bytes) {
	tn_arena_chunk *chunk = take_chunk(a, bytes, least_bytes);
	size_t least = tn_round_up(least_bytes, TN_OS_PAGE);
	while (chunk == NULL && bytes > least && tn_is_at_limit(&a->source)) {
		bytes = bytes / 2 > least ? tn_round_up(bytes / 2, TN_OS_PAGE) : least;
		chunk = take_chunk(a, bytes, least_bytes);
	}
	return chunk;
}

static inline size_t give_back_chunk(tn_arena *a, tn_arena_chunk *chunk) {
	size_t bytes = chunk->bytes;
	a->taken_bytes -= bytes;
	a->chunk_count--;
	a->reserved_bytes -= chunk_reserved(a, chunk);
	tn_permit(chunk, (size_t)(chunk->limit - (char *)chunk));
	if (a->reserve_bytes != 0 && chunk == a->first) {
		tn_os_release(chunk, a->reserve_bytes);
		return bytes;
	}
	tn_wipe(chunk, (size_t)(chunk->used - (char *)chunk));
	tn_chunk_release(&a->source, chunk, bytes, CHUNK_ALIGN);
	return bytes;
}

/* Cuts the chain behind `chunk`, which stays, and gives the rest back. */
static inline size_t give_back_after(tn_arena *a, tn_arena_chunk *chunk) {
	size_t bytes = 0;
	tn_arena_chunk *next = chunk->next;
	chunk->next = NULL;
	while (next != NULL) {
		tn_arena_chunk *after = next->next;
		bytes += give_back_chunk(a, next);
		next = after;
	}
	return bytes;
}

static inline void give_back_large(tn_arena *a, const tn_arena_chunk *until) {
	while (a->large != until) {
		tn_arena_chunk *next = a->large->next;
		a->large_bytes -= (size_t)(a->large->used - a->large->begin);
		a->taken_large_bytes -= a->large->bytes;
		a->large_count--;
		give_back_chunk(a, a->large);
		a->large = next;
	}
}

static inline void append_chunk(tn_arena *a, tn_arena_chunk *chunk) {
	chunk->previous = a->current;
	if (a->current == NULL)
		a->first = chunk;
	else
		a->current->next = chunk;
}

#endif
