/* slab.hpp and shared_slab.hpp: typed objects in slots. Their common promises are tested for both. */
#include "crowd.h"
#include "ledger.h"
#include "witness.h"

#include <tenure/shared_slab.hpp>
#include <tenure/slab.hpp>

#include <array>
#include <set>

namespace {

using tenure::shared_slab;
using tenure::slab;

struct slab_family {
	template <typename T> using of = slab<T>;
	using options = tenure::slab_options;
	static constexpr const char *name = "slab";
};
struct shared_slab_family {
	template <typename T> using of = shared_slab<T>;
	using options = tenure::shared_slab_options;
	static constexpr const char *name = "shared slab";
};

struct name_of_family {
	template <typename F> static std::string GetName(int) {
		return F::name == slab_family::name ? "slab" : "shared_slab";
	}
};

template <typename Family> class typed_slab : public witnessed {};
using families = testing::Types<slab_family, shared_slab_family>;
TYPED_TEST_SUITE(typed_slab, families, name_of_family);

/* The type of slab under test, inside a test. */
#define SLAB_OF(...) typename TypeParam::template of<__VA_ARGS__>

TYPED_TEST(typed_slab, takes_a_name_or_options) {
	EXPECT_STREQ(SLAB_OF(int)().stats().name, TypeParam::name);
	EXPECT_STREQ(SLAB_OF(int)("orders").stats().name, "orders");
	typename TypeParam::options options{};
	options.name = "trades";
	EXPECT_STREQ(SLAB_OF(int)(options).stats().name, "trades");
}

TYPED_TEST(typed_slab, bad_options_are_an_invalid_argument) {
	typename TypeParam::options options{};
	options.chunk_bytes = SIZE_MAX;
	EXPECT_THROW(SLAB_OF(int) s(options), std::invalid_argument);
}

TYPED_TEST(typed_slab, slots_have_the_size_and_the_alignment_of_the_type) {
	struct alignas(64) wide {
		char bytes[130];
	};
	struct alignas(4096) page_of_its_own {
		char bytes[1];
	};
	EXPECT_EQ(SLAB_OF(wide)().slot_size(), sizeof(wide));
	EXPECT_EQ(SLAB_OF(char)().slot_size(), 1u);
	SLAB_OF(wide) s;
	SLAB_OF(page_of_its_own) pages;
	for (int i = 0; i < 100; i++) {
		EXPECT_TRUE(aligned_to(s.make(), 64));
		EXPECT_TRUE(aligned_to(pages.make(), 4096));
	}
}

TYPED_TEST(typed_slab, makes_and_destroys) {
	SLAB_OF(noted) s;
	noted *first = s.make(1), *second = s.make(2);
	EXPECT_EQ(first->id, 1);
	EXPECT_EQ(s.in_use(), 2u);
	EXPECT_TRUE(s.owns(first));
	EXPECT_FALSE(s.owns(&s));
	s.destroy(first);
	EXPECT_EQ(ended(), ids{1});
	s.destroy(nullptr);
	EXPECT_EQ(s.in_use(), 1u);
	s.destroy(second);
	EXPECT_EQ(s.in_use(), 0u);
	EXPECT_EQ(ended(), ids{2});
}

TYPED_TEST(typed_slab, make_passes_its_arguments_on) {
	struct several {
		several(std::unique_ptr<int> p, const std::string &s, int &r) : owned(std::move(p)), text(s) {
			r++;
		}
		std::unique_ptr<int> owned;
		std::string text;
	};
	SLAB_OF(several) s;
	int calls = 0;
	auto made = s.make_unique(std::make_unique<int>(5), "text", calls);
	EXPECT_EQ(*made->owned, 5);
	EXPECT_EQ(made->text, "text");
	EXPECT_EQ(calls, 1);
	SLAB_OF(int) numbers;
	int *number = numbers.make();
	*number = 5;
	numbers.destroy(number);
	EXPECT_EQ(*numbers.make(), 0) << "value-initialised";
}

TYPED_TEST(typed_slab, a_unique_ends_its_object) {
	SLAB_OF(noted) s;
	using unique = SLAB_OF(noted)::unique;
	{
		unique first = s.make_unique(1);
		unique other = std::move(first);
		EXPECT_EQ(first, nullptr);
		unique replaced = s.make_unique(2);
		replaced = s.make_unique(3);
		EXPECT_EQ(ended(), ids{2});
		unique empty;
		empty = std::move(replaced);
		EXPECT_EQ(s.in_use(), 2u);
	}
	EXPECT_EQ(ended(), (ids{3, 1}));
	EXPECT_EQ(s.in_use(), 0u);
	noted *released = s.make_unique(4).release();
	s.destroy(released);
	EXPECT_LE(sizeof(unique), 2 * sizeof(void *));
}

TYPED_TEST(typed_slab, a_constructor_that_throws_loses_nothing) {
	ledger books;
	typename TypeParam::options options{};
	options.source = books.source();
	options.limit_bytes = 256 * kib;
	SLAB_OF(witness) s(options);
	witness *first = s.make();
	s.trim();
	std::string before = lasting(s.stats());
	/* More attempts than slots. */
	for (int i = 0; i < 100000; i++) {
		throw_in(1);
		if (i % 2 == 0) {
			EXPECT_THROW((void)s.make(), out_of_clay);
		} else {
			EXPECT_THROW((void)s.make_unique(), out_of_clay);
		}
	}
	EXPECT_EQ(s.in_use(), 1u);
	EXPECT_EQ(witness::alive, 1u);
	EXPECT_TRUE(s.verify());
	s.trim();
	EXPECT_EQ(lasting(s.stats()), before);
	s.destroy(first);
}

TYPED_TEST(typed_slab, refused_memory_builds_nothing) {
	typename TypeParam::options options{};
	options.limit_bytes = 128 * kib;
	SLAB_OF(witness) s(options);
	std::vector<witness *> made;
	try {
		for (;;)
			made.push_back(s.make());
	} catch (const std::bad_alloc &) {
	}
	EXPECT_GT(made.size(), 100u);
	EXPECT_EQ(witness::built, made.size());
	EXPECT_THROW((void)s.make_unique(), std::bad_alloc);
	EXPECT_THROW((void)s.alloc(), std::bad_alloc);
	EXPECT_EQ(s.in_use(), made.size());
	for (witness *w : made)
		s.destroy(w);
	EXPECT_EQ(s.in_use(), 0u);
	s.destroy(s.make());
}

TYPED_TEST(typed_slab, each_visits_what_is_alive) {
	SLAB_OF(noted) s;
	std::set<noted *> alive;
	for (int i = 0; i < 1000; i++)
		alive.insert(s.make(i));
	for (noted *n : std::vector<noted *>(alive.begin(), alive.end()))
		if (n->id % 3 == 0) {
			alive.erase(n);
			s.destroy(n);
		}
	std::set<noted *> seen;
	s.each([&](noted &n) { EXPECT_TRUE(seen.insert(&n).second) << n.id; });
	EXPECT_EQ(seen, alive);
	auto renumber = [](noted &n) { n.id = -1; };
	s.each(renumber);
	/* A visitor may be const, and need not be copyable. */
	struct counter {
		counter() = default;
		counter(const counter &) = delete;
		void operator()(noted &n) const {
			*count += n.id == -1;
		}
		std::unique_ptr<size_t> count = std::make_unique<size_t>(0);
	};
	const counter count;
	s.each(count);
	EXPECT_EQ(*count.count, alive.size());
	for (noted *n : alive)
		s.destroy(n);
	s.each([](noted &) { ADD_FAILURE() << "no object is alive"; });
}

TYPED_TEST(typed_slab, batches_are_whole) {
	SLAB_OF(uint64_t) s;
	for (size_t count : {0u, 1u, 7u, 600u, 5000u}) {
		std::vector<void *> slots(count);
		s.alloc_batch(slots.data(), count);
		EXPECT_EQ(s.in_use(), count);
		EXPECT_EQ(std::set<void *>(slots.begin(), slots.end()).size(), count);
		for (void *slot : slots)
			*static_cast<uint64_t *>(slot) = address(slot);
		for (void *slot : slots)
			ASSERT_EQ(*static_cast<uint64_t *>(slot), address(slot));
		s.free_batch(slots.data(), count);
		EXPECT_EQ(s.in_use(), 0u);
	}
}

TYPED_TEST(typed_slab, a_limit_in_the_middle_of_a_batch_loses_nothing) {
	ledger books;
	typename TypeParam::options options{};
	options.source = books.source();
	options.limit_bytes = 256 * kib;
	SLAB_OF(std::array<char, 64>) s(options);
	void *one = s.alloc();
	std::vector<void *> slots(8000);
	for (int i = 0; i < 20; i++)
		EXPECT_THROW(s.alloc_batch(slots.data(), slots.size()), std::bad_alloc);
	EXPECT_EQ(s.in_use(), 1u);
	EXPECT_TRUE(s.verify());
	/* All slots are still available, one by one and as one batch. */
	size_t capacity = 0;
	try {
		for (;;) {
			slots[capacity] = s.alloc();
			capacity++;
		}
	} catch (const std::bad_alloc &) {
	}
	EXPECT_GT(capacity, debug_mode ? 300u : 2000u);
	s.free_batch(slots.data(), capacity);
	/* Debug keeps freed slots back for a while. */
	if (!debug_mode) {
		s.alloc_batch(slots.data(), capacity);
		s.free_batch(slots.data(), capacity);
	}
	s.free(one);
	EXPECT_EQ(s.in_use(), 0u);
}

TYPED_TEST(typed_slab, moving_takes_the_objects_along) {
	using noteds = SLAB_OF(noted);
	EXPECT_FALSE(std::is_copy_constructible_v<noteds>);
	EXPECT_TRUE(std::is_nothrow_move_constructible_v<noteds>);
	EXPECT_TRUE(std::is_nothrow_move_assignable_v<noteds>);
	noteds a("from"), b;
	noted *first = a.make(1);
	{
		typename noteds::unique second = a.make_unique(2);
		b = noteds(std::move(a));
	}
	EXPECT_EQ(b.in_use(), 1u) << "a unique finds its slab after a move";
	EXPECT_EQ(a.get(), nullptr);
	EXPECT_TRUE(b.owns(first));
	EXPECT_STREQ(b.stats().name, "from");
	a = noteds("again");
	a.destroy(a.make(3));
	a = std::move(b);
	EXPECT_EQ(a.in_use(), 1u);
	a.destroy(first);
	EXPECT_EQ(ended(), (ids{2, 3, 1}));
}

TYPED_TEST(typed_slab, its_end_forgets_what_is_alive) {
	ledger books;
	typename TypeParam::options options{};
	options.source = books.source();
	{
		SLAB_OF(noted) s(options);
		for (int i = 0; i < 1000; i++)
			(void)s.make(i);
		EXPECT_GT(books.held_count(), 0u);
	}
	EXPECT_EQ(books.held_count(), 0u);
	EXPECT_EQ(ended(), ids{}) << "no destructor runs";
	witness::alive = 0;
}

TYPED_TEST(typed_slab, trim_gives_empty_chunks_back) {
	ledger books;
	typename TypeParam::options options{};
	options.source = books.source();
	SLAB_OF(std::array<char, 256>) s(options);
	std::vector<std::array<char, 256> *> made;
	for (int i = 0; i < 5000; i++)
		made.push_back(s.make());
	for (auto *p : made)
		s.destroy(p);
	s.trim();
	EXPECT_EQ(s.stats().chunk_count, 0u);
	EXPECT_EQ(s.trim(), 0u);
}

/* Slabs only. */

class one_thread : public witnessed {};

TEST_F(one_thread, reset_forgets_and_keeps_the_chunks) {
	slab<noted> s;
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 1000; i++)
			(void)s.make(i);
		s.reset();
		EXPECT_EQ(s.in_use(), 0u);
	}
	EXPECT_EQ(s.stats().resets, 3u);
	EXPECT_EQ(ended(), ids{});
	witness::alive = 0;
}

/* Shared slabs only. */

class any_thread : public witnessed {};

TEST_F(any_thread, local_handles_make_and_destroy) {
	shared_slab<noted> s;
	auto mine = s.local();
	noted *first = mine.make(1);
	auto copy = mine;
	noted *second = copy.make(2);
	EXPECT_EQ(s.in_use(), 2u);
	/* A slot from the slab goes back by the handle, and the other way round. */
	s.destroy(first);
	mine.destroy(second);
	mine.destroy(nullptr);
	EXPECT_EQ(ended(), (ids{1, 2}));
	s.free(mine.alloc());
	mine.free(s.alloc());
	EXPECT_EQ(s.in_use(), 0u);
	for (int i = 0; i < 10000; i++) {
		throw_in(1);
		EXPECT_THROW((void)mine.make(), out_of_clay);
	}
	EXPECT_EQ(s.in_use(), 0u);
	s.trim();
	EXPECT_EQ(s.stats().chunk_count, 0u);
}

TEST_F(any_thread, objects_end_in_another_thread) {
	shared_slab<witness> s;
	std::vector<shared_slab<witness>::unique> made;
	for (int i = 0; i < 2000; i++)
		made.push_back(s.make_unique(i));
	in_thread([&] {
		for (size_t i = 0; i < 1000; i++)
			s.destroy(made[i].release());
		auto mine = s.local();
		for (size_t i = 1000; i < 1500; i++)
			mine.destroy(made[i].release());
		made.clear();
	});
	EXPECT_EQ(witness::alive, 0u);
	EXPECT_EQ(s.in_use(), 0u);
	EXPECT_TRUE(s.verify());
}

TEST_F(any_thread, a_crowd_passes_objects_on) {
	constexpr size_t threads = 4;
	constexpr size_t count = 2000;
	shared_slab<witness> s;
	rendezvous here(threads);
	std::array<std::vector<witness *>, threads> made;
	in_crowd(threads, [&](size_t i) {
		for (int round = 0; round < 5; round++) {
			auto mine = s.local();
			int name = static_cast<int>(i), neighbour = (name + 1) % static_cast<int>(threads);
			for (size_t n = 0; n < count; n++)
				made[i].push_back(n % 2 == 0 ? s.make(name) : mine.make(name));
			here.meet();
			size_t wrong = 0;
			for (size_t n = 0; n < count; n++) {
				witness *w = made[static_cast<size_t>(neighbour)][n];
				wrong += w->id != neighbour;
				if (n % 3 == 0)
					mine.destroy(w);
				else
					s.destroy(w);
			}
			EXPECT_EQ(wrong, 0u);
			here.meet();
			made[i].clear();
		}
		s.flush();
	});
	EXPECT_EQ(witness::built, threads * count * 5);
	EXPECT_EQ(s.in_use(), 0u);
	EXPECT_TRUE(s.verify());
	s.trim();
	EXPECT_EQ(s.stats().chunk_count, 0u);
}

TEST_F(any_thread, flush_gives_free_slots_to_the_others) {
	shared_slab<witness> s;
	s.destroy(s.make());
	s.flush();
	in_thread([&] {
		s.trim();
		EXPECT_EQ(s.stats().chunk_count, 0u) << "nothing that the first thread kept";
	});
}

TEST_F(any_thread, reserve_takes_chunks_ahead) {
	slab<witness> s;
	s.reserve(1000);
	size_t before = s.stats().committed_bytes;
	std::vector<witness *> made;
	for (int i = 0; i < 1000; i++)
		made.push_back(s.make());
	EXPECT_EQ(s.stats().committed_bytes, before);
	for (witness *w : made)
		s.destroy(w);
	EXPECT_THROW(s.reserve(SIZE_MAX), std::bad_alloc);
}

}
