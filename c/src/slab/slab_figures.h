/* A slab's figures: for its own thread, and for readers on others (listing.h). */
#ifndef TENURE_SLAB_FIGURES_H
#define TENURE_SLAB_FIGURES_H

#include "../listing/listing.h"
#include "magazines.h"
#include "slab.h"

static inline void note_partial(slab *s, const chunk *c, size_t live) {
	if (live == 0 || live == c->shape->count)
		return;
	s->partial_count++;
	s->partial_live += live;
}

/* The figures for a slab with `live` slots; the partly used chunks as they were counted last. */
static inline void read_slab(const slab *s, size_t live, tn_stats *stats) {
	*stats = (tn_stats){.live_bytes = live * s->slot_size,
		.live_count = live,
		.cached_bytes = (s->slot_count - live) * s->slot_size,
		.reserved_bytes = s->taken_bytes,
		.committed_bytes = s->taken_bytes,
		.peak_bytes = (live > s->peak ? live : s->peak) * s->slot_size,
		.chunk_count = s->chunk_count,
		.partial_count = s->partial_count,
		.refills = s->refills,
		.resets = s->resets,
		.slot_bytes = s->slot_size,
		.slot_count = s->slot_count,
		.partial_live_count = s->partial_live};
}

/* As if the loaded magazine were empty: readers subtract what is in it. */
static inline void publish_slab(const slab *s) {
	tn_stats stats;
	read_slab(s, in_use(s) + fill_of_loaded(s), &stats);
	stats.peak_bytes = s->peak * s->slot_size;
	tn_list_publish(s->node, &stats, TN_FIGURES_ALL, (tn_position){loaded(s), s->hot.magazine_mask});
}

TN_RACY void tn_slab_look(const void *object, tn_position from, tn_listed *listed) {
	const slab *s = object;
	tn_stats *stats = &listed->stats;
	size_t top = *(const volatile uintptr_t *)&s->hot.top - from.at;
	size_t fill = top > from.room ? 0 : top / WORD;
	fill = fill < stats->live_count ? fill : stats->live_count;
	stats->live_count -= fill;
	stats->live_bytes -= fill * stats->slot_bytes;
	stats->cached_bytes += fill * stats->slot_bytes;
	if (stats->live_bytes > stats->peak_bytes)
		stats->peak_bytes = stats->live_bytes;
}

static void slab_end_owned(void *object) {
	slab *s = object;
	s->expendable = true;
	tn_slab_destroy(&s->hot);
}

TN_OWNED_KIND(slab_kind, slab, TN_KIND_SLAB, TN_FIGURES_ALL, tn_slab_look, slab_end_owned);

#endif
