/* The stock of a slab, or of a shared slab: its chunks, with a bit for each slot that is free there.
 * Magazines are filled from it, and emptied into it.
 *
 *   | slot 0 | slot 1 | ... carved up to here ...| | head | bits | debug: records | states |
 *
 * A chunk's head is found from any pointer into the chunk (grid.h). The page layer's side table says
 * first that the chunk is one of this stock's, so memory behind a foreign pointer is never read.
 *
 * A chunk belongs to a memory node (NUMA), and each node has its own lists of chunks: a thread takes
 * slots of its node's chunks, and of others only when its node has no memory. A slab, which one thread
 * uses at a time, tells no nodes apart.
 *
 * One thread at a time; a shared slab's lock covers its stock. */
#ifndef TENURE_STOCK_H
#define TENURE_STOCK_H

#include "../base/checkers.h"
#include "../base/modes.h"
#include "grid.h"

enum {
	STOCK_RANKS = 4, /* of chunks with live slots, from the fullest to the emptiest */
	STOCK_EMPTY = STOCK_RANKS,
	/* Fresh slots are carved by multiples of so many, which have a cache line of states. */
	STOCK_RUN = 64,
};
#define STOCK_REFUSED SIZE_MAX

/* Hardened and debug: what a slot is at this moment. There is a state for each grain. */
enum slot_state {
	SLOT_FREE,
	SLOT_LIVE,
	SLOT_IDLE, /* live, but in a pool: its bytes must not be touched */
};
typedef TN_ATOMIC(uint8_t) state_byte;

/* Debug: a slot's history, out of reach of writes past its end. */
typedef struct slot_record {
	const void *alloc_site;
	const void *free_site;
	struct slot_record *younger; /* the next in the quarantine */
} slot_record;

typedef struct chunk {
	char *base;
	const struct grid *grid;
	size_t quarantined;                     /* debug: slots that are neither free nor live */
	struct chunk *next_chunk, **link_chunk; /* in the list of all chunks */
	struct chunk *next, **link;             /* in the list of its rank, or of changed ones */
	TN_ATOMIC(size_t) carved;
	/* Touched with each slot that comes back, so next to the bits. */
	size_t free;  /* bits that are set */
	bool empty;   /* is in the list of empty chunks: all carved slots are free */
	bool changed; /* slots came back, and it is in no rank until it is settled */
	uint8_t node; /* below `nodes` of the stock */
	uint64_t bits[];
} chunk;

/* The chunks of a memory node. */
typedef struct stock_node {
	chunk *ranks[STOCK_RANKS + 1];
	size_t empty_count;
	TN_ATOMIC(size_t) chunk_count; /* read by anyone */
} stock_node;

/* tn_stock_lay_out fills in the first fields; those up to `name`, and `nodes`, are the owner's to
 * set. */
typedef struct stock {
	struct grid grid;
	size_t states_offset, records_offset;
	tn_chunk_source source;
	size_t taken_bytes, limit_bytes; /* the owner's other memory is counted here too */
	bool (*init)(void *slot, void *ctx);
	void (*fini)(void *slot, void *ctx);
	void *ctx;
	const char *kind; /* its owner's name in panics */
	char name[TN_NAME_BYTES + 1];

	stock_node at_node[TN_OS_NODES];
	size_t nodes; /* that it tells apart; 0: one */
	chunk *chunks;
	size_t chunk_count, empty_count;
	size_t ranked_count;       /* chunks in the list of a rank, empty ones included */
	size_t slot_count;         /* room in all chunks */
	size_t carved;             /* slots */
	TN_ATOMIC(size_t) outside; /* carved slots that are not free in their chunk */
	struct grid guarded;       /* debug: slots with pages of their own; count 0 where there are none */
} stock;

/* Decides how large chunks are and how they are divided. grid.slot_size and the source are set.
 *
 * fails    false when no chunk can hold a slot */
bool tn_stock_lay_out(stock *s, size_t align, size_t chunk_bytes);

/* Takes up to `count` slots: free ones by address, of the fullest chunk, then of the next; after those
 * up to `fresh` fresh ones. With `init`: as many as are free, or one fresh one.
 *
 * returns  how many; 0 when there is no memory, STOCK_REFUSED when only init failed; both set errno */
size_t tn_stock_take(stock *s, void **slots, size_t count, size_t fresh);

/* Gives slots back. Panics at a pointer into no chunk of this stock, and at a slot that is free there
 * already. */
void tn_stock_give(stock *s, void *const *slots, size_t count, const char *operation);

/* The slots that were carved last are fresh again if `slots` begins with them, in reverse order. So
 * slots that were in a magazine all the time, and never handed out, are not mixed with free ones.
 *
 * returns  how many that are */
size_t tn_stock_return_fresh(stock *s, void *const *slots, size_t count, const char *operation);

/* Takes chunks until there is room for `count` slots that are not outside, or changes nothing.
 *
 * fails    false with ENOMEM */
bool tn_stock_reserve(stock *s, size_t count);

/* Gives empty chunks back to their source until each node has at most `keep` of them. */
void tn_stock_trim(stock *s, size_t keep);

/* Makes every slot one to carve again. Gives no chunk back. */
void tn_stock_reset(stock *s);

/* Gives all chunks back. */
void tn_stock_end(stock *s);

/* Sets the bits of slots in magazines, as if they were free in their chunks, or clears them again.
 * Panics at a pointer that is no slot, and at a slot that is there twice. */
void tn_stock_mark(stock *s, void *const *slots, size_t count, bool as_free, const char *operation);

/* Calls `visit` for each carved slot that is live, if the slots in magazines are marked. */
void tn_stock_each(stock *s, void (*visit)(void *slot, void *ctx), void *ctx);

/* Panics at a broken invariant. */
void tn_stock_verify(const stock *s);
void tn_stock_require(const stock *s, bool holds, const char *what);

/* Panics about a pointer that is in no slot of this stock. */
TN_COLD _Noreturn void tn_stock_refuse(const stock *s, const void *p, const char *operation);

/* The chunk of the slot that begins at p; panics at any other pointer. */
chunk *tn_stock_chunk_of_slot(const stock *s, const void *p, const char *operation);

/* ---- from a pointer to its slot ---- */

static inline chunk *stock_chunk_at(const stock *s, uintptr_t base) {
	return grid_head_at(&s->grid, base);
}

/* The chunk that p points into; panics when there is none. */
static inline chunk *stock_chunk_of(const stock *s, const void *p, const char *operation) {
	uintptr_t base = grid_base_of(&s->grid, p);
	if (TN_UNLIKELY(tn_pages_owner(base) != s))
		tn_stock_refuse(s, p, operation);
	return stock_chunk_at(s, base);
}

/* All chunks have the same grid, except in debug. */
static inline const grid *stock_grid_of(const stock *s, const chunk *c) {
	return TN_MODE == TN_MODE_DEBUG ? c->grid : &s->grid;
}

static inline size_t stock_carved_of(const chunk *c) {
	return tn_get(&c->carved, TN_RELAXED);
}

static inline size_t stock_carved_bytes(const stock *s, const chunk *c) {
	return stock_carved_of(c) * stock_grid_of(s, c)->stride;
}

static inline char *stock_slot_at(const stock *s, const chunk *c, size_t index) {
	return grid_slot_at(stock_grid_of(s, c), c->base, index);
}

static inline size_t stock_bit_of(const stock *s, const chunk *c, const void *slot) {
	return grid_bit_of(stock_grid_of(s, c), c->base, slot);
}

/* Hardened and debug: the state of a slot that is one, because it was looked up before. */
TN_INLINE state_byte *stock_state_at(const stock *s, const void *slot) {
	uintptr_t base = grid_base_of(&s->grid, slot);
	const grid *g = TN_MODE == TN_MODE_DEBUG ? stock_chunk_at(s, base)->grid : &s->grid;
	return (state_byte *)(base + s->states_offset) + grid_bit_of(g, (const char *)base, slot);
}

/* Hardened and debug: the state of the slot at p. Panics at a pointer between grains; the state of any
 * other pointer that is no slot is SLOT_FREE. */
TN_INLINE state_byte *stock_state_of(const stock *s, const void *p, const char *operation) {
	uintptr_t base = grid_base_of(&s->grid, p);
	if (TN_UNLIKELY(tn_pages_owner(base) != s))
		tn_stock_refuse(s, p, operation);
	const grid *g = TN_MODE == TN_MODE_DEBUG ? stock_chunk_at(s, base)->grid : &s->grid;
	if (TN_UNLIKELY(!grid_has_grain(g, (uintptr_t)p - base - grid_lead(g), g->head_offset)))
		tn_stock_chunk_of_slot(s, p, operation);
	return stock_state_at(s, p);
}

/* Debug: the record of a slot. */
static inline slot_record *stock_record_of(const stock *s, const chunk *c, const void *slot) {
	return (slot_record *)(void *)(c->base + s->records_offset) + grid_index_of(c->grid, c->base, slot);
}

/* ---- figures ---- */

static inline size_t stock_count_outside(const stock *s) {
	return tn_get(&s->outside, TN_RELAXED);
}

static inline size_t stock_count_live_of(const chunk *c) {
	return stock_carved_of(c) - c->free - c->quarantined;
}

#endif
