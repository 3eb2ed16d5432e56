/* tenure/stats.h: what memory costs, one allocator at a time and all of them.
 *
 * Four figures, never mixed: live (handed out), cached (free, kept), reserved (address space) and
 * committed (backed by memory; live and cached and Tenure's own records lie in it).
 *
 * An allocator that is given a name is listed: any thread can see it in a snapshot, watch it, or have
 * it shown to another process, while its owner goes on. Every root scope is listed, and under it all
 * that it owns. Owners publish their figures where they change chunks or magazines, never with each
 * call; what is in between is derived from the position that they write anyway. */
#ifndef TENURE_STATS_H
#define TENURE_STATS_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_stats {
	char name[TN_NAME_BYTES + 1];
	size_t live_bytes;      /* handed out, rounding and padding included */
	size_t live_count;      /* slots handed out; 0 where objects are not counted (arena) */
	size_t cached_bytes;    /* committed, not live, ready for the next alloc */
	size_t reserved_bytes;  /* address space held */
	size_t committed_bytes; /* taken from the source; of a reserved range, what has been committed */
	size_t peak_bytes;      /* the most live bytes seen on a slow path or in stats: sampled; of a pool,
	                           the most that was built */
	size_t chunk_count;     /* chunks held, the caller's buffer included */
	size_t partial_count;   /* slabs: chunks with both live and free slots; those in the magazines of a
	                           shared slab count as live; 0 elsewhere. In a snapshot of a slab as they
	                           were counted last: where magazines change, if a reader asked before */
	uint64_t refills;       /* times that a slow path brought in a chunk or filled a magazine */
	uint64_t resets;
	size_t slot_bytes;          /* of a slot; 0 where sizes differ */
	size_t slot_count;          /* slots that the chunks have room for; of a pool, objects that are
	                               built; 0 where sizes differ */
	size_t partial_live_count;  /* live slots in the partly used chunks: how full they are */
	size_t thread_cached_bytes; /* shared slab and pool: of cached, what lies in threads' magazines */
	size_t waste_bytes;    /* heap: of live, what rounding added, estimated from samples; 0 elsewhere */
	size_t external_bytes; /* scope: what it was told that others hold for it; in none of the others */
} tn_stats;

/* ---- all allocators ---- */

typedef enum tn_kind {
	TN_KIND_ARENA = 1,
	TN_KIND_SLAB,
	TN_KIND_SHARED_SLAB,
	TN_KIND_POOL,
	TN_KIND_HEAP,
	TN_KIND_SCOPE,
	TN_KIND_PAGES, /* the page layer: chunks that are kept warm for the next allocator */
} tn_kind;

/* What a kind is called.
 *
 * returns  "arena", "slab", "shared slab", "pool", "heap", "scope", "pages"; "?" for another number
 * threads  any */
TN_API const char *tn_kind_name(tn_kind kind) TN_SYMBOL(tn_kind_name);

#define TN_IDENT_BYTES 63

/* A listed allocator, as a snapshot found it. */
typedef struct tn_listed {
	tn_stats stats; /* its own, without what is below it */
	tn_kind kind;
	unsigned depth;     /* 0 for a root */
	uint64_t id;        /* of this allocator only, in this process; never 0 */
	uint64_t parent_id; /* 0 for a root */
	/* Since it took memory, or (a scope) got something below it; or the last reset, if that is later.
	 * What no owner has noted, a snapshot does: the reset of an arena that was inlined, the first chunk
	 * of a scope. */
	uint64_t age_ms;
	char ident[TN_IDENT_BYTES + 1]; /* of a scope: the query, the URL; "" without */
} tn_listed;

/* Visits every listed allocator, parents before what they own, newest first: figures as their owners
 * last published them, live bytes as of now. What comes or goes meanwhile may be missing; nothing is
 * seen twice. The page layer is the first.
 *
 * visit    returns whether to go on; may call anything, also what changes the tree
 * returns  how many were visited
 * threads  any; owners are not stopped
 * cost     about 0.1 us each; allocates nothing */
TN_API size_t tn_stats_snapshot(bool (*visit)(const tn_listed *listed, void *ctx), void *ctx)
	TN_SYMBOL(tn_stats_snapshot);

/* Gives back every warm chunk that Tenure keeps for the next allocator: the calling thread's and the
 * process's. Listed allocators are asked to trim what they keep, and do so where they next change
 * chunks or magazines.
 *
 * returns  bytes given back at once
 * threads  any; other threads' caches (at most 1.25 MiB each) go back when those threads exit
 * cost     one system call a chunk */
TN_API size_t tn_trim_all(void) TN_SYMBOL(tn_trim_all);

/* ---- silent failures ---- */

/* 0 takes the default. */
typedef struct tn_watch_options {
	unsigned interval_ms;   /* between two looks; default 1,000 */
	unsigned growing_ms;    /* an arena or scope that grows for so long without reset; default 60,000 */
	unsigned idle_ms;       /* a pool that keeps what a burst left, for so long; default 60,000 */
	unsigned slab_percent;  /* a slab that is less full than this, over growing_ms; default 25 */
	unsigned waste_percent; /* a heap of which rounding takes more than this; default 30 */
	size_t least_bytes;     /* committed bytes below which nothing is reported; default 256 KiB */
	void *ctx;              /* for the callback */
} tn_watch_options;

typedef enum tn_finding {
	TN_FOUND_GROWING = 1, /* arena, or scope with all below it: grows and is never reset */
	TN_FOUND_AT_BOUND,    /* pool: as much idle as it may keep, and objects are thrown away */
	TN_FOUND_IDLE,        /* pool: a burst's objects are still kept */
	TN_FOUND_SPARSE,      /* slab: chunks held for few objects */
	TN_FOUND_WASTE,       /* heap: sizes that fit no class well */
} tn_finding;

/* One line that says what was found, by name and with its figures, for a log.
 *
 * listed   the allocator as it was seen last; live and committed bytes of a scope with all below it
 * threads  called by the watching thread; may call anything but tn_watch */
typedef void (*tn_watch_callback)(
	tn_finding finding, const tn_listed *listed, const char *message, void *ctx);

/* Watches all listed allocators and reports each silent failure once per allocator: what grows without
 * reset, is kept without use, or is mostly rounding. One watch per process; a second call replaces the
 * first, a NULL callback ends it (and no callback runs after that returns).
 *
 * options  NULL for the defaults; read during the call only
 * returns  whether it is watching (or has ended)
 * fails    EINVAL for a percentage above 100; ENOMEM when there is no thread or memory, and ENOTSUP
 *          where there are no threads: then a watch that was on has ended
 * threads  any but the callback; after a fork the child is not watched
 * cost     a thread that sleeps, and a snapshot per interval */
TN_API bool tn_watch(const tn_watch_options *options, tn_watch_callback callback) TN_SYMBOL(tn_watch);

/* ---- the live view ---- */

/* Shows this process's snapshots to `tenure-top`, run by the same user: four times a second a thread
 * writes them into a sealed memory file that others can only read. No name, no port, nothing is ever
 * read from it. TENURE_LIVE=1 in the environment does the same when the first allocator is listed.
 *
 * returns  whether the view is on; true also when it was on
 * fails    ENOMEM; ENOTSUP where the system has no such file
 * threads  any; after a fork the child has no view until it calls this, or lists an allocator when
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
