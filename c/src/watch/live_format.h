/* The format of the live view's file. The process that writes it never reads it; others read it at any
 * time. Widths are fixed, so that any reader fits any process. The file consists of words, so that a
 * snapshot can be copied while the next one is written.
 *
 * One sequence lock (Lameter 2005): odd while a snapshot is written, 0 before the first. Every word is
 * stored with release and loaded with acquire: a reader that has loaded a word of a later snapshot then
 * sees that the sequence has changed. */
#ifndef TENURE_LIVE_FORMAT_H
#define TENURE_LIVE_FORMAT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <tenure/detail/kinds.h>

#include "../base/atomics.h"

/* Name of the file, as the system shows it among a process's open files; and its first bytes. */
#define TN_LIVE_NAME "tenure-live"
#define TN_LIVE_MAGIC "TNLIVE\r\n"

/* The version changes with every change of the structs below. */
enum {
	TN_LIVE_VERSION = 4,
	TN_LIVE_ROWS = 4096,
	TN_LIVE_TOTALS = 216,
	TN_LIVE_COUNTERS = 5,
	TN_LIVE_NODES = 8
};

/* The numbers of TN_MODE. */
enum { TN_LIVE_RELEASE, TN_LIVE_HARDENED, TN_LIVE_DEBUG };

/* A figure that is not known. */
#define TN_LIVE_UNKNOWN UINT64_MAX

/* Written once, before other processes can see the file. */
typedef struct tn_live_header {
	char magic[8];
	uint32_t version, header_bytes, row_bytes, row_max;
	uint64_t process;    /* as the process itself sees its number: a child may show the parent's file */
	uint64_t started_ms; /* when the view began; these and other times are of the monotonic clock */
	uint64_t mode;       /* TN_MODE */
} tn_live_header;

typedef struct tn_live_state {
	uint64_t taken_ms;       /* when the snapshot was taken */
	uint64_t row_count;      /* rows that follow */
	uint64_t left_out_count; /* allocators for which there was no row */
	uint64_t total_count;    /* rows of the totals */
	uint64_t resident_bytes; /* of memory that back the process; 0 when not known */
	char malloc_name[16];    /* "glibc", "jemalloc", "mimalloc"; "" when its figures are not known */
	/* Handed out; of pages with live blocks; taken from the system. */
	uint64_t malloc_allocated_bytes, malloc_active_bytes, malloc_held_bytes;
} tn_live_state;

/* The name of the total of all kinds' names for which there was no row. */
#define TN_LIVE_OTHERS "other"

/* Sums over all allocators of a kind and name since the view began, also those that have ended. A row
 * stays where it is while the view is on, and its counters do not fall. */
typedef struct tn_live_total {
	uint64_t kind;
	uint64_t counters[TN_LIVE_COUNTERS]; /* refills, resets, exchanges, foreign, waits */
	char name[32];
} tn_live_total;

/* A tn_listed. */
typedef struct tn_live_row {
	uint64_t id, parent_id, age_ms;
	uint32_t kind; /* tn_kind */
	uint32_t depth;
	uint64_t live_bytes, live_count, cached_bytes, reserved_bytes, committed_bytes, peak_bytes;
	uint64_t chunk_count, partial_count, refills, resets, slot_bytes, slot_count, partial_live_count;
	uint64_t thread_cached_bytes, waste_bytes, external_bytes, exchanges, foreign, waits;
	uint64_t node_bytes[TN_LIVE_NODES];
	char name[32], ident[64];
} tn_live_row;

typedef struct tn_live_file {
	tn_live_header header;
	uint64_t sequence;
	tn_live_state state;
	tn_live_total totals[TN_LIVE_TOTALS];
	tn_live_row rows[TN_LIVE_ROWS];
} tn_live_file;

static inline void tn_live_begin(tn_live_file *file) {
	tn_set(&file->sequence, file->sequence + 1, TN_RELAXED);
}

/* Copies `size` bytes, whole words, between begin and end. */
static inline void tn_live_store(void *to, const void *from, size_t size) {
	uint64_t word;
	for (size_t i = 0; i < size / sizeof word; i++) {
		memcpy(&word, (const char *)from + i * sizeof word, sizeof word);
		tn_set((uint64_t *)to + i, word, TN_RELEASE);
	}
}

static inline void tn_live_end(tn_live_file *file) {
	tn_set(&file->sequence, file->sequence + 1, TN_RELEASE);
}

static inline uint64_t tn_live_sequence(const tn_live_file *file) {
	return tn_get(&file->sequence, TN_ACQUIRE);
}

/* Copies words; they count only if the sequence was even, not 0, and the same before and after. */
static inline void tn_live_load(void *to, const void *from, size_t size) {
	uint64_t word;
	for (size_t i = 0; i < size / sizeof word; i++) {
		word = tn_get((const uint64_t *)from + i, TN_ACQUIRE);
		memcpy((char *)to + i * sizeof word, &word, sizeof word);
	}
}

#endif
