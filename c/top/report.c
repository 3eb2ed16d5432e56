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
	{FIGURE(refills), true, "Times a slow path took a chunk or filled a magazine."},
	{FIGURE(resets), true, "Resets."},
	{FIGURE(exchanges), true, "Magazines that a thread put into a depot or took from one."},
	{FIGURE(foreign), true, "Magazines that a thread took from the depot of other threads."},
	{FIGURE(waits), true, "Times a thread found another one in a depot."},
};
enum { FIGURES = sizeof figures / sizeof figures[0] };

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

static void add_row(text *t, const tn_live_row *row) {
	text_add(t, "    {\"id\": %" PRIu64 ", \"parent_id\": %" PRIu64 ", ", row->id, row->parent_id);
	add_string_member(t, "kind", kind_name(row->kind));
	add_string_member(t, "name", row->name);
	add_string_member(t, "ident", row->ident);
	text_add(t, "\"depth\": %" PRIu32 ", \"age_ms\": %" PRIu64, row->depth, row->age_ms);
	text_add(t, ", \"slot_bytes\": %" PRIu64, row->slot_bytes);
	for (size_t i = 0; i < FIGURES; i++)
		text_add(t, ", \"%s\": %" PRIu64, figures[i].name, value_of(row, &figures[i]));
	text_add(t, "}");
}

void report_json(text *t, const view *v) {
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
	for (size_t i = 0; i < s->row_count; i++) {
		add_row(t, &v->rows[i]);
		text_add(t, i + 1 < s->row_count ? ",\n" : "\n");
	}
	text_add(t, "  ]\n}\n");
}

/* ---- Prometheus ---- */

enum { NAMES_MOST = 200, LABEL_BYTES = 4 * sizeof((tn_live_row *)0)->name };

typedef struct group {
	char name[LABEL_BYTES]; /* valid UTF-8 without control characters */
	const char *kind;
	uint64_t count;
	uint64_t sums[FIGURES];
} group;

static void copy_label(char out[LABEL_BYTES], const char *s) {
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
	}
	return merged;
}

static group *group_rows(const view *v, size_t *count) {
	group *groups = need(calloc(v->state.row_count + 1, sizeof *groups));
	for (size_t i = 0; i < v->state.row_count; i++) {
		group *g = &groups[i];
		copy_label(g->name, row_name(&v->rows[i]));
		g->kind = kind_name(v->rows[i].kind);
		g->count = 1;
		for (size_t k = 0; k < FIGURES; k++)
			g->sums[k] = value_of(&v->rows[i], &figures[k]);
	}
	*count = merge(groups, v->state.row_count);
	if (*count > NAMES_MOST) {
		qsort(groups, *count, sizeof *groups, by_committed);
		for (size_t i = NAMES_MOST; i < *count; i++)
			strcpy(groups[i].name, "other");
		*count = merge(groups, *count);
	}
	return groups;
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

static void add_sample(text *t, const char *name, const group *g, uint64_t value) {
	text_add(t, "tenure_%s{kind=", name);
	add_label(t, g->kind);
	text_add(t, ",name=");
	add_label(t, g->name);
	text_add(t, "} %" PRIu64 "\n", value);
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

static void add_plain(text *t, const char *name, const char *help, uint64_t value) {
	add_head(t, name, "gauge", help);
	text_add(t, "tenure_%s %" PRIu64 "\n", name, value);
}

static void add_malloc(text *t, const view *v, const char *name, const char *help, uint64_t value) {
	char label[LABEL_BYTES];
	if (v->state.malloc_name[0] == '\0' || value == TN_LIVE_UNKNOWN)
		return;
	copy_label(label, v->state.malloc_name);
	add_head(t, name, "gauge", help);
	text_add(t, "tenure_%s{allocator=", name);
	add_label(t, label);
	text_add(t, "} %" PRIu64 "\n", value);
}

void report_prometheus(text *t, const view *v) {
	const tn_live_state *s = &v->state;
	size_t count;
	group *groups = group_rows(v, &count);
	add_head(t, "allocators", "gauge", "Listed allocators.");
	for (size_t i = 0; i < count; i++)
		add_sample(t, "allocators", &groups[i], groups[i].count);
	for (size_t k = 0; k < FIGURES; k++) {
		char name[64];
		metric_name(name, &figures[k]);
		add_head(t, name, figures[k].counter ? "counter" : "gauge", figures[k].help);
		for (size_t i = 0; i < count; i++)
			add_sample(t, name, &groups[i], groups[i].sums[k]);
	}
	free(groups);
	add_plain(t, "allocators_left_out", "Listed allocators that do not fit the live view.",
		s->left_out_count);
	add_plain(t, "process_resident_bytes", "Resident memory of the process.", s->resident_bytes);
	add_malloc(t, v, "process_malloc_allocated_bytes", "Bytes that malloc has handed out.",
		s->malloc_allocated_bytes);
	add_malloc(t, v, "process_malloc_active_bytes", "Bytes of the pages that hold malloc's blocks.",
		s->malloc_active_bytes);
	add_malloc(t, v, "process_malloc_held_bytes", "Bytes that malloc holds from the system.",
		s->malloc_held_bytes);
}
