/* tenure/tenure.h: the whole API, and its map.
 *
 *   they die together                    arena.h   tn_arena_alloc, mark, rewind, reset
 *   they have one size, freed one by one slab.h    tn_slab_alloc, free, reset
 *   what it costs right now              stats.h   tn_stats, tn_trim_all
 *   where memory comes from, panics      base.h    tn_source, tn_on_panic
 *
 * The verbs mean the same everywhere: create/destroy (the library owns the allocator's storage),
 * init/deinit (the caller does), alloc/free, resize (in place), realloc (may move), mark/rewind, reset
 * (forget all, keep warm memory), trim (give unused memory back), owns, each, stats, verify. What an
 * allocator cannot do has no symbol. */
#ifndef TENURE_TENURE_H
#define TENURE_TENURE_H

#include "arena.h"
#include "base.h"
#include "slab.h"
#include "stats.h"

#endif
