/* pool.hpp: leases, traits, and the state after a build that throws. */
#include "crowd.h"
#include "witness.h"

#include <tenure/idle.hpp>
#include <tenure/pool.hpp>

#include <chrono>
#include <stdexcept>
#include <thread>
#include <type_traits>

namespace {

using tenure::maintenance;
using tenure::pool;
using tenure::pool_options;
using tenure::pool_traits;
using tenure::pressure;
using tenure::pressure_options;

class typed_pool : public witnessed {};

TEST_F(typed_pool, takes_a_name_or_options) {
	EXPECT_STREQ(pool<int>().stats().name, "pool");
	EXPECT_STREQ(pool<int>("buffers").stats().name, "buffers");
	pool_options options{};
	options.name = "parsers";
	EXPECT_STREQ(pool<int>(options).stats().name, "parsers");
}

TEST_F(typed_pool, the_callbacks_are_its_own) {
	pool_options with_init{}, with_reset{}, with_fini{}, with_size_of{};
	with_init.init = [](void *, void *) { return true; };
	with_reset.reset = with_fini.fini = [](void *, void *) {};
	with_size_of.size_of = [](const void *, void *) { return size_t{0}; };
	for (const pool_options &options : {with_init, with_reset, with_fini, with_size_of})
		EXPECT_THROW(pool<int> p(options), std::invalid_argument);
}

TEST_F(typed_pool, objects_come_back_as_they_were_put) {
	pool<std::string> p;
	const char *kept;
	{
		auto lease = p.get();
		EXPECT_TRUE(lease->empty());
		lease->assign(1000, 'x');
		kept = lease->data();
		EXPECT_EQ(p.stats().live_count, 1u);
	}
	EXPECT_EQ(p.stats().live_count, 0u);
	EXPECT_EQ(p.get()->data(), kept) << "and with what they hold";
	struct alignas(256) wide {
		char c = 'w';
	};
	pool<wide> wides;
	auto first = wides.get(), second = wides.get();
	EXPECT_TRUE(aligned_to(first.get(), 256));
	EXPECT_TRUE(aligned_to(second.get(), 256));
	EXPECT_EQ(second->c, 'w');
}

TEST_F(typed_pool, leases_move) {
	pool<witness> p;
	using lease = pool<witness>::lease;
	EXPECT_FALSE(std::is_copy_constructible_v<lease>);
	EXPECT_TRUE(std::is_nothrow_move_constructible_v<lease>);
	EXPECT_TRUE(std::is_nothrow_move_assignable_v<lease>);
	lease empty;
	EXPECT_FALSE(empty);
	EXPECT_EQ(empty.get(), nullptr);
	empty.put();
	lease first = p.get();
	witness *object = first.get();
	EXPECT_EQ(&*first, object);
	lease second(std::move(first));
	EXPECT_FALSE(first);
	EXPECT_EQ(second.get(), object);
	empty = std::move(second);
	EXPECT_FALSE(second);
	EXPECT_EQ(empty.get(), object);
	lease other = p.get();
	EXPECT_EQ(p.stats().live_count, 2u);
	other = std::move(empty);
	EXPECT_EQ(other.get(), object);
	EXPECT_EQ(p.stats().live_count, 1u) << "what it held went back";
	other.put();
	EXPECT_FALSE(other);
	other.put();
	EXPECT_EQ(p.stats().live_count, 0u);
	std::vector<lease> many;
	for (int i = 0; i < 100; i++)
		many.push_back(p.get());
	many.erase(many.begin(), many.begin() + 50);
	EXPECT_EQ(p.stats().live_count, 50u);
}

TEST_F(typed_pool, a_lease_moves_between_pools) {
	pool<witness> a, b;
	pool<witness>::lease held = a.get();
	held = b.get();
	EXPECT_EQ(a.stats().live_count, 0u);
	EXPECT_EQ(b.stats().live_count, 1u);
	held.put();
	EXPECT_EQ(b.stats().live_count, 0u);
}

TEST_F(typed_pool, objects_end_with_the_pool) {
	{
		pool<noted> p;
		{
			auto first = p.get(), second = p.get();
		}
		EXPECT_EQ(witness::alive, 2u);
		EXPECT_EQ(ended(), ids{}) << "idle is not ended";
	}
	EXPECT_EQ(ended().size(), 2u);
}

TEST_F(typed_pool, trim_ends_what_is_idle) {
	pool<noted> p;
	auto held = p.get();
	p.get().put();
	p.get().put();
	EXPECT_EQ(witness::alive, 2u);
	EXPECT_GT(p.trim(), 0u);
	EXPECT_EQ(witness::alive, 1u);
	EXPECT_EQ(held->id, 1);
	EXPECT_EQ(p.trim(), 0u);
}

TEST_F(typed_pool, moving_takes_the_objects_along) {
	using witnesses = pool<witness>;
	EXPECT_FALSE(std::is_copy_constructible_v<witnesses>);
	EXPECT_TRUE(std::is_nothrow_move_constructible_v<witnesses>);
	EXPECT_TRUE(std::is_nothrow_move_assignable_v<witnesses>);
	witnesses a("from");
	auto held = a.get();
	witnesses b(std::move(a));
	EXPECT_STREQ(b.stats().name, "from");
	EXPECT_EQ(b.stats().live_count, 1u);
	held.put();
	EXPECT_EQ(b.stats().live_count, 0u);
	a = witnesses("again");
	a.get().put();
	EXPECT_EQ(witness::alive, 2u);
	a = std::move(b);
	EXPECT_EQ(witness::alive, 1u) << "what was there ended";
	EXPECT_STREQ(a.stats().name, "from");
	a.get().put();
	EXPECT_EQ(witness::built, 2u);
}

/* Traits. */

/* Buffers that keep their room; the traits count their calls. */
struct buffer : witness {
	buffer(int i, size_t size) : witness(i), room(size) {
	}
	size_t room, used = 0;
};
struct counts {
	std::atomic<size_t> builds{0}, resets{0}, weighed{0};
};
struct buffer_traits : pool_traits<buffer> {
	explicit buffer_traits(counts &c, size_t size) : seen(&c), room(size) {
	}
	void build(void *place) {
		next++;
		::new (place) buffer(next, room);
		seen->builds++;
	}
	void reset(buffer &b) noexcept {
		b.used = 0;
		seen->resets++;
	}
	size_t size_of(const buffer &b) const noexcept {
		seen->weighed++;
		return b.room;
	}
	counts *seen;
	size_t room;
	int next = 0;
};

TEST_F(typed_pool, traits_build_reset_and_weigh) {
	counts seen;
	pool<buffer, buffer_traits> p({}, buffer_traits(seen, 1000));
	{
		auto first = p.get(), second = p.get();
		EXPECT_EQ(first->room, 1000u);
		EXPECT_EQ(first->id, 1);
		EXPECT_EQ(second->id, 2) << "the traits keep state";
		first->used = 7;
	}
	EXPECT_EQ(seen.resets, 2u);
	EXPECT_EQ(p.get()->used, 0u);
	EXPECT_EQ(seen.builds, 2u);
	p.flush();
	EXPECT_EQ(p.stats().cached_bytes, 2 * (sizeof(buffer) + 1000));
	EXPECT_GT(seen.weighed, 0u);
}

TEST_F(typed_pool, traits_move_with_their_pool) {
	counts seen;
	using buffers = pool<buffer, buffer_traits>;
	buffers from("from", buffer_traits(seen, 10));
	auto first = from.get();
	buffers to(std::move(from));
	first.put();
	auto again = to.get(), second = to.get();
	EXPECT_EQ(second->id, 2);
	EXPECT_EQ(seen.builds, 2u);
	EXPECT_EQ(seen.resets, 1u);
	counts others;
	{
		buffers replaced({}, buffer_traits(others, 20));
		auto gone = replaced.get();
		gone.put();
		replaced = buffers(std::move(to));
		EXPECT_EQ(replaced.get()->id, 3);
		again.put();
		second.put();
	}
	EXPECT_EQ(seen.builds, 3u);
	EXPECT_EQ(seen.resets, 4u);
	EXPECT_EQ(others.builds, 1u);
	EXPECT_EQ(others.resets, 1u);
}

TEST_F(typed_pool, the_bound_on_idle_bytes_knows_what_objects_hold) {
	counts seen;
	pool_options options{};
	options.max_idle_bytes = 10 * kib;
	pool<buffer, buffer_traits> p(options, buffer_traits(seen, kib));
	std::vector<pool<buffer, buffer_traits>::lease> held;
	for (int i = 0; i < 200; i++)
		held.push_back(p.get());
	held.clear();
	p.flush();
	EXPECT_LE(p.stats().cached_bytes, 10 * kib);
	EXPECT_GT(witness::alive, 0u);
	EXPECT_LE(witness::alive, 10u);
}

/* A build that throws. */

TEST_F(typed_pool, what_build_throws_reaches_the_caller) {
	pool<witness> p;
	auto held = p.get();
	std::string before = lasting(p.stats());
	for (size_t i = 0; i < 10000; i++) {
		throw_in(1);
		try {
			(void)p.get();
			ADD_FAILURE() << "nothing was thrown";
		} catch (const out_of_clay &thrown) {
			ASSERT_EQ(thrown.number, witness::built);
		}
	}
	p.trim();
	EXPECT_EQ(lasting(p.stats()), before) << "nothing is lost";
	EXPECT_EQ(witness::alive, 1u);
	auto next = p.get();
	EXPECT_EQ(witness::alive, 2u);
}

TEST_F(typed_pool, a_throw_in_one_pool_is_not_anothers) {
	struct nested_traits : pool_traits<noted> {
		explicit nested_traits(pool<witness> &from) : inner(&from) {
		}
		/* An exception that was caught meanwhile does not come back. */
		void build(void *place) {
			throw_in(1);
			EXPECT_THROW((void)inner->get(), out_of_clay);
			::new (place) noted(1);
		}
		pool<witness> *inner;
	};
	pool<witness> inner;
	pool<noted, nested_traits> outer({}, nested_traits(inner));
	EXPECT_EQ(outer.get()->id, 1);
	EXPECT_EQ(inner.stats().live_count, 0u);
}

TEST_F(typed_pool, what_was_thrown_is_not_kept) {
	using message = std::shared_ptr<int>;
	struct refusing_traits : pool_traits<int> {
		explicit refusing_traits(const message &m) : why(&m) {
		}
		void build(void *) const {
			throw message(*why);
		}
		const message *why;
	};
	message why = std::make_shared<int>(5);
	pool<int, refusing_traits> p({}, refusing_traits(why));
	EXPECT_THROW((void)p.get(), message);
	EXPECT_EQ(why.use_count(), 1);
}

/* Threads. */

TEST_F(typed_pool, objects_go_from_thread_to_thread) {
	counts seen;
	{
		pool<buffer, buffer_traits> p({}, buffer_traits(seen, 64));
		auto lease = p.get();
		buffer *object = lease.get();
		in_thread([&] { pool<buffer, buffer_traits>::lease(std::move(lease)).put(); });
		EXPECT_EQ(p.get().get(), object) << "a thread that ends flushes";
		p.flush();
		in_thread([&] { EXPECT_EQ(p.get().get(), object); });
	}
	EXPECT_EQ(seen.builds, 1u);
	EXPECT_EQ(seen.resets, 3u);
	EXPECT_EQ(witness::alive, 0u);
}

TEST_F(typed_pool, a_crowd_of_builds_some_of_which_throw) {
	constexpr size_t threads = 4;
	struct moody : witness {
		moody() : witness(7) {
			if (built % 3 == 0) {
				throw out_of_clay{};
			}
		}
		size_t user = SIZE_MAX;
	};
	std::atomic<size_t> thrown{0}, used_by_two{0};
	{
		pool<moody> p;
		in_crowd(threads, [&](size_t i) {
			std::vector<pool<moody>::lease> held;
			for (int round = 0; round < 2000; round++) {
				try {
					held.push_back(p.get());
					held.back()->user = i;
				} catch (const out_of_clay &) {
					thrown++;
				}
				if (round % 50 == 49) {
					for (auto &lease : held)
						used_by_two += lease->user != i || lease->id != 7;
					held.resize(held.size() / 3);
				}
			}
		});
		EXPECT_GT(thrown, 0u);
		EXPECT_EQ(used_by_two, 0u);
		EXPECT_EQ(p.stats().live_count, 0u);
		EXPECT_EQ(witness::alive, witness::built - thrown);
	}
	EXPECT_EQ(witness::alive, 0u);
}

/* ---- ahead, and idle memory ---- */

TEST_F(typed_pool, prefill_builds_ahead_or_nothing) {
	struct fails_at_ten : pool_traits<witness> {
		void build(void *place) {
			if (built == 10)
				throw std::runtime_error("no more");
			built++;
			new (place) witness();
		}
		size_t built = 0;
	};
	{
		pool<witness> p;
		p.prefill(100);
		EXPECT_EQ(witness::built, 100u);
		std::vector<pool<witness>::lease> held;
		for (int i = 0; i < 100; i++)
			held.push_back(p.get());
		EXPECT_EQ(witness::built, 100u);
		EXPECT_THROW(p.prefill(1000000), std::bad_alloc);
	}
	EXPECT_EQ(witness::alive, 0u);
	pool<witness, fails_at_ten> p;
	EXPECT_THROW(p.prefill(20), std::runtime_error);
	EXPECT_EQ(witness::alive, 0u);
	p.trim();
}

TEST_F(typed_pool, maintenance_and_pressure_live_as_long_as_their_objects) {
	std::atomic<size_t> steps{0};
	auto report = [&](unsigned, std::size_t) { steps++; };
	maintenance one;
	{
		maintenance two;
	}
	pressure_options options{};
	options.file = "/nonexistent/pressure";
	EXPECT_THROW(pressure<decltype(report)>(report, options), std::invalid_argument);
	options.file = "/proc/meminfo";
	options.available_percent = 100; /* there is always pressure */
	options.interval_ms = 1;
	{
		pressure pressed(report, options);
		EXPECT_THROW(pressure<decltype(report)>(report, options), std::invalid_argument);
		for (int i = 0; i < 10000 && steps < 2; i++)
			std::this_thread::sleep_for(std::chrono::milliseconds(1));
		EXPECT_GE(steps, 2u);
	}
	size_t seen = steps;
	std::this_thread::sleep_for(std::chrono::milliseconds(20));
	EXPECT_EQ(steps, seen);
}

}
