/* c/src/shared/depot.h: threads exchange full magazines for empty ones. A slot has one owner at a
 * time; none is lost or handed out twice; the next owner reads the bytes of the last one; the
 * depot's figures add up to its content. */
#include "depot_scenario.h"

/* Threads give their full magazine and take another one. */
struct full_for_empty : depot_scenario {
	enum { ROUNDS = 2 };

	full_for_empty(const char *name, unsigned threads, size_t most_slots, size_t shard_count = 0)
		: depot_scenario(name, threads, most_slots, shard_count) {
	}

	void thread(unsigned number) {
		magazine *full = fill(number, CAPACITY), *spare = number == 0 ? &magazines[3] : NULL;
		if (number == 0)
			take(number, &spare);
		for (int i = 0; i < ROUNDS; i++) {
			if (full != NULL && give(number, full, &spare))
				full = NULL;
			if (full == NULL)
				full = take(number, &spare);
		}
	}
};

/* Two threads leave a magazine each and one of them takes another one; the third ends windows and
 * takes the magazines that were unused for two windows. */
struct surplus : full_for_empty {
	surplus() : full_for_empty("surplus", 3, SIZE_MAX) {
	}

	void thread(unsigned number) {
		magazine *spare = NULL;
		if (number < 2)
			give(number, fill(number, CAPACITY), &spare);
		if (number == 1)
			take(number, &spare);
		for (int i = 0; number == 2 && i < 5; i++) {
			tn_depots_end_window(&all, &seats[number], i == 3 ? SIZE_MAX : 0);
			magazine *m = tn_depots_take_surplus(&all, &seats[number], true);
			if (m != NULL)
				receive(number, m);
		}
	}
};

int main(int argc, char **argv) {
	full_for_empty two("full for empty, 2 threads", 2, SIZE_MAX);
	full_for_empty three("full for empty, 3 threads", 3, SIZE_MAX);
	full_for_empty bounded("full for empty, room for one", 3, depot_scenario::CAPACITY);
	surplus left;
	engine::scenario *all[] = {&two, &three, &bounded, &left};
	return engine::explore(argc, argv, all, sizeof all / sizeof *all);
}
