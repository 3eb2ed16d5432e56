/* size_based_arena.hpp: room for exactly N, for any number of threads, before and after the reset.
 * A type has one arena, so every test has types of its own. */
#include "crowd.h"

#include <tenure/size_based_arena.hpp>

#include <array>

#include <pthread.h>

namespace {

using tenure::size_based_arena;

template <size_t size, size_t align> struct alignas(align) block {
	unsigned char bytes[size];
};

/* Takes all slots, one by one. */
template <typename Arena> std::vector<void *> exhaust(Arena &a) {
	std::vector<void *> all;
	try {
		for (;;)
			all.push_back(a.allocate_one());
	} catch (const std::bad_alloc &) {
	}
	return all;
}

template <typename Arena> void give_back(Arena &a, const std::vector<void *> &all) {
	for (void *p : all)
		a.deallocate_one(p);
}

template <typename Arena> bool refuses(Arena &a, size_t count) {
	try {
		a.deallocate_n(a.allocate_n(count), count);
		return false;
	} catch (const std::bad_alloc &) {
		return true;
	}
}

/* Whether two blocks share a byte. */
bool overlap(std::vector<void *> all, size_t size) {
	std::sort(all.begin(), all.end());
	for (size_t i = 1; i < all.size(); i++)
		if (address(all[i]) - address(all[i - 1]) < size)
			return true;
	return false;
}

/* Every size. */

template <typename Block> class every_size : public testing::Test {};
using blocks = testing::Types<block<1, 1>, block<3, 1>, block<8, 8>, block<24, 8>, block<24, 1>,
	block<64, 64>, block<96, 32>, block<1, 4096>, block<4097, 1>>;
TYPED_TEST_SUITE(every_size, blocks);

TYPED_TEST(every_size, holds_exactly_n_and_keeps_what_is_written) {
	constexpr size_t n = 1000, size = sizeof(TypeParam);
	auto &a = size_based_arena<TypeParam, n>::get();
	for (uint64_t round = 0; round < 3; round++) {
		std::vector<void *> all = exhaust(a);
		ASSERT_EQ(all.size(), n);
		EXPECT_EQ(a.used(), n);
		EXPECT_EQ(a.in_use(), n);
		EXPECT_FALSE(overlap(all, size));
		for (size_t i = 0; i < n; i++)
			fill(all[i], size, round + i);
		for (size_t i = 0; i < n; i++) {
			ASSERT_TRUE(aligned_to(all[i], alignof(TypeParam)));
			ASSERT_TRUE(filled(all[i], size, round + i));
			ASSERT_TRUE(a.owns(all[i]));
		}
		give_back(a, all);
		EXPECT_EQ(a.in_use(), 0u);
		EXPECT_EQ(a.used(), n) << "nothing is used twice";
		EXPECT_THROW((void)a.allocate_one(), std::bad_alloc);
		EXPECT_TRUE(a.reset());
		EXPECT_EQ(a.used(), 0u);
	}
}

TYPED_TEST(every_size, arrays_leave_nothing_out_of_n) {
	constexpr size_t n = 1001, size = sizeof(TypeParam);
	auto &a = size_based_arena<TypeParam, n>::get();
	for (size_t count : {1u, 2u, 3u, 7u, 63u, 500u, 1001u}) {
		std::vector<std::pair<char *, size_t>> arrays;
		for (size_t left = n; left > 0; left -= arrays.back().second) {
			size_t now = left < count ? left : arrays.size() % 4 == 3 ? 1 : count;
			arrays.emplace_back(static_cast<char *>(a.allocate_n(now)), now);
			fill(arrays.back().first, now * size, left);
			EXPECT_TRUE(aligned_to(arrays.back().first, alignof(TypeParam)));
		}
		EXPECT_TRUE(refuses(a, 1)) << count;
		size_t left = n;
		for (auto [p, now] : arrays) {
			EXPECT_TRUE(filled(p, now * size, left)) << count;
			left -= now;
			a.deallocate_n(p, now);
		}
		EXPECT_EQ(a.used(), n);
		EXPECT_EQ(a.in_use(), 0u);
		EXPECT_TRUE(a.reset());
	}
}

TYPED_TEST(every_size, impossible_counts_change_nothing) {
	constexpr size_t n = 100;
	auto &a = size_based_arena<TypeParam, n>::get();
	for (size_t used = 0; used < 2; used++) {
		constexpr size_t most = SIZE_MAX / sizeof(TypeParam);
		for (size_t count :
			{n + 1, SIZE_MAX, SIZE_MAX - 1, SIZE_MAX / 2 + 1, SIZE_MAX / 2 + 2, (size_t{1} << 61) + 1,
				most - 1, most, most | (most + 1), most + 2 > 2 ? most + 2 : n + 2})
			EXPECT_TRUE(refuses(a, count)) << count << " after " << used;
		EXPECT_EQ(a.used(), used);
		EXPECT_EQ(a.in_use(), used);
		(void)a.allocate_one();
	}
	EXPECT_TRUE(refuses(a, n - 1));
	EXPECT_EQ(exhaust(a).size(), n - 2);
}

/* One arena. */

TEST(size_based, none_is_one) {
	struct none : block<32, 8> {};
	auto &a = size_based_arena<none, 10>::get();
	void *p = a.allocate_n(0), *q = a.allocate_n(0);
	EXPECT_NE(p, q);
	EXPECT_EQ(a.in_use(), 2u);
	a.deallocate_n(p, 0);
	a.deallocate_n(q, 0);
	a.deallocate_one(nullptr);
	a.deallocate_n(nullptr, 0);
	a.deallocate_n(nullptr, 7);
	EXPECT_EQ(a.in_use(), 0u);
	EXPECT_EQ(a.used(), 2u);
	EXPECT_TRUE(a.reset());
}

TEST(size_based, every_type_and_every_n_has_its_own) {
	struct wolf : block<16, 8> {};
	struct sheep : block<16, 8> {};
	auto &wolves = size_based_arena<wolf, 10>::get(), &again = size_based_arena<wolf, 10>::get();
	auto &sheeps = size_based_arena<sheep, 10>::get();
	auto &more = size_based_arena<wolf, 11>::get();
	EXPECT_EQ(&wolves, &again);
	void *p = wolves.allocate_one();
	EXPECT_EQ(again.used(), 1u);
	EXPECT_EQ(sheeps.used() + more.used(), 0u);
	EXPECT_TRUE(wolves.owns(p));
	EXPECT_FALSE(sheeps.owns(p));
	EXPECT_FALSE(more.owns(p));
	EXPECT_FALSE(wolves.owns(&p));
	EXPECT_FALSE(wolves.owns(nullptr));
	EXPECT_EQ(exhaust(wolves).size(), 9u);
	EXPECT_EQ(exhaust(sheeps).size(), 10u);
	EXPECT_EQ(exhaust(more).size(), 11u);
	EXPECT_EQ(wolves.capacity() + more.capacity(), 21u);
	EXPECT_EQ((size_based_arena<wolf, 10>::capacity()), 10u);
}

TEST(size_based, a_lease_is_never_much_of_it) {
	EXPECT_EQ((size_based_arena<block<24, 8>, 1>::lease), 1u);
	EXPECT_EQ((size_based_arena<block<24, 8>, 31>::lease), 1u);
	EXPECT_LE((size_based_arena<block<24, 8>, 160>::lease), 10u);
	EXPECT_LE((size_based_arena<block<24, 8>, 1000000>::lease) * 24, 4096u);
	EXPECT_EQ((size_based_arena<block<8192, 8>, 1000>::lease), 1u);
}

TEST(size_based, reset_waits_for_the_last) {
	struct waiting : block<40, 8> {};
	auto &a = size_based_arena<waiting, 1000>::get();
	std::vector<void *> all = exhaust(a);
	void *first = all.front(), *last = all.back();
	all.pop_back();
	give_back(a, all);
	fill(last, sizeof(waiting), 5);
	EXPECT_FALSE(a.reset());
	EXPECT_EQ(a.in_use(), 1u);
	EXPECT_EQ(a.used(), 1000u);
	EXPECT_TRUE(filled(last, sizeof(waiting), 5));
	EXPECT_THROW((void)a.allocate_one(), std::bad_alloc);
	a.deallocate_one(last);
	EXPECT_TRUE(a.reset());
	void *again = a.allocate_one();
	if (!debug_mode) {
		EXPECT_EQ(again, first) << "in warm memory";
	}
	a.deallocate_one(again);
	EXPECT_TRUE(a.reset());
	EXPECT_TRUE(a.reset()) << "of nothing";
}

TEST(size_based, trim_gives_back_what_no_slot_was_needed_of) {
	struct trimmed : block<4096, 8> {};
	auto &a = size_based_arena<trimmed, 4000>::get();
	EXPECT_EQ(a.trim(), 0u);
	EXPECT_EQ(a.stats().committed_bytes, 0u) << "nothing before the first";
	std::vector<void *> all = exhaust(a);
	size_t full = a.stats().committed_bytes;
	EXPECT_GE(full, 4000u * 4096);
	EXPECT_LE(full, 4000u * 4096 * 9 / 8);
	EXPECT_EQ(a.trim(), 0u);
	give_back(a, all);
	EXPECT_TRUE(a.reset());
	void *one = a.allocate_one();
	fill(one, 4096, 1);
	size_t freed = a.trim();
	EXPECT_EQ(a.stats().committed_bytes + freed, debug_mode ? a.stats().committed_bytes : full);
	EXPECT_LE(a.stats().committed_bytes, 4 * mib);
	EXPECT_TRUE(filled(one, 4096, 1));
	a.deallocate_one(one);
	EXPECT_TRUE(a.reset());
	a.trim();
	EXPECT_EQ(a.stats().committed_bytes, 0u);
	EXPECT_EQ(a.stats().chunk_count, 0u);
	EXPECT_EQ(exhaust(a).size(), 4000u);
}

TEST(size_based, stats_say_what_happened) {
	struct counted : block<100, 4> {};
	auto &a = size_based_arena<counted, 1000>::get();
	void *one = a.allocate_one(), *several = a.allocate_n(9);
	tn_stats now = a.stats();
	EXPECT_STREQ(now.name, "size_based_arena");
	EXPECT_EQ(now.live_count, 10u);
	EXPECT_EQ(now.live_bytes, 1000u);
	EXPECT_EQ(now.chunk_count, 1u);
	EXPECT_EQ(now.resets, 0u);
	EXPECT_GE(now.committed_bytes, now.live_bytes);
	a.deallocate_one(one);
	EXPECT_EQ(a.stats().live_count, 9u);
	a.deallocate_n(several, 9);
	EXPECT_TRUE(a.reset());
	EXPECT_EQ(a.stats().live_count, 0u);
	EXPECT_EQ(a.stats().resets, 1u);
	EXPECT_GE(a.stats().peak_bytes, 1000u);
}

TEST(size_based, arrays_of_more_than_a_chunk) {
	struct piece : block<64, 64> {};
	constexpr size_t n = 100000;
	auto &a = size_based_arena<piece, n>::get();
	for (int round = 0; round < 3; round++) {
		auto *one = static_cast<char *>(a.allocate_one());
		auto *large = static_cast<char *>(a.allocate_n(n / 2));
		auto *rest = static_cast<char *>(a.allocate_n(n / 2 - 1));
		EXPECT_THROW((void)a.allocate_one(), std::bad_alloc);
		fill(one, 64, 1);
		fill(large, n / 2 * 64, 2);
		fill(rest, (n / 2 - 1) * 64, 3);
		EXPECT_TRUE(filled(one, 64, 1));
		EXPECT_TRUE(filled(large, n / 2 * 64, 2));
		EXPECT_TRUE(a.owns(large + n / 2 * 64 - 1));
		EXPECT_TRUE(a.owns(large + 3 * mib));
		EXPECT_TRUE(aligned_to(large, 64));
		EXPECT_TRUE(a.owns(rest));
		a.deallocate_n(large, n / 2);
		EXPECT_EQ(a.in_use(), n / 2);
		EXPECT_FALSE(a.reset());
		a.deallocate_n(rest, n / 2 - 1);
		a.deallocate_one(one);
		EXPECT_TRUE(a.reset());
		EXPECT_FALSE(a.owns(large + 3 * mib));
	}
	EXPECT_LE(a.stats().committed_bytes, 4 * mib) << "large ones go at once";
}

TEST(size_based, odd_arrays_do_not_waste_chunks) {
	struct odd : block<4097, 1> {};
	constexpr size_t n = 8000;
	auto &a = size_based_arena<odd, n>::get();
	for (size_t i = 0; i < n / 4; i++) {
		(void)a.allocate_one();
		(void)a.allocate_n(3);
	}
	/* In hardened and debug, arrays begin on the grid of slots and skip some. */
	EXPECT_LE(a.stats().committed_bytes, n * sizeof(odd) * (release_mode ? 5 : 20) / 4);
}

/* Threads. */

TEST(size_based_threads, a_crowd_gets_n_and_at_most_a_lease_each_more) {
	struct shared_block : block<48, 8> {};
	using arena = size_based_arena<shared_block, 20000>;
	constexpr size_t threads = 4;
	auto &a = arena::get();
	std::array<std::vector<void *>, threads> got;
	rendezvous here(threads);
	in_crowd(threads, [&](size_t i) {
		got[i] = exhaust(a);
		here.meet();
		for (void *p : got[i])
			put_stamp(p, sizeof(shared_block), address(p));
	});
	std::vector<void *> all;
	for (auto &some : got)
		all.insert(all.end(), some.begin(), some.end());
	EXPECT_GE(all.size(), arena::capacity());
	EXPECT_LE(all.size(), arena::capacity() + threads * arena::lease);
	EXPECT_EQ(a.used(), all.size());
	EXPECT_FALSE(overlap(all, sizeof(shared_block)));
	EXPECT_FALSE(a.reset());
	size_t broken = 0;
	for (void *p : all)
		broken += !has_stamp(p, sizeof(shared_block), address(p));
	EXPECT_EQ(broken, 0u);
	/* Each thread gives back the slots of another one. */
	in_crowd(threads, [&](size_t i) { give_back(a, got[(i + 1) % threads]); });
	EXPECT_EQ(a.in_use(), 0u);
	EXPECT_TRUE(a.reset());
	EXPECT_EQ(exhaust(a).size(), arena::capacity()) << "exactly, for one thread";
	in_thread([&] { EXPECT_THROW((void)a.allocate_one(), std::bad_alloc); });
}

TEST(size_based_threads, a_crowd_recovers_from_exhaustion) {
	struct recovering : block<48, 8> {};
	using arena = size_based_arena<recovering, 5000>;
	constexpr size_t threads = 4;
	auto &a = arena::get();
	rendezvous here(threads);
	std::array<std::vector<void *>, threads> got;
	in_crowd(threads, [&](size_t i) {
		for (int round = 0; round < 20; round++) {
			got[i] = exhaust(a);
			here.meet();
			if (i == 0) {
				size_t sum = 0;
				for (auto &some : got)
					sum += some.size();
				EXPECT_GE(sum, arena::capacity());
				EXPECT_LE(sum, arena::capacity() + threads * arena::lease);
				EXPECT_EQ(a.in_use(), sum);
			}
			here.meet();
			give_back(a, got[(i + 1) % threads]);
			here.meet();
			if (i == 0) {
				EXPECT_TRUE(a.reset());
			}
			here.meet();
		}
	});
}

TEST(size_based_threads, the_rest_of_an_ended_threads_lease_comes_back) {
	struct short_lived : block<24, 8> {};
	using arena = size_based_arena<short_lived, 10100>;
	auto &a = arena::get();
	const size_t lives = sanitized ? 2000 : 10000;
	ASSERT_GT(arena::lease * lives, 10 * arena::capacity()) << "would not do without that";
	for (size_t i = 0; i < lives; i++)
		in_thread([&] {
			void *p = a.allocate_one();
			if (i % 2 == 0)
				a.deallocate_one(p);
		});
	EXPECT_EQ(a.used(), lives);
	EXPECT_EQ(a.in_use(), lives / 2);
	EXPECT_EQ(exhaust(a).size(), arena::capacity() - lives);
}

TEST(size_based_threads, another_threads_lease_does_not_survive_a_reset) {
	struct leased : block<32, 8> {};
	auto &a = size_based_arena<leased, 1000>::get();
	rendezvous here(2);
	std::thread other([&] {
		a.deallocate_one(a.allocate_one());
		here.meet();
		here.meet();
		EXPECT_THROW((void)a.allocate_one(), std::bad_alloc);
	});
	here.meet();
	EXPECT_TRUE(a.reset());
	EXPECT_EQ(exhaust(a).size(), 1000u) << "its rest as well";
	here.meet();
	other.join();
	EXPECT_EQ(a.in_use(), 1000u);
}

/* A thread that ends. */

struct late : block<56, 8> {};
using late_arena = size_based_arena<late, 3000>;

struct uses_the_arena_late {
	~uses_the_arena_late() {
		use();
	}
	static void use() {
		auto &a = late_arena::get();
		for (int i = 0; i < 3; i++) {
			void *p = a.allocate_one(), *several = a.allocate_n(4);
			fill(p, sizeof(late), 1);
			a.deallocate_n(several, 4);
			a.deallocate_one(p);
		}
	}
};

TEST(size_based_threads, destructors_of_ending_threads_may_use_it) {
	pthread_key_t key;
	ASSERT_EQ(pthread_key_create(&key, [](void *) { uses_the_arena_late::use(); }), 0);
	size_t rounds = 0;
	for (bool used_before : {false, true})
		for (int i = 0; i < 50; i++) {
			in_thread([&] {
				static thread_local uses_the_arena_late at_the_end;
				(void)&at_the_end;
				if (used_before)
					uses_the_arena_late::use();
				pthread_setspecific(key, &key);
			});
			rounds += used_before ? 3 : 2;
			EXPECT_EQ(late_arena::get().in_use(), 0u);
			EXPECT_EQ(late_arena::get().used(), rounds * 15);
			if (rounds * 15 + 45 > late_arena::capacity()) {
				EXPECT_TRUE(late_arena::get().reset());
				rounds = 0;
			}
		}
	pthread_key_delete(key);
}

/* Forks. */

TEST(size_based_fork, the_child_goes_on_and_begins_again) {
	struct forked : block<64, 8> {};
	using arena = size_based_arena<forked, 2000>;
	auto &a = arena::get();
	rendezvous here(2);
	std::thread other([&] {
		void *p = a.allocate_one();
		here.meet();
		here.meet();
		a.deallocate_one(p);
		here.meet();
		here.meet();
	});
	here.meet();
	void *mine = a.allocate_one();
	fill(mine, sizeof(forked), 7);
	auto child = [&](size_t live) {
		if (a.in_use() != live || a.reset() != (live == 0))
			return 1;
		/* The thread does not exist in the child. The storage of its lease goes to the next threads. */
		for (int i = 0; i < 3 && !thread_sanitized; i++)
			in_thread([&] { a.deallocate_one(a.allocate_one()); });
		if (a.in_use() != live)
			return 4;
		size_t used = a.used();
		if (exhaust(a).size() != arena::capacity() - used)
			return 2;
		return live == 0 || filled(mine, sizeof(forked), 7) ? 0 : 3;
	};
	EXPECT_TRUE(exited_with(in_child([&] { return child(2); }, 20), 0));
	EXPECT_EQ(a.in_use(), 2u);
	here.meet();
	here.meet();
	a.deallocate_one(mine);
	EXPECT_TRUE(exited_with(in_child([&] { return child(0); }, 20), 0));
	EXPECT_EQ(a.used(), 2u) << "the parent's own";
	here.meet();
	other.join();
	EXPECT_EQ(exhaust(a).size(), arena::capacity() - 2);
}

TEST(size_based_fork, beside_threads_that_use_it) {
	struct busy : block<64, 8> {};
	using arena = size_based_arena<busy, 1000000>;
	auto &a = arena::get();
	std::atomic<bool> done{false};
	std::vector<std::thread> threads;
	for (int i = 0; i < 2; i++)
		threads.emplace_back([&] {
			while (!done && a.used() < 900000)
				a.deallocate_n(a.allocate_n(3), 3);
		});
	const int forks = sanitized ? 10 : 100;
	for (int i = 0; i < forks; i++)
		EXPECT_TRUE(exited_with(in_child(
									[&] {
										a.deallocate_one(a.allocate_one());
										/* Slots of other threads' unfinished calls are lost. */
										return a.in_use() <= 6 ? 0 : 1;
									},
									20),
			0));
	done = true;
	for (auto &thread : threads)
		thread.join();
	EXPECT_EQ(a.in_use(), 0u);
	EXPECT_TRUE(a.reset());
}

/* Random programs. */

struct held {
	size_t count;
	uint64_t seed;
};

template <typename Block> class random_program : public testing::Test {};
using program_blocks = testing::Types<block<3, 1>, block<24, 8>, block<64, 64>, block<4097, 1>>;
TYPED_TEST_SUITE(random_program, program_blocks);

template <typename Block> class program {
public:
	static constexpr size_t n = 3000, size = sizeof(Block);
	using arena = size_based_arena<Block, n>;

	void run(uint64_t seed, uint64_t ops) {
		dice_ = dice(seed);
		for (uint64_t i = 0; i < ops && !testing::Test::HasFailure(); i++)
			/* Another thread, which then ends, or this one. */
			if (dice_.one_in(50))
				in_thread([this] { step(); });
			else
				step();
		for (auto &[p, what] : live_)
			a_.deallocate_n(p, what.count);
		EXPECT_EQ(a_.in_use(), 0u);
		EXPECT_TRUE(a_.reset());
		seen_.expect("exhausted", ops / 10000);
		seen_.expect("reset", ops / 10000);
		seen_.expect("reset refused", ops / 10000);
		seen_.expect("array", ops / 100);
	}

private:
	void step() {
		size_t kind = dice_.below(100);
		if (kind < 60)
			take(dice_.one_in(4) ? dice_.below(dice_.one_in(20) ? n + 10 : 40) : 1);
		else if (kind < 97)
			give();
		else if (kind < 98 && dice_.one_in(3))
			while (!live_.empty())
				give();
		else
			begin_again();
		ASSERT_EQ(a_.used(), used_);
		ASSERT_EQ(a_.in_use(), in_use_);
	}

	void take(size_t count) {
		size_t slots = count == 0 ? 1 : count;
		void *p = nullptr;
		try {
			p = count == 1 ? a_.allocate_one() : a_.allocate_n(count);
		} catch (const std::bad_alloc &) {
		}
		/* At least N; with another thread, at most N and the rest of the first one's lease. */
		ASSERT_TRUE(p != nullptr ? used_ + slots <= n + arena::lease : used_ + slots > n)
			<< count << " of " << used_;
		if (p == nullptr)
			return seen_.hit("exhausted");
		if (slots > 1)
			seen_.hit("array");
		used_ += slots;
		in_use_ += slots;
		ASSERT_TRUE(aligned_to(p, alignof(Block)));
		auto next = live_.lower_bound(static_cast<char *>(p));
		ASSERT_TRUE(next == live_.end() || static_cast<char *>(p) + slots * size <= next->first);
		ASSERT_TRUE(next == live_.begin() || end_of(std::prev(next)) <= p);
		uint64_t seed = dice_.next();
		fill(p, slots * size, seed);
		live_[static_cast<char *>(p)] = {slots, seed};
	}

	void give() {
		if (live_.empty())
			return;
		size_t span = address(std::prev(live_.end())->first) - address(live_.begin()->first);
		auto at = live_.lower_bound(live_.begin()->first + dice_.below(span + 1));
		auto [p, what] = *at;
		ASSERT_TRUE(filled(p, what.count * size, what.seed));
		if (what.count == 1)
			a_.deallocate_one(p);
		else
			a_.deallocate_n(p, what.count);
		in_use_ -= what.count;
		live_.erase(at);
	}

	void begin_again() {
		bool empty = live_.empty();
		seen_.hit(empty ? "reset" : "reset refused");
		ASSERT_EQ(a_.reset(), empty);
		if (empty)
			used_ = 0;
		if (dice_.one_in(5))
			a_.trim();
	}

	static char *end_of(typename std::map<char *, held>::iterator at) {
		return at->first + at->second.count * size;
	}

	arena &a_ = arena::get();
	std::map<char *, held> live_;
	size_t used_ = 0, in_use_ = 0;
	dice dice_{0};
	reach seen_;
};

TYPED_TEST(random_program, agrees_with_a_map) {
	SCOPED_TRACE("TENURE_SEED=" + std::to_string(program_seed()));
	program<TypeParam>().run(
		program_seed(), program_ops(sanitized || sizeof(TypeParam) > kib ? 8000 : 40000));
}

/* Objects that other threads give back. */
TEST(size_based_threads, a_crowd_hands_over) {
	struct handed : block<64, 8> {};
	using arena = size_based_arena<handed, 50000>;
	constexpr size_t threads = 4;
	auto &a = arena::get();
	rendezvous here(threads);
	std::array<mailbox, threads> boxes;
	std::atomic<size_t> broken{0};
	auto take_in = [&](size_t i) {
		for (parcel &parcel : boxes[i].collect()) {
			broken += !has_stamp(parcel.p, (parcel.stamp % 3 + 1) * sizeof(handed), parcel.stamp);
			a.deallocate_n(parcel.p, parcel.stamp % 3 + 1);
		}
	};
	in_crowd(threads, [&](size_t i) {
		dice chance(program_seed() + i);
		const size_t rounds = times(200, 20);
		for (size_t round = 0; round < rounds; round++) {
			for (int n = 0; n < 4000; n++) {
				parcel made{nullptr, chance.next()};
				size_t count = made.stamp % 3 + 1;
				made.p = a.allocate_n(count);
				put_stamp(made.p, count * sizeof(handed), made.stamp);
				if (!boxes[chance.below(threads)].send({made}))
					a.deallocate_n(made.p, count);
				if (n % 64 == 0)
					take_in(i);
			}
			here.meet();
			take_in(i);
			here.meet();
			if (i == 0) {
				EXPECT_EQ(a.in_use(), 0u);
				EXPECT_TRUE(a.reset());
			}
			here.meet();
		}
	});
	EXPECT_EQ(broken, 0u);
}

/* The head of a chunk has a bit for each slot in hardened and debug: an array may need a chunk of its
 * own although it would fit where all slots of a chunk need not be marked. */
TEST(size_based_arena, arrays_about_as_long_as_a_chunk_overlap_nothing) {
	constexpr size_t slot_bytes = 8, chunk_bytes = size_t(2) << 20;
	for (size_t count = chunk_bytes / slot_bytes - 5000; count <= chunk_bytes / slot_bytes;
		count += 20) {
		tn_runs runs = {};
		tn_lease lease = {};
		runs.name = "about a chunk";
		runs.slot_bytes = runs.align = slot_bytes;
		runs.count = 1000000;
		runs.lease_slots = 64;
		char *array = static_cast<char *>(tn_runs_alloc_slow(&runs, &lease, count));
		char *one = static_cast<char *>(tn_runs_alloc_slow(&runs, &lease, 1));
		ASSERT_NE(array, nullptr);
		ASSERT_NE(one, nullptr);
		EXPECT_TRUE(one + slot_bytes <= array || one >= array + count * slot_bytes) << count;
		tn_runs_free_slow(&runs, &lease, array, count);
		tn_runs_free_slow(&runs, &lease, one, 1);
		EXPECT_TRUE(tn_runs_reset(&runs));
		tn_runs_trim(&runs);
	}
}

}
