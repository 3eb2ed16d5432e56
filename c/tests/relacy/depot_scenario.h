/* Helpers of the tests of c/src/shared/depot.h: slots that know where they should be, and magazines
 * of them that threads hand over. */
#ifndef TENURE_RELACY_DEPOT_SCENARIO_H
#define TENURE_RELACY_DEPOT_SCENARIO_H

#include "relacy_atomics.h"

#define TN_DEPOT_WORDS 4
#include "shared/depot.h"

struct depot_scenario : engine::scenario {
	enum { CAPACITY = 3, MAGAZINES = 6, SLOTS = 3 * CAPACITY, SLOT_WEIGHT = 10, IN_DEPOT = -1 };

	depots all;
	_Alignas(TN_OS_PAGE) char shards[TN_OS_PAGE];
	depot_seat seats[engine::THREADS];
	magazine magazines[MAGAZINES];
	guarded<size_t> slots[SLOTS];
	size_t stamps[SLOTS]; /* their content */
	int owners[SLOTS];    /* a thread, or IN_DEPOT */
	int holders[MAGAZINES];
	size_t most_slots, shard_count;

	depot_scenario(const char *name, unsigned threads, size_t most_slots, size_t shard_count)
		: scenario(name, threads), most_slots(most_slots), shard_count(shard_count) {
	}

	/* Magazine i is thread i's, with slots or for later; the other magazines are empty in the common
	 * depot. */
	void before() {
		memset((void *)&all, 0, sizeof all);
		memset((void *)seats, 0, sizeof seats);
		memset((void *)magazines, 0, sizeof magazines);
		all.magazine_slots = CAPACITY;
		all.nodes = 1;
		all.most_slots = most_slots;
		all.most_weight = most_slots == SIZE_MAX ? SIZE_MAX : most_slots * SLOT_WEIGHT;
		all.shard_slots = SIZE_MAX;
		all.pages[0] = shards;
		memset(shards, 0, sizeof shards);
		all.shard_count = shard_count;
		for (size_t i = 0; i < SLOTS; i++) {
			owners[i] = (int)(i / CAPACITY);
			slots[i].plain = stamps[i] = i;
		}
		for (int i = 0; i < MAGAZINES; i++)
			holders[i] = i < 3 ? i : IN_DEPOT;
		for (int i = 4; i < MAGAZINES; i++)
			depot_push(&all.common.empty, &magazines[i]);
		holders[3] = 0;
		magazine_list *empty = &all.common.empty;
		empty->low.plain = empty->low_before.plain = empty->count.plain;
	}

	size_t number_of(void *slot) {
		size_t number = (size_t)((guarded<size_t> *)slot - slots);
		REQUIRE(number < SLOTS);
		return number;
	}

	int &holder_of(magazine *m) {
		REQUIRE(m >= magazines && m < magazines + MAGAZINES);
		return holders[m - magazines];
	}

	/* Thread `number` has taken m: its slots were in the depot, as their last owner left them. */
	void receive(unsigned number, magazine *m) {
		REQUIRE(holder_of(m) == IN_DEPOT);
		holder_of(m) = (int)number;
		REQUIRE(TN_AT(m->count) <= CAPACITY && TN_AT(m->weight) == SLOT_WEIGHT * TN_AT(m->count));
		for (size_t i = 0; i < TN_AT(m->count); i++) {
			size_t slot = number_of(depot_first_slot(m)[i]);
			REQUIRE(owners[slot] == IN_DEPOT);
			owners[slot] = (int)number;
			REQUIRE(TN_AT(slots[slot]) == stamps[slot]);
		}
	}

	/* Thread `number` is about to give m. */
	void part_with(unsigned number, magazine *m) {
		REQUIRE(holder_of(m) == (int)number);
		holder_of(m) = IN_DEPOT;
		for (size_t i = 0; i < TN_AT(m->count); i++) {
			size_t slot = number_of(depot_first_slot(m)[i]);
			REQUIRE(owners[slot] == (int)number);
			owners[slot] = IN_DEPOT;
			TN_AT(slots[slot]) = stamps[slot] += SLOTS;
		}
	}

	/* Puts `count` of the thread's first slots into its first magazine. */
	magazine *fill(unsigned number, size_t count) {
		magazine *m = &magazines[number];
		TN_AT(m->count) = count;
		TN_AT(m->weight) = count * SLOT_WEIGHT;
		for (size_t i = 0; i < count; i++)
			depot_first_slot(m)[i] = &slots[number * CAPACITY + i];
		return m;
	}

	/* Takes a full magazine for an empty one, if there are any. */
	magazine *take(unsigned number, magazine **spare, bool all_of_it = false) {
		if (*spare != NULL)
			part_with(number, *spare);
		magazine *full = tn_depots_take_full(&all, &seats[number], *spare, all_of_it);
		if (full != NULL)
			receive(number, full);
		else if (*spare != NULL)
			holder_of(*spare) = (int)number;
		if (full != NULL)
			*spare = NULL;
		return full;
	}

	/* Gives a full magazine, of node `home`, for an empty one; whether there was room. */
	bool give(unsigned number, magazine *full, magazine **spare, size_t home = 0) {
		magazine *empty = NULL;
		part_with(number, full);
		bool room = tn_depots_give_full(&all, &seats[number], home, full, &empty);
		if (!room)
			receive(number, full);
		if (empty != NULL)
			receive(number, *spare = empty);
		return room;
	}

	size_t count_in_depots() const {
		size_t count = 0;
		for (int owner : owners)
			count += owner == IN_DEPOT;
		return count;
	}

	/* Takes everything out of a depot whose figures are right; returns the slots. */
	size_t empty_out(depot *d) {
		size_t left = tn_get(&d->slots, TN_RELAXED), slots = left;
		REQUIRE(tn_get(&d->weight, TN_RELAXED) == slots * SLOT_WEIGHT);
		for (magazine *m; (m = tn_depot_take_any(&all, d)) != NULL;) {
			bool empty = TN_AT(m->count) == 0;
			receive(0, m);
			left -= TN_AT(m->count);
			REQUIRE(!empty || left == 0);
		}
		REQUIRE(left == 0 && tn_get(&d->slots, TN_RELAXED) == 0 && tn_get(&d->weight, TN_RELAXED) == 0);
		REQUIRE(TN_AT(d->full.count) == 0 && TN_AT(d->empty.count) == 0);
		return slots;
	}

	/* All threads are done: the figures equal the content, and everything in the depot comes out of
	 * it. */
	void after() {
		size_t count = count_in_depots();
		size_t bounded = most_slots == SIZE_MAX ? 0 : count;
		REQUIRE(tn_get(&all.slots, TN_RELAXED) == bounded &&
				tn_get(&all.weight, TN_RELAXED) == bounded * SLOT_WEIGHT);
		for (size_t i = 0; i < tn_depots_count(&all); i++)
			count -= empty_out(depot_at(&all, i));
		REQUIRE(
			count == 0 && tn_get(&all.slots, TN_RELAXED) == 0 && tn_get(&all.weight, TN_RELAXED) == 0);
		for (int holder : holders)
			REQUIRE(holder != IN_DEPOT);
	}
};

#endif
