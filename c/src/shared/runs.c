/* Slots that are used once, leased to threads in runs.
 *
 *   alloc (inline)       the lease has a slot: move its cursor
 *   `- alloc_slow        hardened and debug; else a new run, under the page layer's lock
 *      `- add_chunk      from the page layer, without the lock
 *   free (inline)        counts, in the lease
 *
 * Nobody pays for an atomic operation, so nobody knows at any moment how many slots are used; but a run
 * is unused only from its lease's cursor on:
 *
 * R1  granted - (sum of what is unused in the leases) = slots handed out since the reset.
 * R2  a lease is granted while fewer than `count` slots are handed out: there are at least `count`, and
 *     at most `count` and a lease for every thread.
 * R3  a lease that is not enlisted has no run and no credit: both fast paths leave it to the slow ones.
 *
 * The lock is the page layer's, which a fork holds: the child finds everything in order, but for the
 * leases of threads that it does not have. */
#include <tenure/detail/runs.h>

#include <errno.h>
#include <string.h>

#include "../base/checkers.h"
#include "../base/modes.h"
#include "../base/os.h"
#include "../pages/pages.h"
#include "../slab/grid.h"

#define RUNS_KIND "size_based_arena"
#define RUNS_CHUNK_BYTES ((size_t)2 << 20)
/* What any object may ask for that does not say more. */
#define RUNS_ARRAY_ALIGN 16
#define RUNS_CHECKED (TN_MODE != TN_MODE_RELEASE)

typedef struct tn_runs_chunk runs_chunk;
struct tn_runs_chunk {
	runs_chunk *next;
	size_t bytes;
	char *begin, *end; /* of its slots; before them, in hardened and debug, a bit for each live one */
};

/* What came back of a run, kept in its own first slots. */
typedef struct tn_runs_spare {
	struct tn_runs_spare *next;
	char *begin, *end;
} runs_spare;

/* Slots of which whoever gives them back will not know the count, until the reset. */
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
_Static_assert(sizeof(runs_notes) <= TN_OS_PAGE, "a page of notes");

/* All leases of this thread. Owner thread only. */
static _Thread_local struct {
	enum { LEASES_NONE, LEASES_OPEN, LEASES_CLOSED } state;
	tn_lease *first;
} own_leases;

/* All with leases; under the lock. A module that is closed after its threads have ended is not here. */
static tn_runs *leased_runs;

/* ---- chunks ---- */

/* Bytes before the first of `slots` slots. */
static size_t runs_head_bytes(const tn_runs *r, size_t slots) {
	size_t bits = RUNS_CHECKED ? (slots + 7) / 8 : 0;
	return tn_round_up(sizeof(runs_chunk) + bits, r->align < 16 ? 16 : r->align);
}

/* Slots of a chunk of `bytes`, which are more than what is before them. */
static size_t runs_slots_in(const tn_runs *r, size_t bytes) {
	return (bytes - runs_head_bytes(r, bytes / r->slot_bytes)) / r->slot_bytes;
}

/* Of every chunk but the large ones: what all slots need, within bounds. */
static size_t runs_chunk_bytes(const tn_runs *r) {
	size_t most = RUNS_CHUNK_BYTES, bytes = TN_OS_PAGE;
	while (most < runs_head_bytes(r, most / r->slot_bytes) + r->slot_bytes)
		most *= 2;
	while (bytes < most && bytes < runs_head_bytes(r, r->count) + r->count * r->slot_bytes)
		bytes *= 2;
	return bytes;
}

static void runs_disown(const char *base, size_t bytes, size_t step) {
	for (size_t i = 0; i < bytes; i += step)
		tn_pages_set_owner((void *)(uintptr_t)(base + i), NULL);
}

/* A chunk for `slots` slots at least: a large one where others are too small. Without the lock. */
static runs_chunk *runs_take_chunk(tn_runs *r, size_t slots) {
	size_t step = r->chunk_bytes, bytes = step;
	if (slots > runs_slots_in(r, step))
		bytes = tn_round_up(runs_head_bytes(r, slots) + slots * r->slot_bytes, step);
	else
		slots = runs_slots_in(r, step);
	char *base = tn_pages_acquire(bytes, step);
	if (base == NULL)
		return NULL;
	for (size_t i = 0; i < bytes; i += step)
		if (!tn_pages_set_owner(base + i, r)) {
			runs_disown(base, i, step);
			tn_pages_release(base, bytes, step);
			return NULL;
		}
	if (bytes >= RUNS_CHUNK_BYTES)
		tn_os_huge(base, bytes);
	size_t head = runs_head_bytes(r, slots);
	runs_chunk *c = (runs_chunk *)(void *)base;
	*c = (runs_chunk){.bytes = bytes, .begin = base + head, .end = base + head + slots * r->slot_bytes};
	memset(c + 1, 0, head - sizeof *c);
	return c;
}

static size_t runs_give_chunks(const tn_runs *r, runs_chunk *first) {
	size_t sum = 0;
	for (runs_chunk *c = first, *next; c != NULL; c = next) {
		next = c->next;
		size_t bytes = c->bytes;
		sum += bytes;
		tn_permit(c, bytes);
		runs_disown((char *)c, bytes, r->chunk_bytes);
		tn_pages_release(c, bytes, r->chunk_bytes);
	}
	return sum;
}

/* ---- figures, under the lock ---- */

static size_t runs_count_between(const tn_runs *r, const char *begin, const char *end) {
	return (size_t)(end - begin) / r->slot_bytes;
}

static size_t lease_count_unused(const tn_runs *r, const tn_lease *l) {
	return runs_count_between(r, TN_LEASE_GET(&l->cursor), TN_LEASE_GET(&l->limit));
}

static size_t runs_count_used(const tn_runs *r) {
	size_t unused = 0;
	for (const tn_lease *l = r->leases; l != NULL; l = l->next)
		unused += lease_count_unused(r, l);
	return r->granted - unused;
}

/* Frees are counted after what is used, so that this is never less than it is. */
static size_t runs_count_live(const tn_runs *r) {
	size_t used = runs_count_used(r), returned = r->returned;
	for (const tn_lease *l = r->leases; l != NULL; l = l->next)
		returned += TN_LEASE_CREDIT - TN_LEASE_GET(&l->credit);
	return returned > used ? 0 : used - returned;
}

/* How many slots may be granted now, or 0 when fewer than `least` (R2). */
static size_t runs_count_grantable(const tn_runs *r, size_t least) {
	size_t used = r->granted;
	if (used > r->count || least > r->count - used)
		used = runs_count_used(r);
	return used > r->count || least > r->count - used ? 0 : r->count - used;
}

/* ---- runs, under the lock ---- */

/* Slots that were leased and are not used, if they hold the words for it. */
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
	size_t slots = runs_count_between(r, begin, end);
	return begin + (slots < most ? slots : most) * r->slot_bytes;
}

/* Several slots begin at an address that any object can have: bytes to skip for that. Hardened and
 * debug stay on the grid of slots, where they can tell the inside of one from its beginning. */
static size_t runs_skip_bytes(const tn_runs *r, const char *p, size_t count) {
	size_t bytes = 0;
	while (count > 1 && ((uintptr_t)p + bytes) % RUNS_ARRAY_ALIGN != 0)
		bytes += RUNS_CHECKED ? r->slot_bytes : 1;
	return bytes;
}

/* Where a run of `least` slots can begin in what is left, or NULL. */
static char *runs_begin_in(const tn_runs *r, char *begin, const char *end, size_t least) {
	size_t skip = runs_skip_bytes(r, begin, least), left = (size_t)(end - begin);
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

/* Where two threads brought a chunk at the same time, the other one's is the next. */
static void runs_push_chunk(tn_runs *r, runs_chunk *c) {
	r->taken_bytes += c->bytes;
	r->refills++;
	runs_chunk **link = r->current != NULL ? &r->current->next : &r->first;
	if (c->bytes > r->chunk_bytes)
		link = &r->large;
	c->next = *link;
	TN_LEASE_SET(link, c);
	if (r->current == NULL && link == &r->first) {
		r->current = c;
		r->fresh = c->begin;
	}
}

/* ---- which slots are live ---- */

/* The chunk that p lies in, or NULL. Large chunks are found under the lock: there are few. */
static const runs_chunk *runs_find_chunk(const tn_runs *r, const char *p) {
	size_t chunk_bytes = TN_LEASE_GET(&r->chunk_bytes);
	if (chunk_bytes == 0)
		return NULL;
	uintptr_t base = (uintptr_t)p & ~(uintptr_t)(chunk_bytes - 1);
	if (tn_pages_owner(base) != r)
		return NULL;
	const runs_chunk *large = NULL;
	if (TN_LEASE_GET(&r->large) != NULL) {
		tn_os_lock();
		for (large = r->large; large != NULL && (uintptr_t)p - (uintptr_t)large >= large->bytes;)
			large = large->next;
		tn_os_unlock();
	}
	return large != NULL ? large : (const runs_chunk *)base;
}

/* Hardened and debug: a bit for each slot that is handed out. Sets or clears those of `count` slots;
 * whether none was so before. */
static bool runs_set_live(
	const tn_runs *r, const runs_chunk *c, const char *p, size_t count, bool live) {
	unsigned char *bits = (unsigned char *)(uintptr_t)(c + 1);
	size_t first = runs_count_between(r, c->begin, p);
	bool all = true;
	for (size_t i = first; i < first + count; i++) {
		unsigned char bit = (unsigned char)(1u << i % 8);
		unsigned char before =
			live ? __atomic_fetch_or(&bits[i / 8], bit, __ATOMIC_RELAXED)
				 : __atomic_fetch_and(&bits[i / 8], (unsigned char)~bit, __ATOMIC_RELAXED);
		all &= ((before & bit) != 0) != live;
	}
	return all;
}

/* ---- leases ---- */

static void lease_give(const tn_lease *l) {
	tn_runs *r = l->runs;
	r->granted -= lease_count_unused(r, l);
	r->returned += TN_LEASE_CREDIT - l->credit;
	runs_keep_spare(r, l->cursor, l->limit);
}

static void runs_unlink_unleased(tn_runs *r) {
	if (r->leases != NULL)
		return;
	*r->runs_link = r->next_runs;
	if (r->next_runs != NULL)
		r->next_runs->runs_link = r->runs_link;
}

static void lease_end_thread(void) {
	own_leases.state = LEASES_CLOSED;
	tn_os_lock();
	for (tn_lease *l = own_leases.first; l != NULL; l = l->next_of_thread) {
		lease_give(l);
		*l->link = l->next;
		if (l->next != NULL)
			l->next->link = l->link;
		runs_unlink_unleased(l->runs);
		TN_LEASE_SET(&l->cursor, NULL);
		TN_LEASE_SET(&l->limit, NULL);
		TN_LEASE_SET(&l->credit, 0);
		l->runs = NULL;
	}
	own_leases.first = NULL;
	tn_os_unlock();
}

/* In the child of a fork: the leases of threads that it does not have. They lie in storage that its
 * next threads will use again, and are left as they are. */
static void lease_end_lost_threads(void) {
	tn_os_lock();
	for (tn_runs *r = leased_runs, *next; r != NULL; r = next) {
		next = r->next_runs;
		tn_lease **link = &r->leases;
		for (tn_lease *l = r->leases; l != NULL; l = l->next) {
			if (l->thread != &own_leases) {
				lease_give(l);
				continue;
			}
			*link = l;
			l->link = link;
			link = &l->next;
		}
		*link = NULL;
		runs_unlink_unleased(r);
	}
	tn_os_unlock();
}

/* A thread that is ending may not keep leases any more: its late destructors take and give slots one by
 * one. Without the lock. */
static void lease_begin_thread(void) {
	if (own_leases.state != LEASES_NONE)
		return;
	tn_os_on_fork(TN_FORK_RUNS, NULL, NULL, lease_end_lost_threads);
	own_leases.state =
		tn_os_on_thread_exit(TN_EXIT_RUNS, lease_end_thread) ? LEASES_OPEN : LEASES_CLOSED;
}

/* Under the lock. */
static void lease_link(tn_runs *r, tn_lease *l) {
	if (r->chunk_bytes == 0)
		TN_LEASE_SET(&r->chunk_bytes, runs_chunk_bytes(r));
	if (l->runs != NULL || own_leases.state != LEASES_OPEN)
		return;
	if (r->leases == NULL) {
		r->next_runs = leased_runs;
		r->runs_link = &leased_runs;
		if (leased_runs != NULL)
			leased_runs->runs_link = &r->next_runs;
		leased_runs = r;
	}
	l->runs = r;
	l->thread = &own_leases;
	TN_LEASE_SET(&l->credit, TN_LEASE_CREDIT);
	l->next = r->leases;
	l->link = &r->leases;
	if (l->next != NULL)
		l->next->link = &l->next;
	r->leases = l;
	l->next_of_thread = own_leases.first;
	own_leases.first = l;
}

/* After slots were granted beside the lease: what that holds over `count` was granted twice. */
static void lease_cut(tn_runs *r, tn_lease *l) {
	size_t unused = lease_count_unused(r, l), over = r->granted > r->count ? r->granted - r->count : 0;
	if (l->runs == NULL || over == 0 || unused == 0)
		return;
	size_t cut = over < unused ? over : unused;
	char *limit = l->limit;
	TN_LEASE_SET(&l->limit, limit - cut * r->slot_bytes);
	r->granted -= cut;
	runs_keep_spare(r, l->limit, limit);
}

/* `count` slots where what is left of the lease is too short: the first ones of a new lease, or beside
 * it. NULL when that takes a new chunk. Under the lock. */
static char *runs_take_slots(tn_runs *r, tn_lease *l, size_t count, size_t most) {
	bool leased = l->runs != NULL && count <= r->lease_slots;
	size_t run = most < r->lease_slots ? most : r->lease_slots;
	char *end, *p = runs_carve(r, count, leased ? run : count, &end);
	if (p == NULL)
		return NULL;
	r->granted += runs_count_between(r, p, end);
	if (!leased) {
		lease_cut(r, l);
		return p;
	}
	r->granted -= lease_count_unused(r, l);
	runs_keep_spare(r, l->cursor, l->limit);
	TN_LEASE_SET(&l->limit, end);
	TN_LEASE_SET(&l->cursor, p + count * r->slot_bytes);
	return p;
}

/* A large chunk is for one call. */
static char *runs_take_large(tn_runs *r, tn_lease *l, size_t count) {
	runs_chunk *c = runs_take_chunk(r, count);
	if (c == NULL)
		return NULL;
	tn_os_lock();
	bool granted = runs_count_grantable(r, count) != 0;
	if (granted) {
		runs_push_chunk(r, c);
		r->granted += count;
		lease_cut(r, l);
	}
	tn_os_unlock();
	if (granted)
		return c->begin;
	runs_give_chunks(r, c);
	return errno = ENOMEM, NULL;
}

static char *lease_refill(tn_runs *r, tn_lease *l, size_t count) {
	lease_begin_thread();
	for (;;) {
		tn_os_lock();
		lease_link(r, l);
		bool large = count > runs_slots_in(r, r->chunk_bytes);
		size_t most = runs_count_grantable(r, count);
		char *p = most == 0 || large ? NULL : runs_take_slots(r, l, count, most);
		if (r->granted > r->peak_slots)
			r->peak_slots = r->granted;
		tn_os_unlock();
		if (p != NULL)
			return p;
		if (most == 0)
			return errno = ENOMEM, NULL;
		if (large)
			return runs_take_large(r, l, count);
		runs_chunk *c = runs_take_chunk(r, count);
		if (c == NULL)
			return NULL;
		tn_os_lock();
		runs_push_chunk(r, c);
		tn_os_unlock();
	}
}

/* What was passed over before an array, and what is less than a slot at the end then, was not handed
 * out. */
static char *lease_take(tn_runs *r, tn_lease *l, size_t count) {
	char *cursor = TN_LEASE_GET(&l->cursor);
	char *p = cursor == NULL ? NULL : runs_begin_in(r, cursor, l->limit, count);
	if (p == NULL)
		return NULL;
	if (p != cursor) {
		tn_os_lock();
		char *limit = runs_end_of(r, p, l->limit, SIZE_MAX);
		r->granted -= lease_count_unused(r, l) - runs_count_between(r, p, limit);
		runs_keep_spare(r, cursor, p);
		TN_LEASE_SET(&l->limit, limit);
		TN_LEASE_SET(&l->cursor, p);
		tn_os_unlock();
	}
	TN_LEASE_SET(&l->cursor, p + count * r->slot_bytes);
	return p;
}

void *tn_runs_alloc_slow(tn_runs *r, tn_lease *l, size_t count) {
	if (count > r->count)
		return errno = ENOMEM, NULL;
	char *p = lease_take(r, l, count);
	if (p == NULL)
		p = lease_refill(r, l, count);
	if (RUNS_CHECKED && p != NULL)
		runs_set_live(r, runs_find_chunk(r, p), p, count, true);
	if (TN_MODE == TN_MODE_DEBUG && p != NULL) {
		tn_permit(p, count * r->slot_bytes);
		memset(p, TN_FILL_FRESH, count * r->slot_bytes);
		tn_hand_out(p, count * r->slot_bytes);
	}
	return p;
}

/* With the lock, and room for a note; false without either. */
static bool runs_begin_note(tn_runs *r) {
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
	if (!runs_begin_note(r))
		return errno = ENOMEM, NULL;
	tn_os_unlock();
	char *p = tn_runs_alloc_slow(r, l, count);
	if (p == NULL)
		return NULL;
	/* Other threads may have filled the page meanwhile. */
	if (!runs_begin_note(r)) {
		tn_runs_free(r, l, p, count);
		return errno = ENOMEM, NULL;
	}
	r->notes->note[r->notes->count++] = (runs_note){p, count};
	tn_os_unlock();
	return p;
}

/* ---- free ---- */

/* Hardened and debug: the bits of what is given back were set when it was handed out. */
static void runs_check_free(const tn_runs *r, const char *p, size_t count) {
	const runs_chunk *c = runs_find_chunk(r, p);
	if (c == NULL || p < c->begin || p >= c->end)
		tn_panic(RUNS_KIND, r->name, "deallocate: %p is not a slot of this arena", (const void *)p);
	size_t inside = (size_t)(p - c->begin) % r->slot_bytes;
	if (inside != 0)
		tn_panic(
			RUNS_KIND, r->name, "deallocate: %p is %zu bytes inside a slot", (const void *)p, inside);
	if (count > runs_count_between(r, p, c->end) || !runs_set_live(r, c, p, count, false))
		tn_panic(
			RUNS_KIND, r->name, "deallocate: %zu slots at %p are not all live", count, (const void *)p);
}

void tn_runs_free_slow(tn_runs *r, tn_lease *l, void *p, size_t count) {
	if (p == NULL)
		return;
	lease_begin_thread();
	if (RUNS_CHECKED)
		runs_check_free(r, p, count);
	tn_os_lock();
	if (l->runs == NULL)
		TN_LEASE_SET(&l->credit, 0);
	lease_link(r, l);
	if (l->runs == NULL)
		r->returned += count;
	else
		TN_LEASE_SET(&l->credit, l->credit - count);
	tn_os_unlock();
	tn_wipe(p, count * r->slot_bytes);
	tn_forbid(p, count * r->slot_bytes);
}

/* Under the lock. What was not noted is one slot. */
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

/* Debug renews what was forgotten, so that stale accesses fault; the others begin again in warm
 * memory. */
static runs_chunk *runs_detach_chunks(tn_runs *r) {
	runs_chunk *gone = r->large;
	r->large = NULL;
	if (TN_MODE != TN_MODE_DEBUG)
		return gone;
	runs_chunk **end = &gone;
	while (*end != NULL)
		end = &(*end)->next;
	*end = r->first;
	r->first = NULL;
	return gone;
}

bool tn_runs_reset(tn_runs *r) {
	tn_os_lock();
	if (runs_count_live(r) != 0) {
		tn_os_unlock();
		return errno = EINVAL, false;
	}
	for (tn_lease *l = r->leases; l != NULL; l = l->next) {
		TN_LEASE_SET(&l->cursor, NULL);
		TN_LEASE_SET(&l->limit, NULL);
		TN_LEASE_SET(&l->credit, TN_LEASE_CREDIT);
	}
	r->granted = r->returned = 0;
	r->spares = NULL;
	runs_notes *notes = r->notes;
	r->notes = NULL;
	r->resets++;
	runs_chunk *gone = runs_detach_chunks(r);
	r->current = r->first;
	r->fresh = r->first == NULL ? NULL : r->first->begin;
	tn_os_unlock();
	for (runs_notes *next; notes != NULL; notes = next) {
		next = notes->next;
		tn_pages_release(notes, TN_OS_PAGE, TN_OS_PAGE);
	}
	size_t bytes = runs_give_chunks(r, gone);
	tn_os_lock();
	r->taken_bytes -= bytes;
	tn_os_unlock();
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
	size_t bytes = runs_give_chunks(r, gone);
	tn_os_lock();
	r->taken_bytes -= bytes;
	tn_os_unlock();
	return bytes;
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
	stats->cached_bytes =
		(r->count - (runs_count_used(r) < r->count ? runs_count_used(r) : r->count)) * r->slot_bytes;
	if (stats->cached_bytes > r->taken_bytes)
		stats->cached_bytes = r->taken_bytes;
	stats->committed_bytes = stats->reserved_bytes = r->taken_bytes;
	stats->peak_bytes = r->peak_slots * r->slot_bytes;
	for (const runs_chunk *c = r->first; c != NULL; c = c->next)
		stats->chunk_count++;
	for (const runs_chunk *c = r->large; c != NULL; c = c->next)
		stats->chunk_count++;
	stats->refills = r->refills;
	stats->resets = r->resets;
	tn_os_unlock();
}
