/* Creation and listing of a heap (listing.h), the same in every mode. Included behind make_heap,
 * publish_heap and the heap's struct with `node` and `expendable`. */
#ifndef TENURE_HEAP_LISTING_H
#define TENURE_HEAP_LISTING_H

#include <errno.h>

#include "../listing/owned.h"

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

tn_heap *tn_heap_make_below(tn_node *parent, const tn_heap_options *o) {
	tn_heap *h = make_heap(o);
	if (h == NULL)
		return NULL;
	if (tn_list_at(parent, &heap_kind, h, o->name, &h->node)) {
		publish_heap(h);
		return h;
	}
	tn_heap_destroy(h);
	return errno = ENOMEM, NULL;
}

tn_heap *tn_heap_create(const tn_heap_options *options) {
	static const tn_heap_options defaults;
	return tn_heap_make_below(NULL, options == NULL ? &defaults : options);
}

#endif
