/* The side table of the page layer: from a chunk's address to its owner, in two steps. pages.c explains
 * its entries; the look-up is here, to be inlined. */
#ifndef TENURE_PAGE_TABLE_H
#define TENURE_PAGE_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "../base/atomics.h"

enum {
	TN_TABLE_PAGE_BITS = 12,
	TN_TABLE_LEAF_BITS = 28, /* a leaf covers 256 MiB of addresses */
	TN_TABLE_UNIT_BITS = 24, /* of which 16 MiB each belong to one memory node */
#if defined(__x86_64__)
	TN_TABLE_ADDRESS_BITS = 47,
#else
	TN_TABLE_ADDRESS_BITS = sizeof(void *) == 8 ? 48 : 32,
#endif
};
typedef uintptr_t tn_table_entry;
extern tn_table_entry *tn_table[(size_t)1 << (TN_TABLE_ADDRESS_BITS - TN_TABLE_LEAF_BITS)];

static inline tn_table_entry *tn_table_at(uintptr_t base) {
	if (base >> TN_TABLE_LEAF_BITS >= sizeof tn_table / sizeof tn_table[0])
		return NULL;
	/* Pairs with the release in table_add_leaf: a thread that sees the leaf sees it mapped. */
	tn_table_entry *leaf = tn_get(&tn_table[base >> TN_TABLE_LEAF_BITS], TN_ACQUIRE);
	size_t index = (base & (((uintptr_t)1 << TN_TABLE_LEAF_BITS) - 1)) >> TN_TABLE_PAGE_BITS;
	return leaf == NULL ? NULL : &leaf[index];
}

/* A leaf has as many entries as pages, and after these a byte for each unit: its memory node. Pages
 * that hold zeros only take no memory. */
static inline TN_ATOMIC(uint8_t) * tn_table_node_at(uintptr_t base) {
	tn_table_entry *leaf = tn_table_at(base >> TN_TABLE_LEAF_BITS << TN_TABLE_LEAF_BITS);
	size_t unit = (base & (((uintptr_t)1 << TN_TABLE_LEAF_BITS) - 1)) >> TN_TABLE_UNIT_BITS;
	const size_t entries = (size_t)1 << (TN_TABLE_LEAF_BITS - TN_TABLE_PAGE_BITS);
	return leaf == NULL ? NULL : (TN_ATOMIC(uint8_t) *)(leaf + entries) + unit;
}

/* The owner of the chunk that begins at `base`, or NULL. `base` may be any value: nothing behind it is
 * read. */
static inline void *tn_pages_owner(uintptr_t base) {
	tn_table_entry *e = tn_table_at(base);
	uintptr_t owner = e == NULL ? 0 : tn_get(e, TN_RELAXED);
	return (owner & 1) != 0 ? NULL : (void *)owner;
}

/* Whether the table has an entry for the page at `base`. */
static inline bool tn_pages_is_entered(uintptr_t base) {
	tn_table_entry *e = tn_table_at(base);
	return e != NULL && tn_get(e, TN_RELAXED) != 0;
}

#endif
