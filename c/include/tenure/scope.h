/* tenure/scope.h: lifetimes that nest.
 *
 * A scope is an arena with a name and a place in a tree: process > connection > request. Ending a scope
 * ends everything below it, runs its deferred calls, and takes its memory back, in this order. So one
 * line cleans up after a request, however the request ends; and every byte has a name (stats.h).
 *
 * A tree is for one thread at a time. Threads may hand it over under a lock or a join; overlapping
 * calls are misuse (hardened and debug report them). Under a root made with `shared`, any thread may
 * create, adopt and destroy children; each child, with everything below it, is then for one thread at a
 * time. */
#ifndef TENURE_SCOPE_H
#define TENURE_SCOPE_H

#include <stdio.h>

#include "arena.h"
#include "heap.h"
#include "slab.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Private except for its address. The arena comes first so that alloc is inlined. */
typedef struct tn_scope {
	tn_arena arena;
} tn_scope;

/* All sizes are bytes; 0 takes the default. */
typedef struct tn_scope_options {
	const char *ident;       /* the purpose of this one scope, beside its name: the text of a query, a
	                            URL; copied and cut at TN_IDENT_BYTES */
	size_t chunk_bytes;      /* the first chunk, taken with the first alloc; default 16 KiB */
	size_t chunk_bytes_max;  /* chunks double up to this size; default 1 MiB; TN_NONE: no growth */
	bool shared;             /* a root whose children may come and go on any thread */
	const tn_source *source; /* root only: source of chunks for the whole tree; with `shared` called by
	                            several threads at once; default: Tenure's page layer */
} tn_scope_options;

/* Limits of a scope and everything below it, in bytes of chunks and external memory. */
typedef struct tn_scope_limits {
	size_t hard_bytes; /* never exceeded; 0: no limit */
	size_t soft_bytes; /* on_soft is called above it, and not again before the scope has been below it;
	                      0: no limit */
	/* Called when a chunk is taken, and by limit, external and adopt, on the thread that calls. It may
	 * set flags and notify other threads, but must call no scope of this tree. */
	void (*on_soft)(tn_scope *scope, size_t held_bytes, void *ctx);
	void *ctx;
} tn_scope_limits;

/* Makes a scope below `parent`, or a root.
 *
 * parent   NULL for a root
 * name     shown in trees, statistics and panics; copied and cut; NULL: "scope"
 * options  NULL for the defaults; read during the call only
 * returns  the scope, with no memory yet
 * fails    EINVAL for `shared` or a source below a root, for sizes as in tn_arena_create, and for a
 *          parent that is ending; ENOMEM
 * threads  one at a time; for a root, and for a child of a shared root: any
 * cost     O(1), in steady state neither a system call nor malloc; a lock for a root and for a child of
 *          a shared root
 * cites    talloc (Tridgell 2004); PostgreSQL memory contexts (Lane 2000); Hanson 1990 */
TN_API tn_scope *tn_scope_create(tn_scope *parent, const char *name, const tn_scope_options *options)
	TN_SYMBOL(tn_scope_create);

/* Ends a scope: first its children, newest first, each in the same way; then its deferred calls, last
 * in, first out; then its memory and the allocators that it owns.
 *
 * s        from tn_scope_create; NULL is a no-op. A call for a scope that is ending does nothing. A
 *          call for an ancestor of a scope that is ending (from a deferred call) is misuse and detected
 *          in every mode
 * threads  one at a time; a child of a shared root: any
 * cost     O(scopes and chunks below); bounded stack, allocates nothing, no system call while the
 *          chunks stay warm */
TN_API void tn_scope_destroy(tn_scope *s) TN_SYMBOL(tn_scope_destroy);
TN_RELEASED_BY(tn_scope_destroy, 1,
	tn_scope *tn_scope_create(tn_scope *parent, const char *name, const tn_scope_options *options))

/* Not API: the part of tn_scope_alloc that takes chunks and checks. */
TN_API void *tn_scope_alloc_slow(tn_scope *s, size_t size, size_t align) TN_SYMBOL(tn_scope_alloc_slow);

/* Allocates `size` bytes.
 *
 * size, align  as tn_arena_alloc
 * returns      uninitialised memory, valid until the scope is reset or ends
 * fails        EINVAL for a bad alignment; ENOMEM when the source has no more, or at a limit of this
 *              scope or of one above it
 * threads      one at a time
 * cost         as tn_arena_alloc; limits are charged by the chunk, not by the call */
TN_INLINE void *tn_scope_alloc(tn_scope *s, size_t size, size_t align) {
	void *p;
	return TN_LIKELY(tn_arena_bump(&s->arena, size, align, &p)) ? p
	                                                            : tn_scope_alloc_slow(s, size, align);
}

/* Empties the scope, as destroying it would: children, deferred calls, memory, owned allocators. The
 * scope keeps its name, place, limits and warm memory; its external bytes become 0.
 *
 * threads  one at a time, even for a shared root
 * cost     as destroy; O(1) when one chunk was enough */
TN_API void tn_scope_reset(tn_scope *s) TN_SYMBOL(tn_scope_reset);

/* Gives back the chunks of this scope that hold no block, and trims the allocators that it owns. Scopes
 * below keep theirs.
 *
 * returns  bytes given back
 * threads  one at a time
 * cost     O(chunks given back) */
TN_API size_t tn_scope_trim(tn_scope *s) TN_SYMBOL(tn_scope_trim);

/* Copies `size` bytes into the scope, at alignment 1.
 *
 * p        may be NULL when size is 0
 * returns  the copy
 * fails    as alloc
 * threads  one at a time */
TN_API void *tn_scope_copy(tn_scope *s, const void *p, size_t size) TN_SYMBOL(tn_scope_copy);

/* Prints text into the scope.
 *
 * returns  the text with its NUL, exactly as long as needed
 * fails    EINVAL when the format cannot be printed, else as alloc
 * threads  one at a time */
TN_PRINTF(2, 3)
TN_API char *tn_scope_printf(tn_scope *s, const char *format, ...) TN_SYMBOL(tn_scope_printf);

/* Make an allocator that the scope owns. It ends when the scope ends or is reset, and debug does not
 * list its live blocks then. Its chunks count against the scope's limits. It may be destroyed earlier.
 *
 * options  as for the allocator's create; NULL for the defaults; `source` must be NULL, and
 *          reserve_bytes of an arena 0
 * returns  the allocator; listed under the scope by its name, or else by its kind
 * fails    as the allocator's create; EINVAL also for a source or a range, and for a scope that is
 *          ending
 * threads  one at a time; the allocator and the scope are then for the same thread */
TN_API tn_arena *tn_scope_arena(tn_scope *s, const tn_arena_options *options) TN_SYMBOL(tn_scope_arena);
TN_API tn_slab *tn_scope_slab(tn_scope *s, size_t size, size_t align, const tn_slab_options *options)
	TN_SYMBOL(tn_scope_slab);
TN_API tn_heap *tn_scope_heap(tn_scope *s, const tn_heap_options *options) TN_SYMBOL(tn_scope_heap);

/* Tells whether `p` points into memory that alloc, copy or printf of this scope has handed out and that
 * has not been taken back.
 *
 * threads  one at a time
 * cost     O(chunks); reads no memory at p */
TN_API bool tn_scope_owns(const tn_scope *s, const void *p) TN_SYMBOL(tn_scope_owns);

/* Calls `visit` for every child, newest first.
 *
 * visit    must not make or end a scope or a named allocator, print, take a snapshot, or fork
 * threads  one at a time; for a shared root: any, and other threads that create or end children wait
 * cost     O(children) */
TN_API void tn_scope_each(tn_scope *s, void (*visit)(tn_scope *child, void *ctx), void *ctx)
	TN_SYMBOL(tn_scope_each);

/* Returns the scope above.
 *
 * returns  the parent; NULL for a root
 * threads  one at a time
 * cost     O(1) */
TN_API tn_scope *tn_scope_parent(const tn_scope *s) TN_SYMBOL(tn_scope_parent);

/* Defers fn(arg): calls it once, when the scope ends or is reset. fn may use the scope's memory, and
 * create and destroy other scopes.
 *
 * returns  whether fn will be called
 * fails    EINVAL when fn is NULL or the scope is ending; ENOMEM
 * threads  one at a time
 * cost     an alloc of three words from the scope */
TN_API bool tn_scope_defer(tn_scope *s, void (*fn)(void *arg), void *arg) TN_SYMBOL(tn_scope_defer);

/* Cancels the newest deferred call of fn with arg.
 *
 * returns  whether there was one
 * threads  one at a time
 * cost     O(calls deferred after it) */
TN_API bool tn_scope_undefer(tn_scope *s, void (*fn)(void *arg), void *arg) TN_SYMBOL(tn_scope_undefer);

/* Moves a scope, with everything below it, to another parent. The limits of the new parent and above
 * count it from then on.
 *
 * child    not a root
 * returns  whether it was moved; true when new_parent is its parent already
 * fails    EINVAL when new_parent is the child or below it, either is ending, the child is a root, or
 *          the two are below different roots and one of these has a source; ENOMEM when it would exceed
 *          a limit above new_parent
 * threads  one at a time for the child and for both parents, except those that are shared roots
 * cost     O(1) in a tree without limits, else O(scopes below) */
TN_API bool tn_scope_adopt(tn_scope *child, tn_scope *new_parent) TN_SYMBOL(tn_scope_adopt);

/* Sets the limits of a scope and everything below it, in place of earlier ones. Chunks and external
 * bytes held already count.
 *
 * limits   NULL: none; read during the call only
 * returns  whether the limits are set
 * fails    ENOMEM when more than hard_bytes is held already; EINVAL when soft_bytes is above hard_bytes
 *          or given without on_soft
 * threads  one at a time; no other thread may call a scope below meanwhile
 * cost     O(scopes below) */
TN_API bool tn_scope_limit(tn_scope *s, const tn_scope_limits *limits) TN_SYMBOL(tn_scope_limit);

/* Tells the scope how much memory another library holds on its behalf. The amount counts against the
 * limits and is shown in the figures; it has no other effect.
 *
 * bytes    the total, not an addition to earlier calls
 * returns  whether the amount is noted
 * fails    ENOMEM above PTRDIFF_MAX, and at a limit of this scope or of one above it; the earlier
 *          amount still holds
 * threads  one at a time
 * cost     O(limits above) */
TN_API bool tn_scope_external(tn_scope *s, size_t bytes) TN_SYMBOL(tn_scope_external);

/* Fills `own` with the current figures of the scope and its allocators, and `subtree` with the sums
 * over the scope and all scopes below.
 *
 * own, subtree  either may be NULL. In `subtree` peak_bytes is the sum of the peaks
 * threads       one at a time for everything counted
 * cost          O(scopes and owned allocators counted) and what their stats cost */
TN_API void tn_scope_stats(const tn_scope *s, tn_stats *own, tn_stats *subtree)
	TN_SYMBOL(tn_scope_stats);

/* Prints the scope and everything below it as an indented tree: name, ident, live, cached and committed
 * bytes, chunks, the sampled peak, and the time since the last reset. Figures are as in a snapshot.
 * The sums over each child with everything below it follow (at most the 16 largest), then the total;
 * behind each sum stands the number of scopes and allocators in it.
 *
 * threads  any, while the scope is not being destroyed
 * cost     as tn_stats_snapshot, and the printing */
TN_API void tn_scope_print(const tn_scope *s, FILE *out) TN_SYMBOL(tn_scope_print);

/* Walks the scope and everything below it. Panics at the first broken invariant.
 *
 * returns  true
 * threads  one at a time for everything below
 * cost     O(everything below) */
TN_API bool tn_scope_verify(const tn_scope *s) TN_SYMBOL(tn_scope_verify);

#ifdef __cplusplus
}
#endif
#endif
