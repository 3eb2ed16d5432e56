/* c/src/shared/shared_slab.c and pool.c in hardened: of two frees of one slot, by any threads at any
 * moments, exactly one panics; likewise of two puts of one object. */
#include "library_use.h"

/* Whether the action panicked. */
template <typename action> static bool panics_at(action act) {
	try {
		act();
		return false;
	} catch (const panicked &) {
		return true;
	}
}

struct free_twice : slab_scenario {
	void *slot;
	bool panicked_at[2];

	free_twice(const char *name, unsigned threads) : slab_scenario(name, threads) {
	}

	void before() {
		slab_scenario::before();
		slot = must_alloc(slab);
		panics.expected = true;
	}

	void thread(unsigned number) {
		if (number < 2)
			panicked_at[number] = panics_at([&] { tn_shared_slab_free(slab, slot); });
		else
			REQUIRE(!panics_at([&] { tn_shared_slab_flush(slab); }));
	}

	void after() {
		REQUIRE(panicked_at[0] != panicked_at[1]);
		panics.expected = false;
		live_count--;
		finish(slab);
	}
};

struct put_twice : engine::scenario {
	tn_pool *pool;
	void *object;
	bool panicked_at[2];

	put_twice() : scenario("put twice", 2) {
	}

	void before() {
		library_begin();
		pool = tn_pool_create(64, 0, NULL);
		object = tn_pool_get(pool);
		panics.expected = true;
	}

	void thread(unsigned number) {
		panicked_at[number] = panics_at([&] { tn_pool_put(pool, object); });
	}

	void after() {
		REQUIRE(panicked_at[0] != panicked_at[1]);
		panics.expected = false;
		tn_pool_destroy(pool);
	}
};

int main(int argc, char **argv) {
	free_twice two("free twice, 2 threads", 2), three("free twice, 3 threads", 3);
	put_twice put;
	engine::scenario *all[] = {&two, &three, &put};
	return engine::explore(argc, argv, all, sizeof all / sizeof *all);
}
