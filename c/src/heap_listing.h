/* A heap in the list of allocators (listing.h), the same in every mode. To be included where the heap's
 * struct is known, which has `node` and `expendable`. */
#ifndef TENURE_HEAP_LISTING_H
#define TENURE_HEAP_LISTING_H

#include <errno.h>

#include "owned.h"

/* A heap writes no position with every call: readers see what it published last. */
static inline void look_at_heap(const void *object, tn_position from, tn_listed *listed) {
	(void)object;
	(void)from;
	(void)listed;
}

static inline void end_listed_heap(void *object) {
	tn_heap *h = object;
	h->expendable = true;
	tn_heap_destroy(h);
}

static inline size_t trim_listed_heap(void *h) {
	return tn_heap_trim(h);
}

static inline void read_listed_heap(const void *h, tn_stats *stats) {
	tn_heap_stats(h, stats);
}

static inline bool verify_listed_heap(const void *h) {
	return tn_heap_verify(h);
}

static const tn_node_kind heap_kind = {
	.kind = TN_KIND_HEAP,
	.figures = TN_FIGURES_ALL,
	.look = look_at_heap,
	.end = end_listed_heap,
	.trim = trim_listed_heap,
	.stats = read_listed_heap,
	.verify = verify_listed_heap,
};

/* Lists a heap that was just made; ends it when that fails. */
static inline tn_heap *list_heap(tn_node *parent, tn_heap *h, const tn_heap_options *o) {
	if (h == NULL || tn_list_at(parent, &heap_kind, h, o->name, &h->node))
		return h;
	tn_heap_destroy(h);
	return errno = ENOMEM, NULL;
}

#endif
