/* The heap in debug: a slab for each class of sizes, which has all that debug adds (sites, fences,
 * quarantine, slots that fault when they are used after they were freed), and large blocks in chunks of
 * their own, which the page layer protects when they go back.
 *
 *   | block, as long as asked for | fence, to the end | its size | of a slot; large: record apart
 *
 * What is behind the size asked for is fenced, also where the slot is longer. */
#include <tenure/heap.h>

#include "../base/panic.h"

#if TN_MODE == TN_MODE_DEBUG

#include <errno.h>

#include "../base/checkers.h"
#include "../base/modes.h"
#include "../base/probes.h"
#include "../listing/listing.h"
#include "../slab/grid.h"
#include "../slab/slab.h"
#include "classes.h"

enum {
	SIZE_AND_FENCE = TN_FENCE_BYTES + sizeof(size_t),
	DEBUG_SMALL_BYTES = HEAP_SMALL_BYTES - SIZE_AND_FENCE,
	DEAD_MAX = 256, /* large blocks whose free is remembered */
};

/* A block with a chunk of its own. */
typedef struct large_block {
	struct large_block *next; /* older */
	char *p;
	size_t size;
	size_t chunk_bytes;
	const void *alloc_site;
	const void *free_site; /* NULL while it lives */
} large_block;

struct tn_heap {
	uintptr_t busy;
	uint32_t state;
	bool zero;
	bool expendable;
	tn_slab *slabs[HEAP_CLASS_COUNT]; /* made when they are first needed */
	tn_slab *records;                 /* of large blocks */
	large_block *large;
	large_block *dead;
	size_t dead_count;
	size_t chunk_bytes; /* of the slabs, as far as their slots fit */
	size_t counted_bytes;
	size_t large_bytes; /* chunks */
	size_t limit_bytes;
	size_t live_bytes, live_count;
	size_t asked_bytes; /* of live blocks */
	size_t peak;
	uint64_t resets;
	tn_chunk_source source;
	tn_chunk_source counted; /* the same, less what the limit refuses */
	tn_node *node;
	char name[TN_NAME_BYTES + 1];
};

static tn_heap *heap_enter(const tn_heap *h, const char *operation) {
	tn_heap *mutable = (tn_heap *)(uintptr_t)h;
	if (h->state != TN_ALIVE)
		tn_panic("heap", NULL, "%s: %p is not a live heap", operation, (const void *)h);
	tn_enter(&mutable->busy, "heap", h->name, operation);
	return mutable;
}

static void heap_leave(const tn_heap *h) {
	tn_leave(&((tn_heap *)(uintptr_t)h)->busy);
}

/* ---- memory ---- */

static void *counted_acquire(void *ctx, size_t size, size_t align) {
	tn_heap *h = ctx;
	if (h->limit_bytes - h->counted_bytes < size)
		return errno = ENOMEM, NULL;
	void *p = tn_chunk_acquire(&h->source, size, align);
	h->counted_bytes += p == NULL ? 0 : size;
	return p;
}

static void counted_release(void *ctx, void *p, size_t size) {
	tn_heap *h = ctx;
	h->counted_bytes -= size;
	tn_chunk_release(&h->source, p, size, TN_OS_PAGE);
}

/* Slabs protect the pages of their slots only where they take chunks from the page layer themselves. */
static tn_slab *make_inner_slab(tn_heap *h, size_t size, bool records) {
	bool direct = !records && h->limit_bytes == TN_NONE && tn_is_paged(&h->source);
	return tn_slab_make("heap", direct ? &h->source : &h->counted, size, 0,
		&(tn_slab_options){
			.name = h->name, .chunk_bytes = h->chunk_bytes, .expendable = records || h->expendable});
}

static size_t trim_slabs(tn_heap *h) {
	size_t bytes = 0;
	for (large_block *b = h->dead, *next; b != NULL; b = next) {
		next = b->next;
		tn_slab_free_for(h->records, b, NULL);
	}
	h->dead = NULL;
	h->dead_count = 0;
	for (unsigned i = 0; i < HEAP_CLASS_COUNT; i++)
		bytes += h->slabs[i] == NULL ? 0 : tn_slab_trim(h->slabs[i]);
	return bytes + (h->records == NULL ? 0 : tn_slab_trim(h->records));
}

/* The slab with the slot that p points into, or NULL. */
static tn_slab *slab_of(const tn_heap *h, const void *p) {
	for (unsigned i = 0; i < HEAP_CLASS_COUNT; i++)
		if (h->slabs[i] != NULL && tn_slab_owns(h->slabs[i], p))
			return h->slabs[i];
	return NULL;
}

/* ---- sizes and fences ---- */

static void set_size(const tn_slab *s, char *p, size_t size) {
	char *end = p + tn_slab_slot_size(s) - sizeof size;
	memset(p + size, TN_FILL_FENCE, (size_t)(end - p) - size);
	memcpy(end, &size, sizeof size);
}

static _Noreturn void panic_past_the_end(
	const tn_heap *h, const void *p, const char *operation, const void *site, size_t at, size_t size) {
	tn_panic("heap", h->name, "%s: %p was written past its end, at byte %zu of %zu, allocated at %s",
		operation, p, at, size, tn_site(site).text);
}

/* The size of a live block, whose fence is checked. */
static size_t check_small(const tn_heap *h, const tn_slab *s, const char *p, const char *operation) {
	const void *site = tn_slab_site(s, p, operation);
	const size_t room = tn_slab_slot_size(s) - sizeof(size_t);
	size_t size;
	memcpy(&size, p + room, sizeof size);
	if (size > room - TN_FENCE_BYTES)
		tn_panic("heap", h->name, "%s: %p was written past its end, allocated at %s", operation,
			(const void *)p, tn_site(site).text);
	size_t changed = tn_first_change(p + size, room - size, TN_FILL_FENCE);
	if (changed < room - size)
		panic_past_the_end(h, p, operation, site, size + changed, size);
	return size;
}

static void check_large(const tn_heap *h, const large_block *b, const char *operation) {
	size_t fence = b->chunk_bytes - b->size;
	size_t changed = tn_first_change(b->p + b->size, fence, TN_FILL_FENCE);
	if (changed < fence)
		panic_past_the_end(h, b->p, operation, b->alloc_site, b->size + changed, b->size);
}

/* ---- large blocks ---- */

static large_block *find_large(const tn_heap *h, const void *p) {
	for (large_block *b = h->large; b != NULL; b = b->next)
		if ((uintptr_t)p - (uintptr_t)b->p < b->chunk_bytes)
			return b;
	return NULL;
}

static void *take_large_block(tn_heap *h, size_t size, size_t align, const void *site) {
	size_t whole = size < align ? align : size;
	/* A chunk holds a fence, too. */
	whole = tn_round_up(whole + 1, TN_OS_PAGE);
	if (tn_is_paged(&h->source))
		whole = tn_pages_reserved(whole, TN_OS_PAGE);
	if (h->records == NULL && (h->records = make_inner_slab(h, sizeof(large_block), true)) == NULL)
		return errno = ENOMEM, NULL;
	large_block *b = tn_slab_alloc_for(h->records, site);
	if (b == NULL)
		return NULL;
	char *p = counted_acquire(h, whole, align < TN_OS_PAGE ? TN_OS_PAGE : align);
	if (p == NULL) {
		tn_slab_free_for(h->records, b, site);
		return errno = ENOMEM, NULL;
	}
	*b =
		(large_block){.next = h->large, .p = p, .size = size, .chunk_bytes = whole, .alloc_site = site};
	h->large = b;
	h->large_bytes += whole;
	memset(p, TN_FILL_FRESH, size);
	memset(p + size, TN_FILL_FENCE, whole - size);
	tn_hand_out(p, size);
	return p;
}

/* Keeps the records of the youngest dead ones, to name their sites. */
static void bury_large(tn_heap *h, large_block *b) {
	b->next = h->dead;
	h->dead = b;
	if (++h->dead_count <= DEAD_MAX)
		return;
	large_block **oldest = &h->dead;
	while ((*oldest)->next != NULL)
		oldest = &(*oldest)->next;
	tn_slab_free_for(h->records, *oldest, NULL);
	*oldest = NULL;
	h->dead_count--;
}

static void end_large_block(tn_heap *h, large_block *b, const void *site) {
	large_block **at = &h->large;
	while (*at != b)
		at = &(*at)->next;
	*at = b->next;
	b->free_site = site;
	h->large_bytes -= b->chunk_bytes;
	h->live_bytes -= b->chunk_bytes;
	h->live_count--;
	h->asked_bytes -= b->size;
	tn_permit(b->p, b->chunk_bytes);
	tn_wipe(b->p, b->chunk_bytes);
	counted_release(h, b->p, b->chunk_bytes);
	bury_large(h, b);
}

/* ---- blocks ---- */

/* Refuses what is no live block. */
static _Noreturn void panic_not_a_block(const tn_heap *h, const void *p, const char *operation) {
	const large_block *b = find_large(h, p);
	if (b != NULL)
		tn_panic("heap", h->name, "%s: %p is %zu bytes inside the block at %p, allocated at %s",
			operation, p, (size_t)((const char *)p - b->p), (void *)b->p, tn_site(b->alloc_site).text);
	for (b = h->dead; b != NULL; b = b->next)
		if (b->p == p)
			tn_panic("heap", h->name, "%s: %p is free already, allocated at %s, freed at %s", operation,
				p, tn_site(b->alloc_site).text, tn_site(b->free_site).text);
	tn_panic("heap", h->name, "%s: %p is not a block of this heap", operation, p);
}

/* A live block: in a slab, or large. */
typedef struct found {
	tn_slab *slab;
	large_block *large;
	size_t size;
} found;

static found find_block(tn_heap *h, const void *p, const char *operation) {
	found f = {.slab = slab_of(h, p)};
	if (f.slab == NULL) {
		f.large = find_large(h, p);
		if (f.large == NULL || f.large->p != p)
			panic_not_a_block(h, p, operation);
		check_large(h, f.large, operation);
		f.size = f.large->size;
		return f;
	}
	f.size = check_small(h, f.slab, p, operation);
	return f;
}

static void *take_small(tn_heap *h, size_t size, const void *site) {
	unsigned class = heap_class_of(size + SIZE_AND_FENCE);
	tn_slab *s = h->slabs[class];
	if (s == NULL)
		s = h->slabs[class] = make_inner_slab(h, heap_class_bytes(class), false);
	void *p = s == NULL ? NULL : tn_slab_alloc_for(s, site);
	if (p != NULL)
		set_size(s, p, size);
	return p;
}

static void *take_any(tn_heap *h, size_t size, size_t align, const void *site) {
	bool small = size <= DEBUG_SMALL_BYTES && align <= HEAP_GRAIN;
	void *p = small ? take_small(h, size, site) : take_large_block(h, size, align, site);
	return p;
}

static void *alloc_block(tn_heap *h, size_t size, size_t align, const void *site) {
	if (size > PTRDIFF_MAX / 2)
		return errno = ENOMEM, NULL;
	void *p = take_any(h, size, align, site);
	/* What waits in quarantine yields before a call has to fail. */
	if (p == NULL && trim_slabs(h) > 0)
		p = take_any(h, size, align, site);
	if (p == NULL)
		return errno = ENOMEM, NULL;
	const tn_slab *s = slab_of(h, p);
	h->live_bytes += s == NULL ? h->large->chunk_bytes : tn_slab_slot_size(s);
	h->live_count++;
	h->asked_bytes += size;
	if (h->live_bytes > h->peak)
		h->peak = h->live_bytes;
	return h->zero ? memset(p, 0, size) : p;
}

static void free_block(tn_heap *h, found f, void *p, const void *site) {
	if (f.large != NULL) {
		end_large_block(h, f.large, site);
		return;
	}
	h->live_bytes -= tn_slab_slot_size(f.slab);
	h->live_count--;
	h->asked_bytes -= f.size;
	tn_slab_free_for(f.slab, p, site);
}

static void publish_heap(const tn_heap *h);

static void *alloc_for_site(
	tn_heap *h, size_t size, size_t align, const char *operation, const void *site) {
	if (!heap_align_valid(align))
		return errno = EINVAL, NULL;
	heap_enter(h, operation);
	void *p = alloc_block(h, size, align, site);
	publish_heap(h);
	heap_leave(h);
	return p;
}

void *tn_heap_alloc(tn_heap *h, size_t size, size_t align) {
	return alloc_for_site(h, size, align, "alloc", TN_CALLER);
}

void tn_heap_free(tn_heap *h, void *p) {
	if (p == NULL)
		return;
	heap_enter(h, "free");
	free_block(h, find_block(h, p, "free"), p, TN_CALLER);
	publish_heap(h);
	heap_leave(h);
}

void tn_heap_free_sized(tn_heap *h, void *p, size_t size) {
	if (p == NULL)
		return;
	heap_enter(h, "free_sized");
	found f = find_block(h, p, "free_sized");
	if (f.size != size)
		tn_panic("heap", h->name, "free_sized: %p has %zu bytes, not %zu", p, f.size, size);
	free_block(h, f, p, TN_CALLER);
	publish_heap(h);
	heap_leave(h);
}

/* Always elsewhere, so that whoever still has the old address is found out. */
void *tn_heap_realloc(tn_heap *h, void *p, size_t new_size) {
	if (p == NULL)
		return alloc_for_site(h, new_size, 0, "realloc", TN_CALLER);
	heap_enter(h, "realloc");
	found f = find_block(h, p, "realloc");
	void *q = alloc_block(h, new_size, 0, TN_CALLER);
	if (q != NULL) {
		memcpy(q, p, f.size < new_size ? f.size : new_size);
		free_block(h, f, p, TN_CALLER);
	}
	publish_heap(h);
	heap_leave(h);
	return q;
}

size_t tn_heap_usable_size(const tn_heap *h, const void *p) {
	if (p == NULL)
		return 0;
	size_t size = find_block(heap_enter(h, "usable_size"), p, "usable_size").size;
	heap_leave(h);
	return size;
}

/* ---- all blocks ---- */

typedef struct visitor {
	const tn_heap *heap;
	const tn_slab *slab;
	const char *operation;
	void (*visit)(void *p, size_t size, void *ctx);
	void *ctx;
} visitor;

static void visit_small(void *p, void *ctx) {
	const visitor *v = ctx;
	size_t size = check_small(v->heap, v->slab, p, v->operation);
	if (v->visit != NULL)
		v->visit(p, size, v->ctx);
}

/* Checks every block's fence, and calls v->visit if there is one. */
static void visit_all(const tn_heap *h, visitor v) {
	v.heap = h;
	for (unsigned i = 0; i < HEAP_CLASS_COUNT; i++) {
		if (h->slabs[i] == NULL)
			continue;
		v.slab = h->slabs[i];
		tn_slab_each(h->slabs[i], visit_small, &v);
	}
	for (large_block *b = h->large; b != NULL; b = b->next) {
		check_large(h, b, v.operation);
		if (v.visit != NULL)
			v.visit(b->p, b->size, v.ctx);
	}
}

void tn_heap_each(tn_heap *h, void (*visit)(void *p, size_t size, void *ctx), void *ctx) {
	heap_enter(h, "each");
	visit_all(h, (visitor){.operation = "each", .visit = visit, .ctx = ctx});
	heap_leave(h);
}

void tn_heap_reset(tn_heap *h) {
	heap_enter(h, "reset");
	visit_all(h, (visitor){.operation = "reset"});
	while (h->large != NULL)
		end_large_block(h, h->large, TN_CALLER);
	for (unsigned i = 0; i < HEAP_CLASS_COUNT; i++)
		if (h->slabs[i] != NULL)
			tn_slab_reset(h->slabs[i]);
	h->live_bytes = h->live_count = h->asked_bytes = 0;
	h->resets++;
	TN_PROBE(reset, "heap", h->name);
	publish_heap(h);
	heap_leave(h);
}

size_t tn_heap_trim(tn_heap *h) {
	heap_enter(h, "trim");
	size_t bytes = trim_slabs(h);
	publish_heap(h);
	heap_leave(h);
	return bytes;
}

/* ---- looking ---- */

bool tn_heap_owns(const tn_heap *h, const void *p) {
	return slab_of(h, p) != NULL || find_large(h, p) != NULL;
}

static void add_slab(tn_stats *to, const tn_slab *s, bool of_blocks) {
	tn_stats one;
	if (s == NULL)
		return;
	tn_slab_stats(s, &one);
	to->committed_bytes += one.committed_bytes;
	to->chunk_count += of_blocks ? one.chunk_count : 0;
	to->refills += one.refills;
	to->cached_bytes += one.cached_bytes;
}

static void read_heap(const tn_heap *h, tn_stats *stats) {
	*stats = (tn_stats){.live_bytes = h->live_bytes,
		.live_count = h->live_count,
		.committed_bytes = TN_OS_PAGE + h->large_bytes,
		.peak_bytes = h->peak,
		.resets = h->resets,
		.waste_bytes = h->live_bytes - h->asked_bytes};
	memcpy(stats->name, h->name, sizeof stats->name);
	for (const large_block *b = h->large; b != NULL; b = b->next)
		stats->chunk_count++;
	for (unsigned i = 0; i < HEAP_CLASS_COUNT; i++)
		add_slab(stats, h->slabs[i], true);
	add_slab(stats, h->records, false);
	stats->reserved_bytes = stats->committed_bytes;
}

/* Debug tells readers after every call. */
static void publish_heap(const tn_heap *h) {
	tn_stats stats;
	if (h->node == NULL)
		return;
	if (tn_list_take_wanted(h->node, TN_WANT_TRIM))
		trim_slabs((tn_heap *)(uintptr_t)h);
	read_heap(h, &stats);
	tn_list_publish(h->node, &stats, TN_FIGURES_ALL, (tn_position){0, 0});
}

void tn_heap_stats(const tn_heap *h, tn_stats *stats) {
	heap_enter(h, "stats");
	read_heap(h, stats);
	heap_leave(h);
}

bool tn_heap_verify(const tn_heap *h) {
	heap_enter(h, "verify");
	visit_all(h, (visitor){.operation = "verify"});
	for (unsigned i = 0; i < HEAP_CLASS_COUNT; i++)
		if (h->slabs[i] != NULL)
			tn_slab_verify(h->slabs[i]);
	heap_leave(h);
	return true;
}

/* ---- create and destroy ---- */

static tn_heap *make_heap(const tn_chunk_source *source, const tn_heap_options *o) {
	if (!tn_source_valid(o->source))
		return errno = EINVAL, NULL;
	if (o->limit_bytes != 0 && o->limit_bytes < TN_OS_PAGE)
		return errno = ENOMEM, NULL;
	tn_heap *h = tn_chunk_acquire(source, TN_OS_PAGE, TN_OS_PAGE);
	if (h == NULL)
		return NULL;
	*h = (tn_heap){.state = TN_ALIVE,
		.zero = o->zero,
		.expendable = o->expendable,
		.chunk_bytes = grid_chunk_bytes(0, o->limit_bytes),
		.limit_bytes = o->limit_bytes == 0 ? TN_NONE : o->limit_bytes,
		.counted_bytes = TN_OS_PAGE,
		.source = *source,
		.counted.from = {counted_acquire, counted_release, h}};
	tn_copy_name(h->name, o->name, "heap");
	return h;
}

#include "listed_heap.h"

/* One line for every site that allocated large blocks which are live now. */
static void report_large(tn_heap *h) {
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

void tn_heap_destroy(tn_heap *h) {
	if (h == NULL)
		return;
	heap_enter(h, "destroy");
	tn_unlist_object(h->node);
	h->node = NULL;
	visit_all(h, (visitor){.operation = "destroy"});
	report_large(h);
	while (h->large != NULL)
		end_large_block(h, h->large, TN_CALLER);
	for (unsigned i = 0; i < HEAP_CLASS_COUNT; i++) {
		if (h->slabs[i] != NULL)
			tn_slab_set_expendable(h->slabs[i], h->expendable);
		tn_slab_destroy(h->slabs[i]);
	}
	tn_slab_destroy(h->records);
	h->state = TN_DEAD;
	tn_chunk_release(&h->source, h, TN_OS_PAGE, TN_OS_PAGE);
}

#endif
