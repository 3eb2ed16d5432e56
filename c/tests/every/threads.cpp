/* Single-owner allocators under many threads: hand-over, contention in the page layer, ends of
 * threads. */
#include "allocators.h"
#include "process.h"

#include <atomic>
#include <thread>

#include <pthread.h>

namespace test_threads {
namespace {

constexpr size_t scale = sanitized ? 10 : debug_mode ? 4 : 1;

template <typename F> void in_thread(F work) {
	std::thread(work).join();
}

TEST(threads, an_arena_is_handed_over) {
	tn_arena *a = nullptr;
	char *first = nullptr;
	tn_checkpoint mark = {};
	in_thread([&] {
		a = tn_arena_create(nullptr);
		first = static_cast<char *>(tn_arena_alloc(a, 5000, 16));
		fill(first, 5000, 1);
		mark = tn_arena_mark(a);
		for (int i = 0; i < 1000; i++)
			fill(tn_arena_alloc(a, 500, 16), 500, 2);
	});
	in_thread([&] {
		EXPECT_TRUE(filled(first, 5000, 1));
		EXPECT_TRUE(tn_arena_owns(a, first));
		tn_arena_rewind(a, mark);
		fill(tn_arena_alloc(a, mib, 64), mib, 3);
		EXPECT_TRUE(tn_arena_verify(a));
	});
	EXPECT_TRUE(filled(first, 5000, 1));
	in_thread([&] {
		tn_arena_reset(a);
		fill(tn_arena_alloc(a, 5000, 16), 5000, 1);
		EXPECT_EQ(stats_of(a).resets, 1u);
		tn_arena_destroy(a);
	});
}

TEST(threads, a_slab_is_handed_over) {
	tn_slab *s = nullptr;
	std::vector<void *> slots;
	in_thread([&] {
		s = tn_slab_create(100, 0, nullptr);
		for (int i = 0; i < 3000; i++) {
			slots.push_back(tn_slab_alloc(s));
			fill(slots.back(), 100, 1);
		}
	});
	in_thread([&] {
		for (size_t i = 0; i < 3000; i += 2) {
			EXPECT_TRUE(filled(slots[i], 100, 1));
			tn_slab_free(s, slots[i]);
		}
		EXPECT_TRUE(tn_slab_verify(s));
		EXPECT_EQ(tn_slab_in_use(s), 1500u);
	});
	in_thread([&] {
		for (size_t i = 1; i < 3000; i += 2) {
			EXPECT_TRUE(filled(slots[i], 100, 1));
			tn_slab_free(s, slots[i]);
		}
		tn_slab_trim(s);
		EXPECT_EQ(tn_slab_in_use(s), 0u);
		tn_slab_destroy(s);
	});
}

/* The life of an allocator; the contents show any block that two allocators handed out. */
void live_once(uint64_t seed) {
	arena_owner a = make_arena();
	slab_owner s = make_slab(16 + seed % 200);
	ASSERT_TRUE(a != nullptr && s != nullptr);
	size_t size = seed % 7 == 0 ? 40 * kib : 500;
	/* Without malloc: AddressSanitizer's malloc cannot stand a fork beside it. */
	void *slots[12];
	for (uint64_t i = 0; i < 12; i++) {
		void *p = tn_arena_alloc(a.get(), size, 16);
		ASSERT_NE(p, nullptr);
		fill(p, size, seed + i);
		slots[i] = tn_slab_alloc(s.get());
		ASSERT_NE(slots[i], nullptr);
		fill(slots[i], 16, seed + i);
		ASSERT_TRUE(filled(p, size, seed + i));
	}
	for (uint64_t i = 0; i < 12; i++) {
		ASSERT_TRUE(filled(slots[i], 16, seed + i));
		tn_slab_free(s.get(), slots[i]);
	}
}

TEST(threads, eight_create_and_destroy) {
	std::vector<std::thread> threads;
	for (uint64_t t = 0; t < 8; t++)
		threads.emplace_back([t] {
			for (uint64_t i = 0; i < 400 / scale; i++)
				live_once(t * 1000 + i);
		});
	for (auto &thread : threads)
		thread.join();
}

TEST(threads, trim_while_others_work) {
	std::atomic<bool> stop{false};
	std::vector<std::thread> threads;
	for (uint64_t t = 0; t < 3; t++)
		threads.emplace_back([&stop, t] {
			for (uint64_t i = 0; !stop; i++)
				live_once(t * 100000 + i);
		});
	for (size_t i = 0; i < 300 / scale; i++) {
		live_once(i);
		tn_trim_all();
	}
	stop = true;
	for (auto &thread : threads)
		thread.join();
}

TEST(threads, allocators_outlive_the_thread_that_made_them) {
	std::vector<tn_slab *> slabs(50);
	std::vector<void *> slots(50);
	for (size_t i = 0; i < 50; i++)
		in_thread([&, i] {
			live_once(i);
			slabs[i] = tn_slab_create(64, 0, nullptr);
			slots[i] = tn_slab_alloc(slabs[i]);
			fill(slots[i], 64, i);
		});
	for (size_t i = 0; i < 50; i++) {
		EXPECT_TRUE(filled(slots[i], 64, i));
		tn_slab_free(slabs[i], slots[i]);
		EXPECT_TRUE(tn_slab_verify(slabs[i]));
		tn_slab_destroy(slabs[i]);
	}
}

TEST(threads, a_thousand_short_threads_leave_nothing_behind) {
	for (uint64_t i = 0; i < 20; i++)
		in_thread([i] { live_once(i); });
	tn_trim_all();
	size_t before = resident_bytes();
	size_t space = address_space_bytes();
	for (uint64_t i = 0; i < 1000 / scale; i++)
		in_thread([i] { live_once(i); });
	tn_trim_all();
	expect_resident_below(before + 16 * mib);
	if (!sanitized) {
		EXPECT_LT(address_space_bytes(), space + 256 * mib);
	}
}

/* Destructors of thread-local storage run in rounds; some run after the page layer's own. */
pthread_key_t late_key;
std::atomic<int> late_calls{0};

void late_destructor(void *rounds) {
	live_once(7);
	late_calls++;
	auto left = reinterpret_cast<uintptr_t>(rounds);
	if (left > 1)
		pthread_setspecific(late_key, reinterpret_cast<void *>(left - 1));
}

TEST(threads, late_destructors_may_allocate) {
	ASSERT_EQ(pthread_key_create(&late_key, late_destructor), 0);
	for (int i = 0; i < 20; i++)
		in_thread([] {
			live_once(1);
			pthread_setspecific(late_key, reinterpret_cast<void *>(uintptr_t{3}));
		});
	EXPECT_EQ(late_calls, 60);
	pthread_key_delete(late_key);
}

/* Allocates from, frees to and destroys the parent's allocators, then its own. */
int work_in_child(tn_arena *a, tn_slab *s, void *slot) {
	fill(tn_arena_alloc(a, 10000, 16), 10000, 1);
	tn_slab_free(s, slot);
	for (int i = 0; i < 50; i++)
		if (tn_slab_alloc(s) == nullptr)
			return 2;
	tn_arena_reset(a);
	if (!tn_arena_verify(a) || !tn_slab_verify(s))
		return 3;
	tn_arena_destroy(a);
	tn_slab_reset(s);
	tn_slab_destroy(s);
	live_once(3);
	tn_trim_all();
	return ::testing::Test::HasFailure() ? 4 : 0;
}

TEST(threads, fork_while_three_churn) {
	std::atomic<bool> stop{false};
	std::atomic<size_t> begun{0};
	std::vector<std::thread> threads;
	for (uint64_t t = 0; t < 3; t++)
		threads.emplace_back([&, t] {
			begun++;
			for (uint64_t i = 0; !stop; i++)
				live_once(t * 100000 + i);
		});
	while (begun < 3)
		std::this_thread::yield();
	size_t hangs = 0, wrong = 0;
	for (size_t i = 0; i < 100 / scale && hangs == 0; i++) {
		arena_owner a = make_arena();
		slab_owner s = make_slab(64);
		void *slot = tn_slab_alloc(s.get());
		int status = in_child([&] { return work_in_child(a.release(), s.release(), slot); }, 20);
		hangs += status == -1;
		wrong += !exited_with(status, 0);
		fill(slot, 64, i);
		EXPECT_TRUE(tn_slab_verify(s.get()));
	}
	stop = true;
	for (auto &thread : threads)
		thread.join();
	EXPECT_EQ(hangs, 0u);
	EXPECT_EQ(wrong, 0u);
}

} /* namespace */
} /* namespace test_threads */
