/* The part of a shared slab that pools use, beside its API: memory for one object at a time, past the
 * magazines, and in hardened and debug the state of each slot. */
#ifndef TENURE_INNER_SHARED_SLAB_H
#define TENURE_INNER_SHARED_SLAB_H

#include <tenure/shared_slab.h>

#include "../listing/listing.h"
#include "../slab/stock.h"

/* As tn_shared_slab_create; panics name `kind`. */
tn_shared_slab *tn_shared_slab_make(
	const char *kind, size_t size, size_t align, const tn_shared_slab_options *options);

/* Registers the slab with the listing, as an object of that kind; from then on it publishes its
 * figures. The second ends that, and is called before anything else ends.
 *
 * fails    ENOMEM */
bool tn_shared_slab_list(tn_shared_slab *s, const tn_node_kind *kind, void *object, const char *name);
void tn_shared_slab_unlist(tn_shared_slab *s);
/* As tn_node_kind's look, of a tn_shared_slab: slots outside the chunks. */
void tn_shared_slab_look(const void *s, tn_position from, tn_listed *listed);

/* As trim; the page layer's cache stays. */
size_t tn_shared_slab_drain(tn_shared_slab *s);

/* One slot, past the magazines, and back. `site` is the caller, for debug's panics. */
void *tn_shared_slab_take(tn_shared_slab *s, const void *site);
void tn_shared_slab_give(tn_shared_slab *s, void *p, const void *site);

/* Whether p points into one of the slab's chunks, for a p that is live if it does. */
bool tn_shared_slab_holds(const tn_shared_slab *s, const void *p);

/* Hardened and debug: changes the state of a slot; panics when p is no slot or in another state than
 * `from`. Debug remembers `site` for the next panic. */
void tn_shared_slab_set_state(tn_shared_slab *s, void *p, enum slot_state from, enum slot_state to,
	const char *operation, const void *site);

#endif
