/* The slab for other files of the library: one that is made below a scope, and one that is wrapped,
 * with calls for another caller's site and panics under another kind. */
#ifndef TENURE_SRC_SLAB_H
#define TENURE_SRC_SLAB_H

#include <tenure/slab.h>

#include "../listing/listing.h"
#include "../pages/pages.h"

/* As create, listed below `parent` (NULL: as a root, if it has a name). Chunks come from `source`,
 * not from the one in the options. */
tn_slab *tn_slab_make_below(tn_node *parent, const tn_chunk_source *source, size_t size, size_t align,
	const tn_slab_options *o);

/* The same without a listing; panics name `kind`. */
tn_slab *tn_slab_make(const char *kind, const tn_chunk_source *source, size_t size, size_t align,
	const tn_slab_options *options);

/* Lists it as part of what wraps it, for as long as it is there; fails: ENOMEM. */
bool tn_slab_list(
	tn_slab *s, tn_node *parent, const tn_node_kind *kind, void *object, const char *name);
void tn_slab_unlist(tn_slab *s);
/* As tn_node_kind's look, of a tn_slab. */
void tn_slab_look(const void *s, tn_position from, tn_listed *listed);

/* As alloc and free, checked in every mode but release, for whoever is called from `site`. */
void *tn_slab_alloc_for(tn_slab *s, const void *site);
void tn_slab_free_for(tn_slab *s, void *p, const void *site);

/* A site that is NULL leaves the one that is known.
 *
 * Debug: nobody may use the live slot p while it is idle; panics when it is in that state already. */
void tn_slab_set_idle(tn_slab *s, void *p, bool idle, const char *operation, const void *site);

#endif
