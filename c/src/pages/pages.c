/* The page layer. See pages.h for what it promises.
 *
 * Address space comes in regions. A region is reserved whole, and committed as chunks are carved from
 * it in order. A chunk that comes back is in exactly one place:
 *
 *   the thread's cache   warm, found without a lock; emptied when the thread ends
 *   the warm list        warm, under the lock, bounded; with every TICK releases of a class, half of
 *                        the chunks that stayed untouched since the last tick go cold (the
 *                        low-watermark rule of the h2o web server)
 *   the cold list        its memory given back, its addresses kept for reuse
 *   the quarantine       debug only: every access faults, until 64 MiB of chunks are in it
 *
 * Lists are linked through the side table, never through the chunks: a write through a stale pointer
 * cannot break them.
 *
 * Each memory node (NUMA) has lists and a region of its own. Threads of that node carve the region and
 * touch its pages first, which is when the system chooses where they are; and its chunks come back to
 * its lists, whichever thread releases them. A node's addresses serve another node only when there are
 * no others.
 *
 * I1  an entry is 0, an owner (even), or a link: the next chunk's address with bit 0 set.
 * I2  a chunk on a list has a link; one that is handed out or in a thread's cache has an owner or 0. */
#include "pages.h"

#include <tenure/detail/front.h>

#include <errno.h>
#include <stdlib.h>

#include "../base/os.h"
#include "../base/probes.h"

enum {
	PAGE_BITS = TN_TABLE_PAGE_BITS,
	LEAF_BITS = TN_TABLE_LEAF_BITS,
	CLASS_COUNT = 13, /* 4 KiB to 16 MiB; larger chunks are mapped alone */
	THREAD_CLASS_COUNT = 7,
	THREAD_SLOT_COUNT = 8,
	TICK = 32,
	AGE_MS = 500,
	REGIONS_TRACKED = 64, /* of more, those that are empty stay */
};
#define CLASS_BYTES(class) (TN_OS_PAGE << (class))
#define COMMIT_STEP ((size_t)2 << 20)
#define REGION_BYTES_MIN ((size_t)64 << 20)
#define REGION_BYTES_MAX (sizeof(void *) == 8 ? (size_t)1 << 30 : (size_t)64 << 20)
#define QUARANTINE_BYTES ((size_t)64 << 20)

_Static_assert(CLASS_BYTES(THREAD_CLASS_COUNT - 1) == TN_PAGES_THREAD_CHUNK_BYTES, "thread classes");
_Static_assert(CLASS_BYTES(CLASS_COUNT - 1) == TN_PAGES_CLASS_BYTES_MAX, "classes");
_Static_assert(TN_OS_NODES == TN_NODES, "figures tell apart as many nodes");

tn_table_entry *tn_table[(size_t)1 << (TN_TABLE_ADDRESS_BITS - TN_TABLE_LEAF_BITS)];

typedef struct chunk_list {
	uintptr_t head, tail;
	size_t count;
} chunk_list;

typedef struct region {
	char *base; /* NULL: none */
	size_t bytes, carved_bytes, committed_bytes;
} region;

/* The chunks of a memory node. */
typedef struct home {
	chunk_list warm[CLASS_COUNT];
	chunk_list cold[CLASS_COUNT];
	size_t low[CLASS_COUNT];     /* fewest warm chunks since the last tick */
	unsigned ticks[CLASS_COUNT]; /* releases since the last tick */
	region *region;              /* the one that chunks are carved from, or NULL */
	struct region untracked;
} home;

/* All under the lock. */
static struct {
	home homes[TN_OS_NODES];
	region regions[REGIONS_TRACKED];
	size_t warm_bytes;
	size_t reserved_bytes;
	chunk_list quarantine[CLASS_COUNT];
	size_t quarantine_bytes;
	size_t next_region_bytes;
	bool huge_known, huge;
	uint64_t aged_ms; /* when they were looked at last */
	uint64_t process; /* that reserved the last region */
} pages = {.next_region_bytes = REGION_BYTES_MIN};

TN_ATOMIC(uintptr_t) tn_pages_on_idle;

/* Owner thread only. */
static _Thread_local struct {
	enum { CACHE_NEW, CACHE_OPEN, CACHE_APART, CACHE_CLOSED } state;
	unsigned char count[THREAD_CLASS_COUNT];
	void *slot[THREAD_CLASS_COUNT][THREAD_SLOT_COUNT];
} thread_cache;

/* ---- the side table ---- */

/* Under the lock. */
static bool table_add_leaf(uintptr_t base) {
	size_t index = base >> LEAF_BITS;
	if (index >= sizeof tn_table / sizeof tn_table[0])
		return errno = ENOMEM, false;
	if (tn_get(&tn_table[index], TN_RELAXED) != NULL)
		return true;
	size_t size = (sizeof(tn_table_entry) << (LEAF_BITS - PAGE_BITS)) + TN_OS_PAGE;
	tn_table_entry *leaf = tn_os_reserve(size, TN_OS_PAGE);
	if (leaf == NULL)
		return false;
	if (!tn_os_commit(leaf, size)) {
		tn_os_release(leaf, size);
		return false;
	}
	tn_set(&tn_table[index], leaf, TN_RELEASE);
	return true;
}

static bool table_add_leaves(const char *p, size_t size) {
	uintptr_t last = ((uintptr_t)p + size - 1) >> LEAF_BITS;
	for (uintptr_t i = (uintptr_t)p >> LEAF_BITS; i <= last; i++)
		if (!table_add_leaf(i << LEAF_BITS))
			return false;
	return true;
}

/* A node that the entry has already is not written: for zeros that would take a page for each leaf.
 * Under the lock. */
static void table_set_node(uintptr_t base, size_t size, size_t node) {
	for (uintptr_t at = base; at < base + size; at += (uintptr_t)1 << TN_TABLE_UNIT_BITS)
		if (tn_get(tn_table_node_at(at), TN_RELAXED) != node)
			tn_set(tn_table_node_at(at), (uint8_t)node, TN_RELAXED);
}

size_t tn_pages_node_of(const void *p) {
	return tn_os_nodes() == 1 ? 0 : tn_get(tn_table_node_at((uintptr_t)p), TN_RELAXED);
}

bool tn_pages_set_owner(void *base, void *owner) {
	tn_table_entry *e = tn_table_at((uintptr_t)base);
	if (e == NULL && owner != NULL) {
		tn_os_lock();
		bool added = table_add_leaf((uintptr_t)base);
		tn_os_unlock();
		if (!added)
			return false;
		e = tn_table_at((uintptr_t)base);
	}
	/* Relaxed: a reader that was handed the chunk is ordered by that hand-over. Any other reader only
	 * compares the value. */
	if (e != NULL)
		tn_set(e, (uintptr_t)owner, TN_RELAXED);
	return true;
}

/* ---- lists, under the lock ---- */

static void pages_push(chunk_list *l, uintptr_t chunk) {
	tn_set(tn_table_at(chunk), l->head | 1, TN_RELAXED);
	if (l->count++ == 0)
		l->tail = chunk;
	l->head = chunk;
}

static void pages_append(chunk_list *l, uintptr_t chunk) {
	if (l->count == 0) {
		pages_push(l, chunk);
		return;
	}
	tn_set(tn_table_at(chunk), 1, TN_RELAXED);
	tn_set(tn_table_at(l->tail), chunk | 1, TN_RELAXED);
	l->tail = chunk;
	l->count++;
}

static uintptr_t pages_pop(chunk_list *l) {
	if (l->count == 0)
		return 0;
	uintptr_t chunk = l->head;
	tn_table_entry *e = tn_table_at(chunk);
	l->head = tn_get(e, TN_RELAXED) & ~(uintptr_t)1;
	l->count--;
	tn_set(e, 0, TN_RELAXED);
	return chunk;
}

/* ---- the process's chunks, under the lock ---- */

static bool pages_has_huge(void) {
	if (!pages.huge_known) {
		const char *value = getenv("TENURE_HUGE_PAGES");
		pages.huge = value != NULL && value[0] == '1';
		pages.huge_known = true;
	}
	return pages.huge;
}

static home *pages_home_of(uintptr_t chunk) {
	return &pages.homes[tn_pages_node_of((void *)chunk)];
}

static bool pages_add_region(home *h, size_t at_least) {
	size_t size = tn_max(pages.next_region_bytes, at_least);
	char *p = NULL;
	/* A process with little address space left (RLIMIT_AS) may still have room for a smaller one. It is
	 * aligned for the largest chunk that it can hold. */
	for (; size >= at_least && p == NULL; size /= 2)
		p = tn_os_reserve(size, tn_min(size, CLASS_BYTES(CLASS_COUNT - 1)));
	if (p == NULL)
		return false;
	size *= 2;
	if (!table_add_leaves(p, size)) {
		tn_os_release(p, size);
		return false;
	}
	if (pages_has_huge())
		tn_os_huge(p, size);
	table_set_node((uintptr_t)p, size, (size_t)(h - pages.homes));
	region *r = pages.regions;
	while (r < pages.regions + REGIONS_TRACKED && r->base != NULL)
		r++;
	h->region = r < pages.regions + REGIONS_TRACKED ? r : &h->untracked;
	*h->region = (region){.base = p, .bytes = size};
	pages.reserved_bytes += size;
	pages.process = tn_os_process();
	if (pages.next_region_bytes < REGION_BYTES_MAX)
		pages.next_region_bytes *= 2;
	return true;
}

static bool pages_commit(region *r, size_t end) {
	if (end <= r->committed_bytes)
		return true;
	size_t least = end - r->committed_bytes;
	size_t step = tn_min(tn_round_up(least, COMMIT_STEP), r->bytes - r->committed_bytes);
	char *from = r->base + r->committed_bytes;
	/* A process with a small RLIMIT_DATA gets only what it needs. */
	if (!tn_os_commit(from, step) && !tn_os_commit(from, step = least))
		return false;
	r->committed_bytes += step;
	return true;
}

static void *pages_carve_chunk(home *h, unsigned class) {
	size_t size = CLASS_BYTES(class);
	size_t start = h->region == NULL ? 0 : tn_round_up(h->region->carved_bytes, size);
	if (h->region == NULL || start + size > h->region->bytes) {
		if (!pages_add_region(h, size))
			return NULL;
		start = 0;
	}
	region *r = h->region;
	if (!pages_commit(r, start + size))
		return NULL;
	/* The gap that alignment leaves is made of smaller chunks, each aligned to its size. */
	while (r->carved_bytes < start) {
		unsigned gap = 0;
		while ((r->carved_bytes & CLASS_BYTES(gap)) == 0)
			gap++;
		pages_push(&h->cold[gap], (uintptr_t)r->base + r->carved_bytes);
		r->carved_bytes += CLASS_BYTES(gap);
	}
	r->carved_bytes = start + size;
	return r->base + start;
}

static void *pages_take_chunk(home *h, unsigned class) {
	uintptr_t chunk = pages_pop(&h->warm[class]);
	if (chunk != 0) {
		pages.warm_bytes -= CLASS_BYTES(class);
		h->low[class] = tn_min(h->low[class], h->warm[class].count);
		return (void *)chunk;
	}
	chunk = pages_pop(&h->cold[class]);
	return chunk != 0 ? (void *)chunk : pages_carve_chunk(h, class);
}

/* Returns the bytes that the system took back. */
static size_t pages_make_cold(home *h, unsigned class, uintptr_t chunk) {
	bool gone = tn_os_decommit((void *)chunk, CLASS_BYTES(class));
	pages_push(&h->cold[class], chunk);
	return gone ? CLASS_BYTES(class) : 0;
}

static size_t pages_cool(home *h, unsigned class, size_t count) {
	size_t bytes = 0;
	for (size_t i = 0; i < count; i++)
		bytes += pages_make_cold(h, class, pages_pop(&h->warm[class]));
	pages.warm_bytes -= count * CLASS_BYTES(class);
	h->low[class] = h->warm[class].count;
	return bytes;
}

/* ---- regions that are empty, under the lock ---- */

/* A number of `regions`, or REGIONS_TRACKED. */
static size_t pages_region_of(uintptr_t chunk) {
	size_t i = 0;
	while (i < REGIONS_TRACKED &&
		   chunk - (uintptr_t)pages.regions[i].base >= pages.regions[i].carved_bytes)
		i++;
	return i;
}

static void pages_count_cold(const chunk_list *list, size_t chunk_bytes, size_t *cold_bytes) {
	uintptr_t chunk = list->head;
	for (size_t i = 0; i < list->count; i++) {
		cold_bytes[pages_region_of(chunk)] += chunk_bytes;
		chunk = tn_get(tn_table_at(chunk), TN_RELAXED) & ~(uintptr_t)1;
	}
}

/* Takes the chunks of regions that hold no other ones off a cold list. */
static void pages_drop_cold(chunk_list *list, const size_t *cold_bytes) {
	chunk_list stay = {0, 0, 0};
	for (uintptr_t chunk; (chunk = pages_pop(list)) != 0;) {
		size_t i = pages_region_of(chunk);
		if (i == REGIONS_TRACKED || cold_bytes[i] != pages.regions[i].carved_bytes)
			pages_append(&stay, chunk);
	}
	*list = stay;
}

static void pages_release_region(region *r) {
	for (home *h = pages.homes; h < pages.homes + TN_OS_NODES; h++)
		h->region = h->region == r ? NULL : h->region;
	tn_os_release(r->base, r->bytes);
	pages.reserved_bytes -= r->bytes;
	*r = (region){.base = NULL};
}

/* Gives the address space of regions back whose chunks are all cold. */
static void pages_release_regions(void) {
	size_t cold_bytes[REGIONS_TRACKED + 1] = {0}, empty = 0;
	for (home *h = pages.homes; h < pages.homes + TN_OS_NODES; h++)
		for (unsigned class = 0; class < CLASS_COUNT; class ++)
			pages_count_cold(&h->cold[class], CLASS_BYTES(class), cold_bytes);
	for (size_t i = 0; i < REGIONS_TRACKED; i++)
		empty += pages.regions[i].base != NULL && cold_bytes[i] == pages.regions[i].carved_bytes;
	for (home *h = pages.homes; empty > 0 && h < pages.homes + TN_OS_NODES; h++)
		for (unsigned class = 0; class < CLASS_COUNT; class ++)
			pages_drop_cold(&h->cold[class], cold_bytes);
	for (size_t i = 0; empty > 0 && i < REGIONS_TRACKED; i++)
		if (pages.regions[i].base != NULL && cold_bytes[i] == pages.regions[i].carved_bytes)
			pages_release_region(&pages.regions[i]);
}

static void pages_give_chunk(unsigned class, void *p) {
	home *h = pages_home_of((uintptr_t)p);
	size_t size = CLASS_BYTES(class);
	if (size > TN_PAGES_WARM_CHUNK_BYTES || pages.warm_bytes + size > TN_PAGES_WARM_BYTES) {
		pages_make_cold(h, class, (uintptr_t)p);
		return;
	}
	pages_push(&h->warm[class], (uintptr_t)p);
	pages.warm_bytes += size;
	if (++h->ticks[class] >= TICK) {
		h->ticks[class] = 0;
		pages_cool(h, class, (h->low[class] + 1) / 2);
	}
}

/* Debug: stale pointers into the chunk fault until its turn to be used again. */
static void pages_quarantine(unsigned class, void *p) {
	size_t size = CLASS_BYTES(class);
	tn_os_decommit(p, size);
	if (!tn_os_protect(p, size)) {
		/* A part of it may be protected already; what stays so is not used again. */
		if (tn_os_unprotect(p, size))
			pages_push(&pages_home_of((uintptr_t)p)->cold[class], (uintptr_t)p);
		return;
	}
	pages_append(&pages.quarantine[class], (uintptr_t)p);
	pages.quarantine_bytes += size;
	if (pages.quarantine_bytes <= QUARANTINE_BYTES)
		return;
	uintptr_t oldest = pages_pop(&pages.quarantine[class]);
	pages.quarantine_bytes -= size;
	if (tn_os_unprotect((void *)oldest, size))
		pages_push(&pages_home_of(oldest)->cold[class], oldest);
}

/* ---- the thread's chunks ---- */

static void pages_close_thread_cache(void) {
	thread_cache.state = CACHE_CLOSED;
	tn_os_lock();
	for (unsigned class = 0; class < THREAD_CLASS_COUNT; class ++)
		while (thread_cache.count[class] > 0)
			pages_give_chunk(class, thread_cache.slot[class][--thread_cache.count[class]]);
	tn_os_unlock();
}

static TN_COLD bool pages_may_keep_slow(const void *p) {
	if (thread_cache.state == CACHE_NEW) {
		bool ends = tn_os_on_thread_exit(TN_EXIT_PAGES, pages_close_thread_cache);
		thread_cache.state = !ends ? CACHE_CLOSED : tn_os_nodes() > 1 ? CACHE_APART : CACHE_OPEN;
	}
	return thread_cache.state == CACHE_OPEN ||
	       (thread_cache.state == CACHE_APART && tn_pages_node_of(p) == tn_os_node());
}

/* Whether this thread may keep a chunk. A thread that is ending may not: its late destructors use the
 * process's lists. With several nodes a thread keeps those of the node that it runs on. */
static bool pages_may_keep(const void *p) {
	return TN_LIKELY(thread_cache.state == CACHE_OPEN) || pages_may_keep_slow(p);
}

static unsigned pages_thread_slots(unsigned class) {
	return (unsigned)tn_min(TN_PAGES_THREAD_CHUNK_BYTES / CLASS_BYTES(class), THREAD_SLOT_COUNT);
}

/* ---- chunks ---- */

static unsigned pages_class_of(size_t size, size_t align) {
	size_t whole = tn_max(size, align);
	if (whole > CLASS_BYTES(CLASS_COUNT - 1))
		return CLASS_COUNT;
	return whole <= TN_OS_PAGE ? 0 : (unsigned)(64 - __builtin_clzll((whole - 1) >> PAGE_BITS));
}

/* A chunk larger than any class is a mapping of its own. */
static void *pages_take_alone(size_t size, size_t align) {
	size_t whole = tn_pages_reserved(size, align);
	void *p = whole == 0 ? (errno = ENOMEM, NULL) : tn_os_reserve(whole, tn_max(align, TN_OS_PAGE));
	if (p == NULL)
		return NULL;
	if (!tn_os_commit(p, whole)) {
		tn_os_release(p, whole);
		return NULL;
	}
	return p;
}

void *tn_pages_acquire(size_t size, size_t align) {
	unsigned class = pages_class_of(size, align);
	if (class < THREAD_CLASS_COUNT && thread_cache.count[class] > 0)
		return thread_cache.slot[class][--thread_cache.count[class]];
	if (class == CLASS_COUNT)
		return pages_take_alone(size, align);
	const size_t nodes = tn_os_nodes(), node = nodes == 1 ? 0 : tn_os_node();
	void *p = NULL;
	tn_os_lock();
	for (size_t i = 0; i < nodes && p == NULL; i++)
		p = pages_take_chunk(&pages.homes[(node + i) % nodes], class);
	tn_os_unlock();
	return p;
}

void tn_pages_release(void *p, size_t size, size_t align) {
	unsigned class = pages_class_of(size, align);
	if (class == CLASS_COUNT) {
		tn_os_release(p, tn_pages_reserved(size, align));
		return;
	}
	if (TN_MODE != TN_MODE_DEBUG && class < THREAD_CLASS_COUNT && pages_may_keep(p) &&
		thread_cache.count[class] < pages_thread_slots(class)) {
		thread_cache.slot[class][thread_cache.count[class]++] = p;
		return;
	}
	tn_os_lock();
	if (TN_MODE == TN_MODE_DEBUG)
		pages_quarantine(class, p);
	else
		pages_give_chunk(class, p);
	tn_os_unlock();
	tn_pages_tell_idle();
}

static void *pages_ask_source(const tn_source *source, size_t size, size_t align) {
	void *p = source->acquire(source->ctx, size, align);
	if (p != NULL && ((uintptr_t)p & (align - 1)) == 0)
		return p;
	if (p != NULL)
		source->release(source->ctx, p, size);
	return errno = ENOMEM, NULL;
}

static inline void *pages_acquire_from(const tn_source *source, size_t size, size_t align) {
	return source->acquire == NULL ? tn_pages_acquire(size, align)
	                               : pages_ask_source(source, size, align);
}

static inline void pages_release_to(const tn_source *source, void *p, size_t size, size_t align) {
	if (source->acquire == NULL)
		tn_pages_release(p, size, align);
	else
		source->release(source->ctx, p, size);
}

/* Not inlined, as pages_release_charged: an allocator without an account would save registers for
 * them. */
static __attribute__((noinline)) void *pages_acquire_charged(
	const tn_chunk_source *source, size_t size, size_t align) {
	tn_account *account = source->account;
	bool charged = tn_limit_charge(account->limit, NULL, size);
	account->refused = !charged;
	void *p = charged ? pages_acquire_from(&source->from, size, align) : NULL;
	if (p != NULL)
		account->held_bytes += size;
	else if (charged)
		tn_limit_uncharge(account->limit, NULL, size);
	return p;
}

static __attribute__((noinline)) void pages_release_charged(
	const tn_chunk_source *source, void *p, size_t size, size_t align) {
	tn_account *account = source->account;
	pages_release_to(&source->from, p, size, align);
	account->held_bytes -= size;
	tn_limit_uncharge(account->limit, NULL, size);
}

void *tn_chunk_acquire(const tn_chunk_source *source, size_t size, size_t align) {
	void *p = source->account == NULL ? pages_acquire_from(&source->from, size, align)
	                                  : pages_acquire_charged(source, size, align);
	TN_PROBE(chunk_acquire, p, size);
	return p;
}

void tn_chunk_release(const tn_chunk_source *source, void *p, size_t size, size_t align) {
	TN_PROBE(chunk_release, p, size);
	if (source->account == NULL)
		pages_release_to(&source->from, p, size, align);
	else
		pages_release_charged(source, p, size, align);
}

size_t tn_pages_trim(void) {
	size_t bytes = 0;
	tn_os_lock();
	for (unsigned class = 0; class < THREAD_CLASS_COUNT; class ++)
		while (thread_cache.count[class] > 0) {
			uintptr_t chunk = (uintptr_t)thread_cache.slot[class][--thread_cache.count[class]];
			bytes += pages_make_cold(pages_home_of(chunk), class, chunk);
		}
	for (home *h = pages.homes; h < pages.homes + tn_os_nodes(); h++)
		for (unsigned class = 0; class < CLASS_COUNT; class ++)
			bytes += pages_cool(h, class, h->warm[class].count);
	pages_release_regions();
	tn_os_unlock();
	return bytes;
}

void *tn_pages_acquire_kept(size_t size) {
	return pages_take_alone(size, TN_OS_PAGE);
}

/* When the module that holds this copy of Tenure is closed, its chunks are back. */
#if defined(__GNUC__)
__attribute__((destructor)) static void pages_end(void) {
	/* A child that was made without the hooks of fork may have a lock that is held for ever. */
	if (pages.process == tn_os_process())
		tn_pages_trim();
}
#endif

size_t tn_pages_age(void) {
	uint64_t now = tn_os_coarse_milliseconds();
	tn_os_lock();
	bool old = now - pages.aged_ms >= AGE_MS;
	for (home *h = pages.homes; old && h < pages.homes + tn_os_nodes(); h++)
		for (unsigned class = 0; class < CLASS_COUNT; class ++)
			pages_cool(h, class, h->low[class]);
	pages.aged_ms = old ? now : pages.aged_ms;
	size_t bytes = pages.warm_bytes;
	tn_os_unlock();
	return bytes;
}

void tn_pages_call_on_idle(void) {
	uintptr_t call = tn_swap(&tn_pages_on_idle, 0, TN_ACQ_REL);
	if (call != 0)
		((void (*)(void))call)();
}

void tn_pages_stats(tn_stats *stats) {
	*stats = (tn_stats){.name = "pages"};
	tn_os_lock();
	stats->reserved_bytes = pages.reserved_bytes;
	stats->cached_bytes = pages.warm_bytes;
	for (size_t i = 0; i < tn_os_nodes(); i++)
		for (unsigned class = 0; class < CLASS_COUNT; class ++) {
			size_t count = pages.homes[i].warm[class].count;
			stats->chunk_count += count;
			stats->node_bytes[i] += count * CLASS_BYTES(class);
		}
	tn_os_unlock();
}

void tn_front_lock(void) {
	tn_os_lock();
}

void tn_front_unlock(void) {
	tn_os_unlock();
}
