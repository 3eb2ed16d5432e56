/* The toy. Its owner writes nothing but the cursor with an alloc; readers on other threads find the
 * live bytes by it.
 *
 * create   take_chunk, list, publish
 * alloc    nothing else
 * reset    publish
 *
 * I1  begin <= cursor <= end */
#include <tenure/toy.h>

#include <errno.h>

#include "../base/modes.h"
#include "../listing/listing.h"
#include "../pages/pages.h"

struct tn_toy {
	char *cursor, *begin, *end;
	uint64_t resets;
	tn_node *node; /* NULL: not listed */
	char name[TN_NAME_BYTES + 1];
};

enum { TOY_CHUNK_BYTES = 1 << 20 };

static void toy_read(const tn_toy *t, size_t live, tn_stats *stats) {
	size_t room = (size_t)(t->end - t->begin);
	stats->live_bytes = live;
	stats->cached_bytes = room - live;
	stats->reserved_bytes = stats->committed_bytes = TOY_CHUNK_BYTES;
	stats->peak_bytes = live;
	stats->chunk_count = 1;
	stats->refills = 1;
	stats->resets = t->resets;
}

/* As if nothing were live; readers add what is. */
static void toy_publish(const tn_toy *t) {
	if (t->node == NULL)
		return;
	tn_stats stats = {.name = ""};
	toy_read(t, 0, &stats);
	tn_position from = {(size_t)t->begin, (size_t)(t->end - t->begin)};
	tn_list_publish(t->node, &stats, TN_FIGURES_PLAIN, from);
}

static TN_RACY void toy_look(const void *object, tn_position from, tn_listed *listed) {
	const tn_toy *t = object;
	size_t live = (size_t)*(char *const volatile *)&t->cursor - from.at;
	if (live > from.room)
		return;
	listed->stats.live_bytes += live;
	listed->stats.cached_bytes -= live;
	listed->stats.peak_bytes = live;
}

static const tn_node_kind toy_kind = {
	.kind = TN_KIND_TOY, .figures = TN_FIGURES_PLAIN, .look = toy_look};

void *tn_toy_alloc(tn_toy *t, size_t size) {
	if (size > (size_t)(t->end - t->cursor))
		return errno = ENOMEM, NULL;
	void *block = t->cursor;
	t->cursor += tn_min(tn_round_up(size, 16), (size_t)(t->end - t->cursor));
	return block;
}

void tn_toy_reset(tn_toy *t) {
	t->cursor = t->begin;
	t->resets++;
	toy_publish(t);
}

void tn_toy_stats(const tn_toy *t, tn_stats *stats) {
	*stats = (tn_stats){.name = ""};
	memcpy(stats->name, t->name, sizeof stats->name);
	toy_read(t, (size_t)(t->cursor - t->begin), stats);
}

tn_toy *tn_toy_create(const char *name) {
	tn_toy *t = tn_pages_acquire(TOY_CHUNK_BYTES, TN_OS_PAGE);
	if (t == NULL)
		return errno = ENOMEM, NULL;
	char *begin = (char *)t + tn_round_up(sizeof *t, 16);
	*t = (tn_toy){.cursor = begin, .begin = begin, .end = (char *)t + TOY_CHUNK_BYTES};
	tn_copy_name(t->name, name, "toy");
	if (tn_list_object(NULL, &toy_kind, t, name, &t->node)) {
		toy_publish(t);
		return t;
	}
	tn_pages_release(t, TOY_CHUNK_BYTES, TN_OS_PAGE);
	return errno = ENOMEM, NULL;
}

void tn_toy_destroy(tn_toy *t) {
	if (t == NULL)
		return;
	tn_unlist_object(t->node);
	tn_pages_release(t, TOY_CHUNK_BYTES, TN_OS_PAGE);
}
