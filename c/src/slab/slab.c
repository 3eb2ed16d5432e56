/* The slab: chunks carved into slots of one size, free slots in array magazines.
 *
 *   alloc (inline)        the loaded magazine has a slot: pop
 *   `- alloc_slow         hardened and debug; else
 *      `- refill          previous is full: exchange; a full one is listed: load it; else
 *         `- carve        some fresh slots of a chunk into the loaded magazine
 *   free (inline)         the loaded magazine has room: push
 *   `- free_slow          hardened and debug; else
 *      `- rotate          previous is empty: exchange; else list previous (its pointers checked) and
 *                         load an empty one
 *         `- return_surplus  now and then: chunks that nobody needs go back
 *
 * A magazine is an array of 2^k words aligned to its size: word 0 links it in a list, the others hold
 * pointers. Its storage is in the tail of the chunks, enough for all of their slots, so a free never
 * allocates; two more lie beside the slab itself. How chunks are laid out is in slots.h.
 *
 * I1  magazines are full or empty, all but the loaded one; `full` and `empty` list those that are
 *     neither loaded nor previous.
 * I2  a chunk's magazines are in circulation exactly while some of its slots are carved. Together with
 *     the two of the slab they hold every carved slot and two magazines more: while frees are right, a
 *     full magazine can always be exchanged for an empty one.
 * I3  in use = carved - free - quarantined, and free = what the magazines hold.
 * I4  bits: in hardened and debug 1 for a live slot; in release scratch, 1 for a free one in a
 *     walk.
 *
 * Two magazines in hand, as in Bonwick and Adams 2001, put at least one magazine's worth of calls
 * between two changes of the lists, whatever the order of calls. */
#include <tenure/slab.h>

#include <errno.h>

#include "../base/probes.h"
#include "magazines.h"
#include "slab.h"
#include "slab_figures.h"
#include "slots.h"
#include "sort.h"

enum {
	EXTRA_MAGAZINES = 2,
	CARVE_BYTES = 4096, /* fresh slots are carved about a page at a time */
	/* Slot 0 and a struct at a page's start would have the same low 12 bits, and the load of `top`
	 * after a store to the slot would wait for that store. */
	ALIAS_GAP = 1600,
	COUNTED_MAX = 1 << 16, /* free slots that are counted by chunk for a reader */
};
#define SLAB_QUARANTINE_BYTES ((size_t)16 << 20) /* debug: per slab */
#define GUARDED_BYTES_MAX ((size_t)64 << 20)     /* debug: per process, slots with pages of their own */

static TN_ATOMIC(size_t) guarded_bytes;

static slab *slab_enter(tn_slab *hot, const char *operation) {
	slab *s = (slab *)hot;
	if (TN_MODE != TN_MODE_RELEASE && s->state != TN_ALIVE)
		tn_panic("slab", NULL, "%s: %p is not a live slab", operation, (void *)s);
	tn_enter(&s->busy, s->kind, s->name, operation);
	return s;
}

/* ---- magazines ---- */

/* The two magazines that lie beside the slab, both empty and in hand. */
static void load_own_magazines(slab *s) {
	uintptr_t own = (uintptr_t)s->own;
	load_magazine(s, own, 0);
	s->previous = own + s->hot.magazine_mask + 1;
	s->previous_full = false;
	s->full = s->empty = 0;
	s->full_count = 0;
}

/* ---- walking the free slots ---- */

/* Release: that the pointers of a magazine lie in chunks of this slab. Not inlined into its caller, as
 * sort_free. */
static __attribute__((noinline)) void check_magazine(const slab *s, uintptr_t magazine) {
	if (TN_MODE != TN_MODE_RELEASE)
		return;
	void **slots = slots_of(magazine);
	size_t first = tn_first_foreign(s, slots, s->magazine_slots, s->chunk_bytes);
	if (TN_UNLIKELY(first < s->magazine_slots))
		panic_foreign(s, slots[first], "flush");
}

/* Calls `visit` with every free slot, newest first. */
static void each_free(const slab *s, void (*visit)(const slab *s, void *slot, const char *operation),
	const char *operation) {
	void **slots = slots_of(loaded(s));
	for (size_t i = fill_of_loaded(s); i > 0; i--)
		visit(s, slots[i - 1], operation);
	uintptr_t magazine = s->previous_full ? s->previous : s->full;
	bool listed = !s->previous_full;
	while (magazine != 0) {
		slots = slots_of(magazine);
		for (size_t i = s->magazine_slots; i > 0; i--)
			visit(s, slots[i - 1], operation);
		magazine = listed ? *link_of(magazine) : s->full;
		listed = true;
	}
}

/* Release: marks a free slot; one that is marked already is free twice. */
static void mark_free(const slab *s, void *slot, const char *operation) {
	chunk *c = slot_chunk(s, slot, operation);
	if (get_bit(c, bit_of(s, c, slot)))
		tn_panic(s->kind, s->name, "%s: %p is free twice", operation, slot);
	flip_bit(c, bit_of(s, c, slot));
}

/* Hardened and debug: a free slot has no live bit. */
static void expect_free(const slab *s, void *slot, const char *operation) {
	const chunk *c = slot_chunk(s, slot, operation);
	if (get_bit(c, bit_of(s, c, slot)))
		tn_panic(s->kind, s->name, "%s: %p is both free and live", operation, slot);
}

static void count_free(const slab *s, void *slot, const char *operation) {
	slot_chunk(s, slot, operation)->free++;
}

/* How many of each chunk's slots are free. Not inlined into cold functions, as sort_free. */
static __attribute__((noinline)) void count_by_chunk(slab *s, const char *operation) {
	for (chunk *c = s->chunks; c != NULL; c = c->next)
		c->free = 0;
	each_free(s, count_free, operation);
	s->partial_count = s->partial_live = 0;
	for (const chunk *c = s->chunks; c != NULL; c = c->next)
		note_partial(s, c, c->carved - c->free);
}

/* Makes the bits tell live from free: is_live is true until the next call that changes the slab. */
static void find_live(const slab *s, const char *operation) {
	if (TN_MODE != TN_MODE_RELEASE)
		return;
	for (chunk *c = s->chunks; c != NULL; c = c->next)
		clear_bits(c);
	each_free(s, mark_free, operation);
}

/* ---- chunks ---- */

static const shape *choose_shape(slab *s) {
	if (TN_MODE != TN_MODE_DEBUG || s->guarded.count == 0)
		return &s->plain;
	size_t before = tn_add(&guarded_bytes, s->chunk_bytes, TN_RELAXED);
	if (before + s->chunk_bytes <= GUARDED_BYTES_MAX)
		return &s->guarded;
	tn_add(&guarded_bytes, 0 - s->chunk_bytes, TN_RELAXED);
	return &s->plain;
}

static chunk *add_chunk(slab *s) {
	if (s->limit_bytes - s->taken_bytes < s->chunk_bytes)
		return errno = ENOMEM, NULL;
	char *base = tn_chunk_acquire(&s->source, s->chunk_bytes, s->chunk_bytes);
	if (base == NULL)
		return NULL;
	if (!tn_pages_set_owner(base, s)) {
		tn_chunk_release(&s->source, base, s->chunk_bytes, s->chunk_bytes);
		return NULL;
	}
	chunk *c = chunk_at(s, (uintptr_t)base);
	*c = (chunk){.base = base, .shape = choose_shape(s)};
	clear_bits(c);
	if (TN_MODE == TN_MODE_DEBUG)
		memset(base + s->record_offset, 0, c->shape->count * sizeof(slot_record));
	if (s->chunks == NULL)
		s->chunks = c;
	else
		s->last->next = c;
	s->last = c;
	s->chunk_count++;
	s->slot_count += c->shape->count;
	s->taken_bytes += s->chunk_bytes;
	return c;
}

static void take_apart(slab *s, chunk *c) {
	for (size_t i = 0; s->fini != NULL && i < c->carved; i++)
		s->fini(slot_at(s, c, i), s->ctx);
}

static void release_chunk(slab *s, chunk *c) {
	char *base = c->base;
	tn_permit(base, c->carved_bytes);
	take_apart(s, c);
	if (is_guarded(s, c))
		tn_add(&guarded_bytes, 0 - s->chunk_bytes, TN_RELAXED);
	if (TN_MODE != TN_MODE_RELEASE)
		tn_wipe(base, c->carved_bytes);
	tn_pages_set_owner(base, NULL);
	s->known_base = NO_BASE;
	s->chunk_count--;
	s->slot_count -= c->shape->count;
	s->taken_bytes -= s->chunk_bytes;
	tn_chunk_release(&s->source, base, s->chunk_bytes, s->chunk_bytes);
}

/* ---- fresh slots ---- */

/* Puts a chunk's magazines into circulation (I2). */
static void list_magazines(slab *s, const chunk *c) {
	uintptr_t magazine = (uintptr_t)c->base + s->magazine_offset;
	/* The lowest on top: filled one after the other they are one run of memory. */
	for (size_t i = s->chunk_magazines; i > 0; i--)
		push_magazine(&s->empty, magazine + (i - 1) * (s->hot.magazine_mask + 1));
}

static chunk *next_to_carve(slab *s) {
	chunk *c = s->carving;
	while (c != NULL && c->carved == c->shape->count)
		c = c->next;
	if (c == NULL)
		c = add_chunk(s);
	return s->carving = c;
}

static size_t carve_count(const slab *s, const chunk *c) {
	size_t count = s->init != NULL ? 1 : CARVE_BYTES / c->shape->stride;
	size_t left = c->shape->count - c->carved;
	if (count > s->magazine_slots)
		count = s->magazine_slots;
	return count == 0 ? 1 : count > left ? left : count;
}

/* Fills the loaded magazine, which is empty, with fresh slots, the lowest on top. */
static bool carve_slots(slab *s) {
	chunk *c = next_to_carve(s);
	if (c == NULL)
		return false;
	if (s->init != NULL && !s->init(slot_at(s, c, c->carved), s->ctx))
		return errno = ENOMEM, false;
	if (c->carved == 0)
		list_magazines(s, c);
	size_t count = carve_count(s, c);
	void **slots = slots_of(loaded(s));
	for (size_t i = 0; i < count; i++)
		slots[count - 1 - i] = slot_at(s, c, c->carved + i);
	c->carved += count;
	c->carved_bytes = c->carved * c->shape->stride;
	s->carved += count;
	load_magazine(s, loaded(s), count);
	return true;
}

/* Where a magazine has changed: publishes the figures, and counts what a reader asked for unless that
 * would be felt. */
static void tell_readers(slab *s) {
	if (s->node == NULL)
		return;
	if (tn_list_take_wanted(s->node, TN_WANT_COUNT) && free_slots(s) <= COUNTED_MAX)
		count_by_chunk(s, "stats");
	publish_slab(s);
}

static void slab_sample_peak(slab *s) {
	size_t now = in_use(s);
	if (now > s->window_peak)
		s->window_peak = now;
	if (now > s->peak)
		s->peak = now;
}

/* The loaded magazine is empty: sees to it that it is not. */
static bool load_slots(slab *s) {
	uintptr_t drained = loaded(s);
	if (s->previous_full) {
		load_magazine(s, s->previous, s->magazine_slots);
		s->previous = drained;
		s->previous_full = false;
		return true;
	}
	sort_free(s);
	uintptr_t magazine = pop_magazine(&s->full);
	if (magazine == 0)
		return carve_slots(s);
	s->full_count--;
	push_magazine(&s->empty, s->previous);
	s->previous = drained;
	load_magazine(s, magazine, s->magazine_slots);
	return true;
}

static TN_COLD bool refill(slab *s) {
	slab_sample_peak(s);
	s->refills++;
	bool had = load_slots(s);
	tell_readers(s);
	return had;
}

/* ---- giving chunks back ---- */

static bool in_leaving_chunk(const slab *s, uintptr_t magazine) {
	if (magazine - (uintptr_t)s->own < s->own_bytes)
		return false;
	return chunk_at(s, base_of(s, (void *)magazine))->leaving;
}

/* The magazines that hold slots, oldest first, linked by word 0; the loaded one is the last. */
static uintptr_t magazines_in_order(slab *s) {
	uintptr_t order = 0;
	push_magazine(&order, loaded(s));
	if (s->previous_full)
		push_magazine(&order, s->previous);
	else
		push_magazine(&s->empty, s->previous);
	for (uintptr_t magazine = pop_magazine(&s->full); magazine != 0; magazine = pop_magazine(&s->full))
		push_magazine(&order, magazine);
	s->full_count = 0;
	return order;
}

/* Drops the slots of leaving chunks from the magazines, whose order and the order within stays. The
 * writer never overtakes the reader. Returns how many slots stay. */
static size_t drop_leaving(slab *s, uintptr_t order) {
	uintptr_t writer = order;
	size_t written = 0, total = 0;
	size_t last_fill = fill_of_loaded(s);
	for (uintptr_t reader = order; reader != 0; reader = *link_of(reader)) {
		size_t fill = *link_of(reader) == 0 ? last_fill : s->magazine_slots;
		for (size_t i = 0; i < fill; i++) {
			void *slot = slots_of(reader)[i];
			if (chunk_at(s, base_of(s, slot))->leaving)
				continue;
			if (written == s->magazine_slots) {
				writer = *link_of(writer);
				written = 0;
			}
			slots_of(writer)[written++] = slot;
			total++;
		}
	}
	return total;
}

/* Takes the magazines of leaving chunks out of circulation and sorts the others: the first ones of
 * `order` hold `total` slots, the rest is empty. */
static void redistribute(slab *s, uintptr_t order, size_t total) {
	uintptr_t used = 0, spare = 0;
	size_t used_count = (total + s->magazine_slots - 1) / s->magazine_slots;
	for (size_t i = 0; order != 0; i++)
		push_magazine(i < used_count ? &used : &spare, pop_magazine(&order));
	for (uintptr_t magazine = pop_magazine(&s->empty); magazine != 0;
		magazine = pop_magazine(&s->empty))
		push_magazine(&spare, magazine);
	for (uintptr_t magazine = pop_magazine(&spare); magazine != 0; magazine = pop_magazine(&spare))
		if (!in_leaving_chunk(s, magazine))
			push_magazine(&s->empty, magazine);
	/* `used` is newest first now; listing it from the oldest on keeps the order. */
	for (uintptr_t magazine = pop_magazine(&used); magazine != 0; magazine = pop_magazine(&used))
		push_magazine(&order, magazine);
	size_t fill = total - (used_count == 0 ? 0 : used_count - 1) * s->magazine_slots;
	uintptr_t newest = 0;
	for (uintptr_t magazine = pop_magazine(&order); magazine != 0; magazine = pop_magazine(&order)) {
		uintptr_t stays = magazine;
		if (in_leaving_chunk(s, magazine)) {
			stays = pop_magazine(&s->empty);
			memcpy((void *)stays, (void *)magazine, s->hot.magazine_mask + 1);
		}
		push_magazine(&s->full, stays);
		s->full_count++;
		newest = stays;
	}
	s->previous = pop_magazine(&s->empty);
	s->previous_full = false;
	/* The newest is loaded unless it is full: then it stays listed and an empty one is. */
	if (newest == 0 || fill == s->magazine_slots) {
		load_magazine(s, pop_magazine(&s->empty), 0);
		return;
	}
	s->full_count--;
	load_magazine(s, pop_magazine(&s->full), fill);
}

static void unlink_leaving(slab *s) {
	chunk **at = &s->chunks;
	chunk *stays = NULL;
	while (*at != NULL) {
		chunk *c = *at;
		if (!c->leaving) {
			stays = c;
			at = &c->next;
			continue;
		}
		*at = c->next;
		s->carved -= c->carved;
		release_chunk(s, c);
	}
	s->last = stays;
	s->carving = s->chunks;
}

/* Gives back chunks without a live slot, `most` of them. */
static void return_empty(slab *s, size_t most, const char *operation) {
	size_t leaving = 0;
	count_by_chunk(s, operation);
	for (chunk *c = s->chunks; c != NULL; c = c->next) {
		c->leaving = c->free == c->carved && leaving < most;
		leaving += c->leaving;
	}
	s->freed = 0;
	if (leaving == 0)
		return;
	uintptr_t order = magazines_in_order(s);
	redistribute(s, order, drop_leaving(s, order));
	unlink_leaving(s);
}

/* How many slots the slab keeps chunks for. */
static size_t slots_to_keep(const slab *s) {
	size_t now = in_use(s);
	if (s->retain_chunks == TN_NONE)
		return now;
	if (s->retain_chunks >= s->chunk_count)
		return SIZE_MAX;
	if (s->retain_chunks != 0)
		return now + s->retain_chunks * s->plain.count;
	/* Peaks are seen only when a magazine is refilled. */
	size_t unseen = 2 * s->magazine_slots;
	return (s->window_peak > s->earlier_peak ? s->window_peak : s->earlier_peak) + unseen;
}

/* Called when a magazine has been listed. Looking costs a walk over the free slots, so it is done at
 * most once for half as many frees as slots are free. The recent high-water mark is that of this window
 * and the one before; a window is as many frees as slots are carved. */
static void return_surplus(slab *s) {
	s->freed += s->magazine_slots;
	s->window_freed += s->magazine_slots;
	size_t keep = slots_to_keep(s);
	if (s->freed >= free_slots(s) / 2 && s->carved > keep && (s->carved - keep) / s->plain.count > 0)
		return_empty(s, (s->carved - keep) / s->plain.count, "flush");
	if (s->window_freed >= s->carved) {
		s->window_freed = 0;
		s->earlier_peak = s->window_peak;
		s->window_peak = in_use(s);
	}
}

/* ---- alloc and free, without checks ---- */

TN_INLINE void *take_slot(slab *s) {
	uintptr_t top = s->hot.top;
	if (TN_UNLIKELY((top & s->hot.magazine_mask) == 0)) {
		if (!refill(s))
			return NULL;
		top = s->hot.top;
	}
	s->hot.top = top - WORD;
	return *(void **)top;
}

/* The loaded magazine is full: sees to it that it is not. */
static void load_room(slab *s) {
	uintptr_t filled = loaded(s);
	if (!s->previous_full) {
		load_magazine(s, s->previous, 0);
		s->previous = filled;
		s->previous_full = true;
		return;
	}
	check_magazine(s, s->previous);
	uintptr_t magazine = pop_magazine(&s->empty);
	if (TN_UNLIKELY(magazine == 0))
		tn_panic(s->kind, s->name, "free: more slots were freed than handed out");
	note_disorder(s, s->previous);
	push_magazine(&s->full, s->previous);
	s->full_count++;
	s->previous = filled;
	load_magazine(s, magazine, 0);
	return_surplus(s);
}

static TN_COLD void rotate(slab *s) {
	load_room(s);
	if (TN_UNLIKELY(tn_list_take_wanted(s->node, TN_WANT_TRIM)))
		return_empty(s, SIZE_MAX, "trim");
	tell_readers(s);
}

TN_INLINE void put_slot(slab *s, void *p) {
	if (TN_UNLIKELY(((s->hot.top + WORD) & s->hot.magazine_mask) == 0))
		rotate(s);
	uintptr_t top = s->hot.top + WORD;
	if (*(void **)top != p)
		*(void **)top = p;
	s->hot.top = top;
}

/* ---- hardened and debug: what surrounds alloc and free ---- */

static void check_all_fences(const slab *s, const char *operation) {
	if (TN_MODE != TN_MODE_DEBUG)
		return;
	for (const chunk *c = s->chunks; c != NULL; c = c->next)
		for (size_t i = 0; i < c->carved; i++)
			if (is_live(s, c, i))
				check_fences(s, c, i, operation);
}

/* The oldest slot in quarantine may be used again. */
static void evict(slab *s) {
	slot_record *r = s->oldest;
	chunk *c = chunk_at(s, base_of(s, r));
	size_t index = (size_t)(r - record_at(s, c, 0));
	s->oldest = r->younger;
	s->quarantined--;
	s->quarantine_bytes -= c->shape->stride;
	if (is_guarded(s, c))
		tn_os_unprotect(c->base + index * c->shape->stride, c->shape->stride);
	put_slot(s, slot_at(s, c, index));
}

static void end_quarantine(slab *s) {
	while (s->quarantined > 0)
		evict(s);
}

static void quarantine_slot(slab *s, chunk *c, size_t index, const void *site) {
	slot_record *r = record_at(s, c, index);
	r->free_site = site == NULL ? r->free_site : site;
	r->younger = NULL;
	if (s->quarantined++ == 0)
		s->oldest = r;
	else
		s->youngest->younger = r;
	s->youngest = r;
	s->quarantine_bytes += c->shape->stride;
	tn_forbid(slot_at(s, c, index), s->slot_size);
	if (is_guarded(s, c))
		tn_os_protect(c->base + index * c->shape->stride, c->shape->stride);
	while (s->quarantine_bytes > SLAB_QUARANTINE_BYTES)
		evict(s);
}

/* The chunk and the bit of what should be a slot of this slab. Whatever else it is ends in a panic:
 * here, or because its bit does not say what it should. */
TN_INLINE chunk *checked_chunk(slab *s, const void *p, size_t *number, const char *operation) {
	uintptr_t base = base_of(s, p);
	if (TN_UNLIKELY(base != s->known_base)) {
		slot_chunk(s, p, operation);
		s->known_base = base;
	}
	chunk *c = chunk_at(s, base);
	const shape *shape = shape_of(s, c);
	size_t offset = (uintptr_t)p - base - shape->lead;
	if (TN_UNLIKELY(
			offset >= c->carved_bytes || (offset & (((size_t)1 << shape->grain_bits) - 1)) != 0))
		slot_chunk(s, p, operation);
	*number = offset >> shape->grain_bits;
	return c;
}

TN_INLINE void *alloc_checked(slab *s, const void *site) {
	void *p = take_slot(s);
	if (p == NULL && s->quarantined > 0) {
		evict(s);
		p = take_slot(s);
	}
	if (p == NULL || TN_MODE == TN_MODE_RELEASE)
		return p;
	size_t number;
	chunk *c = checked_chunk(s, p, &number, "alloc");
	if (TN_UNLIKELY(get_bit(c, number)))
		tn_panic(s->kind, s->name, "alloc: %p is both free and live", p);
	flip_bit(c, number);
	if (TN_MODE == TN_MODE_DEBUG)
		dress(s, c, index_of(s, c, p), site);
	return p;
}

/* Refuses what has no live bit: not the start of a slot, or free already. */
static TN_COLD _Noreturn void panic_not_live(const slab *s, const void *p, const char *operation) {
	const chunk *c = slot_chunk(s, p, operation);
	if (TN_MODE != TN_MODE_DEBUG)
		tn_panic(s->kind, s->name, "%s: %p is free already", operation, p);
	const slot_record *r = record_at(s, c, index_of(s, c, p));
	tn_panic(s->kind, s->name, "%s: %p is free already, allocated at %s, freed at %s", operation, p,
		tn_site(r->alloc_site).text, tn_site(r->free_site).text);
}

TN_INLINE void free_checked(slab *s, void *p, const void *site) {
	if (TN_MODE == TN_MODE_RELEASE) {
		put_slot(s, p);
		return;
	}
	size_t number;
	chunk *c = checked_chunk(s, p, &number, "free");
	if (TN_UNLIKELY(!get_bit(c, number)))
		panic_not_live(s, p, "free");
	flip_bit(c, number);
	if (TN_MODE == TN_MODE_DEBUG)
		check_fences(s, c, index_of(s, c, p), "free");
	if (s->init == NULL)
		tn_wipe_slot(p, s->slot_size);
	if (TN_MODE == TN_MODE_DEBUG)
		quarantine_slot(s, c, index_of(s, c, p), site);
	else
		put_slot(s, p);
}

void *tn_slab_alloc_for(tn_slab *hot, const void *site) {
	slab *s = slab_enter(hot, "alloc");
	void *p = alloc_checked(s, site);
	if (TN_MODE == TN_MODE_DEBUG)
		tell_readers(s);
	tn_leave(&s->busy);
	return p;
}

void tn_slab_free_for(tn_slab *hot, void *p, const void *site) {
	if (p == NULL)
		return;
	slab *s = slab_enter(hot, "free");
	free_checked(s, p, site);
	if (TN_MODE == TN_MODE_DEBUG)
		tell_readers(s);
	tn_leave(&s->busy);
}

void *tn_slab_alloc_slow(tn_slab *hot) {
	return tn_slab_alloc_for(hot, TN_CALLER);
}

void tn_slab_free_slow(tn_slab *hot, void *p) {
	tn_slab_free_for(hot, p, TN_CALLER);
}

void tn_slab_set_idle(tn_slab *hot, void *p, bool idle, const char *operation, const void *site) {
	if (TN_MODE != TN_MODE_DEBUG)
		return;
	slab *s = slab_enter(hot, operation);
	size_t number;
	chunk *c = checked_chunk(s, p, &number, operation);
	if (!get_bit(c, number))
		panic_not_live(s, p, operation);
	size_t index = index_of(s, c, p);
	slot_record *r = record_at(s, c, index);
	if (r->idle == idle)
		tn_panic(s->kind, s->name, "%s: %p is %s already, got at %s, put at %s", operation, p,
			idle ? "idle" : "live", tn_site(r->alloc_site).text, tn_site(r->free_site).text);
	check_fences(s, c, index, operation);
	r->idle = idle;
	if (site != NULL)
		*(idle ? &r->free_site : &r->alloc_site) = site;
	if (idle)
		tn_forbid(p, s->slot_size);
	else
		tn_permit(p, s->slot_size);
	tn_leave(&s->busy);
}

bool tn_slab_alloc_batch(tn_slab *hot, void **slots, size_t count) {
	slab *s = slab_enter(hot, "alloc_batch");
	size_t most = (s->limit_bytes < PTRDIFF_MAX ? s->limit_bytes : PTRDIFF_MAX) / s->slot_size;
	if (count > most) {
		tn_leave(&s->busy);
		return errno = ENOMEM, false;
	}
	size_t done = 0;
	while (done < count && (slots[done] = alloc_checked(s, TN_CALLER)) != NULL)
		done++;
	bool all = done == count;
	/* Backwards, so that the slab hands out the same slots in the same order again. */
	while (!all && done > 0)
		free_checked(s, slots[--done], TN_CALLER);
	if (TN_MODE == TN_MODE_DEBUG)
		tell_readers(s);
	tn_leave(&s->busy);
	return all;
}

void tn_slab_free_batch(tn_slab *hot, void **slots, size_t count) {
	slab *s = slab_enter(hot, "free_batch");
	for (size_t i = 0; i < count; i++)
		if (slots[i] != NULL)
			free_checked(s, slots[i], TN_CALLER);
	if (TN_MODE == TN_MODE_DEBUG)
		tell_readers(s);
	tn_leave(&s->busy);
}

/* ---- reset and trim ---- */

static void release_all(slab *s) {
	for (chunk *c = s->chunks, *next; c != NULL; c = next) {
		next = c->next;
		release_chunk(s, c);
	}
	s->chunks = s->last = NULL;
}

static void forget_slots(slab *s, chunk *c) {
	take_apart(s, c);
	if (TN_MODE == TN_MODE_HARDENED && s->init == NULL)
		tn_wipe(c->base, c->carved_bytes);
	if (TN_MODE == TN_MODE_HARDENED)
		clear_bits(c);
	c->carved = c->carved_bytes = 0;
}

void tn_slab_reset(tn_slab *hot) {
	slab *s = slab_enter(hot, "reset");
	slab_sample_peak(s);
	end_quarantine(s);
	check_all_fences(s, "reset");
	/* In debug, stale pointers fault: the chunks go through the quarantine of the page layer. */
	if (TN_MODE == TN_MODE_DEBUG)
		release_all(s);
	for (chunk *c = s->chunks; c != NULL; c = c->next)
		forget_slots(s, c);
	load_own_magazines(s);
	s->carving = s->chunks;
	s->carved = s->partial_count = s->partial_live = 0;
	s->resets++;
	TN_PROBE(reset, s->kind, s->name);
	tell_readers(s);
	tn_leave(&s->busy);
}

size_t tn_slab_trim(tn_slab *hot) {
	slab *s = slab_enter(hot, "trim");
	size_t before = s->taken_bytes;
	end_quarantine(s);
	return_empty(s, SIZE_MAX, "trim");
	tell_readers(s);
	tn_leave(&s->busy);
	return before - s->taken_bytes;
}

/* ---- looking ---- */

size_t tn_slab_in_use(const tn_slab *hot) {
	const slab *s = (const slab *)hot;
	slab_look(s, "in_use");
	return in_use(s);
}

size_t tn_slab_slot_size(const tn_slab *hot) {
	return ((const slab *)hot)->slot_size;
}

bool tn_slab_owns(const tn_slab *hot, const void *p) {
	const slab *s = (const slab *)hot;
	uintptr_t base = base_of(s, p);
	if (tn_pages_owner(base) != s)
		return false;
	const chunk *c = chunk_at(s, base);
	size_t index = ((uintptr_t)p - base) / c->shape->stride;
	const char *slot = slot_at(s, c, index);
	return index < c->carved && (const char *)p >= slot && (const char *)p < slot + s->slot_size;
}

void tn_slab_each(tn_slab *hot, void (*visit)(void *slot, void *ctx), void *ctx) {
	slab *s = slab_enter(hot, "each");
	find_live(s, "each");
	for (chunk *c = s->chunks; c != NULL; c = c->next)
		for (size_t i = 0; i < c->carved; i++)
			if (is_live(s, c, i))
				visit(slot_at(s, c, i), ctx);
	tn_leave(&s->busy);
}

void tn_slab_stats(const tn_slab *hot, tn_stats *stats) {
	slab *s = (slab *)(uintptr_t)hot;
	slab_look(s, "stats");
	find_live(s, "stats");
	s->partial_count = s->partial_live = 0;
	for (const chunk *c = s->chunks; c != NULL; c = c->next)
		note_partial(s, c, count_live(s, c));
	read_slab(s, in_use(s), stats);
	memcpy(stats->name, s->name, sizeof stats->name);
	if (s->node != NULL)
		publish_slab(s);
}

static void slab_require(const slab *s, bool holds, const char *what) {
	if (!holds)
		tn_panic(s->kind, s->name, "verify: %s", what);
}

bool tn_slab_verify(const tn_slab *hot) {
	const slab *s = (const slab *)hot;
	size_t carved = 0, live = 0, chunks = 0;
	slab_look(s, "verify");
	find_live(s, "verify");
	if (TN_MODE != TN_MODE_RELEASE)
		each_free(s, expect_free, "verify");
	for (const chunk *c = s->chunks; c != NULL; c = c->next) {
		slab_require(s, tn_pages_owner((uintptr_t)c->base) == s, "a chunk has another owner");
		slab_require(s, c->carved <= c->shape->count, "a chunk has more slots than room");
		live += count_live(s, c);
		carved += c->carved;
		chunks++;
	}
	slab_require(s, carved == s->carved && chunks == s->chunk_count, "the slots carved do not add up");
	slab_require(s, live == in_use(s), "the slots in use do not add up");
	slab_require(s,
		s->taken_bytes == chunks * s->chunk_bytes + s->own_bytes && s->taken_bytes <= s->limit_bytes,
		"the bytes taken do not add up");
	check_all_fences(s, "verify");
	return true;
}

/* ---- create and destroy ---- */

/* Everything but its listing. */
static slab *make_slab(const char *kind, const tn_chunk_source *source, size_t size, size_t align,
	const tn_slab_options *o) {
	align = align == 0 ? 16 : align;
	if (!slots_valid(size, align, o->chunk_bytes, o->source) || (o->fini != NULL && o->init == NULL))
		return errno = EINVAL, NULL;
	slab draft = {.state = TN_ALIVE,
		.kind = kind,
		.known_base = NO_BASE,
		.slot_size = tn_round_up(size, align),
		.init = o->init,
		.fini = o->fini,
		.ctx = o->ctx,
		.limit_bytes = o->limit_bytes == 0 ? TN_NONE : o->limit_bytes,
		.retain_chunks = o->retain_chunks,
		.expendable = o->expendable,
		.source = *source};
	size_t bound =
		draft.source.account == NULL ? SIZE_MAX : tn_limit_least(draft.source.account->limit);
	bound = tn_min(bound, draft.limit_bytes);
	if (!choose_layout(&draft, align, slab_chunk_bytes(o->chunk_bytes, bound)))
		return errno = EINVAL, NULL;
	choose_guarded(&draft, align);
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
	load_own_magazines(s);
	return s;
}

tn_slab *tn_slab_make(const char *kind, const tn_chunk_source *source, size_t size, size_t align,
	const tn_slab_options *o) {
	slab *s = make_slab(kind, source, size, align, o);
	return s == NULL ? NULL : &s->hot;
}

bool tn_slab_list(
	tn_slab *hot, tn_node *parent, const tn_node_kind *kind, void *object, const char *name) {
	slab *s = (slab *)hot;
	if (!tn_list_object(parent, kind, object, name, &s->node))
		return false;
	tell_readers(s);
	return true;
}

void tn_slab_unlist(tn_slab *hot) {
	slab *s = (slab *)hot;
	tn_unlist_object(s->node);
	s->node = NULL;
}

tn_slab *tn_slab_make_below(tn_node *parent, const tn_chunk_source *source, size_t size, size_t align,
	const tn_slab_options *o) {
	slab *s = make_slab("slab", source, size, align, o);
	if (s == NULL)
		return NULL;
	if (tn_slab_list(&s->hot, parent, &slab_kind, s, o->name))
		return &s->hot;
	tn_slab_destroy(&s->hot);
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
	end_quarantine(s);
	check_all_fences(s, "destroy");
	report_live(s);
	release_all(s);
	s->state = TN_DEAD;
	tn_chunk_release(&s->source, s->own, s->own_bytes, TN_OS_PAGE);
}
