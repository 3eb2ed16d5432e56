/* Creation and listing of a heap (listing.h), the same in every mode. Included behind make_heap,
 * publish_heap and the heap's struct with `node` and `expendable`. */
#ifndef TENURE_HEAP_LISTING_H
#define TENURE_HEAP_LISTING_H

#include <errno.h>

#include "heap.h"

static void heap_end_owned(void *object) {
	tn_heap *h = object;
	h->expendable = true;
	tn_heap_destroy(h);
}

/* A heap writes no position with every call: readers see the figures that it published last. */
TN_OWNED_KIND(heap_kind, heap, TN_KIND_HEAP, TN_FIGURES_ALL, NULL, heap_end_owned);

tn_heap *tn_heap_make_below(tn_node *parent, const tn_chunk_source *source, const tn_heap_options *o) {
	tn_heap *h = make_heap(source, o);
	if (h == NULL)
		return NULL;
	if (tn_list_object(parent, &heap_kind, h, o->name, &h->node)) {
		publish_heap(h);
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

#endif
