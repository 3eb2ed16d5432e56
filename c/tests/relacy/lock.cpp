/* c/src/base/lock.h: one thread at a time is inside, sees what those before it wrote, and none sleeps
 * for ever: a wake-up that is lost leaves all threads asleep, which Relacy reports as a deadlock. */
#include "relacy_atomics.h"

#include "base/lock.h"

struct lock_scenario : engine::scenario {
	enum { ROUNDS = 2 };
	tn_lock lock;
	guarded<unsigned> sum;
	unsigned inside;

	lock_scenario(const char *name, unsigned threads) : scenario(name, threads) {
	}

	void before() {
		lock.state = LOCK_FREE;
		sum.plain = 0;
		inside = 0;
	}

	void thread(unsigned) {
		for (int i = 0; i < ROUNDS; i++) {
			tn_lock_take(&lock);
			REQUIRE(inside++ == 0);
			sum++;
			engine::yield(HERE);
			inside--;
			tn_lock_give(&lock);
		}
	}

	void after() {
		REQUIRE(sum == threads * ROUNDS);
		REQUIRE(tn_get(&lock.state, TN_RELAXED) == LOCK_FREE);
	}
};

int main(int argc, char **argv) {
	lock_scenario two("lock, 2 threads", 2), three("lock, 3 threads", 3);
	engine::scenario *all[] = {&two, &three};
	return engine::explore(argc, argv, all, 2);
}
