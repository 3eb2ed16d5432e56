/* tenure/scope.h: lifetimes that nest.
 *
 * A scope is an arena with a name and a place in a tree: process > connection > request. Ending a scope
 * ends everything below it, runs the calls that were deferred to its end, and takes its memory back, in
 * this order. So whatever a request does, and wherever an error unwinds it, there is one line that
 * leaves nothing behind; and every byte has a name (stats.h).
 *
 * A tree is for one thread at a time: handing it over between threads under a lock or a join is legal,
 * overlapping calls are not (hardened and debug report them). Under a root made with `shared`, children
 * may be created, adopted and destroyed from any thread; each child with what is below it is then for
 * one thread at a time. */
#ifndef TENURE_SCOPE_H
#define TENURE_SCOPE_H

#include <stdio.h>

#include "arena.h"
#include "heap.h"
#include "slab.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Private but for its address: the arena comes first, so that alloc is inlined. */
typedef struct tn_scope {
	tn_arena arena;
} tn_scope;

/* All sizes are bytes; 0 takes the default. */
typedef struct tn_scope_options {
	const char *ident;  /* what it is for, beside its name: the query's text, the URL; copied and cut
	                            at TN_IDENT_BYTES */
	size_t chunk_bytes; /* the first chunk, taken with the first alloc; default 16 KiB */
	size_t chunk_bytes_max; /* chunks double up to this; default 1 MiB; TN_NONE: they do not grow */
	bool shared;            /* a root whose children may come and go on any thread */
	const tn_source
		*source; /* of a root: where chunks for the whole tree come from; with `shared` it is
	                            called by several threads at once. Default Tenure's page layer */
} tn_scope_options;

/* What a scope and everything below it may hold, bytes of chunks and external memory. */
typedef struct tn_scope_limits {
	size_t hard_bytes; /* never exceeded; 0: no limit */
	size_t soft_bytes; /* above it on_soft is called, once until it has been below again; 0: none */
	/* Called while a chunk is taken, and by limit, external and adopt, in the thread that does it; may
	 * set flags and tell others, but call no scope of this tree. */
	void (*on_soft)(tn_scope *scope, size_t held_bytes, void *ctx);
	void *ctx;
} tn_scope_limits;

/* Ends a scope: first its children, newest first, each in this way; then its deferred calls, last in,
 * first out; then its memory and the allocators that it owns.
 *
 * s        from tn_scope_create; NULL is a no-op. A scope that is ending already is left alone; one
 *          with a scope below it that is ending (because a deferred call destroys an ancestor) is
 *          misuse and seen in every mode
 * threads  one at a time; a child of a shared root: any
 * cost     O(scopes and chunks below); the stack is bounded, nothing is allocated, no system call while
 *          the chunks stay warm */
TN_API void tn_scope_destroy(tn_scope *s) TN_SYMBOL(tn_scope_destroy);

/* Makes a scope below `parent`, or a root.
 *
 * parent   NULL for a root
 * name     shown in trees, statistics and panics; copied and cut; NULL: "scope"
 * options  NULL for the defaults; read during the call only
 * returns  the scope, with no memory yet
 * fails    EINVAL for `shared` or a source below a root, for sizes as in tn_arena_create, and for a
 *          parent that is ending; ENOMEM
 * threads  one at a time; below a shared root, and a root itself: any
 * cost     O(1), in steady state neither a system call nor malloc; a lock for a root and below a shared
 *          one
 * cites    talloc (Tridgell 2004); PostgreSQL memory contexts (Lane 2000); Hanson 1990 */
TN_RELEASED_BY(tn_scope_destroy, 1)
TN_API tn_scope *tn_scope_create(tn_scope *parent, const char *name, const tn_scope_options *options)
	TN_SYMBOL(tn_scope_create);

/* Not API: the part of tn_scope_alloc that takes chunks and checks. */
TN_API void *tn_scope_alloc_slow(tn_scope *s, size_t size, size_t align) TN_SYMBOL(tn_scope_alloc_slow);

/* Allocates `size` bytes.
 *
 * size, align  as tn_arena_alloc
 * returns      uninitialised memory, valid until the scope is reset or ends
 * fails        EINVAL for a bad alignment; ENOMEM when the source has no more, or at a limit of this
 *              scope or one above it
 * threads      one at a time
 * cost         as tn_arena_alloc; limits are charged by the chunk, not by the call */
TN_INLINE void *tn_scope_alloc(tn_scope *s, size_t size, size_t align) {
	void *p;
	return TN_LIKELY(tn_arena_bump(&s->arena, size, align, &p)) ? p
	                                                            : tn_scope_alloc_slow(s, size, align);
}

/* Copies `size` bytes into the scope, at alignment 1.
 *
 * p        may be NULL when size is 0
 * returns  the copy
 * fails    as alloc
 * threads  one at a time */
TN_API void *tn_scope_copy(tn_scope *s, const void *p, size_t size) TN_SYMBOL(tn_scope_copy);

/* Prints into the scope.
 *
 * returns  the text, terminated by NUL, exactly as long as needed
 * fails    EINVAL when the format cannot be printed, else as alloc
 * threads  one at a time */
TN_PRINTF(2, 3)
TN_API char *tn_scope_printf(tn_scope *s, const char *format, ...) TN_SYMBOL(tn_scope_printf);

/* Forgets everything below and in the scope, as destroying it would: children, deferred calls, memory,
 * owned allocators. The scope stays, with its name, place, limits and warm memory; external bytes
 * become 0.
 *
 * threads  one at a time; also of a shared root
 * cost     as destroy; O(1) when there was only one chunk */
TN_API void tn_scope_reset(tn_scope *s) TN_SYMBOL(tn_scope_reset);

/* Gives back the chunks of this scope that no block is in, and what its allocators keep; scopes below
 * keep theirs.
 *
 * returns  bytes given back
 * threads  one at a time
 * cost     O(chunks given back) */
TN_API size_t tn_scope_trim(tn_scope *s) TN_SYMBOL(tn_scope_trim);

/* Has fn(arg) called when the scope ends or is reset, once. It may use the scope's memory, and create
 * and destroy other scopes.
 *
 * returns  whether it will be called
 * fails    EINVAL when fn is NULL or the scope is ending; ENOMEM
 * threads  one at a time
 * cost     an alloc of three words from the scope */
TN_API bool tn_scope_defer(tn_scope *s, void (*fn)(void *arg), void *arg) TN_SYMBOL(tn_scope_defer);

/* Takes back the newest deferred call of fn with arg: it will not be called for it.
 *
 * returns  whether there was one
 * threads  one at a time
 * cost     O(calls deferred after it) */
TN_API bool tn_scope_undefer(tn_scope *s, void (*fn)(void *arg), void *arg) TN_SYMBOL(tn_scope_undefer);

/* Moves a scope, with everything below it, to another parent, whose limits count it from then on.
 *
 * child    not a root
 * returns  whether it was moved; true when that is its parent already
 * fails    EINVAL when new_parent is the child or below it, either is ending, the child is a root, or
 *          it is below another root and one of the two was given a source; ENOMEM when it would exceed
 *          a limit above new_parent
 * threads  one at a time for the child and, unless they are shared roots, both parents
 * cost     O(1) in a tree without limits, else O(scopes below) */
TN_API bool tn_scope_adopt(tn_scope *child, tn_scope *new_parent) TN_SYMBOL(tn_scope_adopt);

/* Makes an allocator that the scope owns: it ends when the scope ends or is reset, with no word about
 * what is live in it, and its chunks count against the scope's limits. It may be destroyed before.
 *
 * options  as in tn_arena_create and so on; NULL for the defaults; `source` must be NULL, and an arena
 *          has no reserve_bytes
 * returns  the allocator; listed under the scope by its name, or its kind
 * fails    as the allocator's create; EINVAL also for a source or a range, and for a scope that is
 *          ending
 * threads  one at a time; the allocator and the scope are then for the same thread */
TN_API tn_arena *tn_scope_arena(tn_scope *s, const tn_arena_options *options) TN_SYMBOL(tn_scope_arena);
TN_API tn_slab *tn_scope_slab(tn_scope *s, size_t size, size_t align, const tn_slab_options *options)
	TN_SYMBOL(tn_scope_slab);
TN_API tn_heap *tn_scope_heap(tn_scope *s, const tn_heap_options *options) TN_SYMBOL(tn_scope_heap);

/* Sets the limits of a scope and everything below it; chunks and external bytes that are held already
 * count. Replaces those that were set before.
 *
 * limits   NULL: none; read during the call only
 * returns  whether they are set
 * fails    ENOMEM when more than hard_bytes is held already; EINVAL when soft_bytes is above hard_bytes
 *          or given without on_soft
 * threads  one at a time; no other thread may be in a scope below either
 * cost     O(scopes below) */
TN_API bool tn_scope_limit(tn_scope *s, const tn_scope_limits *limits) TN_SYMBOL(tn_scope_limit);

/* Says how much memory another library holds on this scope's behalf: counted against the limits, shown
 * in the figures, and otherwise nothing.
 *
 * bytes    in all, not in addition to what was said before
 * returns  whether it is noted
 * fails    ENOMEM above PTRDIFF_MAX, and at a limit of this scope or one above; what was said before
 *          still holds
 * threads  one at a time
 * cost     O(limits above) */
TN_API bool tn_scope_external(tn_scope *s, size_t bytes) TN_SYMBOL(tn_scope_external);

/* The scope above.
 *
 * returns  NULL for a root
 * threads  one at a time
 * cost     O(1) */
TN_API tn_scope *tn_scope_parent(const tn_scope *s) TN_SYMBOL(tn_scope_parent);

/* Whether `p` points into memory that alloc, copy or printf of this scope handed out and not taken
 * back.
 *
 * threads  one at a time
 * cost     O(chunks); reads nothing behind p */
TN_API bool tn_scope_owns(const tn_scope *s, const void *p) TN_SYMBOL(tn_scope_owns);

/* Calls `visit` for every child, newest first.
 *
 * visit    must not make or end a scope or a named allocator, print, take a snapshot, or fork
 * threads  one at a time; of a shared root: any, and children wait to come or go meanwhile
 * cost     O(children) */
TN_API void tn_scope_each(tn_scope *s, void (*visit)(tn_scope *child, void *ctx), void *ctx)
	TN_SYMBOL(tn_scope_each);

/* Fills in the figures of this moment: of the scope with the allocators that it owns, and of it with
 * all scopes below.
 *
 * own, subtree  either may be NULL. In `subtree` peak_bytes is the sum of the peaks
 * threads       one at a time for all that is counted
 * cost          O(scopes and owned allocators counted) and what their stats cost */
TN_API void tn_scope_stats(const tn_scope *s, tn_stats *own, tn_stats *subtree)
	TN_SYMBOL(tn_scope_stats);

/* Prints the scope and what is below it as an indented tree: name, ident, live, cached and committed
 * bytes, chunks, the sampled peak, and the time since the last reset. Figures are as in a snapshot.
 *
 * threads  any, while the scope is not being destroyed
 * cost     as tn_stats_snapshot, and the printing */
TN_API void tn_scope_print(const tn_scope *s, FILE *out) TN_SYMBOL(tn_scope_print);

/* Walks everything below and checks it; panics at the first broken invariant.
 *
 * returns  true
 * threads  one at a time for all that is below
 * cost     O(all below) */
TN_API bool tn_scope_verify(const tn_scope *s) TN_SYMBOL(tn_scope_verify);

#ifdef __cplusplus
}
#endif
#endif
