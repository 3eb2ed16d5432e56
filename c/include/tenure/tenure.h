/* tenure/tenure.h: the whole API, and its map.
 *
 *   objects that die together         arena.h        tn_arena_alloc, reset, mark, rewind
 *   one size, one thread              slab.h         tn_slab_alloc, free, reset
 *   one size, any thread              shared_slab.h  tn_shared_slab_alloc, free, local
 *   costly to build, used again       pool.h         tn_pool_get, put
 *   mixed sizes, freed as a whole     heap.h         tn_heap_alloc, free, realloc, reset
 *   lifetimes that nest               scope.h        tn_scope_create, destroy, alloc, defer
 *   figures, watching                 stats.h        tn_stats, tn_stats_snapshot, tn_watch,
 *                                                    tn_live_start
 *   idle memory, memory pressure      idle.h         tn_maintain_start, tn_pressure_start
 *   sources of memory, panics         base.h         tn_source, tn_on_panic
 *
 * The verbs mean the same in every header, and stand in this order: init/deinit (the caller owns the
 * allocator's storage), create/destroy (the library owns it), alloc/free, get/put (an object that keeps
 * its state), resize (in place), realloc (may move), reset (forget all, keep warm memory), trim (give
 * unused memory back), mark/rewind, copy, printf, local and flush (this thread's part), owns, each,
 * stats, verify. An operation that an allocator cannot do has no symbol. */
#ifndef TENURE_TENURE_H
#define TENURE_TENURE_H

#include "arena.h"
#include "base.h"
#include "heap.h"
#include "idle.h"
#include "pool.h"
#include "scope.h"
#include "shared_slab.h"
#include "slab.h"
#include "stats.h"

#endif
