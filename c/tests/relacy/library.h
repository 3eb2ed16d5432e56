/* The shared slab and the pool as they are, on a page layer that is the engine's memory. A scenario
 * includes this once; it begins every schedule with library_begin, and a thread of it that has used the
 * library ends with library_end_thread, as thread-local storage does. */
#ifndef TENURE_RELACY_LIBRARY_H
#define TENURE_RELACY_LIBRARY_H

#include "relacy_atomics.h"

/* The side table is this header's own. */
#define TENURE_PAGE_TABLE_H
void *tn_pages_owner(uintptr_t base);
bool tn_pages_is_entered(uintptr_t base);
#include "base/panic.h"
#include "listing/listing.h"
#include "pages/pages.h"

/* ---- the layers below ---- */

static struct {
	bool expected; /* panics are caught by the scenario */
	char text[256];
} panics;

struct panicked {};

void tn_panic(const char *kind, const char *name, const char *format, ...) {
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(panics.text, sizeof panics.text, format, arguments);
	va_end(arguments);
	if (!panics.expected)
		engine::fail(panics.text, HERE);
	throw panicked();
}

enum { CHUNKS_MOST = engine::THREADS > 3 ? 1 << 16 : 64 };
static struct {
	char *base;
	void *owner;
} chunk_owners[CHUNKS_MOST];
static uint64_t milliseconds;
static size_t processors = 1;
static void (*at_thread_exit)(void);
static bool locals_are_next;

/* Locals are in pages that are never given back: requests of one page without a magazine's
 * alignment. */
void *tn_pages_acquire(size_t size, size_t align) {
	return engine::take(size, align, locals_are_next);
}

void tn_pages_release(void *p, size_t size, size_t) {
	engine::give(p, size);
}

void *tn_chunk_acquire(const tn_chunk_source *, size_t size, size_t align) {
	return engine::take(size, align);
}

void tn_chunk_release(const tn_chunk_source *, void *p, size_t size, size_t) {
	engine::give(p, size);
}

/* The entry of a chunk, or the free one where it would be; NULL when there are too many. */
static auto *chunk_entry_of(const char *base) {
	size_t first = (uintptr_t)base / TN_OS_PAGE;
	for (size_t i = 0; i < CHUNKS_MOST; i++) {
		auto *entry = &chunk_owners[(first + i) % CHUNKS_MOST];
		if (entry->base == base || entry->base == NULL)
			return entry;
	}
	return (decltype(&chunk_owners[0]))NULL;
}

bool tn_pages_set_owner(void *base, void *owner) {
	auto *entry = chunk_entry_of((char *)base);
	if (entry == NULL)
		return false;
	*entry = {(char *)base, owner};
	return true;
}

void *tn_pages_owner(uintptr_t base) {
	auto *entry = chunk_entry_of((char *)base);
	return entry == NULL ? NULL : entry->owner;
}

bool tn_pages_is_entered(uintptr_t base) {
	return tn_pages_owner(base) != NULL;
}

bool tn_os_on_thread_exit(enum tn_os_exit, void (*at_exit)(void)) {
	at_thread_exit = at_exit;
	return true;
}

void tn_os_on_fork(enum tn_os_fork, void (*)(void), void (*)(void), void (*)(void)) {
}

size_t tn_os_processors(void) {
	return processors;
}

/* One memory node. */
size_t tn_os_nodes(void) {
	return 1;
}

size_t tn_os_node(void) {
	return 0;
}

size_t tn_pages_node_of(const void *) {
	return 0;
}

uint64_t tn_os_milliseconds(void) {
	return milliseconds;
}

uint64_t tn_os_coarse_milliseconds(void) {
	return milliseconds;
}

void *tn_pages_acquire_kept(size_t size) {
	return tn_pages_acquire(size, TN_OS_PAGE);
}

size_t tn_pages_trim(void) {
	return 0;
}

size_t tn_pages_age(void) {
	return 0;
}

TN_ATOMIC(uintptr_t) tn_pages_on_idle;
void tn_pages_call_on_idle(void) {
}

/* Nothing is listed. */
bool tn_list_add(tn_node *, const tn_node_kind *, void *, const char *, tn_node **node) {
	*node = NULL;
	return true;
}

void tn_list_remove(tn_node *) {
}

void tn_list_begin_age(tn_node *, uint64_t) {
}

/* ---- the library ---- */

#include "slab/stock.c"

#include "shared/thread_cache.c"

#include "shared/shared_slab.c"

#include "shared/pool.c"

static inline void library_begin(void) {
	memset((void *)&registry, 0, sizeof registry);
	memset((void *)&no_magazine, 0, sizeof no_magazine);
	memset((void *)tn_cache_locals_of, 0, sizeof tn_cache_locals_of);
	memset((void *)tn_near_slab_of, 0, sizeof tn_near_slab_of);
	memset((void *)tn_near_pool_of, 0, sizeof tn_near_pool_of);
	memset(chunk_owners, 0, sizeof chunk_owners);
	panics.expected = false;
	milliseconds = 1;
	/* The page of the locals. */
	locals_are_next = true;
	registry.fresh = (char *)tn_pages_acquire(TN_OS_PAGE, TN_OS_PAGE) + LOCALS_GAP;
	registry.fresh_end = registry.fresh - LOCALS_GAP + TN_OS_PAGE;
	locals_are_next = false;
	/* As if locals enough were dead, so that those that die are used again. */
	static local long_dead;
	memset((void *)&long_dead, 0, sizeof long_dead);
	registry.oldest_dead = registry.youngest_dead = &long_dead;
	registry.dead_count = DEAD_LOCALS;
}

/* Runs at a thread's end; other destructors may call the library afterwards. */
static inline void library_exit_thread(void) {
	if (tn_cache_locals.state == LOCALS_OPEN)
		at_thread_exit();
}

/* Another thread starts in the place of this one. */
static inline void library_renew_thread(void) {
	library_exit_thread();
	memset((void *)&tn_cache_locals, 0, sizeof tn_cache_locals);
	memset((void *)&tn_near_slab, 0, sizeof tn_near_slab);
	memset((void *)&tn_near_pool, 0, sizeof tn_near_pool);
}

/* The thread's own variables no longer exist after it. */
static inline void library_end_thread(void) {
	library_exit_thread();
	engine::forget(&tn_near_slab, sizeof tn_near_slab);
	engine::forget(&tn_near_pool, sizeof tn_near_pool);
}

#endif
