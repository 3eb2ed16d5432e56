/* Slots that are used once between two resets, leased to threads in runs.
 *
 *   alloc (inline)         the lease has a slot: moves its cursor
 *   `- alloc_slow          hardened and debug; else a new run, under the page layer's lock
 *      `- runs_take_chunk  from the page layer, without the lock
 *   free (inline)          counts, in the lease
 *
 * Alloc and free take no atomic operation, so the number of slots in use is known to no thread. Known
 * are the slots granted to leases; those of them that are unused begin at the lease's cursor:
 *
 * R1  granted - (sum of the unused slots in leases) = slots handed out since the reset.
 * R2  a lease is granted while fewer than `count` slots are handed out: there are at least `count`, and
 *     at most `count` and a lease for every thread.
 * R3  a lease that is in no list has no run and no credit: both fast paths leave it to the slow ones.
 *
 * No figure on the way is exact while other threads run, so there is no verify. The lock is the page
 * layer's, which a fork holds: the child finds everything in order, except the leases of lost threads.
 */
#include <tenure/detail/runs.h>

#include <errno.h>
#include <string.h>

#include "../base/checkers.h"
#include "../base/list.h"
#include "../base/modes.h"
#include "../base/os.h"
#include "../pages/pages.h"
#include "../slab/grid.h"

#define RUNS_KIND "size_based_arena"
#define RUNS_CHUNK_BYTES ((size_t)2 << 20)
/* The alignment of any object that does not ask for more. */
#define RUNS_ARRAY_ALIGN 16
#define RUNS_CHECKED (TN_MODE != TN_MODE_RELEASE)

typedef struct tn_runs_chunk runs_chunk;
struct tn_runs_chunk {
	runs_chunk *next;
	size_t bytes;
	char *begin, *end; /* of its slots; in front of them, in hardened and debug, a bit for each */
};

/* Slots of a run that came back unused. They hold this record themselves. */
typedef struct tn_runs_spare {
	struct tn_runs_spare *next;
	char *begin, *end;
} runs_spare;

/* Slots that may come back without their count: the count, kept until the reset. */
typedef struct runs_note {
	const char *slots;
	size_t count;
} runs_note;

#define RUNS_NOTES_A_PAGE ((TN_OS_PAGE - 2 * sizeof(void *)) / sizeof(runs_note))

typedef struct tn_runs_notes {
	struct tn_runs_notes *next;
	size_t count;
	runs_note note[RUNS_NOTES_A_PAGE];
} runs_notes;
_Static_assert(sizeof(runs_notes) <= TN_OS_PAGE, "notes fill a page");

/* All leases of this thread. Owner thread only. */
static _Thread_local struct {
	enum { LEASES_NONE, LEASES_OPEN, LEASES_CLOSED } state;
	tn_lease *first;
} own_leases;

/* Each tn_runs that has leases; under the lock. A module may be closed once its threads have ended:
 * then its tn_runs are not here. */
static tn_runs *leased_runs;

/* ---- chunks ---- */

/* Bytes before the first of `slots` slots. */
static size_t runs_head_bytes(const tn_runs *r, size_t slots) {
	size_t bits = RUNS_CHECKED ? (slots + 7) / 8 : 0;
	return tn_round_up(sizeof(runs_chunk) + bits, tn_max(r->align, 16));
}

/* Slots of a chunk of `bytes`, which hold more than its head. */
static size_t runs_slots_in(const tn_runs *r, size_t bytes) {
	return (bytes - runs_head_bytes(r, bytes / r->slot_bytes)) / r->slot_bytes;
}

/* The size of all chunks but the large ones: enough for all slots, within bounds. */
static size_t runs_chunk_bytes(const tn_runs *r) {
	size_t most = RUNS_CHUNK_BYTES, bytes = TN_OS_PAGE;
	while (most < runs_head_bytes(r, most / r->slot_bytes) + r->slot_bytes)
		most *= 2;
	while (bytes < most && bytes < runs_head_bytes(r, r->count) + r->count * r->slot_bytes)
		bytes *= 2;
	return bytes;
}

/* Gives chunks back, without the lock; returns their bytes. */
static size_t runs_give_chunks(tn_runs *r, runs_chunk *first) {
	size_t sum = 0, step = r->chunk_bytes;
	for (runs_chunk *c = first, *next; c != NULL; c = next) {
		next = c->next;
		size_t bytes = c->bytes;
		sum += bytes;
		tn_permit(c, bytes);
		for (size_t i = 0; i < bytes; i += step)
			tn_pages_set_owner((char *)c + i, NULL);
		tn_pages_release(c, bytes, step);
	}
	tn_add(&r->taken_bytes, (size_t)0 - sum, TN_RELAXED);
	return sum;
}

/* A chunk for at least `slots` slots: a large one if they need more than other chunks have. It is
 * always longer than the others, which tells it from them: a head for fewer bits could let it fit into
 * one. Without the lock. */
static runs_chunk *runs_take_chunk(tn_runs *r, size_t slots) {
	size_t step = r->chunk_bytes, bytes = step;
	if (slots > runs_slots_in(r, step))
		bytes = tn_max(tn_round_up(runs_head_bytes(r, slots) + slots * r->slot_bytes, step), 2 * step);
	else
		slots = runs_slots_in(r, step);
	char *base = tn_pages_acquire(bytes, step);
	if (base == NULL)
		return NULL;
	tn_add(&r->taken_bytes, bytes, TN_RELAXED);
	if (bytes >= RUNS_CHUNK_BYTES)
		tn_os_huge(base, bytes);
	size_t head = runs_head_bytes(r, slots);
	runs_chunk *c = (runs_chunk *)(void *)base;
	*c = (runs_chunk){.bytes = bytes, .begin = base + head, .end = base + head + slots * r->slot_bytes};
	memset(c + 1, 0, head - sizeof *c);
	for (size_t i = 0; i < bytes; i += step)
		if (!tn_pages_set_owner(base + i, r)) {
			runs_give_chunks(r, c);
			return NULL;
		}
	return c;
}

/* ---- figures, under the lock ---- */

static size_t runs_count_between(const tn_runs *r, const char *begin, const char *end) {
	return (size_t)(end - begin) / r->slot_bytes;
}

static size_t lease_count_unused(const tn_runs *r, const tn_lease *l) {
	return runs_count_between(r, tn_get(&l->cursor, TN_RELAXED), tn_get(&l->limit, TN_RELAXED));
}

static size_t runs_count_used(const tn_runs *r) {
	size_t unused = 0;
	for (const tn_lease *l = r->leases; l != NULL; l = l->next)
		unused += lease_count_unused(r, l);
	return r->granted - unused;
}

/* Frees are counted after the slots handed out, so that the result is never too low. */
static size_t runs_count_live(const tn_runs *r) {
	size_t used = runs_count_used(r), returned = r->returned;
	for (const tn_lease *l = r->leases; l != NULL; l = l->next)
		returned += TN_LEASE_CREDIT - tn_get(&l->credit, TN_RELAXED);
	return returned > used ? 0 : used - returned;
}

/* How many slots may be granted now; 0 when that is fewer than `least` (R2). */
static size_t runs_count_grantable(const tn_runs *r, size_t least) {
	size_t used = r->granted;
	if (used > r->count || least > r->count - used)
		used = runs_count_used(r);
	return used > r->count || least > r->count - used ? 0 : r->count - used;
}

/* ---- runs, under the lock ---- */

/* Keeps slots that were leased and not used, if they are large enough for the record. */
static void runs_keep_spare(tn_runs *r, char *begin, char *end) {
	end = begin + runs_count_between(r, begin, end) * r->slot_bytes;
	uintptr_t at = ((uintptr_t)begin + sizeof(void *) - 1) & ~(uintptr_t)(sizeof(void *) - 1);
	if (begin == end || at + sizeof(runs_spare) > (uintptr_t)end)
		return;
	runs_spare *s = (runs_spare *)at;
	*s = (runs_spare){r->spares, begin, end};
	r->spares = s;
}

/* The end of a run of `most` slots, or of all that there are. */
static char *runs_end_of(const tn_runs *r, char *begin, const char *end, size_t most) {
	return begin + tn_min(runs_count_between(r, begin, end), most) * r->slot_bytes;
}

/* The first place between `begin` and `end` for a run of `least` slots, or NULL. Several slots begin at
 * an address that any object can have. For that, hardened and debug skip whole slots, so that they can
 * tell the inside of a slot from its beginning. */
static char *runs_begin_in(const tn_runs *r, char *begin, const char *end, size_t least) {
	size_t skip = 0, left = (size_t)(end - begin);
	while (least > 1 && ((uintptr_t)begin + skip) % RUNS_ARRAY_ALIGN != 0)
		skip += RUNS_CHECKED ? r->slot_bytes : 1;
	return skip <= left && least * r->slot_bytes <= left - skip ? begin + skip : NULL;
}

/* A run of at least `least` and at most `most` slots; NULL when that takes a new chunk. */
static char *runs_carve(tn_runs *r, size_t least, size_t most, char **end) {
	char *p = r->spares == NULL ? NULL : runs_begin_in(r, r->spares->begin, r->spares->end, least);
	if (p != NULL) {
		runs_spare s = *r->spares;
		r->spares = s.next;
		*end = runs_end_of(r, p, s.end, most);
		runs_keep_spare(r, s.begin, p);
		runs_keep_spare(r, *end, s.end);
		return p;
	}
	if (r->current == NULL)
		return NULL;
	while ((p = runs_begin_in(r, r->fresh, r->current->end, least)) == NULL) {
		if (r->current->next == NULL)
			return NULL;
		runs_keep_spare(r, r->fresh, r->current->end);
		r->current = r->current->next;
		r->fresh = r->current->begin;
	}
	runs_keep_spare(r, r->fresh, p);
	r->fresh = *end = runs_end_of(r, p, r->current->end, most);
	return p;
}

/* Puts in a chunk. If two threads bring one at the same time, the second becomes the next. */
static void runs_push_chunk(tn_runs *r, runs_chunk *c) {
	r->refills++;
	runs_chunk **link = r->current != NULL ? &r->current->next : &r->first;
	if (c->bytes > r->chunk_bytes)
		link = &r->large;
	c->next = *link;
	tn_set(link, c, TN_RELAXED);
	if (r->current == NULL && link == &r->first) {
		r->current = c;
		r->fresh = c->begin;
	}
}

/* ---- which slots are live ---- */

/* The chunk that holds p, or NULL. Large chunks are found under the lock: there are few. */
static const runs_chunk *runs_find_chunk(const tn_runs *r, const char *p) {
	size_t chunk_bytes = tn_get(&r->chunk_bytes, TN_RELAXED);
	if (chunk_bytes == 0)
		return NULL;
	uintptr_t base = (uintptr_t)p & ~(uintptr_t)(chunk_bytes - 1);
	if (tn_pages_owner(base) != r)
		return NULL;
	const runs_chunk *large = NULL;
	if (tn_get(&r->large, TN_RELAXED) != NULL) {
		tn_os_lock();
		for (large = r->large; large != NULL && (uintptr_t)p - (uintptr_t)large >= large->bytes;)
			large = large->next;
		tn_os_unlock();
	}
	return large != NULL ? large : (const runs_chunk *)base;
}

/* Hardened and debug: sets or clears the bits of `count` slots; returns whether none was so before. */
static bool runs_flip_live(
	const tn_runs *r, const runs_chunk *c, const char *p, size_t count, bool live) {
	unsigned char *bits = (unsigned char *)(uintptr_t)(c + 1);
	size_t first = runs_count_between(r, c->begin, p);
	bool all = true;
	for (size_t i = first; i < first + count; i++) {
		unsigned char bit = (unsigned char)(1u << i % 8);
		unsigned char before = live ? tn_or(&bits[i / 8], bit, TN_RELAXED)
		                            : tn_and(&bits[i / 8], (unsigned char)~bit, TN_RELAXED);
		all &= ((before & bit) != 0) != live;
	}
	return all;
}

/* Hardened and debug: the slots come back; panics unless all were live. */
static void runs_set_free(const tn_runs *r, const char *p, size_t count) {
	const runs_chunk *c = runs_find_chunk(r, p);
	if (c == NULL || p < c->begin || p >= c->end)
		tn_panic(RUNS_KIND, r->name, "deallocate: %p is not a slot of this arena", (const void *)p);
	size_t inside = (size_t)(p - c->begin) % r->slot_bytes;
	if (inside != 0)
		tn_panic(
			RUNS_KIND, r->name, "deallocate: %p is %zu bytes inside a slot", (const void *)p, inside);
	if (count > runs_count_between(r, p, c->end) || !runs_flip_live(r, c, p, count, false))
		tn_panic(
			RUNS_KIND, r->name, "deallocate: %zu slots at %p are not all live", count, (const void *)p);
}

/* ---- leases ---- */

/* Takes a lease away: its unused slots are granted no more. */
static void lease_unlink(tn_lease *l) {
	tn_runs *r = l->runs;
	r->granted -= lease_count_unused(r, l);
	r->returned += TN_LEASE_CREDIT - l->credit;
	runs_keep_spare(r, l->cursor, l->limit);
	TN_LIST_UNLINK(l, next, link);
	if (r->leases == NULL)
		TN_LIST_UNLINK(r, next_runs, runs_link);
}

/* Sets the lease's run, or none. */
static void lease_set(tn_lease *l, char *cursor, char *limit) {
	tn_set(&l->limit, limit, TN_RELAXED);
	tn_set(&l->cursor, cursor, TN_RELAXED);
}

static void lease_end_thread(void) {
	own_leases.state = LEASES_CLOSED;
	tn_os_lock();
	for (tn_lease *l = own_leases.first; l != NULL; l = l->next_of_thread) {
		lease_unlink(l);
		lease_set(l, NULL, NULL);
		tn_set(&l->credit, 0, TN_RELAXED);
		l->runs = NULL;
	}
	own_leases.first = NULL;
	tn_os_unlock();
}

/* In the child of a fork. The storage of the lost threads' leases goes to the child's next threads. */
static void lease_end_lost_threads(void) {
	tn_os_lock();
	for (tn_runs *r = leased_runs, *next_runs; r != NULL; r = next_runs) {
		next_runs = r->next_runs;
		for (tn_lease *l = r->leases, *next; l != NULL; l = next) {
			next = l->next;
			if (l->thread != &own_leases)
				lease_unlink(l);
		}
	}
	tn_os_unlock();
}

/* Lets the thread have leases, unless it is ending: then its late destructors take and give slots one
 * by one. Without the lock. */
static void lease_begin_thread(void) {
	if (own_leases.state != LEASES_NONE)
		return;
	tn_os_on_fork(TN_FORK_RUNS, NULL, NULL, lease_end_lost_threads);
	own_leases.state =
		tn_os_on_thread_exit(TN_EXIT_RUNS, lease_end_thread) ? LEASES_OPEN : LEASES_CLOSED;
}

/* Links the lease, if its thread can have one, and sets the size of chunks. Under the lock. */
static void lease_link(tn_runs *r, tn_lease *l) {
	if (r->chunk_bytes == 0)
		tn_set(&r->chunk_bytes, runs_chunk_bytes(r), TN_RELAXED);
	if (l->runs != NULL || own_leases.state != LEASES_OPEN)
		return;
	if (r->leases == NULL)
		TN_LIST_PUSH(&leased_runs, r, next_runs, runs_link);
	TN_LIST_PUSH(&r->leases, l, next, link);
	l->runs = r;
	l->thread = &own_leases;
	tn_set(&l->credit, TN_LEASE_CREDIT, TN_RELAXED);
	l->next_of_thread = own_leases.first;
	own_leases.first = l;
}

/* After slots were granted beside the lease: its slots over `count` were granted twice, and go. */
static void lease_cut(tn_runs *r, tn_lease *l) {
	size_t over = r->granted - tn_min(r->granted, r->count);
	size_t cut = l->runs == NULL ? 0 : tn_min(over, lease_count_unused(r, l));
	if (cut == 0)
		return;
	char *limit = l->limit;
	tn_set(&l->limit, limit - cut * r->slot_bytes, TN_RELAXED);
	r->granted -= cut;
	runs_keep_spare(r, l->limit, limit);
}

/* `count` slots, where the rest of the lease is too short: the first ones of a new run, or slots beside
 * the lease. NULL when that takes a new chunk. Under the lock. */
static char *runs_take_slots(tn_runs *r, tn_lease *l, size_t count, size_t most) {
	bool leased = l->runs != NULL && count <= r->lease_slots;
	char *end, *p = runs_carve(r, count, leased ? tn_min(most, r->lease_slots) : count, &end);
	if (p == NULL)
		return NULL;
	r->granted += runs_count_between(r, p, end);
	if (!leased) {
		lease_cut(r, l);
		return p;
	}
	r->granted -= lease_count_unused(r, l);
	runs_keep_spare(r, l->cursor, l->limit);
	lease_set(l, p + count * r->slot_bytes, end);
	return p;
}

/* `count` slots for which the lease's own run is too short. A large chunk is for one call. */
static char *lease_refill(tn_runs *r, tn_lease *l, size_t count) {
	lease_begin_thread();
	for (runs_chunk *brought = NULL;;) {
		char *p = NULL;
		tn_os_lock();
		lease_link(r, l);
		bool large = count > runs_slots_in(r, r->chunk_bytes);
		size_t most = runs_count_grantable(r, count);
		if (most != 0 && brought != NULL) {
			runs_push_chunk(r, brought);
			p = large ? brought->begin : NULL;
			brought = NULL;
		}
		if (p != NULL) {
			r->granted += count;
			lease_cut(r, l);
		} else if (most != 0 && !large) {
			p = runs_take_slots(r, l, count, most);
		}
		r->peak_slots = tn_max(r->peak_slots, r->granted);
		tn_os_unlock();
		if (p != NULL)
			return p;
		if (most == 0) {
			runs_give_chunks(r, brought);
			return errno = ENOMEM, NULL;
		}
		brought = runs_take_chunk(r, count);
		if (brought == NULL)
			return NULL;
	}
}

/* `count` slots of the lease's own run, or NULL. Slots skipped for alignment, and the partial slot at
 * the end then, are granted no more. */
static char *lease_take(tn_runs *r, tn_lease *l, size_t count) {
	char *cursor = tn_get(&l->cursor, TN_RELAXED);
	char *p = cursor == NULL ? NULL : runs_begin_in(r, cursor, l->limit, count);
	if (p == NULL)
		return NULL;
	if (p != cursor) {
		tn_os_lock();
		char *limit = runs_end_of(r, p, l->limit, SIZE_MAX);
		r->granted -= lease_count_unused(r, l) - runs_count_between(r, p, limit);
		runs_keep_spare(r, cursor, p);
		lease_set(l, p, limit);
		tn_os_unlock();
	}
	tn_set(&l->cursor, p + count * r->slot_bytes, TN_RELAXED);
	return p;
}

void *tn_runs_alloc_slow(tn_runs *r, tn_lease *l, size_t count) {
	if (count > r->count)
		return errno = ENOMEM, NULL;
	char *p = lease_take(r, l, count);
	if (p == NULL)
		p = lease_refill(r, l, count);
	if (RUNS_CHECKED && p != NULL)
		runs_flip_live(r, runs_find_chunk(r, p), p, count, true);
	if (TN_MODE == TN_MODE_DEBUG && p != NULL) {
		tn_permit(p, count * r->slot_bytes);
		tn_fill_fresh(p, count * r->slot_bytes);
		tn_hand_out(p, count * r->slot_bytes);
	}
	return p;
}

/* Takes the lock with room for a note; false, without the lock, when there is no memory for it. */
static bool runs_enter_note(tn_runs *r) {
	tn_os_lock();
	if (r->notes != NULL && r->notes->count < RUNS_NOTES_A_PAGE)
		return true;
	tn_os_unlock();
	runs_notes *page = tn_pages_acquire(TN_OS_PAGE, TN_OS_PAGE);
	if (page == NULL)
		return false;
	tn_os_lock();
	page->next = r->notes;
	page->count = 0;
	r->notes = page;
	return true;
}

void *tn_runs_alloc_noted(tn_runs *r, tn_lease *l, size_t count) {
	/* First, so that a call without memory for the note uses no slots. */
	if (!runs_enter_note(r))
		return errno = ENOMEM, NULL;
	tn_os_unlock();
	char *p = tn_runs_alloc_slow(r, l, count);
	if (p == NULL)
		return NULL;
	/* Other threads may have filled the page meanwhile. */
	if (!runs_enter_note(r)) {
		tn_runs_free(r, l, p, count);
		return errno = ENOMEM, NULL;
	}
	r->notes->note[r->notes->count++] = (runs_note){p, count};
	tn_os_unlock();
	return p;
}

/* ---- free ---- */

void tn_runs_free_slow(tn_runs *r, tn_lease *l, void *p, size_t count) {
	if (p == NULL)
		return;
	lease_begin_thread();
	if (RUNS_CHECKED)
		runs_set_free(r, p, count);
	tn_os_lock();
	if (l->runs == NULL)
		tn_set(&l->credit, 0, TN_RELAXED);
	lease_link(r, l);
	if (l->runs == NULL)
		r->returned += count;
	else
		tn_set(&l->credit, l->credit - count, TN_RELAXED);
	tn_os_unlock();
	tn_wipe(p, count * r->slot_bytes);
	tn_forbid(p, count * r->slot_bytes);
}

/* Slots without a note are one slot. Under the lock. */
static size_t runs_noted_count(const tn_runs *r, const char *p) {
	for (const runs_notes *page = r->notes; page != NULL; page = page->next)
		for (size_t i = page->count; i > 0; i--)
			if (page->note[i - 1].slots == p)
				return page->note[i - 1].count;
	return 1;
}

void tn_runs_free_noted(tn_runs *r, tn_lease *l, void *p) {
	tn_os_lock();
	size_t count = runs_noted_count(r, p);
	tn_os_unlock();
	tn_runs_free_slow(r, l, p, count);
}

/* ---- reset, trim, figures ---- */

bool tn_runs_reset(tn_runs *r) {
	tn_os_lock();
	if (runs_count_live(r) != 0) {
		tn_os_unlock();
		return errno = EINVAL, false;
	}
	for (tn_lease *l = r->leases; l != NULL; l = l->next) {
		lease_set(l, NULL, NULL);
		tn_set(&l->credit, TN_LEASE_CREDIT, TN_RELAXED);
	}
	r->granted = r->returned = 0;
	r->spares = NULL;
	runs_notes *notes = r->notes;
	r->notes = NULL;
	r->resets++;
	runs_chunk *gone = r->large;
	r->large = NULL;
	if (TN_MODE == TN_MODE_DEBUG) {
		/* New chunks, so that stale accesses fault; the other modes begin again in warm memory. */
		runs_chunk **end = &gone;
		while (*end != NULL)
			end = &(*end)->next;
		*end = r->first;
		r->first = NULL;
	}
	r->current = r->first;
	r->fresh = r->first == NULL ? NULL : r->first->begin;
	tn_os_unlock();
	for (runs_notes *next; notes != NULL; notes = next) {
		next = notes->next;
		tn_pages_release(notes, TN_OS_PAGE, TN_OS_PAGE);
	}
	runs_give_chunks(r, gone);
	return true;
}

size_t tn_runs_trim(tn_runs *r) {
	tn_os_lock();
	bool idle = r->granted == 0 && r->current != NULL;
	runs_chunk *gone = NULL;
	if (idle) {
		gone = r->first;
		r->first = r->current = NULL;
		r->fresh = NULL;
	} else if (r->current != NULL) {
		gone = r->current->next;
		r->current->next = NULL;
	}
	tn_os_unlock();
	return runs_give_chunks(r, gone);
}

size_t tn_runs_used(const tn_runs *r) {
	tn_os_lock();
	size_t used = runs_count_used(r);
	tn_os_unlock();
	return used;
}

size_t tn_runs_in_use(const tn_runs *r) {
	tn_os_lock();
	size_t in_use = runs_count_live(r);
	tn_os_unlock();
	return in_use;
}

bool tn_runs_owns(const tn_runs *r, const void *p) {
	const runs_chunk *c = runs_find_chunk(r, p);
	return c != NULL && (const char *)p >= c->begin && (const char *)p < c->end;
}

void tn_runs_stats(const tn_runs *r, tn_stats *stats) {
	*stats = (tn_stats){.live_count = 0};
	tn_copy_name(stats->name, r->name, RUNS_KIND);
	tn_os_lock();
	stats->live_count = runs_count_live(r);
	stats->live_bytes = stats->live_count * r->slot_bytes;
	size_t taken = tn_get(&r->taken_bytes, TN_RELAXED);
	size_t unused = r->count - tn_min(r->count, runs_count_used(r));
	stats->cached_bytes = tn_min(unused * r->slot_bytes, taken);
	stats->committed_bytes = stats->reserved_bytes = taken;
	stats->peak_bytes = r->peak_slots * r->slot_bytes;
	for (const runs_chunk *c = r->first; c != NULL; c = c->next)
		stats->chunk_count++;
	for (const runs_chunk *c = r->large; c != NULL; c = c->next)
		stats->chunk_count++;
	stats->refills = r->refills;
	stats->resets = r->resets;
	tn_os_unlock();
}
