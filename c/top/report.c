#include "report.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "table.h"

typedef struct figure {
	const char *name;
	size_t offset; /* in a row */
	bool counter;
	const char *help;
} figure;

#define FIGURE(name) #name, offsetof(tn_live_row, name)
static const figure figures[] = {
	{FIGURE(live_bytes), false, "Bytes handed out, rounding and padding included."},
	{FIGURE(live_count), false, "Objects handed out; 0 for allocators that do not count them."},
	{FIGURE(cached_bytes), false, "Bytes committed but not handed out."},
	{FIGURE(thread_cached_bytes), false, "Part of the cached bytes in the magazines of threads."},
	{FIGURE(reserved_bytes), false, "Bytes of address space."},
	{FIGURE(committed_bytes), false, "Bytes taken from the source of memory."},
	{FIGURE(peak_bytes), false,
		"The most bytes seen handed out; the sum of the peaks of single allocators."},
	{FIGURE(chunk_count), false, "Chunks held."},
	{FIGURE(partial_count), false, "Chunks with both live and free slots."},
	{FIGURE(partial_live_count), false, "Live slots in the partly used chunks."},
	{FIGURE(slot_count), false, "Slots in all chunks."},
	{FIGURE(waste_bytes), false, "Part of the live bytes added by rounding, an estimate."},
	{FIGURE(external_bytes), false,
		"Bytes that other libraries hold for a scope, from tn_scope_external."},
	/* In the order of tn_live_total. */
	{FIGURE(refills), true, "Times a slow path took a chunk or filled a magazine."},
	{FIGURE(resets), true, "Resets."},
	{FIGURE(exchanges), true, "Magazines that a thread put into a depot or took from one."},
	{FIGURE(foreign), true, "Magazines that a thread took from the depot of other threads."},
	{FIGURE(waits), true, "Times a thread found another one in a depot."},
};
enum { FIGURES = sizeof figures / sizeof figures[0], GAUGES = FIGURES - TN_LIVE_COUNTERS };

static uint64_t value_of(const tn_live_row *row, const figure *f) {
	uint64_t value;
	memcpy(&value, (const char *)row + f->offset, sizeof value);
	return value;
}

/* ---- JSON ---- */

/* A character in UTF-16, as JSON escapes it. */
static void add_escaped(text *t, uint32_t code) {
	if (code >= 0x10000) {
		text_add(t, "\\u%04x", 0xd800u + ((code - 0x10000) >> 10));
		code = 0xdc00u + ((code - 0x10000) & 0x3ff);
	}
	text_add(t, "\\u%04x", code);
}

static void add_string(text *t, const char *s) {
	text_raw(t, "\"", 1);
	while (*s != '\0') {
		uint32_t code;
		size_t size = tn_text_read(s, &code);
		if (size == 0 || !tn_text_shows(code)) {
			/* Invalid UTF-8 is replaced. */
			add_escaped(t, size == 0 ? 0xfffd : code);
			size += size == 0;
		} else {
			if (*s == '"' || *s == '\\')
				text_raw(t, "\\", 1);
			text_raw(t, s, size);
		}
		s += size;
	}
	text_raw(t, "\"", 1);
}

static void add_string_member(text *t, const char *name, const char *value) {
	text_add(t, "\"%s\": ", name);
	add_string(t, value);
	text_add(t, ", ");
}

static void add_known(text *t, const char *name, uint64_t value) {
	if (value == TN_LIVE_UNKNOWN)
		text_add(t, "\"%s\": null", name);
	else
		text_add(t, "\"%s\": %" PRIu64, name, value);
}

/* One allocator, without the brace at its end. */
static void add_row(text *t, const tn_live_row *row, size_t nodes) {
	text_add(t, "    {\"id\": %" PRIu64 ", \"parent_id\": %" PRIu64 ", ", row->id, row->parent_id);
	add_string_member(t, "kind", kind_name(row->kind));
	add_string_member(t, "name", row->name);
	add_string_member(t, "ident", row->ident);
	text_add(t, "\"depth\": %" PRIu32 ", \"age_ms\": %" PRIu64, row->depth, row->age_ms);
	text_add(t, ", \"slot_bytes\": %" PRIu64, row->slot_bytes);
	for (size_t i = 0; i < FIGURES; i++)
		text_add(t, ", \"%s\": %" PRIu64, figures[i].name, value_of(row, &figures[i]));
	for (size_t i = 0; i < nodes; i++)
		text_add(t, "%s%" PRIu64, i == 0 ? ", \"node_bytes\": [" : ", ", row->node_bytes[i]);
	text_add(t, "]");
}

/* Every allocator, and inside it those that it owns. */
static void add_rows(text *t, const view *v, const tree *tree) {
	unsigned depth = 0;
	uint32_t row = tree->root;
	const size_t nodes = table_nodes(v);
	while (row != NO_ROW) {
		add_row(t, &v->rows[row], nodes);
		text_add(
			t, ", \"subtree_committed_bytes\": %" PRIu64 ", \"below\": [", tree->subtree_bytes[row]);
		unsigned before = depth;
		row = table_step(tree, row, &depth);
		bool deeper = row != NO_ROW && depth > before;
		text_add(t, deeper ? "\n" : "]}");
		for (unsigned up = before; !deeper && up > (row == NO_ROW ? 0 : depth); up--)
			text_add(t, "]}");
		if (!deeper)
			text_add(t, row != NO_ROW ? ",\n" : "\n");
	}
}

void report_json(text *t, const view *v, bool nested) {
	const tn_live_state *s = &v->state;
	text_add(t, "{\n  \"tenure_live_version\": %" PRIu32 ",\n", v->header.version);
	text_add(t, "  \"process\": {\"pid\": %d, ", (int)v->pid);
	add_string_member(t, "name", v->name);
	text_add(t, "\"resident_bytes\": %" PRIu64 "},\n  \"malloc\": {", s->resident_bytes);
	add_string_member(t, "name", s->malloc_name);
	add_known(t, "allocated_bytes", s->malloc_allocated_bytes);
	text_add(t, ", ");
	add_known(t, "active_bytes", s->malloc_active_bytes);
	text_add(t, ", ");
	add_known(t, "held_bytes", s->malloc_held_bytes);
	text_add(t, "},\n  \"mode\": \"%s\",\n  \"snapshot\": %" PRIu64 ",\n", mode_name(v->header.mode),
		v->sequence);
	text_add(t, "  \"left_out_count\": %" PRIu64 ",\n  \"allocators\": [\n", s->left_out_count);
	if (nested) {
		tree tree = table_tree(v, SORT_COMMITTED);
		add_rows(t, v, &tree);
		table_free_tree(&tree);
	}
	const size_t nodes = table_nodes(v);
	for (size_t i = 0; !nested && i < s->row_count; i++) {
		add_row(t, &v->rows[i], nodes);
		text_add(t, i + 1 < s->row_count ? "},\n" : "}\n");
	}
	text_add(t, "  ]\n}\n");
}

static uint64_t sum_of(const view *v, size_t offset) {
	uint64_t sum = 0;
	for (size_t i = 0; i < v->state.row_count; i++)
		sum += value_of(&v->rows[i], &(figure){.offset = offset});
	return sum;
}

void report_processes(text *t, const view *views, size_t count, bool json) {
	text_add(t, json ? "{\"processes\": [\n" : "%7s  %-16s  %-8s %11s %8s %10s %9s\n", "PID", "NAME",
		"MODE", "ALLOCATORS", "LIVE", "COMMITTED", "RESIDENT");
	for (size_t i = 0; i < count; i++) {
		const view *v = &views[i];
		uint64_t live = sum_of(v, offsetof(tn_live_row, live_bytes));
		uint64_t committed = sum_of(v, offsetof(tn_live_row, committed_bytes));
		uint64_t allocators = v->state.row_count + v->state.left_out_count;
		if (json) {
			text_add(t, "  {\"pid\": %d, ", (int)v->pid);
			add_string_member(t, "name", v->name);
			text_add(t,
				"\"mode\": \"%s\", \"allocator_count\": %" PRIu64 ", \"live_bytes\": %" PRIu64
				", \"committed_bytes\": %" PRIu64 ", \"resident_bytes\": %" PRIu64 "}%s\n",
				mode_name(v->header.mode), allocators, live, committed, v->state.resident_bytes,
				i + 1 < count ? "," : "");
			continue;
		}
		char bytes[3][SHORT];
		short_bytes(bytes[0], live);
		short_bytes(bytes[1], committed);
		short_bytes(bytes[2], v->state.resident_bytes);
		text_add(t, "%7d  ", (int)v->pid);
		unsigned column = t->column + 16;
		text_safe(t, v->name, 16);
		text_pad(t, column);
		text_add(t, "  %-8s %11" PRIu64 " %8s %10s %9s", mode_name(v->header.mode), allocators,
			bytes[0], bytes[1], bytes[2]);
		text_end_line(t);
	}
	if (json)
		text_add(t, "]}\n");
}

/* ---- Prometheus ---- */

enum { NAMES_MOST = 200, LABEL_BYTES = 4 * sizeof((tn_live_row *)0)->name };

typedef struct group {
	char name[LABEL_BYTES]; /* valid UTF-8 without control characters */
	const char *kind;
	uint64_t count;
	uint64_t sums[FIGURES];
	uint64_t node_bytes[TN_LIVE_NODES];
} group;

typedef struct groups {
	group *all;
	size_t count;
} groups;

/* The labels of every sample of a process, `process="server",pid="4711"` and the user's. */
typedef struct process {
	const view *view;
	groups rows, totals;
	text labels;
} process;

static void copy_label(char *out, const char *s) {
	while (*s != '\0') {
		size_t size = tn_text_character(s);
		if (size == 0) {
			out += snprintf(out, 5, "\\x%02x", (unsigned char)*s++);
		} else {
			memcpy(out, s, size);
			out += size;
			s += size;
		}
	}
	*out = '\0';
}

static int by_kind_and_name(const void *a, const void *b) {
	const group *one = a, *other = b;
	int kinds = strcmp(one->kind, other->kind);
	return kinds != 0 ? kinds : strcmp(one->name, other->name);
}

static int by_committed(const void *a, const void *b) {
	size_t i = 0;
	while (figures[i].offset != offsetof(tn_live_row, committed_bytes))
		i++;
	uint64_t one = ((const group *)a)->sums[i], other = ((const group *)b)->sums[i];
	return one != other ? (one < other) - (one > other) : by_kind_and_name(a, b);
}

/* Adds up neighbours of one kind and name; returns the number left. */
static size_t merge(group *groups, size_t count) {
	size_t merged = 0;
	qsort(groups, count, sizeof groups[0], by_kind_and_name);
	for (size_t i = 0; i < count; i++) {
		if (merged == 0 || by_kind_and_name(&groups[merged - 1], &groups[i]) != 0) {
			groups[merged++] = groups[i];
			continue;
		}
		groups[merged - 1].count += groups[i].count;
		for (size_t k = 0; k < FIGURES; k++)
			groups[merged - 1].sums[k] += groups[i].sums[k];
		for (size_t k = 0; k < TN_LIVE_NODES; k++)
			groups[merged - 1].node_bytes[k] += groups[i].node_bytes[k];
	}
	return merged;
}

/* Merges, and keeps the largest groups; the others of a kind become one. */
static void cut(groups *g) {
	g->count = merge(g->all, g->count);
	if (g->count <= NAMES_MOST)
		return;
	qsort(g->all, g->count, sizeof *g->all, by_committed);
	for (size_t i = NAMES_MOST; i < g->count; i++)
		strcpy(g->all[i].name, TN_LIVE_OTHERS);
	g->count = merge(g->all, g->count);
}

/* The figures of the allocators that exist. */
static groups group_rows(const view *v) {
	groups g = {need(calloc(v->state.row_count + 1, sizeof *g.all)), v->state.row_count};
	for (size_t i = 0; i < g.count; i++) {
		group *one = &g.all[i];
		copy_label(one->name, row_name(v->rows[i].name));
		one->kind = kind_name(v->rows[i].kind);
		one->count = 1;
		for (size_t k = 0; k < GAUGES; k++)
			one->sums[k] = value_of(&v->rows[i], &figures[k]);
		memcpy(one->node_bytes, v->rows[i].node_bytes, sizeof one->node_bytes);
	}
	cut(&g);
	return g;
}

/* The counters, as the process added them up. */
static groups group_totals(const view *v) {
	groups g = {need(calloc(v->state.total_count + 1, sizeof *g.all)), v->state.total_count};
	for (size_t i = 0; i < g.count; i++) {
		group *one = &g.all[i];
		copy_label(one->name, row_name(v->totals[i].name));
		one->kind = kind_name((uint32_t)v->totals[i].kind);
		memcpy(&one->sums[GAUGES], v->totals[i].counters, sizeof v->totals[i].counters);
	}
	g.count = merge(g.all, g.count);
	return g;
}

static void add_head(text *t, const char *name, const char *type, const char *help) {
	text_add(t, "# HELP tenure_%s %s\n# TYPE tenure_%s %s\n", name, help, name, type);
}

static void add_label(text *t, const char *value) {
	text_raw(t, "\"", 1);
	for (; *value != '\0'; value++) {
		if (*value == '"' || *value == '\\')
			text_raw(t, "\\", 1);
		text_raw(t, value, 1);
	}
	text_raw(t, "\"", 1);
}

static void add_pair(text *t, const char *name, const char *value) {
	text_add(t, "%s=", name);
	add_label(t, value);
}

static void begin_group(text *t, const char *name, const process *p, const group *g) {
	text_add(t, "tenure_%s{", name);
	text_raw(t, p->labels.p, p->labels.size);
	text_add(t, ",");
	add_pair(t, "kind", g->kind);
	text_add(t, ",");
	add_pair(t, "name", g->name);
}

static void add_group(text *t, const char *name, const process *p, const group *g, uint64_t value) {
	begin_group(t, name, p, g);
	text_add(t, "} %" PRIu64 "\n", value);
}

/* Of processes with several memory nodes, what each allocator has on which. */
static void add_nodes(text *t, const process *all, size_t count) {
	bool begun = false;
	for (size_t i = 0; i < count; i++) {
		const size_t nodes = table_nodes(all[i].view);
		if (nodes > 1 && !begun)
			add_head(t, "node_bytes", "gauge", "Bytes of chunks by the memory node that they are on.");
		begun |= nodes > 1;
		for (size_t k = 0; nodes > 1 && k < all[i].rows.count * nodes; k++) {
			const group *g = &all[i].rows.all[k / nodes];
			begin_group(t, "node_bytes", &all[i], g);
			text_add(t, ",memory_node=\"%zu\"} %" PRIu64 "\n", k % nodes, g->node_bytes[k % nodes]);
		}
	}
}

/* Names a count by its unit, as Prometheus wants it; a counter ends in _total. */
static void metric_name(char out[64], const figure *f) {
	static const char *const plurals[][2] = {{"live_count", "live_objects"}, {"chunk_count", "chunks"},
		{"partial_count", "partial_chunks"}, {"partial_live_count", "partial_chunks_live_objects"},
		{"slot_count", "slots"}, {"foreign", "foreign_magazines"}, {"waits", "depot_waits"}};
	const char *name = f->name;
	for (size_t i = 0; i < sizeof plurals / sizeof plurals[0]; i++)
		if (strcmp(name, plurals[i][0]) == 0)
			name = plurals[i][1];
	snprintf(out, 64, "%s%s", name, f->counter ? "_total" : "");
}

typedef struct metric {
	const char *name, *help;
	size_t offset; /* in the state */
	bool of_malloc;
} metric;

#define METRIC(name) offsetof(tn_live_state, name)
static const metric metrics[] = {
	{"allocators_left_out", "Listed allocators that do not fit the live view.", METRIC(left_out_count),
		false},
	{"process_resident_bytes", "Resident memory of the process.", METRIC(resident_bytes), false},
	{"process_malloc_allocated_bytes", "Bytes that malloc has handed out.",
		METRIC(malloc_allocated_bytes), true},
	{"process_malloc_active_bytes", "Bytes of the pages that hold malloc's blocks.",
		METRIC(malloc_active_bytes), true},
	{"process_malloc_held_bytes", "Bytes that malloc holds from the system.", METRIC(malloc_held_bytes),
		true},
};

/* A family appears if a process knows it. */
static void add_metric(text *t, const metric *m, const process *all, size_t count) {
	bool begun = false;
	for (size_t i = 0; i < count; i++) {
		const tn_live_state *s = &all[i].view->state;
		uint64_t value;
		memcpy(&value, (const char *)s + m->offset, sizeof value);
		if (m->of_malloc && (s->malloc_name[0] == '\0' || value == TN_LIVE_UNKNOWN))
			continue;
		if (!begun)
			add_head(t, m->name, "gauge", m->help);
		begun = true;
		text_add(t, "tenure_%s{", m->name);
		text_raw(t, all[i].labels.p, all[i].labels.size);
		if (m->of_malloc) {
			char label[LABEL_BYTES];
			copy_label(label, s->malloc_name);
			text_add(t, ",");
			add_pair(t, "allocator", label);
		}
		text_add(t, "} %" PRIu64 "\n", value);
	}
}

static process begin_process(const view *v, const label *labels, size_t count) {
	process p = {.view = v, .rows = group_rows(v), .totals = group_totals(v)};
	char name[4 * sizeof v->name];
	copy_label(name, v->name);
	add_pair(&p.labels, "process", name);
	text_add(&p.labels, ",pid=\"%d\"", (int)v->pid);
	for (size_t i = 0; i < count; i++) {
		text_add(&p.labels, ",");
		char *value = need(malloc(4 * strlen(labels[i].value) + 1));
		copy_label(value, labels[i].value);
		add_pair(&p.labels, labels[i].name, value);
		free(value);
	}
	return p;
}

static void end_process(process *p) {
	free(p->rows.all);
	free(p->totals.all);
	text_free(&p->labels);
}

void report_prometheus(
	text *t, const view *views, size_t count, const label *labels, size_t label_count) {
	process *all = need(calloc(count + 1, sizeof *all));
	for (size_t i = 0; i < count; i++)
		all[i] = begin_process(&views[i], labels, label_count);
	add_head(t, "allocators", "gauge", "Listed allocators.");
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < all[i].rows.count; k++)
			add_group(t, "allocators", &all[i], &all[i].rows.all[k], all[i].rows.all[k].count);
	for (size_t f = 0; f < FIGURES; f++) {
		char name[64];
		metric_name(name, &figures[f]);
		add_head(t, name, figures[f].counter ? "counter" : "gauge", figures[f].help);
		for (size_t i = 0; i < count; i++) {
			const groups *g = figures[f].counter ? &all[i].totals : &all[i].rows;
			for (size_t k = 0; k < g->count; k++)
				add_group(t, name, &all[i], &g->all[k], g->all[k].sums[f]);
		}
	}
	add_nodes(t, all, count);
	for (size_t m = 0; m < sizeof metrics / sizeof metrics[0]; m++)
		add_metric(t, &metrics[m], all, count);
	for (size_t i = 0; i < count; i++)
		end_process(&all[i]);
	free(all);
}
