/* The heap in release and hardened: size classes, each with spans (spans.h), without magazines.
 *
 *   alloc                           the lowest bit of the class's current word
 *   `- heap_alloc_slow              hardened, zeroing, large and aligned blocks; else
 *      `- heap_refill               the next word with a bit; at the span's end
 *         `- heap_refill_span       a partial span, a spare one, a new chunk; else
 *            `- heap_refill_last    what the limit or the source leaves
 *   free                            the table, the slot's bit, a step of the countdown; at its end
 *   `- heap_return_span             links a full span, spares an empty one, ends a large one
 *
 * A class passes through its current span once, word by word. Blocks freed behind it become many bits
 * before the class comes back; blocks freed in the current word are taken next, the lowest first.
 *
 * I1  a slot's bit is 1 exactly while it is free, which only the heap's user can check; bits behind the
 *     last slot are 0.
 * I2  a span is current, full, partial (then linked), spare (then linked, without blocks) or large.
 *     Full: its countdown is what is missing of span_count_wanted. Partial: it is at most the number of
 *     live blocks.
 * I3  taken bytes = chunks of spans + chunks of records, and never more than the limit.
 * I4  a record in use names its heap, and the page table leads to it from all of its pages. */
#include <tenure/heap.h>

#include "../base/panic.h"

#if TN_MODE != TN_MODE_DEBUG

#include "../base/list.h"
#include "../listing/listing.h"
#include "classes.h"
#include "spans.h"

enum {
	FAST_BYTES = 1024, /* the inlined class table ends here */
	SPARE_KINDS = 5,   /* 4 to 64 KiB */
};
/* Spans without blocks that stay: twice the bytes in use, and this. */
#define SPARE_BYTES_MIN ((size_t)1 << 20)
#define NEVER UINT32_MAX
#define SAMPLED_MAX ((uint64_t)64 << 20)
#define SPAN_BYTES_MAX ((size_t)64 << 10)
#define RECORD_CHUNK_BYTES ((size_t)16 << 10)

/* Memory for records, oldest first. */
typedef struct record_chunk {
	struct record_chunk *next;
	size_t bytes;
	char *begin;
	char *carved; /* records from here on were never used */
	char *end;
} record_chunk;

/* Hot part of a size class: all that alloc touches. */
typedef struct bin {
	uint64_t *word; /* of the current span; without one, a word that is 0 */
	char *base;     /* the slot of that word's first bit */
	size_t room;
	span *current;
} bin;

/* Cold part: slow paths only. */
typedef struct shelf {
	span *partial;
	size_t spans;
} shelf;

struct tn_heap {
	size_t fast_bytes; /* smaller sizes are inlined: FAST_BYTES + 1, or 0 */
	uintptr_t busy;
	uint32_t state;
	bool zero;
	bool expendable; /* without effect: there is no table of leaks */
	bin bins[HEAP_CLASS_COUNT];
	shelf shelves[HEAP_CLASS_COUNT];
	span *spare[SPARE_KINDS];
	span *large;
	span *gone; /* records to use again */
	size_t spare_bytes;
	size_t used_bytes; /* chunks of the other spans, without large ones */
	/* As of the last look at each span. */
	size_t live_bytes, live_count;
	size_t large_bytes, large_asked;
	size_t chunk_count;
	size_t taken_bytes;
	size_t limit_bytes;
	size_t peak;
	/* Samples from refills: bytes asked for, and the room that they took. */
	uint64_t sampled_asked, sampled_room;
	uint64_t refills;
	uint64_t resets;
	tn_chunk_source source;
	record_chunk own;
	record_chunk *youngest;
	tn_node *node;
	TN_ATOMIC(uint32_t) asked; /* to trim; fast_bytes is 0 then */
	tn_keeper keeper;
	char name[TN_NAME_BYTES + 1];
};

/* The class of a size, by (size + 15) / 16. */
static const uint8_t fast_classes[FAST_BYTES / HEAP_GRAIN + 1] = {
	0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 9, 9, 10, 10, 11, 11,          /* 256 */
	12, 12, 12, 12, 13, 13, 13, 13, 14, 14, 14, 14, 15, 15, 15, 15, /* 512 */
	16, 16, 16, 16, 16, 16, 16, 16, 17, 17, 17, 17, 17, 17, 17, 17, /* 768 */
	18, 18, 18, 18, 18, 18, 18, 18, 19, 19, 19, 19, 19, 19, 19, 19, /* 1024 */
};

/* The word of a class without a span. */
static const uint64_t no_bits;

#define EMPTY_BIN(room) {(uint64_t *)(uintptr_t)&no_bits, NULL, room, NULL}
#define EMPTY_BINS(step)                                                                               \
	EMPTY_BIN(5 * step), EMPTY_BIN(6 * step), EMPTY_BIN(7 * step), EMPTY_BIN(8 * step)
/* Create copies it. The rooms are heap_class_bytes. */
static const tn_heap empty_heap = {
	.state = TN_ALIVE,
	.taken_bytes = TN_OS_PAGE,
	.bins = {EMPTY_BIN(16), EMPTY_BIN(32), EMPTY_BIN(48), EMPTY_BIN(64), EMPTY_BINS(16), EMPTY_BINS(32),
		EMPTY_BINS(64), EMPTY_BINS(128), EMPTY_BINS(256), EMPTY_BINS(512), EMPTY_BINS(1024)},
	.own.bytes = TN_OS_PAGE,
};

#include "calls.h"

/* The large block that p points into, or NULL. */
static span *heap_find_large(const tn_heap *h, const void *p) {
	span *s = h->large;
	while (s != NULL && (uintptr_t)p - (uintptr_t)s->base >= s->chunk_bytes)
		s = s->next;
	return s;
}

static TN_COLD _Noreturn void heap_refuse(const tn_heap *h, const void *p, const char *operation) {
	const span *s = span_of(h, p);
	if (s == NULL)
		s = heap_find_large(h, p);
	size_t index = s == NULL ? 0 : (size_t)((const char *)p - s->base) / s->room;
	if (s == NULL || index >= s->count)
		tn_panic("heap", h->name, "%s: %p is not a block of this heap", operation, p);
	const char *block = span_slot_at(s, index);
	if (p != block)
		tn_panic("heap", h->name, "%s: %p is %zu bytes inside the block at %p", operation, p,
			(size_t)((const char *)p - block), (const void *)block);
	tn_panic("heap", h->name, "%s: %p is free already", operation, p);
}

/* A walk over all spans, those with the oldest records first. The span that is visited may end. */
typedef struct span_walk {
	const record_chunk *chunk;
	char *next;
	span *span;
} span_walk;

static span_walk heap_begin_walk(const tn_heap *h) {
	return (span_walk){&h->own, h->own.begin, NULL};
}

static inline bool heap_find_next(span_walk *w) {
	do {
		while (w->next == w->chunk->carved) {
			w->chunk = w->chunk->next;
			if (w->chunk == NULL)
				return false;
			w->next = w->chunk->begin;
		}
		w->span = (span *)(void *)w->next;
		w->next += SPAN_RECORD_BYTES;
	} while (w->span->state == SPAN_GONE);
	return true;
}

/* ---- figures ---- */

static void heap_read_known(const tn_heap *h, size_t live_bytes, size_t live_count, tn_stats *stats) {
	*stats = (tn_stats){.live_bytes = live_bytes,
		.live_count = live_count,
		/* With the few bytes at the end of a chunk that make no slot. */
		.cached_bytes = h->used_bytes + h->spare_bytes + h->large_bytes - live_bytes,
		.reserved_bytes = h->taken_bytes,
		.committed_bytes = h->taken_bytes,
		.peak_bytes = h->peak,
		.chunk_count = h->chunk_count,
		.refills = h->refills,
		.resets = h->resets,
		.waste_bytes = h->large_bytes - h->large_asked};
	/* The share of rounding in small blocks, by the samples. */
	if (h->sampled_room != 0) {
		double wasted = (double)(h->sampled_room - h->sampled_asked);
		double small_bytes = (double)(live_bytes - h->large_bytes);
		stats->waste_bytes += (size_t)(small_bytes * wasted / (double)h->sampled_room);
	}
}

static void heap_read(const tn_heap *h, tn_stats *stats) {
	size_t live_bytes = 0, live_count = 0;
	for (span_walk w = heap_begin_walk(h); heap_find_next(&w);) {
		size_t live = span_count_live(w.span);
		live_count += live;
		live_bytes += live * w.span->room;
	}
	heap_read_known(h, live_bytes, live_count, stats);
	stats->peak_bytes = tn_max(h->peak, live_bytes);
}

/* Publishes the figures as far as they are known without a walk. */
static void heap_publish(const tn_heap *h) {
	tn_stats stats;
	if (TN_LIKELY(h->node == NULL))
		return;
	heap_read_known(h, h->live_bytes, h->live_count, &stats);
	tn_list_publish(h->node, &stats, TN_FIGURES_ALL, (tn_position){0, 0});
}

static void heap_set_live(tn_heap *h, span *s, size_t live) {
	h->live_bytes = h->live_bytes - s->known_live * s->room + live * s->room;
	h->live_count = h->live_count - s->known_live + live;
	s->known_live = (uint16_t)live;
}

/* Only for a call that succeeds: one that fails leaves the figures as they were. */
static void heap_sample_refill(tn_heap *h) {
	h->refills++;
	h->peak = tn_max(h->peak, h->live_bytes);
}

/* A class has found a word of free slots; the size asked for stands for all blocks from it. */
static void heap_sample_size(tn_heap *h, const bin *b, size_t asked) {
	unsigned slots = span_count_bits(*b->word);
	heap_sample_refill(h);
	h->sampled_asked += asked * slots;
	h->sampled_room += b->room * slots;
	if (h->sampled_room > SAMPLED_MAX) {
		h->sampled_asked /= 2;
		h->sampled_room /= 2;
	}
}

/* ---- records ---- */

/* The records of a chunk of r->bytes that begins at `base`, behind `head` bytes. */
static void heap_begin_records(record_chunk *r, char *base, size_t head) {
	r->begin = r->carved = base + head;
	r->end = r->begin + (r->bytes - head) / SPAN_RECORD_BYTES * SPAN_RECORD_BYTES;
}

/* The table has the heap as the owner of each page with records: tn_heap_owns asks it. */
static bool heap_set_records_owner(char *base, size_t bytes, tn_heap *owner) {
	bool all = true;
	for (size_t i = 0; i < bytes; i += TN_OS_PAGE)
		all = tn_pages_set_owner(base + i, owner) && all;
	return all;
}

static void heap_give_record_chunk(tn_heap *h, char *base, size_t bytes) {
	heap_set_records_owner(base, bytes, NULL);
	heap_give_chunk(h, base, bytes);
}

static bool heap_take_record_chunk(tn_heap *h) {
	size_t bytes = h->youngest == &h->own ? TN_OS_PAGE : RECORD_CHUNK_BYTES;
	char *base = heap_take_chunk(h, bytes, TN_OS_PAGE);
	if (base == NULL)
		return false;
	if (!heap_set_records_owner(base, bytes, h))
		return heap_give_record_chunk(h, base, bytes), errno = ENOMEM, false;
	record_chunk *r = (record_chunk *)(void *)base;
	*r = (record_chunk){.bytes = bytes};
	heap_begin_records(r, base, tn_round_up(sizeof *r, SPAN_ALIGN));
	h->youngest = h->youngest->next = r;
	return true;
}

static span *heap_take_record(tn_heap *h) {
	span *s = h->gone;
	if (s != NULL) {
		h->gone = s->next;
		return s;
	}
	if (h->youngest->carved == h->youngest->end && !heap_take_record_chunk(h))
		return NULL;
	s = (span *)(void *)h->youngest->carved;
	h->youngest->carved += SPAN_RECORD_BYTES;
	s->state = SPAN_GONE;
	s->heap = h;
	s->link = NULL;
	return s;
}

static void heap_give_record(tn_heap *h, span *s) {
	s->state = SPAN_GONE;
	s->next = h->gone;
	h->gone = s;
}

/* Makes the unused records of a chunk ready for use; returns whether all are unused. */
static bool heap_push_unused(tn_heap *h, const record_chunk *r) {
	bool all = true;
	for (char *record = r->begin; record < r->carved; record += SPAN_RECORD_BYTES) {
		span *s = (span *)(void *)record;
		all = all && s->state == SPAN_GONE;
		if (s->state == SPAN_GONE)
			heap_give_record(h, s);
	}
	return all;
}

/* Gives back the chunks whose records are all unused. */
static void heap_return_records(tn_heap *h) {
	h->gone = NULL;
	heap_push_unused(h, &h->own);
	record_chunk *kept = &h->own;
	for (record_chunk *r = h->own.next, *next; r != NULL; r = next) {
		next = r->next;
		span *gone = h->gone;
		if (heap_push_unused(h, r)) {
			h->gone = gone;
			heap_give_record_chunk(h, (char *)r, r->bytes);
			continue;
		}
		kept = kept->next = r;
	}
	kept->next = NULL;
	h->youngest = kept;
}

/* ---- spans ---- */

/* A span in a chunk of its own, in no list and of no class. */
static span *heap_take_span(tn_heap *h, size_t bytes, size_t align, enum span_state state) {
	record_chunk *before = h->youngest;
	span *s = heap_take_record(h);
	if (s == NULL)
		return NULL;
	s->base = heap_take_chunk(h, bytes, align);
	s->chunk_bytes = bytes;
	s->state = (uint8_t)state;
	if (s->base != NULL && span_set_owner(s, s))
		return h->chunk_count++, s;
	if (s->base != NULL)
		heap_give_chunk(h, s->base, bytes);
	if (h->youngest == before) {
		heap_give_record(h, s);
	} else {
		/* The chunk of records was added for this one. */
		heap_give_record_chunk(h, (char *)h->youngest, h->youngest->bytes);
		before->next = NULL;
		h->youngest = before;
	}
	return errno = ENOMEM, NULL;
}

static void heap_give_span(tn_heap *h, span *s) {
	span_set_owner(s, NULL);
	h->chunk_count--;
	heap_give_chunk(h, s->base, s->chunk_bytes);
	heap_give_record(h, s);
}

/* The list of spare spans with chunks of this size. */
static span **heap_spare_of(tn_heap *h, size_t chunk_bytes) {
	return &h->spare[__builtin_ctzll(chunk_bytes / TN_OS_PAGE)];
}

static void heap_unlink_spare(tn_heap *h, span *s) {
	TN_LIST_UNLINK(s, next, link);
	h->spare_bytes -= s->chunk_bytes;
}

/* Spares a span without blocks, of whatever state, for any class. */
static void heap_keep_spare(tn_heap *h, span *s) {
	span **list = heap_spare_of(h, s->chunk_bytes);
	heap_set_live(h, s, 0);
	h->shelves[s->class].spans--;
	h->used_bytes -= s->chunk_bytes;
	h->spare_bytes += s->chunk_bytes;
	s->state = SPAN_SPARE;
	TN_LIST_UNLINK(s, next, link);
	TN_LIST_PUSH(list, s, next, link);
}

static void heap_drop_current(bin *b) {
	b->current = NULL;
	b->word = (uint64_t *)(uintptr_t)&no_bits;
}

/* Takes a span out of its state, if it is without blocks. */
static bool heap_take_empty(tn_heap *h, span *s) {
	if (span_count_live(s) > 0)
		return false;
	if (s->state == SPAN_CURRENT)
		heap_drop_current(&h->bins[s->class]);
	if (s->state != SPAN_SPARE)
		heap_keep_spare(h, s);
	heap_unlink_spare(h, s);
	return true;
}

static void heap_return_empty(tn_heap *h) {
	for (span_walk w = heap_begin_walk(h); heap_find_next(&w);)
		if (heap_take_empty(h, w.span))
			heap_give_span(h, w.span);
}

static void heap_return_surplus(tn_heap *h) {
	unsigned kind = SPARE_KINDS;
	while (h->spare_bytes > 2 * h->used_bytes + SPARE_BYTES_MIN && kind > 0) {
		span *s = h->spare[kind - 1];
		if (s == NULL) {
			kind--;
			continue;
		}
		heap_unlink_spare(h, s);
		heap_give_span(h, s);
	}
}

/* As heap_take_span. If only the limit refuses it, chunks without blocks make room. */
static span *heap_take_span_at_limit(tn_heap *h, size_t bytes, size_t align, enum span_state state) {
	span *s = heap_take_span(h, bytes, align, state);
	size_t left = h->limit_bytes - h->taken_bytes;
	if (s != NULL || left >= bytes)
		return s;
	size_t empty = 0;
	for (span_walk w = heap_begin_walk(h); heap_find_next(&w);)
		empty += span_count_live(w.span) == 0 ? w.span->chunk_bytes : 0;
	/* Room for the chunk may not be enough: the record may need a chunk, too. */
	if (empty + left < bytes)
		return NULL;
	heap_return_empty(h);
	return heap_take_span(h, bytes, align, state);
}

/* ---- the current span of a class ---- */

/* Moves to the next word with a free slot, from the given one on. */
static bool heap_find_word(bin *b, size_t from) {
	span *s = b->current;
	for (size_t i = from; i < span_count_words(s); i++)
		if (s->free[i] != 0) {
			b->word = &s->free[i];
			b->base = span_slot_at(s, i * TN_WORD_BITS);
			return true;
		}
	return false;
}

static bool heap_set_current(bin *b, span *s) {
	TN_LIST_UNLINK(s, next, link);
	s->state = SPAN_CURRENT;
	s->countdown = NEVER;
	b->current = s;
	return heap_find_word(b, 0);
}

/* Cuts an empty span into slots of a class, and makes it the current one. */
static bool heap_carve_span(tn_heap *h, span *s, unsigned class) {
	size_t room = h->bins[class].room;
	s->reciprocal = (uint32_t)(UINT32_MAX / room + 1);
	s->room = room;
	s->count = (uint16_t)tn_min(s->chunk_bytes / room, SPAN_SLOTS_MAX);
	s->class = (uint8_t)class;
	s->known_live = 0;
	span_give_all(s);
	h->shelves[class].spans++;
	h->used_bytes += s->chunk_bytes;
	return heap_set_current(&h->bins[class], s);
}

/* Bytes of the next chunk of a class. The first one is small, so that a heap of few blocks touches
 * little; later ones have as many slots as a record has bits. */
static size_t heap_chunk_bytes(const tn_heap *h, unsigned class) {
	size_t room = h->bins[class].room, spans = h->shelves[class].spans;
	if (room <= 512 && spans == 0)
		return TN_OS_PAGE;
	if (room < 32 || (room <= 2048 && spans < 4))
		return SPAN_BYTES_MAX / 4;
	return room < 64 ? SPAN_BYTES_MAX / 2 : SPAN_BYTES_MAX;
}

/* The last resort, when there is no chunk of the usual size: full spans with a few free slots, chunks
 * that the limit allows, and spare ones of any size. */
static TN_COLD bool heap_refill_last(tn_heap *h, bin *b, unsigned class) {
	for (span_walk w = heap_begin_walk(h); heap_find_next(&w);)
		if (w.span->state == SPAN_FULL && w.span->class == class && span_count_free(w.span) > 0)
			return heap_set_current(b, w.span);
	size_t usual = heap_chunk_bytes(h, class);
	size_t least = tn_power_of_two(tn_max(b->room, TN_OS_PAGE));
	span *s = heap_take_span_at_limit(h, usual, usual, SPAN_SPARE);
	if (s == NULL)
		s = heap_take_span_at_limit(h, least, least, SPAN_SPARE);
	for (span_walk w = heap_begin_walk(h); s == NULL && heap_find_next(&w);)
		if (w.span->chunk_bytes >= b->room && heap_take_empty(h, w.span))
			s = w.span;
	return s != NULL ? heap_carve_span(h, s, class) : (errno = ENOMEM, false);
}

static bool heap_refill_span(tn_heap *h, bin *b, unsigned class) {
	span *s = h->shelves[class].partial;
	if (s != NULL)
		return heap_set_current(b, s);
	size_t bytes = heap_chunk_bytes(h, class);
	s = *heap_spare_of(h, bytes);
	if (s != NULL)
		heap_unlink_spare(h, s);
	else
		s = heap_take_span(h, bytes, bytes, SPAN_SPARE);
	return s != NULL ? heap_carve_span(h, s, class) : heap_refill_last(h, b, class);
}

/* The class has passed through its current span: begins it again if that is worth it, else drops it. */
static bool heap_begin_again(tn_heap *h, bin *b) {
	span *s = b->current;
	size_t free = span_count_free(s);
	heap_set_live(h, s, s->count - free);
	if (free >= span_count_wanted(s))
		return heap_find_word(b, 0);
	s->state = SPAN_FULL;
	s->countdown = span_count_wanted(s) - (uint32_t)free;
	heap_drop_current(b);
	return false;
}

static bool heap_find_bits(tn_heap *h, unsigned class) {
	bin *b = &h->bins[class];
	if (b->current != NULL) {
		size_t next = (size_t)(b->word - b->current->free) + 1;
		/* A look at every fourth word is enough for the figures. */
		if (next % 4 == 0)
			heap_set_live(h, b->current, span_count_live(b->current));
		if (heap_find_word(b, next) || heap_begin_again(h, b))
			return true;
	}
	return heap_refill_span(h, b, class);
}

static size_t heap_fast_bytes(const tn_heap *h) {
	return TN_MODE == TN_MODE_RELEASE && !h->zero ? FAST_BYTES + 1 : 0;
}

/* Does the trim that another thread asked for. A request at this moment is seen in `asked`, which it
 * stores first. */
static TN_COLD void heap_obey(tn_heap *h) {
	tn_set(&h->asked, 0, TN_RELAXED);
	(void)tn_swap(&h->fast_bytes, heap_fast_bytes(h), TN_ACQ_REL);
	if (tn_get(&h->asked, TN_RELAXED) != 0)
		tn_set(&h->fast_bytes, 0, TN_RELAXED);
	heap_return_empty(h);
	heap_return_records(h);
	tn_pages_trim();
}

static inline void heap_obey_if_asked(tn_heap *h) {
	bool beyond = tn_get(&h->fast_bytes, TN_RELAXED) != heap_fast_bytes(h);
	if (TN_UNLIKELY(beyond || tn_get(&h->asked, TN_RELAXED) != 0))
		heap_obey(h);
}

static void heap_ask(tn_keeper *k) {
	tn_heap *h = (tn_heap *)(void *)((char *)k - offsetof(tn_heap, keeper));
	tn_set(&h->asked, 1, TN_RELAXED);
	tn_set(&h->fast_bytes, 0, TN_RELEASE);
}

/* The current word is used up: brings one with a bit. */
static __attribute__((noinline)) bool heap_refill(tn_heap *h, unsigned class, size_t asked) {
	heap_obey_if_asked(h);
	bool found = heap_find_bits(h, class);
	if (found)
		heap_sample_size(h, &h->bins[class], asked);
	heap_publish(h);
	return found;
}

/* ---- alloc and free ---- */

TN_INLINE void *heap_take_lowest(bin *b) {
	uint64_t bits = *b->word;
	char *slot = b->base + (size_t)(unsigned)__builtin_ctzll(bits) * b->room;
	*b->word = bits & (bits - 1);
	return slot;
}

static void *heap_take_small(tn_heap *h, unsigned class, size_t asked) {
	bin *b = &h->bins[class];
	if (TN_UNLIKELY(*b->word == 0) && !heap_refill(h, class, asked))
		return NULL;
	void *p = heap_take_lowest(b);
	if (h->zero)
		memset(p, 0, b->room);
	return p;
}

static void *heap_take_large(tn_heap *h, size_t size, size_t align) {
	size_t bytes = tn_max(size, align);
	if (bytes > PTRDIFF_MAX - TN_OS_PAGE)
		return errno = ENOMEM, NULL;
	bytes = tn_chunk_is_paged(&h->source) ? tn_pages_reserved(bytes, TN_OS_PAGE)
	                                      : tn_round_up(bytes, TN_OS_PAGE);
	span *s = heap_take_span_at_limit(h, bytes, tn_max(align, TN_OS_PAGE), SPAN_LARGE);
	if (s == NULL)
		return errno = ENOMEM, NULL;
	s->reciprocal = 1;
	s->countdown = 1;
	s->large_free = 0;
	s->asked = size;
	s->room = bytes;
	s->count = 1;
	s->known_live = 0;
	TN_LIST_PUSH(&h->large, s, next, link);
	heap_set_live(h, s, 1);
	heap_sample_refill(h);
	h->large_bytes += bytes;
	h->large_asked += size;
	heap_publish(h);
	bool zero = h->zero && !tn_chunk_is_alone(&h->source, bytes);
	return zero ? memset(s->base, 0, size) : s->base;
}

static void heap_give_large(tn_heap *h, span *s) {
	heap_set_live(h, s, 0);
	TN_LIST_UNLINK(s, next, link);
	h->large_bytes -= s->room;
	h->large_asked -= s->asked;
	heap_give_span(h, s);
}

static void *heap_take(tn_heap *h, size_t size) {
	if (TN_LIKELY(size <= FAST_BYTES))
		return heap_take_small(h, fast_classes[(size + HEAP_GRAIN - 1) / HEAP_GRAIN], size);
	if (size <= HEAP_SMALL_BYTES)
		return heap_take_small(h, heap_class_of(size), size);
	return heap_take_large(h, size, HEAP_GRAIN);
}

/* From the smallest class whose slots are all aligned, or from a chunk of its own. */
static void *heap_take_aligned(tn_heap *h, size_t size, size_t align) {
	if (size <= HEAP_SMALL_BYTES && align <= TN_OS_PAGE)
		for (unsigned class = heap_class_of(size); class < HEAP_CLASS_COUNT; class ++)
			if ((h->bins[class].room & (align - 1)) == 0)
				return heap_take_small(h, class, size);
	return heap_take_large(h, size, align);
}

static __attribute__((noinline)) void *heap_alloc_slow(tn_heap *h, size_t size, size_t align) {
	if (!heap_align_valid(align))
		return errno = EINVAL, NULL;
	heap_enter(h, "alloc");
	heap_obey_if_asked(h);
	void *p = align <= HEAP_GRAIN ? heap_take(h, size) : heap_take_aligned(h, size, align);
	heap_leave(h);
	return p;
}

/* Whether all slots have this alignment: 0 or a power of two up to 16. */
TN_INLINE bool heap_is_aligned(size_t align) {
	return align <= HEAP_GRAIN && (0x10117 >> align & 1) != 0;
}

void *tn_heap_alloc(tn_heap *h, size_t size, size_t align) {
	if (TN_LIKELY(size < TN_LOAD(&h->fast_bytes) && heap_is_aligned(align))) {
		bin *b = &h->bins[fast_classes[(size + HEAP_GRAIN - 1) / HEAP_GRAIN]];
		if (TN_LIKELY(*b->word != 0))
			return heap_take_lowest(b);
	}
	return heap_alloc_slow(h, size, align);
}

/* For a span that is not current: links it to its class if it was full, spares it if it is empty. */
static void heap_return_small(tn_heap *h, span *s) {
	size_t live = span_count_live(s);
	if (s->state == SPAN_FULL) {
		s->state = SPAN_PARTIAL;
		TN_LIST_PUSH(&h->shelves[s->class].partial, s, next, link);
	}
	heap_set_live(h, s, live);
	s->countdown = (uint32_t)(live - live / 2);
	if (live > 0)
		return;
	heap_keep_spare(h, s);
	heap_return_surplus(h);
}

/* A span's countdown has ended. */
static __attribute__((noinline)) void heap_return_span(tn_heap *h, span *s) {
	if (s->state == SPAN_LARGE)
		heap_give_large(h, s);
	else if (s->state == SPAN_CURRENT)
		s->countdown = NEVER;
	else
		heap_return_small(h, s);
	heap_obey_if_asked(h);
	heap_publish(h);
}

/* The span of a live block, and the number of its slot; panics at any other pointer. */
static inline span *heap_find_block(
	const tn_heap *h, const void *p, size_t *slot, const char *operation) {
	span *s = span_of(h, p);
	size_t number;
	if (TN_UNLIKELY(s == NULL || !span_find_slot(s, p, &number) || !span_is_live(s, number)))
		heap_refuse(h, p, operation);
	*slot = number;
	return s;
}

static inline void heap_give_block(tn_heap *h, span *s, void *p, size_t number) {
	span_wipe_slot(&h->source, s, p);
	span_give_slot(s, number);
	if (TN_UNLIKELY(--s->countdown == 0))
		heap_return_span(h, s);
}

static __attribute__((noinline)) void heap_free_slow(tn_heap *h, void *p) {
	if (p == NULL)
		return;
	size_t number;
	heap_enter(h, "free");
	span *s = heap_find_block(h, p, &number, "free");
	heap_give_block(h, s, p, number);
	heap_leave(h);
}

TN_INLINE void heap_free(tn_heap *h, void *p) {
	span *s = tn_hook_checked() ? NULL : span_of(h, p);
	size_t number;
	if (TN_LIKELY(s != NULL && span_find_slot(s, p, &number) && span_give_slot(s, number))) {
		if (TN_UNLIKELY(--s->countdown == 0))
			heap_return_span(h, s);
		return;
	}
	heap_free_slow(h, p);
}

void tn_heap_free(tn_heap *h, void *p) {
	heap_free(h, p);
}

/* Whether a block with room for `room` bytes may stay in place for `size` bytes: it has the room, and
 * no smaller class or chunk would waste less than half of it. */
static bool heap_may_stay(size_t room, size_t size) {
	return size <= room && (size >= room / 2 || room == HEAP_GRAIN);
}

void tn_heap_free_sized(tn_heap *h, void *p, size_t size) {
	if (TN_MODE == TN_MODE_HARDENED && p != NULL) {
		heap_enter(h, "free_sized");
		size_t number;
		const span *s = heap_find_block(h, p, &number, "free_sized");
		if (s->state == SPAN_LARGE ? size != s->asked : !heap_may_stay(s->room, size))
			tn_panic("heap", h->name, "free_sized: %p has room for %zu bytes; %zu was never its size",
				p, s->room, size);
		heap_leave(h);
	}
	heap_free(h, p);
}

static void heap_resize(tn_heap *h, span *s, char *p, size_t size) {
	bool large = s->state == SPAN_LARGE;
	size_t from = large ? s->asked : size;
	size_t to = large ? size : s->room;
	/* A zeroing heap promises that bytes behind the size asked for are 0. */
	if (h->zero && from < to)
		memset(p + from, 0, to - from);
	if (large) {
		h->large_asked += size - s->asked;
		s->asked = size;
		heap_publish(h);
	}
}

static void *heap_move(tn_heap *h, span *s, void *p, size_t number, size_t size) {
	void *q = heap_take(h, size);
	if (q == NULL)
		return NULL;
	memcpy(q, p, tn_min(s->state == SPAN_LARGE ? s->asked : s->room, size));
	heap_give_block(h, s, p, number);
	return q;
}

void *tn_heap_realloc(tn_heap *h, void *p, size_t new_size) {
	if (p == NULL)
		return tn_heap_alloc(h, new_size, 0);
	heap_enter(h, "realloc");
	size_t number;
	span *s = heap_find_block(h, p, &number, "realloc");
	void *q = p;
	if (heap_may_stay(s->room, new_size))
		heap_resize(h, s, p, new_size);
	else
		q = heap_move(h, s, p, number, new_size);
	heap_leave(h);
	return q;
}

/* ---- reset and trim ---- */

/* The oldest span of each class stays with it, so that it begins at the same address again; the others
 * serve any class. */
static void heap_reset_span(tn_heap *h, span *s) {
	shelf *b = &h->shelves[s->class];
	bool stays = s->state != SPAN_SPARE && b->partial == NULL;
	span **list = stays ? &b->partial : heap_spare_of(h, s->chunk_bytes);
	span_give_all(s);
	s->known_live = 0;
	s->state = stays ? SPAN_PARTIAL : SPAN_SPARE;
	TN_LIST_PUSH(list, s, next, link);
	*(stays ? &h->used_bytes : &h->spare_bytes) += s->chunk_bytes;
	b->spans += stays;
}

static void heap_reset(tn_heap *h, const void *site) {
	(void)site;
	for (span_walk w = heap_begin_walk(h); heap_find_next(&w);) {
		span_wipe(&h->source, w.span);
		if (w.span->state == SPAN_LARGE)
			heap_give_large(h, w.span);
	}
	for (unsigned i = 0; i < HEAP_CLASS_COUNT; i++)
		heap_drop_current(&h->bins[i]);
	memset(h->shelves, 0, sizeof h->shelves);
	memset(h->spare, 0, sizeof h->spare);
	h->spare_bytes = h->used_bytes = h->live_bytes = h->live_count = 0;
	for (span_walk w = heap_begin_walk(h); heap_find_next(&w);)
		heap_reset_span(h, w.span);
}

static size_t heap_trim(tn_heap *h) {
	size_t before = h->taken_bytes;
	heap_return_empty(h);
	heap_return_records(h);
	return before - h->taken_bytes;
}

/* ---- looking ---- */

bool tn_heap_owns(const tn_heap *h, const void *p) {
	uintptr_t at = span_record_at(p);
	const span *s = (const span *)at;
	/* A record of this heap is in a page of this heap, as the table tells, too. */
	if (at % SPAN_ALIGN == 0 && tn_pages_owner(at) == h)
		return (size_t)((const char *)p - s->base) < (size_t)s->count * s->room;
	return heap_find_large(h, p) != NULL;
}

void tn_heap_each(tn_heap *h, void (*visit)(void *p, size_t size, void *ctx), void *ctx) {
	heap_enter(h, "each");
	for (span_walk w = heap_begin_walk(h); heap_find_next(&w);)
		for (size_t i = 0; i < w.span->count; i++)
			if (span_is_live(w.span, i))
				visit(span_slot_at(w.span, i), w.span->room, ctx);
	heap_leave(h);
}

static size_t heap_room_of(const tn_heap *h, const void *p, const char *operation) {
	size_t number;
	return heap_find_block(h, p, &number, operation)->room;
}

static void heap_require(const tn_heap *h, bool holds, const char *what) {
	if (!holds)
		tn_panic("heap", h->name, "verify: %s", what);
}

/* The length of a list whose spans are all in one state. */
static size_t heap_count_spans(const tn_heap *h, const span *s, enum span_state state) {
	size_t count = 0;
	for (; s != NULL; s = s->next, count++)
		heap_require(h, s->state == state, "I2: a span is in the list of another state");
	return count;
}

static void heap_verify_span(const tn_heap *h, const span *s) {
	size_t live = span_count_live(s), beyond = span_count_words(s) * TN_WORD_BITS - s->count;
	for (size_t i = 0; i < span_count_pages(s); i++)
		heap_require(h, span_of(h, s->base + i * TN_OS_PAGE) == s, "I4: a chunk has another owner");
	if (s->state == SPAN_LARGE) {
		heap_require(h, live == 1 && s->countdown == 1, "I2: a large block is not one block");
		return;
	}
	heap_require(h, beyond == 0 || s->free[span_count_words(s) - 1] >> (TN_WORD_BITS - beyond) == 0,
		"I1: a slot behind the last one is free");
	if (s->state == SPAN_FULL)
		heap_require(
			h, s->countdown == span_count_wanted(s) - (s->count - live), "I2: a full span is not full");
	if (s->state == SPAN_PARTIAL)
		heap_require(h, s->countdown <= live || live == 0, "I2: a partial span would be lost");
	heap_require(h, s->state != SPAN_CURRENT || h->bins[s->class].current == s, "I2: a span is lost");
	heap_require(h, s->state != SPAN_SPARE || live == 0, "I2: a spare span has blocks");
}

static void heap_verify(const tn_heap *h) {
	size_t chunks[SPAN_LARGE + 1] = {0}, bytes = h->own.bytes, partial = 0, spare = 0;
	for (span_walk w = heap_begin_walk(h); heap_find_next(&w);) {
		heap_require(h,
			w.span->heap == h && w.span->state <= SPAN_LARGE && w.span->count <= SPAN_SLOTS_MAX,
			"I4: a record was overwritten");
		heap_verify_span(h, w.span);
		chunks[w.span->state]++;
		bytes += w.span->chunk_bytes;
	}
	for (const record_chunk *r = h->own.next; r != NULL; r = r->next)
		bytes += r->bytes;
	for (unsigned i = 0; i < HEAP_CLASS_COUNT; i++)
		partial += heap_count_spans(h, h->shelves[i].partial, SPAN_PARTIAL);
	for (unsigned i = 0; i < SPARE_KINDS; i++)
		spare += heap_count_spans(h, h->spare[i], SPAN_SPARE);
	heap_require(h, partial == chunks[SPAN_PARTIAL], "I2: the partial spans do not add up");
	heap_require(h, spare == chunks[SPAN_SPARE], "I2: the spare spans do not add up");
	heap_require(h, heap_count_spans(h, h->large, SPAN_LARGE) == chunks[SPAN_LARGE],
		"I2: the large blocks do not add up");
	heap_require(
		h, bytes == h->taken_bytes && bytes <= h->limit_bytes, "I3: the bytes taken do not add up");
}

/* ---- create and destroy ---- */

static bool heap_make(tn_heap *h, const tn_heap_options *o) {
	char *base = (char *)h;
	if (tn_chunk_is_owned(&h->source, h) || !tn_pages_set_owner(h, h))
		return false;
	(void)o;
	h->fast_bytes = heap_fast_bytes(h);
	heap_begin_records(&h->own, base, tn_round_up(sizeof *h, SPAN_ALIGN));
	h->youngest = &h->own;
	return true;
}

static void heap_end(tn_heap *h) {
	for (span_walk w = heap_begin_walk(h); heap_find_next(&w);) {
		span_wipe(&h->source, w.span);
		heap_give_span(h, w.span);
	}
	for (record_chunk *r = h->own.next, *next; r != NULL; r = next) {
		next = r->next;
		heap_give_record_chunk(h, (char *)r, r->bytes);
	}
	tn_pages_set_owner(h, NULL);
}

#endif
