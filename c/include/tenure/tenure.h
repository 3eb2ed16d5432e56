/* tenure/tenure.h: the whole API, and its map.
 *
 *   they die together                  arena.h        tn_arena_alloc, mark, rewind, reset
 *   they have one size, on one thread   slab.h         tn_slab_alloc, free, reset
 *   they have one size, on any thread   shared_slab.h  tn_shared_slab_alloc, free, local
 *   costly to build, come back used     pool.h         tn_pool_get, put
 *   mixed sizes that belong together    heap.h         tn_heap_alloc, free, realloc, reset
 *   lifetimes nest                      scope.h        tn_scope_create, alloc, defer, destroy
 *   what it costs right now             stats.h        tn_stats, tn_stats_snapshot, tn_watch,
 *                                       tn_live_start
 *   where memory comes from, panics     base.h         tn_source, tn_on_panic
 *
 * The verbs mean the same everywhere: create/destroy (the library owns the allocator's storage),
 * init/deinit (the caller does), alloc/free, get/put (an object that keeps its state), resize (in
 * place), realloc (may move), mark/rewind, reset (forget all, keep warm memory), trim (give unused
 * memory back), local and flush (this thread's part), owns, each, stats, verify. What an allocator
 * cannot do has no symbol. */
#ifndef TENURE_TENURE_H
#define TENURE_TENURE_H

#include "arena.h"
#include "base.h"
#include "heap.h"
#include "pool.h"
#include "scope.h"
#include "shared_slab.h"
#include "slab.h"
#include "stats.h"

#endif
