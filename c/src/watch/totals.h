/* Counters that never fall: sums over all allocators of a kind and name, also those that ended. */
#ifndef TENURE_TOTALS_H
#define TENURE_TOTALS_H

#include <tenure/stats.h>

#include "live_format.h"

typedef struct tn_totals_entry {
	uint64_t id; /* 0: none */
	uint64_t counters[TN_LIVE_COUNTERS];
} tn_totals_entry;

/* The counters of each allocator at one look. */
typedef struct tn_totals_look {
	tn_totals_entry *entries;
	size_t capacity, count; /* a power of two; at most half of it used */
	bool lost;              /* there was no entry for some allocator */
} tn_totals_look;

/* Of one thread. Zeros are empty. */
typedef struct tn_totals {
	tn_live_total rows[TN_LIVE_TOTALS]; /* names as they came first; then all others, by kind */
	size_t names, count;
	tn_totals_look before, now;
} tn_totals;

/* Begins a look, in which every allocator is added once. The counts of an allocator between its last
 * look and its end are lost, and so is an allocator that lived between two looks. */
void tn_totals_begin(tn_totals *t);
void tn_totals_add(tn_totals *t, const tn_listed *listed);
/* Gives the memory back, and empties it. */
void tn_totals_end(tn_totals *t);

#endif
