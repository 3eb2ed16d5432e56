/* A snapshot for people: the table of all allocators, and the tree of scopes. */
#ifndef TENURE_TOP_TABLE_H
#define TENURE_TOP_TABLE_H

#include "reader.h"
#include "text.h"

typedef enum sort_key {
	SORT_NAME,
	SORT_ACTIVE,
	SORT_TOTAL,
	SORT_LIVE,
	SORT_CACHED,
	SORT_COMMITTED,
	SORT_GROWTH,
	SORT_COUNT,
} sort_key;

/* Names of the sort keys for options and people, and their letters, in the order of sort_key. */
extern const char *const sort_names[SORT_COUNT];
extern const char sort_letters[SORT_COUNT];

typedef struct table_options {
	sort_key sort;
	bool tree;
	size_t first;  /* rows to skip */
	size_t height; /* rows to show; 0: all */
} table_options;

/* As in tn_kind_name; "?" for a number that this version does not know. */
const char *kind_name(uint32_t kind);
const char *mode_name(uint64_t mode);
/* The name, or its substitute for an allocator without one. */
const char *row_name(const char *name);

enum { NO_ROW = UINT32_MAX };
/* The rows as a tree. Allocators below one parent are sorted. */
typedef struct tree {
	uint32_t *parent;       /* of each row; NO_ROW for roots */
	uint32_t *first, *next; /* first row below each row, and next row below the same parent */
	uint32_t root;
	uint64_t *subtree_bytes; /* committed by a row and everything below it */
} tree;
tree table_tree(const view *v, sort_key key);
void table_free_tree(tree *t);
/* The row after `row` when each row is written below its parent: one level down, or some up. */
uint32_t table_step(const tree *t, uint32_t row, unsigned *depth);

/* Memory nodes (NUMA) of which a row has memory: 1, or up to the highest such node. */
size_t table_nodes(const view *v);

/* A few lines about the process, then the table or tree. */
void table_header(text *t, const view *v);
void table_rows(text *t, const view *v, const table_options *options);

#endif
