/* What a scope asks of the allocators that it owns, beside their API: each is made below the scope's
 * node, and from then on known by its own. */
#ifndef TENURE_OWNED_H
#define TENURE_OWNED_H

#include <tenure/arena.h>
#include <tenure/heap.h>
#include <tenure/slab.h>

#include "../base/modes.h"
#include "listing.h"

/* As create; with `parent` NULL they are listed as roots if they have a name. */
tn_arena *tn_arena_make_below(tn_node *parent, const tn_arena_options *o);
tn_slab *tn_slab_make_below(tn_node *parent, size_t size, size_t align, const tn_slab_options *o);
tn_heap *tn_heap_make_below(tn_node *parent, const tn_heap_options *o);

/* The arena that a scope is: in storage that was zero once, and since then opened and closed. The
 * caller sets chunk_bytes and chunk_bytes_max; tn_arena_size does it from options, of which nothing
 * else counts.
 *
 * fails    EINVAL */
TN_INLINE void tn_arena_open(tn_arena *a, const char *kind, tn_source source, tn_node *node) {
	a->kind = kind;
	a->name = tn_listed_name(node);
	a->node = node;
	a->source = source;
	a->limit_bytes = TN_NONE;
	a->state = TN_ALIVE;
}
bool tn_arena_size(tn_arena *a, const tn_arena_options *o);
/* As tn_arena_destroy, but that the storage stays. */
void tn_arena_close_used(tn_arena *a);
TN_INLINE void tn_arena_close(tn_arena *a) {
	if (tn_hook_checked() || a->refills != 0 || a->resets != 0)
		tn_arena_close_used(a);
	a->state = TN_DEAD;
}

/* As the arena's, for whoever is called from `site`. */
void *tn_arena_alloc_for(tn_arena *a, size_t size, size_t align, const void *site);
void *tn_arena_copy_for(tn_arena *a, const void *p, size_t size, const void *site);
char *tn_arena_print_for(tn_arena *a, const char *format, va_list arguments, const void *site);

#endif
