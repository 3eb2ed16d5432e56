/* arena.hpp: objects with destructors, and the state after an exception. */
#include "ledger.h"
#include "witness.h"

#include <tenure/arena.hpp>

#include <cwchar>

namespace {

using tenure::arena;
using tenure::arena_options;

class typed_arena : public witnessed {};

size_t live_bytes(const arena &a) {
	return a.stats().live_bytes;
}

/* Construction. */

TEST_F(typed_arena, takes_a_name_or_options) {
	EXPECT_STREQ(arena().stats().name, "arena");
	EXPECT_STREQ(arena("level").stats().name, "level");
	arena_options options{};
	options.name = "frame";
	options.limit_bytes = 64 * kib;
	arena a(options);
	EXPECT_STREQ(a.stats().name, "frame");
	EXPECT_THROW(
		{
			for (size_t i = 0; i < 100; i++)
				(void)a.alloc(kib);
		},
		std::bad_alloc);
}

TEST_F(typed_arena, bad_options_are_an_invalid_argument) {
	arena_options options{};
	char buffer[100];
	options.buffer = buffer;
	options.buffer_bytes = sizeof buffer;
	options.reserve_bytes = mib;
	EXPECT_THROW(arena a(options), std::invalid_argument);
}

TEST_F(typed_arena, a_source_that_refuses_is_a_bad_alloc) {
	ledger books;
	books.fail(1, ledger::never);
	arena_options options{};
	options.source = books.source();
	EXPECT_THROW(arena a(options), std::bad_alloc);
}

/* make. */

TEST_F(typed_arena, make_passes_its_arguments_on) {
	struct several {
		several(std::unique_ptr<int> p, const std::string &s, int &r)
			: owned(std::move(p)), text(s), seen(r) {
			r++;
		}
		std::unique_ptr<int> owned;
		std::string text;
		int &seen;
	};
	arena a;
	int calls = 6;
	auto *made = a.make<several>(std::make_unique<int>(5), "too long a text to lie in a string", calls);
	EXPECT_EQ(*made->owned, 5);
	EXPECT_EQ(made->text.size(), 34u);
	EXPECT_EQ(&made->seen, &calls);
	EXPECT_EQ(calls, 7);
	EXPECT_EQ(*a.make<int>(), 0) << "value-initialised";
}

TEST_F(typed_arena, destructors_run_at_the_end_newest_first) {
	{
		arena a;
		for (int i = 1; i <= 5; i++)
			EXPECT_EQ(a.make<noted>(i)->id, i);
		EXPECT_EQ(witness::alive, 5u);
	}
	EXPECT_EQ(ended(), (ids{5, 4, 3, 2, 1}));
}

TEST_F(typed_arena, reset_runs_destructors_once) {
	arena a;
	for (int round = 0; round < 3; round++) {
		a.make<noted>(1);
		a.make<noted>(2);
		a.reset();
		EXPECT_EQ(ended(), (ids{2, 1}));
		EXPECT_EQ(live_bytes(a), 0u);
	}
	a.reset();
	EXPECT_EQ(ended(), ids{});
	EXPECT_EQ(a.stats().resets, 4u);
}

TEST_F(typed_arena, rewind_runs_the_younger_ones) {
	arena a;
	a.make<noted>(1);
	arena::checkpoint outer = a.mark();
	a.make<noted>(2);
	arena::checkpoint inner = a.mark();
	a.make<noted>(3);
	a.make<noted>(4);
	a.rewind(inner);
	EXPECT_EQ(ended(), (ids{4, 3}));
	a.rewind(inner);
	EXPECT_EQ(ended(), ids{}) << "the checkpoint stays valid";
	a.make<noted>(5);
	a.rewind(outer);
	EXPECT_EQ(ended(), (ids{5, 2}));
	a.reset();
	EXPECT_EQ(ended(), ids{1});
}

TEST_F(typed_arena, rewind_crosses_chunks) {
	arena a;
	a.make<noted>(1);
	size_t before = live_bytes(a);
	arena::checkpoint begin = a.mark();
	for (int i = 0; i < 100; i++) {
		(void)a.alloc(10 * kib);
		a.make<noted>(i);
	}
	(void)a.alloc(3 * mib);
	a.rewind(begin);
	EXPECT_EQ(ended().size(), 100u);
	EXPECT_EQ(live_bytes(a), before);
	EXPECT_TRUE(a.verify());
}

TEST_F(typed_arena, a_savepoint_rewinds_at_the_end_of_its_scope) {
	arena a;
	a.make<noted>(1);
	size_t before = live_bytes(a);
	{
		arena::savepoint frame(a);
		a.make<noted>(2);
		{
			arena::savepoint call(a);
			a.make<noted>(3);
		}
		EXPECT_EQ(ended(), ids{3});
		a.make<noted>(4);
	}
	EXPECT_EQ(ended(), (ids{4, 2}));
	EXPECT_EQ(live_bytes(a), before);
	EXPECT_THROW(
		{
			arena::savepoint attempt(a);
			a.make<noted>(5);
			throw out_of_clay{};
		},
		out_of_clay);
	EXPECT_EQ(ended(), ids{5});
	EXPECT_EQ(live_bytes(a), before);
}

/* Builds another one in its destructor, `left` times. */
struct phoenix : noted {
	phoenix(arena &where, int count) : noted(count), nest(where), left(count) {
	}
	~phoenix() {
		if (left > 0)
			nest.make<phoenix>(nest, left - 1);
	}
	arena &nest;
	int left;
};

TEST_F(typed_arena, what_destructors_build_is_destroyed_too) {
	{
		arena a;
		a.make<noted>(100);
		arena::checkpoint begin = a.mark();
		a.make<phoenix>(a, 3);
		a.rewind(begin);
		EXPECT_EQ(ended(), (ids{3, 2, 1, 0}));
		a.make<phoenix>(a, 2);
		a.reset();
		EXPECT_EQ(ended(), (ids{2, 1, 0, 100}));
		EXPECT_EQ(live_bytes(a), 0u);
		a.make<phoenix>(a, 1);
	}
	EXPECT_EQ(ended(), (ids{1, 0}));
}

TEST_F(typed_arena, what_constructors_build_outlives_them) {
	struct parent : noted {
		explicit parent(arena &a) : noted(1), child(a.make<noted>(2)) {
		}
		noted *child;
	};
	arena a;
	EXPECT_EQ(a.make<parent>(a)->child->id, 2);
	a.reset();
	EXPECT_EQ(ended(), (ids{1, 2}));
}

/* make_array. */

TEST_F(typed_arena, arrays_are_value_initialised_and_go_in_reverse) {
	arena a;
	/* The memory was used before. */
	fill(a.alloc(4 * kib), 4 * kib, 1);
	a.reset();
	int *numbers = a.make_array<int>(1000);
	EXPECT_TRUE(all_bytes(numbers, 1000 * sizeof(int), 0));
	noted *elements = a.make_array<noted>(4);
	for (int i = 0; i < 4; i++)
		EXPECT_EQ(elements[i].id, i + 1);
	a.make<noted>(5);
	a.reset();
	EXPECT_EQ(ended(), (ids{5, 4, 3, 2, 1}));
}

TEST_F(typed_arena, arrays_of_no_elements) {
	arena a;
	noted *none = a.make_array<noted>(0);
	EXPECT_NE(none, nullptr);
	EXPECT_NE(a.make_array<int>(0), a.make_array<int>(0));
	EXPECT_NE(static_cast<void *>(none), a.make_array<noted>(0));
	a.reset();
	EXPECT_EQ(ended(), ids{});
}

template <typename T> void expect_length_error(arena &a) {
	for (size_t back = 0; back < 3; back++) {
		EXPECT_THROW(a.make_array<T>(SIZE_MAX - back), std::bad_array_new_length);
		EXPECT_THROW(a.make_array<T>(SIZE_MAX / sizeof(T) + 1 + back), std::bad_array_new_length);
		EXPECT_THROW(a.make_array<T>(PTRDIFF_MAX / sizeof(T) + 1 + back), std::bad_array_new_length);
		EXPECT_THROW(a.make_array<T>(PTRDIFF_MAX / sizeof(T) - back), std::bad_alloc);
	}
}

TEST_F(typed_arena, arrays_that_cannot_be) {
	arena a;
	a.make<noted>(1);
	std::string before = lasting(a.stats());
	expect_length_error<int>(a);
	expect_length_error<noted>(a);
	expect_length_error<std::string>(a);
	EXPECT_EQ(lasting(a.stats()), before);
	EXPECT_EQ(witness::built, 1u);
	EXPECT_EQ(a.make_array<noted>(3)[2].id, 4) << "still of use";
}

/* Alignment. */

template <size_t align, typename T> struct alignas(align) aligned : T {
	char more[3] = {1, 2, 3};
};
struct nothing {};

template <size_t align> void expect_alignment(arena &a) {
	for (int i = 0; i < 3; i++) {
		(void)a.alloc(1, 1);
		EXPECT_TRUE(aligned_to((a.make<aligned<align, nothing>>()), align));
		(void)a.alloc(1, 1);
		EXPECT_TRUE(aligned_to((a.make<aligned<align, witness>>()), align));
		(void)a.alloc(1, 1);
		EXPECT_TRUE(aligned_to((a.make_array<aligned<align, nothing>>(3)), align));
		(void)a.alloc(1, 1);
		auto *array = a.make_array<aligned<align, witness>>(3);
		EXPECT_TRUE(aligned_to(array, align));
		EXPECT_EQ(array[2].more[2], 3);
	}
}

TEST_F(typed_arena, over_aligned_types_are_aligned) {
	arena a;
	expect_alignment<8>(a);
	expect_alignment<16>(a);
	expect_alignment<32>(a);
	expect_alignment<64>(a);
	expect_alignment<4096>(a);
	expect_alignment<65536>(a);
	EXPECT_TRUE(a.verify());
}

/* Costs. */

TEST_F(typed_arena, types_without_a_destructor_cost_not_a_byte) {
	struct plain {
		double x, y, z;
	};
	arena typed, raw;
	for (int i = 0; i < 1000; i++) {
		typed.make<plain>();
		(void)raw.alloc(sizeof(plain), alignof(plain));
		typed.make<char>('x');
		(void)raw.alloc(1, 1);
		typed.make_array<plain>(3);
		(void)raw.alloc(3 * sizeof(plain), alignof(plain));
	}
	EXPECT_EQ(typed.stats().live_bytes, raw.stats().live_bytes);
	EXPECT_EQ(typed.stats().committed_bytes, raw.stats().committed_bytes);
}

TEST_F(typed_arena, a_destructor_costs_two_pointers) {
	struct wide : witness {
		char bytes[60];
	};
	arena typed, raw;
	for (int i = 0; i < 1000; i++) {
		typed.make<wide>();
		(void)raw.alloc(sizeof(wide) + 2 * sizeof(void *), alignof(void *));
		typed.make_array<wide>(5);
		(void)raw.alloc(5 * sizeof(wide) + 3 * sizeof(void *), alignof(void *));
	}
	EXPECT_EQ(typed.stats().live_bytes, raw.stats().live_bytes);
}

/* Constructors that throw. */

template <typename T> struct heavy : T {
	using T::T;
	char bytes[5000] = {};
};

/* Has no destructor to run, but throws. */
struct refusing {
	refusing() {
		throw out_of_clay{};
	}
};

TEST_F(typed_arena, a_constructor_that_throws_loses_nothing) {
	arena a;
	a.make<noted>(1);
	size_t before = live_bytes(a);
	for (int i = 0; i < 50; i++) {
		throw_in(1);
		EXPECT_THROW(a.make<heavy<noted>>(), out_of_clay);
		EXPECT_THROW(a.make<heavy<refusing>>(), out_of_clay);
		EXPECT_EQ(ended(), ids{});
	}
	/* Sixteen bytes each time, and debug's guard around a block. */
	EXPECT_LE(live_bytes(a), before + 100 * (debug_mode ? 200 : 16));
	EXPECT_TRUE(a.verify());
	a.make<noted>(2);
	a.reset();
	EXPECT_EQ(ended(), (ids{2, 1}));
}

TEST_F(typed_arena, an_element_that_throws_takes_those_before_it_along) {
	arena a;
	a.make<noted>(1);
	size_t before = live_bytes(a);
	size_t tries = 0;
	for (size_t k = 1; k <= 10; k++, tries += 2) {
		throw_in(k);
		EXPECT_THROW(a.make_array<heavy<witness>>(10), out_of_clay);
		EXPECT_EQ(witness::alive, 1u);
		throw_in(k);
		EXPECT_THROW(a.make_array<noted>(10), out_of_clay);
		EXPECT_EQ(ended().size(), k - 1);
	}
	EXPECT_LE(live_bytes(a), before + tries * (debug_mode ? 200 : 16));
	EXPECT_TRUE(a.verify());
	a.reset();
	EXPECT_EQ(ended(), ids{1});
}

TEST_F(typed_arena, what_a_throwing_constructor_built_stays_the_arenas) {
	struct torn : witness {
		explicit torn(arena &a) {
			a.make<noted>(7);
			throw out_of_clay{};
		}
	};
	arena a;
	EXPECT_THROW(a.make<torn>(a), out_of_clay);
	EXPECT_EQ(witness::alive, 1u);
	a.reset();
	EXPECT_EQ(ended(), ids{7});
}

TEST_F(typed_arena, refused_memory_builds_nothing) {
	arena_options options{};
	options.limit_bytes = 64 * kib;
	arena a(options);
	a.make<noted>(1);
	std::string before = lasting(a.stats());
	EXPECT_THROW(a.make_array<noted>(100 * kib), std::bad_alloc);
	EXPECT_THROW(a.make_array<int>(100 * kib), std::bad_alloc);
	struct huge : noted {
		char bytes[100 * kib];
	};
	EXPECT_THROW(a.make<huge>(), std::bad_alloc);
	EXPECT_EQ(lasting(a.stats()), before);
	EXPECT_EQ(witness::built, 1u);
	EXPECT_EQ(a.make<noted>(2)->id, 2);
}

/* Blocks and text. */

TEST_F(typed_arena, blocks_resize_and_move) {
	arena a;
	for (size_t align : {size_t{3}, TN_ALIGN_MAX * 2})
		EXPECT_THROW((void)a.alloc(1, align), std::invalid_argument);
	EXPECT_THROW((void)a.alloc(SIZE_MAX), std::bad_alloc);
	void *p = a.alloc(100);
	fill(p, 100, 1);
	EXPECT_TRUE(a.resize(p, 100, 50));
	void *q = a.alloc(10);
	EXPECT_FALSE(a.resize(p, 50, 5000)) << "it is not the last one";
	void *moved = a.realloc(p, 50, 5000, 64);
	EXPECT_NE(moved, p);
	EXPECT_TRUE(aligned_to(moved, 64));
	EXPECT_TRUE(filled(moved, 50, 1));
	EXPECT_THROW((void)a.realloc(moved, 5000, SIZE_MAX), std::bad_alloc);
	EXPECT_TRUE(filled(moved, 50, 1)) << "unchanged";
	EXPECT_TRUE(a.owns(q));
	EXPECT_FALSE(a.owns(&a));
	EXPECT_FALSE(a.owns(nullptr));
}

TEST_F(typed_arena, copies_bytes_and_text) {
	arena a;
	char bytes[1000];
	fill(bytes, sizeof bytes, 3);
	EXPECT_TRUE(filled(a.copy(bytes, sizeof bytes), sizeof bytes, 3));
	std::string text = "of an arena";
	std::string_view copy = a.copy(text);
	EXPECT_NE(copy.data(), text.data());
	text.assign(text.size(), 'x');
	EXPECT_EQ(copy, "of an arena");
	EXPECT_TRUE(a.owns(copy.data()));
	EXPECT_EQ(a.copy(std::string_view()), "");
}

TEST_F(typed_arena, prints_text_of_any_length) {
	arena a;
	EXPECT_STREQ(a.printf("%d of %s", 3, "five"), "3 of five");
	EXPECT_STREQ(a.printf("%s", ""), "");
	std::string longest(100 * kib, 'y');
	char *printed = a.printf("<%s>", longest.c_str());
	EXPECT_EQ(printed, "<" + longest + ">");
	size_t before = live_bytes(a);
	EXPECT_THROW(a.printf("%lc", static_cast<std::wint_t>(0xd800)), std::invalid_argument);
	EXPECT_EQ(live_bytes(a), before);
}

TEST_F(typed_arena, trim_keeps_what_is_alive) {
	arena a;
	a.make<noted>(1);
	arena::checkpoint begin = a.mark();
	(void)a.alloc(mib);
	for (int i = 0; i < 1000; i++)
		(void)a.alloc(kib);
	a.rewind(begin);
	size_t committed = a.stats().committed_bytes;
	size_t given_back = a.trim();
	/* Debug gave them back in rewind. */
	if (!debug_mode) {
		EXPECT_GT(given_back, 0u);
	}
	EXPECT_EQ(a.stats().committed_bytes, committed - given_back);
	EXPECT_EQ(a.trim(), 0u);
	EXPECT_EQ(ended(), ids{});
}

/* Moving. */

TEST_F(typed_arena, moving_takes_the_objects_along) {
	arena a("from");
	noted *object = a.make<noted>(1);
	arena b(std::move(a));
	EXPECT_EQ(a.get(), nullptr);
	EXPECT_TRUE(b.owns(object));
	EXPECT_STREQ(b.stats().name, "from");
	EXPECT_EQ(ended(), ids{});
	b.make<noted>(2);
	b.reset();
	EXPECT_EQ(ended(), (ids{2, 1}));
}

TEST_F(typed_arena, assigning_ends_what_was_there) {
	{
		arena a, b;
		a.make<noted>(1);
		b.make<noted>(2);
		b = std::move(a);
		EXPECT_EQ(ended(), ids{2});
		b.make<noted>(3);
		/* A moved-from arena can be destroyed and assigned to. */
		a = arena("again");
		a.make<noted>(4);
		a = std::move(b);
		EXPECT_EQ(ended(), ids{4});
		b = std::move(a);
		a = std::move(b);
	}
	EXPECT_EQ(ended(), (ids{3, 1}));
}

TEST_F(typed_arena, destructors_that_build_while_their_arena_is_replaced) {
	arena a, b;
	b.make<noted>(9);
	a.make<phoenix>(a, 2);
	/* The nest is `a`, which by then has the contents of `b`. */
	a = std::move(b);
	EXPECT_EQ(ended(), ids{2});
	a.reset();
	EXPECT_EQ(ended(), (ids{1, 0, 9}));
}

TEST_F(typed_arena, moves_are_pointers_only) {
	EXPECT_FALSE(std::is_copy_constructible_v<arena>);
	EXPECT_TRUE(std::is_nothrow_move_constructible_v<arena>);
	EXPECT_TRUE(std::is_nothrow_move_assignable_v<arena>);
	EXPECT_EQ(sizeof(arena), 2 * sizeof(void *));
	std::vector<arena> many;
	for (int i = 0; i < 20; i++)
		many.emplace_back().make<noted>(i);
	many.erase(many.begin());
	EXPECT_EQ(ended(), ids{0});
	many.clear();
	EXPECT_EQ(ended().size(), 19u);
}

}
