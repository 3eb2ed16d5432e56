/* c/src/shared/thread_cache.c: the figures of a thread's magazines, read by another thread while
 * they change hands. A reading is consistent: the loaded magazine and the previous one held so much
 * at one moment. */
#include "library_use.h"

/* The thread's two magazines always hold TOTAL slots together, in other shares after every change, and
 * the same magazine is loaded again. */
struct shares : engine::scenario {
	enum { TOTAL = 6, CHANGES = 4, ROOM = 8 };

	local *l;
	magazine *magazines[2];

	shares(const char *name, unsigned threads) : scenario(name, threads) {
	}

	void look() {
		REQUIRE(cache_count_of(l) == TOTAL);
	}

	void load_share(int change) {
		cache_load(l, magazines[change % 2], ROOM, (size_t)(TOTAL - 1 - change));
		cache_set_previous(l, magazines[(change + 1) % 2], (size_t)(1 + change));
	}

	void before() {
		library_begin();
		l = (local *)registry.fresh;
		memset((void *)l, 0, sizeof *l);
		for (magazine *&m : magazines)
			m = (magazine *)engine::take(sizeof(magazine), sizeof(magazine), true);
		l->top_at = &l->hot.top;
		load_share(0);
	}

	void thread(unsigned number) {
		if (number > 0) {
			look();
			return;
		}
		for (int i = 1; i < CHANGES; i++) {
			cache_begin_change(l);
			load_share(i);
			cache_end_change(l);
		}
	}

	void after() {
		look();
	}
};

/* The top is sometimes near, sometimes in the local. */
struct moves : shares {
	moves() : shares("top near and far", 2) {
	}

	void thread(unsigned number) {
		if (number > 0) {
			look();
			return;
		}
		cache_move_near(l, &tn_near_slab);
		cache_begin_change(l);
		load_share(1);
		cache_end_change(l);
		l->cache = (cache *)&l;
		cache_move_far(&tn_near_slab);
	}
};

/* The number of slots in the thread's magazines: from none to six, one at a time, while it fills two
 * magazines and gives one of them to the depot. */
struct counts : slab_scenario {
	counts() : slab_scenario("in use", 2) {
	}

	void thread(unsigned number) {
		if (number == 0)
			use(slab, 3);
		else
			REQUIRE(tn_shared_slab_in_use(slab) <= 6);
	}
};

int main(int argc, char **argv) {
	shares two("shares, 2 threads", 2), three("shares, 3 threads", 3);
	moves top;
	counts in_use;
	engine::scenario *all[] = {&two, &three, &top, &in_use};
	return engine::explore(argc, argv, all, sizeof all / sizeof *all);
}
