/* Helpers of the tests of c/src/shared/depot.h: slots that know where they should be, and magazines
 * of them that threads hand over. */
#ifndef TENURE_RELACY_DEPOT_SCENARIO_H
#define TENURE_RELACY_DEPOT_SCENARIO_H

#include "relacy_atomics.h"

#define TN_DEPOT_WORDS 4
#include "shared/depot.h"

struct depot_scenario : engine::scenario {
	enum { CAPACITY = 3, MAGAZINES = 6, SLOTS = 3 * CAPACITY, SLOT_WEIGHT = 10, IN_DEPOT = -1 };

	depot d;
	magazine magazines[MAGAZINES];
	guarded<size_t> slots[SLOTS];
	size_t stamps[SLOTS]; /* their content */
	int owners[SLOTS];    /* a thread, or IN_DEPOT */
	int holders[MAGAZINES];
	size_t most_slots;

	depot_scenario(const char *name, unsigned threads, size_t most_slots)
		: scenario(name, threads), most_slots(most_slots) {
	}

	/* Magazine i is thread i's, with slots or for later; the other magazines are empty in the depot. */
	void before() {
		memset((void *)&d, 0, sizeof d);
		memset((void *)magazines, 0, sizeof magazines);
		d.magazine_slots = CAPACITY;
		d.most_slots = most_slots;
		d.most_weight = most_slots == SIZE_MAX ? SIZE_MAX : most_slots * SLOT_WEIGHT;
		for (size_t i = 0; i < SLOTS; i++) {
			owners[i] = (int)(i / CAPACITY);
			slots[i].plain = stamps[i] = i;
		}
		for (int i = 0; i < MAGAZINES; i++)
			holders[i] = i < 3 ? i : IN_DEPOT;
		for (int i = 4; i < MAGAZINES; i++)
			depot_push(&d.empty, &magazines[i]);
		holders[3] = 0;
		d.empty.low.plain = d.empty.low_before.plain = d.empty.count.plain;
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

	/* All threads are done: the figures equal the content, and everything in the depot comes out of
	 * it. */
	void after() {
		size_t count = 0;
		for (size_t i = 0; i < SLOTS; i++)
			count += owners[i] == IN_DEPOT;
		REQUIRE(TN_AT(d.slots) == count && TN_AT(d.weight) == count * SLOT_WEIGHT);
		for (magazine *m; (m = tn_depot_take_any(&d)) != NULL;) {
			bool empty = TN_AT(m->count) == 0;
			receive(0, m);
			count -= TN_AT(m->count);
			REQUIRE(!empty || count == 0);
		}
		REQUIRE(count == 0 && TN_AT(d.slots) == 0 && TN_AT(d.weight) == 0);
		REQUIRE(TN_AT(d.full.count) == 0 && TN_AT(d.empty.count) == 0);
		for (int holder : holders)
			REQUIRE(holder != IN_DEPOT);
	}
};

#endif
