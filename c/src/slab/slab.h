/* The slab for other files of the library: one that is made below a scope, and one that another
 * allocator wraps, with sites of its own callers and panics under its own kind. */
#ifndef TENURE_SRC_SLAB_H
#define TENURE_SRC_SLAB_H

#include <tenure/slab.h>

#include "../listing/listing.h"
#include "../pages/pages.h"

/* As create, listed below `parent` (NULL: as a root, if it has a name). Chunks come from `source`, not
 * from the one in the options. */
tn_slab *tn_slab_make_below(tn_node *parent, const tn_chunk_source *source, size_t size, size_t align,
	const tn_slab_options *o);

/* The same, not listed; panics name `kind`. */
tn_slab *tn_slab_make(const char *kind, const tn_chunk_source *source, size_t size, size_t align,
	const tn_slab_options *o);

/* Lists a slab as part of `object`, which wraps it, until it is unlisted; fails: ENOMEM. */
bool tn_slab_list(
	tn_slab *s, tn_node *parent, const tn_node_kind *kind, void *object, const char *name);
void tn_slab_unlist(tn_slab *s);
/* The `look` of a tn_node_kind whose objects are slabs. */
void tn_slab_look(const void *s, tn_position from, tn_listed *listed);

/* As alloc and free, checked in every mode but release, on behalf of the caller at `site`. A `site` of
 * NULL keeps the one that was recorded last. */
void *tn_slab_alloc_for(tn_slab *s, const void *site);
void tn_slab_free_for(tn_slab *s, void *p, const void *site);

/* Debug: while the live slot p is idle, its bytes must not be touched. Panics when it is in that state
 * already. A `site` of NULL keeps the one that was recorded last. */
void tn_slab_set_idle(tn_slab *s, void *p, bool idle, const char *operation, const void *site);

/* Debug: the site that allocated the live slot p; `operation` panics at any other pointer. */
const void *tn_slab_site(const tn_slab *s, const void *p, const char *operation);

/* Debug: the user of a slot keeps the size that was asked for in its last word; leaks are listed with
 * these sizes. */
void tn_slab_set_sized(tn_slab *s);

/* As the option: whether live slots at destroy are intended. */
void tn_slab_set_expendable(tn_slab *s, bool expendable);

#endif
