/* tenure/stats.h: memory figures of one allocator and of all of them.
 *
 * Four figures, never mixed: live (handed out), cached (free, kept), reserved (address space) and
 * committed (taken from the source and backed by memory; includes live, cached and Tenure's own
 * records). Live and cached lie in committed, except for memory that did not come from the source:
 * blocks in the caller's buffer of an arena, and the bytes that size_of of a pool adds for each object.
 *
 * A named allocator is listed: any thread can see it in a snapshot, watch it, or show it to another
 * process, while its owner goes on. Every root scope is listed, and under it everything that it owns.
 * Owners publish their figures when they change chunks or magazines, not with each call. Readers derive
 * the calls since then from the position that the owner writes anyway. */
#ifndef TENURE_STATS_H
#define TENURE_STATS_H

#include "base.h"
#include "detail/kinds.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Memory nodes that figures tell apart. */
#define TN_NODES 8

typedef struct tn_stats {
	char name[TN_NAME_BYTES + 1];
	size_t live_bytes;      /* handed out, rounding and padding included */
	size_t live_count;      /* slots handed out; 0 where objects are not counted (arena) */
	size_t cached_bytes;    /* committed, free, ready for the next alloc */
	size_t reserved_bytes;  /* address space held */
	size_t committed_bytes; /* taken from the source; of a reserved range, the committed part */
	size_t peak_bytes;      /* the most live bytes, sampled on slow paths and in stats; of a pool, the
	                           most bytes of built objects */
	size_t chunk_count;     /* chunks held, including the caller's buffer */
	size_t partial_count;   /* slabs: chunks with both live and free slots; slots in the magazines of a
	                           shared slab count as live; 0 elsewhere. A snapshot of a slab shows the
	                           last count: a slab counts when magazines change and a reader has asked */
	uint64_t refills;       /* times a slow path took a chunk or filled a magazine */
	uint64_t resets;
	size_t slot_bytes;          /* of one slot; 0 where sizes differ */
	size_t slot_count;          /* slots in all chunks; pool: objects built; 0 where sizes differ */
	size_t partial_live_count;  /* live slots in the chunks of partial_count */
	size_t thread_cached_bytes; /* shared slab and pool: the part of cached in threads' magazines */
	size_t waste_bytes;         /* the part of live added by rounding: of a heap, an estimate; of slabs
	                               and pools, by the alignment of slots; 0 elsewhere */
	size_t external_bytes;      /* scope: memory of other libraries, from tn_scope_external; in no
	                               other figure */
	/* Shared slab and pool, since they were made: how threads exchanged magazines. */
	uint64_t exchanges; /* magazines that a thread put into a depot or took from one */
	uint64_t foreign;   /* those of them that it took from the depot of other threads */
	uint64_t waits;     /* times that another thread was in the depot just then */
	/* By memory node (NUMA), all in [0] on a machine with one: of a shared slab or a pool, the bytes of
	 * chunks that belong to the node; of the page layer, what it keeps warm there; 0 elsewhere, and in
	 * debug. Of a machine with more nodes, those of higher numbers count as lower ones. */
	size_t node_bytes[TN_NODES];
} tn_stats;

/* ---- all allocators ---- */

/* Returns the name of a kind. All kinds, TN_KIND_ARENA to TN_KIND_PAGES, stand in detail/kinds.h.
 *
 * returns  "arena", "shared slab", ...; "?" for another number
 * threads  any */
TN_API const char *tn_kind_name(tn_kind kind) TN_SYMBOL(tn_kind_name);

/* The ident of a scope is copied and cut to this many bytes. */
#define TN_IDENT_BYTES 63

/* A listed allocator, as a snapshot found it. */
typedef struct tn_listed {
	tn_stats stats;     /* its own, without anything below it */
	tn_kind kind;       /* TN_KIND_ARENA and so on: detail/kinds.h lists them */
	unsigned depth;     /* 0 for a root */
	uint64_t id;        /* unique in this process; never 0 */
	uint64_t parent_id; /* 0 for a root */
	/* Time since it first took memory, or (a scope) got something below it; or since the last reset, if
	 * that is later. If the owner has not recorded the start, the first snapshot that sees it does: an
	 * arena's inlined reset, a scope's first chunk. */
	uint64_t age_ms;
	char ident[TN_IDENT_BYTES + 1]; /* scope: from its options; else "" */
} tn_listed;

/* Visits every listed allocator, owners before the allocators they own, newest first; the page layer
 * comes first. Figures are as last published, live bytes are current. An allocator that is made, moved
 * or ended meanwhile may be missing; none is seen twice.
 *
 * visit    returns whether to go on; may call anything, and may change the tree
 * returns  the number visited
 * threads  any; owners are not stopped
 * cost     about 0.1 us each; allocates nothing */
TN_API size_t tn_stats_snapshot(bool (*visit)(const tn_listed *listed, void *ctx), void *ctx)
	TN_SYMBOL(tn_stats_snapshot);

/* Gives back idle memory of every allocator, named or not. At once: what shared slabs and pools keep
 * for all threads, and the warm chunks of the calling thread and of the process. With the next call of
 * its owner, alloc or free: what a slab or a heap keeps, and what a thread has in the magazines of a
 * shared slab or pool. With its next reset, or when it next needs a chunk: what an arena keeps.
 *
 * returns  bytes given back at once
 * threads  any, at any moment, also in callbacks; `fini` of pools and shared slabs then runs in the
 *          calling thread. Other threads' warm chunks (at most 1.25 MiB each) go back when those
 *          threads exit. A shared slab that is in a callback of its own goes back after it
 * cost     one system call a chunk; O(slabs + heaps + threads of shared slabs and pools) */
TN_API size_t tn_trim_all(void) TN_SYMBOL(tn_trim_all);

/* ---- silent failures ---- */

/* 0 takes the default. */
typedef struct tn_watch_options {
	unsigned interval_ms;   /* time between two snapshots; default 1,000 */
	unsigned growing_ms;    /* an allocator that grows this long and never shrinks; default 60,000 */
	unsigned idle_ms;       /* a pool that keeps the objects of a burst this long; default 60,000 */
	unsigned slab_percent;  /* a slab less full than this for growing_ms; default 25 */
	unsigned waste_percent; /* a heap that loses more than this to rounding; default 30 */
	size_t least_bytes;     /* committed bytes of the smallest allocator reported; default 256 KiB */
	void *ctx;              /* for the callback */
} tn_watch_options;

typedef enum tn_finding {
	TN_FOUND_GROWING = 1, /* all kinds: live bytes grow and never fall; of a scope, its own or those
	                         with everything below it */
	TN_FOUND_AT_BOUND,    /* pool: as many idle objects as allowed, and further ones are taken apart */
	TN_FOUND_IDLE,        /* pool: still keeps the objects of a burst */
	TN_FOUND_SPARSE,      /* slab: holds chunks for few objects */
	TN_FOUND_WASTE,       /* heap: sizes fit no class well */
} tn_finding;

/* Receives a finding. Names and idents in `listed` are as their user gave them.
 *
 * listed   the allocator in the last snapshot; live and committed bytes of a scope include those below
 * message  one line for a log, with the name and the figures; '?' stands for each byte that a log or a
 *          terminal might not show as itself
 * threads  called by the watching thread; may call anything but tn_watch */
typedef void (*tn_watch_callback)(
	tn_finding finding, const tn_listed *listed, const char *message, void *ctx);

/* Watches all listed allocators and reports each silent failure once per allocator: growth without
 * reset, memory kept without use, memory lost to rounding. A process has one watch. A second call
 * replaces the first; a NULL callback ends the watch, and no callback runs after that call returns.
 *
 * options  NULL for the defaults; read during the call only
 * returns  whether the watch is on (or, with a NULL callback, off)
 * fails    EINVAL for a percentage above 100; ENOMEM for lack of a thread or memory; ENOTSUP on a
 *          system without threads. After ENOMEM and ENOTSUP an earlier watch has ended
 * threads  any but the callback; after a fork the child has no watch
 * cost     a thread that sleeps, and a snapshot per interval */
TN_API bool tn_watch(const tn_watch_options *options, tn_watch_callback callback) TN_SYMBOL(tn_watch);

/* ---- the live view ---- */

/* Shows this process's snapshots to `tenure-top`, run by the same user. Four times a second a thread
 * writes them into a sealed memory file that other processes can only read. The file has no name, no
 * port is opened, and Tenure reads nothing from the file. TENURE_LIVE=1 in the environment does the
 * same when the first allocator is listed.
 *
 * returns  whether the view is on; true if it was on before
 * fails    ENOMEM, also where RLIMIT_FSIZE is below the size of the file; ENOTSUP on a system without
 *          such files
 * threads  any; after a fork the child has no view until it calls this, or lists an allocator with
 *          TENURE_LIVE=1 */
TN_API bool tn_live_start(void) TN_SYMBOL(tn_live_start);

/* Ends the live view; a no-op when it is off.
 *
 * threads  any */
TN_API void tn_live_stop(void) TN_SYMBOL(tn_live_stop);

#ifdef __cplusplus
}
#endif
#endif
