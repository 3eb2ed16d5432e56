/* tenure/arena.h: objects that die together.
 *
 * An arena hands out memory by moving a cursor through a chunk, and takes all of it back in one call.
 * No call frees a single block (there is no tn_arena_free). Use an arena where the end of a request, a
 * document, a frame or a level is also the end of everything allocated for it. An arena grows by chunks
 * that double in size. A reset keeps them warm and starts again at the same first address.
 *
 * An arena is for one thread at a time. Threads may hand it over under a lock or a join; overlapping
 * calls are misuse (hardened and debug report them). */
#ifndef TENURE_ARENA_H
#define TENURE_ARENA_H

#include <string.h>

#include "base.h"
#include "detail/chunk_source.h"
#include "detail/hooks.h"
#include "stats.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All sizes are bytes; 0 takes the default. */
typedef struct tn_arena_options {
	const char *name;        /* shown in statistics and panics; a named arena is listed (stats.h) */
	size_t chunk_bytes;      /* the first chunk; default 64 KiB, rounded up to pages */
	size_t chunk_bytes_max;  /* chunks double up to this size; default 2 MiB; TN_NONE: no growth */
	size_t limit_bytes;      /* the most ever taken from the source; default: no limit */
	size_t retain_bytes;     /* chunk bytes kept at reset, always with the first chunk; default: the
	                            need of recent use; TN_NONE: the first chunk only */
	void *buffer;            /* the caller's storage, used before any chunk; must outlive the arena */
	size_t buffer_bytes;     /* size of the buffer */
	bool fixed;              /* never grow beyond the buffer or, without a buffer, the first chunk */
	size_t reserve_bytes;    /* one contiguous address range of this size in place of chunks,
	                            committed as it fills; excludes `buffer` and `source` */
	const tn_source *source; /* source of chunks; default: Tenure's page layer */
} tn_arena_options;

/* Private: the head of a chunk, or the description of the caller's buffer. */
typedef struct tn_arena_chunk {
	struct tn_arena_chunk *next;
	struct tn_arena_chunk *previous;
	char *begin;  /* first byte for blocks */
	char *limit;  /* end of the bytes for blocks */
	char *used;   /* position of the cursor when the next chunk became current */
	size_t bytes; /* taken from the source; 0 for the caller's buffer */
} tn_arena_chunk;

/* Private. Visible so that the bump is inlined and a caller can place the struct (tn_arena_init).
 * Written by the thread that calls the arena. */
typedef struct tn_arena {
	char *cursor;             /* next free byte, a multiple of 8 */
	char *limit;              /* end of the current chunk, a multiple of 16 */
	char *restart;            /* cursor after a reset, or NULL when reset has more to do */
	char *highest;            /* the furthest cursor before any return to restart */
	uint64_t resets;          /* remembered by a checkpoint, like depth */
	uint64_t depth;           /* marks since the reset, less those rewound past */
	tn_arena_chunk *current;  /* chunk of the cursor; later chunks are spare */
	tn_arena_chunk *first;    /* start of the chain */
	tn_arena_chunk *large;    /* blocks with a chunk of their own, newest first */
	tn_arena_chunk *home;     /* chunk that holds this struct; NULL after tn_arena_init */
	size_t before_bytes;      /* used in the chunks before current */
	size_t large_bytes;       /* used in the large blocks' chunks */
	size_t taken_bytes;       /* held from the source now */
	size_t taken_large_bytes; /* part of taken_bytes for large blocks */
	size_t reserved_bytes;    /* address space of the memory taken */
	size_t chunk_count, large_count;
	size_t recent_bytes; /* recent high-water mark of the chunk bytes used in one cycle */
	size_t peak_bytes;
	size_t chunk_bytes;
	size_t chunk_bytes_max;
	size_t limit_bytes;
	size_t retain_bytes;
	size_t reserve_bytes;
	tn_chunk_source source;
	uint64_t refills;
	void *newest;   /* debug: the record of the newest block */
	uintptr_t busy; /* hardened and debug: the thread inside a call, or 0 */
	uint32_t state;
	uint32_t trims; /* tn_trim_all, as often as it has obeyed */
	bool fixed;
	const char *kind;     /* its name in panics */
	const char *name;     /* its name in listings, or the kind */
	struct tn_node *node; /* its place in listings, or NULL */
	tn_arena_chunk buffer;
} tn_arena;

/* A position in an arena, from tn_arena_mark. Private; copy it freely. */
typedef struct tn_checkpoint {
	const tn_arena *arena;
	tn_arena_chunk *chunk;
	tn_arena_chunk *large;
	void *newest;
	size_t newest_size; /* debug: of the newest block, and of the newest with a chunk of its own */
	size_t large_size;
	char *large_used;
	char *cursor;
	uint64_t resets;
	uint64_t depth;
} tn_checkpoint;

/* Makes an arena in storage that the caller owns. The first chunk is taken when it is first needed.
 *
 * a        uninitialised storage; must not move until deinit
 * options  NULL for the defaults; read during the call only
 * returns  whether `a` is ready
 * fails    EINVAL as in tn_arena_create; ENOMEM when reserve_bytes cannot be had
 * threads  any */
TN_API bool tn_arena_init(tn_arena *a, const tn_arena_options *options) TN_SYMBOL(tn_arena_init);

/* Ends an arena made by tn_arena_init. Its storage is the caller's again.
 *
 * a        NULL is a no-op
 * threads  one at a time */
TN_API void tn_arena_deinit(tn_arena *a) TN_SYMBOL(tn_arena_deinit);

/* Makes an arena in the library's storage, at the start of its own first chunk.
 *
 * options  NULL for the defaults; read during the call only
 * returns  the arena, ready to alloc
 * fails    EINVAL for options that contradict each other or cannot be met; ENOMEM
 * threads  any
 * cost     in steady state neither a system call nor malloc */
TN_API tn_arena *tn_arena_create(const tn_arena_options *options) TN_SYMBOL(tn_arena_create);

/* Ends the arena and every block in it. Live blocks are no error: to drop them is its purpose.
 *
 * a        from tn_arena_create; NULL is a no-op
 * threads  one at a time
 * cost     O(chunks); no system call while the chunks stay warm */
TN_API void tn_arena_destroy(tn_arena *a) TN_SYMBOL(tn_arena_destroy);
TN_RELEASED_BY(tn_arena_destroy, 1, tn_arena *tn_arena_create(const tn_arena_options *options))

/* Not API: the part of tn_arena_alloc that aligns, grows, checks and refuses. */
TN_API void *tn_arena_alloc_slow(tn_arena *a, size_t size, size_t align) TN_SYMBOL(tn_arena_alloc_slow);

/* Not API: the part of tn_arena_alloc_zeroed for large blocks and products that wrap. */
TN_API void *tn_arena_alloc_zeroed_slow(tn_arena *a, size_t count, size_t size, size_t align)
	TN_SYMBOL(tn_arena_alloc_zeroed_slow);

/* Not API: the bump itself; false when the slow path is needed. */
TN_INLINE bool tn_arena_bump(tn_arena *a, size_t size, size_t align, void **block) {
	align = align == 0 ? 16 : align;
	/* A block takes at least 16 bytes. So the cursor shows whether a block is the last one, whichever
	 * of the two roundings it had (arena.c, I2). */
	size_t needed = size < 9 ? 9 : size;
	size_t grain = align < 16 ? 7 : 15;
	char *p = a->cursor;
	/* One test for a cursor out of alignment and for an alignment that is no power of two. */
	size_t skew = ((uintptr_t)p | align) & (align - 1);
	bool checked = tn_hook_checked() || align > TN_ALIGN_MAX;
	if (TN_UNLIKELY(checked || skew != 0 || needed > (size_t)(a->limit - p)))
		return false;
	/* Cannot wrap or pass the limit: with p on the grain, limit - p is a multiple of it. */
	a->cursor = p + ((needed + grain) & ~grain);
	*block = p;
	return true;
}

/* Allocates `size` bytes.
 *
 * size     bytes; 0 is valid and yields a unique pointer. A block of 9 bytes or less occupies 16; a
 *          larger one is rounded up to 8 (align up to 8) or to 16
 * align    bytes, a power of two up to TN_ALIGN_MAX; 0 means 16
 * returns  uninitialised memory, valid until rewind, reset or destroy
 * fails    EINVAL for a bad alignment; ENOMEM when the source has no more, at limit_bytes, or when a
 *          fixed arena is exhausted
 * threads  one at a time
 * cost     a bump: about ten instructions inlined; the slow path takes a chunk
 * cites    Hanson 1990, "Fast allocation and deallocation of memory based on object lifetimes" */
TN_INLINE void *tn_arena_alloc(tn_arena *a, size_t size, size_t align) {
	void *p;
	return TN_LIKELY(tn_arena_bump(a, size, align, &p)) ? p : tn_arena_alloc_slow(a, size, align);
}

/* Not API: alloc for TN_NEW and TN_NEW_ARRAY, zeroed, the product checked. Large blocks, and products
 * that wrap, take the slow path, which writes nothing to memory that is zero. */
TN_INLINE void *tn_arena_alloc_zeroed(tn_arena *a, size_t count, size_t size, size_t align) {
	if (TN_UNLIKELY(size != 0 && count > ((size_t)16 << 20) / size))
		return tn_arena_alloc_zeroed_slow(a, count, size, align);
	void *p = tn_arena_alloc(a, count * size, align);
	return p == NULL ? NULL : memset(p, 0, count * size);
}

#ifdef __cplusplus
#define TN_ALIGN_OF(T) alignof(T)
#else
#define TN_ALIGN_OF(T) _Alignof(T)
#endif

/* Allocates one zeroed T, or an array of `n`; NULL with ENOMEM, also for a product that wraps. */
#define TN_NEW(a, T) ((T *)tn_arena_alloc_zeroed((a), 1, sizeof(T), TN_ALIGN_OF(T)))
#define TN_NEW_ARRAY(a, T, n) ((T *)tn_arena_alloc_zeroed((a), (n), sizeof(T), TN_ALIGN_OF(T)))

/* Grows or shrinks a block in place.
 *
 * p         a live block of this arena
 * old_size  bytes, exactly as asked for
 * new_size  bytes
 * returns   true when the block now has new_size bytes: always when it does not grow, and when it is
 *           the last block and its chunk has room
 * fails     false without errno when it cannot stay; the block is unchanged
 * threads   one at a time
 * cost      O(1) */
TN_API bool tn_arena_resize(tn_arena *a, void *p, size_t old_size, size_t new_size)
	TN_SYMBOL(tn_arena_resize);

/* Resizes a block: in place if possible, else by allocating and copying. The old bytes of a block that
 * moved are not reused before reset.
 *
 * p         a live block, or NULL for a new one
 * old_size  bytes, exactly as asked for; 0 with NULL
 * align     as for alloc; also required of a block that stays
 * returns   the block, with the first min(old_size, new_size) bytes kept
 * fails     as alloc; the block is unchanged
 * threads   one at a time
 * cost      O(1) in place, else O(old_size) */
TN_API void *tn_arena_realloc(tn_arena *a, void *p, size_t old_size, size_t new_size, size_t align)
	TN_SYMBOL(tn_arena_realloc);

/* Not API: the part of tn_arena_reset for more than one chunk, and for hardened and debug. */
TN_API void tn_arena_reset_slow(tn_arena *a) TN_SYMBOL(tn_arena_reset_slow);

/* Forgets all blocks and keeps as much warm memory as retain_bytes says. In release the next alloc
 * returns the same first address again.
 *
 * threads  one at a time
 * cost     O(chunks given back); O(1) when one chunk was enough. Hardened wipes the used bytes, debug
 *          makes them inaccessible. */
TN_INLINE void tn_arena_reset(tn_arena *a) {
	char *restart = a->restart;
	if (TN_UNLIKELY(tn_hook_checked() || restart == NULL)) {
		tn_arena_reset_slow(a);
		return;
	}
	if (a->cursor > a->highest)
		a->highest = a->cursor;
	a->cursor = restart;
	a->depth = 0;
	a->resets++;
}

/* Gives back the chunks that hold no live block and no valid checkpoint.
 *
 * returns  bytes given back
 * threads  one at a time
 * cost     O(chunks given back) */
TN_API size_t tn_arena_trim(tn_arena *a) TN_SYMBOL(tn_arena_trim);

/* Remembers the current position.
 *
 * returns  the checkpoint, valid until a reset or a rewind to an earlier one
 * threads  one at a time
 * cost     O(1) */
TN_API tn_checkpoint tn_arena_mark(tn_arena *a) TN_SYMBOL(tn_arena_mark);

/* Forgets all blocks allocated since the mark. Chunks stay warm; a block with a chunk of its own goes
 * back. A block that has grown in place since the mark has its old size again. The checkpoint stays
 * valid.
 *
 * checkpoint  a valid one of this arena; anything else is misuse
 * threads     one at a time
 * cost        O(chunks since the mark) */
TN_API void tn_arena_rewind(tn_arena *a, tn_checkpoint checkpoint) TN_SYMBOL(tn_arena_rewind);

/* Copies `size` bytes into the arena, at alignment 1.
 *
 * p        may be NULL when size is 0
 * returns  the copy
 * fails    as alloc
 * threads  one at a time */
TN_API void *tn_arena_copy(tn_arena *a, const void *p, size_t size) TN_SYMBOL(tn_arena_copy);

/* Prints text into the arena.
 *
 * returns  the text with its NUL, exactly as long as needed
 * fails    EINVAL when the format cannot be printed, else as alloc
 * threads  one at a time
 * cost     one pass when the text fits the current chunk, else two */
TN_PRINTF(2, 3)
TN_API char *tn_arena_printf(tn_arena *a, const char *format, ...) TN_SYMBOL(tn_arena_printf);

/* Tells whether `p` points into memory that this arena has handed out and not taken back.
 *
 * threads  one at a time
 * cost     O(chunks); reads no memory at p */
TN_API bool tn_arena_owns(const tn_arena *a, const void *p) TN_SYMBOL(tn_arena_owns);

/* Fills `stats` with the current figures.
 *
 * threads  one at a time
 * cost     O(1) */
TN_API void tn_arena_stats(const tn_arena *a, tn_stats *stats) TN_SYMBOL(tn_arena_stats);

/* Walks every chunk and (debug) every block; panics at the first broken invariant.
 *
 * returns  true
 * threads  one at a time
 * cost     O(chunks), in debug O(blocks) */
TN_API bool tn_arena_verify(const tn_arena *a) TN_SYMBOL(tn_arena_verify);

#ifdef __cplusplus
}
#endif
#endif
