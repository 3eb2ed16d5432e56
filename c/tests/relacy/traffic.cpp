/* The shared slab unchanged, all of its parts at once: slots that one thread takes and another one
 * gives back, magazines that go through the depot, chunks that go with their last slot, and a limit
 * at which empty magazines must make room. */
#include "library_use.h"

/* Two threads take slots and leave them to each other; a third one trims. */
struct hand_on : slab_scenario {
	enum { COUNT = 3 };

	void *box[2][COUNT];
	flag filled[2][COUNT];

	hand_on(const char *name, unsigned threads) : slab_scenario(name, threads) {
	}

	void before() {
		slab_scenario::before();
		memset(filled, 0, sizeof filled);
	}

	void thread(unsigned number) {
		if (number == 2) {
			tn_shared_slab_trim(slab);
			return;
		}
		for (int i = 0; i < COUNT; i++) {
			box[number][i] = must_alloc(slab);
			filled[number][i].raise();
		}
		for (int i = 0; i < COUNT; i++) {
			filled[1 - number][i].await();
			free(slab, box[1 - number][i]);
		}
	}
};

/* One thread takes slots and the other one gives them back, so that full magazines go through the
 * depot, and the first thread takes them out again. */
struct one_way : slab_scenario {
	enum { COUNT = 8 };

	void *box[COUNT];
	flag filled[COUNT];

	one_way() : slab_scenario("one way", 2) {
	}

	void before() {
		slab_scenario::before();
		memset(filled, 0, sizeof filled);
	}

	void thread(unsigned number) {
		for (int i = 0; i < COUNT; i++) {
			if (number == 0) {
				box[i] = must_alloc(slab);
				filled[i].raise();
			} else {
				filled[i].await();
				free(slab, box[i]);
			}
		}
		if (number == 0)
			use(slab, 5);
	}
};

/* Room for the slab's record, a chunk of three slots and two magazines. */
struct at_limit : slab_scenario {
	at_limit() : slab_scenario("at the limit", 2) {
	}

	void before() {
		library_begin();
		memset(known, 0, sizeof known);
		memset(live, 0, sizeof live);
		live_count = 0;
		slab = create(1, TN_NONE, 4 * CHUNK_BYTES);
	}

	void thread(unsigned) {
		void *slots[2];
		for (void *&p : slots)
			p = alloc(slab);
		for (void *p : slots)
			free(slab, p);
	}

	void after() {
		void *p = must_alloc(slab);
		free(slab, p);
		finish(slab);
	}
};

int main(int argc, char **argv) {
	hand_on two("hand on, 2 threads", 2), three("hand on, and trim", 3);
	one_way through;
	at_limit limit;
	engine::scenario *all[] = {&two, &three, &through, &limit};
	return engine::explore(argc, argv, all, sizeof all / sizeof *all);
}
