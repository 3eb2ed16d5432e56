/* The first use of Tenure in a process, by many threads at once. The parent never uses Tenure, so
 * every child starts without its state. */
#include "crowd.h"

#include <chrono>
#include <pthread.h>

namespace {

void expect_well(const std::function<int()> &work) {
	int status = in_child(work, 60);
	EXPECT_TRUE(exited_with(status, 0)) << "wait status " << status;
}

/* Whether the shared allocators work at once, and so do new ones of the thread's own. */
bool use_all(tn_shared_slab *shared, tn_pool *pool, uint64_t stamp) {
	shared_slab_owner own = make_shared_slab(32);
	arena_owner arena = make_arena();
	bool right = own != nullptr && arena != nullptr;
	for (tn_shared_slab *s : {shared, own.get()}) {
		void *p[10];
		for (size_t i = 0; i < 10; i++)
			put_stamp(p[i] = tn_shared_slab_alloc(s), 32, stamp + i);
		for (size_t i = 0; i < 10; i++) {
			right &= has_stamp(p[i], 32, stamp + i);
			tn_shared_slab_free(s, p[i]);
		}
	}
	void *object = tn_pool_get(pool);
	right &= object != nullptr && all_bytes(object, 32, 0);
	tn_pool_put(pool, object);
	right &= tn_arena_alloc(arena.get(), 100, 0) != nullptr;
	return right;
}

TEST(stress_first_use, sixty_four_threads_at_once) {
	const size_t threads = thread_sanitized ? 16 : 64;
	for (size_t i = 0; i < times(debug_mode ? 100 : 500, debug_mode ? 8 : 20) && !HasFailure(); i++)
		expect_well([threads] {
			shared_slab_owner shared;
			pool_owner pool;
			std::once_flag once;
			std::atomic<size_t> wrong{0};
			in_crowd(threads, [&](size_t t) {
				/* Each thread first makes allocators of its own; any of them may make the shared
				 * ones. */
				wrong += make_shared_slab(64) == nullptr;
				std::call_once(once, [&] {
					shared = make_shared_slab(32);
					pool = make_pool(32);
				});
				wrong += !use_all(shared.get(), pool.get(), t << 20);
			});
			wrong += tn_shared_slab_in_use(shared.get()) != 0 || !tn_shared_slab_verify(shared.get());
			return wrong > 0 ? 1 : 0;
		});
}

/* Static memory, which needs no lock. */
tn_source static_pages() {
	static unsigned char pages[64 * kib] __attribute__((aligned(64 * kib)));
	tn_source source = {};
	source.acquire = [](void *, size_t size, size_t) -> void * {
		return size <= sizeof pages ? pages : nullptr;
	};
	source.release = [](void *, void *, size_t) {};
	return source;
}

/* One thread makes the first shared slab of all while another one forks. */
TEST(stress_first_use, a_fork_beside_the_first_create) {
	if (thread_sanitized)
		GTEST_SKIP() << "forks with threads, of forks";
	for (size_t i = 0; i < times(500, 60) && !HasFailure(); i++)
		expect_well([i] {
			tn_source source = static_pages();
			if (i % 8 != 0)
				make_arena();
			std::atomic<int> stage{0};
			std::thread maker([&] {
				for (stage = 1; stage == 1;)
					continue;
				for (volatile size_t k = 0; k < i * 7919 % 60000; k = k + 1)
					continue;
				tn_shared_slab_options o = {};
				o.source = &source;
				make_shared_slab(64, 0, o);
			});
			while (stage == 0)
				continue;
			stage = 2;
			int status = in_child(
				[] {
					shared_slab_owner s = make_shared_slab(64);
					pool_owner p = make_pool(64);
					return use_all(s.get(), p.get(), 1) ? 0 : 2;
				},
				20);
			maker.join();
			return exited_with(status, 0) ? 0 : 1;
		});
}

/* Without a key the library cannot see the end of a thread, so it keeps nothing for that thread. */
TEST(stress_first_use, without_thread_keys) {
	expect_well([] {
		pthread_key_t key;
		while (pthread_key_create(&key, nullptr) == 0)
			continue;
		shared_slab_owner s = make_shared_slab(32);
		pool_owner p = make_pool(32);
		std::atomic<size_t> wrong{0};
		auto work = [&](size_t t) { wrong += !use_all(s.get(), p.get(), t << 20); };
		/* The sanitizer's threads have keys of their own. */
		if (!sanitized)
			in_crowd(4, work);
		work(9);
		errno = 0;
		wrong += tn_shared_slab_local(s.get()) != nullptr || errno != ENOMEM;
		tn_shared_slab_flush(s.get());
		wrong += tn_shared_slab_in_use(s.get()) != 0 || !tn_shared_slab_verify(s.get());
		return wrong > 0 ? 1 : 0;
	});
}

/* Three threads use both for ever; `end` runs once all of them do. */
void run_until(void (*end)()) {
	/* Never destroyed: their users run until the end. */
	static tn_shared_slab *s;
	static tn_pool *p;
	static std::atomic<size_t> turns;
	s = tn_shared_slab_create(32, 0, nullptr);
	p = tn_pool_create(32, 0, nullptr);
	turns = 0;
	for (uint64_t t = 0; t < 3; t++)
		std::thread([t] {
			while (use_all(s, p, t << 20))
				turns++;
		}).detach();
	while (turns < 10)
		std::this_thread::yield();
	end();
}

TEST(stress_first_use, the_process_ends_with_threads_running) {
	for (size_t i = 0; i < times(50, 10) && !HasFailure(); i++)
		expect_well([] {
			run_until([] { std::exit(0); });
			return 1;
		});
}

TEST(stress_first_use, the_first_thread_ends_first) {
	if (thread_sanitized)
		GTEST_SKIP() << "threads in the child of a process that has some";
	/* Not the thread that runs the tests: its frames would catch what pthread_exit throws. */
	for (size_t i = 0; i < times(50, 10) && !HasFailure(); i++)
		in_thread([] {
			expect_well([] {
				run_until([] {
					std::thread([] {
						std::this_thread::sleep_for(std::chrono::milliseconds(2));
						/* Memory that only the first thread's stack points to is no leak. */
						sanitized ? _exit(0) : std::exit(0);
					}).detach();
					pthread_exit(nullptr);
				});
				return 1;
			});
		});
}

} /* namespace */
