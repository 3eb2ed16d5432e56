/* The slab: chunks carved into slots of one size, free slots in array magazines.
 *
 *   alloc (inline)        the loaded magazine has a slot: pop
 *   `- alloc_slow         hardened and debug; else
 *      `- refill          previous is full: exchange; `full` has one: load it; else
 *         `- carve        some fresh slots of a chunk into the loaded magazine
 *   free (inline)         the loaded magazine has room: push
 *   `- free_slow          hardened and debug; else
 *      `- return          previous is empty: exchange; else push previous to `full` (its pointers
 *                         checked) and load an empty one
 *         `- return_surplus  now and then: chunks that are not needed go back
 *
 * A magazine is an array of 2^k words aligned to its size: word 0 links it in a list, the others hold
 * pointers. Its storage is in the tail of the chunks, enough for all of their slots, so a free never
 * allocates. Two more are next to the slab itself. Slots and chunks are in slots.h and grid.h.
 *
 * I1  magazines are full or empty, except the loaded one; `full` and `empty` link those that are
 *     neither loaded nor previous.
 * I2  a chunk's magazines are in circulation exactly while some of its slots are carved. With the two
 *     of the slab they hold every carved slot and two magazines more. So while frees are right, a
 *     full magazine can always be exchanged for an empty one.
 * I3  in use = carved - free - quarantined, and free = the slots that the magazines hold.
 * I4  bits: in hardened and debug 1 for a live slot; in release scratch, 1 for a free one in a
 *     walk. So in release, verify finds I4 broken only by a slot that is free twice.
 * I5  taken_bytes is the sum of the chunks and the slab's own memory, and at most limit_bytes; the page
 *     layer's table names the slab as the owner of each chunk.
 *
 * Two magazines in hand, as in Bonwick and Adams 2001, put at least one magazine's worth of calls
 * between two changes of the lists, whatever the order of calls. */
#include <tenure/slab.h>

#include <tenure/detail/front.h>

#include <errno.h>

#include "../base/probes.h"
#include "magazines.h"
#include "slab.h"
#include "slots.h"
#include "sort.h"

enum {
	MAGAZINE_WORDS_MIN = 8,
	MAGAZINE_WORDS_MAX = 512,
	EXTRA_MAGAZINES = 2,
	CARVE_BYTES = 4096, /* fresh slots are carved about a page at a time */
	/* Slot 0 and a struct at a page's start would have the same low 12 bits, and the load of `top`
	 * after a store to the slot would wait for that store. */
	ALIAS_GAP = 1600,
	COUNTED_MAX = 1 << 16, /* free slots that are counted by chunk for a reader */
};
#define SLAB_QUARANTINE_BYTES ((size_t)16 << 20) /* debug: per slab */
#define GUARDED_BYTES_MAX ((size_t)64 << 20)     /* debug: per process, slots with pages of their own */

_Static_assert(
	offsetof(slab, state) + sizeof(uint32_t) <= sizeof(tn_slab) + TN_STAND_IN_BYTES, "stand-in");
_Static_assert(_Alignof(slab) <= TN_STAND_IN_ALIGN, "stand-in");

static TN_ATOMIC(size_t) guarded_bytes;

static void slab_publish(slab *s);

static slab *slab_enter(tn_slab *hot, const char *operation) {
	slab *s = (slab *)hot;
	if (TN_MODE != TN_MODE_RELEASE && s->state != TN_ALIVE)
		tn_panic("slab", NULL, "%s: %p is not a live slab", operation, (void *)s);
	tn_enter(&s->busy, s->kind, s->name, operation);
	return s;
}

/* In debug, readers see the figures of every call. */
static inline void slab_leave(slab *s) {
	if (TN_MODE == TN_MODE_DEBUG)
		slab_publish(s);
	tn_leave(&s->busy);
}

static const slab *slab_look(const tn_slab *hot, const char *operation) {
	const slab *s = (const slab *)hot;
	tn_look(&s->busy, s->kind, s->name, operation);
	return s;
}

/* ---- walking the free slots ---- */

/* Release: refuses a magazine with a pointer that is in no chunk of this slab. Not inlined into its
 * caller, as slab_sort_free. */
static __attribute__((noinline)) void slab_check_magazine(const slab *s, uintptr_t magazine) {
	if (TN_MODE != TN_MODE_RELEASE)
		return;
	void **slots = slab_slots_of(magazine);
	size_t first = tn_pages_first_foreign(s, slots, s->magazine_slots, s->grid.chunk_bytes);
	if (TN_UNLIKELY(first < s->magazine_slots))
		slab_refuse_foreign(s, slots[first], "flush");
}

typedef void free_visitor(const slab *s, void *slot, const char *operation);

static void slab_each_of(
	const slab *s, uintptr_t magazine, size_t count, free_visitor *visit, const char *operation) {
	for (; count > 0; count--)
		visit(s, slab_slots_of(magazine)[count - 1], operation);
}

/* Calls `visit` with every free slot, newest first. */
static void slab_each_free(const slab *s, free_visitor *visit, const char *operation) {
	slab_each_of(s, slab_loaded(s), slab_loaded_count(s), visit, operation);
	if (s->previous_full)
		slab_each_of(s, s->previous, s->magazine_slots, visit, operation);
	for (uintptr_t magazine = s->full; magazine != 0; magazine = *slab_link_of(magazine))
		slab_each_of(s, magazine, s->magazine_slots, visit, operation);
}

/* Release marks a free slot; in the other modes its live bit is clear already. */
static void slab_mark_free(const slab *s, void *slot, const char *operation) {
	chunk *c = slab_chunk_of(s, slot, operation);
	const size_t bit = grid_bit_of(slab_grid_of(s, c), c->base, slot);
	if (tn_test_bit(c->bits, bit))
		tn_panic(s->kind, s->name, "%s: %p is %s", operation, slot,
			TN_MODE == TN_MODE_RELEASE ? "free twice" : "both free and live");
	if (TN_MODE == TN_MODE_RELEASE)
		tn_flip_bit(c->bits, bit);
}

static void slab_count_slot(const slab *s, void *slot, const char *operation) {
	slab_chunk_of(s, slot, operation)->free++;
}

/* Makes the bits tell live from free: slab_is_live is right until the next call that changes the
 * slab. */
static void slab_set_bits(const slab *s, const char *operation) {
	if (TN_MODE != TN_MODE_RELEASE)
		return;
	for (chunk *c = s->chunks; c != NULL; c = c->next)
		slab_clear_bits(c);
	slab_each_free(s, slab_mark_free, operation);
}

static void slab_check_all_fences(const slab *s, const char *operation) {
	if (TN_MODE != TN_MODE_DEBUG)
		return;
	for (const chunk *c = s->chunks; c != NULL; c = c->next)
		for (size_t i = 0; i < c->carved; i++)
			if (slab_is_live(c, slab_slot_at(c, i)))
				slab_check_fences(s, c, slab_slot_at(c, i), operation);
}

/* ---- figures ---- */

/* The figures for a slab with `live` slots; the partly used chunks as they were counted last. */
static inline void slab_read(const slab *s, size_t live, tn_stats *stats) {
	const size_t size = s->grid.slot_size;
	*stats = (tn_stats){.live_bytes = live * size,
		.live_count = live,
		.cached_bytes = (s->slot_count - live) * size,
		.reserved_bytes = s->taken_bytes,
		.committed_bytes = s->taken_bytes,
		.peak_bytes = tn_max(live, s->peak) * size,
		.chunk_count = s->chunk_count,
		.partial_count = s->partial_count,
		.refills = s->refills,
		.resets = s->resets,
		.slot_bytes = size,
		.slot_count = s->slot_count,
		.partial_live_count = s->partial_live};
}

static void slab_sample_peak(slab *s) {
	size_t now = slab_in_use(s);
	s->window_peak = tn_max(s->window_peak, now);
	s->peak = tn_max(s->peak, now);
}

static inline void slab_sample_partial(slab *s, const chunk *c, size_t live) {
	if (live == 0 || live == c->grid->count)
		return;
	s->partial_count++;
	s->partial_live += live;
}

/* Counts each chunk's free slots. Not inlined into cold functions, as slab_sort_free. */
static __attribute__((noinline)) void slab_count_by_chunk(slab *s, const char *operation) {
	for (chunk *c = s->chunks; c != NULL; c = c->next)
		c->free = 0;
	slab_each_free(s, slab_count_slot, operation);
	s->partial_count = s->partial_live = 0;
	for (const chunk *c = s->chunks; c != NULL; c = c->next)
		slab_sample_partial(s, c, c->carved - c->free);
}

/* Called where a magazine has changed. The figures are those of an empty loaded magazine: readers
 * subtract its slots. Chunks are counted if a reader asked for that and it takes no noticeable time. */
static void slab_publish(slab *s) {
	if (s->node == NULL)
		return;
	if (tn_list_take_wanted(s->node, TN_WANT_COUNT) && slab_count_free(s) <= COUNTED_MAX)
		slab_count_by_chunk(s, "stats");
	tn_stats stats;
	slab_read(s, slab_in_use(s) + slab_loaded_count(s), &stats);
	stats.peak_bytes = s->peak * s->grid.slot_size;
	tn_list_publish(
		s->node, &stats, TN_FIGURES_ALL, (tn_position){slab_loaded(s), s->hot.magazine_mask});
}

TN_RACY void tn_slab_look(const void *object, tn_position from, tn_listed *listed) {
	const slab *s = object;
	tn_stats *stats = &listed->stats;
	size_t top = *(const volatile uintptr_t *)&s->hot.top - from.at;
	size_t count = tn_min(top > from.room ? 0 : top / WORD, stats->live_count);
	stats->live_count -= count;
	stats->live_bytes -= count * stats->slot_bytes;
	stats->cached_bytes += count * stats->slot_bytes;
	stats->peak_bytes = tn_max(stats->peak_bytes, stats->live_bytes);
}

/* ---- chunks ---- */

static const grid *slab_choose_grid(slab *s) {
	if (TN_MODE != TN_MODE_DEBUG || s->guarded.count == 0)
		return &s->grid;
	size_t before = tn_add(&guarded_bytes, s->grid.chunk_bytes, TN_RELAXED);
	if (before + s->grid.chunk_bytes <= GUARDED_BYTES_MAX)
		return &s->guarded;
	tn_add(&guarded_bytes, 0 - s->grid.chunk_bytes, TN_RELAXED);
	return &s->grid;
}

static chunk *slab_take_chunk(slab *s) {
	const size_t bytes = s->grid.chunk_bytes;
	if (s->limit_bytes - s->taken_bytes < bytes)
		return errno = ENOMEM, NULL;
	char *base = tn_chunk_acquire(&s->source, bytes, bytes);
	if (base == NULL)
		return NULL;
	if (!tn_pages_set_owner(base, s)) {
		tn_chunk_release(&s->source, base, bytes, bytes);
		return NULL;
	}
	chunk *c = slab_chunk_at(s, (uintptr_t)base);
	*c = (chunk){.base = base, .grid = slab_choose_grid(s)};
	slab_clear_bits(c);
	if (TN_MODE == TN_MODE_DEBUG)
		memset(base + s->record_offset, 0, c->grid->count * sizeof(slot_record));
	*(s->chunks == NULL ? &s->chunks : &s->last->next) = c;
	s->last = c;
	s->chunk_count++;
	s->slot_count += c->grid->count;
	s->taken_bytes += bytes;
	return c;
}

static void slab_fini_slots(slab *s, chunk *c) {
	for (size_t i = 0; s->fini != NULL && i < c->carved; i++)
		s->fini(slab_slot_at(c, i), s->ctx);
}

static void slab_give_chunk(slab *s, chunk *c) {
	const size_t bytes = s->grid.chunk_bytes;
	char *base = c->base;
	tn_permit(base, c->carved_bytes);
	slab_fini_slots(s, c);
	if (slab_is_guarded(s, c))
		tn_add(&guarded_bytes, 0 - bytes, TN_RELAXED);
	tn_wipe(base, c->carved_bytes);
	tn_pages_set_owner(base, NULL);
	s->known_base = NO_BASE;
	s->chunk_count--;
	s->slot_count -= c->grid->count;
	s->taken_bytes -= bytes;
	tn_chunk_release(&s->source, base, bytes, bytes);
}

static void slab_give_all_chunks(slab *s) {
	for (chunk *c = s->chunks, *next; c != NULL; c = next) {
		next = c->next;
		slab_give_chunk(s, c);
	}
	s->chunks = s->last = NULL;
}

/* ---- fresh slots ---- */

/* Puts a chunk's magazines into circulation (I2). */
static void slab_push_magazines(slab *s, const chunk *c) {
	uintptr_t magazine = (uintptr_t)c->base + s->magazine_offset;
	/* The lowest on top: filled one after the other they are one run of memory. */
	for (size_t i = s->chunk_magazines; i > 0; i--)
		slab_push(&s->empty, magazine + (i - 1) * (s->hot.magazine_mask + 1));
}

static chunk *slab_chunk_to_carve(slab *s) {
	chunk *c = s->carving;
	while (c != NULL && c->carved == c->grid->count)
		c = c->next;
	if (c == NULL)
		c = slab_take_chunk(s);
	return s->carving = c;
}

/* Fills the loaded magazine, which is empty, with fresh slots, the lowest on top. */
static bool slab_carve(slab *s) {
	chunk *c = slab_chunk_to_carve(s);
	if (c == NULL)
		return false;
	if (s->init != NULL && !s->init(slab_slot_at(c, c->carved), s->ctx))
		return errno = ENOMEM, false;
	if (c->carved == 0)
		slab_push_magazines(s, c);
	size_t count = s->init != NULL ? 1 : tn_max(CARVE_BYTES / c->grid->stride, 1);
	count = tn_min(tn_min(count, s->magazine_slots), c->grid->count - c->carved);
	void **slots = slab_slots_of(slab_loaded(s));
	for (size_t i = 0; i < count; i++)
		slots[count - 1 - i] = slab_slot_at(c, c->carved + i);
	c->carved += count;
	c->carved_bytes = c->carved * c->grid->stride;
	s->carved += count;
	slab_load(s, slab_loaded(s), count);
	return true;
}

/* ---- giving chunks back ---- */

static bool slab_is_leaving(const slab *s, const void *p) {
	return slab_chunk_at(s, grid_base_of(&s->grid, p))->leaving;
}

static bool slab_is_leaving_magazine(const slab *s, uintptr_t magazine) {
	return magazine - (uintptr_t)s->own >= s->own_bytes && slab_is_leaving(s, (void *)magazine);
}

/* Unlinks the magazines that hold slots. Returns them oldest first, linked by word 0; the loaded one is
 * the last. */
static uintptr_t slab_unlink_magazines(slab *s) {
	uintptr_t order = 0;
	slab_push(&order, slab_loaded(s));
	slab_push(s->previous_full ? &order : &s->empty, s->previous);
	slab_move(&s->full, &order);
	s->full_count = 0;
	return order;
}

/* Drops the slots of leaving chunks. Order within and among the magazines stays; the writer never
 * overtakes the reader. Returns how many slots stay. */
static size_t slab_drop_leaving(slab *s, uintptr_t order) {
	uintptr_t writer = order;
	size_t written = 0, total = 0;
	for (uintptr_t reader = order; reader != 0; reader = *slab_link_of(reader)) {
		bool last = *slab_link_of(reader) == 0;
		size_t count = last ? slab_loaded_count(s) : s->magazine_slots;
		for (size_t i = 0; i < count; i++) {
			void *slot = slab_slots_of(reader)[i];
			if (slab_is_leaving(s, slot))
				continue;
			if (written == s->magazine_slots) {
				writer = *slab_link_of(writer);
				written = 0;
			}
			slab_slots_of(writer)[written++] = slot;
			total++;
		}
	}
	return total;
}

/* Links the magazines again without those of leaving chunks: the first ones of `order` hold `total`
 * slots, the others are empty. */
static void slab_link_magazines(slab *s, uintptr_t order, size_t total) {
	uintptr_t *rest = &order, spare = 0;
	for (size_t slots = 0; slots < total; slots += s->magazine_slots)
		rest = slab_link_of(*rest);
	slab_move(rest, &spare);
	slab_move(&s->empty, &spare);
	while (spare != 0) {
		uintptr_t magazine = slab_pop(&spare);
		if (!slab_is_leaving_magazine(s, magazine))
			slab_push(&s->empty, magazine);
	}
	while (order != 0) {
		uintptr_t magazine = slab_pop(&order), stays = magazine;
		if (slab_is_leaving_magazine(s, magazine)) {
			stays = slab_pop(&s->empty);
			memcpy((void *)stays, (void *)magazine, s->hot.magazine_mask + 1);
		}
		slab_push(&s->full, stays);
		s->full_count++;
	}
	s->previous = slab_pop(&s->empty);
	s->previous_full = false;
	/* The newest is loaded unless it is full; then an empty one is. */
	size_t count = total % s->magazine_slots;
	s->full_count -= count > 0;
	slab_load(s, slab_pop(count > 0 ? &s->full : &s->empty), count);
}

static void slab_give_leaving(slab *s) {
	chunk **at = &s->chunks;
	s->last = NULL;
	while (*at != NULL) {
		chunk *c = *at;
		if (!c->leaving) {
			s->last = c;
			at = &c->next;
			continue;
		}
		*at = c->next;
		s->carved -= c->carved;
		slab_give_chunk(s, c);
	}
	s->carving = s->chunks;
}

/* Gives back chunks without a live slot, up to `most`. */
static void slab_return_empty(slab *s, size_t most, const char *operation) {
	size_t leaving = 0;
	slab_count_by_chunk(s, operation);
	for (chunk *c = s->chunks; c != NULL; c = c->next) {
		c->leaving = c->free == c->carved && leaving < most;
		leaving += c->leaving;
	}
	s->freed = 0;
	if (leaving == 0)
		return;
	uintptr_t order = slab_unlink_magazines(s);
	slab_link_magazines(s, order, slab_drop_leaving(s, order));
	slab_give_leaving(s);
}

/* How many slots the slab keeps chunks for. */
static size_t slab_count_to_keep(const slab *s) {
	size_t now = slab_in_use(s);
	if (s->retain_chunks == TN_NONE)
		return now;
	if (s->retain_chunks >= s->chunk_count)
		return SIZE_MAX;
	if (s->retain_chunks != 0)
		return now + s->retain_chunks * s->grid.count;
	/* Peaks are sampled only when a magazine is refilled. */
	size_t unseen = 2 * s->magazine_slots;
	return tn_max(s->window_peak, s->earlier_peak) + unseen;
}

/* Called when a magazine was pushed to `full`. A look costs a walk over the free slots, so it is taken
 * at most once for half as many frees as slots are free. The recent high-water mark is that of this
 * window and the one before; a window is as many frees as slots are carved. */
static void slab_return_surplus(slab *s) {
	s->freed += s->magazine_slots;
	s->window_freed += s->magazine_slots;
	size_t keep = slab_count_to_keep(s);
	size_t chunks = s->carved > keep ? (s->carved - keep) / s->grid.count : 0;
	if (s->freed >= slab_count_free(s) / 2 && chunks > 0)
		slab_return_empty(s, chunks, "flush");
	if (s->window_freed >= s->carved) {
		s->window_freed = 0;
		s->earlier_peak = s->window_peak;
		s->window_peak = slab_in_use(s);
	}
}

/* ---- alloc and free, without checks ---- */

/* The loaded magazine is empty: loads one with slots. */
static bool slab_load_slots(slab *s) {
	uintptr_t drained = slab_loaded(s);
	if (s->previous_full) {
		slab_load(s, s->previous, s->magazine_slots);
		s->previous = drained;
		s->previous_full = false;
		return true;
	}
	slab_sort_free(s);
	uintptr_t magazine = slab_pop(&s->full);
	if (magazine == 0)
		return slab_carve(s);
	s->full_count--;
	slab_push(&s->empty, s->previous);
	s->previous = drained;
	slab_load(s, magazine, s->magazine_slots);
	return true;
}

static TN_COLD bool slab_refill(slab *s) {
	slab_sample_peak(s);
	s->refills++;
	bool loaded = slab_load_slots(s);
	slab_publish(s);
	return loaded;
}

TN_INLINE void *slab_take_slot(slab *s) {
	uintptr_t top = s->hot.top;
	if (TN_UNLIKELY((top & s->hot.magazine_mask) == 0)) {
		if (!slab_refill(s))
			return NULL;
		top = s->hot.top;
	}
	s->hot.top = top - WORD;
	return *(void **)top;
}

/* The loaded magazine is full: loads one with room. */
static void slab_load_room(slab *s) {
	uintptr_t filled = slab_loaded(s);
	if (!s->previous_full) {
		slab_load(s, s->previous, 0);
		s->previous = filled;
		s->previous_full = true;
		return;
	}
	slab_check_magazine(s, s->previous);
	uintptr_t magazine = slab_pop(&s->empty);
	if (TN_UNLIKELY(magazine == 0))
		tn_panic(s->kind, s->name, "free: more slots were freed than handed out");
	slab_sample_disorder(s, s->previous);
	slab_push(&s->full, s->previous);
	s->full_count++;
	s->previous = filled;
	slab_load(s, magazine, 0);
	slab_return_surplus(s);
}

static TN_COLD void slab_return(slab *s) {
	slab_load_room(s);
	if (TN_UNLIKELY(tn_list_take_wanted(s->node, TN_WANT_TRIM)))
		slab_return_empty(s, SIZE_MAX, "trim");
	slab_publish(s);
}

TN_INLINE void slab_give_slot(slab *s, void *p) {
	if (TN_UNLIKELY(((s->hot.top + WORD) & s->hot.magazine_mask) == 0))
		slab_return(s);
	uintptr_t top = s->hot.top + WORD;
	if (*(void **)top != p)
		*(void **)top = p;
	s->hot.top = top;
}

/* ---- debug: the quarantine ---- */

/* The slot that has been in quarantine longest is free. */
static void slab_pop_quarantine(slab *s) {
	slot_record *r = s->oldest;
	chunk *c = slab_chunk_at(s, grid_base_of(&s->grid, r));
	const size_t stride = c->grid->stride;
	char *slot = slab_slot_at(c, (size_t)(r - slab_records_of(s, c)));
	s->oldest = r->younger;
	s->quarantined--;
	s->quarantine_bytes -= stride;
	if (slab_is_guarded(s, c))
		tn_os_unprotect(slot - c->grid->lead, stride);
	slab_give_slot(s, slot);
}

static void slab_end_quarantine(slab *s) {
	while (s->quarantined > 0)
		slab_pop_quarantine(s);
}

static void slab_push_quarantine(slab *s, const chunk *c, void *slot, const void *site) {
	const size_t stride = c->grid->stride;
	slot_record *r = slab_record_of(s, c, slot);
	r->free_site = site == NULL ? r->free_site : site;
	r->younger = NULL;
	*(s->quarantined++ == 0 ? &s->oldest : &s->youngest->younger) = r;
	s->youngest = r;
	s->quarantine_bytes += stride;
	tn_forbid(slot, s->grid.slot_size);
	if (slab_is_guarded(s, c))
		tn_os_protect((char *)slot - c->grid->lead, stride);
	while (s->quarantine_bytes > SLAB_QUARANTINE_BYTES)
		slab_pop_quarantine(s);
}

/* ---- alloc and free in hardened and debug ---- */

/* The chunk and the bit of a pointer that should be a slot of this slab. Any other pointer ends in a
 * panic: here, or because its bit does not say what it should. */
TN_INLINE chunk *slab_find_chunk(slab *s, const void *p, size_t *bit, const char *operation) {
	uintptr_t base = grid_base_of(&s->grid, p);
	if (TN_UNLIKELY(base != s->known_base)) {
		slab_chunk_of(s, p, operation);
		s->known_base = base;
	}
	chunk *c = slab_chunk_at(s, base);
	const grid *g = slab_grid_of(s, c);
	size_t offset = (uintptr_t)p - base - grid_lead(g);
	if (TN_UNLIKELY(!grid_has_grain(g, offset, c->carved_bytes)))
		slab_chunk_of(s, p, operation);
	*bit = offset >> g->grain_bits;
	return c;
}

TN_INLINE void *slab_alloc_checked(slab *s, const void *site) {
	void *p = slab_take_slot(s);
	if (p == NULL && s->quarantined > 0) {
		slab_pop_quarantine(s);
		p = slab_take_slot(s);
	}
	if (p == NULL || TN_MODE == TN_MODE_RELEASE)
		return p;
	size_t bit;
	chunk *c = slab_find_chunk(s, p, &bit, "alloc");
	if (TN_UNLIKELY(tn_test_bit(c->bits, bit)))
		tn_panic(s->kind, s->name, "alloc: %p is both free and live", p);
	tn_flip_bit(c->bits, bit);
	if (TN_MODE == TN_MODE_DEBUG)
		slab_set_fresh(s, c, p, site);
	return p;
}

TN_INLINE void slab_free_checked(slab *s, void *p, const void *site) {
	if (TN_MODE == TN_MODE_RELEASE) {
		slab_give_slot(s, p);
		return;
	}
	size_t bit;
	chunk *c = slab_find_chunk(s, p, &bit, "free");
	if (TN_UNLIKELY(!tn_test_bit(c->bits, bit)))
		slab_refuse_free(s, p, "free");
	tn_flip_bit(c->bits, bit);
	if (TN_MODE == TN_MODE_DEBUG)
		slab_check_fences(s, c, p, "free");
	if (s->init == NULL)
		tn_wipe_slot(p, s->grid.slot_size);
	if (TN_MODE == TN_MODE_DEBUG)
		slab_push_quarantine(s, c, p, site);
	else
		slab_give_slot(s, p);
}

void *tn_slab_alloc_for(tn_slab *hot, const void *site) {
	slab *s = slab_enter(hot, "alloc");
	void *p = slab_alloc_checked(s, site);
	slab_leave(s);
	return p;
}

void tn_slab_free_for(tn_slab *hot, void *p, const void *site) {
	if (p == NULL)
		return;
	slab *s = slab_enter(hot, "free");
	slab_free_checked(s, p, site);
	slab_leave(s);
}

void *tn_slab_alloc_slow(tn_slab *hot) {
	return tn_slab_alloc_for(hot, TN_CALLER);
}

void tn_slab_free_slow(tn_slab *hot, void *p) {
	tn_slab_free_for(hot, p, TN_CALLER);
}

bool tn_slab_alloc_batch(tn_slab *hot, void **slots, size_t count) {
	slab *s = slab_enter(hot, "alloc_batch");
	if (count > tn_min(s->limit_bytes, PTRDIFF_MAX) / s->grid.slot_size) {
		slab_leave(s);
		return errno = ENOMEM, false;
	}
	size_t done = 0;
	while (done < count && (slots[done] = slab_alloc_checked(s, TN_CALLER)) != NULL)
		done++;
	bool all = done == count;
	/* Backwards, so that the slab hands out the same slots in the same order again. */
	while (!all && done > 0)
		slab_free_checked(s, slots[--done], TN_CALLER);
	slab_leave(s);
	return all;
}

void tn_slab_free_batch(tn_slab *hot, void **slots, size_t count) {
	slab *s = slab_enter(hot, "free_batch");
	for (size_t i = 0; i < count; i++)
		if (slots[i] != NULL)
			slab_free_checked(s, slots[i], TN_CALLER);
	slab_leave(s);
}

/* ---- debug, for allocators that wrap a slab ---- */

void tn_slab_set_idle(tn_slab *hot, void *p, bool idle, const char *operation, const void *site) {
	if (TN_MODE != TN_MODE_DEBUG)
		return;
	slab *s = slab_enter(hot, operation);
	size_t bit;
	chunk *c = slab_find_chunk(s, p, &bit, operation);
	if (!tn_test_bit(c->bits, bit))
		slab_refuse_free(s, p, operation);
	slot_record *r = slab_record_of(s, c, p);
	if (r->idle == idle)
		tn_panic(s->kind, s->name, "%s: %p is %s already, got at %s, put at %s", operation, p,
			idle ? "idle" : "live", tn_site(r->alloc_site).text, tn_site(r->free_site).text);
	slab_check_fences(s, c, p, operation);
	r->idle = idle;
	if (site != NULL)
		*(idle ? &r->free_site : &r->alloc_site) = site;
	if (idle)
		tn_forbid(p, s->grid.slot_size);
	else
		tn_permit(p, s->grid.slot_size);
	slab_leave(s);
}

const void *tn_slab_site(const tn_slab *hot, const void *p, const char *operation) {
	const slab *s = (const slab *)hot;
	const chunk *c = slab_chunk_of(s, p, operation);
	if (!tn_test_bit(c->bits, slab_bit_of(c, p)))
		slab_refuse_free(s, p, operation);
	return slab_record_of(s, c, p)->alloc_site;
}

void tn_slab_set_expendable(tn_slab *hot, bool expendable) {
	((slab *)hot)->expendable = expendable;
}

/* ---- reset and trim ---- */

/* The two magazines that are next to the slab, both empty and in hand. */
static void slab_load_own(slab *s) {
	uintptr_t own = (uintptr_t)s->own;
	slab_load(s, own, 0);
	s->previous = own + s->hot.magazine_mask + 1;
	s->previous_full = false;
	s->full = s->empty = 0;
	s->full_count = 0;
}

static void slab_reset_chunk(slab *s, chunk *c) {
	slab_fini_slots(s, c);
	if (TN_MODE == TN_MODE_HARDENED && s->init == NULL)
		tn_wipe(c->base, c->carved_bytes);
	if (TN_MODE == TN_MODE_HARDENED)
		slab_clear_bits(c);
	c->carved = c->carved_bytes = 0;
}

void tn_slab_reset(tn_slab *hot) {
	slab *s = slab_enter(hot, "reset");
	slab_sample_peak(s);
	slab_end_quarantine(s);
	slab_check_all_fences(s, "reset");
	/* In debug, stale pointers fault: the chunks go through the quarantine of the page layer. */
	if (TN_MODE == TN_MODE_DEBUG)
		slab_give_all_chunks(s);
	for (chunk *c = s->chunks; c != NULL; c = c->next)
		slab_reset_chunk(s, c);
	slab_load_own(s);
	s->carving = s->chunks;
	s->carved = s->partial_count = s->partial_live = 0;
	s->resets++;
	TN_PROBE(reset, s->kind, s->name);
	slab_publish(s);
	tn_leave(&s->busy);
}

size_t tn_slab_trim(tn_slab *hot) {
	slab *s = slab_enter(hot, "trim");
	size_t before = s->taken_bytes;
	slab_end_quarantine(s);
	slab_return_empty(s, SIZE_MAX, "trim");
	slab_publish(s);
	tn_leave(&s->busy);
	return before - s->taken_bytes;
}

/* ---- looking ---- */

bool tn_slab_owns(const tn_slab *hot, const void *p) {
	const slab *s = (const slab *)hot;
	uintptr_t base = grid_base_of(&s->grid, p);
	if (tn_pages_owner(base) != s)
		return false;
	const chunk *c = slab_chunk_at(s, base);
	return grid_find_slot(slab_grid_of(s, c), c->base, c->carved, p) != NULL;
}

void tn_slab_each(tn_slab *hot, void (*visit)(void *slot, void *ctx), void *ctx) {
	slab *s = slab_enter(hot, "each");
	slab_set_bits(s, "each");
	for (chunk *c = s->chunks; c != NULL; c = c->next)
		for (size_t i = 0; i < c->carved; i++)
			if (slab_is_live(c, slab_slot_at(c, i)))
				visit(slab_slot_at(c, i), ctx);
	slab_leave(s);
}

size_t tn_slab_in_use(const tn_slab *hot) {
	return slab_in_use(slab_look(hot, "in_use"));
}

size_t tn_slab_slot_size(const tn_slab *hot) {
	return ((const slab *)hot)->grid.slot_size;
}

void tn_slab_stats(const tn_slab *hot, tn_stats *stats) {
	slab *s = (slab *)(uintptr_t)slab_look(hot, "stats");
	/* The count below answers a reader that asked for one. */
	tn_list_take_wanted(s->node, TN_WANT_COUNT);
	slab_set_bits(s, "stats");
	s->partial_count = s->partial_live = 0;
	for (const chunk *c = s->chunks; c != NULL; c = c->next)
		slab_sample_partial(s, c, slab_count_live(c));
	slab_read(s, slab_in_use(s), stats);
	memcpy(stats->name, s->name, sizeof stats->name);
	slab_publish(s);
}

static void slab_require(const slab *s, bool holds, const char *what) {
	if (!holds)
		tn_panic(s->kind, s->name, "verify: %s", what);
}

static size_t slab_count_magazines(uintptr_t list) {
	size_t count = 0;
	for (; list != 0; list = *slab_link_of(list))
		count++;
	return count;
}

bool tn_slab_verify(const tn_slab *hot) {
	const slab *s = slab_look(hot, "verify");
	size_t carved = 0, live = 0, chunks = 0, magazines = 0;
	slab_set_bits(s, "verify");
	if (TN_MODE != TN_MODE_RELEASE)
		slab_each_free(s, slab_mark_free, "verify");
	for (const chunk *c = s->chunks; c != NULL; c = c->next) {
		slab_require(s, tn_pages_owner((uintptr_t)c->base) == s, "I5: a chunk has another owner");
		slab_require(s, c->carved <= c->grid->count, "I3: a chunk has more slots than room");
		live += slab_count_live(c);
		carved += c->carved;
		chunks++;
		magazines += c->carved == 0 ? 0 : s->chunk_magazines;
	}
	const size_t full = slab_count_magazines(s->full), empty = slab_count_magazines(s->empty);
	slab_require(s, full == s->full_count, "I1: the full magazines do not add up");
	slab_require(s, full + empty == magazines, "I2: the magazines do not add up");
	slab_require(
		s, carved == s->carved && chunks == s->chunk_count, "I3: the slots carved do not add up");
	slab_require(s, live == slab_in_use(s), "I3: the slots in use do not add up");
	slab_require(s,
		s->taken_bytes == chunks * s->grid.chunk_bytes + s->own_bytes &&
			s->taken_bytes <= s->limit_bytes,
		"I5: the bytes taken do not add up");
	slab_check_all_fences(s, "verify");
	return true;
}

/* ---- create and destroy ---- */

/* Decides how large chunks are and how they are divided. */
static bool slab_lay_out(slab *s, size_t align, size_t chunk_bytes) {
	const size_t fence = TN_MODE == TN_MODE_DEBUG ? TN_FENCE_BYTES : 0;
	grid *g = &s->grid;
	g->lead = tn_round_up(fence, align);
	g->stride = tn_round_up(g->lead + g->slot_size + fence, align);
	for (g->chunk_bytes = chunk_bytes; g->chunk_bytes <= GRID_CHUNK_BYTES_MAX; g->chunk_bytes *= 2) {
		size_t slots = tn_min(g->chunk_bytes / (g->stride + WORD), MAGAZINE_WORDS_MAX - 1);
		size_t magazine = WORD * tn_max(tn_power_of_two(slots + 1), MAGAZINE_WORDS_MIN);
		s->hot.magazine_mask = magazine - 1;
		s->magazine_slots = magazine / WORD - 1;
		const grid_tail tail = {.head = sizeof(chunk),
			.per_word = sizeof(uint64_t),
			.per_slot = TN_MODE == TN_MODE_DEBUG ? sizeof(slot_record) : 0,
			.per_group = magazine,
			.group_slots = s->magazine_slots,
			.align = 16};
		if (!grid_lay_out(g, &tail))
			continue;
		s->chunk_magazines = (g->count + s->magazine_slots - 1) / s->magazine_slots;
		s->magazine_offset = g->chunk_bytes - s->chunk_magazines * magazine;
		s->record_offset = s->magazine_offset - g->count * tail.per_slot;
		return true;
	}
	return false;
}

/* Debug: slots at the end of pages of their own, where memory can be made to fault and no limit bounds
 * how much there is. */
static void slab_choose_guarded(slab *s, size_t align) {
	if (TN_MODE != TN_MODE_DEBUG || !tn_chunk_is_paged(&s->source) || s->limit_bytes != TN_NONE ||
		align > TN_OS_PAGE)
		return;
	grid *g = &s->guarded;
	*g = s->grid;
	g->stride = tn_round_up(g->lead + g->slot_size + TN_FENCE_BYTES, TN_OS_PAGE);
	g->lead = (g->stride - TN_FENCE_BYTES - g->slot_size) & ~(align - 1);
	g->count = tn_min(g->count, g->head_offset / g->stride);
	g->grain_bits = (unsigned)__builtin_ctzll(g->stride);
}

tn_slab *tn_slab_make(const char *kind, const tn_chunk_source *source, size_t size, size_t align,
	const tn_slab_options *o) {
	align = align == 0 ? 16 : align;
	if (!grid_valid(size, align, o->chunk_bytes, o->source) || (o->fini != NULL && o->init == NULL))
		return errno = EINVAL, NULL;
	slab draft = {.state = TN_ALIVE,
		.kind = kind,
		.known_base = NO_BASE,
		.grid = {.slot_size = tn_round_up(size, align)},
		.init = o->init,
		.fini = o->fini,
		.ctx = o->ctx,
		.limit_bytes = o->limit_bytes == 0 ? TN_NONE : o->limit_bytes,
		.retain_chunks = o->retain_chunks,
		.expendable = o->expendable,
		.source = *source};
	size_t bound = source->account == NULL ? SIZE_MAX : tn_limit_least(source->account->limit);
	bound = tn_min(bound, draft.limit_bytes);
	if (!slab_lay_out(&draft, align, grid_chunk_bytes(o->chunk_bytes, bound)))
		return errno = EINVAL, NULL;
	slab_choose_guarded(&draft, align);
	tn_copy_name(draft.name, o->name, kind);
	size_t magazines = EXTRA_MAGAZINES * (draft.hot.magazine_mask + 1) + ALIAS_GAP;
	draft.own_bytes = tn_round_up(magazines + sizeof(slab), TN_OS_PAGE);
	draft.taken_bytes = draft.own_bytes;
	if (draft.own_bytes > draft.limit_bytes)
		return errno = ENOMEM, NULL;
	draft.own = tn_chunk_acquire(&draft.source, draft.own_bytes, TN_OS_PAGE);
	if (draft.own == NULL)
		return NULL;
	slab *s = (slab *)(void *)(draft.own + magazines);
	*s = draft;
	slab_load_own(s);
	return &s->hot;
}

bool tn_slab_list(
	tn_slab *hot, tn_node *parent, const tn_node_kind *kind, void *object, const char *name) {
	slab *s = (slab *)hot;
	if (!tn_list_object(parent, kind, object, name, &s->node))
		return false;
	slab_publish(s);
	return true;
}

void tn_slab_unlist(tn_slab *hot) {
	slab *s = (slab *)hot;
	tn_unlist_object(s->node);
	s->node = NULL;
}

static void slab_end_owned(void *object) {
	tn_slab_set_expendable(object, true);
	tn_slab_destroy(object);
}

TN_OWNED_KIND(slab_kind, slab, TN_KIND_SLAB, TN_FIGURES_ALL, tn_slab_look, slab_end_owned);

tn_slab *tn_slab_make_below(tn_node *parent, const tn_chunk_source *source, size_t size, size_t align,
	const tn_slab_options *o) {
	tn_slab *s = tn_slab_make("slab", source, size, align, o);
	if (s == NULL || tn_slab_list(s, parent, &slab_kind, s, o->name))
		return s;
	tn_slab_destroy(s);
	return errno = ENOMEM, NULL;
}

tn_slab *tn_slab_create(size_t size, size_t align, const tn_slab_options *options) {
	static const tn_slab_options defaults;
	const tn_slab_options *o = options == NULL ? &defaults : options;
	tn_chunk_source source = tn_chunks_from(o->source);
	return tn_slab_make_below(NULL, &source, size, align, o);
}

void tn_slab_destroy(tn_slab *hot) {
	if (hot == NULL)
		return;
	slab *s = slab_enter(hot, "destroy");
	tn_slab_unlist(hot);
	slab_end_quarantine(s);
	slab_check_all_fences(s, "destroy");
	slab_report_lost(s);
	slab_give_all_chunks(s);
	s->state = TN_DEAD;
	tn_chunk_release(&s->source, s->own, s->own_bytes, TN_OS_PAGE);
}
