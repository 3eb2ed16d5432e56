/* c/src/shared/depot.h: threads give magazines with any number of slots, which the depot gathers in
 * its partial one, while others take full ones, the partial one and empty ones. The conditions are
 * those of exchange.cpp. */
#include "depot_scenario.h"

struct gather : depot_scenario {
	gather(const char *name, unsigned threads, size_t most_slots, bool in_spite, size_t shard_count = 0)
		: depot_scenario(name, threads, most_slots, shard_count), in_spite(in_spite) {
	}

	bool in_spite;

	void flush(unsigned number, magazine *m) {
		part_with(number, m);
		if (!tn_depots_give_some(&all, 0, m, in_spite))
			receive(number, m);
	}

	/* Gives one to three slots, takes a magazine, and gives that again. */
	void thread(unsigned number) {
		flush(number, fill(number, 1 + engine::choose(CAPACITY)));
		magazine *empty = tn_depots_take_empty(&all, &seats[number]);
		if (empty != NULL)
			receive(number, empty);
		if (empty != NULL)
			part_with(number, empty);
		magazine *m = tn_depots_take_full(&all, &seats[number], empty, false);
		if (m == NULL && empty != NULL)
			holder_of(empty) = (int)number;
		if (m == NULL)
			return;
		receive(number, m);
		flush(number, m);
	}
};

/* One thread gives, one takes everything, and one looks for magazines that must leave. */
struct drain : gather {
	drain() : gather("drain", 3, SIZE_MAX, false) {
	}

	void thread(unsigned number) {
		if (number == 0) {
			flush(number, fill(number, 2));
			magazine *second = &magazines[3];
			TN_AT(second->count) = 1;
			TN_AT(second->weight) = SLOT_WEIGHT;
			*depot_first_slot(second) = &slots[2];
			flush(number, second);
			return;
		}
		flush(number, fill(number, number));
		for (int i = 0; i < 3; i++) {
			tn_depots_end_window(&all, &seats[number], number == 1 ? SIZE_MAX : 0);
			magazine *m = number == 1 ? tn_depot_take_any(&all, &all.common)
			                          : tn_depots_take_surplus(&all, &seats[number], true);
			if (m != NULL)
				receive(number, m);
		}
	}
};

int main(int argc, char **argv) {
	gather two("gather, 2 threads", 2, SIZE_MAX, false), three("gather, 3 threads", 3, SIZE_MAX, false);
	gather bounded("gather, little room", 3, 4, false);
	gather in_spite("gather, in spite of the bounds", 3, 1, true);
	drain all_of_it;
	engine::scenario *all[] = {&two, &three, &bounded, &in_spite, &all_of_it};
	return engine::explore(argc, argv, all, sizeof all / sizeof *all);
}
