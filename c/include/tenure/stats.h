/* tenure/stats.h: one snapshot struct for every allocator.
 *
 * Four figures, never mixed: live (handed out), cached (free, kept), reserved (address space) and
 * committed (backed by memory; live and cached and Tenure's own records lie in it). */
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
	                           shared slab count as live; 0 elsewhere */
	uint64_t refills;       /* times that a slow path brought in a chunk or filled a magazine */
	uint64_t resets;
} tn_stats;

/* Gives back every warm chunk that Tenure keeps for the next allocator: the calling thread's and the
 * process's. What live allocators hold is theirs to trim.
 *
 * returns  bytes given back
 * threads  any; other threads' caches (at most 1.25 MiB each) go back when those threads exit
 * cost     one system call a chunk */
TN_API size_t tn_trim_all(void) TN_SYMBOL(tn_trim_all);

#ifdef __cplusplus
}
#endif
#endif
