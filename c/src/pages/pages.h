/* The page layer: chunks of address space for every allocator, and the owner of each.
 *
 * Chunks are powers of two of pages, aligned to their size. Warm chunks (backed by memory already) are
 * kept for the next allocator: a few per thread, more per process. Chunks that were not needed lately
 * go back to the system. */
#ifndef TENURE_PAGES_H
#define TENURE_PAGES_H

#include <tenure/base.h>
#include <tenure/detail/chunk_source.h>
#include <tenure/stats.h>

#include "../base/os.h"
#include "limit.h"
#include "page_table.h"

/* Bounds of the warm cache, bytes. */
#define TN_PAGES_WARM_BYTES ((size_t)64 << 20)          /* process */
#define TN_PAGES_WARM_CHUNK_BYTES ((size_t)8 << 20)     /* larger chunks are never kept warm */
#define TN_PAGES_CLASS_BYTES_MAX ((size_t)16 << 20)     /* larger chunks are mapped alone */
#define TN_PAGES_THREAD_CHUNK_BYTES ((size_t)256 << 10) /* larger ones are not kept by a thread */

/* Takes a chunk of at least `size` bytes, aligned to at least `align`; its contents are undefined.
 *
 * size     bytes, more than 0
 * align    bytes, a power of two
 * returns  the chunk
 * fails    NULL with ENOMEM
 * threads  any
 * cost     no lock while the thread has a warm chunk of that size, no system call while the process has
 *          one */
void *tn_pages_acquire(size_t size, size_t align);

/* Takes pages that never go back, for what other threads may look at at any time. They are a mapping of
 * their own, so that no region is kept for them.
 *
 * fails  NULL with ENOMEM */
void *tn_pages_acquire_kept(size_t size);

/* Gives a chunk back.
 *
 * p, size, align  exactly as acquired
 * threads         any */
void tn_pages_release(void *p, size_t size, size_t align);

/* Address space that a chunk of `size` bytes takes up, after rounding; 0: more than there can be. */
static inline size_t tn_pages_reserved(size_t size, size_t align) {
	size_t whole = tn_max(size, align);
	if (whole > TN_PAGES_CLASS_BYTES_MAX)
		return size > PTRDIFF_MAX - TN_OS_PAGE ? 0 : tn_round_up(size, TN_OS_PAGE);
	size_t bits = 8 * sizeof(unsigned long long) - (size_t)__builtin_clzll(whole | 1);
	size_t power = (size_t)1 << bits;
	return whole <= TN_OS_PAGE ? TN_OS_PAGE : (whole & (whole - 1)) == 0 ? whole : power;
}

/* The memory node to which a chunk belongs that tn_pages_acquire returned: chunks of one node come back
 * to that node. */
size_t tn_pages_node_of(const void *p);

/* Writes the side table: the owner of the chunk that begins at `base`, for those owners that are looked
 * up by pointer (tn_pages_owner).
 *
 * fails    false when the table has no room for this address; never when `owner` is NULL
 * threads  any; for one base, the hand-over of the chunk orders the calls */
bool tn_pages_set_owner(void *base, void *owner);

/* Whether an option may name this source. */
static inline bool tn_chunk_source_valid(const tn_source *source) {
	return source == NULL || (source->acquire != NULL && source->release != NULL);
}

/* Chunks from the source that an option names, or from the page layer; they are charged to no account.
 * */
static inline tn_chunk_source tn_chunks_from(const tn_source *source) {
	tn_chunk_source chunks = {{NULL, NULL, NULL}, NULL};
	if (source != NULL)
		chunks.from = *source;
	return chunks;
}

/* Takes a chunk from a source, and charges its account.
 *
 * fails    NULL with ENOMEM, when the source has none or a limit refuses it */
void *tn_chunk_acquire(const tn_chunk_source *source, size_t size, size_t align);

/* Gives a chunk back, exactly as acquired; `source` may lie in it. */
void tn_chunk_release(const tn_chunk_source *source, void *p, size_t size, size_t align);

/* Whether a source's chunks are the page layer's: theirs can be protected, and have entries in the
 * table for every page. */
static inline bool tn_chunk_is_paged(const tn_chunk_source *source) {
	return source->from.acquire == NULL;
}

/* Whether a chunk of so many bytes is a mapping of its own: then it comes as zeros that take no memory,
 * and goes back to the system. */
static inline bool tn_chunk_is_alone(const tn_chunk_source *source, size_t bytes) {
	return tn_chunk_is_paged(source) && bytes > TN_PAGES_CLASS_BYTES_MAX;
}

/* Whether a chunk from a source is memory of another allocator that is looked up by pointer: the table
 * has one owner for an address. */
static inline bool tn_chunk_is_owned(const tn_chunk_source *source, const void *chunk) {
	return !tn_chunk_is_paged(source) && tn_pages_is_entered((uintptr_t)chunk);
}

/* Whether a limit refused the last chunk: there may be room for a smaller one. */
static inline bool tn_chunk_is_at_limit(const tn_chunk_source *source) {
	return source->account != NULL && source->account->refused;
}

/* Gives back what the calling thread and the process keep warm; in bytes. */
size_t tn_pages_trim(void);

/* Gives back the warm chunks that were not needed for half a second; returns the bytes that stay. */
size_t tn_pages_age(void);

/* Called once when memory becomes idle: a chunk is kept warm, or a depot gets slots. NULL: none. */
extern TN_ATOMIC(uintptr_t) tn_pages_on_idle;
void tn_pages_call_on_idle(void);
static inline void tn_pages_tell_idle(void) {
	if (TN_UNLIKELY(tn_get(&tn_pages_on_idle, TN_RELAXED) != 0))
		tn_pages_call_on_idle();
}

/* The figures of the page layer itself: cached_bytes is what the process keeps warm. */
void tn_pages_stats(tn_stats *stats);

/* The index of the first of `count` slots that lies in no chunk of `owner`, or `count`. Neighbours
 * mostly lie in one chunk: then eight addresses differ from the chunk's only in the low bits, and one
 * branch sees that. */
static inline size_t tn_pages_first_foreign(
	const void *owner, void *const *slots, size_t count, size_t chunk_bytes) {
	const size_t run = 8;
	uintptr_t known = 1; /* not the base of any chunk */
	for (size_t i = 0; i < count; i += run) {
		size_t here = count - i < run ? count - i : run;
		uintptr_t differences = 0;
		for (size_t k = 0; k < here; k++)
			differences |= (uintptr_t)slots[i + k] ^ known;
		for (size_t k = 0; differences >= chunk_bytes && k < here; k++) {
			uintptr_t base = (uintptr_t)slots[i + k] & ~(uintptr_t)(chunk_bytes - 1);
			if (base != known && tn_pages_owner(base) != owner)
				return i + k;
			known = base;
		}
	}
	return count;
}

#endif
