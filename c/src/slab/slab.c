/* The slab: two magazines of free slots in front of a stock of chunks.
 *
 *   alloc (inline)        the loaded magazine has a slot: pop
 *   `- alloc_slow         hardened and debug; else
 *      `- refill          the spare one is full: exchange; else slots of the stock
 *   free (inline)         the loaded magazine has room: push
 *   `- free_slow          hardened and debug; else
 *      `- return          the spare one is empty: exchange; else its slots go into the stock
 *         `- settle       empty chunks that are not needed go back
 *
 * Both magazines are in the slab's own pages, so a free never needs memory:
 *
 *   | gap | this struct |  | NULL, slots of the first magazine | NULL, slots of the second |
 *
 * With small chunks, the first one is only what the struct leaves of its page.
 *
 * Two in hand, as in Bonwick and Adams 2001, put at least one magazine's worth of calls between two
 * visits to the stock, whatever the order of calls. The stock has a bit for each slot, so slots that
 * were freed in any order come back by address (stock.h).
 *
 * I5  the spare magazine is full or empty.
 * I7  hot.floor and hot.ceiling are the bounds of the loaded magazine, or every call is beyond them and
 *     `asked` is set. Requests come from any thread, under the lock of the listing; they are stored in
 *     that order.
 * I6  in use = outside - the slots in both magazines - quarantined; hardened and debug: the state of
 *     so many slots is not SLOT_FREE.
 * I1 to I4 are the stock's. */
#include <tenure/slab.h>

#include <tenure/detail/front.h>

#include <errno.h>

#include "../base/probes.h"
#include "slab.h"
#include "stock.h"

enum {
	CARVE_BYTES = 4096, /* fresh slots are carved about a page at a time */
	/* Slot 0 of a chunk and a struct at a page's start would have the same low 12 bits, and the load of
	 * `top` after a store to the slot would wait for that store. */
	ALIAS_GAP = 4 * TN_OS_LINE,
};
#define SLAB_QUARANTINE_BYTES ((size_t)16 << 20) /* debug: per slab */

/* Written by the thread that calls the slab. */
typedef struct slab {
	tn_slab hot;
	uintptr_t busy;
	uint32_t state;
	void **bottom; /* of the loaded magazine: the word below its oldest slot, which is NULL */
	void **spare;  /* the bottom of the other one */
	size_t spare_count;

	size_t retain_chunks;
	bool expendable;
	bool sized;          /* debug: a slot ends with the size that its user asked for */
	size_t window_freed; /* slots, since the window of the high-water mark began */
	size_t window_peak;  /* most slots in use seen in this window, and in the one before */
	size_t earlier_peak;
	size_t peak;
	uint64_t refills;
	uint64_t resets;
	size_t quarantined; /* debug: slots */
	size_t quarantine_bytes;
	slot_record *oldest; /* debug: the quarantine */
	slot_record *youngest;
	/* Partly used chunks when they were counted last, and their live slots. */
	size_t partial_count, partial_live;
	TN_ATOMIC(uint32_t) asked; /* to trim */
	tn_keeper keeper;
	struct tn_node *node; /* where it is listed, or NULL */
	char *own;            /* the pages that hold this struct and the magazines */
	size_t own_bytes;
	stock stock;
} slab;
_Static_assert(
	offsetof(slab, state) + sizeof(uint32_t) <= sizeof(tn_slab) + TN_STAND_IN_BYTES, "stand-in");
_Static_assert(_Alignof(slab) <= TN_STAND_IN_ALIGN, "stand-in");
_Static_assert(TN_MAGAZINE_BYTES == TN_OS_PAGE, "a magazine ends where a page ends");
_Static_assert(ALIAS_GAP + sizeof(slab) <= TN_MAGAZINE_BYTES / 2, "a page has room for a magazine");

static void slab_publish(slab *s);

static slab *slab_enter(tn_slab *hot, const char *operation) {
	slab *s = (slab *)hot;
	if (TN_MODE != TN_MODE_RELEASE && s->state != TN_ALIVE)
		tn_panic("slab", NULL, "%s: %p is not a live slab", operation, (void *)s);
	tn_enter(&s->busy, s->stock.kind, s->stock.name, operation);
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
	tn_look(&s->busy, s->stock.kind, s->stock.name, operation);
	return s;
}

/* A slot that is not in the state that the call needs. */
static TN_COLD _Noreturn void slab_refuse_free(const slab *s, const void *p, const char *operation) {
	const chunk *c = tn_stock_chunk_of_slot(&s->stock, p, operation);
	if (TN_MODE != TN_MODE_DEBUG)
		tn_panic(s->stock.kind, s->stock.name, "%s: %p is free already", operation, p);
	const slot_record *r = stock_record_of(&s->stock, c, p);
	tn_panic(s->stock.kind, s->stock.name, "%s: %p is free already, allocated at %s, freed at %s",
		operation, p, tn_site(r->alloc_site).text, tn_site(r->free_site).text);
}

/* ---- the two magazines ---- */

/* How many slots fit. */
static size_t slab_room_of(void *const *bottom) {
	return (TN_MAGAZINE_BYTES - (uintptr_t)bottom % TN_MAGAZINE_BYTES) / sizeof(void *) - 1;
}

static size_t slab_loaded_count(const slab *s) {
	return (size_t)(s->hot.top - s->bottom);
}

static size_t slab_count_free(const slab *s) {
	return slab_loaded_count(s) + s->spare_count;
}

static size_t slab_in_use(const slab *s) {
	return stock_count_outside(&s->stock) - slab_count_free(s) - s->quarantined;
}

static void slab_ask(tn_keeper *k) {
	slab *s = (slab *)(void *)((char *)k - offsetof(slab, keeper));
	tn_set(&s->asked, 1, TN_RELAXED);
	tn_set(&s->hot.floor, UINTPTR_MAX, TN_RELEASE);
	tn_set(&s->hot.ceiling, 0, TN_RELEASE);
}

/* After another magazine is loaded. A request whose bounds are overwritten here is seen in `asked`. */
static void slab_set_bounds(slab *s) {
	uintptr_t bottom = (uintptr_t)s->bottom;
	(void)tn_swap(&s->hot.floor, bottom, TN_ACQ_REL);
	(void)tn_swap(&s->hot.ceiling, tn_round_up(bottom + 1, TN_MAGAZINE_BYTES), TN_ACQ_REL);
	if (TN_UNLIKELY(tn_get(&s->asked, TN_RELAXED) != 0)) {
		tn_set(&s->hot.floor, UINTPTR_MAX, TN_RELAXED);
		tn_set(&s->hot.ceiling, 0, TN_RELAXED);
	}
}

/* The loaded magazine becomes the spare one. */
static void slab_load_spare(slab *s) {
	void **bottom = s->spare;
	size_t count = s->spare_count;
	s->spare_count = slab_loaded_count(s);
	s->spare = s->bottom;
	s->bottom = bottom;
	s->hot.top = bottom + count;
	slab_set_bounds(s);
}

/* Marks the slots in magazines, or clears the marks: when they are marked, a bit tells a live slot from
 * a free one. */
static void slab_mark_free(slab *s, bool as_free, const char *operation) {
	tn_stock_mark(&s->stock, s->bottom + 1, slab_loaded_count(s), as_free, operation);
	tn_stock_mark(&s->stock, s->spare + 1, s->spare_count, as_free, operation);
}

/* All slots of both magazines go into the stock. */
static void slab_flush(slab *s, const char *operation) {
	tn_stock_give(&s->stock, s->bottom + 1, slab_loaded_count(s), operation);
	s->hot.top = s->bottom;
	tn_stock_give(&s->stock, s->spare + 1, s->spare_count, operation);
	s->spare_count = 0;
}

/* ---- figures ---- */

static inline void slab_read(const slab *s, size_t live, tn_stats *stats) {
	const stock *k = &s->stock;
	const size_t size = k->grid.slot_size;
	*stats = (tn_stats){.live_bytes = live * size,
		.live_count = live,
		.cached_bytes = (k->slot_count - live) * size,
		.reserved_bytes = k->taken_bytes,
		.committed_bytes = k->taken_bytes,
		.peak_bytes = tn_max(live, s->peak) * size,
		.chunk_count = k->chunk_count,
		.partial_count = s->partial_count,
		.refills = s->refills,
		.resets = s->resets,
		.slot_bytes = size,
		.slot_count = k->slot_count,
		.partial_live_count = s->partial_live,
		.waste_bytes = live * grid_waste(&k->grid)};
}

static void slab_sample_peak(slab *s) {
	size_t now = slab_in_use(s);
	s->window_peak = tn_max(s->window_peak, now);
	s->peak = tn_max(s->peak, now);
}

static void slab_sample_partial(slab *s, const char *operation) {
	s->partial_count = s->partial_live = 0;
	slab_mark_free(s, true, operation);
	for (const chunk *c = s->stock.chunks; c != NULL; c = c->next_chunk) {
		size_t live = stock_count_live_of(c);
		bool partial = live > 0 && live < c->grid->count;
		s->partial_count += partial;
		s->partial_live += partial ? live : 0;
	}
	slab_mark_free(s, false, operation);
}

/* Called where a magazine has changed. The figures are those of an empty loaded magazine: readers
 * subtract its slots. Chunks are counted if a reader asked for that. */
static void slab_publish(slab *s) {
	if (s->node == NULL)
		return;
	if (tn_list_take_wanted(s->node, TN_WANT_COUNT))
		slab_sample_partial(s, "stats");
	tn_stats stats;
	slab_read(s, slab_in_use(s) + slab_loaded_count(s), &stats);
	stats.peak_bytes = s->peak * s->stock.grid.slot_size;
	tn_list_publish(
		s->node, &stats, TN_FIGURES_ALL, (tn_position){(uintptr_t)s->bottom, TN_MAGAZINE_BYTES});
}

TN_RACY void tn_slab_look(const void *object, tn_position from, tn_listed *listed) {
	const slab *s = object;
	tn_stats *stats = &listed->stats;
	size_t top = (uintptr_t)*(void **const volatile *)&s->hot.top - from.at;
	size_t count = tn_min(top > from.room ? 0 : top / sizeof(void *), stats->live_count);
	stats->live_count -= count;
	stats->live_bytes -= count * stats->slot_bytes;
	stats->cached_bytes += count * stats->slot_bytes;
	stats->waste_bytes = stats->live_count * grid_waste(&s->stock.grid);
	stats->peak_bytes = tn_max(stats->peak_bytes, stats->live_bytes);
}

/* ---- alloc and free, without checks ---- */

/* Slots of the stock, the lowest on top. */
static bool slab_load_from_stock(slab *s) {
	stock *k = &s->stock;
	void **slots = s->bottom + 1;
	size_t fresh = tn_max(CARVE_BYTES / k->grid.stride, 1);
	size_t count = tn_stock_take(k, slots, slab_room_of(s->bottom), fresh);
	if (count == 0 || count == STOCK_REFUSED)
		return false;
	for (size_t low = 0, high = count - 1; low < high; low++, high--) {
		void *p = slots[low];
		slots[low] = slots[high];
		slots[high] = p;
	}
	s->hot.top = s->bottom + count;
	return true;
}

/* The loaded magazine is empty: loads one with slots. */
static TN_COLD bool slab_refill(slab *s) {
	slab_sample_peak(s);
	s->refills++;
	bool loaded = true;
	if (s->spare_count > 0)
		slab_load_spare(s);
	else
		loaded = slab_load_from_stock(s);
	slab_publish(s);
	return loaded;
}

TN_INLINE void *slab_take_slot(slab *s) {
	void *p = tn_top_pop(&s->hot.top);
	if (TN_UNLIKELY(p == NULL) && slab_refill(s))
		p = tn_top_pop(&s->hot.top);
	return p;
}

/* How many empty chunks stay. Peaks are sampled only when a magazine is refilled, so two magazines'
 * worth of slots may have been unseen. */
static size_t slab_count_to_keep(const slab *s) {
	if (s->retain_chunks != 0)
		return s->retain_chunks == TN_NONE ? 0 : s->retain_chunks;
	size_t unseen = slab_room_of(s->bottom) + slab_room_of(s->spare);
	size_t needed = (tn_max(s->window_peak, s->earlier_peak) + unseen) / s->stock.grid.count + 1;
	size_t used = s->stock.chunk_count - s->stock.empty_count;
	return needed - tn_min(needed, used);
}

/* Called when a magazine of so many slots was filled by frees. The recent high-water mark is that of
 * this window and the one before; a window is as many frees as slots are carved. */
static void slab_settle(slab *s, size_t freed) {
	tn_stock_trim(&s->stock, slab_count_to_keep(s));
	s->window_freed += freed;
	if (s->window_freed < s->stock.carved)
		return;
	s->window_freed = 0;
	s->earlier_peak = s->window_peak;
	s->window_peak = slab_in_use(s);
}

/* The loaded magazine is full: loads the other one, empty. */
static TN_COLD void slab_return(slab *s) {
	void **slots = s->spare + 1;
	size_t fresh = tn_stock_return_fresh(&s->stock, slots, s->spare_count, "flush");
	tn_stock_give(&s->stock, slots + fresh, s->spare_count - fresh, "flush");
	s->spare_count = 0;
	slab_load_spare(s);
	slab_settle(s, s->spare_count);
	slab_publish(s);
}

TN_INLINE void slab_give_slot(slab *s, void *p) {
	if (TN_LIKELY(tn_top_push(&s->hot.top, p)))
		return;
	slab_return(s);
	tn_top_push(&s->hot.top, p);
}

/* ---- debug: fences and fills ---- */

static void slab_check_fences(const slab *s, const chunk *c, const char *slot, const char *operation) {
	const size_t size = s->stock.grid.slot_size;
	const void *site = stock_record_of(&s->stock, c, slot)->alloc_site;
	size_t after = tn_first_change(slot + size, TN_FENCE_BYTES, TN_FILL_FENCE);
	if (after < TN_FENCE_BYTES)
		tn_panic(s->stock.kind, s->stock.name,
			"%s: %p was written past its end, at byte %zu of %zu, allocated at %s", operation,
			(const void *)slot, size + after, size, tn_site(site).text);
	size_t before = tn_first_change(slot - TN_FENCE_BYTES, TN_FENCE_BYTES, TN_FILL_FENCE);
	if (before < TN_FENCE_BYTES)
		tn_panic(s->stock.kind, s->stock.name,
			"%s: %p was written before its start, at byte -%zu of %zu, allocated at %s", operation,
			(const void *)slot, TN_FENCE_BYTES - before, size, tn_site(site).text);
}

typedef struct fence_job {
	const slab *slab;
	const char *operation;
} fence_job;

static void slab_check_fences_of(void *slot, void *ctx) {
	const fence_job *job = ctx;
	const slab *s = job->slab;
	slab_check_fences(
		s, stock_chunk_at(&s->stock, grid_base_of(&s->stock.grid, slot)), slot, job->operation);
}

static void slab_check_all_fences(slab *s, const char *operation) {
	fence_job job = {s, operation};
	if (TN_MODE == TN_MODE_DEBUG)
		tn_stock_each(&s->stock, slab_check_fences_of, &job);
}

/* Panics if a free slot was written to. */
static void slab_check_fill(const slab *s, const char *slot, const slot_record *r) {
	if (r->free_site == NULL || s->stock.init != NULL)
		return;
	const size_t size = s->stock.grid.slot_size;
	size_t changed = tn_first_change(slot, size, TN_FILL_DEAD);
	if (changed < size)
		tn_panic(s->stock.kind, s->stock.name,
			"alloc: %p was written after it was freed, at byte %zu of %zu, freed at %s",
			(const void *)slot, changed, size, tn_site(r->free_site).text);
}

/* Checks a free slot and makes it one that alloc returns: recorded, fenced, filled. */
static void slab_set_fresh(const slab *s, char *slot, const void *site) {
	const size_t size = s->stock.grid.slot_size;
	const chunk *c = stock_chunk_at(&s->stock, grid_base_of(&s->stock.grid, slot));
	slot_record *r = stock_record_of(&s->stock, c, slot);
	tn_permit(slot, size);
	slab_check_fill(s, slot, r);
	*r = (slot_record){.alloc_site = site};
	memset(slot - TN_FENCE_BYTES, TN_FILL_FENCE, TN_FENCE_BYTES);
	memset(slot + size, TN_FILL_FENCE, TN_FENCE_BYTES);
	if (s->stock.init != NULL)
		return;
	tn_fill_fresh(slot, size);
	tn_hand_out(slot, size);
}

/* ---- debug: the quarantine ---- */

/* Whether the chunk's slots have pages of their own, which can be made to fault. */
static bool slab_is_guarded(const slab *s, const chunk *c) {
	return c->grid == &s->stock.guarded;
}

/* The slot that has been in quarantine longest is free. */
static void slab_pop_quarantine(slab *s) {
	slot_record *r = s->oldest;
	chunk *c = stock_chunk_at(&s->stock, grid_base_of(&s->stock.grid, r));
	const size_t stride = c->grid->stride;
	const slot_record *records = (slot_record *)(void *)(c->base + s->stock.records_offset);
	char *slot = stock_slot_at(&s->stock, c, (size_t)(r - records));
	s->oldest = r->younger;
	s->quarantined--;
	c->quarantined--;
	s->quarantine_bytes -= stride;
	/* All of the chunk is fewer mappings than all of it but one slot. */
	if (slab_is_guarded(s, c) && !tn_os_unprotect(slot - c->grid->lead, stride) &&
		!tn_os_unprotect(c->base, s->stock.grid.chunk_bytes))
		tn_panic(s->stock.kind, s->stock.name,
			"alloc: %p stays protected: the process has too many mappings (vm.max_map_count)",
			(void *)slot);
	slab_give_slot(s, slot);
}

static void slab_end_quarantine(slab *s) {
	while (s->quarantined > 0)
		slab_pop_quarantine(s);
}

static void slab_push_quarantine(slab *s, void *slot, const void *site) {
	chunk *c = stock_chunk_at(&s->stock, grid_base_of(&s->stock.grid, slot));
	const size_t stride = c->grid->stride;
	slab_check_fences(s, c, slot, "free");
	if (s->stock.init == NULL)
		tn_wipe(slot, s->stock.grid.slot_size);
	slot_record *r = stock_record_of(&s->stock, c, slot);
	r->free_site = site == NULL ? r->free_site : site;
	r->younger = NULL;
	*(s->quarantined++ == 0 ? &s->oldest : &s->youngest->younger) = r;
	c->quarantined++;
	s->youngest = r;
	s->quarantine_bytes += stride;
	tn_forbid(slot, s->stock.grid.slot_size);
	if (slab_is_guarded(s, c))
		tn_os_protect((char *)slot - c->grid->lead, stride);
	while (s->quarantine_bytes > SLAB_QUARANTINE_BYTES)
		slab_pop_quarantine(s);
}

/* ---- debug: what was never freed ---- */

/* Whether the chunk's slot of that index is live and not in a pool; its record. */
static bool slab_find_lost(const slab *s, const chunk *c, size_t index, slot_record **r) {
	const char *slot = stock_slot_at(&s->stock, c, index);
	*r = stock_record_of(&s->stock, c, slot);
	return tn_get(stock_state_at(&s->stock, slot), TN_RELAXED) == SLOT_LIVE;
}

/* The bytes that the user of a live slot asked for. */
static size_t slab_asked_bytes(const slab *s, const char *slot) {
	size_t size = s->stock.grid.slot_size;
	if (s->sized)
		memcpy(&size, slot + size - sizeof size, sizeof size);
	return size;
}

/* Makes slots in this chunk and those after it free that were allocated at `site`. Returns how many
 * there were, and adds up the bytes asked for. */
static size_t slab_clear_lost(const slab *s, const chunk *c, const void *site, size_t *bytes) {
	size_t count = 0;
	slot_record *r;
	for (; c != NULL; c = c->next_chunk)
		for (size_t i = 0; i < stock_carved_of(c); i++)
			if (slab_find_lost(s, c, i, &r) && r->alloc_site == site) {
				char *slot = stock_slot_at(&s->stock, c, i);
				tn_set(stock_state_at(&s->stock, slot), SLOT_FREE, TN_RELAXED);
				*bytes += slab_asked_bytes(s, slot);
				count++;
			}
	return count;
}

/* One line for every site that allocated slots which are live now; makes them free. */
static void slab_report_lost(const slab *s) {
	slot_record *r;
	if (TN_MODE != TN_MODE_DEBUG || s->expendable)
		return;
	for (const chunk *c = s->stock.chunks; c != NULL; c = c->next_chunk)
		for (size_t i = 0; i < stock_carved_of(c); i++) {
			if (!slab_find_lost(s, c, i, &r))
				continue;
			const void *site = r->alloc_site;
			size_t bytes = 0, count = slab_clear_lost(s, c, site, &bytes);
			tn_report(s->stock.kind, s->stock.name,
				"destroy: %zu live slots (%zu bytes) allocated at %s", count, bytes,
				tn_site(site).text);
		}
}

/* ---- alloc and free in hardened and debug ---- */

TN_INLINE void *slab_alloc_checked(slab *s, const void *site) {
	void *p = slab_take_slot(s);
	if (TN_MODE == TN_MODE_DEBUG && p == NULL && s->quarantined > 0) {
		slab_pop_quarantine(s);
		p = slab_take_slot(s);
	}
	if (p == NULL || TN_MODE == TN_MODE_RELEASE)
		return p;
	/* A slot in a magazine was looked up when it was freed. */
	state_byte *state = stock_state_at(&s->stock, p);
	if (TN_UNLIKELY(tn_get(state, TN_RELAXED) != SLOT_FREE))
		tn_panic(s->stock.kind, s->stock.name, "alloc: %p is both free and live", p);
	tn_set(state, SLOT_LIVE, TN_RELAXED);
	if (TN_MODE == TN_MODE_DEBUG)
		slab_set_fresh(s, p, site);
	return p;
}

TN_INLINE void slab_free_checked(slab *s, void *p, const void *site) {
	if (TN_MODE == TN_MODE_RELEASE) {
		slab_give_slot(s, p);
		return;
	}
	state_byte *state = stock_state_of(&s->stock, p, "free");
	if (TN_UNLIKELY(tn_get(state, TN_RELAXED) == SLOT_FREE))
		slab_refuse_free(s, p, "free");
	tn_set(state, SLOT_FREE, TN_RELAXED);
	if (TN_MODE == TN_MODE_DEBUG) {
		slab_push_quarantine(s, p, site);
		return;
	}
	if (s->stock.init == NULL)
		tn_wipe_slot(p, s->stock.grid.slot_size);
	slab_give_slot(s, p);
}

/* Does the trim that another thread asked for. */
static TN_COLD void slab_obey(slab *s) {
	tn_set(&s->asked, 0, TN_RELAXED);
	slab_set_bounds(s);
	slab_end_quarantine(s);
	slab_flush(s, "trim");
	tn_stock_trim(&s->stock, 0);
	tn_pages_trim();
	slab_publish(s);
}

static inline void slab_obey_if_asked(slab *s) {
	bool beyond = TN_MODE == TN_MODE_RELEASE && (tn_get(&s->hot.floor, TN_RELAXED) == UINTPTR_MAX ||
													tn_get(&s->hot.ceiling, TN_RELAXED) == 0);
	if (TN_UNLIKELY(beyond || tn_get(&s->asked, TN_RELAXED) != 0))
		slab_obey(s);
}

void *tn_slab_alloc_for(tn_slab *hot, const void *site) {
	slab *s = slab_enter(hot, "alloc");
	slab_obey_if_asked(s);
	void *p = slab_alloc_checked(s, site);
	slab_leave(s);
	return p;
}

void tn_slab_free_for(tn_slab *hot, void *p, const void *site) {
	if (p == NULL)
		return;
	slab *s = slab_enter(hot, "free");
	slab_free_checked(s, p, site);
	slab_obey_if_asked(s);
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
	slab_obey_if_asked(s);
	if (count > tn_min(s->stock.limit_bytes, PTRDIFF_MAX) / s->stock.grid.slot_size) {
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
	slab_obey_if_asked(s);
	slab_leave(s);
}

/* The reservation counts as a need of recent use. So it decays like one. */
bool tn_slab_reserve(tn_slab *hot, size_t count) {
	slab *s = slab_enter(hot, "reserve");
	slab_obey_if_asked(s);
	size_t most = tn_min(s->stock.limit_bytes, PTRDIFF_MAX) / s->stock.grid.slot_size;
	size_t here = slab_count_free(s);
	bool done = count <= most && tn_stock_reserve(&s->stock, count - tn_min(count, here));
	if (done)
		s->window_peak = s->earlier_peak = tn_max(s->window_peak, slab_in_use(s) + count);
	else
		errno = ENOMEM;
	slab_publish(s);
	slab_leave(s);
	return done;
}

/* ---- debug, for allocators that wrap a slab ---- */

void tn_slab_set_idle(tn_slab *hot, void *p, bool idle, const char *operation, const void *site) {
	if (TN_MODE != TN_MODE_DEBUG)
		return;
	slab *s = slab_enter(hot, operation);
	state_byte *state = stock_state_of(&s->stock, p, operation);
	const unsigned was = tn_get(state, TN_RELAXED);
	if (was == SLOT_FREE)
		slab_refuse_free(s, p, operation);
	const chunk *c = stock_chunk_of(&s->stock, p, operation);
	slot_record *r = stock_record_of(&s->stock, c, p);
	if ((was == SLOT_IDLE) == idle)
		tn_panic(s->stock.kind, s->stock.name, "%s: %p is %s already, got at %s, put at %s", operation,
			p, idle ? "idle" : "live", tn_site(r->alloc_site).text, tn_site(r->free_site).text);
	slab_check_fences(s, c, p, operation);
	tn_set(state, idle ? SLOT_IDLE : SLOT_LIVE, TN_RELAXED);
	if (site != NULL)
		*(idle ? &r->free_site : &r->alloc_site) = site;
	if (idle)
		tn_forbid(p, s->stock.grid.slot_size);
	else
		tn_permit(p, s->stock.grid.slot_size);
	slab_leave(s);
}

const void *tn_slab_site(const tn_slab *hot, const void *p, const char *operation) {
	const slab *s = (const slab *)hot;
	if (tn_get(stock_state_of(&s->stock, p, operation), TN_RELAXED) == SLOT_FREE)
		slab_refuse_free(s, p, operation);
	return stock_record_of(&s->stock, stock_chunk_of(&s->stock, p, operation), p)->alloc_site;
}

void tn_slab_set_sized(tn_slab *hot) {
	((slab *)hot)->sized = true;
}

void tn_slab_set_expendable(tn_slab *hot, bool expendable) {
	((slab *)hot)->expendable = expendable;
}

/* ---- reset and trim ---- */

void tn_slab_reset(tn_slab *hot) {
	slab *s = slab_enter(hot, "reset");
	slab_sample_peak(s);
	slab_end_quarantine(s);
	slab_check_all_fences(s, "reset");
	/* In debug, stale pointers fault: the chunks go through the quarantine of the page layer. */
	if (TN_MODE == TN_MODE_DEBUG)
		tn_stock_end(&s->stock);
	else
		tn_stock_reset(&s->stock);
	s->hot.top = s->bottom;
	s->spare_count = 0;
	s->partial_count = s->partial_live = 0;
	s->resets++;
	slab_obey_if_asked(s);
	TN_PROBE(reset, s->stock.kind, s->stock.name);
	slab_publish(s);
	tn_leave(&s->busy);
}

size_t tn_slab_trim(tn_slab *hot) {
	slab *s = slab_enter(hot, "trim");
	size_t before = s->stock.taken_bytes;
	slab_end_quarantine(s);
	slab_flush(s, "trim");
	tn_stock_trim(&s->stock, 0);
	slab_publish(s);
	tn_leave(&s->busy);
	return before - s->stock.taken_bytes;
}

/* ---- looking ---- */

bool tn_slab_owns(const tn_slab *hot, const void *p) {
	const stock *k = &((const slab *)hot)->stock;
	uintptr_t base = grid_base_of(&k->grid, p);
	if (tn_pages_owner(base) != k)
		return false;
	const chunk *c = stock_chunk_at(k, base);
	return grid_find_slot(stock_grid_of(k, c), c->base, stock_carved_of(c), p) != NULL;
}

void tn_slab_each(tn_slab *hot, void (*visit)(void *slot, void *ctx), void *ctx) {
	slab *s = slab_enter(hot, "each");
	slab_mark_free(s, true, "each");
	tn_stock_each(&s->stock, visit, ctx);
	slab_mark_free(s, false, "each");
	slab_leave(s);
}

size_t tn_slab_in_use(const tn_slab *hot) {
	return slab_in_use(slab_look(hot, "in_use"));
}

size_t tn_slab_slot_size(const tn_slab *hot) {
	return ((const slab *)hot)->stock.grid.slot_size;
}

void tn_slab_stats(const tn_slab *hot, tn_stats *stats) {
	slab *s = (slab *)(uintptr_t)slab_look(hot, "stats");
	/* The count below answers a reader that asked for one. */
	tn_list_take_wanted(s->node, TN_WANT_COUNT);
	slab_sample_partial(s, "stats");
	slab_read(s, slab_in_use(s), stats);
	memcpy(stats->name, s->stock.name, sizeof stats->name);
	slab_publish(s);
}

static void slab_count_slot(void *slot, void *ctx) {
	(void)slot;
	++*(size_t *)ctx;
}

bool tn_slab_verify(const tn_slab *hot) {
	slab *s = (slab *)(uintptr_t)slab_look(hot, "verify");
	size_t live = 0;
	slab_mark_free(s, true, "verify");
	tn_stock_each(&s->stock, slab_count_slot, &live);
	slab_mark_free(s, false, "verify");
	tn_stock_verify(&s->stock);
	tn_stock_require(&s->stock, s->spare_count == 0 || s->spare_count == slab_room_of(s->spare),
		"I5: the spare magazine is neither full nor empty");
	tn_stock_require(&s->stock, live == slab_in_use(s), "I6: the slots in use do not add up");
	tn_stock_require(&s->stock,
		s->stock.taken_bytes == s->stock.chunk_count * s->stock.grid.chunk_bytes + s->own_bytes,
		"I4: the bytes taken do not add up");
	slab_check_all_fences(s, "verify");
	return true;
}

/* ---- create and destroy ---- */

tn_slab *tn_slab_make(const char *kind, const tn_chunk_source *source, size_t size, size_t align,
	const tn_slab_options *o) {
	align = align == 0 ? 16 : align;
	if (!grid_valid(size, align, o->chunk_bytes, o->source) || (o->fini != NULL && o->init == NULL))
		return errno = EINVAL, NULL;
	slab draft = {.state = TN_ALIVE,
		.retain_chunks = o->retain_chunks,
		.expendable = o->expendable,
		.stock = {.grid = {.slot_size = tn_round_up(size, align), .asked_size = size},
			.source = *source,
			.limit_bytes = o->limit_bytes == 0 ? TN_NONE : o->limit_bytes,
			.init = o->init,
			.fini = o->fini,
			.ctx = o->ctx,
			.kind = kind}};
	size_t bound = source->account == NULL ? SIZE_MAX : tn_limit_least(source->account->limit);
	bound = tn_min(bound, draft.stock.limit_bytes);
	if (!tn_stock_lay_out(&draft.stock, align, grid_chunk_bytes(o->chunk_bytes, size, bound)))
		return errno = EINVAL, NULL;
	tn_copy_name(draft.stock.name, o->name, kind);
	bool small = draft.stock.grid.chunk_bytes < GRID_CHUNK_BYTES;
	draft.stock.taken_bytes = draft.own_bytes = (small ? 2 : 3) * TN_MAGAZINE_BYTES;
	if (draft.own_bytes > draft.stock.limit_bytes)
		return errno = ENOMEM, NULL;
	draft.own = tn_chunk_acquire(&draft.stock.source, draft.own_bytes, TN_OS_PAGE);
	if (draft.own == NULL)
		return NULL;
	slab *s = (slab *)(void *)(draft.own + ALIAS_GAP);
	*s = draft;
	s->bottom = s->hot.top = small ? (void **)(s + 1) : (void **)(void *)(s->own + TN_MAGAZINE_BYTES);
	s->spare = (void **)(void *)(s->own + s->own_bytes - TN_MAGAZINE_BYTES);
	*s->bottom = *s->spare = NULL;
	slab_set_bounds(s);
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
	if (s == NULL)
		return NULL;
	tn_list_add_keeper(&((slab *)s)->keeper, slab_ask);
	if (tn_slab_list(s, parent, &slab_kind, s, o->name))
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
	tn_list_remove_keeper(&s->keeper);
	slab_end_quarantine(s);
	slab_check_all_fences(s, "destroy");
	slab_report_lost(s);
	tn_stock_end(&s->stock);
	s->state = TN_DEAD;
	tn_chunk_release(&s->stock.source, s->own, s->own_bytes, TN_OS_PAGE);
}
