/* Scopes: arenas with a place in a tree. Ending a scope ends everything below it, so that an error path
 * cannot forget anything.
 *
 *   create        a record: this thread's, else some from the store at once
 *   alloc         the arena's bump; chunks are charged to the scope's account (limit.h)
 *   destroy       down to the newest child without children, end it, and on from its parent: no stack
 *   `- scope_end  deferred calls, owned allocators, the arena's chunks, the record
 *
 * The tree is held twice: by plain links that only its thread follows, and by nodes that readers on
 * other threads follow too (node.h). The nodes of owned allocators are below the scope's.
 *
 * I1  nothing is added below a scope that is ENDING. (A moment, which verify cannot see.)
 * I2  account.held_bytes is the memory that the arena and the owned allocators have taken. The
 *     charged_bytes of a scope's limit are the held and external bytes of all scopes from it down.
 * I3  parents and children are linked both ways; those of a shared scope, and roots, under the list's
 *     lock. A scope without limits has the account's limit of its parent. */
#include <tenure/scope.h>

#include <errno.h>
#include <stdarg.h>

#include "../arena/arena.h"
#include "../base/list.h"
#include "../base/probes.h"
#include "../base/text.h"
#include "../heap/heap.h"
#include "../slab/slab.h"

enum {
	SCOPE_CHUNK_BYTES = 16 << 10,
	SCOPE_CHUNK_BYTES_MAX = 1 << 20,
	TAKEN_RECORDS = 16,
	KEPT_RECORDS = 32,
	SCOPE_SUMS = 16, /* subtrees that are printed with their sums */
	IDENT_WORDS = (TN_IDENT_BYTES + 1) / sizeof(size_t),
};

enum scope_state {
	SCOPE_FREE,
	SCOPE_ALIVE,
	SCOPE_ENDING, /* or being reset: its contents go, nothing comes */
};

typedef struct deferred {
	struct deferred *older;
	void (*fn)(void *arg);
	void *arg;
} deferred;

/* A record stays a record for ever, so that readers and stale pointers find one there. Its owner's
 * thread writes it, except where a comment says otherwise. */
typedef struct scope {
	tn_scope hot;
	uint32_t state;
	bool shared;
	uintptr_t ender; /* hardened and debug: the thread that set it ENDING */
	struct scope *parent;
	struct scope *newest;        /* child; a shared scope changes its list under the list's lock */
	struct scope *older, **link; /* below the same parent */
	deferred *deferred;
	tn_account account; /* of its own chunks, and of the allocators that it owns */
	TN_ATOMIC(size_t) external_bytes;
	tn_limit limit; /* its own limits, if account.limit is this one */
	void (*on_soft)(tn_scope *scope, size_t held_bytes, void *ctx);
	void *ctx;
	TN_ATOMIC(size_t) ident[IDENT_WORDS];
	tn_node node;
} scope;

static tn_records scope_store = {
	.bytes = (sizeof(scope) + 63) & ~(size_t)63, .node_offset = offsetof(scope, node)};

/* Owner thread only. */
static _Thread_local struct {
	enum { RECORDS_NEW, RECORDS_OPEN, RECORDS_CLOSED } state;
	size_t count;
	scope *newest; /* linked by `newer` of their nodes */
} kept;

static scope *scope_of(const tn_scope *hot) {
	return (scope *)(uintptr_t)hot;
}

static bool scope_has_limits(const scope *s) {
	return s->account.limit == &s->limit;
}

static size_t scope_held_bytes(const scope *s) {
	return s->account.held_bytes + tn_get(&s->external_bytes, TN_RELAXED);
}

/* Walks through `top` and all scopes below it, parents first: the scope after `s`, or NULL. The first
 * passes over the scopes below `s`. */
static scope *scope_next_beside(const scope *s, const scope *top) {
	while (s != top && s->older == NULL)
		s = s->parent;
	return s == top ? NULL : s->older;
}

static scope *scope_next_below(const scope *s, const scope *top) {
	return s->newest != NULL ? s->newest : scope_next_beside(s, top);
}

static TN_COLD _Noreturn void scope_refuse_dead(const scope *s, const char *operation) {
	tn_panic("scope", NULL, "%s: %p is not a live scope", operation, (const void *)s);
}

/* Hardened and debug: panics if another thread is ending or resetting the scope, or one above it. */
static inline void scope_check_above(const scope *s, const char *operation) {
	if (TN_MODE == TN_MODE_RELEASE)
		return;
	for (const scope *above = s; above != NULL; above = above->parent)
		if (TN_UNLIKELY(above->state == SCOPE_ENDING && above->ender != tn_os_thread()))
			tn_busy_panic("scope", s->hot.arena.name, operation, above->ender);
}

/* The live scope; in every mode a stale pointer is refused, because a record stays a record. */
static scope *scope_look(const tn_scope *hot, const char *operation) {
	scope *s = scope_of(hot);
	if (TN_UNLIKELY(s->state == SCOPE_FREE))
		scope_refuse_dead(s, operation);
	scope_check_above(s, operation);
	return s;
}

/* Begins a call that changes the tree at a scope. */
static scope *scope_enter(tn_scope *hot, const char *operation) {
	scope *s = scope_look(hot, operation);
	if (!s->shared)
		tn_enter(&s->hot.arena.busy, "scope", s->hot.arena.name, operation);
	return s;
}

static void scope_leave(scope *s) {
	if (!s->shared)
		tn_leave(&s->hot.arena.busy);
}

/* ---- records ---- */

static scope *scope_next_kept(const scope *s) {
	return (scope *)(void *)s->node.newer;
}

static void scope_give_kept(void) {
	tn_list_give_records(&scope_store, kept.newest, kept.count);
	kept.newest = NULL;
	kept.count = 0;
}

static void scope_close_kept(void) {
	kept.state = RECORDS_CLOSED;
	scope_give_kept();
}

/* Whether this thread may keep records: not in debug, where each waits in the store as long as it can,
 * and not when the thread is ending. */
static bool scope_may_keep(void) {
	if (TN_MODE != TN_MODE_DEBUG && kept.state == RECORDS_NEW)
		kept.state =
			tn_os_on_thread_exit(TN_EXIT_SCOPES, scope_close_kept) ? RECORDS_OPEN : RECORDS_CLOSED;
	return kept.state == RECORDS_OPEN;
}

static TN_COLD scope *scope_take_record_slow(void) {
	size_t count = scope_may_keep() ? TAKEN_RECORDS : 1;
	scope *s = tn_list_take_records(&scope_store, &count);
	if (s == NULL)
		return NULL;
	kept.newest = scope_next_kept(s);
	kept.count = count - 1;
	return s;
}

static inline scope *scope_take_record(void) {
	scope *s = kept.newest;
	if (TN_UNLIKELY(s == NULL))
		return scope_take_record_slow();
	kept.newest = scope_next_kept(s);
	kept.count--;
	return s;
}

static void scope_give_record(scope *s) {
	if (TN_UNLIKELY(kept.count == KEPT_RECORDS))
		scope_give_kept();
	if (TN_UNLIKELY(!scope_may_keep())) {
		s->node.newer = NULL;
		tn_list_give_records(&scope_store, s, 1);
		return;
	}
	s->node.newer = (tn_node *)(void *)kept.newest;
	kept.newest = s;
	kept.count++;
}

/* ---- for readers on other threads ---- */

static void scope_read_ident(const scope *s, char ident[TN_IDENT_BYTES + 1]) {
	size_t words[IDENT_WORDS];
	for (size_t i = 0; i < IDENT_WORDS; i++)
		words[i] = tn_get(&s->ident[i], TN_ACQUIRE);
	memcpy(ident, words, sizeof words);
	ident[TN_IDENT_BYTES] = '\0';
}

static void scope_write_ident(scope *s, const char *ident) {
	size_t words[IDENT_WORDS] = {0};
	char *text = (char *)words;
	for (size_t i = 0; i < TN_IDENT_BYTES && ident[i] != '\0'; i++)
		text[i] = ident[i];
	for (size_t i = 0; i < IDENT_WORDS; i++)
		tn_set(&s->ident[i], words[i], TN_RELEASE);
}

static void scope_look_at(const void *object, tn_position from, tn_listed *listed) {
	const scope *s = object;
	tn_arena_look(&s->hot.arena, from, listed);
	listed->stats.external_bytes = tn_get(&s->external_bytes, TN_RELAXED);
	if (tn_get(&s->ident[0], TN_ACQUIRE) != 0)
		scope_read_ident(s, listed->ident);
}

static const tn_node_kind scope_kind = {
	.kind = TN_KIND_SCOPE, .figures = TN_FIGURES_PLAIN, .look = scope_look_at};

static const tn_node_kind *scope_kind_of(const tn_node *n) {
	return tn_get(&n->kind, TN_RELAXED);
}

/* ---- the tree ---- */

static bool scope_needs_lock(const scope *parent) {
	return parent == NULL || parent->shared;
}

static void scope_link(scope *s, scope *parent) {
	s->parent = parent;
	s->older = NULL;
	s->link = NULL;
	if (parent != NULL)
		TN_LIST_PUSH(&parent->newest, s, older, link);
}

static void scope_list(scope *s, scope *parent, const char *name) {
	bool locked = scope_needs_lock(parent);
	if (locked)
		tn_list_lock();
	scope_link(s, parent);
	tn_list_node(parent == NULL ? &tn_list_root : &parent->node, &s->node, &scope_kind, s, name);
	if (locked)
		tn_list_unlock();
}

static void scope_unlist(scope *s) {
	bool locked = scope_needs_lock(s->parent);
	if (locked)
		tn_list_lock();
	TN_LIST_UNLINK(s, older, link);
	tn_node_unlink(&s->node);
	if (locked)
		tn_list_unlock();
}

/* ---- create ---- */

static void scope_open(scope *s, const scope *parent) {
	s->shared = false;
	s->account.limit = parent == NULL ? NULL : parent->account.limit;
	s->hot.arena.chunk_bytes = SCOPE_CHUNK_BYTES;
	s->hot.arena.chunk_bytes_max = SCOPE_CHUNK_BYTES_MAX;
	tn_set(&s->ident[0], 0, TN_RELEASE);
}

static bool scope_set_options(scope *s, const scope *parent, const tn_scope_options *o) {
	bool root_only = o->shared || o->source != NULL;
	if ((parent != NULL && root_only) || !tn_chunk_source_valid(o->source))
		return errno = EINVAL, false;
	s->shared = o->shared;
	if (o->ident != NULL)
		scope_write_ident(s, o->ident);
	/* The default of one size is no bound for the other. */
	tn_arena_options sizes = {.chunk_bytes = o->chunk_bytes, .chunk_bytes_max = o->chunk_bytes_max};
	if (sizes.chunk_bytes_max == 0)
		sizes.chunk_bytes_max = tn_max(sizes.chunk_bytes, SCOPE_CHUNK_BYTES_MAX);
	if (sizes.chunk_bytes == 0)
		sizes.chunk_bytes = tn_min(SCOPE_CHUNK_BYTES, sizes.chunk_bytes_max);
	return tn_arena_size(&s->hot.arena, &sizes);
}

static scope *scope_make(scope *parent, const char *name, const tn_scope_options *o) {
	scope *s = scope_take_record();
	if (s == NULL)
		return NULL;
	scope_open(s, parent);
	if (o != NULL && !scope_set_options(s, parent, o)) {
		scope_give_record(s);
		return NULL;
	}
	tn_chunk_source source =
		parent != NULL ? parent->hot.arena.source : tn_chunks_from(o == NULL ? NULL : o->source);
	source.account = &s->account;
	tn_arena_open(&s->hot.arena, "scope", source, &s->node);
	s->state = SCOPE_ALIVE;
	scope_list(s, parent, name == NULL ? "scope" : name);
	/* A scope with others below it lives longer than they do. */
	tn_node *lasting = parent == NULL ? &s->node : &parent->node;
	if (TN_UNLIKELY(tn_get(&lasting->since_ms, TN_RELAXED) == 0))
		tn_list_begin_age(lasting, 0);
	return s;
}

tn_scope *tn_scope_create(tn_scope *parent, const char *name, const tn_scope_options *options) {
	scope *above = NULL;
	if (parent == NULL)
		tn_list_begin();
	else
		above = scope_enter(parent, "create");
	scope *s = NULL;
	if (above == NULL || above->state == SCOPE_ALIVE)
		s = scope_make(above, name, options);
	else
		errno = EINVAL;
	if (above != NULL)
		scope_leave(above);
	return s == NULL ? NULL : &s->hot;
}

/* ---- destroy and reset ---- */

static void scope_run_deferred(scope *s) {
	while (s->deferred != NULL) {
		deferred *d = s->deferred;
		s->deferred = d->older;
		d->fn(d->arg);
	}
}

static TN_COLD void scope_end_owned(scope *s) {
	for (tn_node *n = s->node.owned; n != NULL; n = s->node.owned)
		scope_kind_of(n)->end(tn_get(&n->object, TN_RELAXED));
}

static TN_COLD void scope_drop_external(scope *s) {
	size_t bytes = tn_swap(&s->external_bytes, 0, TN_RELAXED);
	tn_limit_uncharge(s->account.limit, NULL, bytes);
}

/* Ends the contents of a scope without children, except its arena. */
static void scope_clear(scope *s) {
	scope_run_deferred(s);
	if (s->node.owned != NULL)
		scope_end_owned(s);
	if (tn_get(&s->external_bytes, TN_RELAXED) != 0)
		scope_drop_external(s);
}

static void scope_end(scope *s) {
	scope_clear(s);
	tn_arena_close(&s->hot.arena);
	scope_unlist(s);
	s->state = SCOPE_FREE;
	scope_give_record(s);
}

static TN_COLD _Noreturn void scope_refuse_ending(const scope *s, const char *operation) {
	tn_panic("scope", s->hot.arena.name,
		"%s: a scope below it is ending: a deferred call must not end what is above its scope",
		operation);
}

static inline void scope_set_ending(scope *s, const char *operation) {
	tn_look(&s->hot.arena.busy, "scope", s->hot.arena.name, operation);
	if (TN_MODE != TN_MODE_RELEASE)
		s->ender = tn_os_thread();
	s->state = SCOPE_ENDING;
}

/* Ends the scopes below `top`. The scopes on the way down are ENDING; deferred calls may end others, so
 * each step looks for the newest child anew. */
static TN_COLD void scope_end_children(scope *top, const char *operation) {
	scope *s = top;
	while (s != top || s->newest != NULL) {
		if (s->newest != NULL) {
			s = s->newest;
			if (s->state != SCOPE_ALIVE)
				scope_refuse_ending(top, operation);
			scope_set_ending(s, operation);
			continue;
		}
		scope *parent = s->parent;
		scope_end(s);
		s = parent;
	}
}

/* Whether s may end now. */
static bool scope_begin_end(scope *s, const char *operation) {
	if (s->state == SCOPE_ENDING)
		return false;
	scope_set_ending(s, operation);
	return true;
}

void tn_scope_destroy(tn_scope *hot) {
	if (hot == NULL)
		return;
	scope *s = scope_look(hot, "destroy");
	if (!scope_begin_end(s, "destroy"))
		return;
	if (s->newest != NULL)
		scope_end_children(s, "destroy");
	scope_end(s);
}

void tn_scope_reset(tn_scope *hot) {
	scope *s = scope_look(hot, "reset");
	if (!scope_begin_end(s, "reset"))
		return;
	if (s->newest != NULL)
		scope_end_children(s, "reset");
	scope_clear(s);
	/* The slow part of the arena's reset has the probe already. */
	if (!tn_hook_checked() && s->hot.arena.restart != NULL)
		TN_PROBE(reset, s->hot.arena.kind, s->hot.arena.name);
	tn_arena_reset(&s->hot.arena);
	s->state = SCOPE_ALIVE;
}

/* ---- alloc and defer ---- */

void *tn_scope_alloc_slow(tn_scope *hot, size_t size, size_t align) {
	return tn_arena_alloc_for(&scope_look(hot, "alloc")->hot.arena, size, align, TN_CALLER);
}

void *tn_scope_copy(tn_scope *hot, const void *p, size_t size) {
	return tn_arena_copy_for(&scope_look(hot, "copy")->hot.arena, p, size, TN_CALLER);
}

char *tn_scope_printf(tn_scope *hot, const char *format, ...) {
	scope *s = scope_look(hot, "printf");
	va_list arguments;
	va_start(arguments, format);
	char *text = tn_arena_print_for(&s->hot.arena, format, arguments, TN_CALLER);
	va_end(arguments);
	return text;
}

bool tn_scope_defer(tn_scope *hot, void (*fn)(void *arg), void *arg) {
	scope *s = scope_look(hot, "defer");
	if (fn == NULL || s->state != SCOPE_ALIVE)
		return errno = EINVAL, false;
	void *p;
	if (!tn_arena_bump(&hot->arena, sizeof(deferred), sizeof(void *), &p))
		p = tn_arena_alloc_for(&hot->arena, sizeof(deferred), sizeof(void *), TN_CALLER);
	if (p == NULL)
		return false;
	deferred *d = p;
	*d = (deferred){s->deferred, fn, arg};
	s->deferred = d;
	return true;
}

bool tn_scope_undefer(tn_scope *hot, void (*fn)(void *arg), void *arg) {
	scope *s = scope_enter(hot, "undefer");
	deferred **at = &s->deferred;
	while (*at != NULL && ((*at)->fn != fn || (*at)->arg != arg))
		at = &(*at)->older;
	bool found = *at != NULL;
	if (found)
		*at = (*at)->older;
	scope_leave(s);
	return found;
}

size_t tn_scope_trim(tn_scope *hot) {
	scope *s = scope_look(hot, "trim");
	size_t bytes = tn_arena_trim(&s->hot.arena);
	for (tn_node *n = s->node.owned; n != NULL; n = n->next_owned)
		bytes += scope_kind_of(n)->trim(tn_get(&n->object, TN_RELAXED));
	return bytes;
}

/* ---- limits and adopt ---- */

/* Held and external bytes of the scopes from `top` down; SIZE_MAX where they cannot be counted. */
static size_t scope_subtree_bytes(const scope *top) {
	size_t bytes = 0;
	for (const scope *s = top; s != NULL; s = scope_next_below(s, top)) {
		size_t here = scope_held_bytes(s);
		bytes = here > SIZE_MAX - bytes ? SIZE_MAX : bytes + here;
	}
	return bytes;
}

/* Puts `now` in the place of `before` in the accounts and limits from `top` down that `before` counts
 * first. */
static void scope_change_limit(scope *top, const tn_limit *before, tn_limit *now) {
	scope *s = top;
	while (s != NULL) {
		bool counted = s->account.limit == before;
		if (counted)
			s->account.limit = now;
		else if (s->limit.above == before)
			s->limit.above = now;
		s = counted ? scope_next_below(s, top) : scope_next_beside(s, top);
	}
}

static void scope_call_on_soft(tn_limit *limit, size_t charged_bytes) {
	scope *s = (scope *)(void *)((char *)limit - offsetof(scope, limit));
	s->on_soft(&s->hot, charged_bytes, s->ctx);
}

static void scope_set_limits(scope *s, const tn_scope_limits *limits, size_t held) {
	tn_limit *l = &s->limit;
	l->hard_bytes = limits->hard_bytes == 0 ? SIZE_MAX : limits->hard_bytes;
	l->soft_bytes = limits->soft_bytes == 0 ? SIZE_MAX : limits->soft_bytes;
	l->on_soft = scope_call_on_soft;
	s->on_soft = limits->on_soft;
	s->ctx = limits->ctx;
	tn_set(&l->told, false, TN_RELAXED);
	if (!scope_has_limits(s)) {
		tn_set(&l->charged_bytes, held, TN_RELAXED);
		tn_limit *above = s->account.limit;
		scope_change_limit(s, above, l);
		l->above = above;
	}
	tn_limit_tell(l);
}

bool tn_scope_limit(tn_scope *hot, const tn_scope_limits *limits) {
	static const tn_scope_limits none;
	const tn_scope_limits *l = limits == NULL ? &none : limits;
	scope *s = scope_enter(hot, "limit");
	bool soft_fits = l->hard_bytes == 0 || l->soft_bytes <= l->hard_bytes;
	bool valid = soft_fits && (l->soft_bytes == 0 || l->on_soft != NULL);
	size_t held = scope_subtree_bytes(s);
	bool fits = held != SIZE_MAX && (l->hard_bytes == 0 || held <= l->hard_bytes);
	if (valid && fits && l->hard_bytes == 0 && l->soft_bytes == 0) {
		if (scope_has_limits(s))
			scope_change_limit(s, &s->limit, s->limit.above);
	} else if (valid && fits) {
		scope_set_limits(s, l, held);
	}
	scope_leave(s);
	if (!valid || !fits)
		errno = valid ? ENOMEM : EINVAL;
	return valid && fits;
}

bool tn_scope_external(tn_scope *hot, size_t bytes) {
	scope *s = scope_enter(hot, "external");
	size_t before = tn_get(&s->external_bytes, TN_RELAXED);
	if (bytes > PTRDIFF_MAX) {
		scope_leave(s);
		return errno = ENOMEM, false;
	}
	bool noted = bytes <= before || tn_limit_charge(s->account.limit, NULL, bytes - before);
	if (noted && bytes < before)
		tn_limit_uncharge(s->account.limit, NULL, before - bytes);
	if (noted)
		tn_set(&s->external_bytes, bytes, TN_RELAXED);
	scope_leave(s);
	return noted;
}

static bool scope_is_above(const scope *s, const scope *below) {
	while (below != NULL && below != s)
		below = below->parent;
	return below != NULL;
}

static const scope *scope_root_of(const scope *s) {
	while (s->parent != NULL)
		s = s->parent;
	return s;
}

static bool scope_has_source_of(const scope *a, const scope *b) {
	bool paged = tn_chunk_is_paged(&a->hot.arena.source) && tn_chunk_is_paged(&b->hot.arena.source);
	return paged || scope_root_of(a) == scope_root_of(b);
}

static bool scope_may_adopt(const scope *child, const scope *parent) {
	return child->parent != NULL && child->state == SCOPE_ALIVE && parent->state == SCOPE_ALIVE &&
	       scope_has_source_of(child, parent) && !scope_is_above(child, parent);
}

/* Charges the limits above the new parent, and no more those above the old one alone. */
static bool scope_move_charge(scope *child, scope *parent) {
	tn_limit *from = child->parent->account.limit, *to = parent->account.limit;
	if (from == to)
		return true;
	const tn_limit *both = tn_limit_common(from, to);
	size_t held = scope_subtree_bytes(child);
	if (!tn_limit_charge(to, both, held))
		return false;
	tn_limit_uncharge(from, both, held);
	scope_change_limit(child, from, to);
	return true;
}

static void scope_move(scope *child, scope *parent) {
	bool locked = child->parent->shared || parent->shared;
	if (locked)
		tn_list_lock();
	TN_LIST_UNLINK(child, older, link);
	scope_link(child, parent);
	tn_list_move_node(&child->node, &parent->node);
	if (locked)
		tn_list_unlock();
}

bool tn_scope_adopt(tn_scope *child_hot, tn_scope *new_parent) {
	scope *child = scope_look(child_hot, "adopt");
	scope *parent = scope_enter(new_parent, "adopt");
	bool moved = scope_may_adopt(child, parent);
	if (!moved)
		errno = EINVAL;
	else if (child->parent != parent && (moved = scope_move_charge(child, parent)))
		scope_move(child, parent);
	scope_leave(parent);
	return moved;
}

/* ---- owned allocators ---- */

/* Begins a call that makes an owned allocator; EINVAL when its options name a source. */
static scope *scope_enter_owner(tn_scope *hot, const tn_source *source, const char *operation) {
	scope *s = scope_enter(hot, operation);
	if (s->state == SCOPE_ALIVE && source == NULL)
		return s;
	scope_leave(s);
	return errno = EINVAL, NULL;
}

tn_arena *tn_scope_arena(tn_scope *hot, const tn_arena_options *options) {
	static const tn_arena_options defaults;
	options = options == NULL ? &defaults : options;
	scope *s = scope_enter_owner(hot, options->source, "arena");
	if (s == NULL)
		return NULL;
	tn_arena *a = tn_arena_make_below(&s->node, &s->hot.arena.source, options);
	scope_leave(s);
	return a;
}

tn_slab *tn_scope_slab(tn_scope *hot, size_t size, size_t align, const tn_slab_options *options) {
	static const tn_slab_options defaults;
	options = options == NULL ? &defaults : options;
	scope *s = scope_enter_owner(hot, options->source, "slab");
	if (s == NULL)
		return NULL;
	tn_slab *slab = tn_slab_make_below(&s->node, &s->hot.arena.source, size, align, options);
	scope_leave(s);
	return slab;
}

tn_heap *tn_scope_heap(tn_scope *hot, const tn_heap_options *options) {
	static const tn_heap_options defaults;
	options = options == NULL ? &defaults : options;
	scope *s = scope_enter_owner(hot, options->source, "heap");
	if (s == NULL)
		return NULL;
	tn_heap *h = tn_heap_make_below(&s->node, &s->hot.arena.source, options);
	scope_leave(s);
	return h;
}

/* ---- looking ---- */

tn_scope *tn_scope_parent(const tn_scope *hot) {
	const scope *s = scope_look(hot, "parent");
	return s->parent == NULL ? NULL : &s->parent->hot;
}

bool tn_scope_owns(const tn_scope *hot, const void *p) {
	return tn_arena_owns(&scope_look(hot, "owns")->hot.arena, p);
}

void tn_scope_each(tn_scope *hot, void (*visit)(tn_scope *child, void *ctx), void *ctx) {
	scope *s = scope_look(hot, "each");
	if (s->shared)
		tn_list_lock();
	else
		tn_look(&s->hot.arena.busy, "scope", s->hot.arena.name, "each");
	for (scope *child = s->newest; child != NULL; child = child->older)
		visit(&child->hot, ctx);
	if (s->shared)
		tn_list_unlock();
}

static void scope_add_figures(tn_stats *sum, const tn_stats *more) {
	sum->live_bytes += more->live_bytes;
	sum->live_count += more->live_count;
	sum->cached_bytes += more->cached_bytes;
	sum->reserved_bytes += more->reserved_bytes;
	sum->committed_bytes += more->committed_bytes;
	sum->peak_bytes += more->peak_bytes;
	sum->chunk_count += more->chunk_count;
	sum->partial_count += more->partial_count;
	sum->partial_live_count += more->partial_live_count;
	sum->refills += more->refills;
	sum->waste_bytes += more->waste_bytes;
	sum->external_bytes += more->external_bytes;
}

static void scope_read(const scope *s, tn_stats *stats) {
	tn_arena_stats(&s->hot.arena, stats);
	stats->external_bytes = tn_get(&s->external_bytes, TN_RELAXED);
	for (tn_node *n = s->node.owned; n != NULL; n = n->next_owned) {
		tn_stats more;
		scope_kind_of(n)->stats(tn_get(&n->object, TN_RELAXED), &more);
		scope_add_figures(stats, &more);
	}
}

void tn_scope_stats(const tn_scope *hot, tn_stats *own, tn_stats *subtree) {
	const scope *top = scope_look(hot, "stats");
	if (own != NULL)
		scope_read(top, own);
	if (subtree == NULL)
		return;
	scope_read(top, subtree);
	for (const scope *s = scope_next_below(top, top); s != NULL; s = scope_next_below(s, top)) {
		tn_stats more;
		scope_read(s, &more);
		scope_add_figures(subtree, &more);
	}
}

static void scope_print_text(FILE *out, const char *text) {
	char clean[TN_IDENT_BYTES + 1];
	snprintf(clean, sizeof clean, "%s", text);
	tn_text_clean(clean);
	fputs(clean, out);
}

static void scope_print_age(FILE *out, uint64_t ms) {
	if (ms < 1000)
		fprintf(out, "%6u ms", (unsigned)ms);
	else if (ms < 100 * 1000)
		fprintf(out, "%6.1f s ", (double)ms / 1000);
	else
		fprintf(out, "%6.0f s ", (double)ms / 1000);
}

/* A line of the tree: name, figures, and the time if there is one. */
static void scope_print_figures(FILE *out, int indent, const tn_stats *stats) {
	enum { NAME_WIDTH = 32 };
	int width = indent + (int)strlen(stats->name);
	fprintf(out, "%*s", indent, "");
	scope_print_text(out, stats->name);
	fprintf(out, "%*s %12zu %12zu %12zu %7zu %12zu ", width < NAME_WIDTH ? NAME_WIDTH - width : 0, "",
		stats->live_bytes, stats->cached_bytes, stats->committed_bytes, stats->chunk_count,
		stats->peak_bytes);
}

static void scope_print_remarks(FILE *out, const tn_stats *stats, const char *ident) {
	if (stats->external_bytes != 0)
		fprintf(out, "  external %zu", stats->external_bytes);
	if (ident[0] != '\0')
		fputs("  ", out), scope_print_text(out, ident);
	fputc('\n', out);
}

static void scope_print_row(FILE *out, const tn_listed *listed) {
	scope_print_figures(out, listed->depth > 20 ? 40 : 2 * (int)listed->depth, &listed->stats);
	scope_print_age(out, listed->age_ms);
	if (listed->kind != TN_KIND_SCOPE)
		fprintf(out, "  (%s)", tn_kind_name(listed->kind));
	scope_print_remarks(out, &listed->stats, listed->ident);
}

/* A child of the printed scope with everything below it. */
typedef struct scope_sum {
	tn_stats stats;
	size_t count; /* scopes and allocators in it */
	char ident[TN_IDENT_BYTES + 1];
} scope_sum;

typedef struct scope_printout {
	FILE *out;
	scope_sum own, total;
	scope_sum sums[SCOPE_SUMS + 1]; /* the largest ones; the last is of the child being visited */
	size_t count;                   /* of sums that are full, without the last */
	scope_sum others;               /* children for which there was no room */
} scope_printout;

static void scope_add_sum(scope_sum *to, const scope_sum *from) {
	scope_add_figures(&to->stats, &from->stats);
	to->count += from->count;
}

/* Keeps the sum of the child that was visited; without room, the smallest sum joins the others. */
static void scope_keep_sum(scope_printout *p) {
	if (p->sums[p->count].count == 0 || p->count++ < SCOPE_SUMS)
		return;
	size_t least = 0;
	for (size_t i = 1; i < p->count; i++)
		if (p->sums[i].stats.committed_bytes < p->sums[least].stats.committed_bytes)
			least = i;
	scope_add_sum(&p->others, &p->sums[least]);
	memmove(&p->sums[least], &p->sums[least + 1], (p->count - least - 1) * sizeof p->sums[0]);
	p->count--;
}

static bool scope_print_visit(const tn_listed *listed, void *ctx) {
	scope_printout *p = ctx;
	scope_print_row(p->out, listed);
	scope_sum one = {.stats = listed->stats, .count = 1};
	memcpy(one.ident, listed->ident, sizeof one.ident);
	scope_add_sum(&p->total, &one);
	if (listed->depth == 1) {
		scope_keep_sum(p);
		p->sums[p->count] = one;
	} else {
		scope_add_sum(listed->depth == 0 ? &p->own : &p->sums[p->count], &one);
	}
	return true;
}

static void scope_print_sum(FILE *out, int indent, const char *name, scope_sum *sum) {
	if (name != NULL)
		strcpy(sum->stats.name, name);
	scope_print_figures(out, indent, &sum->stats);
	fprintf(out, "%9s  (%zu)", "", sum->count);
	scope_print_remarks(out, &sum->stats, sum->ident);
}

void tn_scope_print(const tn_scope *hot, FILE *out) {
	scope *s = scope_of(hot);
	scope_printout p = {.out = out};
	/* Called on any thread: `state` is its owner's. */
	if (tn_get(&s->node.life, TN_ACQUIRE) % 2 == 0)
		scope_refuse_dead(s, "print");
	fprintf(out, "%-32s %12s %12s %12s %7s %12s %9s\n", "scope", "live", "cached", "committed",
		"chunks", "peak", "since");
	tn_list_each(&s->node, scope_print_visit, &p);
	scope_keep_sum(&p);
	if (p.count > 1) {
		fputs("with everything below:\n", out);
		scope_print_sum(out, 2, "itself", &p.own);
		for (size_t i = 0; i < p.count; i++)
			scope_print_sum(out, 2, NULL, &p.sums[i]);
		if (p.others.count != 0)
			scope_print_sum(out, 2, "others", &p.others);
	}
	scope_print_sum(out, 0, "total", &p.total);
}

static void scope_require(const scope *s, bool holds, const char *what) {
	if (!holds)
		tn_panic("scope", s->hot.arena.name, "verify: %s", what);
}

static void scope_verify(const scope *s) {
	tn_arena_verify(&s->hot.arena);
	size_t held = s->hot.arena.taken_bytes;
	for (tn_node *n = s->node.owned; n != NULL; n = n->next_owned) {
		tn_stats stats;
		const void *object = tn_get(&n->object, TN_RELAXED);
		scope_kind_of(n)->verify(object);
		scope_kind_of(n)->stats(object, &stats);
		held += stats.committed_bytes;
	}
	scope_require(s, held == s->account.held_bytes, "I2: the bytes held do not add up");
	for (const scope *child = s->newest; child != NULL; child = child->older) {
		scope_require(s,
			child->parent == s && (child->older == NULL || child->older->link == &child->older),
			"I3: the links of its children are broken");
		scope_require(s,
			(scope_has_limits(child) ? child->limit.above : child->account.limit) == s->account.limit,
			"I3: a child is counted against other limits");
	}
	if (scope_has_limits(s))
		scope_require(s, tn_get(&s->limit.charged_bytes, TN_RELAXED) == scope_subtree_bytes(s),
			"I2: the bytes charged do not add up");
}

bool tn_scope_verify(const tn_scope *hot) {
	const scope *top = scope_look(hot, "verify");
	for (const scope *s = top; s != NULL; s = scope_next_below(s, top))
		scope_verify(s);
	return true;
}
