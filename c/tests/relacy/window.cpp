/* c/src/shared/pool.c: one thread ends a window, or three windows after a long silence; and the pool
 * as a whole: objects are built and taken apart once, have one owner at a time, and idle objects
 * stay within the bounds. */
#include "library_use.h"

struct end_once : engine::scenario {
	enum { DECAY_MS = 1000 };

	tn_pool *pool_;
	uint64_t silence, windows;
	unsigned ended[3];

	end_once(const char *name, uint64_t silence, uint64_t windows)
		: scenario(name, 3), silence(silence), windows(windows) {
	}

	void before() {
		library_begin();
		tn_pool_options options = {};
		options.decay_ms = DECAY_MS;
		pool_ = tn_pool_create(64, 0, &options);
		milliseconds += silence;
		memset(ended, 0, sizeof ended);
	}

	void thread(unsigned number) {
		for (int i = 0; i < 3; i++) {
			ended[number] += pool_window_of(&((pool *)pool_)->cache) == 0;
			milliseconds++;
		}
	}

	void after() {
		REQUIRE(ended[0] + ended[1] + ended[2] == windows);
		tn_pool_destroy(pool_);
	}
};

/* Threads get and put, windows end, and one thread trims. */
struct objects : engine::scenario {
	enum { OBJECT_BYTES = 1024, MOST_IDLE = 2 };

	tn_pool *pool_;
	size_t built, apart;

	objects() : scenario("objects", 3) {
	}

	static bool build(void *object, void *ctx) {
		((objects *)ctx)->built++;
		*(guarded<size_t> *)object = (size_t)object;
		return true;
	}

	static void take_apart(void *object, void *ctx) {
		((objects *)ctx)->apart++;
		REQUIRE(*(guarded<size_t> *)object == (size_t)object);
		*(guarded<size_t> *)object = 0;
	}

	void before() {
		library_begin();
		built = apart = 0;
		tn_pool_options options = {};
		options.init = build;
		options.fini = take_apart;
		options.ctx = this;
		options.max_idle_objects = MOST_IDLE;
		options.decay_ms = 1;
		pool_ = tn_pool_create(OBJECT_BYTES, 0, &options);
	}

	void own(void *object) {
		guarded<size_t> *word = (guarded<size_t> *)object;
		REQUIRE(object != NULL && *word == (size_t)object);
		*word = 0;
		engine::yield(HERE);
		*word = (size_t)object;
	}

	void thread(unsigned number) {
		void *held[3];
		size_t count = 1 + number;
		for (size_t i = 0; i < count; i++)
			own(held[i] = tn_pool_get(pool_));
		milliseconds++;
		for (size_t i = 0; i < count; i++)
			tn_pool_put(pool_, held[i]);
		if (number == 0)
			tn_pool_trim(pool_);
		library_end_thread();
	}

	void after() {
		idle_slots idle = tn_cache_idle(&((pool *)pool_)->cache);
		REQUIRE(idle.count == built - apart && idle.in_depot == idle.count && idle.count <= MOST_IDLE);
		tn_pool_destroy(pool_);
		REQUIRE(built == apart);
	}
};

int main(int argc, char **argv) {
	end_once one("one window", end_once::DECAY_MS, 1),
		three("three windows", 5 * end_once::DECAY_MS, 3);
	objects traffic;
	engine::scenario *all[] = {&one, &three, &traffic};
	return engine::explore(argc, argv, all, sizeof all / sizeof *all);
}
