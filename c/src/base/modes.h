/* Parts that all allocators share inside the library. Most belong to hardened and debug: in release
 * they compile to nothing, or are never called. */
#ifndef TENURE_MODES_H
#define TENURE_MODES_H

#include <string.h>

#include <tenure/detail/hooks.h>

#include "atomics.h"
#include "bits.h"
#include "os.h"
#include "panic.h"

enum {
	TN_FILL_FRESH = 0xcd, /* debug: handed out, never written */
	TN_FILL_DEAD = 0xdd,  /* debug: freed */
	TN_FILL_FENCE = 0xfd, /* debug: around a block */
	TN_FENCE_BYTES = 16,
	TN_FILL_BYTES_MAX = 16 << 20, /* debug: of a fresh block; a sparse one must not take all memory */
	TN_WIPE_SLOT_BYTES = 128,     /* hardened: the largest slot that is wiped without a call */
	TN_ALIVE = 0x7e404e1,
	TN_DEAD = 0xdead,
};

/* The address that the calling API function returns to. */
#define TN_CALLER __builtin_return_address(0)

/* For a call that only reads: panics when a thread is inside. */
static inline void tn_look(
	const uintptr_t *busy, const char *kind, const char *name, const char *operation) {
	if (TN_MODE == TN_MODE_RELEASE)
		return;
	uintptr_t other = tn_get(busy, TN_RELAXED);
	if (TN_UNLIKELY(other != 0))
		tn_busy_panic(kind, name, operation, other);
}

/* One caller at a time: notes in `busy` the thread that is inside, and panics when there was one. Debug
 * sees every overlap; hardened, without an atomic exchange, nearly every one. */
static inline void tn_enter(
	uintptr_t *busy, const char *kind, const char *name, const char *operation) {
	if (TN_MODE == TN_MODE_HARDENED) {
		tn_look(busy, kind, name, operation);
		tn_set(busy, 1, TN_RELAXED);
	}
	if (TN_MODE != TN_MODE_DEBUG)
		return;
	uintptr_t other = tn_swap(busy, tn_os_thread(), TN_RELAXED);
	if (TN_UNLIKELY(other != 0))
		tn_busy_panic(kind, name, operation, other);
}

static inline void tn_leave(uintptr_t *busy) {
	if (TN_MODE != TN_MODE_RELEASE)
		tn_set(busy, 0, TN_RELAXED);
}

/* Overwrites memory that its user has given up. */
static inline void tn_wipe(void *p, size_t size) {
	if (size == 0)
		return;
	if (TN_MODE == TN_MODE_HARDENED)
		memset(p, 0, size);
	if (TN_MODE == TN_MODE_DEBUG)
		memset(p, TN_FILL_DEAD, size);
}

/* Debug: fills a block that is handed out. */
static inline void tn_fill_fresh(void *p, size_t size) {
	memset(p, TN_FILL_FRESH, tn_min(size, TN_FILL_BYTES_MAX));
}

/* A small slot is wiped in a few stores; a call of memset would cost more than all of the checks. */
TN_INLINE void tn_wipe_slot(void *p, size_t size) {
	typedef struct two_words {
		uint64_t low, high;
	} two_words;
	if (TN_MODE != TN_MODE_HARDENED || size > TN_WIPE_SLOT_BYTES || size % sizeof(two_words) != 0) {
		tn_wipe(p, size);
		return;
	}
	for (two_words *words = p, *end = words + size / sizeof *words; words < end; words++) {
		*words = (two_words){0, 0};
		__asm__ volatile("" ::: "memory"); /* otherwise the compiler makes it a memset again */
	}
}

/* An option of which 0 asks for the default, and TN_NONE for nothing. */
static inline size_t tn_option(size_t asked, size_t otherwise) {
	return asked == 0 ? otherwise : asked == TN_NONE ? 0 : asked;
}

/* Copies an allocator's name, cut to what fits. */
static inline void tn_copy_name(char to[TN_NAME_BYTES + 1], const char *name, const char *none) {
	if (name == NULL) {
		memcpy(to, none, strlen(none) + 1);
		return;
	}
	size_t size = 0;
	while (size < TN_NAME_BYTES && name[size] != '\0')
		size++;
	memcpy(to, name, size);
	to[size] = '\0';
}

/* The offset of the first byte of [p, p + size) that is not `fill`, or `size`. */
static inline size_t tn_first_change(const void *p, size_t size, unsigned char fill) {
	const unsigned char *bytes = p;
	size_t i = 0;
	while (i < size && bytes[i] == fill)
		i++;
	return i;
}

#endif
