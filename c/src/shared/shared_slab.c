/* The shared slab in release and hardened: chunks under a lock, behind each thread's magazines.
 *
 *   alloc, free (inline)      this thread's loaded magazine
 *   `- take, give             thread_cache.c: previous, depot; and if these do not help
 *      |- shared_take_slots   slots that are free in chunks, the fullest chunk first; fresh ones
 *      `- shared_give_slots   slots back into their chunks; an empty chunk goes
 *
 *   | slot 0 | slot 1 | ... carved up to here ...| | head | bits | hardened: states |
 *
 * A magazine's page is taken when a thread needs one. Without a page, slots go straight into their
 * chunk's bits: so a free never needs memory. In debug a shared slab is a slab behind a lock: see
 * shared_slab_debug.c.
 *
 * I1  a bit is 1 for a slot that is carved and free in its chunk; every other carved slot is outside:
 *     handed out, or in a magazine.
 * I2  outside = carved - the sum of all chunks' free slots; in use = outside - slots in magazines.
 * I3  a chunk with slots to give is in the list of its rank, by how full it is.
 * I4  hardened: the state of a slot is SLOT_LIVE exactly while it is handed out, so that of two frees
 *     of one slot, by any threads, one finds it free.
 * I5  the page table names the slab as the owner of each of its chunks; all chunks are counted; the
 *     bytes taken are at most limit_bytes. */
#include <tenure/shared_slab.h>

#include <tenure/detail/front.h>

#include <errno.h>

#include "shared_slab.h"

#if TN_MODE != TN_MODE_DEBUG

#include "../base/list.h"
#include "../base/modes.h"
#include "../pages/pages.h"
#include "../slab/grid.h"
#include "thread_cache.h"

enum {
	RANKS = 4,           /* from the fullest chunks to the emptiest */
	FIRST_CAPACITY = 64, /* also a cache line of states */
	/* As in slab.c: the record's first words and slot 0 must not share their low 12 bits. */
	RECORD_GAP = 13 * TN_OS_LINE,
};
#define MAGAZINE_REACH ((size_t)256 << 10) /* most bytes of slots in a magazine */

typedef TN_ATOMIC(uint8_t) state_byte; /* an enum slot_state */

typedef struct shared_chunk {
	char *base;
	struct shared_chunk *next, **link;             /* in the list of its rank */
	struct shared_chunk *next_chunk, **link_chunk; /* in the list of all chunks */
	size_t free;                                   /* bits that are set */
	TN_ATOMIC(size_t) carved;
	bool empty; /* all carved slots are free, and the chunk is in empty_count */
	uint64_t bits[];
} shared_chunk;

/* Create sets most fields for good; the others are written under the lock. */
typedef struct shared_slab {
	tn_shared_slab hot;
	cache cache;
	tn_lock lock;
	uint32_t state;
	grid grid;
	size_t states_offset; /* hardened: of a byte for each grain */
	shared_chunk *ranks[RANKS];
	shared_chunk *chunks;
	size_t chunk_count, empty_count, retain_chunks;
	size_t ranked_count;       /* chunks in the list of their rank */
	TN_ATOMIC(size_t) outside; /* slots */
	size_t taken_bytes, limit_bytes;
	size_t peak;
	uint64_t refills;
	bool (*init)(void *slot, void *ctx);
	void (*fini)(void *slot, void *ctx);
	void *ctx;
	tn_chunk_source source;
	char *own; /* the pages that hold this struct */
	size_t own_bytes;
	struct tn_node *node; /* in the listing, or NULL */
	char name[TN_NAME_BYTES + 1];
} shared_slab;
_Static_assert(
	offsetof(shared_slab, state) + sizeof(uint32_t) <= sizeof(tn_shared_slab) + TN_STAND_IN_BYTES,
	"stand-in");
_Static_assert(_Alignof(shared_slab) <= TN_STAND_IN_ALIGN, "stand-in");

static shared_slab *shared_of_cache(const cache *c) {
	return (shared_slab *)(void *)((char *)(uintptr_t)c - offsetof(shared_slab, cache));
}

/* Begins a call: hardened panics at a slab that is not alive. */
static shared_slab *shared_enter(const tn_shared_slab *hot, const char *operation) {
	shared_slab *s = (shared_slab *)(uintptr_t)hot;
	if (TN_MODE != TN_MODE_RELEASE && s->state != TN_ALIVE)
		tn_panic("shared slab", NULL, "%s: %p is not a live shared slab", operation, (const void *)hot);
	return s;
}

static TN_COLD _Noreturn void shared_refuse(
	const shared_slab *s, const void *p, const char *operation) {
	tn_panic(s->cache.kind, s->name, "%s: %p is not a slot of this %s", operation, p, s->cache.kind);
}

/* ---- from a pointer to its slot ---- */

static shared_chunk *shared_chunk_at(const shared_slab *s, uintptr_t base) {
	return (shared_chunk *)grid_head_at(&s->grid, base);
}

/* The chunk that p points into; panics when there is none. */
static shared_chunk *shared_chunk_of(const shared_slab *s, const void *p, const char *operation) {
	uintptr_t base = grid_base_of(&s->grid, p);
	if (TN_UNLIKELY(tn_pages_owner(base) != s))
		shared_refuse(s, p, operation);
	return shared_chunk_at(s, base);
}

/* The chunk of the slot that begins at p; panics at any other pointer. */
static shared_chunk *shared_chunk_of_slot(const shared_slab *s, const void *p, const char *operation) {
	shared_chunk *c = shared_chunk_of(s, p, operation);
	const size_t carved = tn_get(&c->carved, TN_RELAXED);
	if (grid_has_slot(&s->grid, c->base, carved, p))
		return c;
	const char *slot = grid_find_slot(&s->grid, c->base, carved, p);
	if (slot == NULL)
		shared_refuse(s, p, operation);
	tn_panic(s->cache.kind, s->name, "%s: %p is %zu bytes inside the slot at %p", operation, p,
		(size_t)((const char *)p - slot), (const void *)slot);
}

static state_byte *shared_state_of(const shared_slab *s, const shared_chunk *c, const void *p) {
	return (state_byte *)(void *)(c->base + s->states_offset) + grid_bit_of(&s->grid, c->base, p);
}

/* ---- figures ---- */

static size_t shared_count_live(const shared_slab *s) {
	size_t outside = tn_get(&s->outside, TN_RELAXED);
	return outside - tn_min(outside, tn_cache_idle((cache *)(uintptr_t)&s->cache).count);
}

/* Counts the slots in magazines as live. In a chunk that is in no rank every slot is outside. */
static void shared_read(const shared_slab *s, tn_stats *stats) {
	size_t outside = tn_get(&s->outside, TN_RELAXED);
	size_t full = s->chunk_count - s->ranked_count;
	*stats = (tn_stats){.live_count = outside,
		.reserved_bytes = s->taken_bytes,
		.committed_bytes = s->taken_bytes,
		.peak_bytes = s->peak * s->grid.slot_size,
		.chunk_count = s->chunk_count,
		.partial_count = s->ranked_count - s->empty_count,
		.refills = s->refills,
		.slot_bytes = s->grid.slot_size,
		.slot_count = s->chunk_count * s->grid.count,
		.partial_live_count = outside - full * s->grid.count};
}

static void shared_read_idle(tn_stats *stats, idle_slots idle) {
	stats->live_count -= tn_min(stats->live_count, idle.count);
	stats->live_bytes = stats->live_count * stats->slot_bytes;
	stats->cached_bytes = stats->slot_count * stats->slot_bytes - stats->live_bytes;
	stats->thread_cached_bytes = (idle.count - idle.in_depot) * stats->slot_bytes;
	stats->peak_bytes = tn_max(stats->peak_bytes, stats->live_bytes);
}

void tn_shared_slab_look(const void *object, tn_position from, tn_listed *listed) {
	(void)from;
	const shared_slab *s = object;
	/* Chunks may come and go at this moment. */
	listed->stats.live_count = tn_min(tn_get(&s->outside, TN_RELAXED), listed->stats.slot_count);
	shared_read_idle(&listed->stats, tn_cache_glance((cache *)(uintptr_t)&s->cache));
	tn_cache_read_exchanges(&s->cache, &listed->stats);
}

/* ---- chunks ---- */

static size_t shared_count_left(const shared_slab *s, const shared_chunk *c) {
	return c->free + s->grid.count - tn_get(&c->carved, TN_RELAXED);
}

static void shared_unlink_chunk(shared_slab *s, shared_chunk *c) {
	s->ranked_count -= c->link != NULL;
	TN_LIST_UNLINK(c, next, link);
}

static size_t shared_rank_of(const shared_slab *s, const shared_chunk *c) {
	return (shared_count_left(s, c) - 1) * RANKS / s->grid.count;
}

/* Puts a chunk into the list of its rank, if it has slots to give. */
static void shared_push_chunk(shared_slab *s, shared_chunk *c) {
	if (shared_count_left(s, c) == 0)
		return;
	shared_chunk **rank = &s->ranks[shared_rank_of(s, c)];
	TN_LIST_PUSH(rank, c, next, link);
	s->ranked_count++;
}

/* The fullest chunk with slots to give, or NULL. */
static shared_chunk *shared_find_chunk(const shared_slab *s) {
	for (size_t i = 0; i < RANKS; i++)
		if (s->ranks[i] != NULL)
			return s->ranks[i];
	return NULL;
}

static shared_chunk *shared_take_chunk(shared_slab *s) {
	if (s->limit_bytes - s->taken_bytes < s->grid.chunk_bytes)
		return errno = ENOMEM, NULL;
	char *base = tn_chunk_acquire(&s->source, s->grid.chunk_bytes, s->grid.chunk_bytes);
	if (base == NULL)
		return NULL;
	if (!tn_pages_set_owner(base, s)) {
		tn_chunk_release(&s->source, base, s->grid.chunk_bytes, s->grid.chunk_bytes);
		return NULL;
	}
	shared_chunk *c = shared_chunk_at(s, (uintptr_t)base);
	memset(c, 0, s->grid.chunk_bytes - s->grid.head_offset);
	c->base = base;
	TN_LIST_PUSH(&s->chunks, c, next_chunk, link_chunk);
	s->chunk_count++;
	s->taken_bytes += s->grid.chunk_bytes;
	shared_push_chunk(s, c);
	return c;
}

static void shared_give_chunk(shared_slab *s, shared_chunk *c) {
	char *base = c->base;
	size_t carved = tn_get(&c->carved, TN_RELAXED);
	for (size_t i = 0; s->fini != NULL && i < carved; i++)
		s->fini(grid_slot_at(&s->grid, base, i), s->ctx);
	tn_wipe(base, carved * s->grid.slot_size);
	shared_unlink_chunk(s, c);
	TN_LIST_UNLINK(c, next_chunk, link_chunk);
	s->empty_count -= c->empty;
	s->chunk_count--;
	s->taken_bytes -= s->grid.chunk_bytes;
	tn_pages_set_owner(base, NULL);
	tn_chunk_release(&s->source, base, s->grid.chunk_bytes, s->grid.chunk_bytes);
}

/* After slots came or went: the chunk goes into the list of its rank, or back if it is empty and enough
 * others are. */
static void shared_settle_chunk(shared_slab *s, shared_chunk *c) {
	shared_unlink_chunk(s, c);
	bool empty = c->free == tn_get(&c->carved, TN_RELAXED);
	s->empty_count += (size_t)empty - (size_t)c->empty;
	c->empty = empty;
	if (empty && s->empty_count > s->retain_chunks)
		shared_give_chunk(s, c);
	else
		shared_push_chunk(s, c);
}

static void shared_give_empty_chunks(shared_slab *s) {
	for (shared_chunk *c = s->chunks, *next; c != NULL; c = next) {
		next = c->next_chunk;
		if (c->empty)
			shared_give_chunk(s, c);
	}
}

/* Ends a call that holds the lock: does the trim that a reader asked for, publishes the figures, gives
 * the lock. */
static void shared_leave(shared_slab *s) {
	if (TN_UNLIKELY(tn_list_take_wanted(s->node, TN_WANT_TRIM)))
		shared_give_empty_chunks(s);
	if (s->node != NULL) {
		tn_stats stats;
		shared_read(s, &stats);
		tn_list_publish(s->node, &stats, TN_FIGURES_ALL, (tn_position){0, 0});
	}
	tn_lock_give(&s->lock);
}

/* ---- for the magazines ---- */

/* Takes free slots of a chunk, by address. */
static size_t shared_take_free(shared_slab *s, shared_chunk *c, void **slots, size_t count) {
	size_t found = 0;
	for (uint64_t *word = c->bits; found < count && c->free > 0; word++)
		for (; *word != 0 && found < count; *word &= *word - 1) {
			size_t grain = (size_t)(word - c->bits) * TN_WORD_BITS + (size_t)__builtin_ctzll(*word);
			slots[found++] = c->base + (grain << s->grid.grain_bits);
			c->free--;
		}
	return found;
}

/* Fresh slots. A run ends where the next one begins on a cache line of its own, whether of tiny slots
 * or of states: so two threads that carve do not slow each other down. */
static size_t shared_carve(shared_slab *s, shared_chunk *c, void **slots, size_t count) {
	size_t carved = tn_get(&c->carved, TN_RELAXED);
	count = tn_min(count, s->grid.count - carved);
	if (count > FIRST_CAPACITY)
		count -= (carved + count) % FIRST_CAPACITY;
	for (size_t i = 0; i < count; i++)
		slots[i] = grid_slot_at(&s->grid, c->base, carved + i);
	tn_set(&c->carved, carved + count, TN_RELAXED);
	return count;
}

/* A fresh slot, initialised; CACHE_REFUSED if that failed. */
static size_t shared_carve_one(shared_slab *s, shared_chunk *c, void **slot) {
	if (!s->init(grid_slot_at(&s->grid, c->base, tn_get(&c->carved, TN_RELAXED)), s->ctx))
		return errno = ENOMEM, CACHE_REFUSED;
	return shared_carve(s, c, slot, 1);
}

/* Slots of chunks, under the lock. With `init`: as many as are free, or one fresh one. */
static size_t shared_find_slots(shared_slab *s, void **slots, size_t count) {
	size_t found = 0, before = 0;
	do {
		before = found;
		shared_chunk *c = shared_find_chunk(s);
		if (c == NULL && found == 0) {
			s->peak = tn_max(s->peak, shared_count_live(s));
			c = shared_take_chunk(s);
		}
		if (c == NULL)
			break;
		found += shared_take_free(s, c, slots + found, count - found);
		if (s->init == NULL)
			found += shared_carve(s, c, slots + found, count - found);
		else if (found == 0)
			found = shared_carve_one(s, c, slots);
		shared_settle_chunk(s, c);
	} while (found < count && found > before && found != CACHE_REFUSED);
	return found;
}

static size_t shared_take_slots(cache *c, void **slots, size_t count) {
	shared_slab *s = shared_of_cache(c);
	tn_lock_take(&s->lock);
	size_t found = shared_find_slots(s, slots, count);
	if (found != CACHE_REFUSED)
		tn_set(&s->outside, tn_get(&s->outside, TN_RELAXED) + found, TN_RELAXED);
	s->refills++;
	shared_leave(s);
	return found;
}

static void shared_give_slots(cache *cache, void **slots, size_t count) {
	shared_slab *s = shared_of_cache(cache);
	tn_lock_take(&s->lock);
	shared_chunk *c = NULL;
	for (size_t i = 0; i < count; i++) {
		if (c == NULL || grid_base_of(&s->grid, slots[i]) != (uintptr_t)c->base) {
			if (c != NULL)
				shared_settle_chunk(s, c);
			c = shared_chunk_of(s, slots[i], "flush");
		}
		size_t grain = grid_bit_of(&s->grid, c->base, slots[i]);
		if (TN_UNLIKELY(
				grain << s->grid.grain_bits >= tn_get(&c->carved, TN_RELAXED) * s->grid.slot_size))
			shared_refuse(s, slots[i], "flush");
		if (TN_UNLIKELY(tn_test_bit(c->bits, grain)))
			tn_panic(cache->kind, s->name, "flush: %p is free twice", slots[i]);
		tn_flip_bit(c->bits, grain);
		c->free++;
	}
	if (c != NULL)
		shared_settle_chunk(s, c);
	tn_set(&s->outside, tn_get(&s->outside, TN_RELAXED) - count, TN_RELAXED);
	shared_leave(s);
}

/* Slots weigh nothing. Release panics at a pointer of a magazine that is in no chunk of this slab;
 * hardened has looked at each free. */
static size_t shared_weight_of(const cache *c, void *const *slots, size_t count) {
	const shared_slab *s = shared_of_cache(c);
	if (TN_MODE != TN_MODE_RELEASE)
		return 0;
	size_t first = tn_pages_first_foreign(s, slots, count, s->grid.chunk_bytes);
	if (TN_UNLIKELY(first < count))
		shared_refuse(s, slots[first], "flush");
	return 0;
}

static magazine *shared_take_magazine(cache *c) {
	shared_slab *s = shared_of_cache(c);
	magazine *m = NULL;
	tn_lock_take(&s->lock);
	if (s->limit_bytes - s->taken_bytes >= TN_MAGAZINE_BYTES)
		m = tn_chunk_acquire(&s->source, TN_MAGAZINE_BYTES, TN_MAGAZINE_BYTES);
	s->taken_bytes += m == NULL ? 0 : TN_MAGAZINE_BYTES;
	tn_lock_give(&s->lock);
	return m;
}

static void shared_give_magazine(cache *c, magazine *m) {
	shared_slab *s = shared_of_cache(c);
	tn_lock_take(&s->lock);
	s->taken_bytes -= TN_MAGAZINE_BYTES;
	tn_chunk_release(&s->source, m, TN_MAGAZINE_BYTES, TN_MAGAZINE_BYTES);
	tn_lock_give(&s->lock);
}

/* As many as go out and come back in a steady use of all slots. */
static size_t shared_window_of(cache *c) {
	return 2 * tn_get(&shared_of_cache(c)->outside, TN_RELAXED) + 1;
}

static const cache_owner slab_owner = {
	.take_slots = shared_take_slots,
	.give_slots = shared_give_slots,
	.weight_of = shared_weight_of,
	.take_magazine = shared_take_magazine,
	.give_magazine = shared_give_magazine,
	.window_of = shared_window_of,
};

/* ---- the states of slots, in hardened ---- */

/* Marks a slot that is about to be handed out; NULL stays NULL. */
static void *shared_set_live(const shared_slab *s, void *p) {
	if (TN_MODE == TN_MODE_RELEASE || p == NULL)
		return p;
	/* A slot in a magazine was looked up when it was freed. */
	state_byte *state = shared_state_of(s, shared_chunk_at(s, grid_base_of(&s->grid, p)), p);
	if (TN_UNLIKELY(tn_get(state, TN_RELAXED) != SLOT_FREE))
		tn_panic(s->cache.kind, s->name, "alloc: %p is both free and live", p);
	tn_set(state, SLOT_LIVE, TN_RELAXED);
	return p;
}

static TN_COLD _Noreturn void shared_refuse_state(
	const shared_slab *s, const void *p, unsigned state, const char *operation) {
	shared_chunk_of_slot(s, p, operation);
	tn_panic(s->cache.kind, s->name, "%s: %p is %s already", operation, p,
		(const char *[]){"free", "live", "idle"}[state]);
}

void tn_shared_slab_set_state(tn_shared_slab *hot, void *p, enum slot_state from, enum slot_state to,
	const char *operation, const void *site) {
	(void)site;
	shared_slab *s = shared_enter(hot, operation);
	if (TN_MODE == TN_MODE_RELEASE)
		return;
	const shared_chunk *c = shared_chunk_of(s, p, operation);
	size_t offset = (size_t)((const char *)p - c->base);
	if (TN_UNLIKELY(!grid_has_grain(&s->grid, offset, s->grid.head_offset)))
		shared_chunk_of_slot(s, p, operation);
	uint8_t seen = (uint8_t)from;
	if (TN_UNLIKELY(!tn_replace(shared_state_of(s, c, p), &seen, (uint8_t)to, TN_RELAXED)))
		shared_refuse_state(s, p, seen, operation);
}

/* Marks and wipes a slot that is freed. */
static void shared_set_free(shared_slab *s, void *p) {
	if (TN_MODE == TN_MODE_RELEASE)
		return;
	tn_shared_slab_set_state(&s->hot, p, SLOT_LIVE, SLOT_FREE, "free", NULL);
	if (s->init == NULL)
		tn_wipe_slot(p, s->grid.slot_size);
}

/* ---- alloc and free ---- */

void *tn_shared_slab_alloc_slow(tn_shared_slab *hot) {
	shared_slab *s = shared_enter(hot, "alloc");
	return shared_set_live(s, tn_cache_take(&s->cache, &tn_near_slab));
}

void tn_shared_slab_free_slow(tn_shared_slab *hot, void *p) {
	shared_slab *s = shared_enter(hot, "free");
	if (p == NULL)
		return;
	shared_set_free(s, p);
	tn_cache_give(&s->cache, &tn_near_slab, p);
}

void *tn_shared_slab_local_alloc_slow(tn_local *l) {
	cache *c = tn_cache_of_handle((local *)l, "local_alloc");
	return shared_set_live(shared_of_cache(c), tn_cache_take_by(c, (local *)l));
}

void tn_shared_slab_local_free_slow(tn_local *l, void *p) {
	cache *c = tn_cache_of_handle((local *)l, "local_free");
	if (p == NULL)
		return;
	shared_set_free(shared_of_cache(c), p);
	tn_cache_give_by(c, (local *)l, p);
}

tn_local *tn_shared_slab_local(tn_shared_slab *hot) {
	local *l = tn_cache_handle(&shared_enter(hot, "local")->cache);
	return l != NULL ? &l->hot : (errno = ENOMEM, (tn_local *)NULL);
}

bool tn_shared_slab_alloc_batch(tn_shared_slab *hot, void **slots, size_t count) {
	shared_slab *s = shared_enter(hot, "alloc_batch");
	if (count > tn_min(s->limit_bytes, PTRDIFF_MAX) / s->grid.slot_size)
		return errno = ENOMEM, false;
	size_t done = 0;
	while (done < count && (slots[done] = tn_shared_slab_alloc(hot)) != NULL)
		done++;
	bool all = done == count;
	/* Backwards, so that the thread gets the same slots in the same order again. */
	while (!all && done > 0)
		tn_shared_slab_free(hot, slots[--done]);
	return all || (errno = ENOMEM, false);
}

void tn_shared_slab_free_batch(tn_shared_slab *hot, void **slots, size_t count) {
	shared_enter(hot, "free_batch");
	for (size_t i = 0; i < count; i++)
		tn_shared_slab_free(hot, slots[i]);
}

void *tn_shared_slab_take(tn_shared_slab *hot, const void *site) {
	(void)site;
	shared_slab *s = shared_enter(hot, "get");
	void *p;
	return shared_take_slots(&s->cache, &p, 1) == 1 ? shared_set_live(s, p) : NULL;
}

void tn_shared_slab_give(tn_shared_slab *hot, void *p, const void *site) {
	(void)site;
	shared_slab *s = shared_enter(hot, "put");
	shared_set_free(s, p);
	shared_give_slots(&s->cache, &p, 1);
}

/* ---- flush and trim ---- */

void tn_shared_slab_flush(tn_shared_slab *hot) {
	tn_cache_flush(&shared_enter(hot, "flush")->cache);
}

size_t tn_shared_slab_trim(tn_shared_slab *hot) {
	shared_slab *s = shared_enter(hot, "trim");
	tn_lock_take(&s->lock);
	size_t before = s->taken_bytes;
	tn_lock_give(&s->lock);
	tn_cache_drain(&s->cache);
	tn_lock_take(&s->lock);
	shared_give_empty_chunks(s);
	size_t after = s->taken_bytes;
	shared_leave(s);
	tn_pages_trim();
	/* Other threads may have taken more meanwhile. */
	return before - tn_min(before, after);
}

/* ---- looking ---- */

size_t tn_shared_slab_in_use(const tn_shared_slab *hot) {
	return shared_count_live(shared_enter(hot, "in_use"));
}

size_t tn_shared_slab_slot_size(const tn_shared_slab *hot) {
	return shared_enter(hot, "slot_size")->grid.slot_size;
}

bool tn_shared_slab_owns(const tn_shared_slab *hot, const void *p) {
	shared_slab *s = shared_enter(hot, "owns");
	uintptr_t base = grid_base_of(&s->grid, p);
	/* Under the lock a chunk does not go back. */
	tn_lock_take(&s->lock);
	size_t carved = 0;
	if (tn_pages_owner(base) == s)
		carved = tn_get(&shared_chunk_at(s, base)->carved, TN_RELAXED);
	tn_lock_give(&s->lock);
	return (uintptr_t)p - base < carved * s->grid.slot_size;
}

bool tn_shared_slab_holds(const tn_shared_slab *hot, const void *p) {
	const shared_slab *s = (const shared_slab *)(uintptr_t)hot;
	return tn_pages_owner(grid_base_of(&s->grid, p)) == s;
}

void tn_shared_slab_tune(tn_shared_slab *hot, const tn_shared_slab_knobs *knobs) {
	shared_slab *s = shared_enter(hot, "tune");
	tn_set(&s->cache.depots.shard_slots, tn_option(knobs->shard_slots, SIZE_MAX), TN_RELAXED);
	tn_lock_take(&s->lock);
	s->retain_chunks = tn_option(knobs->retain_chunks, 1);
	shared_leave(s);
}

typedef struct flip_job {
	const shared_slab *slab;
	const char *operation;
	bool marked;
} flip_job;

/* Marks the slots of a magazine as free in their chunks, or takes the marks away. A slot that has its
 * mark already is free twice. */
static void shared_flip_slots(void *const *slots, size_t count, void *ctx) {
	const flip_job *job = ctx;
	const shared_slab *s = job->slab;
	for (size_t i = 0; i < count; i++) {
		shared_chunk *c = shared_chunk_of_slot(s, slots[i], job->operation);
		size_t grain = grid_bit_of(&s->grid, c->base, slots[i]);
		if (tn_test_bit(c->bits, grain) != job->marked)
			tn_panic(s->cache.kind, s->name, "%s: %p is free twice", job->operation, slots[i]);
		tn_flip_bit(c->bits, grain);
	}
}

/* Calls `visit` for each carved slot that is neither free in its chunk nor in a magazine. */
static void shared_each(
	shared_slab *s, void (*visit)(void *slot, void *ctx), void *ctx, const char *operation) {
	flip_job job = {s, operation, false};
	tn_cache_each(&s->cache, shared_flip_slots, &job);
	for (shared_chunk *c = s->chunks; c != NULL; c = c->next_chunk)
		for (size_t i = 0, carved = tn_get(&c->carved, TN_RELAXED); i < carved; i++) {
			char *slot = grid_slot_at(&s->grid, c->base, i);
			if (!tn_test_bit(c->bits, grid_bit_of(&s->grid, c->base, slot)))
				visit(slot, ctx);
		}
	job.marked = true;
	tn_cache_each(&s->cache, shared_flip_slots, &job);
}

void tn_shared_slab_each(tn_shared_slab *hot, void (*visit)(void *slot, void *ctx), void *ctx) {
	shared_each(shared_enter(hot, "each"), visit, ctx, "each");
}

void tn_shared_slab_stats(const tn_shared_slab *hot, tn_stats *stats) {
	shared_slab *s = shared_enter(hot, "stats");
	tn_lock_take(&s->lock);
	shared_read(s, stats);
	shared_read_idle(stats, tn_cache_idle(&s->cache));
	tn_cache_read_exchanges(&s->cache, stats);
	s->peak = stats->peak_bytes / s->grid.slot_size;
	tn_lock_give(&s->lock);
	memcpy(stats->name, s->name, sizeof stats->name);
}

static void shared_require(const shared_slab *s, bool holds, const char *what) {
	if (!holds)
		tn_panic(s->cache.kind, s->name, "verify: %s", what);
}

typedef struct live_job {
	const shared_slab *slab;
	size_t count;
} live_job;

static void shared_verify_slot(void *slot, void *ctx) {
	live_job *job = ctx;
	const shared_slab *s = job->slab;
	job->count++;
	if (TN_MODE == TN_MODE_RELEASE || s->cache.orphaned)
		return;
	unsigned state = tn_get(shared_state_of(s, shared_chunk_of(s, slot, "verify"), slot), TN_RELAXED);
	shared_require(s, state != SLOT_FREE, "I4: a slot that is nowhere free is not live");
}

static size_t shared_count_bits(const shared_slab *s, const shared_chunk *c) {
	size_t count = 0;
	for (size_t i = 0; i < grid_bit_words(&s->grid, s->grid.count); i++)
		count += (size_t)__builtin_popcountll(c->bits[i]);
	return count;
}

bool tn_shared_slab_verify(const tn_shared_slab *hot) {
	shared_slab *s = shared_enter(hot, "verify");
	live_job job = {s, 0};
	shared_each(s, shared_verify_slot, &job, "verify");
	size_t carved = 0, free = 0, chunks = 0, empty = 0, ranked = 0;
	for (const shared_chunk *c = s->chunks; c != NULL; c = c->next_chunk) {
		size_t here = tn_get(&c->carved, TN_RELAXED);
		shared_require(s, tn_pages_owner((uintptr_t)c->base) == s, "I5: a chunk has another owner");
		shared_require(s, here <= s->grid.count, "I1: a chunk has more slots than room");
		shared_require(s, shared_count_bits(s, c) == c->free, "I1: a chunk's free slots do not add up");
		shared_require(s, (shared_count_left(s, c) > 0) == (c->link != NULL),
			"I3: a chunk is not where it belongs");
		carved += here;
		free += c->free;
		chunks++;
		empty += c->empty;
	}
	for (size_t rank = 0; rank < RANKS; rank++)
		for (const shared_chunk *c = s->ranks[rank]; c != NULL; c = c->next, ranked++)
			shared_require(
				s, shared_rank_of(s, c) == rank, "I3: a chunk is in the list of another rank");
	shared_require(s, ranked == s->ranked_count, "I3: the chunks in ranks do not add up");
	shared_require(
		s, chunks == s->chunk_count && empty == s->empty_count, "I5: the chunks do not add up");
	shared_require(s, carved - free == tn_get(&s->outside, TN_RELAXED), "I2: the slots do not add up");
	shared_require(s, job.count == shared_count_live(s), "I2: the slots in use do not add up");
	shared_require(s, s->taken_bytes <= s->limit_bytes, "I5: more was taken than the limit");
	return true;
}

/* ---- create and destroy ---- */

/* Chunks as large as asked for, or as a slot and the head need; as many slots as fit. */
static bool shared_lay_out(shared_slab *s, size_t chunk_bytes) {
	const size_t states = TN_MODE == TN_MODE_RELEASE ? 0 : TN_WORD_BITS;
	const grid_tail tail = {.head = sizeof(shared_chunk),
		.per_word = sizeof(uint64_t) + states,
		.group_slots = 1,
		.align = TN_OS_LINE};
	grid *g = &s->grid;
	g->stride = g->slot_size;
	for (g->chunk_bytes = chunk_bytes; g->chunk_bytes <= GRID_CHUNK_BYTES_MAX; g->chunk_bytes *= 2)
		if (grid_lay_out(g, &tail)) {
			s->states_offset = g->chunk_bytes - grid_bit_words(g, g->count) * states;
			return true;
		}
	return false;
}

static void shared_set_capacity(shared_slab *s, size_t asked) {
	size_t most = tn_min(tn_max(MAGAZINE_REACH / s->grid.slot_size, 1), TN_MAGAZINE_SLOTS_MAX);
	s->cache.most_capacity = (uint32_t)(asked != 0 ? asked : most);
	s->cache.least_capacity = (uint32_t)(asked != 0 ? asked : tn_min(most, FIRST_CAPACITY));
}

tn_shared_slab *tn_shared_slab_make(
	const char *kind, size_t size, size_t align, const tn_shared_slab_options *o) {
	align = align == 0 ? 16 : align;
	if (!grid_valid(size, align, o->chunk_bytes, o->source) || (o->fini != NULL && o->init == NULL) ||
		o->magazine_slots > TN_MAGAZINE_SLOTS_MAX)
		return errno = EINVAL, NULL;
	shared_slab draft = {.cache = {.owner = &slab_owner,
							 .kind = kind,
							 .depots = {.most_slots = SIZE_MAX,
								 .most_weight = SIZE_MAX,
								 .shard_slots = tn_option(o->shard_slots, SIZE_MAX)}},
		.state = TN_ALIVE,
		.grid = {.slot_size = tn_round_up(size, align)},
		.retain_chunks = tn_option(o->retain_chunks, 1),
		.limit_bytes = o->limit_bytes == 0 ? TN_NONE : o->limit_bytes,
		.init = o->init,
		.fini = o->fini,
		.ctx = o->ctx,
		.own_bytes = tn_round_up(RECORD_GAP + sizeof(shared_slab), TN_OS_PAGE)};
	draft.source = tn_chunks_from(o->source);
	if (!shared_lay_out(&draft, grid_chunk_bytes(o->chunk_bytes, o->limit_bytes)))
		return errno = EINVAL, NULL;
	shared_set_capacity(&draft, o->magazine_slots);
	tn_copy_name(draft.name, o->name, kind);
	draft.taken_bytes = draft.own_bytes;
	if (draft.own_bytes > draft.limit_bytes)
		return errno = ENOMEM, NULL;
	draft.own = tn_chunk_acquire(&draft.source, draft.own_bytes, TN_OS_PAGE);
	if (draft.own == NULL)
		return NULL;
	shared_slab *s = (shared_slab *)(void *)(draft.own + RECORD_GAP);
	*s = draft;
	s->cache.name = s->name;
	s->cache.owner_lock = &s->lock;
	tn_cache_make(&s->cache);
	s->hot.key = s->cache.key;
	return &s->hot;
}

bool tn_shared_slab_list(
	tn_shared_slab *hot, const tn_node_kind *kind, void *object, const char *name) {
	shared_slab *s = shared_enter(hot, "create");
	if (!tn_list_object(NULL, kind, object, name, &s->node))
		return false;
	tn_lock_take(&s->lock);
	shared_leave(s);
	return true;
}

void tn_shared_slab_unlist(tn_shared_slab *hot) {
	shared_slab *s = shared_enter(hot, "destroy");
	/* Threads that are ending may still give slots back, and publish that. */
	tn_lock_take(&s->lock);
	tn_node *node = s->node;
	s->node = NULL;
	tn_lock_give(&s->lock);
	tn_unlist_object(node);
}

void tn_shared_slab_destroy(tn_shared_slab *hot) {
	if (hot == NULL)
		return;
	shared_slab *s = shared_enter(hot, "destroy");
	tn_shared_slab_unlist(hot);
	tn_cache_unlink(&s->cache);
	tn_cache_end(&s->cache);
	while (s->chunks != NULL)
		shared_give_chunk(s, s->chunks);
	tn_chunk_source source = s->source;
	s->state = TN_DEAD;
	s->hot.key = DEAD_KEY;
	tn_chunk_release(&source, s->own, s->own_bytes, TN_OS_PAGE);
}

#endif

/* ---- in all modes ---- */

static const tn_node_kind shared_slab_kind = {
	.kind = TN_KIND_SHARED_SLAB,
	.figures = TN_FIGURES_ALL,
	.look = tn_shared_slab_look,
};

tn_shared_slab *tn_shared_slab_create(
	size_t size, size_t align, const tn_shared_slab_options *options) {
	static const tn_shared_slab_options defaults;
	const tn_shared_slab_options *o = options == NULL ? &defaults : options;
	tn_shared_slab *s = tn_shared_slab_make("shared slab", size, align, o);
	if (s == NULL || tn_shared_slab_list(s, &shared_slab_kind, s, o->name))
		return s;
	tn_shared_slab_destroy(s);
	return errno = ENOMEM, NULL;
}
