/* The arena: a cursor in a chain of chunks. It cannot free a block, and the bytes that realloc leaves
 * behind stay until the reset; in exchange alloc is an addition. Cites Hanson 1990.
 *
 *   alloc (inline)              cursor aligned and room left: move it
 *   `- alloc_slow               hardened and debug; else align and move the cursor
 *      `- arena_refill
 *         |- alloc_in_range     the next part of a reserved range
 *         |- alloc_large        a block over a quarter of the next chunk, with a chunk of its own
 *         `- alloc_in_next      a spare chunk, or one from the source
 *
 * The chain is first .. current .. last; the chunks behind current are spare. Figures are derived from
 * it.
 *
 * I1  cursor is a multiple of 8, limit one of 16, and current->begin <= cursor <= limit.
 * I2  a block occupies at least 16 bytes and its size rounded up to 8, or to 16 when its alignment is
 *     16 or more. So for a block p of `size` the cursor can be at p + round8(size) or p + round16(size)
 *     only while p is the last block: any later one would have moved it by 16 or more past round8.
 * I3  taken_bytes is the sum of `bytes` over the chain, the large blocks, and home where it is apart;
 *     the counts and the bytes before current add up likewise.
 * I4  debug: `newest` links the records of all live blocks, each followed by its block and a fence.
 * I5  restart is the first chunk's begin where a reset only has to move the cursor there, else NULL. */
#include <tenure/arena.h>

#include <errno.h>
#include <stdio.h>

#include "../base/probes.h"
#include "arena.h"
#include "blocks.h"

#define ARENA_CHUNK_BYTES ((size_t)64 << 10)
#define ARENA_CHUNK_BYTES_MAX ((size_t)2 << 20)
enum { CHUNK_ALIGN = 16 };
/* A chunk begins with its head; the one that an arena lies in goes on with the arena. */
#define HEAD_BYTES ((sizeof(tn_arena_chunk) + 15) & ~(size_t)15)
#define SELF_BYTES ((sizeof(tn_arena) + 15) & ~(size_t)15)
/* Around a block, in debug. */
#define LEAD_BYTES (TN_MODE == TN_MODE_DEBUG ? sizeof(block_record) : 0)
#define TRAIL_BYTES (TN_MODE == TN_MODE_DEBUG ? (size_t)TN_FENCE_BYTES : 0)
/* Larger sizes are refused at once: below it, no sum of sizes in this file wraps. */
#define SIZE_MAX_SERVED ((size_t)PTRDIFF_MAX - 4 * TN_ALIGN_MAX)

/* ---- one caller at a time ---- */

static void arena_enter(tn_arena *a, const char *operation) {
	if (TN_MODE != TN_MODE_RELEASE && a->state != TN_ALIVE)
		tn_panic("arena", NULL, "%s: %p is not a live arena", operation, (void *)a);
	tn_enter(&a->busy, a->kind, a->name, operation);
}

static void arena_look(const tn_arena *a, const char *operation) {
	tn_look(&a->busy, a->kind, a->name, operation);
}

/* ---- figures ---- */

static char *arena_used_end(const tn_arena *a, const tn_arena_chunk *chunk) {
	return chunk == a->current ? a->cursor : chunk->used;
}

static size_t arena_live_bytes(const tn_arena *a) {
	size_t in_current = a->current == NULL ? 0 : (size_t)(a->cursor - a->current->begin);
	return a->before_bytes + in_current + a->large_bytes;
}

/* Address space of a chunk. */
static size_t arena_reserved_of(const tn_arena *a, const tn_arena_chunk *c) {
	if (a->reserve_bytes != 0 && c == a->first)
		return a->reserve_bytes;
	return tn_chunk_is_paged(&a->source) ? tn_pages_reserved(c->bytes, CHUNK_ALIGN) : c->bytes;
}

static void arena_count_chunk(tn_arena *a, const tn_arena_chunk *c) {
	a->chunk_count++;
	a->reserved_bytes += arena_reserved_of(a, c);
}

static size_t arena_peak_bytes(const tn_arena *a) {
	size_t live = arena_live_bytes(a);
	size_t before = a->restart == NULL ? 0 : (size_t)(a->highest - a->restart);
	return tn_max(tn_max(live, before), a->peak_bytes);
}

/* Room for blocks in the chunks of the chain that were taken: without large blocks, heads, the arena
 * itself, and the caller's buffer. */
static size_t arena_room_bytes(const tn_arena *a) {
	bool home_in_chain = a->home != NULL && a->home == a->first;
	bool home_apart = a->home != NULL && !home_in_chain;
	size_t beside = home_apart ? a->home->bytes : home_in_chain ? SELF_BYTES : 0;
	size_t heads = (a->chunk_count - a->large_count - home_apart) * HEAD_BYTES;
	return a->taken_bytes - a->taken_large_bytes - beside - heads;
}

/* Writes the figures that an arena has; the name and the other figures stay as they are. */
static void arena_read(const tn_arena *a, tn_stats *stats) {
	bool buffered = a->first == &a->buffer;
	size_t in_buffer = buffered ? (size_t)(arena_used_end(a, &a->buffer) - a->buffer.begin) : 0;
	stats->live_bytes = arena_live_bytes(a);
	stats->live_count = stats->partial_count = 0;
	stats->cached_bytes = arena_room_bytes(a) - (stats->live_bytes - a->large_bytes - in_buffer);
	stats->reserved_bytes = a->reserved_bytes;
	stats->committed_bytes = a->taken_bytes;
	stats->peak_bytes = arena_peak_bytes(a);
	stats->chunk_count = a->chunk_count + buffered;
	stats->refills = a->refills;
	stats->resets = a->resets;
}

/* Reading the clock is a system call, which the first chunk of a scope does without. */
static void arena_begin_age(const tn_arena *a) {
	size_t since = tn_get(&a->node->since_ms, TN_RELAXED);
	bool reset = tn_get(&a->node->seen_resets, TN_RELAXED) != (size_t)a->resets;
	if (reset || (since == 0 && (a->refills > 1 || a->home != NULL)))
		tn_list_begin_age(a->node, a->resets);
}

/* Publishes the figures up to the current chunk; readers add what the cursor has passed in it. The
 * caller's buffer never counted as cached. */
static void arena_publish(const tn_arena *a) {
	tn_stats stats;
	arena_read(a, &stats);
	tn_position from = {0, 0};
	if (a->current != NULL) {
		size_t here = (size_t)(a->cursor - a->current->begin);
		bool in_buffer = a->current == &a->buffer;
		from.at = (size_t)a->current->begin;
		from.room = (size_t)(a->limit - a->current->begin) | in_buffer;
		stats.live_bytes -= here;
		stats.cached_bytes += in_buffer ? 0 : here;
	}
	arena_begin_age(a);
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

TN_RACY void tn_arena_look(const void *object, tn_position from, tn_listed *listed) {
	const tn_arena *a = object;
	tn_stats *stats = &listed->stats;
	size_t here = (size_t)*(char *const volatile *)&a->cursor - from.at;
	stats->resets = *(const volatile uint64_t *)&a->resets;
	if (here > (from.room & ~(size_t)1))
		return;
	stats->live_bytes += here;
	if ((from.room & 1) == 0)
		stats->cached_bytes -= here;
	stats->peak_bytes = tn_max(stats->peak_bytes, stats->live_bytes);
}

static void arena_end_owned(void *object) {
	tn_arena_destroy(object);
}

TN_OWNED_KIND(arena_kind, arena, TN_KIND_ARENA, TN_FIGURES_PLAIN, tn_arena_look, arena_end_owned);

/* ---- chunks ---- */

static void arena_set_current(tn_arena *a, tn_arena_chunk *chunk, char *cursor) {
	a->current = chunk;
	a->cursor = cursor;
	a->limit = chunk == NULL ? NULL : chunk->limit;
}

static void arena_sample_peak(tn_arena *a) {
	a->peak_bytes = arena_peak_bytes(a);
}

/* Sets restart (I5). */
static void arena_set_restart(tn_arena *a) {
	const tn_arena_chunk *first = a->first;
	bool simple = first != NULL && a->current == first && first->next == NULL && a->large == NULL;
	a->restart = a->highest = simple && a->reserve_bytes == 0 ? first->begin : NULL;
}

/* After every change of chunks, and where the cursor went back: brings up to date what depends on
 * them. */
static void arena_settle(tn_arena *a) {
	arena_sample_peak(a);
	arena_set_restart(a);
	if (a->node != NULL)
		arena_publish(a);
}

/* Writes the head of a new chunk, whose blocks begin `head` bytes into it. */
static tn_arena_chunk *arena_open_chunk(tn_arena_chunk *chunk, size_t bytes, size_t head) {
	char *base = (char *)chunk;
	*chunk = (tn_arena_chunk){
		.bytes = bytes, .begin = base + head, .limit = base + bytes, .used = base + head};
	return chunk;
}

/* Takes a chunk of `bytes`, or of the bytes that the limit leaves if these are `least_bytes` or
 * more. */
static tn_arena_chunk *arena_take_chunk(tn_arena *a, size_t bytes, size_t least_bytes) {
	bytes = tn_min(bytes, (a->limit_bytes - a->taken_bytes) & ~(size_t)15);
	if (bytes < least_bytes)
		return errno = ENOMEM, NULL;
	tn_arena_chunk *chunk = tn_chunk_acquire(&a->source, bytes, CHUNK_ALIGN);
	if (chunk == NULL)
		return NULL;
	a->taken_bytes += bytes;
	a->refills++;
	arena_open_chunk(chunk, bytes, HEAD_BYTES);
	arena_count_chunk(a, chunk);
	return chunk;
}

/* The same; below the limit of a scope, a smaller chunk may do. */
static tn_arena_chunk *arena_take_chunk_at_limit(tn_arena *a, size_t bytes, size_t least_bytes) {
	tn_arena_chunk *chunk = arena_take_chunk(a, bytes, least_bytes);
	size_t least = tn_round_up(least_bytes, TN_OS_PAGE);
	while (chunk == NULL && bytes > least && tn_chunk_is_at_limit(&a->source)) {
		bytes = bytes / 2 > least ? tn_round_up(bytes / 2, TN_OS_PAGE) : least;
		chunk = arena_take_chunk(a, bytes, least_bytes);
	}
	return chunk;
}

static size_t arena_give_chunk(tn_arena *a, tn_arena_chunk *chunk) {
	size_t bytes = chunk->bytes;
	a->taken_bytes -= bytes;
	a->chunk_count--;
	a->reserved_bytes -= arena_reserved_of(a, chunk);
	tn_permit(chunk, (size_t)(chunk->limit - (char *)chunk));
	if (a->reserve_bytes != 0 && chunk == a->first) {
		tn_os_release(chunk, a->reserve_bytes);
		return bytes;
	}
	if (!tn_chunk_is_alone(&a->source, bytes))
		tn_wipe(chunk, (size_t)(chunk->used - (char *)chunk));
	tn_chunk_release(&a->source, chunk, bytes, CHUNK_ALIGN);
	return bytes;
}

/* Cuts the chain behind `chunk` and gives the chunks behind it back. */
static size_t arena_give_after(tn_arena *a, tn_arena_chunk *chunk) {
	size_t bytes = 0;
	tn_arena_chunk *next = chunk->next;
	chunk->next = NULL;
	while (next != NULL) {
		tn_arena_chunk *after = next->next;
		bytes += arena_give_chunk(a, next);
		next = after;
	}
	return bytes;
}

static size_t arena_give_chain(tn_arena *a) {
	size_t bytes = arena_give_after(a, a->first);
	bytes += arena_give_chunk(a, a->first);
	a->first = NULL;
	arena_set_current(a, NULL, NULL);
	return bytes;
}

static void arena_give_large(tn_arena *a, const tn_arena_chunk *until) {
	while (a->large != until) {
		tn_arena_chunk *next = a->large->next;
		a->large_bytes -= (size_t)(a->large->used - a->large->begin);
		a->taken_large_bytes -= a->large->bytes;
		a->large_count--;
		arena_give_chunk(a, a->large);
		a->large = next;
	}
}

static void arena_link_chunk(tn_arena *a, tn_arena_chunk *chunk) {
	chunk->previous = a->current;
	if (a->current == NULL)
		a->first = chunk;
	else
		a->current->next = chunk;
}

/* ---- the reserved range ---- */

/* Commits at least up to `end` bytes of the range. */
static bool arena_commit(tn_arena *a, char *range, size_t committed, size_t end) {
	size_t left = (a->limit_bytes - a->taken_bytes) & ~(TN_OS_PAGE - 1);
	size_t step = tn_min(tn_max(committed, ARENA_CHUNK_BYTES), ARENA_CHUNK_BYTES_MAX);
	size_t wanted = tn_max(tn_round_up(end, TN_OS_PAGE), committed + step);
	wanted = tn_min(wanted, tn_min(committed + left, a->reserve_bytes));
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

static tn_arena_chunk *arena_take_range(tn_arena *a) {
	size_t align = a->reserve_bytes >= ARENA_CHUNK_BYTES_MAX ? ARENA_CHUNK_BYTES_MAX : TN_OS_PAGE;
	char *range = tn_os_reserve(a->reserve_bytes, align);
	if (range == NULL)
		return NULL;
	if (!arena_commit(a, range, 0, HEAD_BYTES + 16)) {
		tn_os_release(range, a->reserve_bytes);
		return NULL;
	}
	tn_arena_chunk *chunk = (tn_arena_chunk *)range;
	chunk->next = chunk->previous = NULL;
	chunk->begin = chunk->used = range + HEAD_BYTES;
	return chunk;
}

/* Decommits the range from `keep` bytes on. */
static size_t arena_shrink_range(tn_arena *a, size_t keep) {
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

/* ---- alloc ---- */

/* Bytes that a block of `size` occupies at least, before rounding (I2). */
static size_t arena_block_bytes(size_t size) {
	return tn_max(size, 9) + TRAIL_BYTES;
}

/* The start of a block in [cursor, limit) and, in `*end`, the cursor behind it; NULL when it does not
 * fit. `size` includes the trailing fence. */
static char *arena_fit(const char *cursor, const char *limit, size_t size, size_t align, char **end) {
	size_t avail = (size_t)(limit - cursor);
	uintptr_t start = (uintptr_t)cursor + LEAD_BYTES;
	size_t pad = LEAD_BYTES + (-start & (align - 1));
	if (cursor == NULL || pad > avail || size > avail - pad)
		return NULL;
	char *p = (char *)(uintptr_t)cursor + pad;
	*end = p + tn_round_up(size, align < 16 ? 8 : 16);
	return p;
}

static char *arena_bump(tn_arena *a, size_t size, size_t align) {
	char *end;
	char *p = arena_fit(a->cursor, a->limit, size, align, &end);
	if (p != NULL)
		a->cursor = end;
	return p;
}

static char *arena_alloc_large(tn_arena *a, size_t size, size_t align) {
	size_t exact = HEAD_BYTES + LEAD_BYTES + tn_round_up(size, 16) + (align > CHUNK_ALIGN ? align : 0);
	tn_arena_chunk *chunk = arena_take_chunk(a, tn_round_up(exact, TN_OS_PAGE), exact);
	if (chunk == NULL)
		return NULL;
	char *p = arena_fit(chunk->begin, chunk->limit, size, align, &chunk->used);
	chunk->begin = p - LEAD_BYTES;
	chunk->next = a->large;
	a->large = chunk;
	a->large_bytes += (size_t)(chunk->used - chunk->begin);
	a->taken_large_bytes += chunk->bytes;
	a->large_count++;
	return p;
}

static size_t arena_next_bytes(const tn_arena *a) {
	size_t largest = 0;
	for (const tn_arena_chunk *c = a->current; c != NULL && largest < a->chunk_bytes_max;
		c = c->previous)
		largest = tn_max(largest, c->bytes);
	if (largest < a->chunk_bytes)
		return a->chunk_bytes;
	return largest > a->chunk_bytes_max / 2 ? a->chunk_bytes_max : largest * 2;
}

/* Allocates in the next chunk of the chain, which becomes current. */
static char *arena_alloc_in_next(tn_arena *a, size_t size, size_t align) {
	tn_arena_chunk *chunk = a->current == NULL ? a->first : a->current->next;
	char *end;
	if (chunk == NULL) {
		size_t need =
			HEAD_BYTES + LEAD_BYTES + tn_round_up(size, 16) + (align > CHUNK_ALIGN ? align : 0);
		chunk = arena_take_chunk_at_limit(a, arena_next_bytes(a), need);
		if (chunk == NULL)
			return NULL;
		arena_link_chunk(a, chunk);
	}
	char *p = arena_fit(chunk->begin, chunk->limit, size, align, &end);
	if (p == NULL)
		return a->fixed ? (errno = ENOMEM, NULL) : arena_alloc_large(a, size, align);
	if (a->current != NULL) {
		a->current->used = a->cursor;
		a->before_bytes += (size_t)(a->cursor - a->current->begin);
	}
	arena_set_current(a, chunk, end);
	return p;
}

static char *arena_alloc_in_range(tn_arena *a, size_t size, size_t align) {
	if (a->first == NULL) {
		a->first = arena_take_range(a);
		if (a->first == NULL)
			return NULL;
		arena_count_chunk(a, a->first);
		arena_set_current(a, a->first, a->first->begin);
	}
	char *range = (char *)a->first;
	char *end;
	char *p = arena_fit(a->cursor, range + a->reserve_bytes, size, align, &end);
	if (p == NULL)
		return errno = ENOMEM, NULL;
	if (end > a->limit && !arena_commit(a, range, a->first->bytes, (size_t)(end - range)))
		return NULL;
	a->limit = a->first->limit;
	a->cursor = end;
	return p;
}

static char *arena_refill(tn_arena *a, size_t size, size_t align) {
	if (a->reserve_bytes != 0)
		return arena_alloc_in_range(a, size, align);
	const tn_arena_chunk *spare = a->current == NULL ? a->first : a->current->next;
	/* A fixed arena takes one chunk, and that only where tn_arena_init left it without. */
	if (a->fixed)
		return a->current != NULL ? (errno = ENOMEM, NULL) : arena_alloc_in_next(a, size, align);
	size_t next_bytes = spare != NULL ? spare->bytes : arena_next_bytes(a);
	size_t share = a->current == NULL ? next_bytes - HEAD_BYTES - LEAD_BYTES : next_bytes / 4;
	if (size + align > share)
		return arena_alloc_large(a, size, align);
	return arena_alloc_in_next(a, size, align);
}

static void *arena_alloc(tn_arena *a, size_t size, size_t align, const void *site) {
	if ((align & (align - 1)) != 0 || align > TN_ALIGN_MAX)
		return errno = EINVAL, NULL;
	if (size > SIZE_MAX_SERVED)
		return errno = ENOMEM, NULL;
	size_t whole = arena_block_bytes(size);
	char *p = arena_bump(a, whole, align);
	if (TN_UNLIKELY(p == NULL)) {
		p = arena_refill(a, whole, align);
		arena_settle(a);
	}
	return block_make(a, p, size, site);
}

/* At the end of a call: does the trim that another thread asked for. An arena with chunks to give back
 * comes here with each reset, because it has no `restart`. */
static inline void arena_obey(tn_arena *a) {
	uint32_t trims = tn_get(&tn_list_trims, TN_RELAXED);
	if (TN_LIKELY(a->trims == trims))
		return;
	a->trims = trims;
	tn_arena_trim(a);
	tn_pages_trim();
}

void *tn_arena_alloc_for(tn_arena *a, size_t size, size_t align, const void *site) {
	arena_enter(a, "alloc");
	void *p = arena_alloc(a, size, align == 0 ? 16 : align, site);
	tn_leave(&a->busy);
	int error = errno;
	arena_obey(a);
	errno = error;
	return p;
}

void *tn_arena_alloc_slow(tn_arena *a, size_t size, size_t align) {
	return tn_arena_alloc_for(a, size, align, TN_CALLER);
}

/* Whether p, which was allocated just now, is alone in a mapping of its own. */
static bool arena_is_alone(const tn_arena *a, const char *p) {
	const tn_arena_chunk *c = a->large;
	return c != NULL && (uintptr_t)p >= (uintptr_t)c->begin && (uintptr_t)p < (uintptr_t)c->limit &&
	       tn_chunk_is_alone(&a->source, c->bytes);
}

void *tn_arena_alloc_zeroed_slow(tn_arena *a, size_t count, size_t size, size_t align) {
	bool wraps = count > (size_t)PTRDIFF_MAX / size;
	size_t bytes = wraps ? SIZE_MAX : count * size;
	void *p = tn_arena_alloc_for(a, bytes, align, TN_CALLER);
	if (p == NULL)
		return NULL;
	if (!arena_is_alone(a, p))
		return memset(p, 0, bytes);
	/* Debug has filled the first part. */
	return TN_MODE == TN_MODE_DEBUG ? memset(p, 0, tn_min(bytes, TN_FILL_BYTES_MAX)) : p;
}

/* ---- the last block ---- */

static bool arena_is_between(const char *p, const char *begin, const char *end) {
	return (uintptr_t)p >= (uintptr_t)begin && (uintptr_t)p < (uintptr_t)end;
}

/* Whether p lies in memory that was handed out. */
static bool arena_has(const tn_arena *a, const void *p) {
	for (const tn_arena_chunk *c = a->current; c != NULL; c = c->previous)
		if (arena_is_between(p, c->begin, arena_used_end(a, c)))
			return true;
	for (const tn_arena_chunk *c = a->large; c != NULL; c = c->next)
		if (arena_is_between(p, c->begin, c->used))
			return true;
	return false;
}

static void arena_check_size(const tn_arena *a, const char *p, size_t size, const char *operation) {
	if (TN_MODE == TN_MODE_DEBUG)
		block_check_size(
			a, p, size, arena_has(a, (const void *)((uintptr_t)p - sizeof(block_record))), operation);
}

/* Whether p is the last block of the current chunk (I2). */
static bool arena_is_last(const tn_arena *a, const char *p, size_t size) {
	if (TN_MODE == TN_MODE_DEBUG && a->newest != (const block_record *)(const void *)p - 1)
		return false;
	/* A block of another chunk may end where this chunk begins. */
	if (a->current == NULL || (uintptr_t)p < (uintptr_t)a->current->begin ||
		(uintptr_t)p >= (uintptr_t)a->cursor)
		return false;
	size_t whole = arena_block_bytes(size);
	return a->cursor == p + tn_round_up(whole, 8) || a->cursor == p + tn_round_up(whole, 16);
}

/* Moves `*end`, the end of the block p, from old_size to new_size; false when it would pass `limit`. */
static bool arena_move_end(char *p, char **end, const char *limit, size_t old_size, size_t new_size) {
	size_t grain = *end == p + tn_round_up(arena_block_bytes(old_size), 16) ? 16 : 8;
	size_t whole = arena_block_bytes(new_size);
	if (whole > (size_t)(limit - p) || tn_round_up(whole, grain) > (size_t)(limit - p))
		return false;
	*end = p + tn_round_up(whole, grain);
	return true;
}

static bool arena_resize_last(tn_arena *a, char *p, size_t old_size, size_t new_size) {
	if (arena_is_last(a, p, old_size))
		return arena_move_end(p, &a->cursor, a->limit, old_size, new_size);
	tn_arena_chunk *chunk = a->large;
	if (chunk == NULL || p < chunk->begin || p >= chunk->limit)
		return false;
	char *end = chunk->used;
	if (!arena_move_end(p, &chunk->used, chunk->limit, old_size, new_size))
		return false;
	a->large_bytes = a->large_bytes - (size_t)(end - p) + (size_t)(chunk->used - p);
	return true;
}

static bool arena_resize(tn_arena *a, void *p, size_t old_size, size_t new_size) {
	if (new_size > SIZE_MAX_SERVED)
		return false;
	/* A block that shrinks stays where it is, even if its tail cannot be used again. */
	if (!arena_resize_last(a, p, old_size, new_size) && new_size > old_size)
		return false;
	block_set_size(p, new_size);
	return true;
}

bool tn_arena_resize(tn_arena *a, void *p, size_t old_size, size_t new_size) {
	arena_enter(a, "resize");
	arena_check_size(a, p, old_size, "resize");
	bool resized = arena_resize(a, p, old_size, new_size);
	tn_leave(&a->busy);
	return resized;
}

static void *arena_realloc(
	tn_arena *a, void *p, size_t old_size, size_t new_size, size_t align, const void *site) {
	align = align == 0 ? 16 : align;
	bool aligned = (align & (align - 1)) == 0 && ((uintptr_t)p & (align - 1)) == 0;
	if (p != NULL && aligned && align <= TN_ALIGN_MAX) {
		arena_check_size(a, p, old_size, "realloc");
		if (arena_resize(a, p, old_size, new_size))
			return p;
	}
	void *moved = arena_alloc(a, new_size, align, site);
	if (moved != NULL && p != NULL)
		memcpy(moved, p, tn_min(old_size, new_size));
	return moved;
}

void *tn_arena_realloc(tn_arena *a, void *p, size_t old_size, size_t new_size, size_t align) {
	arena_enter(a, "realloc");
	void *resized = arena_realloc(a, p, old_size, new_size, align, TN_CALLER);
	tn_leave(&a->busy);
	return resized;
}

void *tn_arena_copy_for(tn_arena *a, const void *p, size_t size, const void *site) {
	arena_enter(a, "copy");
	void *copy = arena_alloc(a, size, 1, site);
	if (copy != NULL && size != 0)
		memcpy(copy, p, size);
	tn_leave(&a->busy);
	return copy;
}

void *tn_arena_copy(tn_arena *a, const void *p, size_t size) {
	return tn_arena_copy_for(a, p, size, TN_CALLER);
}

/* Prints straight into the room that is left; a text that does not fit there is printed twice. */
static char *arena_print(tn_arena *a, const char *format, va_list arguments, const void *site) {
	va_list again;
	va_copy(again, arguments);
	/* In the other modes the room above the cursor counts as wiped or fenced. */
	bool direct = a->cursor != NULL && TN_MODE == TN_MODE_RELEASE;
	char *first = direct ? a->cursor : NULL;
	size_t room = direct ? (size_t)(a->limit - first) : 0;
	int length = vsnprintf(first, room, format, arguments);
	char *text = NULL;
	if (length < 0)
		errno = EINVAL;
	else
		text = arena_alloc(a, (size_t)length + 1, 1, site);
	if (text != NULL && (text != first || (size_t)length >= room))
		vsnprintf(text, (size_t)length + 1, format, again);
	va_end(again);
	return text;
}

char *tn_arena_print_for(tn_arena *a, const char *format, va_list arguments, const void *site) {
	arena_enter(a, "printf");
	char *text = arena_print(a, format, arguments, site);
	tn_leave(&a->busy);
	return text;
}

char *tn_arena_printf(tn_arena *a, const char *format, ...) {
	va_list arguments;
	va_start(arguments, format);
	char *text = tn_arena_print_for(a, format, arguments, TN_CALLER);
	va_end(arguments);
	return text;
}

/* ---- mark and rewind ---- */

/* Debug: the record of the block that a large block's chunk holds. */
static block_record *block_of_large(const tn_arena_chunk *chunk) {
	return (block_record *)(void *)chunk->begin;
}

tn_checkpoint tn_arena_mark(tn_arena *a) {
	arena_enter(a, "mark");
	tn_checkpoint now = {.arena = a,
		.chunk = a->current,
		.large = a->large,
		.newest = a->newest,
		.cursor = a->cursor,
		.resets = a->resets,
		.depth = ++a->depth};
	if (a->large != NULL)
		now.large_used = a->large->used;
	if (TN_MODE == TN_MODE_DEBUG && a->newest != NULL)
		now.newest_size = ((const block_record *)a->newest)->size;
	if (TN_MODE == TN_MODE_DEBUG && a->large != NULL)
		now.large_size = block_of_large(a->large)->size;
	tn_leave(&a->busy);
	return now;
}

static bool arena_is_stale(const tn_arena *a, const tn_checkpoint *to) {
	if (to->resets != a->resets || to->depth > a->depth)
		return true;
	const tn_arena_chunk *chunk = a->current;
	while (chunk != NULL && chunk != to->chunk)
		chunk = chunk->previous;
	const tn_arena_chunk *large = a->large;
	while (large != NULL && large != to->large)
		large = large->next;
	return chunk != to->chunk || large != to->large;
}

static void block_shrink(block_record *r, size_t size) {
	if (TN_MODE == TN_MODE_DEBUG && r != NULL && r->size > size)
		block_set_size(r + 1, size);
}

/* Restores the sizes at the mark of the blocks that may have grown in place since: the last block and
 * the newest large one. */
static void arena_restore_sizes(tn_arena *a, const tn_checkpoint *to) {
	a->newest = to->newest;
	block_shrink(a->newest, to->newest_size);
	tn_arena_chunk *large = a->large;
	if (large == NULL)
		return;
	block_shrink(block_of_large(large), to->large_size);
	if (large->used <= to->large_used)
		return;
	a->large_bytes -= (size_t)(large->used - to->large_used);
	large->used = to->large_used;
}

/* Debug: makes the whole pages of a chunk above the cursor fault; the chunk ends before them until it
 * is taken anew. */
static void arena_protect_tail(tn_arena *a, tn_arena_chunk *chunk) {
	if (TN_MODE != TN_MODE_DEBUG || chunk == NULL || chunk->bytes == 0 ||
		!tn_chunk_is_paged(&a->source))
		return;
	char *end = (char *)chunk + tn_round_up((size_t)(a->cursor - (char *)chunk), TN_OS_PAGE);
	if (end < chunk->limit)
		tn_permit(end, (size_t)(chunk->limit - end));
	if (end >= chunk->limit || !tn_os_protect(end, (size_t)(chunk->limit - end)))
		return;
	chunk->limit = end;
	a->limit = end;
}

static void arena_wipe(char *begin, const char *end) {
	tn_permit(begin, (size_t)(end - begin));
	tn_wipe(begin, (size_t)(end - begin));
}

static void arena_wipe_since(tn_arena *a, const tn_checkpoint *to) {
	if (TN_MODE == TN_MODE_RELEASE || a->current == NULL)
		return;
	for (tn_arena_chunk *c = a->current; c != to->chunk; c = c->previous)
		arena_wipe(c->begin, arena_used_end(a, c));
	if (to->chunk != NULL)
		arena_wipe(to->cursor, arena_used_end(a, to->chunk));
}

void tn_arena_rewind(tn_arena *a, tn_checkpoint to) {
	arena_enter(a, "rewind");
	if (to.arena != a)
		tn_panic(a->kind, a->name, "rewind: the checkpoint is of another arena");
	if (arena_is_stale(a, &to))
		tn_panic(a->kind, a->name, "rewind: the checkpoint is stale");
	block_check_all(a, to.newest, "rewind");
	arena_sample_peak(a);
	/* A block that shrank past the mark has moved the cursor below it. */
	if (to.chunk != NULL && arena_used_end(a, to.chunk) < to.cursor)
		to.cursor = arena_used_end(a, to.chunk);
	arena_give_large(a, to.large);
	arena_wipe_since(a, &to);
	for (tn_arena_chunk *c = a->current; c != to.chunk; c = c->previous) {
		c->used = c->begin;
		if (c->previous != NULL)
			a->before_bytes -= (size_t)(c->previous->used - c->previous->begin);
	}
	arena_set_current(a, to.chunk, to.cursor);
	if (to.chunk != NULL)
		to.chunk->used = to.cursor;
	a->depth = to.depth;
	arena_restore_sizes(a, &to);
	if (TN_MODE == TN_MODE_DEBUG && to.chunk != NULL && a->reserve_bytes == 0) {
		arena_give_after(a, to.chunk);
		arena_protect_tail(a, to.chunk);
		tn_forbid(a->cursor, (size_t)(a->limit - a->cursor));
	}
	arena_settle(a);
	tn_leave(&a->busy);
}

/* ---- reset and trim ---- */

static size_t arena_used_bytes(const tn_arena *a) {
	size_t bytes = 0;
	for (const tn_arena_chunk *c = a->first; c != NULL; c = c->next) {
		bytes += c->bytes;
		if (c == a->current)
			break;
	}
	return bytes;
}

/* The bytes of chunks that stay at reset: retain_bytes, or the recent high-water mark. The mark comes
 * down by an eighth of its distance to the bytes used with every cycle. */
static size_t arena_keep_bytes(tn_arena *a, size_t used) {
	if (a->retain_bytes != 0)
		return a->retain_bytes;
	a->recent_bytes = used >= a->recent_bytes ? used : a->recent_bytes - (a->recent_bytes - used) / 8;
	return a->recent_bytes;
}

/* Gives back the chunks that do not fit into `keep` bytes, and reverses the order of the others behind
 * the first: the chunks used last come next, while their pages are still in the caches. */
static void arena_reverse_spare(tn_arena *a, size_t keep) {
	tn_arena_chunk *chunk = a->first->next, *turned = NULL;
	size_t kept = a->first->bytes;
	while (chunk != NULL) {
		tn_arena_chunk *next = chunk->next;
		if (chunk->bytes <= keep && kept <= keep - chunk->bytes) {
			kept += chunk->bytes;
			chunk->next = turned;
			if (turned != NULL)
				turned->previous = chunk;
			turned = chunk;
		} else {
			arena_give_chunk(a, chunk);
		}
		chunk = next;
	}
	a->first->next = turned;
	if (turned != NULL)
		turned->previous = a->first;
}

static void arena_clear_blocks(tn_arena *a) {
	arena_sample_peak(a);
	if (a->current != NULL)
		a->current->used = a->cursor;
	arena_give_large(a, NULL);
	if (a->first != NULL) {
		tn_checkpoint start = {.chunk = a->first, .cursor = a->first->begin};
		arena_wipe_since(a, &start);
	}
	for (tn_arena_chunk *c = a->first; c != NULL; c = c->next)
		c->used = c->begin;
	a->before_bytes = 0;
	a->newest = NULL;
}

/* Debug: gives the chunks to the quarantine of the page layer, so that stale pointers into them fault.
 * The caller's buffer and a reserved range stay; they are made inaccessible to the checkers. */
static void arena_drop_chunks(tn_arena *a) {
	tn_arena_chunk *keep = a->first == &a->buffer || a->reserve_bytes != 0 ? a->first : NULL;
	if (keep != NULL) {
		arena_give_after(a, keep);
		arena_set_current(a, keep, keep->begin);
		if (a->reserve_bytes != 0)
			arena_shrink_range(a, HEAD_BYTES);
		tn_forbid(keep->begin, (size_t)(keep->limit - keep->begin));
		return;
	}
	arena_give_chain(a);
}

void tn_arena_reset_slow(tn_arena *a) {
	arena_enter(a, "reset");
	block_check_all(a, NULL, "reset");
	size_t used = arena_used_bytes(a);
	size_t used_range = (size_t)((uintptr_t)a->cursor - (uintptr_t)a->first);
	arena_clear_blocks(a);
	if (a->first != NULL) {
		arena_set_current(a, a->first, a->first->begin);
		if (TN_MODE == TN_MODE_DEBUG)
			arena_drop_chunks(a);
		else if (a->reserve_bytes != 0)
			arena_shrink_range(
				a, tn_min(arena_keep_bytes(a, used_range), SIZE_MAX_SERVED) + HEAD_BYTES);
		else
			arena_reverse_spare(a, arena_keep_bytes(a, used));
	}
	arena_settle(a);
	a->resets++;
	TN_PROBE(reset, a->kind, a->name);
	a->depth = 0;
	tn_leave(&a->busy);
	arena_obey(a);
}

/* Whether the chain has no block, its first chunk no checkpoint, and that chunk can go. */
static bool arena_is_unused(const tn_arena *a) {
	bool unused =
		a->depth == 0 && a->current == a->first && a->first != NULL && a->cursor == a->first->begin;
	bool empty = a->current == NULL || unused;
	return empty && a->first != NULL && a->first->bytes != 0 && a->first != a->home;
}

static size_t arena_trim_chain(tn_arena *a) {
	if (arena_is_unused(a))
		return arena_give_chain(a);
	return arena_give_after(a, a->current == NULL ? a->first : a->current);
}

size_t tn_arena_trim(tn_arena *a) {
	arena_enter(a, "trim");
	size_t bytes = 0;
	if (a->reserve_bytes != 0 && a->first != NULL)
		bytes = arena_shrink_range(a, (size_t)(a->cursor - (char *)a->first));
	else if (a->first != NULL)
		bytes = arena_trim_chain(a);
	arena_settle(a);
	tn_leave(&a->busy);
	return bytes;
}

/* ---- looking ---- */

bool tn_arena_owns(const tn_arena *a, const void *p) {
	arena_look(a, "owns");
	return arena_has(a, p);
}

void tn_arena_stats(const tn_arena *a, tn_stats *stats) {
	arena_look(a, "stats");
	*stats = (tn_stats){.live_count = 0};
	arena_read(a, stats);
	tn_copy_name(stats->name, a->name, "");
}

static void arena_require(const tn_arena *a, bool holds, const char *what) {
	if (!holds)
		tn_panic(a->kind, a->name, "verify: %s", what);
}

bool tn_arena_verify(const tn_arena *a) {
	arena_look(a, "verify");
	bool home_apart = a->home != NULL && a->home != a->first;
	size_t taken = home_apart ? a->home->bytes : 0;
	size_t before = 0, large = 0, chunks = home_apart, large_chunks = 0;
	bool behind = a->current == NULL;
	const tn_arena_chunk *previous = NULL;
	for (const tn_arena_chunk *c = a->first; c != NULL; previous = c, c = c->next) {
		arena_require(a, c->previous == previous, "I3: the chain of chunks is broken");
		const char *use = arena_used_end(a, c);
		arena_require(a, behind || use == c->limit || arena_is_between(use, c->begin, c->limit),
			"I1: a chunk is used beyond its limit");
		taken += c->bytes;
		chunks += c != &a->buffer;
		before += behind || c == a->current ? 0 : (size_t)(c->used - c->begin);
		behind = behind || c == a->current;
	}
	for (const tn_arena_chunk *c = a->large; c != NULL; c = c->next) {
		taken += c->bytes;
		large += (size_t)(c->used - c->begin);
		large_chunks++;
		chunks++;
	}
	bool none = a->cursor == NULL && a->limit == NULL && a->restart == NULL;
	arena_require(a, a->current != NULL || none, "I1: a cursor without a chunk");
	arena_require(a, a->restart == NULL || (a->restart == a->first->begin && a->current == a->first),
		"I5: a reset would not end at the first address");
	arena_require(a, behind, "I3: the current chunk is not in the chain");
	arena_require(a, a->current == NULL || a->limit == a->current->limit,
		"I1: the limit is not the current chunk's");
	arena_require(a, ((uintptr_t)a->cursor & 7) == 0 && ((uintptr_t)a->limit & 15) == 0,
		"I1: the cursor is out of line");
	arena_require(
		a, taken == a->taken_bytes && taken <= a->limit_bytes, "I3: the bytes taken do not add up");
	arena_require(
		a, before == a->before_bytes && large == a->large_bytes, "I3: the bytes used do not add up");
	arena_require(
		a, chunks == a->chunk_count && large_chunks == a->large_count, "I3: the chunks do not add up");
	block_check_all(a, NULL, "verify");
	return true;
}

/* ---- options ---- */

static bool arena_valid(const tn_arena_options *o) {
	bool sizes = o->chunk_bytes <= SIZE_MAX_SERVED && o->reserve_bytes <= SIZE_MAX_SERVED &&
	             (o->chunk_bytes_max == TN_NONE || o->chunk_bytes_max <= SIZE_MAX_SERVED);
	bool growth = o->chunk_bytes_max == 0 || o->chunk_bytes_max >= o->chunk_bytes;
	bool buffer = o->buffer != NULL ? (uintptr_t)o->buffer <= UINTPTR_MAX - o->buffer_bytes
	                                : o->buffer_bytes == 0;
	bool range = o->reserve_bytes == 0 || (o->buffer == NULL && o->source == NULL);
	return sizes && growth && tn_chunk_source_valid(o->source) && buffer && range;
}

static size_t arena_first_bytes(const tn_arena_options *o) {
	return o->chunk_bytes == 0 ? ARENA_CHUNK_BYTES : tn_round_up(o->chunk_bytes, TN_OS_PAGE);
}

static size_t arena_most_bytes(const tn_arena_options *o, size_t chunk_bytes) {
	if (o->chunk_bytes_max == TN_NONE)
		return chunk_bytes;
	size_t most =
		o->chunk_bytes_max == 0 ? ARENA_CHUNK_BYTES_MAX : tn_round_up(o->chunk_bytes_max, TN_OS_PAGE);
	return tn_max(most, chunk_bytes);
}

/* ---- for a scope, whose storage is used again ---- */

bool tn_arena_size(tn_arena *a, const tn_arena_options *o) {
	if (!arena_valid(o))
		return errno = EINVAL, false;
	a->chunk_bytes = arena_first_bytes(o);
	a->chunk_bytes_max = arena_most_bytes(o, a->chunk_bytes);
	return true;
}

void tn_arena_close_used(tn_arena *a) {
	arena_enter(a, "destroy");
	block_check_all(a, NULL, "destroy");
	if (a->current != NULL)
		a->current->used = a->cursor;
	arena_give_large(a, NULL);
	if (a->first != NULL)
		arena_give_chain(a);
	a->restart = a->highest = NULL;
	a->newest = NULL;
	a->before_bytes = a->recent_bytes = a->peak_bytes = 0;
	a->refills = a->resets = a->depth = 0;
	tn_leave(&a->busy);
}

/* ---- create and destroy ---- */

static void arena_take_buffer(tn_arena *a, char *buffer, size_t bytes) {
	size_t pad = -(uintptr_t)buffer & 15;
	char *begin = buffer + (pad < bytes ? pad : bytes);
	size_t usable = (bytes - (size_t)(begin - buffer)) & ~(size_t)15;
	/* A buffer too small for one aligned block is not used. */
	if (usable == 0)
		return;
	a->buffer = (tn_arena_chunk){.begin = begin, .used = begin, .limit = begin + usable};
	arena_link_chunk(a, &a->buffer);
	arena_set_current(a, &a->buffer, begin);
}

static const tn_arena_options default_options;

/* Sets the fields of a new arena; takes no memory. */
static void arena_make(tn_arena *a, const tn_chunk_source *source, const tn_arena_options *o) {
	size_t chunk_bytes = arena_first_bytes(o);
	*a = (tn_arena){.state = TN_ALIVE,
		.trims = tn_get(&tn_list_trims, TN_RELAXED),
		.source = *source,
		.kind = "arena",
		.name = "arena",
		.chunk_bytes = chunk_bytes,
		.fixed = o->fixed,
		.chunk_bytes_max = arena_most_bytes(o, chunk_bytes),
		.limit_bytes = o->limit_bytes == 0 ? TN_NONE : o->limit_bytes,
		.retain_bytes = o->retain_bytes == TN_NONE ? 1 : o->retain_bytes,
		.reserve_bytes = tn_round_up(o->reserve_bytes, TN_OS_PAGE)};
}

/* A fixed arena with a buffer, even an unusable one, takes no chunk for blocks. */
static void arena_end_growth(tn_arena *a) {
	if (!a->fixed || a->current != NULL)
		return;
	arena_link_chunk(a, &a->buffer);
	a->current = &a->buffer;
}

/* Takes the reserved range, or the buffer, into use. */
static bool arena_begin(tn_arena *a, const tn_arena_options *o) {
	if (a->reserve_bytes != 0) {
		a->first = arena_take_range(a);
		if (a->first == NULL)
			return false;
		arena_count_chunk(a, a->first);
		arena_set_current(a, a->first, a->first->begin);
	}
	if (o->buffer != NULL) {
		arena_take_buffer(a, o->buffer, o->buffer_bytes);
		arena_end_growth(a);
	}
	arena_settle(a);
	return true;
}

/* Gives the buffer back to the caller. */
static void arena_give_buffer(tn_arena *a) {
	tn_permit(a->buffer.begin, (size_t)(a->buffer.limit - a->buffer.begin));
	arena_wipe(a->buffer.begin, a->buffer.used);
}

static void arena_end(tn_arena *a, const char *operation) {
	arena_enter(a, operation);
	block_check_all(a, NULL, operation);
	tn_unlist_object(a->node);
	a->node = NULL;
	a->name = a->kind;
	tn_arena_chunk *home = a->home;
	if (a->current != NULL)
		a->current->used = a->cursor;
	arena_give_large(a, NULL);
	if (a->first != NULL) {
		arena_give_after(a, a->first);
		if (a->first == &a->buffer)
			arena_give_buffer(a);
		else if (a->first != home)
			arena_give_chunk(a, a->first);
	}
	a->state = TN_DEAD;
	a->busy = 0;
	if (home == NULL)
		return;
	tn_wipe(home->begin, (size_t)(home->used - home->begin));
	tn_chunk_release(&a->source, home, home->bytes, CHUNK_ALIGN);
}

static bool arena_list(tn_arena *a, const tn_arena_options *o, tn_node *parent) {
	if (!tn_list_object(parent, &arena_kind, a, o->name, &a->node))
		return false;
	if (a->node != NULL) {
		a->name = tn_node_name(a->node);
		arena_publish(a);
	}
	return true;
}

bool tn_arena_init(tn_arena *a, const tn_arena_options *options) {
	const tn_arena_options *o = options == NULL ? &default_options : options;
	if (!arena_valid(o))
		return errno = EINVAL, false;
	tn_chunk_source source = tn_chunks_from(o->source);
	arena_make(a, &source, o);
	if (!arena_begin(a, o))
		return false;
	if (arena_list(a, o, NULL))
		return true;
	arena_end(a, "init");
	return errno = ENOMEM, false;
}

/* The arena's own storage is the head of its first chunk, or a page where blocks begin elsewhere or
 * (debug) where the first chunk is given up at every reset. */
tn_arena *tn_arena_make_below(
	tn_node *parent, const tn_chunk_source *source, const tn_arena_options *o) {
	/* A range is no chunk: no limit above the parent would count it. */
	if (!arena_valid(o) || (parent != NULL && o->reserve_bytes != 0))
		return errno = EINVAL, NULL;
	bool apart = o->buffer != NULL || o->reserve_bytes != 0 || TN_MODE == TN_MODE_DEBUG;
	size_t bytes = apart ? TN_OS_PAGE : arena_first_bytes(o);
	if (o->limit_bytes != 0 && bytes > o->limit_bytes)
		bytes = o->limit_bytes & ~(size_t)15;
	if (bytes < HEAD_BYTES + SELF_BYTES + 16)
		return errno = ENOMEM, NULL;
	tn_arena_chunk *home = tn_chunk_acquire(source, bytes, CHUNK_ALIGN);
	if (home == NULL)
		return NULL;
	tn_arena *a = (tn_arena *)((char *)home + HEAD_BYTES);
	arena_make(a, source, o);
	a->home = arena_open_chunk(home, bytes, HEAD_BYTES + SELF_BYTES);
	a->taken_bytes = bytes;
	a->refills = 1;
	if (!apart) {
		a->first = home;
		arena_set_current(a, home, home->begin);
		a->restart = a->highest = home->begin;
	} else if (!arena_begin(a, o)) {
		tn_chunk_release(source, home, bytes, CHUNK_ALIGN);
		return NULL;
	}
	arena_count_chunk(a, home);
	if (arena_list(a, o, parent))
		return a;
	arena_end(a, "create");
	return errno = ENOMEM, NULL;
}

tn_arena *tn_arena_create(const tn_arena_options *options) {
	const tn_arena_options *o = options == NULL ? &default_options : options;
	tn_chunk_source source = tn_chunks_from(o->source);
	return tn_arena_make_below(NULL, &source, o);
}

void tn_arena_destroy(tn_arena *a) {
	if (a != NULL)
		arena_end(a, "destroy");
}

void tn_arena_deinit(tn_arena *a) {
	if (a != NULL)
		arena_end(a, "deinit");
}
