/* Each look adds to the sum of a kind and name as much as the counters of its allocators have grown
 * since the look before. So a sum stays when an allocator ends.
 *
 * tn_totals_begin  the filled table becomes the one before
 * tn_totals_add    totals_change_look, totals_find_entry, totals_find_last, totals_find_row
 *
 * The first names that come have a row each, for ever; all later ones of a kind share a row. A name
 * that changed rows would let a sum fall. */
#include "totals.h"

#include <string.h>

#include "../pages/pages.h"

enum {
	TOTALS_CAPACITY = 256,
	TOTALS_CAPACITY_MAX = 1 << 20,
	TOTALS_NAMES = TN_LIVE_TOTALS - 16, /* the rows left are for the other names of each kind */
};

static bool totals_make_look(tn_totals_look *look, size_t capacity) {
	*look = (tn_totals_look){.capacity = capacity};
	look->entries = tn_pages_acquire(capacity * sizeof *look->entries, TN_OS_PAGE);
	if (look->entries != NULL)
		memset(look->entries, 0, capacity * sizeof *look->entries);
	return look->entries != NULL;
}

static void totals_drop_look(tn_totals_look *look) {
	if (look->entries != NULL)
		tn_pages_release(look->entries, look->capacity * sizeof *look->entries, TN_OS_PAGE);
	*look = (tn_totals_look){.entries = NULL};
}

/* The entry of an id, or the empty one where it belongs (Fibonacci hashing, Knuth 1973). */
static tn_totals_entry *totals_find_entry(const tn_totals_look *look, uint64_t id) {
	size_t i = (size_t)(id * 0x9e3779b97f4a7c15u >> 32) & (look->capacity - 1);
	while (look->entries[i].id != 0 && look->entries[i].id != id)
		i = (i + 1) & (look->capacity - 1);
	return &look->entries[i];
}

void tn_totals_begin(tn_totals *t) {
	tn_totals_look empty = t->before;
	t->before = t->now;
	empty.count = 0;
	empty.lost = false;
	if (empty.entries != NULL)
		memset(empty.entries, 0, empty.capacity * sizeof *empty.entries);
	t->now = empty;
}

/* Moves a look to twice the entries; without memory, it stays as it is. */
static void totals_change_look(tn_totals_look *look) {
	tn_totals_look larger;
	if (!totals_make_look(&larger, look->capacity == 0 ? TOTALS_CAPACITY : 2 * look->capacity))
		return;
	for (size_t i = 0; i < look->capacity; i++)
		if (look->entries[i].id != 0)
			*totals_find_entry(&larger, look->entries[i].id) = look->entries[i];
	larger.count = look->count;
	larger.lost = look->lost;
	totals_drop_look(look);
	*look = larger;
}

/* The row of a kind and name: its own; or that of its kind, when all rows with names are given out. */
static tn_live_total *totals_find_row(tn_totals *t, const tn_listed *listed) {
	const char *name = listed->stats.name;
	for (size_t i = 0; i < t->names; i++)
		if (t->rows[i].kind == (uint64_t)listed->kind && strcmp(t->rows[i].name, name) == 0)
			return &t->rows[i];
	for (size_t i = t->names; i < t->count; i++)
		if (t->rows[i].kind == (uint64_t)listed->kind)
			return &t->rows[i];
	tn_live_total *row = &t->rows[t->count++];
	*row = (tn_live_total){.kind = (uint64_t)listed->kind, .name = TN_LIVE_OTHERS};
	_Static_assert(sizeof row->name == sizeof listed->stats.name, "a row holds every name");
	if (t->names < TOTALS_NAMES) {
		memcpy(row->name, name, sizeof row->name);
		t->names++;
	}
	return row;
}

/* The counters that an allocator had at the last look; NULL when that is not known. */
static const uint64_t *totals_find_last(const tn_totals *t, uint64_t id) {
	static const uint64_t nothing[TN_LIVE_COUNTERS];
	const tn_totals_entry *last = NULL;
	if (t->before.entries != NULL)
		last = totals_find_entry(&t->before, id);
	if (last != NULL && last->id == id)
		return last->counters;
	return t->before.lost ? NULL : nothing;
}

void tn_totals_add(tn_totals *t, const tn_listed *listed) {
	const tn_stats *s = &listed->stats;
	if (t->now.count >= t->now.capacity / 2 && t->now.capacity < TOTALS_CAPACITY_MAX)
		totals_change_look(&t->now);
	if (t->now.count >= t->now.capacity / 2) {
		t->now.lost = true;
		return;
	}
	tn_totals_entry *entry = totals_find_entry(&t->now, listed->id);
	*entry = (tn_totals_entry){listed->id, {s->refills, s->resets, s->exchanges, s->foreign, s->waits}};
	t->now.count++;
	const uint64_t *last = totals_find_last(t, listed->id);
	tn_live_total *row = totals_find_row(t, listed);
	for (size_t i = 0; last != NULL && i < TN_LIVE_COUNTERS; i++)
		row->counters[i] += entry->counters[i] > last[i] ? entry->counters[i] - last[i] : 0;
}

void tn_totals_end(tn_totals *t) {
	totals_drop_look(&t->before);
	totals_drop_look(&t->now);
	*t = (tn_totals){.count = 0};
}
