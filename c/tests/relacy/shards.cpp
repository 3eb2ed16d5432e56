/* c/src/shared/depot.h with shards: a thread finds its own magazines again, others find them when they
 * have none, an empty one goes where the full one was, shards without threads decay, anyone trims, and
 * the bounds hold for all depots together. The conditions are those of exchange.cpp. */
#include "depot_scenario.h"

/* Threads with a shard each give a full magazine and take it again: it is the same one. */
struct own : depot_scenario {
	own() : depot_scenario("own again", 3, SIZE_MAX, 3) {
	}

	void thread(unsigned number) {
		magazine *full = fill(number, CAPACITY), *spare = NULL;
		for (int i = 0; i < 2; i++) {
			give(number, full, &spare);
			REQUIRE(take(number, &spare) == full);
		}
	}

	void after() {
		for (size_t i = 1; i <= shard_count; i++)
			REQUIRE(tn_get(&depot_at(&all, i)->foreign, TN_RELAXED) == 0);
		depot_scenario::after();
	}
};

/* Threads with more to take than to give: what others gave, and what one flushed. */
struct hand_over : depot_scenario {
	hand_over(const char *name, size_t shard_count) : depot_scenario(name, 3, SIZE_MAX, shard_count) {
	}

	void thread(unsigned number) {
		magazine *full = fill(number, CAPACITY), *spare = NULL;
		if (number == 2) {
			part_with(number, full);
			tn_depots_give_some(&all, 0, full, false);
		} else {
			give(number, full, &spare);
		}
		for (int i = 0; i < 2; i++) {
			magazine *taken = take(number, &spare);
			if (taken != NULL && engine::choose(2) == 0)
				give(number, taken, &spare);
		}
	}

	/* Wherever slots are, a thread that asks for all of it finds them. */
	void after() {
		magazine *spare = NULL;
		while (count_in_depots() > 0)
			REQUIRE(take(0, &spare, true) != NULL);
		depot_scenario::after();
	}
};

/* A taker leaves its empty magazine in the giver's shard, where the giver finds it. */
struct back : depot_scenario {
	magazine *left;

	back() : depot_scenario("empty one back", 2, SIZE_MAX, 2) {
	}

	void before() {
		depot_scenario::before();
		left = NULL;
		seats[0].own = 1;
		seats[1].own = 2;
	}

	void thread(unsigned number) {
		magazine *spare = number == 0 ? NULL : &magazines[3];
		if (number == 0)
			give(number, fill(number, CAPACITY), &spare);
		else
			holder_of(spare) = 1;
		if (number == 1 && take(number, &spare) != NULL)
			left = &magazines[3];
	}

	void after() {
		holder_of(&magazines[3]) = left != NULL ? IN_DEPOT : 0;
		if (left != NULL) {
			REQUIRE(TN_AT(depot_at(&all, 1)->empty.newest) == left);
			REQUIRE(tn_get(&depot_at(&all, 1)->foreign, TN_RELAXED) == 1);
			REQUIRE(tn_depots_take_empty(&all, &seats[0]) == left);
			holder_of(left) = 0;
		}
		depot_scenario::after();
	}
};

/* A thread that took and gave finds its magazine again, though others look for one meanwhile. When it
 * has stayed away for two windows, they get it. */
struct kept : depot_scenario {
	kept() : depot_scenario("kept for its own", 3, SIZE_MAX, 3) {
	}

	void before() {
		depot_scenario::before();
		for (unsigned i = 0; i < 3; i++)
			seats[i].own = (uint8_t)(i + 1);
		magazine *spare = NULL;
		magazine *full = fill(0, CAPACITY);
		give(0, full, &spare);
		REQUIRE(take(0, &spare) == full);
		give(0, full, &spare);
	}

	void thread(unsigned number) {
		magazine *spare = NULL;
		if (number > 0) {
			REQUIRE(take(number, &spare) == NULL);
			return;
		}
		magazine *full = take(number, &spare);
		REQUIRE(full != NULL);
		give(number, full, &spare);
	}

	void after() {
		magazine *spare = NULL;
		for (int window = 0; window < 2; window++) {
			tn_depots_end_window(&all, &seats[0], 0);
			REQUIRE(depot_take_surplus(&all, depot_at(&all, 1)) == NULL);
			REQUIRE((take(1, &spare) == NULL) == (window == 0));
		}
		depot_scenario::after();
	}
};

/* Two threads exchange while the third takes everything that any depot holds. */
struct trim : depot_scenario {
	trim() : depot_scenario("trim by another", 3, SIZE_MAX, 2) {
	}

	void thread(unsigned number) {
		magazine *spare = NULL;
		if (number < 2) {
			give(number, fill(number, CAPACITY), &spare);
			take(number, &spare);
			return;
		}
		for (size_t i = 0; i < tn_depots_count(&all); i++)
			for (size_t left = tn_depot_count(depot_at(&all, i)); left > 0; left--) {
				magazine *m = tn_depot_take_any(&all, depot_at(&all, i));
				if (m != NULL)
					receive(number, m);
			}
	}
};

/* One thread gives a magazine and stays away; another one ends windows. Within two windows and a turn
 * for each depot, what lies there unused has left. */
struct decay : depot_scenario {
	decay() : depot_scenario("decay by others", 2, SIZE_MAX, 2) {
	}

	void tend(unsigned number) {
		tn_depots_end_window(&all, &seats[number], 0);
		magazine *m = tn_depots_take_surplus(&all, &seats[number], true);
		if (m != NULL)
			receive(number, m);
	}

	void thread(unsigned number) {
		magazine *spare = NULL;
		give(number, fill(number, CAPACITY), &spare);
		for (int i = 0; number == 1 && i < 3; i++)
			tend(number);
	}

	void after() {
		const int windows = 2, magazines_left = 4;
		for (size_t i = 0; i < windows * tn_depots_count(&all) + magazines_left; i++)
			tend(1);
		for (size_t i = 0; i < tn_depots_count(&all); i++)
			REQUIRE(tn_depot_count(depot_at(&all, i)) == 0);
		depot_scenario::after();
	}
};

/* Three threads give to three shards, and there is room for one of them. */
struct bound : depot_scenario {
	unsigned taken;
	bool by_weight;

	bound(const char *name, bool by_weight)
		: depot_scenario(name, 3, CAPACITY, 3), by_weight(by_weight) {
	}

	void before() {
		depot_scenario::before();
		taken = 0;
		all.most_slots = by_weight ? 3 * CAPACITY : CAPACITY;
		all.most_weight = (by_weight ? CAPACITY : 3 * CAPACITY) * SLOT_WEIGHT;
	}

	void thread(unsigned number) {
		magazine *spare = NULL;
		taken += give(number, fill(number, CAPACITY), &spare);
	}

	void after() {
		REQUIRE(taken == 1);
		depot_scenario::after();
	}
};

/* Two threads exchange while the third makes the shards, in a page that another use left dirty. */
struct made_meanwhile : depot_scenario {
	made_meanwhile() : depot_scenario("made meanwhile", 3, SIZE_MAX, 0) {
	}

	void before() {
		depot_scenario::before();
		memset(shards, 0xff, sizeof shards);
	}

	void thread(unsigned number) {
		if (number == 2) {
			tn_depots_make_shards(&all, 2);
			return;
		}
		magazine *spare = NULL;
		give(number, fill(number, CAPACITY), &spare);
		magazine *taken = take(number, &spare);
		REQUIRE(taken != NULL);
		give(number, taken, &spare);
	}
};

/* Two nodes with a common depot and a shard each. Thread 1 is on node 1, the others on node 0. Slots of
 * thread 0 belong to node 1, those of the others to node 0. A thread finds slots of its node only. */
struct nodes : depot_scenario {
	nodes() : depot_scenario("two nodes", 3, SIZE_MAX, 3) {
	}

	void before() {
		depot_scenario::before();
		all.nodes = 2;
		seats[1].node = 1;
	}

	size_t home_of(magazine *m) {
		return number_of(*depot_first_slot(m)) < CAPACITY ? 1 : 0;
	}

	void flush(unsigned number, magazine *m) {
		size_t home = home_of(m);
		part_with(number, m);
		tn_depots_give_some(&all, home, m, false);
	}

	magazine *take_near(unsigned number, magazine **spare) {
		magazine *m = take(number, spare);
		for (size_t i = 0; m != NULL && i < TN_AT(m->count); i++)
			REQUIRE((number_of(depot_first_slot(m)[i]) < CAPACITY) == (seats[number].node == 1));
		return m;
	}

	void thread(unsigned number) {
		magazine *spare = NULL, *full = fill(number, CAPACITY);
		if (number == 0) {
			flush(number, full);
			return;
		}
		give(number, full, &spare, home_of(full));
		magazine *taken = take_near(number, &spare);
		if (number == 2)
			REQUIRE(taken != NULL);
		if (taken != NULL)
			flush(number, taken);
	}

	/* A thread finds the slots of its node; when it goes to another node, those of that one. When it
	 * asks for all of it, it finds the rest. */
	void after() {
		magazine *spare = NULL;
		REQUIRE(take_near(1, &spare) != NULL && take_near(1, &spare) == NULL);
		seats[1].node = 0;
		REQUIRE(take_near(1, &spare) != NULL && depots_are_near(&all, seats[1].own, 0));
		seats[1].node = 1;
		while (count_in_depots() > 0)
			REQUIRE(take(1, &spare, true) != NULL);
		depot_scenario::after();
	}
};

int main(int argc, char **argv) {
	own again;
	hand_over two("hand over, 2 shards", 2), three("hand over, 3 shards", 3);
	back left;
	kept own_need;
	trim other;
	decay idle;
	made_meanwhile fresh;
	nodes two_nodes;
	bound slots("bound of slots", false), weight("bound of bytes", true);
	engine::scenario *all[] = {
		&again, &two, &three, &left, &own_need, &other, &idle, &fresh, &two_nodes, &slots, &weight};
	return engine::explore(argc, argv, all, sizeof all / sizeof *all);
}
