/* The kinds of listed allocators, one line each: constant, number, name, and the finding that tn_watch
 * looks for; 0: none. stats.h, the listing, the watch, the live view and tenure-top take them from
 * here. */
#ifndef TENURE_DETAIL_KINDS_H
#define TENURE_DETAIL_KINDS_H

#define TN_KINDS(KIND)                                                                                 \
	KIND(TN_KIND_ARENA, 1, "arena", TN_FOUND_GROWING)                                                  \
	KIND(TN_KIND_SLAB, 2, "slab", TN_FOUND_SPARSE)                                                     \
	KIND(TN_KIND_SHARED_SLAB, 3, "shared slab", TN_FOUND_SPARSE)                                       \
	KIND(TN_KIND_POOL, 4, "pool", TN_FOUND_IDLE) /* and TN_FOUND_AT_BOUND */                           \
	KIND(TN_KIND_HEAP, 5, "heap", TN_FOUND_WASTE)                                                      \
	KIND(TN_KIND_SCOPE, 6, "scope", TN_FOUND_GROWING)                                                  \
	KIND(TN_KIND_PAGES, 7, "pages", 0) /* the page layer: chunks kept for the next allocator */

#define TN_KIND_CONSTANT(constant, number, name, finding) constant = number,
typedef enum tn_kind { TN_KINDS(TN_KIND_CONSTANT) } tn_kind;

/* In a switch over a number of a kind: returns its name. */
#define TN_KIND_NAME(constant, number, name, finding)                                                  \
	case constant:                                                                                     \
		return name;

#endif
