/* The arena: a cursor in a chain of chunks.
 *
 *   alloc (inline)      cursor aligned and room left: move it
 *   `- alloc_slow       hardened and debug; else align and move the cursor
 *      |- commit_more   the next part of a reserved range
 *      |- add_large     a block over a quarter of the next chunk, with a chunk of its own
 *      `- next_chunk    a spare one, or one from the source
 *
 * The chain is first .. current .. last; those behind current are spare. Figures are derived from it.
 *
 * I1  cursor is a multiple of 8, limit one of 16, and current->begin <= cursor <= limit.
 * I2  a block occupies at least 16 bytes and its size rounded up to 8, or to 16 when its alignment is
 *     16 or more. So for a block p of `size` the cursor can be at p + round8(size) or p + round16(size)
 *     only while p is the last block: any later one would have moved it by 16 or more past round8.
 * I3  taken_bytes is the sum of `bytes` over the chain, the large blocks, and home where it is apart.
 * I4  debug: `newest` links the records of all live blocks, each followed by its block and a fence.
 *
 * It cannot free a block, and what realloc leaves behind stays until the reset. Cites Hanson 1990. */
#include <tenure/arena.h>

#include <errno.h>
#include <stdio.h>

#include "../base/probes.h"
#include "../pages/pages.h"
#include "arena_chunks.h"
#include "blocks.h"
#include "range.h"

/* No size above this is looked at further: with it, the sums below cannot wrap. */
#define SIZE_MAX_SERVED ((size_t)PTRDIFF_MAX - 4 * TN_ALIGN_MAX)

#define LEAD_BYTES (TN_MODE == TN_MODE_DEBUG ? sizeof(block_record) : 0)
#define TRAIL_BYTES (TN_MODE == TN_MODE_DEBUG ? (size_t)TN_FENCE_BYTES : 0)

static size_t least(size_t size) {
	return size < 9 ? 9 : size;
}

static void arena_enter(tn_arena *a, const char *operation) {
	if (TN_MODE != TN_MODE_RELEASE && a->state != TN_ALIVE)
		tn_panic("arena", NULL, "%s: %p is not a live arena", operation, (void *)a);
	tn_enter(&a->busy, a->kind, a->name, operation);
}

/* ---- alloc ---- */

/* Where a block would begin and where it would leave the cursor, if `limit` permits. `size` includes
 * the trailing fence. */
static char *fit(const char *cursor, const char *limit, size_t size, size_t align, char **end) {
	size_t avail = (size_t)(limit - cursor);
	uintptr_t start = (uintptr_t)cursor + LEAD_BYTES;
	size_t pad = LEAD_BYTES + (-start & (align - 1));
	if (cursor == NULL || pad > avail || size > avail - pad)
		return NULL;
	char *p = (char *)(uintptr_t)cursor + pad;
	*end = p + tn_round_up(size, align < 16 ? 8 : 16);
	return p;
}

static char *bump(tn_arena *a, size_t size, size_t align) {
	char *end;
	char *p = fit(a->cursor, a->limit, size, align, &end);
	if (p != NULL)
		a->cursor = end;
	return p;
}

static char *add_large(tn_arena *a, size_t size, size_t align) {
	size_t exact = HEAD_BYTES + LEAD_BYTES + tn_round_up(size, 16) + (align > CHUNK_ALIGN ? align : 0);
	tn_arena_chunk *chunk = take_chunk(a, tn_round_up(exact, TN_OS_PAGE), exact);
	if (chunk == NULL)
		return NULL;
	char *p = fit(chunk->begin, chunk->limit, size, align, &chunk->used);
	chunk->begin = p - LEAD_BYTES;
	chunk->next = a->large;
	a->large = chunk;
	a->large_bytes += (size_t)(chunk->used - chunk->begin);
	a->taken_large_bytes += chunk->bytes;
	a->large_count++;
	return p;
}

static size_t next_chunk_bytes(const tn_arena *a) {
	size_t largest = 0;
	for (const tn_arena_chunk *c = a->current; c != NULL && largest < a->chunk_bytes_max;
		c = c->previous)
		largest = c->bytes > largest ? c->bytes : largest;
	if (largest < a->chunk_bytes)
		return a->chunk_bytes;
	return largest > a->chunk_bytes_max / 2 ? a->chunk_bytes_max : largest * 2;
}

/* A block in the next chunk of the chain, which becomes current. */
static char *next_chunk(tn_arena *a, size_t size, size_t align) {
	tn_arena_chunk *chunk = a->current == NULL ? a->first : a->current->next;
	char *end;
	if (chunk == NULL) {
		size_t need =
			HEAD_BYTES + LEAD_BYTES + tn_round_up(size, 16) + (align > CHUNK_ALIGN ? align : 0);
		chunk = take_chunk_at_last(a, next_chunk_bytes(a), need);
		if (chunk == NULL)
			return NULL;
		append_chunk(a, chunk);
	}
	char *p = fit(chunk->begin, chunk->limit, size, align, &end);
	if (p == NULL)
		return a->fixed ? (errno = ENOMEM, NULL) : add_large(a, size, align);
	if (a->current != NULL) {
		a->current->used = a->cursor;
		a->before_bytes += (size_t)(a->cursor - a->current->begin);
	}
	make_current(a, chunk, end);
	return p;
}

static char *grow_range(tn_arena *a, size_t size, size_t align) {
	if (a->first == NULL) {
		a->first = reserve_range(a);
		if (a->first == NULL)
			return NULL;
		count_chunk(a, a->first);
		make_current(a, a->first, a->first->begin);
	}
	char *range = (char *)a->first;
	char *end;
	char *p = fit(a->cursor, range + a->reserve_bytes, size, align, &end);
	if (p == NULL)
		return errno = ENOMEM, NULL;
	if (end > a->limit && !commit_more(a, range, a->first->bytes, (size_t)(end - range)))
		return NULL;
	a->limit = a->first->limit;
	a->cursor = end;
	return p;
}

static char *grow(tn_arena *a, size_t size, size_t align) {
	if (a->reserve_bytes != 0)
		return grow_range(a, size, align);
	const tn_arena_chunk *spare = a->current == NULL ? a->first : a->current->next;
	/* A fixed arena has its first chunk, taken late after tn_arena_init, and nothing else. */
	if (a->fixed)
		return a->current != NULL ? (errno = ENOMEM, NULL) : next_chunk(a, size, align);
	size_t next_bytes = spare != NULL ? spare->bytes : next_chunk_bytes(a);
	size_t share = a->current == NULL ? next_bytes - HEAD_BYTES - LEAD_BYTES : next_bytes / 4;
	if (size + align > share)
		return add_large(a, size, align);
	return next_chunk(a, size, align);
}

static void *alloc_at(tn_arena *a, size_t size, size_t align, const void *site) {
	if ((align & (align - 1)) != 0 || align > TN_ALIGN_MAX)
		return errno = EINVAL, NULL;
	if (size > SIZE_MAX_SERVED)
		return errno = ENOMEM, NULL;
	size_t whole = least(size) + TRAIL_BYTES;
	char *p = bump(a, whole, align);
	if (TN_UNLIKELY(p == NULL)) {
		p = grow(a, whole, align);
		note_restart(a);
	}
	return record_block(a, p, size, site);
}

void *tn_arena_alloc_for(tn_arena *a, size_t size, size_t align, const void *site) {
	arena_enter(a, "alloc");
	void *p = alloc_at(a, size, align == 0 ? 16 : align, site);
	tn_leave(&a->busy);
	if (TN_UNLIKELY(tn_list_take_wanted(a->node, TN_WANT_TRIM)))
		tn_arena_trim(a);
	return p;
}

void *tn_arena_alloc_slow(tn_arena *a, size_t size, size_t align) {
	return tn_arena_alloc_for(a, size, align, TN_CALLER);
}

/* ---- the last block ---- */

/* Whether p is the last block of the current chunk (I2). */
static bool is_last(const tn_arena *a, const char *p, size_t size) {
	if (TN_MODE == TN_MODE_DEBUG && a->newest != (const block_record *)(const void *)p - 1)
		return false;
	/* Not a block of another chunk that ends where this one begins. */
	if (a->current == NULL || (uintptr_t)p < (uintptr_t)a->current->begin ||
		(uintptr_t)p >= (uintptr_t)a->cursor)
		return false;
	size_t whole = least(size) + TRAIL_BYTES;
	return a->cursor == p + tn_round_up(whole, 8) || a->cursor == p + tn_round_up(whole, 16);
}

/* Moves `*end`, the end of the block p of old_size, for new_size; false when it would pass `limit`. */
static bool move_end(char *p, char **end, const char *limit, size_t old_size, size_t new_size) {
	size_t grain = *end == p + tn_round_up(least(old_size) + TRAIL_BYTES, 16) ? 16 : 8;
	size_t whole = least(new_size) + TRAIL_BYTES;
	if (whole > (size_t)(limit - p) || tn_round_up(whole, grain) > (size_t)(limit - p))
		return false;
	*end = p + tn_round_up(whole, grain);
	return true;
}

static bool resize_last(tn_arena *a, char *p, size_t old_size, size_t new_size) {
	if (is_last(a, p, old_size))
		return move_end(p, &a->cursor, a->limit, old_size, new_size);
	tn_arena_chunk *chunk = a->large;
	if (chunk == NULL || p < chunk->begin || p >= chunk->limit)
		return false;
	char *end = chunk->used;
	if (!move_end(p, &chunk->used, chunk->limit, old_size, new_size))
		return false;
	a->large_bytes = a->large_bytes - (size_t)(end - p) + (size_t)(chunk->used - p);
	return true;
}

static bool resize_at(tn_arena *a, void *p, size_t old_size, size_t new_size) {
	if (new_size > SIZE_MAX_SERVED)
		return false;
	/* A block that shrinks stays where it is, whether or not the rest of it can be used again. */
	if (!resize_last(a, p, old_size, new_size) && new_size > old_size)
		return false;
	record_size(p, new_size);
	return true;
}

bool tn_arena_resize(tn_arena *a, void *p, size_t old_size, size_t new_size) {
	arena_enter(a, "resize");
	check_old_size(a, p, old_size, "resize");
	bool resized = resize_at(a, p, old_size, new_size);
	tn_leave(&a->busy);
	return resized;
}

static void *realloc_at(
	tn_arena *a, void *p, size_t old_size, size_t new_size, size_t align, const void *site) {
	align = align == 0 ? 16 : align;
	bool aligned = (align & (align - 1)) == 0 && ((uintptr_t)p & (align - 1)) == 0;
	if (p != NULL && aligned && align <= TN_ALIGN_MAX) {
		check_old_size(a, p, old_size, "realloc");
		if (resize_at(a, p, old_size, new_size))
			return p;
	}
	void *moved = alloc_at(a, new_size, align, site);
	if (moved != NULL && p != NULL)
		memcpy(moved, p, old_size < new_size ? old_size : new_size);
	return moved;
}

void *tn_arena_realloc(tn_arena *a, void *p, size_t old_size, size_t new_size, size_t align) {
	arena_enter(a, "realloc");
	void *resized = realloc_at(a, p, old_size, new_size, align, TN_CALLER);
	tn_leave(&a->busy);
	return resized;
}

void *tn_arena_copy_for(tn_arena *a, const void *p, size_t size, const void *site) {
	arena_enter(a, "copy");
	void *copy = alloc_at(a, size, 1, site);
	if (copy != NULL && size != 0)
		memcpy(copy, p, size);
	tn_leave(&a->busy);
	return copy;
}

void *tn_arena_copy(tn_arena *a, const void *p, size_t size) {
	return tn_arena_copy_for(a, p, size, TN_CALLER);
}

/* Prints straight into the room that is left; only a text that does not end up there is printed twice.
 * */
static char *print_at(tn_arena *a, const char *format, va_list arguments, const void *site) {
	va_list again;
	va_copy(again, arguments);
	/* Not where what is above the cursor counts as wiped or fenced. */
	bool direct = a->cursor != NULL && TN_MODE == TN_MODE_RELEASE;
	char *first = direct ? a->cursor : NULL;
	size_t room = direct ? (size_t)(a->limit - first) : 0;
	int length = vsnprintf(first, room, format, arguments);
	char *text = NULL;
	if (length < 0)
		errno = EINVAL;
	else
		text = alloc_at(a, (size_t)length + 1, 1, site);
	if (text != NULL && (text != first || (size_t)length >= room))
		vsnprintf(text, (size_t)length + 1, format, again);
	va_end(again);
	return text;
}

char *tn_arena_print_for(tn_arena *a, const char *format, va_list arguments, const void *site) {
	arena_enter(a, "printf");
	char *text = print_at(a, format, arguments, site);
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

/* Debug: the record of the block in a chunk of its own. */
static block_record *large_record(const tn_arena_chunk *chunk) {
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
		now.large_size = large_record(a->large)->size;
	tn_leave(&a->busy);
	return now;
}

static bool is_stale(const tn_arena *a, const tn_checkpoint *to) {
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

static void shrink_record(block_record *r, size_t size) {
	if (TN_MODE == TN_MODE_DEBUG && r != NULL && r->size > size)
		record_size(r + 1, size);
}

/* Blocks that have grown in place since the mark have their size of then again: the last block, and the
 * newest with a chunk of its own. */
static void restore_sizes(tn_arena *a, const tn_checkpoint *to) {
	a->newest = to->newest;
	shrink_record(a->newest, to->newest_size);
	tn_arena_chunk *large = a->large;
	if (large == NULL)
		return;
	shrink_record(large_record(large), to->large_size);
	if (large->used <= to->large_used)
		return;
	a->large_bytes -= (size_t)(large->used - to->large_used);
	large->used = to->large_used;
}

/* Debug: the whole pages of a chunk above the cursor fault from now on, until the chunk is taken anew;
 * the chunk ends before them. */
static void close_tail(tn_arena *a, tn_arena_chunk *chunk) {
	if (TN_MODE != TN_MODE_DEBUG || chunk == NULL || chunk->bytes == 0 || !tn_is_paged(&a->source))
		return;
	char *end = (char *)chunk + tn_round_up((size_t)(a->cursor - (char *)chunk), TN_OS_PAGE);
	if (end < chunk->limit)
		tn_permit(end, (size_t)(chunk->limit - end));
	if (end >= chunk->limit || !tn_os_protect(end, (size_t)(chunk->limit - end)))
		return;
	chunk->limit = end;
	a->limit = end;
}

static void give_up(char *begin, const char *end) {
	tn_permit(begin, (size_t)(end - begin));
	tn_wipe(begin, (size_t)(end - begin));
}

static void wipe_since(tn_arena *a, const tn_checkpoint *to) {
	if (TN_MODE == TN_MODE_RELEASE || a->current == NULL)
		return;
	for (tn_arena_chunk *c = a->current; c != to->chunk; c = c->previous)
		give_up(c->begin, end_of_use(a, c));
	if (to->chunk != NULL)
		give_up(to->cursor, end_of_use(a, to->chunk));
}

void tn_arena_rewind(tn_arena *a, tn_checkpoint to) {
	arena_enter(a, "rewind");
	if (to.arena != a)
		tn_panic(a->kind, a->name, "rewind: the checkpoint is of another arena");
	if (is_stale(a, &to))
		tn_panic(a->kind, a->name, "rewind: the checkpoint is stale");
	check_blocks(a, to.newest, "rewind");
	arena_sample_peak(a);
	/* A block that was shrunk past the mark has left the cursor before it. */
	if (to.chunk != NULL && end_of_use(a, to.chunk) < to.cursor)
		to.cursor = end_of_use(a, to.chunk);
	give_back_large(a, to.large);
	wipe_since(a, &to);
	for (tn_arena_chunk *c = a->current; c != to.chunk; c = c->previous) {
		c->used = c->begin;
		if (c->previous != NULL)
			a->before_bytes -= (size_t)(c->previous->used - c->previous->begin);
	}
	make_current(a, to.chunk, to.cursor);
	if (to.chunk != NULL)
		to.chunk->used = to.cursor;
	a->depth = to.depth;
	restore_sizes(a, &to);
	if (TN_MODE == TN_MODE_DEBUG && to.chunk != NULL && a->reserve_bytes == 0) {
		give_back_after(a, to.chunk);
		close_tail(a, to.chunk);
		tn_forbid(a->cursor, (size_t)(a->limit - a->cursor));
	}
	note_restart(a);
	tn_leave(&a->busy);
}

/* ---- reset and trim ---- */

static size_t used_chunk_bytes(const tn_arena *a) {
	size_t bytes = 0;
	for (const tn_arena_chunk *c = a->first; c != NULL; c = c->next) {
		bytes += c->bytes;
		if (c == a->current)
			break;
	}
	return bytes;
}

/* How many bytes of chunks stay at reset: what retain_bytes says, or the recent high-water mark, which
 * comes down by an eighth of its distance to what was used with every cycle. */
static size_t bytes_to_keep(tn_arena *a, size_t used) {
	if (a->retain_bytes != 0)
		return a->retain_bytes;
	a->recent_bytes = used >= a->recent_bytes ? used : a->recent_bytes - (a->recent_bytes - used) / 8;
	return a->recent_bytes;
}

/* Gives back what does not fit into `keep` bytes, and turns the order of the chunks behind the first:
 * those used last come next, while their pages are still in the caches. */
static void turn_chain(tn_arena *a, size_t keep) {
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
			give_back_chunk(a, chunk);
		}
		chunk = next;
	}
	a->first->next = turned;
	if (turned != NULL)
		turned->previous = a->first;
}

static void forget_blocks(tn_arena *a) {
	arena_sample_peak(a);
	if (a->current != NULL)
		a->current->used = a->cursor;
	give_back_large(a, NULL);
	if (a->first != NULL) {
		tn_checkpoint start = {.chunk = a->first, .cursor = a->first->begin};
		wipe_since(a, &start);
	}
	for (tn_arena_chunk *c = a->first; c != NULL; c = c->next)
		c->used = c->begin;
	a->before_bytes = 0;
	a->newest = NULL;
}

/* Debug: chunks go to the quarantine of the page layer, so that whoever still points into them faults.
 * The caller's buffer and a range of the system cannot; the first is filled instead. */
static void renew_chunks(tn_arena *a) {
	tn_arena_chunk *keep = a->first == &a->buffer || a->reserve_bytes != 0 ? a->first : NULL;
	if (keep != NULL) {
		give_back_after(a, keep);
		make_current(a, keep, keep->begin);
		if (a->reserve_bytes != 0)
			shrink_range(a, HEAD_BYTES);
		tn_forbid(keep->begin, (size_t)(keep->limit - keep->begin));
		return;
	}
	give_back_after(a, a->first);
	give_back_chunk(a, a->first);
	a->first = NULL;
	make_current(a, NULL, NULL);
}

static void keep_range(tn_arena *a, size_t keep) {
	if (keep < a->first->bytes)
		shrink_range(a, keep + HEAD_BYTES);
}

void tn_arena_reset_slow(tn_arena *a) {
	arena_enter(a, "reset");
	check_blocks(a, NULL, "reset");
	size_t used = used_chunk_bytes(a);
	size_t used_range = (size_t)((uintptr_t)a->cursor - (uintptr_t)a->first);
	forget_blocks(a);
	if (a->first != NULL) {
		make_current(a, a->first, a->first->begin);
		if (TN_MODE == TN_MODE_DEBUG)
			renew_chunks(a);
		else if (a->reserve_bytes != 0)
			keep_range(a, bytes_to_keep(a, used_range));
		else
			turn_chain(a, bytes_to_keep(a, used));
	}
	note_restart(a);
	a->resets++;
	TN_PROBE(reset, a->kind, a->name);
	a->depth = 0;
	tn_leave(&a->busy);
}

/* Whether no block is in the chain, no checkpoint in its first chunk, and that is nobody's home. */
static bool is_idle(const tn_arena *a) {
	bool unused =
		a->depth == 0 && a->current == a->first && a->first != NULL && a->cursor == a->first->begin;
	bool empty = a->current == NULL || unused;
	return empty && a->first != NULL && a->first->bytes != 0 && a->first != a->home;
}

static size_t trim_chain(tn_arena *a) {
	if (!is_idle(a))
		return give_back_after(a, a->current == NULL ? a->first : a->current);
	size_t bytes = give_back_after(a, a->first) + give_back_chunk(a, a->first);
	a->first = NULL;
	make_current(a, NULL, NULL);
	return bytes;
}

size_t tn_arena_trim(tn_arena *a) {
	arena_enter(a, "trim");
	size_t bytes = 0;
	if (a->reserve_bytes != 0 && a->first != NULL)
		bytes = shrink_range(a, (size_t)(a->cursor - (char *)a->first));
	else if (a->first != NULL)
		bytes = trim_chain(a);
	note_restart(a);
	tn_leave(&a->busy);
	return bytes;
}

/* ---- looking ---- */

static bool within(const char *p, const char *begin, const char *end) {
	return (uintptr_t)p >= (uintptr_t)begin && (uintptr_t)p < (uintptr_t)end;
}

static void arena_look(const tn_arena *a, const char *operation) {
	tn_look(&a->busy, a->kind, a->name, operation);
}

bool tn_arena_owns(const tn_arena *a, const void *p) {
	arena_look(a, "owns");
	for (const tn_arena_chunk *c = a->current; c != NULL; c = c->previous)
		if (within(p, c->begin, end_of_use(a, c)))
			return true;
	for (const tn_arena_chunk *c = a->large; c != NULL; c = c->next)
		if (within(p, c->begin, c->used))
			return true;
	return false;
}

void tn_arena_stats(const tn_arena *a, tn_stats *stats) {
	arena_look(a, "stats");
	*stats = (tn_stats){.live_count = 0};
	read_figures(a, stats);
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
		arena_require(a, c->previous == previous, "the chain of chunks is broken");
		const char *use = end_of_use(a, c);
		arena_require(a, behind || use == c->limit || within(use, c->begin, c->limit),
			"a chunk is used beyond its limit");
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
	arena_require(a, a->current != NULL || none, "a cursor without a chunk");
	arena_require(a, a->restart == NULL || (a->restart == a->first->begin && a->current == a->first),
		"a reset would not end at the first address");
	arena_require(a, behind, "the current chunk is not in the chain");
	arena_require(
		a, a->current == NULL || a->limit == a->current->limit, "the limit is not the current chunk's");
	arena_require(a, ((uintptr_t)a->cursor & 7) == 0 && ((uintptr_t)a->limit & 15) == 0,
		"the cursor is out of line");
	arena_require(
		a, taken == a->taken_bytes && taken <= a->limit_bytes, "the bytes taken do not add up");
	arena_require(
		a, before == a->before_bytes && large == a->large_bytes, "the bytes used do not add up");
	arena_require(
		a, chunks == a->chunk_count && large_chunks == a->large_count, "the chunks do not add up");
	check_blocks(a, NULL, "verify");
	return true;
}

/* ---- options ---- */

static bool arena_options_valid(const tn_arena_options *o) {
	bool sizes = o->chunk_bytes <= SIZE_MAX_SERVED && o->reserve_bytes <= SIZE_MAX_SERVED &&
	             (o->chunk_bytes_max == TN_NONE || o->chunk_bytes_max <= SIZE_MAX_SERVED);
	bool growth = o->chunk_bytes_max == 0 || o->chunk_bytes_max >= o->chunk_bytes;
	bool buffer = o->buffer != NULL ? (uintptr_t)o->buffer <= UINTPTR_MAX - o->buffer_bytes
	                                : o->buffer_bytes == 0;
	bool range = o->reserve_bytes == 0 || (o->buffer == NULL && o->source == NULL);
	return sizes && growth && tn_source_valid(o->source) && buffer && range;
}

static size_t first_chunk_bytes(const tn_arena_options *o) {
	return o->chunk_bytes == 0 ? ARENA_CHUNK_BYTES : tn_round_up(o->chunk_bytes, TN_OS_PAGE);
}

static size_t chunk_bytes_max(const tn_arena_options *o, size_t chunk_bytes) {
	if (o->chunk_bytes_max == TN_NONE)
		return chunk_bytes;
	size_t most =
		o->chunk_bytes_max == 0 ? ARENA_CHUNK_BYTES_MAX : tn_round_up(o->chunk_bytes_max, TN_OS_PAGE);
	return most < chunk_bytes ? chunk_bytes : most;
}

/* ---- for a scope, whose storage is used again ---- */

bool tn_arena_size(tn_arena *a, const tn_arena_options *o) {
	if (!arena_options_valid(o))
		return errno = EINVAL, false;
	a->chunk_bytes = first_chunk_bytes(o);
	a->chunk_bytes_max = chunk_bytes_max(o, a->chunk_bytes);
	return true;
}

void tn_arena_close_used(tn_arena *a) {
	arena_enter(a, "destroy");
	check_blocks(a, NULL, "destroy");
	if (a->current != NULL)
		a->current->used = a->cursor;
	give_back_large(a, NULL);
	if (a->first != NULL) {
		give_back_after(a, a->first);
		give_back_chunk(a, a->first);
		a->first = NULL;
		make_current(a, NULL, NULL);
	}
	a->restart = a->highest = NULL;
	a->newest = NULL;
	a->before_bytes = a->recent_bytes = a->peak_bytes = 0;
	a->refills = a->resets = a->depth = 0;
	tn_leave(&a->busy);
}

/* ---- create and destroy ---- */

static void use_buffer(tn_arena *a, char *buffer, size_t bytes) {
	size_t pad = -(uintptr_t)buffer & 15;
	char *begin = buffer + (pad < bytes ? pad : bytes);
	size_t usable = (bytes - (size_t)(begin - buffer)) & ~(size_t)15;
	/* A buffer without one aligned block's room is passed over. */
	if (usable == 0)
		return;
	a->buffer = (tn_arena_chunk){.begin = begin, .used = begin, .limit = begin + usable};
	append_chunk(a, &a->buffer);
	make_current(a, &a->buffer, begin);
}

static const tn_arena_options default_options;

/* Everything but what takes memory. */
static void set_up(tn_arena *a, const tn_chunk_source *source, const tn_arena_options *o) {
	size_t chunk_bytes = first_chunk_bytes(o);
	*a = (tn_arena){.state = TN_ALIVE,
		.source = *source,
		.kind = "arena",
		.name = "arena",
		.chunk_bytes = chunk_bytes,
		.fixed = o->fixed,
		.chunk_bytes_max = chunk_bytes_max(o, chunk_bytes),
		.limit_bytes = o->limit_bytes == 0 ? TN_NONE : o->limit_bytes,
		.retain_bytes = o->retain_bytes == TN_NONE ? 1 : o->retain_bytes,
		.reserve_bytes = tn_round_up(o->reserve_bytes, TN_OS_PAGE)};
}

/* A fixed arena with a buffer, even an unusable one, never takes a chunk for blocks. */
static void exhaust(tn_arena *a) {
	if (!a->fixed || a->current != NULL)
		return;
	append_chunk(a, &a->buffer);
	a->current = &a->buffer;
}

/* Takes the reserved range and the buffer into use. */
static bool start(tn_arena *a, const tn_arena_options *o) {
	if (a->reserve_bytes != 0) {
		a->first = reserve_range(a);
		if (a->first == NULL)
			return false;
		count_chunk(a, a->first);
		make_current(a, a->first, a->first->begin);
	}
	if (o->buffer != NULL) {
		use_buffer(a, o->buffer, o->buffer_bytes);
		exhaust(a);
	}
	note_restart(a);
	return true;
}

/* The buffer is the caller's again. */
static void leave_buffer(tn_arena *a) {
	tn_permit(a->buffer.begin, (size_t)(a->buffer.limit - a->buffer.begin));
	give_up(a->buffer.begin, a->buffer.used);
}

static void end_arena(tn_arena *a, const char *operation) {
	arena_enter(a, operation);
	check_blocks(a, NULL, operation);
	tn_unlist_object(a->node);
	a->node = NULL;
	a->name = a->kind;
	tn_arena_chunk *home = a->home;
	if (a->current != NULL)
		a->current->used = a->cursor;
	give_back_large(a, NULL);
	if (a->first != NULL) {
		give_back_after(a, a->first);
		if (a->first == &a->buffer)
			leave_buffer(a);
		else if (a->first != home)
			give_back_chunk(a, a->first);
	}
	a->state = TN_DEAD;
	a->busy = 0;
	if (home == NULL)
		return;
	tn_wipe(home->begin, (size_t)(home->used - home->begin));
	tn_chunk_release(&a->source, home, home->bytes, CHUNK_ALIGN);
}

static bool list_arena(tn_arena *a, const tn_arena_options *o, tn_node *parent) {
	if (!tn_list_object(parent, &arena_kind, a, o->name, &a->node))
		return false;
	if (a->node != NULL) {
		a->name = tn_node_name(a->node);
		publish_arena(a);
	}
	return true;
}

bool tn_arena_init(tn_arena *a, const tn_arena_options *options) {
	const tn_arena_options *o = options == NULL ? &default_options : options;
	if (!arena_options_valid(o))
		return errno = EINVAL, false;
	tn_chunk_source source = tn_chunks_from(o->source);
	set_up(a, &source, o);
	if (!start(a, o))
		return false;
	if (list_arena(a, o, NULL))
		return true;
	end_arena(a, "init");
	return errno = ENOMEM, false;
}

/* The arena's own storage is the head of its first chunk, or a page where blocks begin elsewhere or
 * (debug) where the first chunk is given up at every reset. */
tn_arena *tn_arena_make_below(
	tn_node *parent, const tn_chunk_source *source, const tn_arena_options *o) {
	if (!arena_options_valid(o))
		return errno = EINVAL, NULL;
	bool apart = o->buffer != NULL || o->reserve_bytes != 0 || TN_MODE == TN_MODE_DEBUG;
	size_t bytes = apart ? TN_OS_PAGE : first_chunk_bytes(o);
	if (o->limit_bytes != 0 && bytes > o->limit_bytes)
		bytes = o->limit_bytes & ~(size_t)15;
	if (bytes < HEAD_BYTES + SELF_BYTES + 16)
		return errno = ENOMEM, NULL;
	tn_arena_chunk *home = tn_chunk_acquire(source, bytes, CHUNK_ALIGN);
	if (home == NULL)
		return NULL;
	tn_arena *a = (tn_arena *)((char *)home + HEAD_BYTES);
	set_up(a, source, o);
	a->home = open_chunk(home, bytes, HEAD_BYTES + SELF_BYTES);
	a->taken_bytes = bytes;
	a->refills = 1;
	if (!apart) {
		a->first = home;
		make_current(a, home, home->begin);
		a->restart = a->highest = home->begin;
	} else if (!start(a, o)) {
		tn_chunk_release(source, home, bytes, CHUNK_ALIGN);
		return NULL;
	}
	count_chunk(a, home);
	if (list_arena(a, o, parent))
		return a;
	end_arena(a, "create");
	return errno = ENOMEM, NULL;
}

tn_arena *tn_arena_create(const tn_arena_options *options) {
	const tn_arena_options *o = options == NULL ? &default_options : options;
	tn_chunk_source source = tn_chunks_from(o->source);
	return tn_arena_make_below(NULL, &source, o);
}

void tn_arena_destroy(tn_arena *a) {
	if (a != NULL)
		end_arena(a, "destroy");
}

void tn_arena_deinit(tn_arena *a) {
	if (a != NULL)
		end_arena(a, "deinit");
}
