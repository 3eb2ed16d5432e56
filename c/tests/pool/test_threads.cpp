/* The pool and its threads: they end with idle objects, use it late, outlive it, trim for
 * each other. */
#include "crowd.h"

#include <pthread.h>

namespace test_pool_threads {
namespace {

constexpr uint64_t built_mark = 0xb0117b0117b01170u;

struct vessel {
	uint64_t mark;
	uint64_t uses;
	void *part; /* slots of another allocator */
};

/* Callbacks that count, from any thread. With `parts`, every object owns a slot of it. */
struct books {
	tn_shared_slab *parts = nullptr;
	std::atomic<int64_t> built{0};
	std::atomic<size_t> wrong{0}, finis{0};

	books() = default;
	~books() {
		EXPECT_EQ(built, 0) << "init and fini were not called equally often";
		EXPECT_EQ(wrong, 0u);
	}
	tn_pool_options options(size_t max_idle_objects) {
		tn_pool_options o = {};
		o.init = build;
		o.fini = take_apart;
		o.ctx = this;
		o.max_idle_objects = max_idle_objects;
		o.decay_ms = TN_NONE;
		return o;
	}
	size_t idle(size_t out) const {
		return static_cast<size_t>(built) - out;
	}

private:
	static bool build(void *p, void *ctx) {
		auto *b = static_cast<books *>(ctx);
		void *part = b->parts == nullptr ? nullptr : tn_shared_slab_alloc(b->parts);
		*static_cast<vessel *>(p) = {built_mark, 0, part};
		b->built++;
		return true;
	}
	static void take_apart(void *p, void *ctx) {
		auto *b = static_cast<books *>(ctx);
		auto *v = static_cast<vessel *>(p);
		b->wrong += v->mark != built_mark;
		v->mark = 0;
		b->built--;
		b->finis++;
		if (b->parts != nullptr)
			tn_shared_slab_free(b->parts, v->part);
	}
};

/* Idle objects that a thread may hold beyond the bound. */
size_t held_most(size_t max_idle_objects) {
	size_t share = max_idle_objects / 16;
	return 2 * (share == 0 ? 1 : share > 64 ? 64 : share);
}

std::vector<vessel *> get_some(tn_pool *p, size_t count) {
	std::vector<vessel *> out;
	for (size_t i = 0; i < count; i++) {
		out.push_back(static_cast<vessel *>(tn_pool_get(p)));
		EXPECT_TRUE(out.back() != nullptr && out.back()->mark == built_mark);
		out.back()->uses++;
	}
	return out;
}

void put_all(tn_pool *p, const std::vector<vessel *> &objects) {
	for (vessel *v : objects)
		tn_pool_put(p, v);
}

void use(tn_pool *p, size_t count) {
	put_all(p, get_some(p, count));
}

TEST(pool_threads, threads_that_end_keep_the_bound) {
	constexpr size_t bound = 64, at_once = 4;
	books b;
	pool_owner pool = make_pool(sizeof(vessel), 0, b.options(bound));
	std::vector<vessel *> out = get_some(pool.get(), 10);
	size_t most = 0;
	for (size_t t = 0; t < times(debug_mode ? 5000 : 25000, 500) && !HasFailure(); t++) {
		in_crowd(at_once, [&](size_t i) { use(pool.get(), 10 + 10 * i); });
		size_t idle = b.idle(out.size());
		most = idle > most ? idle : most;
		/* The thread that looks has nothing idle, and the other threads have ended. */
		ASSERT_LE(idle, bound);
		ASSERT_EQ(stats_of(pool.get()).live_count, out.size());
	}
	EXPECT_GT(most, bound / 2) << "what threads leave behind is kept, as far as it may be";
	put_all(pool.get(), out);
	EXPECT_LE(b.idle(0), bound + held_most(bound));
	tn_pool_trim(pool.get());
	EXPECT_EQ(b.built, 0);
}

/* Objects of a dead thread are not built again. */
TEST(pool_threads, what_dead_threads_left_is_used_again) {
	books b;
	pool_owner pool = make_pool(sizeof(vessel), 0, b.options(1000));
	for (size_t t = 0; t < 100; t++)
		in_thread([&] { use(pool.get(), 30); });
	EXPECT_EQ(b.built, 30);
	uint64_t uses = 0;
	for (vessel *v : get_some(pool.get(), 30)) {
		uses += v->uses;
		tn_pool_put(pool.get(), v);
	}
	EXPECT_GE(uses, 100u);
}

TEST(pool_threads, one_thread_gets_and_another_puts) {
	constexpr size_t objects = 60;
	books b;
	pool_owner pool = make_pool(sizeof(vessel), 0, b.options(1000));
	rendezvous rest(2);
	std::vector<vessel *> on_the_way;
	std::thread putter([&] {
		for (int i = 0; i < 50; i++) {
			rest.meet();
			put_all(pool.get(), on_the_way);
			tn_pool_flush(pool.get());
			rest.meet();
		}
	});
	for (int i = 0; i < 50; i++) {
		on_the_way = get_some(pool.get(), objects);
		rest.meet();
		rest.meet();
		EXPECT_EQ(stats_of(pool.get()).live_count, 0u);
	}
	putter.join();
	EXPECT_EQ(b.built, static_cast<int64_t>(objects));
}

/* ---- late destructors ---- */

struct late_use {
	tn_pool *pool;
	tn_shared_slab *parts;
	std::atomic<size_t> *calls;
	pthread_key_t key;
	size_t rounds;
};

pthread_key_t first_key, last_key;

void late_destructor(void *value) {
	auto *late = static_cast<late_use *>(value);
	++*late->calls;
	use(late->pool, 25);
	/* Not in the first rounds: Tenure's own destructor must still find idle objects to take apart. */
	if (late->rounds == 2)
		tn_pool_flush(late->pool);
	tn_shared_slab_free(late->parts, tn_shared_slab_alloc(late->parts));
	if (--late->rounds > 0)
		pthread_setspecific(late->key, late);
	else
		delete late;
}

__attribute__((constructor(101))) void make_keys() {
	pthread_key_create(&first_key, late_destructor);
	tn_pool *pool = tn_pool_create(64, 0, nullptr);
	tn_pool_put(pool, tn_pool_get(pool));
	tn_pool_destroy(pool);
	pthread_key_create(&last_key, late_destructor);
}

/* The objects own slots of a shared slab, so that ends of threads reach it too. The order of the two
 * depends on their keys. */
void use_late(bool parts_first) {
	constexpr size_t bound = 16, threads = debug_mode ? 8 : 40;
	/* ThreadSanitizer itself ends in the fourth round. */
	constexpr size_t rounds = thread_sanitized ? 3 : 4;
	shared_slab_owner before = make_shared_slab(32);
	books b;
	pool_owner pool = make_pool(sizeof(vessel), 0, b.options(bound));
	shared_slab_owner after = make_shared_slab(32);
	b.parts = parts_first ? before.get() : after.get();
	std::atomic<size_t> calls{0};
	for (size_t i = 0; i < threads; i++)
		in_thread([&] {
			for (pthread_key_t key : {first_key, last_key})
				pthread_setspecific(key, new late_use{pool.get(), b.parts, &calls, key, rounds});
			tn_shared_slab_free(b.parts, tn_shared_slab_alloc(b.parts));
			if (i % 3 != 0)
				use(pool.get(), 40);
		});
	EXPECT_EQ(calls, threads * 2 * rounds);
	EXPECT_LE(b.idle(0), bound);
	EXPECT_EQ(stats_of(pool.get()).live_count, 0u);
	EXPECT_EQ(tn_shared_slab_in_use(b.parts), b.idle(0));
	EXPECT_GT(b.finis, 0u);
	pool.reset();
	EXPECT_EQ(tn_shared_slab_in_use(b.parts), 0u);
	EXPECT_TRUE(tn_shared_slab_verify(b.parts));
}

TEST(pool_threads, late_destructors_get_and_put) {
	use_late(true);
	use_late(false);
}

/* ---- pools that end before their threads ---- */

TEST(pool_threads, pools_end_before_the_threads_that_used_them) {
	constexpr size_t threads = 4;
	const size_t rounds = times(1000, debug_mode ? 50 : 200);
	rendezvous rest(threads + 1);
	pool_owner pool;
	std::thread crowd([&] {
		in_crowd(threads, [&](size_t t) {
			for (size_t i = 0; i < rounds; i++) {
				rest.meet();
				use(pool.get(), 5 + 7 * t);
				rest.meet();
			}
		});
	});
	for (size_t i = 0; i < rounds; i++) {
		books b;
		pool = make_pool(sizeof(vessel) + 16 * (i % 9), 0, b.options(i % 3 == 0 ? TN_NONE : 500));
		rest.meet();
		rest.meet();
		/* In the last round the threads are ending, so counts are not exact. */
		if (i + 1 < rounds) {
			EXPECT_EQ(stats_of(pool.get()).live_count, 0u);
		}
		EXPECT_EQ(b.built > 0, i % 3 != 0);
		pool.reset();
	}
	crowd.join();
}

TEST(pool_threads, fifty_pools_and_slabs_in_each_of_four_threads) {
	constexpr size_t count = 50;
	books b;
	std::vector<pool_owner> pools;
	std::vector<shared_slab_owner> slabs;
	for (size_t i = 0; i < count; i++) {
		pools.push_back(make_pool(sizeof(vessel) + 16 * i, 0, b.options(400)));
		slabs.push_back(make_shared_slab(16 + 16 * i));
	}
	std::atomic<size_t> wrong{0};
	in_crowd(4, [&](size_t t) {
		dice d(t + 1);
		for (size_t k = 0; k < (debug_mode || sanitized ? 500 : 5000); k++) {
			size_t i = d.below(count);
			auto *v = static_cast<vessel *>(tn_pool_get(pools[i].get()));
			void *p = tn_shared_slab_alloc(slabs[i].get());
			wrong += v->mark != built_mark || v->uses++ > 1u << 20;
			put_stamp(p, 16 + 16 * i, k);
			tn_pool_put(pools[i].get(), v);
			wrong += !has_stamp(p, 16 + 16 * i, k);
			tn_shared_slab_free(slabs[i].get(), p);
		}
	});
	EXPECT_EQ(wrong, 0u);
	for (size_t i = 0; i < count; i++) {
		EXPECT_EQ(stats_of(pools[i].get()).live_count, 0u);
		EXPECT_EQ(tn_shared_slab_in_use(slabs[i].get()), 0u);
	}
	pools.clear();
}

TEST(pool_threads, trim_reaches_idle_threads_at_their_next_slow_path) {
	books b;
	pool_owner pool = make_pool(sizeof(vessel), 0, b.options(500));
	rendezvous rest(2);
	std::thread idle([&] {
		use(pool.get(), 200);
		rest.meet();
		rest.meet();
		use(pool.get(), 200);
		tn_pool_flush(pool.get());
		rest.meet();
		rest.meet();
	});
	rest.meet();
	tn_pool_trim(pool.get());
	EXPECT_LE(b.idle(0), held_most(500));
	EXPECT_GT(b.idle(0), 0u) << "the idle thread has some in its hands";
	rest.meet();
	rest.meet();
	EXPECT_GT(tn_pool_trim(pool.get()), 0u);
	EXPECT_EQ(b.built, 0);
	rest.meet();
	idle.join();
}

} /* namespace */
} /* namespace test_pool_threads */
