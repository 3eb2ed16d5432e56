/* The page layer's side table: from a chunk's address to its owner, in two steps. Its entries are
 * explained in pages.c; here so that the look-up is inlined. */
#ifndef TENURE_TABLE_H
#define TENURE_TABLE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum {
	TN_TABLE_PAGE_BITS = 12,
	TN_TABLE_LEAF_BITS = 28, /* a leaf covers 256 MiB of addresses */
#if defined(__x86_64__)
	TN_TABLE_ADDRESS_BITS = 47,
#else
	TN_TABLE_ADDRESS_BITS = sizeof(void *) == 8 ? 48 : 32,
#endif
};
typedef _Atomic(uintptr_t) tn_table_entry;
extern _Atomic(tn_table_entry *) tn_table[(size_t)1 << (TN_TABLE_ADDRESS_BITS - TN_TABLE_LEAF_BITS)];

static inline tn_table_entry *tn_table_at(uintptr_t base) {
	if (base >> TN_TABLE_LEAF_BITS >= sizeof tn_table / sizeof tn_table[0])
		return NULL;
	/* Pairs with the release in add_leaf: whoever sees the leaf sees it mapped. */
	tn_table_entry *leaf =
		atomic_load_explicit(&tn_table[base >> TN_TABLE_LEAF_BITS], memory_order_acquire);
	size_t index = (base & (((uintptr_t)1 << TN_TABLE_LEAF_BITS) - 1)) >> TN_TABLE_PAGE_BITS;
	return leaf == NULL ? NULL : &leaf[index];
}

/* The owner of the chunk that begins at `base`, which may be any value: nothing behind it is read. NULL
 * when there is none. */
static inline void *tn_pages_owner(uintptr_t base) {
	tn_table_entry *e = tn_table_at(base);
	uintptr_t owner = e == NULL ? 0 : atomic_load_explicit(e, memory_order_relaxed);
	return (owner & 1) != 0 ? NULL : (void *)owner;
}

/* The first of `count` slots that lies in no chunk of `owner`, or `count`. Neighbours mostly lie in one
 * chunk: then eight of them differ from its address only in the low bits, which is seen without a
 * branch for each. */
static inline size_t tn_first_foreign(
	const void *owner, void *const *slots, size_t count, size_t chunk_bytes) {
	enum { RUN = 8 };
	uintptr_t known = 1; /* not the base of any chunk */
	for (size_t i = 0; i < count; i += RUN) {
		size_t here = count - i < RUN ? count - i : RUN;
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
