/* An arena's figures: for its own thread, and for readers on others (listing.h). */
#ifndef TENURE_ARENA_FIGURES_H
#define TENURE_ARENA_FIGURES_H

#include "../base/modes.h"
#include "../pages/pages.h"
#include "arena.h"
#include "range.h"

enum { CHUNK_ALIGN = 16 };
#define SELF_BYTES ((sizeof(tn_arena) + 15) & ~(size_t)15)

static inline char *end_of_use(const tn_arena *a, const tn_arena_chunk *chunk) {
	return chunk == a->current ? a->cursor : chunk->used;
}

static inline size_t live_bytes(const tn_arena *a) {
	size_t in_current = a->current == NULL ? 0 : (size_t)(a->cursor - a->current->begin);
	return a->before_bytes + in_current + a->large_bytes;
}

/* Address space that a chunk holds. */
static inline size_t chunk_reserved(const tn_arena *a, const tn_arena_chunk *c) {
	if (a->reserve_bytes != 0 && c == a->first)
		return a->reserve_bytes;
	return tn_is_paged(&a->source) ? tn_pages_reserved(c->bytes, CHUNK_ALIGN) : c->bytes;
}

static inline void count_chunk(tn_arena *a, const tn_arena_chunk *c) {
	a->chunk_count++;
	a->reserved_bytes += chunk_reserved(a, c);
}

static inline size_t peak_bytes(const tn_arena *a) {
	size_t live = live_bytes(a);
	size_t before = a->restart == NULL ? 0 : (size_t)(a->highest - a->restart);
	size_t peak = live > before ? live : before;
	return peak > a->peak_bytes ? peak : a->peak_bytes;
}

/* In the chain, what blocks can have in chunks that were taken: not in large blocks', heads, the
 * arena's own storage, and the caller's buffer. */
static inline size_t room_bytes(const tn_arena *a) {
	bool home_in_chain = a->home != NULL && a->home == a->first;
	bool home_apart = a->home != NULL && !home_in_chain;
	size_t beside = home_apart ? a->home->bytes : home_in_chain ? SELF_BYTES : 0;
	size_t heads = (a->chunk_count - a->large_count - home_apart) * HEAD_BYTES;
	return a->taken_bytes - a->taken_large_bytes - beside - heads;
}

/* The plain ones; the name and the others are left alone. */
static inline void read_figures(const tn_arena *a, tn_stats *stats) {
	bool buffered = a->first == &a->buffer;
	size_t in_buffer = buffered ? (size_t)(end_of_use(a, &a->buffer) - a->buffer.begin) : 0;
	stats->live_bytes = live_bytes(a);
	stats->live_count = stats->partial_count = 0;
	stats->cached_bytes = room_bytes(a) - (stats->live_bytes - a->large_bytes - in_buffer);
	stats->reserved_bytes = a->reserved_bytes;
	stats->committed_bytes = a->taken_bytes;
	stats->peak_bytes = peak_bytes(a);
	stats->chunk_count = a->chunk_count + buffered;
	stats->refills = a->refills;
	stats->resets = a->resets;
}

/* The time is a system's call: the first chunk of a scope goes without. */
static inline void note_arena_time(const tn_arena *a) {
	size_t since = tn_get(&a->node->since_ms, TN_RELAXED);
	bool reset = tn_get(&a->node->seen_resets, TN_RELAXED) != (size_t)a->resets;
	if (reset || (since == 0 && (a->refills > 1 || a->home != NULL)))
		tn_list_begin_age(a->node, a->resets);
}

/* Up to the chunk that the cursor is in; in the caller's buffer nothing was ever cached. */
static inline void publish_arena(const tn_arena *a) {
	tn_stats stats;
	read_figures(a, &stats);
	tn_position from = {0, 0};
	if (a->current != NULL) {
		size_t here = (size_t)(a->cursor - a->current->begin);
		bool in_buffer = a->current == &a->buffer;
		from.at = (size_t)a->current->begin;
		from.room = (size_t)(a->limit - a->current->begin) | in_buffer;
		stats.live_bytes -= here;
		stats.cached_bytes += in_buffer ? 0 : here;
	}
	note_arena_time(a);
	tn_node *n = a->node;
	tn_node_begin_write(n);
	tn_set(&n->figures[0], from.at, TN_RELEASE);
	tn_set(&n->figures[1], from.room, TN_RELEASE);
	TN_FIGURE_SET(n, live_bytes, stats.live_bytes);
	TN_FIGURE_SET(n, live_count, 0);
	TN_FIGURE_SET(n, cached_bytes, stats.cached_bytes);
	TN_FIGURE_SET(n, reserved_bytes, stats.reserved_bytes);
	TN_FIGURE_SET(n, committed_bytes, stats.committed_bytes);
	TN_FIGURE_SET(n, peak_bytes, stats.peak_bytes);
	TN_FIGURE_SET(n, chunk_count, stats.chunk_count);
	TN_FIGURE_SET(n, partial_count, 0);
	TN_FIGURE_SET_64(n, refills, stats.refills);
	TN_FIGURE_SET_64(n, resets, stats.resets);
	tn_node_end_write(n);
}

TN_RACY void tn_arena_look(const tn_arena *a, tn_position from, tn_listed *listed) {
	tn_stats *stats = &listed->stats;
	size_t here = (size_t)*(char *const volatile *)&a->cursor - from.at;
	stats->resets = *(const volatile uint64_t *)&a->resets;
	if (here > (from.room & ~(size_t)1))
		return;
	stats->live_bytes += here;
	if ((from.room & 1) == 0)
		stats->cached_bytes -= here;
	if (stats->live_bytes > stats->peak_bytes)
		stats->peak_bytes = stats->live_bytes;
}

static void look_at_arena(const void *a, tn_position from, tn_listed *listed) {
	tn_arena_look(a, from, listed);
}

static void arena_end_owned(void *object) {
	tn_arena_destroy(object);
}

TN_OWNED_KIND(arena_kind, arena, TN_KIND_ARENA, TN_FIGURES_PLAIN, look_at_arena, arena_end_owned);

#endif
