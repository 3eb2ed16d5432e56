/* An arena's figures: for its own thread, and for readers on others (listing.h). */
#ifndef TENURE_ARENA_FIGURES_H
#define TENURE_ARENA_FIGURES_H

#include "modes.h"
#include "owned.h"
#include "pages.h"
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

/* In the chain, what blocks can have in chunks that were taken: not in large blocks', heads, the arena's
 * own storage, and the caller's buffer. */
static inline size_t room_bytes(const tn_arena *a) {
	bool home_in_chain = a->home != NULL && a->home == a->first;
	bool home_apart = a->home != NULL && !home_in_chain;
	size_t beside = home_apart ? a->home->bytes : home_in_chain ? SELF_BYTES : 0;
	size_t heads = (a->chunk_count - a->large_count - home_apart) * HEAD_BYTES;
	return a->taken_bytes - a->taken_large_bytes - beside - heads;
}

static inline void read_figures(const tn_arena *a, tn_stats *stats) {
	bool buffered = a->first == &a->buffer;
	size_t in_buffer = buffered ? (size_t)(end_of_use(a, &a->buffer) - a->buffer.begin) : 0;
	size_t live = live_bytes(a);
	*stats = (tn_stats){.live_bytes = live,
		.cached_bytes = room_bytes(a) - (live - a->large_bytes - in_buffer),
		.reserved_bytes = a->reserved_bytes,
		.committed_bytes = a->taken_bytes,
		.peak_bytes = peak_bytes(a),
		.chunk_count = a->chunk_count + buffered,
		.refills = a->refills,
		.resets = a->resets};
}

static inline void publish_arena(const tn_arena *a) {
	tn_stats stats;
	read_figures(a, &stats);
	tn_position from = {0, 0};
	if (a->current != NULL)
		from = (tn_position){(size_t)a->current->begin, (size_t)(a->limit - a->current->begin)};
	/* Up to the chunk that the cursor is in; in the caller's buffer nothing was ever cached. */
	size_t here = a->current == NULL ? 0 : (size_t)(a->cursor - a->current->begin);
	stats.live_bytes -= here;
	if (a->current != &a->buffer)
		stats.cached_bytes += here;
	else
		from.room |= 1;
	tn_publish(a->node, &stats, from);
}

static inline TN_RACY void look_at_arena(const void *object, tn_position from, tn_listed *listed) {
	const tn_arena *a = object;
	tn_stats *stats = &listed->stats;
	size_t here = (size_t) * (char *const volatile *)&a->cursor - from.at;
	stats->resets = *(const volatile uint64_t *)&a->resets;
	if (here > (from.room & ~(size_t)1))
		return;
	stats->live_bytes += here;
	if ((from.room & 1) == 0)
		stats->cached_bytes -= here;
	if (stats->live_bytes > stats->peak_bytes)
		stats->peak_bytes = stats->live_bytes;
}

static inline void end_listed_arena(void *a) {
	tn_arena_destroy(a);
}

static inline size_t trim_listed_arena(void *a) {
	return tn_arena_trim(a);
}

static inline void read_listed_arena(const void *a, tn_stats *stats) {
	tn_arena_stats(a, stats);
}

static inline bool verify_listed_arena(const void *a) {
	return tn_arena_verify(a);
}

static const tn_node_kind arena_kind = {TN_KIND_ARENA, look_at_arena, end_listed_arena,
	trim_listed_arena, read_listed_arena, verify_listed_arena};

#endif
