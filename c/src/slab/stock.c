/* Chunks with a bit for each free slot. See stock.h.
 *
 *   take       the fullest chunk with slots to give: its free ones, then fresh ones; and the next chunk
 *   give       a bit for each slot; then each chunk that got some goes into the list of its rank
 *
 * I1  a bit is 1 for a slot that is carved and free in its chunk; every other carved slot is outside:
 *     handed out, or in a magazine.
 * I2  outside = carved - the sum of all chunks' free slots.
 * I3  a chunk with slots to give is in its node's list of its rank, by how full it is; the last rank
 *     has the empty ones.
 * I4  the page layer's table names the stock as the owner of each of its chunks; all chunks are
 *     counted; the bytes taken are at most limit_bytes. */
#include "stock.h"

#include <errno.h>

#include "../base/list.h"

#define GUARDED_BYTES_MAX ((size_t)64 << 20) /* debug: per process, slots with pages of their own */

static TN_ATOMIC(size_t) guarded_bytes;

/* Debug looks for the owner of a pointer that is in no slot. */
void tn_stock_refuse(const stock *s, const void *p, const char *operation) {
	for (unsigned bits = 12; TN_MODE == TN_MODE_DEBUG && bits < 48; bits++) {
		uintptr_t base = (uintptr_t)p & ~(((uintptr_t)1 << bits) - 1);
		const stock *other = tn_pages_owner(base);
		if (other == NULL || other->grid.chunk_bytes != (size_t)1 << bits)
			continue;
		const chunk *c = stock_chunk_at(other, base);
		size_t index = grid_index_of(c->grid, c->base, p);
		if (index < stock_carved_of(c))
			tn_panic(s->kind, s->name, "%s: %p is not a slot of this %s; it is in %s \"%s\", slot %p",
				operation, p, s->kind, other->kind, other->name,
				(void *)stock_slot_at(other, c, index));
	}
	tn_panic(s->kind, s->name, "%s: %p is not a slot of this %s%s", operation, p, s->kind,
		TN_MODE == TN_MODE_DEBUG ? "; nothing of Tenure is there" : "");
}

chunk *tn_stock_chunk_of_slot(const stock *s, const void *p, const char *operation) {
	chunk *c = stock_chunk_of(s, p, operation);
	const grid *g = stock_grid_of(s, c);
	const size_t carved = stock_carved_of(c);
	if (grid_has_slot(g, c->base, carved, p))
		return c;
	const char *slot = grid_find_slot(g, c->base, carved, p);
	if (slot == NULL)
		tn_stock_refuse(s, p, operation);
	size_t bytes = (size_t)((const char *)p - slot);
	if (TN_MODE != TN_MODE_DEBUG)
		tn_panic(s->kind, s->name, "%s: %p is %zu bytes inside the slot at %p", operation, p, bytes,
			(const void *)slot);
	tn_panic(s->kind, s->name, "%s: %p is %zu bytes inside the slot at %p, allocated at %s", operation,
		p, bytes, (const void *)slot, tn_site(stock_record_of(s, c, slot)->alloc_site).text);
}

/* ---- ranks ---- */

static size_t stock_count_left(const stock *s, const chunk *c) {
	return c->free + stock_grid_of(s, c)->count - stock_carved_of(c);
}

static size_t stock_rank_of(const stock *s, const chunk *c) {
	const size_t left = stock_count_left(s, c), count = stock_grid_of(s, c)->count;
	size_t rank = 0;
	while (rank < STOCK_EMPTY && left * STOCK_RANKS > (rank + 1) * count)
		rank++;
	return left == count ? STOCK_EMPTY : rank;
}

static void stock_unlink_chunk(stock *s, chunk *c) {
	s->ranked_count -= c->link != NULL;
	s->empty_count -= c->empty;
	s->at_node[c->node].empty_count -= c->empty;
	c->empty = false;
	TN_LIST_UNLINK(c, next, link);
}

/* After slots came or went: puts a chunk into the list of its rank, if it has slots to give. */
static void stock_settle_chunk(stock *s, chunk *c) {
	stock_unlink_chunk(s, c);
	if (stock_count_left(s, c) == 0)
		return;
	size_t rank = stock_rank_of(s, c);
	chunk **list = &s->at_node[c->node].ranks[rank];
	TN_LIST_PUSH(list, c, next, link);
	c->empty = rank == STOCK_EMPTY;
	s->empty_count += c->empty;
	s->at_node[c->node].empty_count += c->empty;
	s->ranked_count++;
}

/* The fullest chunk of a node with free slots; if there are none, with fresh ones; or NULL. At most one
 * chunk in use has fresh slots, so others are found at once. */
static chunk *stock_find_chunk(const stock *s, size_t node) {
	bool free = stock_count_outside(s) < s->carved;
	chunk *const *ranks = s->at_node[node].ranks;
	for (size_t i = 0; i <= STOCK_EMPTY; i++)
		for (chunk *c = ranks[i]; c != NULL; c = c->next)
			if (!free || c->free > 0)
				return c;
	/* The free slots may all be other nodes'. */
	for (size_t i = 0; free && s->nodes > 1 && i <= STOCK_EMPTY; i++)
		if (ranks[i] != NULL)
			return ranks[i];
	return NULL;
}

/* A chunk of another node: for a thread whose node has no memory. */
static chunk *stock_find_far_chunk(const stock *s, size_t node) {
	chunk *c = NULL;
	for (size_t i = 1; i < s->nodes && c == NULL; i++)
		c = stock_find_chunk(s, (node + i) % s->nodes);
	return c;
}

/* ---- chunks ---- */

static const grid *stock_choose_grid(stock *s) {
	if (TN_MODE != TN_MODE_DEBUG || s->guarded.count == 0)
		return &s->grid;
	size_t before = tn_add(&guarded_bytes, s->grid.chunk_bytes, TN_RELAXED);
	if (before + s->grid.chunk_bytes <= GUARDED_BYTES_MAX)
		return &s->guarded;
	tn_add(&guarded_bytes, 0 - s->grid.chunk_bytes, TN_RELAXED);
	return &s->grid;
}

static void stock_count_chunk(stock *s, const chunk *c, size_t more) {
	TN_ATOMIC(size_t) *count = &s->at_node[c->node].chunk_count;
	tn_set(count, tn_get(count, TN_RELAXED) + more, TN_RELAXED);
	s->chunk_count += more;
}

static chunk *stock_take_chunk(stock *s) {
	const size_t bytes = s->grid.chunk_bytes;
	if (s->limit_bytes - s->taken_bytes < bytes)
		return errno = ENOMEM, NULL;
	char *base = tn_chunk_acquire(&s->source, bytes, bytes);
	if (base == NULL)
		return NULL;
	if (tn_chunk_is_owned(&s->source, base) || !tn_pages_set_owner(base, s)) {
		tn_chunk_release(&s->source, base, bytes, bytes);
		return errno = ENOMEM, NULL;
	}
	chunk *c = stock_chunk_at(s, (uintptr_t)base);
	memset(c, 0, bytes - s->grid.head_offset);
	bool placed = tn_chunk_is_paged(&s->source) && bytes <= TN_PAGES_CLASS_BYTES_MAX;
	if (s->nodes > 1)
		c->node = (uint8_t)(placed ? tn_pages_node_of(base) : tn_os_node());
	c->base = base;
	c->grid = stock_choose_grid(s);
	TN_LIST_PUSH(&s->chunks, c, next_chunk, link_chunk);
	stock_count_chunk(s, c, 1);
	s->slot_count += c->grid->count;
	s->taken_bytes += bytes;
	return c;
}

static void stock_end_slots(const stock *s, const chunk *c) {
	for (size_t i = 0; s->fini != NULL && i < stock_carved_of(c); i++)
		s->fini(stock_slot_at(s, c, i), s->ctx);
}

static void stock_give_chunk(stock *s, chunk *c) {
	const size_t bytes = s->grid.chunk_bytes;
	char *base = c->base;
	tn_permit(base, stock_carved_bytes(s, c));
	stock_end_slots(s, c);
	if (TN_MODE == TN_MODE_DEBUG && c->grid == &s->guarded)
		tn_add(&guarded_bytes, 0 - bytes, TN_RELAXED);
	stock_unlink_chunk(s, c);
	TN_LIST_UNLINK(c, next_chunk, link_chunk);
	stock_count_chunk(s, c, (size_t)-1);
	s->slot_count -= c->grid->count;
	s->carved -= stock_carved_of(c);
	s->taken_bytes -= bytes;
	tn_wipe(base, stock_carved_bytes(s, c));
	tn_pages_set_owner(base, NULL);
	tn_chunk_release(&s->source, base, bytes, bytes);
}

void tn_stock_trim(stock *s, size_t keep) {
	for (stock_node *n = s->at_node; s->empty_count > keep && n < s->at_node + TN_OS_NODES; n++)
		while (n->empty_count > keep)
			stock_give_chunk(s, n->ranks[STOCK_EMPTY]);
}

bool tn_stock_reserve(stock *s, size_t count) {
	size_t before = s->empty_count;
	while (s->slot_count - stock_count_outside(s) < count) {
		chunk *c = stock_take_chunk(s);
		if (c == NULL) {
			tn_stock_trim(s, before);
			return errno = ENOMEM, false;
		}
		stock_settle_chunk(s, c);
	}
	return true;
}

void tn_stock_end(stock *s) {
	while (s->chunks != NULL)
		stock_give_chunk(s, s->chunks);
	tn_set(&s->outside, 0, TN_RELAXED);
}

void tn_stock_reset(stock *s) {
	for (chunk *c = s->chunks; c != NULL; c = c->next_chunk) {
		if (stock_carved_of(c) == 0)
			continue;
		stock_end_slots(s, c);
		if (s->init == NULL)
			tn_wipe(c->base, stock_carved_bytes(s, c));
		memset(c->bits, 0, s->grid.chunk_bytes - s->grid.head_offset - sizeof(chunk));
		c->free = 0;
		tn_set(&c->carved, 0, TN_RELAXED);
		stock_settle_chunk(s, c);
	}
	s->carved = 0;
	tn_set(&s->outside, 0, TN_RELAXED);
}

/* ---- slots out ---- */

/* Takes free slots of a chunk, by address. */
static size_t stock_take_free(const stock *s, chunk *c, void **slots, size_t count) {
	const grid *g = stock_grid_of(s, c);
	char *base = c->base + grid_lead(g);
	size_t found = 0;
	count = tn_min(count, c->free);
	for (uint64_t *word = c->bits; found < count; word++) {
		uint64_t bits = *word;
		for (; bits != 0 && found < count; bits &= bits - 1)
			slots[found++] = base + ((size_t)__builtin_ctzll(bits) << g->grain_bits);
		*word = bits;
		base += (size_t)TN_WORD_BITS << g->grain_bits;
	}
	c->free -= found;
	return found;
}

/* Fresh slots of a chunk. A run ends where the next one begins on a cache line of its own, whether of
 * tiny slots or of states: so two threads that carve do not slow each other down. */
static size_t stock_carve_slots(stock *s, chunk *c, void **slots, size_t count) {
	size_t carved = stock_carved_of(c);
	count = tn_min(count, stock_grid_of(s, c)->count - carved);
	if (count > STOCK_RUN)
		count -= (carved + count) % STOCK_RUN;
	for (size_t i = 0; i < count; i++)
		slots[i] = stock_slot_at(s, c, carved + i);
	tn_set(&c->carved, carved + count, TN_RELAXED);
	s->carved += count;
	return count;
}

/* A fresh slot, initialised; STOCK_REFUSED if that failed. */
static size_t stock_carve_one(stock *s, chunk *c, void **slot) {
	if (!s->init(stock_slot_at(s, c, stock_carved_of(c)), s->ctx))
		return errno = ENOMEM, STOCK_REFUSED;
	return stock_carve_slots(s, c, slot, 1);
}

/* Takes free slots of one chunk, or fresh ones. The first may come from a new chunk. */
static size_t stock_take_some(stock *s, void **slots, size_t count, size_t fresh, bool first) {
	const size_t node = s->nodes > 1 ? tn_os_node() : 0;
	chunk *c = stock_find_chunk(s, node);
	if (c == NULL && first)
		c = stock_take_chunk(s);
	if (c == NULL && first)
		c = stock_find_far_chunk(s, node);
	if (c == NULL)
		return 0;
	size_t found = stock_take_free(s, c, slots, count);
	if (found == 0 && s->init == NULL)
		found = stock_carve_slots(s, c, slots, tn_min(count, fresh));
	else if (found == 0 && first)
		found = stock_carve_one(s, c, slots);
	stock_settle_chunk(s, c);
	if (found != STOCK_REFUSED)
		tn_set(&s->outside, stock_count_outside(s) + found, TN_RELAXED);
	return found;
}

size_t tn_stock_take(stock *s, void **slots, size_t count, size_t fresh) {
	size_t found = 0, some;
	do {
		size_t carved = s->carved;
		some = stock_take_some(s, slots + found, count - found, fresh, found == 0);
		if (some == STOCK_REFUSED)
			return STOCK_REFUSED;
		found += some;
		fresh -= tn_min(fresh, s->carved - carved);
	} while (some > 0 && found < count);
	return found;
}

/* ---- slots in ---- */

/* Writes the bits of slots that share a word; `twice` has those of slots that came twice. */
static inline void stock_set_bits(
	const stock *s, uint64_t *word, uint64_t bits, uint64_t twice, const char *operation) {
	twice |= *word & bits;
	if (TN_UNLIKELY(twice != 0)) {
		const chunk *c = stock_chunk_at(s, grid_base_of(&s->grid, word));
		const grid *g = stock_grid_of(s, c);
		size_t bit = (size_t)(word - c->bits) * TN_WORD_BITS + (size_t)__builtin_ctzll(twice);
		tn_panic(s->kind, s->name, "%s: %p is free twice", operation,
			(void *)(c->base + grid_lead(g) + (bit << g->grain_bits)));
	}
	*word |= bits;
}

/* A chunk without fresh slots stays so: at most one in use has some. */
size_t tn_stock_return_fresh(stock *s, void *const *slots, size_t count, const char *operation) {
	if (count == 0 || s->init != NULL)
		return 0;
	chunk *c = stock_chunk_of(s, slots[0], operation);
	size_t carved = stock_carved_of(c), back = 0;
	while (back < tn_min(count, carved) && slots[back] == stock_slot_at(s, c, carved - 1 - back))
		back++;
	if (back == 0 || carved == stock_grid_of(s, c)->count)
		return 0;
	tn_set(&c->carved, carved - back, TN_RELAXED);
	s->carved -= back;
	tn_set(&s->outside, stock_count_outside(s) - back, TN_RELAXED);
	stock_settle_chunk(s, c);
	return back;
}

/* The chunk that a slot comes back to; it leaves its rank until it is settled. */
static inline chunk *stock_change_chunk(
	stock *s, const void *slot, chunk **changed, const char *operation) {
	chunk *c = stock_chunk_of(s, slot, operation);
	if (c->changed)
		return c;
	stock_unlink_chunk(s, c);
	c->changed = true;
	c->next = *changed;
	return *changed = c;
}

/* Neighbours mostly share a word of bits. It is written when the next slot needs another word: a chain
 * of writes to one word would be slower. */
void tn_stock_give(stock *s, void *const *slots, size_t count, const char *operation) {
	const grid *g = &s->grid;
	chunk *c = NULL, *changed = NULL;
	uint64_t nothing = 0, *word = &nothing, bits = 0, twice = 0;
	uintptr_t first = 0; /* where slots begin in `c` */
	size_t end = 0;      /* bytes of its carved ones */
	for (size_t i = 0; i < count; i++) {
		if ((uintptr_t)slots[i] - first >= end) {
			c = stock_change_chunk(s, slots[i], &changed, operation);
			g = stock_grid_of(s, c);
			first = grid_base_of(g, slots[i]) + grid_lead(g);
			end = stock_carved_bytes(s, c);
			if (TN_UNLIKELY((uintptr_t)slots[i] - first >= end))
				tn_stock_refuse(s, slots[i], operation);
		}
		const size_t bit = ((uintptr_t)slots[i] - first) >> g->grain_bits;
		const uint64_t mask = (uint64_t)1 << (bit % TN_WORD_BITS);
		uint64_t *next = &c->bits[bit / TN_WORD_BITS];
		if (next != word) {
			stock_set_bits(s, word, bits, twice, operation);
			word = next;
			bits = 0;
		}
		twice |= bits & mask;
		bits |= mask;
		c->free++;
	}
	stock_set_bits(s, word, bits, twice, operation);
	for (chunk *next; changed != NULL; changed = next) {
		next = changed->next;
		changed->changed = false;
		stock_settle_chunk(s, changed);
	}
	tn_set(&s->outside, stock_count_outside(s) - count, TN_RELAXED);
}

/* ---- looking ---- */

void tn_stock_mark(stock *s, void *const *slots, size_t count, bool as_free, const char *operation) {
	for (size_t i = 0; i < count; i++) {
		chunk *c = tn_stock_chunk_of_slot(s, slots[i], operation);
		size_t bit = stock_bit_of(s, c, slots[i]);
		if (tn_test_bit(c->bits, bit) == as_free)
			tn_panic(s->kind, s->name, "%s: %p is free twice", operation, slots[i]);
		tn_flip_bit(c->bits, bit);
		c->free += as_free ? 1 : (size_t)-1;
	}
}

static bool stock_is_live(const stock *s, const chunk *c, const void *slot) {
	if (TN_MODE == TN_MODE_DEBUG)
		return tn_get(stock_state_at(s, slot), TN_RELAXED) != SLOT_FREE;
	return !tn_test_bit(c->bits, stock_bit_of(s, c, slot));
}

void tn_stock_each(stock *s, void (*visit)(void *slot, void *ctx), void *ctx) {
	for (chunk *c = s->chunks; c != NULL; c = c->next_chunk)
		for (size_t i = 0; i < stock_carved_of(c); i++)
			if (stock_is_live(s, c, stock_slot_at(s, c, i)))
				visit(stock_slot_at(s, c, i), ctx);
}

void tn_stock_require(const stock *s, bool holds, const char *what) {
	if (!holds)
		tn_panic(s->kind, s->name, "verify: %s", what);
}

static size_t stock_count_bits(const stock *s, const chunk *c) {
	size_t count = 0;
	for (size_t i = 0; i < grid_bit_words(&s->grid, s->grid.count); i++)
		count += (size_t)__builtin_popcountll(c->bits[i]);
	return count;
}

void tn_stock_verify(const stock *s) {
	size_t carved = 0, free = 0, chunks = 0, slots = 0, empty = 0, ranked = 0;
	for (const chunk *c = s->chunks; c != NULL; c = c->next_chunk) {
		const size_t here = stock_carved_of(c), room = stock_grid_of(s, c)->count;
		tn_stock_require(s, tn_pages_owner((uintptr_t)c->base) == s, "I4: a chunk has another owner");
		tn_stock_require(s, here <= room, "I1: a chunk has more slots than room");
		tn_stock_require(
			s, stock_count_bits(s, c) == c->free, "I1: a chunk's free slots do not add up");
		tn_stock_require(s, (stock_count_left(s, c) > 0) == (c->link != NULL),
			"I3: a chunk is not where it belongs");
		carved += here;
		slots += room;
		free += c->free;
		chunks++;
		empty += c->empty;
	}
	for (size_t i = 0; i < TN_OS_NODES * (STOCK_RANKS + 1); i++) {
		const size_t node = i / (STOCK_RANKS + 1), rank = i % (STOCK_RANKS + 1);
		for (const chunk *c = s->at_node[node].ranks[rank]; c != NULL; c = c->next, ranked++)
			tn_stock_require(s,
				c->node == node && stock_rank_of(s, c) == rank && c->empty == (rank == STOCK_EMPTY),
				"I3: a chunk is in the list of another rank or node");
	}
	tn_stock_require(s, ranked == s->ranked_count, "I3: the chunks in ranks do not add up");
	tn_stock_require(s, chunks == s->chunk_count && empty == s->empty_count && slots == s->slot_count,
		"I4: the chunks do not add up");
	tn_stock_require(s, carved == s->carved && carved - free == stock_count_outside(s),
		"I2: the slots do not add up");
	tn_stock_require(s, s->taken_bytes <= s->limit_bytes, "I4: more was taken than the limit");
}

/* ---- layout ---- */

/* Debug: slots at the end of pages of their own, where memory can be made to fault and no limit bounds
 * how much there is. */
static void stock_choose_guarded(stock *s, size_t align) {
	if (TN_MODE != TN_MODE_DEBUG || !tn_chunk_is_paged(&s->source) || s->limit_bytes != TN_NONE ||
		align > TN_OS_PAGE)
		return;
	grid *g = &s->guarded;
	*g = s->grid;
	g->stride = tn_round_up(g->lead + g->slot_size + TN_FENCE_BYTES, TN_OS_PAGE);
	g->lead = (g->stride - TN_FENCE_BYTES - g->slot_size) & ~(align - 1);
	g->count = tn_min(g->count, g->head_offset / g->stride);
	g->grain_bits = (unsigned)__builtin_ctzll(g->stride);
}

bool tn_stock_lay_out(stock *s, size_t align, size_t chunk_bytes) {
	const size_t fence = TN_MODE == TN_MODE_DEBUG ? TN_FENCE_BYTES : 0;
	const size_t states = TN_MODE == TN_MODE_RELEASE ? 0 : TN_WORD_BITS;
	const grid_tail tail = {.head = sizeof(chunk),
		.per_word = sizeof(uint64_t) + states,
		.per_slot = TN_MODE == TN_MODE_DEBUG ? sizeof(slot_record) : 0,
		.align = sizeof(void *)};
	grid *g = &s->grid;
	g->lead = tn_round_up(fence, align);
	g->stride = grid_choose_stride(tn_round_up(g->lead + g->slot_size + fence, align), align);
	for (g->chunk_bytes = chunk_bytes; g->chunk_bytes <= GRID_CHUNK_BYTES_MAX; g->chunk_bytes *= 2) {
		if (!grid_lay_out(g, &tail))
			continue;
		s->states_offset = g->chunk_bytes - grid_bit_words(g, g->count) * states;
		s->records_offset = s->states_offset - g->count * tail.per_slot;
		stock_choose_guarded(s, align);
		return true;
	}
	return false;
}
