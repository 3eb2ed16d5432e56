/* The heap in debug. Each size class is a slab, which has all that debug adds: sites, quarantine, slots
 * that fault when they are used after they were freed. Large blocks have chunks of their own, which the
 * page layer protects when they go back.
 *
 *   | block: the size asked for | fence | the size asked for |    of a slot
 *   | block: the size asked for | fence |                         of a chunk, with a record apart
 *
 * The fence begins right behind the size asked for, also where the slot is longer. A call checks the
 * fence of each block that it is given; reset, each, verify and destroy check all fences. */
#include <tenure/heap.h>

#include "../base/panic.h"

#if TN_MODE == TN_MODE_DEBUG

#include "../base/checkers.h"
#include "../base/list.h"
#include "../base/modes.h"
#include "../listing/listing.h"
#include "../slab/grid.h"
#include "../slab/slab.h"
#include "classes.h"

enum {
	SIZE_AND_FENCE = TN_FENCE_BYTES + sizeof(size_t),
	DEBUG_SMALL_BYTES = HEAP_SMALL_BYTES - SIZE_AND_FENCE,
	DEAD_MAX = 256,             /* large blocks whose free is remembered */
	RECORDS = HEAP_CLASS_COUNT, /* the slab of the records of large blocks */
	SLAB_COUNT,
};

/* A block with a chunk of its own. */
typedef struct large_block {
	struct large_block *next, **link;
	char *p;
	size_t size;
	size_t chunk_bytes;
	const void *alloc_site;
	const void *free_site; /* of a dead block */
} large_block;

struct tn_heap {
	uintptr_t busy;
	uint32_t state;
	bool zero;
	bool expendable;
	tn_slab *slabs[SLAB_COUNT]; /* made when they are first needed */
	large_block *large;
	large_block *dead; /* youngest first */
	size_t dead_count;
	size_t chunk_bytes; /* of the slabs, where their slots fit */
	size_t taken_bytes; /* from `source` by way of heap_take_chunk */
	size_t limit_bytes;
	size_t live_bytes, live_count;
	size_t asked_bytes; /* of live blocks */
	size_t peak;
	uint64_t resets;
	tn_chunk_source source;
	tn_chunk_source limited; /* the same within the limit */
	tn_node *node;
	TN_ATOMIC(uint32_t) asked; /* to trim */
	tn_keeper keeper;
	char name[TN_NAME_BYTES + 1];
};

static const tn_heap empty_heap = {.state = TN_ALIVE, .taken_bytes = TN_OS_PAGE};

#include "calls.h"

/* Takes a slot of a class, or a record; makes the slab if it is the first one. */
static void *heap_take_slot(tn_heap *h, unsigned class, const void *site) {
	tn_slab **s = &h->slabs[class];
	bool records = class == RECORDS;
	/* Slabs protect the pages of their slots only in chunks that they take from the page layer. */
	bool direct = !records && h->limit_bytes == TN_NONE && tn_chunk_is_paged(&h->source);
	if (*s == NULL)
		*s = tn_slab_make("heap", direct ? &h->source : &h->limited,
			records ? sizeof(large_block) : heap_class_bytes(class), 0,
			&(tn_slab_options){.name = h->name, .chunk_bytes = h->chunk_bytes});
	if (*s != NULL && !records)
		tn_slab_set_sized(*s);
	return *s == NULL ? NULL : tn_slab_alloc_for(*s, site);
}

/* The slab with the slot that p points into, or NULL. */
static tn_slab *heap_find_slab(const tn_heap *h, const void *p) {
	for (unsigned i = 0; i < HEAP_CLASS_COUNT; i++)
		if (h->slabs[i] != NULL && tn_slab_owns(h->slabs[i], p))
			return h->slabs[i];
	return NULL;
}

/* The large block that p points into, or NULL. */
static large_block *heap_find_large(const tn_heap *h, const void *p) {
	large_block *b = h->large;
	while (b != NULL && (uintptr_t)p - (uintptr_t)b->p >= b->chunk_bytes)
		b = b->next;
	return b;
}

static _Noreturn void heap_refuse(const tn_heap *h, const void *p, const char *operation) {
	const large_block *b = heap_find_large(h, p);
	if (b != NULL)
		tn_panic("heap", h->name, "%s: %p is %zu bytes inside the block at %p, allocated at %s",
			operation, p, (size_t)((const char *)p - b->p), (void *)b->p, tn_site(b->alloc_site).text);
	for (b = h->dead; b != NULL; b = b->next)
		if (b->p == p)
			tn_panic("heap", h->name, "%s: %p is free already, allocated at %s, freed at %s", operation,
				p, tn_site(b->alloc_site).text, tn_site(b->free_site).text);
	tn_panic("heap", h->name, "%s: %p is not a block of this heap", operation, p);
}

/* ---- fences ---- */

static void heap_check_fence(
	const tn_heap *h, const char *p, size_t size, size_t end, const char *operation, const void *site) {
	size_t changed = size + tn_first_change(p + size, end - size, TN_FILL_FENCE);
	if (changed < end)
		tn_panic("heap", h->name,
			"%s: %p was written past its end, at byte %zu of %zu, allocated at %s", operation,
			(const void *)p, changed, size, tn_site(site).text);
}

/* Checks a live block, and returns its size. */
static size_t heap_check_small(
	const tn_heap *h, const tn_slab *s, const char *p, const char *operation) {
	const void *site = tn_slab_site(s, p, operation);
	const size_t end = tn_slab_slot_size(s) - sizeof(size_t);
	size_t size;
	memcpy(&size, p + end, sizeof size);
	if (size > end - TN_FENCE_BYTES)
		tn_panic("heap", h->name, "%s: %p was written past its end, allocated at %s", operation,
			(const void *)p, tn_site(site).text);
	heap_check_fence(h, p, size, end, operation, site);
	return size;
}

static void heap_check_large(const tn_heap *h, const large_block *b, const char *operation) {
	heap_check_fence(h, b->p, b->size, b->chunk_bytes, operation, b->alloc_site);
}

typedef struct visitor {
	const tn_heap *heap;
	const tn_slab *slab;
	const char *operation;
	void (*visit)(void *p, size_t size, void *ctx);
	void *ctx;
} visitor;

static void heap_check_slot(void *p, void *ctx) {
	const visitor *v = ctx;
	size_t size = heap_check_small(v->heap, v->slab, p, v->operation);
	if (v->visit != NULL)
		v->visit(p, size, v->ctx);
}

/* Checks every block, and calls `visit` if there is one. */
static void heap_check_all(const tn_heap *h, const char *operation,
	void (*visit)(void *p, size_t size, void *ctx), void *ctx) {
	for (unsigned i = 0; i < HEAP_CLASS_COUNT; i++) {
		visitor v = {h, h->slabs[i], operation, visit, ctx};
		if (h->slabs[i] != NULL)
			tn_slab_each(h->slabs[i], heap_check_slot, &v);
	}
	for (large_block *b = h->large; b != NULL; b = b->next) {
		heap_check_large(h, b, operation);
		if (visit != NULL)
			visit(b->p, b->size, ctx);
	}
}

/* ---- figures ---- */

static void heap_read(const tn_heap *h, tn_stats *stats) {
	*stats = (tn_stats){.live_bytes = h->live_bytes,
		.live_count = h->live_count,
		.committed_bytes = TN_OS_PAGE,
		.peak_bytes = h->peak,
		.resets = h->resets,
		.waste_bytes = h->live_bytes - h->asked_bytes};
	for (const large_block *b = h->large; b != NULL; b = b->next) {
		stats->committed_bytes += b->chunk_bytes;
		stats->chunk_count++;
	}
	for (unsigned i = 0; i < SLAB_COUNT; i++) {
		tn_stats slab;
		if (h->slabs[i] == NULL)
			continue;
		tn_slab_stats(h->slabs[i], &slab);
		stats->committed_bytes += slab.committed_bytes;
		stats->chunk_count += i == RECORDS ? 0 : slab.chunk_count;
		stats->refills += slab.refills;
		stats->cached_bytes += slab.cached_bytes;
	}
	stats->reserved_bytes = stats->committed_bytes;
}

static void heap_ask(tn_keeper *k) {
	tn_set(&((tn_heap *)(void *)((char *)k - offsetof(tn_heap, keeper)))->asked, 1, TN_RELAXED);
}

/* Debug publishes with every call, and does the trim that another thread asked for. */
static void heap_publish(const tn_heap *h) {
	tn_stats stats;
	if (TN_UNLIKELY(tn_get(&h->asked, TN_RELAXED) != 0)) {
		tn_set(&((tn_heap *)(uintptr_t)h)->asked, 0, TN_RELAXED);
		heap_trim((tn_heap *)(uintptr_t)h);
	}
	if (h->node == NULL)
		return;
	heap_read(h, &stats);
	tn_list_publish(h->node, &stats, TN_FIGURES_ALL, (tn_position){0, 0});
}

/* ---- alloc and free ---- */

static char *heap_take_small(tn_heap *h, size_t size, const void *site, size_t *room) {
	unsigned class = heap_class_of(size + SIZE_AND_FENCE);
	char *p = heap_take_slot(h, class, site);
	if (p == NULL)
		return NULL;
	*room = tn_slab_slot_size(h->slabs[class]);
	size_t end = *room - sizeof size;
	memset(p + size, TN_FILL_FENCE, end - size);
	memcpy(p + end, &size, sizeof size);
	return p;
}

static char *heap_take_large(tn_heap *h, size_t size, size_t align, const void *site, size_t *room) {
	/* The fence has at least one byte. */
	size_t bytes = tn_round_up(tn_max(size, align) + 1, TN_OS_PAGE);
	if (tn_chunk_is_paged(&h->source))
		bytes = tn_pages_reserved(bytes, TN_OS_PAGE);
	large_block *b = heap_take_slot(h, RECORDS, site);
	if (b == NULL)
		return NULL;
	char *p = heap_take_chunk(h, bytes, tn_max(align, TN_OS_PAGE));
	if (p == NULL) {
		tn_slab_free_for(h->slabs[RECORDS], b, site);
		return NULL;
	}
	*b = (large_block){.p = p, .size = size, .chunk_bytes = bytes, .alloc_site = site};
	TN_LIST_PUSH(&h->large, b, next, link);
	tn_fill_fresh(p, size);
	memset(p + size, TN_FILL_FENCE, bytes - size);
	tn_hand_out(p, size);
	*room = bytes;
	return p;
}

static char *heap_take(tn_heap *h, size_t size, size_t align, const void *site, size_t *room) {
	bool small = size <= DEBUG_SMALL_BYTES && align <= HEAP_GRAIN;
	return small ? heap_take_small(h, size, site, room) : heap_take_large(h, size, align, site, room);
}

static void *heap_take_block(tn_heap *h, size_t size, size_t align, const void *site) {
	size_t room;
	if (size > PTRDIFF_MAX / 2)
		return errno = ENOMEM, NULL;
	char *p = heap_take(h, size, align, site, &room);
	/* Memory in quarantine is given back before a call fails. */
	if (p == NULL && heap_trim(h) > 0)
		p = heap_take(h, size, align, site, &room);
	if (p == NULL)
		return errno = ENOMEM, NULL;
	h->live_bytes += room;
	h->live_count++;
	h->asked_bytes += size;
	h->peak = tn_max(h->peak, h->live_bytes);
	if (!h->zero)
		return p;
	bool alone = tn_chunk_is_alone(&h->source, room);
	return memset(p, 0, alone ? tn_min(size, TN_FILL_BYTES_MAX) : size);
}

/* Keeps the records of the youngest dead blocks, for the sites in a panic. */
static void heap_keep_dead(tn_heap *h, large_block *b) {
	TN_LIST_PUSH(&h->dead, b, next, link);
	if (++h->dead_count <= DEAD_MAX)
		return;
	while (b->next != NULL)
		b = b->next;
	TN_LIST_UNLINK(b, next, link);
	tn_slab_free_for(h->slabs[RECORDS], b, NULL);
	h->dead_count--;
}

static void heap_give_large(tn_heap *h, large_block *b, const void *site) {
	TN_LIST_UNLINK(b, next, link);
	b->free_site = site;
	tn_permit(b->p, b->chunk_bytes);
	if (!tn_chunk_is_alone(&h->source, b->chunk_bytes))
		tn_wipe(b->p, b->chunk_bytes);
	heap_give_chunk(h, b->p, b->chunk_bytes);
	heap_keep_dead(h, b);
}

/* A live block: in a slab, or large. */
typedef struct found {
	tn_slab *slab;
	large_block *large;
	size_t size;
} found;

static found heap_find_block(const tn_heap *h, const void *p, const char *operation) {
	tn_slab *s = heap_find_slab(h, p);
	if (s != NULL)
		return (found){.slab = s, .size = heap_check_small(h, s, p, operation)};
	large_block *b = heap_find_large(h, p);
	if (b == NULL || b->p != p)
		heap_refuse(h, p, operation);
	heap_check_large(h, b, operation);
	return (found){.large = b, .size = b->size};
}

static void heap_give_block(tn_heap *h, found f, void *p, const void *site) {
	h->live_bytes -= f.large != NULL ? f.large->chunk_bytes : tn_slab_slot_size(f.slab);
	h->live_count--;
	h->asked_bytes -= f.size;
	if (f.large != NULL)
		heap_give_large(h, f.large, site);
	else
		tn_slab_free_for(f.slab, p, site);
}

static void *heap_alloc_for(
	tn_heap *h, size_t size, size_t align, const char *operation, const void *site) {
	if (!heap_align_valid(align))
		return errno = EINVAL, NULL;
	heap_enter(h, operation);
	void *p = heap_take_block(h, size, align, site);
	heap_publish(h);
	heap_leave(h);
	return p;
}

void *tn_heap_alloc(tn_heap *h, size_t size, size_t align) {
	return heap_alloc_for(h, size, align, "alloc", TN_CALLER);
}

void tn_heap_free(tn_heap *h, void *p) {
	if (p == NULL)
		return;
	heap_enter(h, "free");
	heap_give_block(h, heap_find_block(h, p, "free"), p, TN_CALLER);
	heap_publish(h);
	heap_leave(h);
}

void tn_heap_free_sized(tn_heap *h, void *p, size_t size) {
	if (p == NULL)
		return;
	heap_enter(h, "free_sized");
	found f = heap_find_block(h, p, "free_sized");
	if (f.size != size)
		tn_panic("heap", h->name, "free_sized: %p has %zu bytes, not %zu", p, f.size, size);
	heap_give_block(h, f, p, TN_CALLER);
	heap_publish(h);
	heap_leave(h);
}

/* Always moves the block, so that a use of the old address is found. */
void *tn_heap_realloc(tn_heap *h, void *p, size_t new_size) {
	if (p == NULL)
		return heap_alloc_for(h, new_size, 0, "realloc", TN_CALLER);
	heap_enter(h, "realloc");
	found f = heap_find_block(h, p, "realloc");
	void *q = heap_take_block(h, new_size, 0, TN_CALLER);
	if (q != NULL) {
		memcpy(q, p, tn_min(f.size, new_size));
		heap_give_block(h, f, p, TN_CALLER);
	}
	heap_publish(h);
	heap_leave(h);
	return q;
}

/* ---- reset and trim ---- */

static void heap_reset(tn_heap *h, const void *site) {
	heap_check_all(h, "reset", NULL, NULL);
	while (h->large != NULL)
		heap_give_large(h, h->large, site);
	for (unsigned i = 0; i < HEAP_CLASS_COUNT; i++)
		if (h->slabs[i] != NULL)
			tn_slab_reset(h->slabs[i]);
	h->live_bytes = h->live_count = h->asked_bytes = 0;
}

static size_t heap_trim(tn_heap *h) {
	size_t bytes = 0;
	for (large_block *b = h->dead, *next; b != NULL; b = next) {
		next = b->next;
		tn_slab_free_for(h->slabs[RECORDS], b, NULL);
	}
	h->dead = NULL;
	h->dead_count = 0;
	for (unsigned i = 0; i < SLAB_COUNT; i++)
		bytes += h->slabs[i] == NULL ? 0 : tn_slab_trim(h->slabs[i]);
	return bytes;
}

/* ---- looking ---- */

bool tn_heap_owns(const tn_heap *h, const void *p) {
	return heap_find_slab(h, p) != NULL || heap_find_large(h, p) != NULL;
}

void tn_heap_each(tn_heap *h, void (*visit)(void *p, size_t size, void *ctx), void *ctx) {
	heap_enter(h, "each");
	heap_check_all(h, "each", visit, ctx);
	heap_leave(h);
}

static size_t heap_room_of(const tn_heap *h, const void *p, const char *operation) {
	return heap_find_block(h, p, operation).size;
}

static void heap_verify(const tn_heap *h) {
	heap_check_all(h, "verify", NULL, NULL);
	for (unsigned i = 0; i < HEAP_CLASS_COUNT; i++)
		if (h->slabs[i] != NULL)
			tn_slab_verify(h->slabs[i]);
}

/* ---- create and destroy ---- */

static bool heap_make(tn_heap *h, const tn_heap_options *o) {
	h->chunk_bytes = grid_chunk_bytes(0, 0, o->limit_bytes);
	h->limited.from = (tn_source){heap_take_chunk, heap_give_chunk, h};
	return true;
}

/* Prints a line for each site that allocated large blocks which are live. */
static void heap_print_large(const tn_heap *h) {
	for (large_block *b = h->large; b != NULL && !h->expendable; b = b->next) {
		size_t count = 0, bytes = 0;
		const void *site = b->alloc_site;
		for (large_block *same = b; same != NULL && site != NULL; same = same->next)
			if (same->alloc_site == site) {
				count++;
				bytes += same->size;
				same->alloc_site = NULL;
			}
		if (count > 0)
			tn_report("heap", h->name, "destroy: %zu live large blocks (%zu bytes) allocated at %s",
				count, bytes, tn_site(site).text);
	}
}

static void heap_end(tn_heap *h) {
	heap_check_all(h, "destroy", NULL, NULL);
	heap_print_large(h);
	while (h->large != NULL)
		heap_give_large(h, h->large, NULL);
	for (unsigned i = 0; i < SLAB_COUNT; i++) {
		if (h->slabs[i] != NULL)
			tn_slab_set_expendable(h->slabs[i], h->expendable || i == RECORDS);
		tn_slab_destroy(h->slabs[i]);
	}
}

#endif
