/* The calls of a heap that are the same in every mode. heap.c and heap_debug.c include this file behind
 * their struct tn_heap and `empty_heap`, and define the functions that are declared here. */
#ifndef TENURE_HEAP_CALLS_H
#define TENURE_HEAP_CALLS_H

#include <errno.h>

#include "../base/modes.h"
#include "../base/probes.h"
#include "heap.h"

/* Completes a new heap with what its mode needs; false: ENOMEM. */
static bool heap_make(tn_heap *h, const tn_heap_options *o);
/* Gives everything back but the page of the heap itself. */
static void heap_end(tn_heap *h);
/* `site` counts as the one that freed the blocks. */
static void heap_reset(tn_heap *h, const void *site);
static size_t heap_trim(tn_heap *h);
/* The room of a live block; panics at any other pointer. */
static size_t heap_room_of(const tn_heap *h, const void *p, const char *operation);
/* The figures; the caller adds the name. */
static void heap_read(const tn_heap *h, tn_stats *stats);
static void heap_publish(const tn_heap *h);
static void heap_verify(const tn_heap *h);
/* Another thread asks for a trim. */
static void heap_ask(tn_keeper *k);

TN_INLINE void heap_enter(const tn_heap *h, const char *operation) {
	if (TN_MODE != TN_MODE_RELEASE && TN_UNLIKELY(h->state != TN_ALIVE))
		tn_panic("heap", NULL, "%s: %p is not a live heap", operation, (const void *)h);
	tn_enter(&((tn_heap *)(uintptr_t)h)->busy, "heap", h->name, operation);
}

TN_INLINE void heap_leave(const tn_heap *h) {
	tn_leave(&((tn_heap *)(uintptr_t)h)->busy);
}

/* Chunks within the limit. Debug gives these two calls to its slabs, as a tn_source. */
static void *heap_take_chunk(void *heap, size_t bytes, size_t align) {
	tn_heap *h = heap;
	if (h->limit_bytes - h->taken_bytes < bytes)
		return errno = ENOMEM, NULL;
	void *chunk = tn_chunk_acquire(&h->source, bytes, align);
	if (chunk != NULL)
		h->taken_bytes += bytes;
	return chunk;
}

static void heap_give_chunk(void *heap, void *chunk, size_t bytes) {
	tn_heap *h = heap;
	h->taken_bytes -= bytes;
	tn_chunk_release(&h->source, chunk, bytes, TN_OS_PAGE);
}

void tn_heap_reset(tn_heap *h) {
	heap_enter(h, "reset");
	heap_reset(h, TN_CALLER);
	h->resets++;
	TN_PROBE(reset, "heap", h->name);
	heap_publish(h);
	heap_leave(h);
}

size_t tn_heap_trim(tn_heap *h) {
	heap_enter(h, "trim");
	size_t bytes = heap_trim(h);
	heap_publish(h);
	heap_leave(h);
	return bytes;
}

size_t tn_heap_usable_size(const tn_heap *h, const void *p) {
	if (p == NULL)
		return 0;
	heap_enter(h, "usable_size");
	size_t room = heap_room_of(h, p, "usable_size");
	heap_leave(h);
	return room;
}

void tn_heap_stats(const tn_heap *h, tn_stats *stats) {
	heap_enter(h, "stats");
	heap_read(h, stats);
	memcpy(stats->name, h->name, sizeof stats->name);
	heap_leave(h);
}

bool tn_heap_verify(const tn_heap *h) {
	heap_enter(h, "verify");
	heap_verify(h);
	heap_leave(h);
	return true;
}

static inline bool heap_align_valid(size_t align) {
	return align == 0 || (tn_is_power_of_two(align) && align <= TN_ALIGN_MAX);
}

static void heap_end_owned(void *object) {
	tn_heap *h = object;
	h->expendable = true;
	tn_heap_destroy(h);
}

/* Calls write no position: readers see the figures that the heap published last. */
TN_OWNED_KIND(heap_kind, heap, TN_KIND_HEAP, TN_FIGURES_ALL, NULL, heap_end_owned);

tn_heap *tn_heap_make_below(tn_node *parent, const tn_chunk_source *source, const tn_heap_options *o) {
	if (!tn_chunk_source_valid(o->source))
		return errno = EINVAL, NULL;
	if (o->limit_bytes != 0 && o->limit_bytes < TN_OS_PAGE)
		return errno = ENOMEM, NULL;
	tn_heap *h = tn_chunk_acquire(source, TN_OS_PAGE, TN_OS_PAGE);
	if (h == NULL)
		return NULL;
	*h = empty_heap;
	h->zero = o->zero;
	h->expendable = o->expendable;
	h->limit_bytes = o->limit_bytes == 0 ? TN_NONE : o->limit_bytes;
	h->source = *source;
	tn_copy_name(h->name, o->name, "heap");
	if (!heap_make(h, o)) {
		tn_chunk_release(source, h, TN_OS_PAGE, TN_OS_PAGE);
		return errno = ENOMEM, NULL;
	}
	tn_list_add_keeper(&h->keeper, heap_ask);
	if (tn_list_object(parent, &heap_kind, h, o->name, &h->node)) {
		heap_publish(h);
		return h;
	}
	tn_heap_destroy(h);
	return errno = ENOMEM, NULL;
}

tn_heap *tn_heap_create(const tn_heap_options *options) {
	static const tn_heap_options defaults;
	const tn_heap_options *o = options == NULL ? &defaults : options;
	tn_chunk_source source = tn_chunks_from(o->source);
	return tn_heap_make_below(NULL, &source, o);
}

void tn_heap_destroy(tn_heap *h) {
	if (h == NULL)
		return;
	heap_enter(h, "destroy");
	tn_unlist_object(h->node);
	h->node = NULL;
	tn_list_remove_keeper(&h->keeper);
	heap_end(h);
	h->state = TN_DEAD;
	tn_chunk_release(&h->source, h, TN_OS_PAGE, TN_OS_PAGE);
}

#endif
