#define _GNU_SOURCE
#include "table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const char *const sort_names[SORT_COUNT] = {
	"name", "active", "total", "live", "cached", "committed", "growth"};
const char sort_letters[SORT_COUNT] = {'n', 'a', 'o', 'l', 'h', 'c', 'g'};

enum { NAME_LEAST = 16, NAME_MOST = 40, TREE_MOST = 60, INDENTS = 16 };

const char *kind_name(uint32_t kind) {
	switch (kind) { TN_KINDS(TN_KIND_NAME) }
	return "?";
}

const char *mode_name(uint64_t mode) {
	static const char *const names[] = {
		[TN_LIVE_RELEASE] = "release", [TN_LIVE_HARDENED] = "hardened", [TN_LIVE_DEBUG] = "debug"};
	return mode < sizeof names / sizeof names[0] ? names[mode] : "?";
}

const char *row_name(const char *name) {
	return name[0] != '\0' ? name : "-";
}

/* ---- the tree ---- */

static const view *compared;           /* qsort has no context */
static const uint64_t *compared_bytes; /* committed; NULL: of each row alone */
static sort_key compared_by;

static int by_id(const void *a, const void *b) {
	uint64_t one = compared->rows[*(const uint32_t *)a].id,
			 other = compared->rows[*(const uint32_t *)b].id;
	return one < other ? -1 : one > other;
}

/* A figure to sort by. Falling allocators come behind those that stand still. */
static uint64_t key_of(uint32_t i) {
	const tn_live_row *row = &compared->rows[i];
	switch (compared_by) {
	case SORT_ACTIVE:
		return row->live_count;
	case SORT_TOTAL:
		return row->slot_count;
	case SORT_LIVE:
		return row->live_bytes;
	case SORT_CACHED:
		return row->cached_bytes;
	case SORT_GROWTH:
		return (uint64_t)compared->growth[i] + (UINT64_MAX / 2 + 1);
	default:
		return compared_bytes != NULL ? compared_bytes[i] : row->committed_bytes;
	}
}

/* Sorts names ascending and figures descending, then in the order of the snapshot. */
static int by_key(const void *a, const void *b) {
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	int names = compared_by == SORT_NAME ? strcmp(compared->rows[i].name, compared->rows[k].name) : 0;
	if (names != 0)
		return names;
	uint64_t one = key_of(i), other = key_of(k);
	return one != other ? (one < other) - (one > other) : i < k ? -1 : i > k;
}

static uint32_t *sorted(
	const view *v, sort_key key, const uint64_t *bytes, int (*compare)(const void *, const void *)) {
	size_t count = v->state.row_count;
	uint32_t *order = need(calloc(count + 1, sizeof *order));
	for (uint32_t i = 0; i < count; i++)
		order[i] = i;
	compared = v;
	compared_bytes = bytes;
	compared_by = key;
	qsort(order, count, sizeof *order, compare);
	return order;
}

static uint32_t find_id(const view *v, const uint32_t *ids, uint64_t id) {
	size_t low = 0, high = v->state.row_count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (v->rows[ids[middle]].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < v->state.row_count && v->rows[ids[low]].id == id ? ids[low] : NO_ROW;
}

/* A row belongs below its parent only if the parent comes first, so no row can be below itself. */
tree table_tree(const view *v, sort_key key) {
	size_t count = v->state.row_count;
	tree t = {need(calloc(count + 1, sizeof *t.parent)), need(calloc(count + 1, sizeof *t.first)),
		need(calloc(count + 1, sizeof *t.next)), NO_ROW,
		need(calloc(count + 1, sizeof *t.subtree_bytes))};
	uint32_t *ids = sorted(v, key, NULL, by_id);
	for (uint32_t i = 0; i < count; i++) {
		t.parent[i] = v->rows[i].parent_id == 0 ? NO_ROW : find_id(v, ids, v->rows[i].parent_id);
		if (t.parent[i] != NO_ROW && t.parent[i] >= i)
			t.parent[i] = NO_ROW;
		t.first[i] = NO_ROW;
	}
	for (size_t i = count; i > 0; i--) {
		uint32_t row = (uint32_t)i - 1, parent = t.parent[row];
		t.subtree_bytes[row] += v->rows[row].committed_bytes;
		if (parent != NO_ROW)
			t.subtree_bytes[parent] += t.subtree_bytes[row];
	}
	uint32_t *order = sorted(v, key, t.subtree_bytes, by_key);
	for (size_t i = count; i > 0; i--) {
		uint32_t row = order[i - 1], parent = t.parent[row];
		uint32_t *head = parent == NO_ROW ? &t.root : &t.first[parent];
		t.next[row] = *head;
		*head = row;
	}
	free(ids);
	free(order);
	return t;
}

void table_free_tree(tree *t) {
	free(t->parent);
	free(t->first);
	free(t->next);
	free(t->subtree_bytes);
}

uint32_t table_step(const tree *t, uint32_t row, unsigned *depth) {
	if (t->first[row] != NO_ROW) {
		++*depth;
		return t->first[row];
	}
	while (row != NO_ROW && t->next[row] == NO_ROW) {
		row = t->parent[row];
		--*depth;
	}
	return row == NO_ROW ? NO_ROW : t->next[row];
}

/* ---- columns ---- */

typedef struct cells {
	const tn_live_row *row;
	uint64_t subtree_bytes;
	const int64_t *growth; /* live bytes in a second; NULL: not known */
} cells;

static cells cells_of(const view *v, uint32_t row, uint64_t subtree_bytes) {
	return (cells){&v->rows[row], subtree_bytes, v->growth_ms != 0 ? &v->growth[row] : NULL};
}

/* Writes a count of objects, or a dash for an allocator that does not count them. */
static void objects(char out[SHORT], const tn_live_row *row, uint64_t count) {
	if (row->slot_bytes == 0)
		strcpy(out, "-");
	else
		short_count(out, count);
}

static uint64_t slots_per_chunk(const tn_live_row *row) {
	return row->chunk_count == 0 ? 0 : row->slot_count / row->chunk_count;
}

/* Chunks with live slots: the partly used ones, and as many as the other live slots need. Slots in
 * threads' magazines count as live here. */
static uint64_t active_chunks(const tn_live_row *row) {
	uint64_t per_chunk = slots_per_chunk(row);
	if (per_chunk == 0 || row->slot_bytes == 0)
		return 0;
	uint64_t used = row->live_count + row->thread_cached_bytes / row->slot_bytes;
	uint64_t others = used > row->partial_live_count ? used - row->partial_live_count : 0;
	uint64_t active = row->partial_count + others / per_chunk + (others % per_chunk != 0);
	return active < row->chunk_count ? active : row->chunk_count;
}

static void cell_active(char out[SHORT], const cells *c) {
	objects(out, c->row, c->row->live_count);
}
static void cell_total(char out[SHORT], const cells *c) {
	objects(out, c->row, c->row->slot_count);
}
static void cell_use(char out[SHORT], const cells *c) {
	double percent = 100 * (double)c->row->live_count / (double)c->row->slot_count;
	if (c->row->slot_count == 0)
		strcpy(out, "-");
	else
		snprintf(out, SHORT, "%.0f%%", percent < 999 ? percent : 999);
}
static void cell_slot(char out[SHORT], const cells *c) {
	objects(out, c->row, c->row->slot_bytes);
}
static void cell_per_chunk(char out[SHORT], const cells *c) {
	objects(out, c->row, slots_per_chunk(c->row));
}
static void cell_chunks(char out[SHORT], const cells *c) {
	short_count(out, c->row->chunk_count);
}
static void cell_active_chunks(char out[SHORT], const cells *c) {
	objects(out, c->row, active_chunks(c->row));
}
static void cell_partial(char out[SHORT], const cells *c) {
	objects(out, c->row, c->row->partial_count);
}
static void cell_threads(char out[SHORT], const cells *c) {
	if (c->row->kind != TN_KIND_SHARED_SLAB && c->row->kind != TN_KIND_POOL)
		strcpy(out, "-");
	else
		short_bytes(out, c->row->thread_cached_bytes);
}
static void cell_live(char out[SHORT], const cells *c) {
	short_bytes(out, c->row->live_bytes);
}
static void cell_cached(char out[SHORT], const cells *c) {
	short_bytes(out, c->row->cached_bytes);
}
static void cell_committed(char out[SHORT], const cells *c) {
	short_bytes(out, c->row->committed_bytes);
}
static void cell_growth(char out[SHORT], const cells *c) {
	if (c->growth == NULL)
		strcpy(out, "-");
	else
		short_change(out, *c->growth);
}
static void cell_waste(char out[SHORT], const cells *c) {
	if (c->row->slot_bytes == 0 && c->row->kind != TN_KIND_HEAP)
		strcpy(out, "-");
	else
		short_bytes(out, c->row->waste_bytes);
}
static void cell_peak(char out[SHORT], const cells *c) {
	short_bytes(out, c->row->peak_bytes);
}
static void cell_subtree(char out[SHORT], const cells *c) {
	short_bytes(out, c->subtree_bytes);
}
static void cell_external(char out[SHORT], const cells *c) {
	short_bytes(out, c->row->external_bytes);
}
static void cell_resets(char out[SHORT], const cells *c) {
	short_count(out, c->row->resets);
}
static void cell_age(char out[SHORT], const cells *c) {
	if (c->row->age_ms == 0 && c->row->chunk_count == 0)
		strcpy(out, "-");
	else
		short_time(out, c->row->age_ms);
}

/* The key of a column that the table cannot be sorted by. */
enum { UNSORTED = SORT_COUNT };

typedef struct column {
	const char *title;
	unsigned width;
	unsigned rank; /* the greatest goes first when the terminal is too narrow */
	unsigned key;
	void (*write)(char out[SHORT], const cells *c);
} column;

static const column table_columns[] = {
	{"ACTIVE", 8, 4, SORT_ACTIVE, cell_active},
	{"TOTAL", 8, 5, SORT_TOTAL, cell_total},
	{"USE", 6, 7, UNSORTED, cell_use},
	{"OBJSIZE", 9, 6, UNSORTED, cell_slot},
	{"OBJ/SLAB", 10, 13, UNSORTED, cell_per_chunk},
	{"SLABS", 8, 8, UNSORTED, cell_chunks},
	{"ACTIVE-SLABS", 14, 14, UNSORTED, cell_active_chunks},
	{"PARTIAL", 9, 12, UNSORTED, cell_partial},
	{"IN-THREADS", 12, 11, UNSORTED, cell_threads},
	{"WASTE", 8, 10, UNSORTED, cell_waste},
	{"LIVE", 9, 0, SORT_LIVE, cell_live},
	{"GROWTH/S", 10, 2, SORT_GROWTH, cell_growth},
	{"CACHED", 9, 3, SORT_CACHED, cell_cached},
	{"COMMITTED", 11, 0, SORT_COMMITTED, cell_committed},
	{"PEAK", 9, 9, UNSORTED, cell_peak},
	{"AGE", 8, 1, UNSORTED, cell_age},
};
static const column tree_columns[] = {
	{"LIVE", 9, 0, SORT_LIVE, cell_live},
	{"GROWTH/S", 10, 2, SORT_GROWTH, cell_growth},
	{"CACHED", 9, 4, SORT_CACHED, cell_cached},
	{"COMMITTED", 11, 0, SORT_COMMITTED, cell_committed},
	{"WITH-BELOW", 12, 3, UNSORTED, cell_subtree},
	{"CHUNKS", 8, 6, UNSORTED, cell_chunks},
	{"PEAK", 9, 5, UNSORTED, cell_peak},
	{"EXTERNAL", 10, 8, UNSORTED, cell_external},
	{"RESETS", 9, 7, UNSORTED, cell_resets},
	{"AGE", 8, 1, UNSORTED, cell_age},
};

enum {
	COLUMNS = sizeof table_columns / sizeof table_columns[0],
	KIND_WIDTH = 13,
	RANKS = 16,
	RANK_KEPT = 2,
	FIRST_WIDTH = 51
};

typedef struct layout {
	const column *shown[COLUMNS];
	size_t count;
	unsigned name_width;
} layout;

/* Columns of the longest name and ident, within limits. */
static unsigned name_width(const text *t, const view *v, bool tree_wanted) {
	unsigned most = tree_wanted ? TREE_MOST : NAME_MOST, width = NAME_LEAST;
	/* At 80 columns there is room for the first ranks. */
	if (t->width != 0 && t->width < FIRST_WIDTH + most)
		most = t->width < FIRST_WIDTH + NAME_LEAST ? NAME_LEAST : t->width - FIRST_WIDTH;
	for (size_t i = 0; i < v->state.row_count && width < most; i++) {
		const tn_live_row *row = &v->rows[i];
		text name = {.width = 1};
		text_safe(&name, row_name(row->name), most);
		if (row->ident[0] != '\0')
			name.column++, text_safe(&name, row->ident, most);
		if (tree_wanted)
			name.column += 3 * (row->depth < INDENTS ? row->depth : INDENTS);
		width = name.column > width ? name.column : width;
		text_free(&name);
	}
	return width < most ? width : most;
}

/* The rank of a column, raised when the figure is not known of any row, or of less than half of them.
 * The ranks that a narrow terminal keeps stay. */
static unsigned rank_of(const column *column, const view *v) {
	size_t dashes = 0, count = v->state.row_count;
	if (column->rank <= RANK_KEPT)
		return column->rank;
	for (uint32_t i = 0; i < count; i++) {
		char out[SHORT];
		cells c = cells_of(v, i, 0);
		column->write(out, &c);
		dashes += strcmp(out, "-") == 0;
	}
	return column->rank + (dashes == count ? 2 * RANKS : dashes > count / 2 ? RANKS : 0);
}

/* Chooses all columns, or as many as fit beside the names: those with dashes go first. Growth is
 * shown when it is known. */
static layout lay_out(const text *t, const view *v, bool tree_wanted) {
	layout l = {.name_width = name_width(t, v, tree_wanted)};
	const column *all = tree_wanted ? tree_columns : table_columns;
	size_t count = tree_wanted ? sizeof tree_columns / sizeof tree_columns[0] : COLUMNS;
	unsigned ranks[COLUMNS], rank = UINT32_MAX, width;
	for (size_t i = 0; i < count; i++)
		ranks[i] = rank_of(&all[i], v);
	do {
		unsigned below = 0;
		l.count = 0;
		width = l.name_width + KIND_WIDTH;
		for (size_t i = 0; i < count; i++) {
			if (ranks[i] >= rank || (all[i].key == SORT_GROWTH && v->growth_ms == 0))
				continue;
			below = ranks[i] > below ? ranks[i] : below;
			width += all[i].width;
			l.shown[l.count++] = &all[i];
		}
		rank = below;
	} while (t->width != 0 && width > t->width && rank > 0);
	return l;
}

static void add_titles(text *t, const layout *l, sort_key sort) {
	text_style(t, "7");
	text_style(t, sort == SORT_NAME ? "1" : "22");
	text_add(t, "%-*s", (int)l->name_width, "NAME");
	text_style(t, "22");
	text_add(t, "%-*s", KIND_WIDTH, " KIND");
	for (size_t i = 0; i < l->count; i++) {
		text_style(t, l->shown[i]->key == sort ? "1" : "22");
		text_add(t, "%*s", (int)l->shown[i]->width, l->shown[i]->title);
	}
	if (t->styled)
		text_pad(t, t->width);
	text_style(t, "");
	text_end_line(t);
}

static void add_cells(text *t, const layout *l, const cells *c, sort_key sort) {
	text_pad(t, l->name_width);
	text_style(t, "36");
	text_add(t, " %-*s", KIND_WIDTH - 1, kind_name(c->row->kind));
	text_style(t, "");
	for (size_t i = 0; i < l->count; i++) {
		char out[SHORT];
		l->shown[i]->write(out, c);
		bool nothing = strcmp(out, "0") == 0 || strcmp(out, "-") == 0;
		if (nothing || l->shown[i]->key == sort)
			text_style(t, nothing ? "2" : "1");
		text_add(t, "%*s", (int)l->shown[i]->width, out);
		if (nothing || l->shown[i]->key == sort)
			text_style(t, "");
	}
	text_end_line(t);
}

/* ---- rows ---- */

static bool within(const table_options *o, size_t row) {
	return row >= o->first && (o->height == 0 || row - o->first < o->height);
}

/* Adds the name, and behind it the ident as far as there is room. */
static void add_name(text *t, const layout *l, const tn_live_row *row) {
	if (t->column < l->name_width)
		text_safe(t, row_name(row->name), l->name_width - t->column);
	if (row->ident[0] == '\0' || t->column + 1 >= l->name_width)
		return;
	text_style(t, "33");
	text_add(t, " ");
	text_safe(t, row->ident, l->name_width - t->column);
	text_style(t, "");
}

static void add_table(text *t, const view *v, const table_options *o) {
	layout l = lay_out(t, v, false);
	add_titles(t, &l, o->sort);
	uint32_t *order = sorted(v, o->sort, NULL, by_key);
	for (size_t i = 0; i < v->state.row_count; i++) {
		cells c = cells_of(v, order[i], 0);
		if (!within(o, i))
			continue;
		add_name(t, &l, c.row);
		add_cells(t, &l, &c, o->sort);
	}
	free(order);
}

/* Draws lines from each row to the rows below it, except on the deepest levels. */
static void add_branches(text *t, const tree *tree, uint32_t row, unsigned depth) {
	static const char *const lines[2][4] = {{"|  ", "   ", "|- ", "`- "}, {"│  ", "   ", "├─ ", "└─ "}};
	const char *parts[INDENTS];
	unsigned shown = depth < INDENTS ? depth : INDENTS;
	bool unicode = text_is_unicode();
	for (unsigned i = shown; i > 0; i--) {
		bool last = tree->next[row] == NO_ROW;
		parts[i - 1] = lines[unicode][(i == shown ? 2 : 0) + last];
		row = tree->parent[row];
	}
	text_style(t, "2");
	for (unsigned i = 0; i < shown; i++) {
		text_raw(t, parts[i], strlen(parts[i]));
		t->column += 3;
	}
	text_style(t, "");
}

static void add_tree(text *t, const view *v, const table_options *o) {
	layout l = lay_out(t, v, true);
	add_titles(t, &l, o->sort);
	tree tree = table_tree(v, o->sort);
	unsigned depth = 0;
	size_t line = 0;
	for (uint32_t row = tree.root; row != NO_ROW; row = table_step(&tree, row, &depth), line++) {
		cells c = cells_of(v, row, tree.subtree_bytes[row]);
		if (!within(o, line))
			continue;
		add_branches(t, &tree, row, depth);
		add_name(t, &l, c.row);
		add_cells(t, &l, &c, o->sort);
	}
	table_free_tree(&tree);
}

void table_rows(text *t, const view *v, const table_options *options) {
	if (options->tree)
		add_tree(t, v, options);
	else
		add_table(t, v, options);
}

/* ---- the header ---- */

static void add_figure(text *t, const char *what, uint64_t bytes) {
	char out[SHORT];
	if (bytes == TN_LIVE_UNKNOWN)
		return;
	short_bytes(out, bytes);
	text_add(t, "  %s ", what);
	text_style(t, "1");
	text_add(t, "%s", out);
	text_style(t, "");
}

/* Milliseconds since a time of another process; 0 when its clock differs from ours. */
static uint64_t since(uint64_t moment_ms) {
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	uint64_t ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
	return ms > moment_ms ? ms - moment_ms : 0;
}

static void add_process(text *t, const view *v) {
	unsigned long long rows = v->state.row_count, left_out = v->state.left_out_count;
	char time[SHORT];
	short_time(time, since(v->header.started_ms));
	text_style(t, "1");
	text_safe(t, v->name, NAME_MOST);
	text_style(t, "");
	text_add(t, "  process %d  %s  watched for %s  ", (int)v->pid, mode_name(v->header.mode), time);
	if (left_out != 0)
		text_add(t, "%llu of %llu allocators", rows, rows + left_out);
	else
		text_add(t, "%llu allocators", rows);
	if (since(v->state.taken_ms) >= 2000) {
		short_time(time, since(v->state.taken_ms));
		text_style(t, "1;31");
		text_add(t, "  as of %s ago", time);
		text_style(t, "");
	}
	text_end_line(t);
}

size_t table_nodes(const view *v) {
	size_t nodes = 1;
	for (size_t i = 0; i < v->state.row_count; i++)
		for (size_t k = nodes; k < TN_LIVE_NODES; k++)
			if (v->rows[i].node_bytes[k] != 0)
				nodes = k + 1;
	return nodes;
}

/* With several memory nodes, what each has. */
static void add_nodes(text *t, const view *v) {
	size_t nodes = table_nodes(v);
	for (size_t k = 0; nodes > 1 && k < nodes; k++) {
		char what[32];
		uint64_t bytes = 0;
		for (size_t i = 0; i < v->state.row_count; i++)
			bytes += v->rows[i].node_bytes[k];
		snprintf(what, sizeof what, "node %zu", k);
		add_figure(t, what, bytes);
	}
}

void table_header(text *t, const view *v) {
	uint64_t live = 0, cached = 0, committed = 0, reserved = 0;
	for (size_t i = 0; i < v->state.row_count; i++) {
		live += v->rows[i].live_bytes;
		cached += v->rows[i].cached_bytes;
		committed += v->rows[i].committed_bytes;
		reserved += v->rows[i].reserved_bytes;
	}
	add_process(t, v);
	text_add(t, "Tenure ");
	add_figure(t, "live", live);
	add_figure(t, "cached", cached);
	add_figure(t, "committed", committed);
	add_figure(t, "reserved", reserved);
	add_nodes(t, v);
	text_end_line(t);
	text_add(t, "Process");
	add_figure(t, "resident", v->state.resident_bytes);
	if (v->state.malloc_name[0] != '\0') {
		text_add(t, "  malloc (");
		text_safe(t, v->state.malloc_name, sizeof v->state.malloc_name);
		text_add(t, ")");
		add_figure(t, "allocated", v->state.malloc_allocated_bytes);
		add_figure(t, "active", v->state.malloc_active_bytes);
		add_figure(t, "held", v->state.malloc_held_bytes);
	}
	text_end_line(t);
}
