/* What a scope asks of the allocators that it owns, beside their API: each is made below the scope's node,
 * and from then on known by its own. */
#ifndef TENURE_OWNED_H
#define TENURE_OWNED_H

#include <tenure/arena.h>
#include <tenure/heap.h>
#include <tenure/slab.h>

#include "listing.h"

/* As create; with `parent` NULL they are listed as roots if they have a name. */
tn_arena *tn_arena_make_below(tn_node *parent, const tn_arena_options *o);
tn_slab *tn_slab_make_below(tn_node *parent, size_t size, size_t align, const tn_slab_options *o);
tn_heap *tn_heap_make_below(tn_node *parent, const tn_heap_options *o);

#endif
