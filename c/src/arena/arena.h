/* The arena for other files of the library: one that is made below a scope, and the one that a scope
 * is. */
#ifndef TENURE_SRC_ARENA_H
#define TENURE_SRC_ARENA_H

#include <stdarg.h>

#include <tenure/arena.h>

#include "../base/modes.h"
#include "../listing/listing.h"
#include "../pages/pages.h"

/* As create, listed below `parent` (NULL: as a root, if it has a name). Chunks come from `source`,
 * not from the one in the options. */
tn_arena *tn_arena_make_below(
	tn_node *parent, const tn_chunk_source *source, const tn_arena_options *o);

/* Completes the figures of a node while the owner goes on (listing.h). */
void tn_arena_look(const void *arena, tn_position from, tn_listed *listed);

/* The arena that a scope is: in storage that was zero once, and since then opened and closed. The
 * caller sets chunk_bytes and chunk_bytes_max; tn_arena_size does it from options, of which nothing
 * else counts.
 *
 * fails    EINVAL */
TN_INLINE void tn_arena_open(tn_arena *a, const char *kind, tn_chunk_source source, tn_node *node) {
	a->kind = kind;
	a->name = tn_node_name(node);
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

/* As the arena's calls, for the caller at `site`. */
void *tn_arena_alloc_for(tn_arena *a, size_t size, size_t align, const void *site);
void *tn_arena_copy_for(tn_arena *a, const void *p, size_t size, const void *site);
char *tn_arena_print_for(tn_arena *a, const char *format, va_list arguments, const void *site);

#endif
