/* The heap in release and hardened: size classes with spans (spans.h), without magazines.
 *
 *   alloc                 the current word of the class has a bit: take the lowest
 *   `- alloc_slow         hardened, zeroing, large and aligned blocks; else
 *      `- refill          the next word with a bit; at the span's end
 *         `- next_span    a listed span, a spare one, a new chunk; else what can be scraped together
 *   free                  the table, the slot's bit, one step of the span's countdown; at its end
 *      `- look_at_span    a full span is listed, an empty one spared or given back, a large block freed
 *
 * A class goes through its current span word by word, once: what is freed behind it becomes many bits
 * before it is looked at again. Blocks freed in the current word are taken next, the lowest first.
 *
 * I1  a slot's bit is 1 exactly while it is free; bits behind the last slot are 0.
 * I2  a span is current, full, partial (then listed), spare (then listed) or large. Full: its
 *     countdown is what is missing of worth_listing. Partial: it is at most the number of live blocks.
 * I3  taken bytes = chunks of spans + chunks of records, and never more than the limit. */
#include <tenure/heap.h>

#include "../base/panic.h"
#include "../base/probes.h"

#if TN_MODE != TN_MODE_DEBUG

#include "spans.h"

/* By (size + 15) / 16. */
static const uint8_t fast_classes[FAST_BYTES / HEAP_GRAIN + 1] = {
	0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 9, 9, 10, 10, 11, 11,          /* 256 */
	12, 12, 12, 12, 13, 13, 13, 13, 14, 14, 14, 14, 15, 15, 15, 15, /* 512 */
	16, 16, 16, 16, 16, 16, 16, 16, 17, 17, 17, 17, 17, 17, 17, 17, /* 768 */
	18, 18, 18, 18, 18, 18, 18, 18, 19, 19, 19, 19, 19, 19, 19, 19, /* 1024 */
};

/* The word of a class without a span. */
static const uint64_t no_bits;

/* Copied for each new heap; the rooms are heap_class_bytes. */
#define EMPTY_BIN(room) {(uint64_t *)(uintptr_t)&no_bits, NULL, room, NULL}
static const bin empty_bins[HEAP_CLASS_COUNT] = {
	EMPTY_BIN(16),
	EMPTY_BIN(32),
	EMPTY_BIN(48),
	EMPTY_BIN(64),
	EMPTY_BIN(80),
	EMPTY_BIN(96),
	EMPTY_BIN(112),
	EMPTY_BIN(128),
	EMPTY_BIN(160),
	EMPTY_BIN(192),
	EMPTY_BIN(224),
	EMPTY_BIN(256),
	EMPTY_BIN(320),
	EMPTY_BIN(384),
	EMPTY_BIN(448),
	EMPTY_BIN(512),
	EMPTY_BIN(640),
	EMPTY_BIN(768),
	EMPTY_BIN(896),
	EMPTY_BIN(1024),
	EMPTY_BIN(1280),
	EMPTY_BIN(1536),
	EMPTY_BIN(1792),
	EMPTY_BIN(2048),
	EMPTY_BIN(2560),
	EMPTY_BIN(3072),
	EMPTY_BIN(3584),
	EMPTY_BIN(4096),
	EMPTY_BIN(5120),
	EMPTY_BIN(6144),
	EMPTY_BIN(7168),
	EMPTY_BIN(8192),
};

TN_INLINE void heap_enter(const tn_heap *h, const char *operation) {
	if (TN_MODE == TN_MODE_RELEASE)
		return;
	tn_heap *mutable = (tn_heap *)(uintptr_t)h;
	if (TN_UNLIKELY(h->state != TN_ALIVE))
		tn_panic("heap", NULL, "%s: %p is not a live heap", operation, (const void *)h);
	tn_enter(&mutable->busy, "heap", h->name, operation);
}

TN_INLINE void heap_leave(const tn_heap *h) {
	tn_leave(&((tn_heap *)(uintptr_t)h)->busy);
}

/* ---- what is known of spans ---- */

static void know_live(tn_heap *h, span *s, size_t live) {
	h->live_bytes = h->live_bytes - s->known_live * s->room + live * s->room;
	h->live_count = h->live_count - s->known_live + live;
	s->known_live = (uint16_t)live;
}

/* The span has no block any more, and is in no list. */
static void spare_span(tn_heap *h, span *s) {
	know_live(h, s, 0);
	h->shelves[s->class].spans--;
	h->used_bytes -= s->chunk_bytes;
	h->spare_bytes += s->chunk_bytes;
	s->state = SPAN_SPARE;
	push_span(&h->spare[spare_kind(s->chunk_bytes)], s);
}

static void end_spare(tn_heap *h, span *s) {
	unlink_span(&h->spare[spare_kind(s->chunk_bytes)], s);
	h->spare_bytes -= s->chunk_bytes;
	end_span(h, s);
}

/* ---- from which span a class allocates ---- */

/* The next word with a free slot, from the given one on. */
static bool find_word(bin *b, size_t from) {
	span *s = b->current;
	for (size_t i = from; i < span_words(s); i++)
		if (s->free[i] != 0) {
			b->word = &s->free[i];
			b->base = span_slot(s, i * TN_WORD_BITS);
			return true;
		}
	return false;
}

static void use_span(bin *b, span *s) {
	s->state = SPAN_CURRENT;
	s->countdown = NEVER;
	b->current = s;
	find_word(b, 0);
}

static void leave_span(bin *b) {
	b->current = NULL;
	b->word = (uint64_t *)(uintptr_t)&no_bits;
}

/* Gives a span without blocks to a class. */
static void cut_span(tn_heap *h, span *s, unsigned class) {
	size_t room = h->bins[class].room;
	size_t count = s->chunk_bytes / room;
	s->reciprocal = (uint32_t)(UINT32_MAX / room + 1);
	s->room = room;
	s->count = (uint16_t)(count < SPAN_SLOTS_MAX ? count : SPAN_SLOTS_MAX);
	s->class = (uint8_t)class;
	s->known_live = 0;
	clear_span(s);
	h->shelves[class].spans++;
	h->used_bytes += s->chunk_bytes;
	use_span(&h->bins[class], s);
}

/* A class begins small, so that a heap of few blocks touches little, and goes on with as much as a
 * record has bits for. */
static size_t wanted_chunk(const tn_heap *h, unsigned class) {
	size_t room = h->bins[class].room, spans = h->shelves[class].spans;
	if (room <= 512 && spans == 0)
		return TN_OS_PAGE;
	if (room < 32 || (room <= 2048 && spans < 4))
		return SPAN_BYTES_MAX / 4;
	return room < 64 ? SPAN_BYTES_MAX / 2 : SPAN_BYTES_MAX;
}

static span *take_spare(tn_heap *h, size_t chunk_bytes) {
	span *s = h->spare[spare_kind(chunk_bytes)];
	if (s == NULL)
		return NULL;
	unlink_span(&h->spare[spare_kind(chunk_bytes)], s);
	h->spare_bytes -= s->chunk_bytes;
	return s;
}

/* Takes a span without live blocks out of whatever it is in. */
static bool take_empty(tn_heap *h, span *s) {
	if (s->state == SPAN_LARGE || (s->state != SPAN_SPARE && live_in_span(s) > 0))
		return false;
	if (s->state == SPAN_PARTIAL)
		unlink_span(&h->shelves[s->class].partial, s);
	if (s->state == SPAN_CURRENT)
		leave_span(&h->bins[s->class]);
	if (s->state != SPAN_SPARE)
		spare_span(h, s);
	unlink_span(&h->spare[spare_kind(s->chunk_bytes)], s);
	h->spare_bytes -= s->chunk_bytes;
	return true;
}

static size_t return_empty_spans(tn_heap *h) {
	span_walk walk = walk_spans(h);
	size_t before = h->taken_bytes;
	for (span *s; (s = next_of(&walk)) != NULL;)
		if (take_empty(h, s))
			end_span(h, s);
	return before - h->taken_bytes;
}

/* As new_span; if only the limit forbids it, chunks without blocks make room. */
static span *new_span_at_last(tn_heap *h, size_t bytes, size_t align, enum span_state state) {
	span *s = new_span(h, bytes, align, state);
	size_t left = h->limit_bytes - h->taken_bytes;
	if (s != NULL || left >= bytes)
		return s;
	size_t empty = 0;
	span_walk walk = walk_spans(h);
	while ((s = next_of(&walk)) != NULL)
		empty += s->state == SPAN_SPARE || live_in_span(s) == 0 ? s->chunk_bytes : 0;
	/* The record may need a chunk, too. */
	if (empty + left < bytes)
		return NULL;
	return_empty_spans(h);
	return new_span(h, bytes, align, state);
}

/* The usual chunk is not to be had: what else the class can allocate from. */
static TN_COLD bool scrape(tn_heap *h, bin *b, unsigned class) {
	span_walk walk = walk_spans(h);
	for (span *s; (s = next_of(&walk)) != NULL;)
		if (s->state == SPAN_FULL && s->class == class && free_in_span(s) > 0)
			return use_span(b, s), true;
	size_t usual = wanted_chunk(h, class);
	size_t least = tn_power_of_two(b->room < TN_OS_PAGE ? TN_OS_PAGE : b->room);
	span *s = new_span_at_last(h, usual, usual, SPAN_SPARE);
	if (s == NULL)
		s = new_span_at_last(h, least, least, SPAN_SPARE);
	walk = walk_spans(h);
	for (span *empty; s == NULL && (empty = next_of(&walk)) != NULL;)
		if (empty->chunk_bytes >= b->room && take_empty(h, empty))
			s = empty;
	if (s == NULL)
		return errno = ENOMEM, false;
	return cut_span(h, s, class), true;
}

static bool next_span(tn_heap *h, bin *b, unsigned class) {
	span *s = h->shelves[class].partial;
	if (s != NULL) {
		unlink_span(&h->shelves[class].partial, s);
		use_span(b, s);
		return true;
	}
	size_t bytes = wanted_chunk(h, class);
	s = take_spare(h, bytes);
	if (s == NULL)
		s = new_span(h, bytes, bytes, SPAN_SPARE);
	if (s == NULL)
		return scrape(h, b, class);
	cut_span(h, s, class);
	return true;
}

/* The class has been through its current span: goes through it again, or leaves it. */
static bool finish_span(tn_heap *h, bin *b) {
	span *s = b->current;
	size_t free = free_in_span(s);
	know_live(h, s, s->count - free);
	if (free >= worth_listing(s))
		return find_word(b, 0);
	s->state = SPAN_FULL;
	s->countdown = worth_listing(s) - (uint32_t)free;
	leave_span(b);
	return false;
}

/* The share of rounding in live bytes, by the samples. */
static size_t heap_waste(const tn_heap *h, size_t small_bytes) {
	if (h->sampled_room == 0)
		return 0;
	double wasted = (double)(h->sampled_room - h->sampled_asked);
	return (size_t)((double)small_bytes * wasted / (double)h->sampled_room);
}

/* What blocks can have, but for the few bytes at the end of a chunk that make no slot. */
static size_t free_bytes(const tn_heap *h, size_t live_bytes) {
	return h->used_bytes + h->spare_bytes + h->large_bytes - live_bytes;
}

/* The figures for readers on other threads, as far as they are known without a walk. */
static void publish_heap(const tn_heap *h) {
	if (TN_LIKELY(h->node == NULL))
		return;
	tn_stats stats = {.live_bytes = h->live_bytes,
		.live_count = h->live_count,
		.cached_bytes = free_bytes(h, h->live_bytes),
		.reserved_bytes = h->taken_bytes,
		.committed_bytes = h->taken_bytes,
		.peak_bytes = h->peak,
		.chunk_count = h->chunk_count,
		.refills = h->refills,
		.resets = h->resets,
		.waste_bytes = heap_waste(h, h->live_bytes - h->large_bytes) + h->large_bytes - h->large_asked};
	tn_list_publish(h->node, &stats, TN_FIGURES_ALL, (tn_position){0, 0});
}

/* Only where a call succeeds, so that one that fails leaves the figures as they were. */
static void note_refill(tn_heap *h) {
	h->refills++;
	if (h->live_bytes > h->peak)
		h->peak = h->live_bytes;
}

/* A class has found a word of free slots; the block that is asked for stands for all of them. */
static void sample_size(tn_heap *h, const bin *b, size_t asked) {
	unsigned slots = bits_set(*b->word);
	note_refill(h);
	h->sampled_asked += asked * slots;
	h->sampled_room += b->room * slots;
	if (h->sampled_room > SAMPLED_MAX) {
		h->sampled_asked /= 2;
		h->sampled_room /= 2;
	}
}

static bool find_free(tn_heap *h, unsigned class) {
	bin *b = &h->bins[class];
	if (b->current != NULL) {
		size_t next = (size_t)(b->word - b->current->free) + 1;
		/* A look at every fourth word is enough for the figures. */
		if (next % 4 == 0)
			know_live(h, b->current, live_in_span(b->current));
		if (find_word(b, next) || finish_span(h, b))
			return true;
	}
	return next_span(h, b, class);
}

/* The current word is used up: sees to it that there is one with a bit. */
static __attribute__((noinline)) bool heap_refill(tn_heap *h, unsigned class, size_t asked) {
	if (tn_list_take_wanted(h->node, TN_WANT_TRIM))
		return_empty_spans(h);
	bool found = find_free(h, class);
	if (found)
		sample_size(h, &h->bins[class], asked);
	publish_heap(h);
	return found;
}

TN_INLINE void *take_lowest(bin *b) {
	uint64_t bits = *b->word;
	char *slot = b->base + (size_t)(unsigned)__builtin_ctzll(bits) * b->room;
	*b->word = bits & (bits - 1);
	return slot;
}

static void *alloc_small(tn_heap *h, unsigned class, size_t asked) {
	bin *b = &h->bins[class];
	if (TN_UNLIKELY(*b->word == 0) && !heap_refill(h, class, asked))
		return NULL;
	void *p = take_lowest(b);
	if (h->zero)
		memset(p, 0, b->room);
	return p;
}

/* ---- large blocks ---- */

/* The chunk for a block of `size` bytes, or 0 when there can be none. */
static size_t large_chunk(const tn_heap *h, size_t size, size_t align) {
	size_t whole = size < align ? align : size;
	if (whole > PTRDIFF_MAX - TN_OS_PAGE)
		return 0;
	return tn_is_paged(&h->source) ? tn_pages_reserved(whole, TN_OS_PAGE)
	                               : tn_round_up(whole, TN_OS_PAGE);
}

static void *alloc_large(tn_heap *h, size_t size, size_t align) {
	size_t bytes = large_chunk(h, size, align);
	span *s = NULL;
	if (bytes != 0)
		s = new_span_at_last(h, bytes, align < TN_OS_PAGE ? TN_OS_PAGE : align, SPAN_LARGE);
	if (s == NULL)
		return errno = ENOMEM, NULL;
	s->reciprocal = 1;
	s->countdown = 1;
	s->large_free = 0;
	s->asked = size;
	s->room = bytes;
	s->count = 1;
	s->known_live = 0;
	push_span(&h->large, s);
	know_live(h, s, 1);
	note_refill(h);
	h->large_bytes += bytes;
	h->large_asked += size;
	publish_heap(h);
	return h->zero ? memset(s->base, 0, size) : s->base;
}

static void free_large(tn_heap *h, span *s) {
	know_live(h, s, 0);
	unlink_span(&h->large, s);
	h->large_bytes -= s->room;
	h->large_asked -= s->asked;
	end_span(h, s);
}

/* ---- alloc and free ---- */

/* The smallest class whose slots all lie at multiples of `align`, or HEAP_CLASS_COUNT. */
static unsigned aligned_class(size_t size, size_t align) {
	unsigned class = size > HEAP_SMALL_BYTES ? HEAP_CLASS_COUNT : heap_class_of(size);
	while (class < HEAP_CLASS_COUNT && (heap_class_bytes(class) & (align - 1)) != 0)
		class ++;
	return align > TN_OS_PAGE ? HEAP_CLASS_COUNT : class;
}

static void *heap_take(tn_heap *h, size_t size) {
	if (TN_LIKELY(size <= FAST_BYTES))
		return alloc_small(h, fast_classes[(size + HEAP_GRAIN - 1) / HEAP_GRAIN], size);
	if (size <= HEAP_SMALL_BYTES)
		return alloc_small(h, heap_class_of(size), size);
	return alloc_large(h, size, HEAP_GRAIN);
}

static void *heap_take_aligned(tn_heap *h, size_t size, size_t align) {
	unsigned class = aligned_class(size, align);
	return class < HEAP_CLASS_COUNT ? alloc_small(h, class, size) : alloc_large(h, size, align);
}

static __attribute__((noinline)) void *heap_alloc_slow(tn_heap *h, size_t size, size_t align) {
	if (!heap_align_valid(align))
		return errno = EINVAL, NULL;
	heap_enter(h, "alloc");
	void *p = align <= HEAP_GRAIN ? heap_take(h, size) : heap_take_aligned(h, size, align);
	heap_leave(h);
	return p;
}

TN_INLINE bool fits_any_slot(size_t align) {
	return align <= HEAP_GRAIN && (0x10117 >> align & 1) != 0;
}

void *tn_heap_alloc(tn_heap *h, size_t size, size_t align) {
	if (TN_LIKELY(size < h->fast_bytes && fits_any_slot(align))) {
		bin *b = &h->bins[fast_classes[(size + HEAP_GRAIN - 1) / HEAP_GRAIN]];
		if (TN_LIKELY(*b->word != 0))
			return take_lowest(b);
	}
	return heap_alloc_slow(h, size, align);
}

static void return_surplus_spans(tn_heap *h) {
	unsigned kind = SPARE_KINDS;
	while (h->spare_bytes > 2 * h->used_bytes + SPARE_BYTES_MIN && kind > 0)
		if (h->spare[kind - 1] == NULL)
			kind--;
		else
			end_spare(h, h->spare[kind - 1]);
}

/* A span of a class that is not its current one: lists it, or spares it when it is empty. */
static void look_at_small(tn_heap *h, span *s) {
	shelf *b = &h->shelves[s->class];
	size_t live = live_in_span(s);
	if (s->state == SPAN_FULL) {
		s->state = SPAN_PARTIAL;
		push_span(&b->partial, s);
	}
	know_live(h, s, live);
	s->countdown = (uint32_t)(live - live / 2);
	if (live > 0)
		return;
	unlink_span(&b->partial, s);
	spare_span(h, s);
	return_surplus_spans(h);
}

/* A span's countdown has come to its end. */
static __attribute__((noinline)) void look_at_span(tn_heap *h, span *s) {
	if (s->state == SPAN_LARGE)
		free_large(h, s);
	else if (s->state == SPAN_CURRENT)
		s->countdown = NEVER;
	else
		look_at_small(h, s);
	publish_heap(h);
}

/* Refuses what is no live block. */
static TN_COLD _Noreturn void panic_not_a_block(
	const tn_heap *h, const void *p, const char *operation) {
	const span *s = span_of(h, p);
	for (const span *large = h->large; s == NULL && large != NULL; large = large->next)
		if ((uintptr_t)p - (uintptr_t)large->base < large->chunk_bytes)
			s = large;
	if (s == NULL)
		tn_panic("heap", h->name, "%s: %p is not a block of this heap", operation, p);
	size_t offset = (size_t)((const char *)p - s->base);
	size_t index = s->state == SPAN_LARGE ? 0 : offset / s->room;
	if (index >= s->count)
		tn_panic("heap", h->name, "%s: %p is not a block of this heap", operation, p);
	const char *block = span_slot(s, index);
	if (p != block)
		tn_panic("heap", h->name, "%s: %p is %zu bytes inside the block at %p", operation, p,
			(size_t)((const char *)p - block), (const void *)block);
	tn_panic("heap", h->name, "%s: %p is free already", operation, p);
}

/* Whether a block begins at p, which lies in s, and its number. */
TN_INLINE bool find_slot(const span *s, const void *p, size_t *number) {
	uint64_t product = (uint64_t)((uintptr_t)p - (uintptr_t)s->base) * s->reciprocal;
	*number = (size_t)(product >> 32);
	return (uint32_t)product < s->reciprocal && *number < s->count;
}

/* Sets the bit of a live slot; false when it is free already. */
TN_INLINE bool free_slot(span *s, size_t number) {
	uint64_t *word = &s->free[number / TN_WORD_BITS];
	uint64_t bits = *word;
	if (TN_UNLIKELY((bits >> number % TN_WORD_BITS & 1) != 0))
		return false;
	*word = bits | (uint64_t)1 << number % TN_WORD_BITS;
	return true;
}

/* The span of a live block; panics at anything else. */
static inline span *block_span(const tn_heap *h, const void *p, size_t *slot, const char *operation) {
	span *s = span_of(h, p);
	size_t number;
	if (TN_UNLIKELY(s == NULL || !find_slot(s, p, &number) || !slot_is_live(s, number)))
		panic_not_a_block(h, p, operation);
	*slot = number;
	return s;
}

static inline void put_block(tn_heap *h, span *s, void *p, size_t number) {
	tn_wipe_slot(p, s->room);
	free_slot(s, number);
	if (TN_UNLIKELY(--s->countdown == 0))
		look_at_span(h, s);
}

static __attribute__((noinline)) void heap_free_slow(tn_heap *h, void *p) {
	if (p == NULL)
		return;
	size_t number;
	heap_enter(h, "free");
	span *s = block_span(h, p, &number, "free");
	put_block(h, s, p, number);
	heap_leave(h);
}

TN_INLINE void heap_free(tn_heap *h, void *p) {
	span *s = tn_hook_checked() ? NULL : span_of(h, p);
	size_t number;
	if (TN_LIKELY(s != NULL && find_slot(s, p, &number) && free_slot(s, number))) {
		if (TN_UNLIKELY(--s->countdown == 0))
			look_at_span(h, s);
		return;
	}
	heap_free_slow(h, p);
}

void tn_heap_free(tn_heap *h, void *p) {
	heap_free(h, p);
}

void tn_heap_free_sized(tn_heap *h, void *p, size_t size) {
	if (TN_MODE == TN_MODE_HARDENED && p != NULL) {
		heap_enter(h, "free_sized");
		size_t number;
		const span *s = block_span(h, p, &number, "free_sized");
		if (s->state == SPAN_LARGE ? size != s->asked : !heap_fits(s->room, size))
			tn_panic("heap", h->name, "free_sized: %p has room for %zu bytes; %zu was never its size",
				p, s->room, size);
		heap_leave(h);
	}
	heap_free(h, p);
}

/* ---- realloc ---- */

/* Keeps what a zeroing heap promises: bytes behind what was asked for are 0. */
static void zero_rest(const tn_heap *h, span *s, char *p, size_t size) {
	bool large = s->state == SPAN_LARGE;
	size_t from = large ? s->asked : size;
	size_t to = large ? size : s->room;
	if (h->zero && from < to)
		memset(p + from, 0, to - from);
}

static void *heap_move(tn_heap *h, span *s, void *p, size_t number, size_t size) {
	void *q = heap_take(h, size);
	if (q == NULL)
		return NULL;
	size_t kept = s->state == SPAN_LARGE ? s->asked : s->room;
	memcpy(q, p, kept < size ? kept : size);
	put_block(h, s, p, number);
	return q;
}

void *tn_heap_realloc(tn_heap *h, void *p, size_t new_size) {
	if (p == NULL)
		return tn_heap_alloc(h, new_size, 0);
	heap_enter(h, "realloc");
	size_t number;
	span *s = block_span(h, p, &number, "realloc");
	void *q = p;
	if (heap_fits(s->room, new_size)) {
		zero_rest(h, s, p, new_size);
		if (s->state == SPAN_LARGE) {
			h->large_asked += new_size - s->asked;
			s->asked = new_size;
			publish_heap(h);
		}
	} else {
		q = heap_move(h, s, p, number, new_size);
	}
	heap_leave(h);
	return q;
}

size_t tn_heap_usable_size(const tn_heap *h, const void *p) {
	if (p == NULL)
		return 0;
	heap_enter(h, "usable_size");
	size_t number;
	size_t room = block_span(h, p, &number, "usable_size")->room;
	heap_leave(h);
	return room;
}

/* ---- reset and trim ---- */

/* Hardened: what live blocks hold is not for whoever comes next. */
static void wipe_live(span *s) {
	if (TN_MODE != TN_MODE_HARDENED || s->state == SPAN_SPARE)
		return;
	for (size_t i = 0; i < s->count; i++)
		if (slot_is_live(s, i))
			tn_wipe(span_slot(s, i), s->room);
}

static void forget_bins(tn_heap *h) {
	for (unsigned i = 0; i < HEAP_CLASS_COUNT; i++) {
		leave_span(&h->bins[i]);
		h->shelves[i].partial = NULL;
		h->shelves[i].spans = 0;
	}
	memset(h->spare, 0, sizeof h->spare);
	h->spare_bytes = h->used_bytes = h->live_bytes = h->live_count = 0;
}

/* The oldest span of each class stays with it, so that it begins at the same address again; the others
 * are for any. */
static void forget_span(tn_heap *h, span *s) {
	shelf *b = &h->shelves[s->class];
	bool stays = s->state != SPAN_SPARE && b->partial == NULL;
	clear_span(s);
	s->known_live = 0;
	s->state = stays ? SPAN_PARTIAL : SPAN_SPARE;
	push_span(stays ? &b->partial : &h->spare[spare_kind(s->chunk_bytes)], s);
	*(stays ? &h->used_bytes : &h->spare_bytes) += s->chunk_bytes;
	b->spans += stays;
}

void tn_heap_reset(tn_heap *h) {
	span_walk walk = walk_spans(h);
	heap_enter(h, "reset");
	for (span *s; (s = next_of(&walk)) != NULL;) {
		wipe_live(s);
		if (s->state == SPAN_LARGE)
			free_large(h, s);
	}
	forget_bins(h);
	walk = walk_spans(h);
	for (span *s; (s = next_of(&walk)) != NULL;)
		forget_span(h, s);
	h->resets++;
	TN_PROBE(reset, "heap", h->name);
	publish_heap(h);
	heap_leave(h);
}

/* Lists the records of a chunk that are not in use. Returns whether that is all of them. */
static bool list_gone(tn_heap *h, const record_chunk *r) {
	bool all = true;
	for (char *record = r->begin; record < r->carved; record += RECORD_BYTES) {
		span *s = (span *)(void *)record;
		all = all && s->state == SPAN_GONE;
		if (s->state == SPAN_GONE)
			give_record(h, s);
	}
	return all;
}

/* Records that nothing uses go back chunk by chunk. */
static void return_records(tn_heap *h) {
	h->gone = NULL;
	list_gone(h, &h->own);
	record_chunk *kept = &h->own;
	for (record_chunk *r = h->own.next, *next; r != NULL; r = next) {
		next = r->next;
		span *gone = h->gone;
		if (list_gone(h, r)) {
			h->gone = gone;
			drop_record_chunk(h, r);
			continue;
		}
		kept = kept->next = r;
	}
	kept->next = NULL;
	h->youngest = kept;
}

size_t tn_heap_trim(tn_heap *h) {
	heap_enter(h, "trim");
	size_t before = h->taken_bytes;
	return_empty_spans(h);
	return_records(h);
	publish_heap(h);
	size_t bytes = before - h->taken_bytes;
	heap_leave(h);
	return bytes;
}

/* ---- looking ---- */

bool tn_heap_owns(const tn_heap *h, const void *p) {
	uintptr_t at = span_entered(p);
	const span *s = (const span *)at;
	/* A record of this heap lies in a page of this heap: that is asked of the table, too. */
	if (at % 64 == 0 && tn_pages_owner(at) == h)
		return (size_t)((const char *)p - s->base) < (size_t)s->count * s->room;
	for (s = h->large; s != NULL; s = s->next)
		if ((uintptr_t)p - (uintptr_t)s->base < s->chunk_bytes)
			return true;
	return false;
}

void tn_heap_each(tn_heap *h, void (*visit)(void *p, size_t size, void *ctx), void *ctx) {
	span_walk walk = walk_spans(h);
	heap_enter(h, "each");
	for (span *s; (s = next_of(&walk)) != NULL;)
		for (size_t i = 0; i < s->count; i++)
			if (slot_is_live(s, i))
				visit(span_slot(s, i), s->room, ctx);
	heap_leave(h);
}

void tn_heap_stats(const tn_heap *h, tn_stats *stats) {
	heap_enter(h, "stats");
	span_walk walk = walk_spans(h);
	*stats = (tn_stats){.committed_bytes = h->taken_bytes,
		.reserved_bytes = h->taken_bytes,
		.chunk_count = h->chunk_count,
		.refills = h->refills,
		.resets = h->resets};
	memcpy(stats->name, h->name, sizeof stats->name);
	for (const span *s; (s = next_of(&walk)) != NULL;) {
		size_t live = s->state == SPAN_SPARE ? 0 : live_in_span(s);
		stats->live_count += live;
		stats->live_bytes += live * s->room;
	}
	stats->cached_bytes = free_bytes(h, stats->live_bytes);
	stats->waste_bytes =
		heap_waste(h, stats->live_bytes - h->large_bytes) + h->large_bytes - h->large_asked;
	stats->peak_bytes = h->peak > stats->live_bytes ? h->peak : stats->live_bytes;
	heap_leave(h);
}

static void heap_require(const tn_heap *h, bool holds, const char *what) {
	if (!holds)
		tn_panic("heap", h->name, "verify: %s", what);
}

static size_t list_length(const span *s, enum span_state state) {
	size_t length = 0;
	for (; s != NULL && s->state == state; s = s->next)
		length++;
	return s == NULL ? length : SIZE_MAX;
}

static void verify_span(const tn_heap *h, const span *s) {
	size_t live = live_in_span(s);
	heap_require(h, span_of(h, s->base) == s, "a chunk has another owner");
	if (s->state == SPAN_LARGE) {
		heap_require(h, live == 1 && s->countdown == 1, "a large block is not one block");
		return;
	}
	size_t beyond = span_words(s) * TN_WORD_BITS - s->count;
	heap_require(h, beyond == 0 || s->free[span_words(s) - 1] >> (TN_WORD_BITS - beyond) == 0,
		"a slot behind the last one is free");
	if (s->state == SPAN_FULL)
		heap_require(
			h, s->countdown == worth_listing(s) - (s->count - live), "a full span is not full");
	if (s->state == SPAN_PARTIAL)
		heap_require(h, s->countdown <= live || live == 0, "a partial span would be lost");
	heap_require(h, s->state != SPAN_CURRENT || h->bins[s->class].current == s, "a span is lost");
	heap_require(h, s->state != SPAN_SPARE || live == 0, "a spare span has blocks");
}

bool tn_heap_verify(const tn_heap *h) {
	size_t chunks[SPAN_LARGE + 1] = {0}, bytes = h->own.bytes, listed = 0, spare = 0;
	span_walk walk = walk_spans(h);
	heap_enter(h, "verify");
	for (const span *s; (s = next_of(&walk)) != NULL;) {
		heap_require(h, s->heap == h && s->state <= SPAN_LARGE, "a record was overwritten");
		chunks[s->state]++;
		verify_span(h, s);
		bytes += s->chunk_bytes;
	}
	for (const record_chunk *r = h->own.next; r != NULL; r = r->next)
		bytes += r->bytes;
	for (unsigned i = 0; i < HEAP_CLASS_COUNT; i++)
		listed += list_length(h->shelves[i].partial, SPAN_PARTIAL);
	for (unsigned i = 0; i < SPARE_KINDS; i++)
		spare += list_length(h->spare[i], SPAN_SPARE);
	heap_require(h, listed == chunks[SPAN_PARTIAL], "the listed spans do not add up");
	heap_require(h, spare == chunks[SPAN_SPARE], "the spare spans do not add up");
	heap_require(
		h, list_length(h->large, SPAN_LARGE) == chunks[SPAN_LARGE], "the large blocks do not add up");
	heap_require(
		h, bytes == h->taken_bytes && bytes <= h->limit_bytes, "the bytes taken do not add up");
	heap_leave(h);
	return true;
}

/* ---- create and destroy ---- */

static void set_up_heap(tn_heap *h, const tn_chunk_source *source, const tn_heap_options *o) {
	*h = (tn_heap){.state = TN_ALIVE,
		.zero = o->zero,
		.fast_bytes = TN_MODE == TN_MODE_RELEASE && !o->zero ? FAST_BYTES + 1 : 0,
		.limit_bytes = o->limit_bytes == 0 ? TN_NONE : o->limit_bytes,
		.taken_bytes = TN_OS_PAGE,
		.source = *source};
	memcpy(h->bins, empty_bins, sizeof h->bins);
	tn_copy_name(h->name, o->name, "heap");
	char *begin = (char *)h;
	set_up_records(&h->own, begin + tn_round_up(sizeof *h, 64), begin + TN_OS_PAGE);
	h->own.bytes = TN_OS_PAGE;
	h->youngest = &h->own;
}

static tn_heap *make_heap(const tn_chunk_source *source, const tn_heap_options *o) {
	if (!tn_source_valid(o->source))
		return errno = EINVAL, NULL;
	if (o->limit_bytes != 0 && o->limit_bytes < TN_OS_PAGE)
		return errno = ENOMEM, NULL;
	tn_heap *h = tn_chunk_acquire(source, TN_OS_PAGE, TN_OS_PAGE);
	if (h == NULL)
		return NULL;
	if (!tn_pages_set_owner(h, h)) {
		tn_chunk_release(source, h, TN_OS_PAGE, TN_OS_PAGE);
		return errno = ENOMEM, NULL;
	}
	set_up_heap(h, source, o);
	return h;
}

#include "listed_heap.h"

void tn_heap_destroy(tn_heap *h) {
	if (h == NULL)
		return;
	heap_enter(h, "destroy");
	tn_unlist_object(h->node);
	h->node = NULL;
	span_walk walk = walk_spans(h);
	for (span *s; (s = next_of(&walk)) != NULL;) {
		wipe_live(s);
		end_span(h, s);
	}
	for (record_chunk *more = h->own.next, *next; more != NULL; more = next) {
		next = more->next;
		drop_record_chunk(h, more);
	}
	h->state = TN_DEAD;
	tn_pages_set_owner(h, NULL);
	tn_chunk_release(&h->source, h, TN_OS_PAGE, TN_OS_PAGE);
}

#endif
