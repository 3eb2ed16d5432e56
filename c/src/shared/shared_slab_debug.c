/* The shared slab in debug: a slab behind a lock. The slab has all that debug adds (sites, quarantine,
 * pages that fault, the table of leaks), so that this exists once. The price: debug does not scale.
 * Handles are the locals of the other modes, without magazines. */
#include <tenure/shared_slab.h>

#if TN_MODE == TN_MODE_DEBUG

#include <tenure/detail/front.h>

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
_Static_assert(
	offsetof(locked_slab, state) + sizeof(uint32_t) <= sizeof(tn_shared_slab) + TN_STAND_IN_BYTES,
	"stand-in");
_Static_assert(_Alignof(locked_slab) <= TN_STAND_IN_ALIGN, "stand-in");

static locked_slab *shared_of_cache(const cache *c) {
	return (locked_slab *)(void *)((char *)(uintptr_t)c - offsetof(locked_slab, cache));
}

/* For a call that does not touch the slab: panics when it is not alive. */
static locked_slab *shared_look(const tn_shared_slab *hot, const char *operation) {
	locked_slab *s = (locked_slab *)(uintptr_t)hot;
	if (s->state != TN_ALIVE)
		tn_panic("shared slab", NULL, "%s: %p is not a live shared slab", operation, (const void *)hot);
	return s;
}

static tn_slab *shared_enter(const tn_shared_slab *hot, const char *operation) {
	locked_slab *s = shared_look(hot, operation);
	if (tn_get(&s->holder, TN_RELAXED) == tn_os_thread())
		tn_panic(s->cache.kind, s->name, "%s: called from a callback of its own", operation);
	tn_cache_lock_owner(&s->lock);
	tn_set(&s->holder, tn_os_thread(), TN_RELAXED);
	return s->slab;
}

static void shared_leave(const tn_shared_slab *hot) {
	locked_slab *s = (locked_slab *)(uintptr_t)hot;
	if (TN_UNLIKELY(tn_get(&s->cache.trim_wanted, TN_RELAXED))) {
		tn_set(&s->cache.trim_wanted, false, TN_RELAXED);
		tn_slab_trim(s->slab);
	}
	tn_set(&s->holder, 0, TN_RELAXED);
	tn_cache_unlock_owner(&s->lock);
}

/* ---- alloc and free ---- */

static void *shared_alloc_for(tn_shared_slab *s, const char *operation, const void *site) {
	void *p = tn_slab_alloc_for(shared_enter(s, operation), site);
	shared_leave(s);
	return p;
}

static void shared_free_for(tn_shared_slab *s, void *p, const char *operation, const void *site) {
	tn_slab_free_for(shared_enter(s, operation), p, site);
	shared_leave(s);
}

void *tn_shared_slab_alloc_slow(tn_shared_slab *s) {
	return shared_alloc_for(s, "alloc", TN_CALLER);
}

void tn_shared_slab_free_slow(tn_shared_slab *s, void *p) {
	shared_free_for(s, p, "free", TN_CALLER);
}

void *tn_shared_slab_local_alloc_slow(tn_local *l) {
	cache *c = tn_cache_of_handle((local *)l, "local_alloc");
	return shared_alloc_for(&shared_of_cache(c)->hot, "local_alloc", TN_CALLER);
}

void tn_shared_slab_local_free_slow(tn_local *l, void *p) {
	cache *c = tn_cache_of_handle((local *)l, "local_free");
	shared_free_for(&shared_of_cache(c)->hot, p, "local_free", TN_CALLER);
}

tn_local *tn_shared_slab_local(tn_shared_slab *s) {
	local *l = tn_cache_handle(&shared_look(s, "local")->cache);
	return l == NULL ? (errno = ENOMEM, NULL) : &l->hot;
}

bool tn_shared_slab_alloc_batch(tn_shared_slab *s, void **slots, size_t count) {
	if (count > PTRDIFF_MAX / tn_shared_slab_slot_size(s))
		return errno = ENOMEM, false;
	size_t done = 0;
	while (done < count && (slots[done] = shared_alloc_for(s, "alloc_batch", TN_CALLER)) != NULL)
		done++;
	bool all = done == count;
	while (!all && done > 0)
		shared_free_for(s, slots[--done], "alloc_batch", TN_CALLER);
	return all || (errno = ENOMEM, false);
}

void tn_shared_slab_free_batch(tn_shared_slab *s, void **slots, size_t count) {
	for (size_t i = 0; i < count; i++)
		shared_free_for(s, slots[i], "free_batch", TN_CALLER);
}

void *tn_shared_slab_take(tn_shared_slab *s, const void *site) {
	return shared_alloc_for(s, "get", site);
}

void tn_shared_slab_give(tn_shared_slab *s, void *p, const void *site) {
	shared_free_for(s, p, "put", site);
}

bool tn_shared_slab_holds(const tn_shared_slab *s, const void *p) {
	return tn_shared_slab_owns(s, p);
}

void tn_shared_slab_set_state(tn_shared_slab *s, void *p, enum slot_state from, enum slot_state to,
	const char *operation, const void *site) {
	(void)from;
	tn_slab_set_idle(shared_enter(s, operation), p, to == SLOT_IDLE, operation, site);
	shared_leave(s);
}

/* ---- flush and trim ---- */

void tn_shared_slab_flush(tn_shared_slab *s) {
	shared_look(s, "flush");
}

size_t tn_shared_slab_drain(tn_shared_slab *s) {
	size_t bytes = tn_slab_trim(shared_enter(s, "trim"));
	shared_leave(s);
	return bytes;
}

/* ---- looking ---- */

size_t tn_shared_slab_in_use(const tn_shared_slab *s) {
	size_t count = tn_slab_in_use(shared_enter(s, "in_use"));
	shared_leave(s);
	return count;
}

size_t tn_shared_slab_slot_size(const tn_shared_slab *s) {
	return tn_slab_slot_size(shared_look(s, "slot_size")->slab);
}

bool tn_shared_slab_owns(const tn_shared_slab *s, const void *p) {
	bool owns = tn_slab_owns(shared_enter(s, "owns"), p);
	shared_leave(s);
	return owns;
}

void tn_shared_slab_each(tn_shared_slab *s, void (*visit)(void *slot, void *ctx), void *ctx) {
	tn_slab_each(shared_enter(s, "each"), visit, ctx);
	shared_leave(s);
}

/* There are no depots here, and a slab keeps the chunks that it was made to keep. */
void tn_shared_slab_tune(tn_shared_slab *hot, const tn_shared_slab_knobs *knobs) {
	(void)knobs;
	shared_look(hot, "tune");
}

void tn_shared_slab_stats(const tn_shared_slab *hot, tn_stats *stats) {
	const locked_slab *s = shared_look(hot, "stats");
	tn_slab_stats(shared_enter(hot, "stats"), stats);
	shared_leave(hot);
	stats->committed_bytes += s->own_bytes;
	stats->reserved_bytes += s->own_bytes;
}

bool tn_shared_slab_verify(const tn_shared_slab *s) {
	tn_slab_verify(shared_enter(s, "verify"));
	shared_leave(s);
	return true;
}

/* ---- create and destroy ---- */

static size_t shared_trim(cache *c) {
	return tn_shared_slab_drain(&shared_of_cache(c)->hot);
}

static const cache_owner locked_owner = {.trim = shared_trim};

tn_shared_slab *tn_shared_slab_make(
	const char *kind, size_t size, size_t align, const tn_shared_slab_options *o) {
	if (o->magazine_slots > TN_MAGAZINE_SLOTS_MAX)
		return errno = EINVAL, NULL;
	locked_slab draft = {.state = TN_ALIVE,
		.own_bytes = tn_round_up(sizeof(locked_slab), TN_OS_PAGE),
		.source = tn_chunks_from(o->source),
		.cache = {.owner = &locked_owner, .kind = kind}};
	tn_slab_options inner = {.name = o->name,
		.chunk_bytes = o->chunk_bytes,
		.limit_bytes = o->limit_bytes,
		.retain_chunks = o->retain_chunks,
		.init = o->init,
		.fini = o->fini,
		.ctx = o->ctx,
		.source = o->source,
		.expendable = o->expendable};
	/* A limit of 1 is refused as lack of memory, after everything else has been looked at. */
	if (o->limit_bytes != 0)
		inner.limit_bytes = tn_max(o->limit_bytes, draft.own_bytes + 1) - draft.own_bytes;
	draft.slab = tn_slab_make(kind, &draft.source, size, align, &inner);
	if (draft.slab == NULL)
		return NULL;
	locked_slab *s = tn_chunk_acquire(&draft.source, draft.own_bytes, TN_OS_PAGE);
	if (s == NULL) {
		tn_slab_destroy(draft.slab);
		return errno = ENOMEM, NULL;
	}
	*s = draft;
	tn_copy_name(s->name, o->name, kind);
	s->cache.name = s->name;
	s->cache.owner_lock = &s->lock;
	tn_cache_make(&s->cache);
	s->hot.key = s->cache.key;
	return &s->hot;
}

void tn_shared_slab_look(const void *object, tn_position from, tn_listed *listed) {
	const locked_slab *s = object;
	tn_slab_look(s->slab, from, listed);
	listed->stats.committed_bytes += s->own_bytes;
	listed->stats.reserved_bytes += s->own_bytes;
}

bool tn_shared_slab_list(
	tn_shared_slab *hot, const tn_node_kind *kind, void *object, const char *name) {
	bool listed = tn_slab_list(shared_enter(hot, "create"), NULL, kind, object, name);
	shared_leave(hot);
	return listed;
}

void tn_shared_slab_unlist(tn_shared_slab *hot) {
	tn_slab_unlist(shared_enter(hot, "destroy"));
	shared_leave(hot);
}

void tn_shared_slab_destroy(tn_shared_slab *hot) {
	if (hot == NULL)
		return;
	locked_slab *s = shared_look(hot, "destroy");
	tn_shared_slab_unlist(hot);
	tn_cache_unlink(&s->cache);
	tn_cache_end(&s->cache);
	tn_slab_destroy(s->slab);
	tn_chunk_source source = s->source;
	s->state = TN_DEAD;
	tn_chunk_release(&source, s, s->own_bytes, TN_OS_PAGE);
}

#endif
