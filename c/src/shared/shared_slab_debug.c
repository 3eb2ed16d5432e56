/* The shared slab in debug: a slab behind a lock. What debug adds (sites, quarantine, pages that fault,
 * the table of what was not freed) is the slab's and exists once; that it does not scale is the price.
 * Handles are the locals of the other modes, without magazines. */
#include <tenure/shared_slab.h>

#if TN_MODE == TN_MODE_DEBUG

#include <errno.h>

#include "../base/modes.h"
#include "../pages/pages.h"
#include "../slab/slab.h"
#include "shared_slab.h"
#include "thread_cache.h"

typedef struct locked_slab {
	tn_shared_slab hot;
	cache cache; /* for its handles */
	tn_lock lock;
	TN_ATOMIC(uintptr_t) holder; /* the thread that holds it, or 0 */
	uint32_t state;
	tn_slab *slab;
	tn_chunk_source source;
	size_t own_bytes;
	char name[TN_NAME_BYTES + 1];
} locked_slab;

static locked_slab *locked_of(const cache *c) {
	return (locked_slab *)(void *)((char *)(uintptr_t)c - offsetof(locked_slab, cache));
}

static locked_slab *alive(const tn_shared_slab *hot, const char *operation) {
	locked_slab *s = (locked_slab *)(uintptr_t)hot;
	if (s->state != TN_ALIVE)
		tn_panic("shared slab", NULL, "%s: %p is not a live shared slab", operation, (const void *)hot);
	return s;
}

static tn_slab *enter(const tn_shared_slab *hot, const char *operation) {
	locked_slab *s = alive(hot, operation);
	if (tn_get(&s->holder, TN_RELAXED) == tn_os_thread())
		tn_panic(s->cache.kind, s->name, "%s: called from a callback of its own", operation);
	tn_lock_take(&s->lock);
	tn_set(&s->holder, tn_os_thread(), TN_RELAXED);
	return s->slab;
}

static void leave(const tn_shared_slab *hot) {
	locked_slab *s = (locked_slab *)(uintptr_t)hot;
	tn_set(&s->holder, 0, TN_RELAXED);
	tn_lock_give(&s->lock);
}

static bool try_lock_locked_slab(cache *c) {
	return tn_lock_try(&locked_of(c)->lock);
}

static void unlock_locked_slab(cache *c) {
	tn_lock_give(&locked_of(c)->lock);
}

static const cache_owner locked_slab_owner = {
	.try_lock = try_lock_locked_slab,
	.unlock = unlock_locked_slab,
};

/* ---- alloc and free ---- */

static void *alloc_for(tn_shared_slab *s, const char *operation, const void *site) {
	void *p = tn_slab_alloc_for(enter(s, operation), site);
	leave(s);
	return p;
}

static void free_for(tn_shared_slab *s, void *p, const char *operation, const void *site) {
	tn_slab_free_for(enter(s, operation), p, site);
	leave(s);
}

void *tn_shared_slab_alloc_slow(tn_shared_slab *s) {
	return alloc_for(s, "alloc", TN_CALLER);
}

void tn_shared_slab_free_slow(tn_shared_slab *s, void *p) {
	free_for(s, p, "free", TN_CALLER);
}

void *tn_shared_slab_local_alloc_slow(tn_local *l) {
	cache *c = tn_local_cache((local *)l, "local_alloc");
	return alloc_for(&locked_of(c)->hot, "local_alloc", TN_CALLER);
}

void tn_shared_slab_local_free_slow(tn_local *l, void *p) {
	cache *c = tn_local_cache((local *)l, "local_free");
	free_for(&locked_of(c)->hot, p, "local_free", TN_CALLER);
}

tn_local *tn_shared_slab_local(tn_shared_slab *s) {
	local *l = tn_cache_handle(&alive(s, "local")->cache);
	return l == NULL ? (errno = ENOMEM, NULL) : &l->hot;
}

bool tn_shared_slab_alloc_batch(tn_shared_slab *s, void **slots, size_t count) {
	if (count > PTRDIFF_MAX / tn_shared_slab_slot_size(s))
		return errno = ENOMEM, false;
	size_t done = 0;
	while (done < count && (slots[done] = alloc_for(s, "alloc_batch", TN_CALLER)) != NULL)
		done++;
	bool all = done == count;
	while (!all && done > 0)
		free_for(s, slots[--done], "alloc_batch", TN_CALLER);
	return all || (errno = ENOMEM, false);
}

void tn_shared_slab_free_batch(tn_shared_slab *s, void **slots, size_t count) {
	for (size_t i = 0; i < count; i++)
		free_for(s, slots[i], "free_batch", TN_CALLER);
}

void *tn_shared_slab_take(tn_shared_slab *s, const void *site) {
	return alloc_for(s, "get", site);
}

void tn_shared_slab_put_back(tn_shared_slab *s, void *p, const void *site) {
	free_for(s, p, "put", site);
}

bool tn_shared_slab_holds(const tn_shared_slab *s, const void *p) {
	return tn_shared_slab_owns(s, p);
}

void tn_shared_slab_turn(tn_shared_slab *s, void *p, enum slot_state from, enum slot_state to,
	const char *operation, const void *site) {
	(void)from;
	tn_slab_set_idle(enter(s, operation), p, to == SLOT_IDLE, operation, site);
	leave(s);
}

/* ---- flush and trim ---- */

void tn_shared_slab_flush(tn_shared_slab *s) {
	alive(s, "flush");
}

size_t tn_shared_slab_trim(tn_shared_slab *s) {
	size_t bytes = tn_slab_trim(enter(s, "trim"));
	leave(s);
	tn_pages_trim();
	return bytes;
}

/* ---- looking ---- */

size_t tn_shared_slab_in_use(const tn_shared_slab *s) {
	size_t count = tn_slab_in_use(enter(s, "in_use"));
	leave(s);
	return count;
}

size_t tn_shared_slab_slot_size(const tn_shared_slab *s) {
	return tn_slab_slot_size(alive(s, "slot_size")->slab);
}

bool tn_shared_slab_owns(const tn_shared_slab *s, const void *p) {
	bool owns = tn_slab_owns(enter(s, "owns"), p);
	leave(s);
	return owns;
}

void tn_shared_slab_each(tn_shared_slab *s, void (*visit)(void *slot, void *ctx), void *ctx) {
	tn_slab_each(enter(s, "each"), visit, ctx);
	leave(s);
}

void tn_shared_slab_stats(const tn_shared_slab *hot, tn_stats *stats) {
	const locked_slab *s = alive(hot, "stats");
	tn_slab_stats(enter(hot, "stats"), stats);
	leave(hot);
	stats->committed_bytes += s->own_bytes;
	stats->reserved_bytes += s->own_bytes;
}

bool tn_shared_slab_verify(const tn_shared_slab *s) {
	tn_slab_verify(enter(s, "verify"));
	leave(s);
	return true;
}

/* ---- create and destroy ---- */

static tn_slab *make_inner(
	const char *kind, size_t size, size_t align, const tn_shared_slab_options *o, size_t own_bytes) {
	tn_slab_options inner = {.name = o->name,
		.chunk_bytes = o->chunk_bytes,
		.limit_bytes = o->limit_bytes,
		.retain_chunks = o->retain_chunks,
		.init = o->init,
		.fini = o->fini,
		.ctx = o->ctx,
		.source = o->source,
		.expendable = o->expendable};
	if (o->limit_bytes != 0 && o->limit_bytes <= own_bytes)
		inner.limit_bytes = 1; /* refused as lack of memory, after all else has been looked at */
	else if (o->limit_bytes != 0)
		inner.limit_bytes -= own_bytes;
	tn_chunk_source source = tn_chunks_from(o->source);
	return tn_slab_make(kind, &source, size, align, &inner);
}

tn_shared_slab *tn_shared_slab_make(
	const char *kind, size_t size, size_t align, const tn_shared_slab_options *o) {
	if (o->magazine_slots > TN_MAGAZINE_SLOTS_MAX)
		return errno = EINVAL, NULL;
	locked_slab draft = {.state = TN_ALIVE,
		.own_bytes = tn_round_up(sizeof(locked_slab), TN_OS_PAGE),
		.cache = {.owner = &locked_slab_owner, .kind = kind}};
	draft.slab = make_inner(kind, size, align, o, draft.own_bytes);
	if (draft.slab == NULL)
		return NULL;
	draft.source = tn_chunks_from(o->source);
	locked_slab *s = tn_chunk_acquire(&draft.source, draft.own_bytes, TN_OS_PAGE);
	if (s == NULL) {
		tn_slab_destroy(draft.slab);
		return errno = ENOMEM, NULL;
	}
	*s = draft;
	tn_copy_name(s->name, o->name, kind);
	s->cache.name = s->name;
	tn_cache_init(&s->cache);
	s->hot.key = s->cache.key;
	return &s->hot;
}

void tn_shared_slab_look(const void *object, tn_position from, tn_listed *listed) {
	const locked_slab *s = object;
	tn_slab_look(s->slab, from, listed);
	listed->stats.committed_bytes += s->own_bytes;
	listed->stats.reserved_bytes += s->own_bytes;
}

static const tn_node_kind locked_slab_kind = {
	.kind = TN_KIND_SHARED_SLAB,
	.figures = TN_FIGURES_ALL,
	.look = tn_shared_slab_look,
};

bool tn_shared_slab_list(
	tn_shared_slab *hot, const tn_node_kind *kind, void *object, const char *name) {
	bool listed = tn_slab_list(enter(hot, "create"), NULL, kind, object, name);
	leave(hot);
	return listed;
}

void tn_shared_slab_unlist(tn_shared_slab *hot) {
	tn_slab_unlist(enter(hot, "destroy"));
	leave(hot);
}

tn_shared_slab *tn_shared_slab_create(
	size_t size, size_t align, const tn_shared_slab_options *options) {
	static const tn_shared_slab_options defaults;
	const tn_shared_slab_options *o = options == NULL ? &defaults : options;
	tn_shared_slab *s = tn_shared_slab_make("shared slab", size, align, o);
	if (s == NULL || tn_shared_slab_list(s, &locked_slab_kind, s, o->name))
		return s;
	tn_shared_slab_destroy(s);
	return errno = ENOMEM, NULL;
}

void tn_shared_slab_destroy(tn_shared_slab *hot) {
	if (hot == NULL)
		return;
	locked_slab *s = alive(hot, "destroy");
	tn_shared_slab_unlist(hot);
	tn_cache_close(&s->cache);
	tn_cache_deinit(&s->cache);
	tn_slab_destroy(s->slab);
	tn_chunk_source source = s->source;
	s->state = TN_DEAD;
	tn_chunk_release(&source, s, s->own_bytes, TN_OS_PAGE);
}

#endif
