/* scope.h, contract by contract, on one thread. Limits and adopt: test_limits.cpp. */
#include "use.h"

#include "ledger.h"

#include <sstream>

namespace test_scope {
namespace {

tn_scope_options from_books(const ledger &books) {
	tn_scope_options options = {};
	options.source = books.source();
	return options;
}

/* ---- creation ---- */

TEST(scope, starts_empty) {
	scope_owner root = make_scope("root");
	ASSERT_NE(root, nullptr);
	tn_stats stats = stats_of(root.get());
	EXPECT_EQ(to_text(stats),
		"root live_bytes=0 live_count=0 cached_bytes=0 reserved_bytes=0 committed_bytes=0 "
		"peak_bytes=0 chunk_count=0 partial_count=0 refills=0 resets=0 external_bytes=0");
	EXPECT_EQ(to_text(stats_below(root.get())), to_text(stats));
	EXPECT_EQ(tn_scope_parent(root.get()), nullptr);
	EXPECT_TRUE(children_of(root.get()).empty());
	EXPECT_FALSE(tn_scope_owns(root.get(), root.get()));
	EXPECT_EQ(tn_scope_trim(root.get()), 0u);
	tn_scope_reset(root.get());
	EXPECT_TRUE(tn_scope_verify(root.get()));
}

TEST(scope, null_is_a_no_op) {
	tn_scope_destroy(nullptr);
}

TEST(scope, names_and_idents_are_copied_and_cut) {
	char name[] = "0123456789012345678901234567890123456789";
	char ident[101] = {};
	std::memset(ident, 'i', 100);
	tn_scope_options options = {};
	options.ident = ident;
	scope_owner root = make_scope(name, options);
	tn_scope *child = create_below(root.get());
	std::memset(name, 'x', sizeof name - 1);
	std::memset(ident, 'x', sizeof ident - 1);
	EXPECT_STREQ(stats_of(root.get()).name, "0123456789012345678901234567890");
	EXPECT_STREQ(stats_of(child).name, "scope");
	std::vector<tn_listed> all = snapshot();
	const tn_listed *listed = find_listed(all, "0123456789012345678901234567890");
	ASSERT_NE(listed, nullptr);
	EXPECT_EQ(std::string(listed->ident), std::string(TN_IDENT_BYTES, 'i'));
	EXPECT_STREQ(find_listed(all, "scope")->ident, "");
}

/* A reused record shows nothing of its former scope. */
TEST(scope, a_new_scope_has_nothing_of_an_old_one) {
	scope_owner root = make_scope("root");
	tn_scope_options options = {};
	options.ident = "old ident that is long enough for several words";
	for (int i = 0; i < 3000; i++) {
		tn_scope *s = create_below(root.get(), "old name", options);
		tn_scope_alloc(s, 100, 8);
		ASSERT_TRUE(tn_scope_external(s, 77));
		tn_scope_reset(s);
		tn_scope_destroy(s);
		tn_scope *next = create_below(root.get(), i % 2 == 0 ? nullptr : "n");
		tn_stats stats = stats_of(next);
		ASSERT_STREQ(stats.name, i % 2 == 0 ? "scope" : "n");
		ASSERT_EQ(stats.peak_bytes + stats.refills + stats.resets + stats.external_bytes, 0u);
		ASSERT_TRUE(i % 100 != 0 || find_listed(snapshot(), stats.name)->ident[0] == '\0');
		tn_scope_destroy(next);
	}
}

TEST(scope, create_refuses_what_cannot_be) {
	ledger books;
	scope_owner root = make_scope("root");
	tn_scope_options shared = {}, sourced = from_books(books), half = {}, shrinks = {}, huge = {};
	shared.shared = true;
	EXPECT_REFUSED(create_below(root.get(), "s", shared), EINVAL);
	EXPECT_REFUSED(create_below(root.get(), "s", sourced), EINVAL);
	tn_source no_release = *books.source();
	no_release.release = nullptr;
	half.source = &no_release;
	EXPECT_REFUSED(make_scope("s", half), EINVAL);
	shrinks.chunk_bytes = 64 * kib;
	shrinks.chunk_bytes_max = 32 * kib;
	EXPECT_REFUSED(make_scope("s", shrinks), EINVAL);
	EXPECT_REFUSED(create_below(root.get(), "s", shrinks), EINVAL);
	huge.chunk_bytes = SIZE_MAX - 1;
	EXPECT_REFUSED(make_scope("s", huge), EINVAL);
	EXPECT_REFUSED(create_below(root.get(), "s", huge), EINVAL);
	EXPECT_TRUE(children_of(root.get()).empty());
	EXPECT_EQ(snapshot().size(), 2u);
	EXPECT_EQ(books.calls(), 0u);
}

/* ---- memory ---- */

TEST(scope, chunks_are_as_the_options_say) {
	ledger books;
	tn_scope_options options = from_books(books);
	options.chunk_bytes = 8 * kib;
	options.chunk_bytes_max = 32 * kib;
	scope_owner root = make_scope("root", options);
	EXPECT_EQ(books.calls(), 0u);
	for (int i = 0; i < 1000; i++)
		ASSERT_NE(tn_scope_alloc(root.get(), 100, 8), nullptr);
	ASSERT_GE(books.sizes().size(), 4u);
	EXPECT_EQ(books.sizes()[0], 8 * kib);
	EXPECT_EQ(books.sizes()[1], 16 * kib);
	EXPECT_EQ(books.sizes()[2], 32 * kib);
	EXPECT_EQ(books.sizes()[3], 32 * kib);
	size_t before = books.sizes().size();
	tn_scope_options flat = {};
	flat.chunk_bytes_max = TN_NONE;
	tn_scope *child = create_below(root.get(), "child", flat);
	for (int i = 0; i < 1000; i++)
		ASSERT_NE(tn_scope_alloc(child, 100, 8), nullptr);
	for (size_t i = before; i < books.sizes().size(); i++)
		EXPECT_EQ(books.sizes()[i], 16 * kib);
}

TEST(scope, alloc_of_every_size_and_alignment) {
	scope_owner root = make_scope("root");
	std::vector<std::pair<char *, size_t>> blocks;
	for (size_t size : {size_t{0}, size_t{1}, size_t{9}, size_t{100}, 5 * kib, 40 * kib})
		for (size_t align = 1; align <= TN_ALIGN_MAX; align *= 4) {
			char *p = static_cast<char *>(tn_scope_alloc(root.get(), size, align));
			ASSERT_TRUE(p != nullptr && aligned_to(p, align)) << size << " at " << align;
			fill(p, size, blocks.size());
			blocks.push_back({p, size});
		}
	EXPECT_TRUE(aligned_to(tn_scope_alloc(root.get(), 1, 0), 16));
	for (size_t i = 0; i < blocks.size(); i++) {
		EXPECT_TRUE(filled(blocks[i].first, blocks[i].second, i));
		EXPECT_TRUE(tn_scope_owns(root.get(), blocks[i].first));
	}
	EXPECT_REFUSED(tn_scope_alloc(root.get(), 8, 3), EINVAL);
	EXPECT_REFUSED(tn_scope_alloc(root.get(), 8, 2 * TN_ALIGN_MAX), EINVAL);
	EXPECT_REFUSED(tn_scope_alloc(root.get(), SIZE_MAX, 1), ENOMEM);
	EXPECT_TRUE(tn_scope_verify(root.get()));
}

TEST(scope, copy_and_printf) {
	scope_owner root = make_scope("root");
	char text[] = "some text";
	char *copy = static_cast<char *>(tn_scope_copy(root.get(), text, sizeof text));
	text[0] = 'x';
	EXPECT_STREQ(copy, "some text");
	EXPECT_NE(tn_scope_copy(root.get(), nullptr, 0), nullptr);
	EXPECT_STREQ(tn_scope_printf(root.get(), "%d of %s", 7, "nine"), "7 of nine");
	std::string wide(20000, ' ');
	EXPECT_EQ(tn_scope_printf(root.get(), "%*s", 20000, ""), wide);
	EXPECT_REFUSED(tn_scope_copy(root.get(), text, SIZE_MAX), ENOMEM);
	const wchar_t unprintable[] = {static_cast<wchar_t>(0x7fffffff), 0};
	errno = 0;
	EXPECT_EQ(tn_scope_printf(root.get(), "%ls", unprintable), nullptr);
	EXPECT_EQ(errno, EINVAL);
}

TEST(scope, owns_its_own_blocks_only) {
	scope_owner root = make_scope("root");
	tn_scope *child = create_below(root.get());
	char *mine = static_cast<char *>(tn_scope_alloc(root.get(), 100, 8));
	char *its = static_cast<char *>(tn_scope_alloc(child, 100, 8));
	int on_stack = 0;
	EXPECT_TRUE(tn_scope_owns(root.get(), mine) && tn_scope_owns(root.get(), mine + 99));
	EXPECT_TRUE(tn_scope_owns(child, its));
	EXPECT_FALSE(tn_scope_owns(root.get(), its) || tn_scope_owns(child, mine));
	EXPECT_FALSE(tn_scope_owns(root.get(), &on_stack) || tn_scope_owns(root.get(), nullptr));
	tn_scope_reset(root.get());
	EXPECT_FALSE(tn_scope_owns(root.get(), mine));
}

/* ---- the tree ---- */

TEST(scope, each_and_parent) {
	scope_owner root = make_scope("root");
	std::vector<tn_scope *> made;
	for (int i = 0; i < 5; i++)
		made.push_back(create_below(root.get()));
	tn_scope *grandchild = create_below(made[2]);
	EXPECT_EQ(tn_scope_parent(grandchild), made[2]);
	EXPECT_EQ(tn_scope_parent(made[2]), root.get());
	std::vector<tn_scope *> newest_first(made.rbegin(), made.rend());
	EXPECT_EQ(children_of(root.get()), newest_first);
	tn_scope_destroy(made[0]), tn_scope_destroy(made[2]), tn_scope_destroy(made[4]);
	EXPECT_EQ(children_of(root.get()), (std::vector<tn_scope *>{made[3], made[1]}));
	EXPECT_TRUE(tn_scope_verify(root.get()));
	tn_scope_reset(root.get());
	EXPECT_TRUE(children_of(root.get()).empty());
}

TEST(scope, everything_goes_back) {
	ledger books;
	for (bool reset : {false, true}) {
		scope_owner root = make_scope("root", from_books(books));
		std::vector<tn_scope *> all = {root.get()};
		for (size_t i = 0; i < 100; i++) {
			all.push_back(create_below(all[i * 7 % all.size()]));
			tn_scope_alloc(all.back(), 100 * i, 16);
			tn_scope_arena(all.back(), nullptr);
			tn_slab_alloc(tn_scope_slab(all.back(), 64, 0, nullptr));
		}
		EXPECT_TRUE(tn_scope_verify(root.get()));
		EXPECT_EQ(stats_below(root.get()).committed_bytes, books.held_bytes());
		EXPECT_EQ(stats_of(root.get()).committed_bytes, 0u);
		if (reset) {
			tn_scope_reset(root.get());
			EXPECT_EQ(books.held_count(), 0u);
		}
	}
	EXPECT_EQ(books.held_count(), 0u);
}

/* ---- ends ---- */

TEST(scope, ends_children_newest_first_and_deferred_calls_last_in_first_out) {
	deferrals calls;
	std::string order;
	auto defer = [&](tn_scope *s, const char *what) {
		ASSERT_TRUE(calls.on(s, [&order, what] { order += what; }));
	};
	for (bool reset : {false, true}) {
		order.clear();
		scope_owner root = make_scope("root");
		tn_scope *a = create_below(root.get()), *b = create_below(root.get());
		tn_scope *b1 = create_below(b), *b2 = create_below(b), *a1 = create_below(a);
		defer(root.get(), "1"), defer(root.get(), "2"), defer(a, "a"), defer(b, "b"), defer(b, "B");
		defer(b1, "c"), defer(b2, "d"), defer(a1, "e"), defer(root.get(), "3");
		if (reset) {
			tn_scope_reset(root.get());
			EXPECT_EQ(order, "dcBbea321");
		}
		root.reset();
		EXPECT_EQ(order, "dcBbea321");
	}
	EXPECT_TRUE(calls.all_ran(1));
}

TEST(scope, undefer_takes_back_the_newest) {
	deferrals calls;
	std::string order;
	auto &x = calls.add([&] { order += "x"; });
	auto &y = calls.add([&] { order += "y"; });
	scope_owner root = make_scope("root");
	auto defer = [&](deferrals::call &c) { ASSERT_TRUE(tn_scope_defer(root.get(), calls.run, &c)); };
	auto undefer = [&](deferrals::call &c) { return tn_scope_undefer(root.get(), calls.run, &c); };
	EXPECT_FALSE(undefer(x));
	defer(x), defer(y), defer(x), defer(y), defer(y);
	EXPECT_TRUE(undefer(x)); /* x y y y */
	EXPECT_TRUE(undefer(y)); /* x y y */
	EXPECT_FALSE(tn_scope_undefer(root.get(), std::free, &x));
	EXPECT_TRUE(undefer(y)); /* x y */
	defer(x);                /* x y x */
	tn_scope_reset(root.get());
	EXPECT_EQ(order, "xyx");
	EXPECT_FALSE(undefer(x) || undefer(y));
	defer(y), defer(x);
	EXPECT_TRUE(undefer(y) && undefer(x));
	EXPECT_FALSE(undefer(x));
	root.reset();
	EXPECT_EQ(order, "xyx");
}

TEST(scope, defer_refuses_what_cannot_be) {
	ledger books;
	scope_owner root = make_scope("root", from_books(books));
	EXPECT_REFUSED(tn_scope_defer(root.get(), nullptr, nullptr), EINVAL);
	books.fail(1, 1);
	EXPECT_REFUSED(tn_scope_defer(root.get(), std::free, nullptr), ENOMEM);
	EXPECT_FALSE(tn_scope_undefer(root.get(), std::free, nullptr));
	EXPECT_TRUE(tn_scope_defer(root.get(), std::free, nullptr));
}

TEST(scope, a_deferred_call_may_use_the_memory_of_its_scope) {
	deferrals calls;
	scope_owner root = make_scope("root");
	char *p = static_cast<char *>(tn_scope_alloc(root.get(), 100, 8));
	tn_slab *slab = tn_scope_slab(root.get(), 64, 0, nullptr);
	fill(p, 100, 1);
	calls.on(root.get(), [&, s = root.get()] {
		EXPECT_TRUE(filled(p, 100, 1));
		EXPECT_TRUE(tn_scope_owns(s, p));
		EXPECT_STREQ(tn_scope_printf(s, "%d", 5), "5");
		fill(tn_scope_alloc(s, 100000, 64), 100000, 2);
		EXPECT_NE(tn_slab_alloc(slab), nullptr);
		EXPECT_TRUE(tn_scope_external(s, 1000));
		EXPECT_EQ(stats_of(s).external_bytes, 1000u);
	});
	tn_scope_reset(root.get());
	EXPECT_EQ(stats_of(root.get()).external_bytes, 0u);
	EXPECT_TRUE(tn_scope_verify(root.get()));
	root.reset();
	EXPECT_TRUE(calls.all_ran(1));
}

TEST(scope, nothing_is_added_to_what_is_ending) {
	deferrals calls;
	for (bool reset : {false, true}) {
		scope_owner root = make_scope("root"), other = make_scope("other");
		tn_scope *parent = create_below(root.get()), *child = create_below(parent);
		tn_scope *guest = create_below(other.get());
		auto refuse = [&](tn_scope *s) {
			EXPECT_REFUSED(create_below(s), EINVAL);
			EXPECT_REFUSED(tn_scope_defer(s, std::free, nullptr), EINVAL);
			EXPECT_REFUSED(tn_scope_adopt(guest, s), EINVAL);
			EXPECT_REFUSED(tn_scope_arena(s, nullptr), EINVAL);
			EXPECT_REFUSED(tn_scope_slab(s, 16, 0, nullptr), EINVAL);
			EXPECT_REFUSED(tn_scope_heap(s, nullptr), EINVAL);
			EXPECT_REFUSED(tn_scope_adopt(s, other.get()), EINVAL);
		};
		calls.on(child, [&] { refuse(child), refuse(parent); });
		calls.on(parent, [&] { refuse(parent); });
		reset ? tn_scope_reset(parent) : tn_scope_destroy(parent);
		EXPECT_TRUE(children_of(other.get()) == std::vector<tn_scope *>{guest});
		EXPECT_NE(create_below(root.get()), nullptr);
	}
	EXPECT_TRUE(calls.all_ran(1));
}

TEST(scope, deferred_calls_create_and_destroy_others) {
	deferrals calls;
	scope_owner root = make_scope("root"), elsewhere = make_scope("elsewhere");
	tn_scope *parent = create_below(root.get()), *uncle = create_below(root.get());
	tn_scope *cousin = create_below(uncle), *sibling = create_below(parent);
	tn_scope *own_child_of_sibling = create_below(sibling), *child = create_below(parent);
	std::string order;
	for (tn_scope *s : {uncle, cousin, sibling, own_child_of_sibling})
		calls.on(s, [&order] { order += "o"; });
	calls.on(child, [&] {
		order += "(";
		tn_scope_destroy(sibling);
		tn_scope_destroy(uncle);
		tn_scope *temporary = make_scope("temporary").release();
		tn_scope *below = create_below(temporary);
		calls.on(below, [&order] { order += "t"; });
		tn_scope_destroy(temporary);
		create_below(elsewhere.get(), "made by a deferred call");
		order += ")";
	});
	calls.on(parent, [&] { order += "p"; });
	tn_scope_destroy(parent);
	EXPECT_EQ(order, "(oooot)p");
	EXPECT_TRUE(children_of(root.get()).empty());
	EXPECT_EQ(children_of(elsewhere.get()).size(), 1u);
	EXPECT_TRUE(tn_scope_verify(root.get()) && tn_scope_verify(elsewhere.get()));
	EXPECT_TRUE(calls.all_ran(1));
}

TEST(scope, a_deferred_call_that_ends_its_own_scope_or_one_that_is_ending_does_nothing) {
	deferrals calls;
	scope_owner root = make_scope("root");
	tn_scope *parent = create_below(root.get()), *child = create_below(parent);
	auto end_both = [&] {
		tn_scope_destroy(child), tn_scope_reset(child);
		tn_scope_destroy(parent), tn_scope_reset(parent);
	};
	calls.on(child, end_both);
	calls.on(parent, [&] { tn_scope_destroy(parent), tn_scope_reset(parent); });
	tn_scope_reset(parent);
	calls.on(parent, [&] { tn_scope_destroy(parent), tn_scope_reset(parent); });
	child = create_below(parent);
	calls.on(child, end_both);
	tn_scope_destroy(parent);
	EXPECT_TRUE(calls.all_ran(1));
	EXPECT_TRUE(children_of(root.get()).empty());
}

/* A deferred call rescues a scope that would have ended next. */
TEST(scope, a_deferred_call_gives_a_sibling_away) {
	deferrals calls;
	scope_owner root = make_scope("root"), other = make_scope("other");
	tn_scope *parent = create_below(root.get()), *saved = create_below(parent);
	tn_scope *last = create_below(parent);
	calls.on(last, [&] { EXPECT_TRUE(tn_scope_adopt(saved, other.get())); });
	char *p = static_cast<char *>(tn_scope_alloc(saved, 100, 1));
	fill(p, 100, 9);
	tn_scope_destroy(parent);
	EXPECT_TRUE(filled(p, 100, 9));
	EXPECT_EQ(tn_scope_parent(saved), other.get());
	EXPECT_TRUE(tn_scope_verify(other.get()));
}

TEST(scope, reset_keeps_the_scope_and_its_first_address) {
	scope_owner root = make_scope("root");
	tn_scope_options options = {};
	options.ident = "the ident";
	tn_scope *older = create_below(root.get()), *s = create_below(root.get(), "s", options);
	tn_scope *newer = create_below(root.get());
	void *first = tn_scope_alloc(s, 100, 8);
	for (uint64_t i = 1; i < 5; i++) {
		tn_scope_alloc(s, 100, 8);
		ASSERT_TRUE(tn_scope_external(s, 5000));
		create_below(s);
		tn_scope_reset(s);
		tn_stats stats = stats_of(s);
		EXPECT_EQ(stats.live_bytes + stats.external_bytes, 0u);
		EXPECT_EQ(stats.resets, i);
		EXPECT_STREQ(stats.name, "s");
		EXPECT_TRUE(children_of(s).empty());
		EXPECT_EQ(children_of(root.get()), (std::vector<tn_scope *>{newer, s, older}));
		std::vector<tn_listed> all = snapshot();
		EXPECT_STREQ(find_listed(all, "s")->ident, "the ident");
		void *again = tn_scope_alloc(s, 100, 8);
		EXPECT_TRUE(debug_mode || again == first);
	}
	EXPECT_TRUE(tn_scope_verify(root.get()));
}

TEST(scope, trim_gives_back_what_no_block_is_in) {
	ledger books;
	scope_owner root = make_scope("root", from_books(books));
	tn_arena *arena = tn_scope_arena(root.get(), nullptr);
	tn_slab *slab = tn_scope_slab(root.get(), 64, 0, nullptr);
	std::vector<void *> slots(5000);
	for (int cycle = 0; cycle < 3; cycle++) {
		for (int i = 0; i < 1000; i++)
			tn_scope_alloc(root.get(), 200, 8), tn_arena_alloc(arena, 200, 8);
		ASSERT_TRUE(tn_slab_alloc_batch(slab, slots.data(), slots.size()));
		tn_slab_free_batch(slab, slots.data(), slots.size());
		tn_arena_reset(arena);
		tn_arena_reset(&root->arena);
	}
	size_t held = books.held_bytes();
	size_t bytes = tn_scope_trim(root.get());
	EXPECT_EQ(books.held_bytes(), held - bytes);
	EXPECT_GT(bytes, debug_mode ? 0 : held / 2);
	EXPECT_EQ(tn_scope_trim(root.get()), 0u);
	EXPECT_TRUE(tn_scope_verify(root.get()));
	EXPECT_NE(tn_scope_alloc(root.get(), 100, 8), nullptr);
}

/* ---- owned allocators ---- */

TEST(scope, owns_allocators_that_end_with_it) {
	ledger books;
	scope_owner root = make_scope("root", from_books(books));
	for (bool reset : {true, false}) {
		tn_scope *s = create_below(root.get(), "owner");
		tn_arena_options arena_options = {};
		arena_options.name = "owned arena";
		tn_arena *arena = tn_scope_arena(s, &arena_options);
		tn_slab *slab = tn_scope_slab(s, 64, 0, nullptr);
		tn_heap *heap = tn_scope_heap(s, nullptr);
		ASSERT_TRUE(arena != nullptr && slab != nullptr && heap != nullptr);
		EXPECT_NE(tn_arena_alloc(arena, 1000, 8), nullptr);
		EXPECT_NE(tn_slab_alloc(slab), nullptr);
		EXPECT_NE(tn_heap_alloc(heap, 1000, 8), nullptr);
		EXPECT_EQ(stats_of(s).committed_bytes, books.held_bytes());
		EXPECT_TRUE(tn_scope_verify(root.get()));
		std::vector<tn_listed> all = snapshot();
		uint64_t owner = find_listed(all, "owner")->id;
		for (const char *name : {"owned arena", "slab", "heap"}) {
			const tn_listed *listed = find_listed(all, name);
			ASSERT_NE(listed, nullptr) << name;
			EXPECT_EQ(listed->parent_id, owner);
			EXPECT_EQ(listed->depth, 2u);
		}
		reset ? tn_scope_reset(s) : tn_scope_destroy(s);
		EXPECT_EQ(books.held_count(), 0u);
		EXPECT_FALSE(is_listed("owned arena") || is_listed("slab") || is_listed("heap"));
		tn_scope_reset(root.get());
	}
}

TEST(scope, owned_allocators_may_end_before_it) {
	ledger books;
	scope_owner root = make_scope("root", from_books(books));
	std::vector<tn_arena *> arenas;
	std::vector<tn_slab *> slabs;
	std::vector<tn_heap *> heaps;
	for (int i = 0; i < 4; i++) {
		arenas.push_back(tn_scope_arena(root.get(), nullptr));
		create_below(root.get());
		slabs.push_back(tn_scope_slab(root.get(), 64, 0, nullptr));
		heaps.push_back(tn_scope_heap(root.get(), nullptr));
	}
	for (int i : {1, 3, 0}) {
		tn_arena_destroy(arenas[static_cast<size_t>(i)]);
		tn_slab_destroy(slabs[static_cast<size_t>(i)]);
		tn_heap_destroy(heaps[static_cast<size_t>(i)]);
		EXPECT_TRUE(tn_scope_verify(root.get()));
		EXPECT_EQ(stats_of(root.get()).committed_bytes, books.held_bytes());
	}
	EXPECT_EQ(children_of(root.get()).size(), 4u);
}

TEST(scope, owned_allocators_are_refused_as_their_create_refuses_them) {
	ledger books;
	scope_owner root = make_scope("root", from_books(books));
	tn_arena_options arena_options = {};
	arena_options.source = books.source();
	tn_slab_options slab_options = {};
	slab_options.source = books.source();
	tn_heap_options heap_options = {};
	heap_options.source = books.source();
	EXPECT_REFUSED(tn_scope_arena(root.get(), &arena_options), EINVAL);
	EXPECT_REFUSED(tn_scope_slab(root.get(), 16, 0, &slab_options), EINVAL);
	EXPECT_REFUSED(tn_scope_heap(root.get(), &heap_options), EINVAL);
	EXPECT_REFUSED(tn_scope_slab(root.get(), 0, 3, nullptr), EINVAL);
	arena_options = {};
	arena_options.chunk_bytes = 64 * kib;
	arena_options.chunk_bytes_max = 4 * kib;
	EXPECT_REFUSED(tn_scope_arena(root.get(), &arena_options), EINVAL);
	arena_options = {};
	arena_options.reserve_bytes = 64 * kib;
	EXPECT_REFUSED(tn_scope_arena(root.get(), &arena_options), EINVAL);
	books.fail(1, ledger::never);
	EXPECT_REFUSED(tn_scope_arena(root.get(), nullptr), ENOMEM);
	EXPECT_REFUSED(tn_scope_slab(root.get(), 16, 0, nullptr), ENOMEM);
	EXPECT_REFUSED(tn_scope_heap(root.get(), nullptr), ENOMEM);
	books.heal();
	EXPECT_EQ(snapshot().size(), 2u);
	EXPECT_EQ(books.held_count(), 0u);
	EXPECT_TRUE(tn_scope_verify(root.get()));
}

/* The caller's storage counts as no chunk. */
TEST(scope, an_owned_arena_with_a_buffer) {
	ledger books;
	scope_owner root = make_scope("root", from_books(books));
	alignas(16) char buffer[4 * kib];
	tn_arena_options options = {};
	options.buffer = buffer;
	options.buffer_bytes = sizeof buffer;
	tn_arena *a = tn_scope_arena(root.get(), &options);
	void *p = tn_arena_alloc(a, 100, 8);
	EXPECT_TRUE(p >= buffer && p < buffer + sizeof buffer);
	EXPECT_TRUE(tn_scope_verify(root.get()));
	EXPECT_EQ(stats_of(root.get()).committed_bytes, books.held_bytes());
	EXPECT_NE(tn_arena_alloc(a, 10000, 8), nullptr);
	EXPECT_TRUE(tn_scope_verify(root.get()));
	EXPECT_EQ(stats_of(root.get()).committed_bytes, books.held_bytes());
}

/* ---- figures ---- */

TEST(scope, the_figures_of_a_subtree_are_the_sums) {
	ledger books;
	scope_owner root = make_scope("root", from_books(books));
	std::vector<tn_scope *> all = {root.get()};
	for (size_t i = 0; i < 30; i++) {
		all.push_back(create_below(all[i / 2]));
		for (size_t k = 0; k < i; k++)
			tn_scope_alloc(all.back(), 50 * k, 8);
		ASSERT_TRUE(tn_scope_external(all.back(), i));
		if (i % 3 == 0)
			tn_slab_alloc(tn_scope_slab(all.back(), 40, 0, nullptr));
		if (i % 4 == 0)
			tn_heap_alloc(tn_scope_heap(all.back(), nullptr), 100 * i, 0);
	}
	tn_stats sum = {};
	for (tn_scope *s : all) {
		tn_stats own = stats_of(s);
		sum.live_bytes += own.live_bytes, sum.live_count += own.live_count;
		sum.cached_bytes += own.cached_bytes, sum.reserved_bytes += own.reserved_bytes;
		sum.committed_bytes += own.committed_bytes, sum.peak_bytes += own.peak_bytes;
		sum.chunk_count += own.chunk_count, sum.partial_count += own.partial_count;
		sum.refills += own.refills, sum.external_bytes += own.external_bytes;
	}
	std::strcpy(sum.name, "root");
	EXPECT_EQ(to_text(stats_below(root.get())), to_text(sum));
	EXPECT_EQ(sum.committed_bytes, books.held_bytes());
	EXPECT_EQ(sum.external_bytes, 29u * 30u / 2u);
	EXPECT_EQ(sum.live_count, 10u + 8u);
	tn_stats own, subtree;
	tn_scope_stats(root.get(), &own, &subtree);
	EXPECT_EQ(to_text(own), to_text(stats_of(root.get())));
	EXPECT_EQ(to_text(subtree), to_text(sum));
	tn_scope_stats(root.get(), nullptr, nullptr);
}

std::vector<std::string> printed(const tn_scope *s) {
	char *text = nullptr;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	tn_scope_print(s, out);
	std::fclose(out);
	std::vector<std::string> lines(1);
	for (const char *c = text; *c != '\0'; c++)
		if (*c == '\n')
			lines.emplace_back();
		else
			lines.back() += *c;
	EXPECT_EQ(lines.back(), "") << "the text ends with a line";
	lines.pop_back();
	std::free(text);
	return lines;
}

/* The words of a line. */
std::vector<std::string> words_of(const std::string &line) {
	std::vector<std::string> words;
	std::istringstream in(line);
	for (std::string word; in >> word;)
		words.push_back(word);
	return words;
}

TEST(scope, print_shows_the_tree) {
	scope_owner root = make_scope("root");
	tn_scope_options options = {};
	options.ident = "GET /a\x1b[31m\r\nb\x7f?q=\xc3\xa9\xc2\x9b\u202e!";
	tn_scope *s = create_below(root.get(), "re\tquest", options);
	ASSERT_NE(tn_scope_alloc(s, 1000, 8), nullptr);
	ASSERT_TRUE(tn_scope_external(s, 12345));
	ASSERT_NE(tn_scope_slab(s, 64, 0, nullptr), nullptr);
	std::vector<std::string> lines = printed(root.get());
	ASSERT_EQ(lines.size(), 5u);
	EXPECT_EQ(words_of(lines[0]),
		(std::vector<std::string>{"scope", "live", "cached", "committed", "chunks", "peak", "since"}));
	EXPECT_EQ(lines[1].find("root "), 0u);
	std::vector<std::string> words = words_of(lines[1]);
	ASSERT_EQ(words.size(), 8u);
	EXPECT_LT(std::stoul(words[6]), 60000u) << "the time since the root began";
	words[6] = "0";
	EXPECT_EQ(words, (std::vector<std::string>{"root", "0", "0", "0", "0", "0", "0", "ms"}));
	EXPECT_EQ(lines[2].find("  re?quest "), 0u);
	words = words_of(lines[2]);
	EXPECT_GE(std::stoul(words[1]), 1000u);
	EXPECT_EQ(words[4], "1");
	EXPECT_NE(lines[2].find("external 12345"), std::string::npos);
	EXPECT_NE(lines[2].find("  GET /a?[31m??b??q=\xc3\xa9??"
							"???"
							"!"),
		std::string::npos);
	EXPECT_EQ(lines[3].find("    slab "), 0u);
	EXPECT_NE(lines[3].find("(slab)"), std::string::npos);
	EXPECT_EQ(printed(s).size(), 4u);
	EXPECT_EQ(printed(s)[1].find("re?quest "), 0u);
}

/* The sums at the end are those of the lines above them; the largest subtrees have a line each. */
TEST(scope, print_ends_with_sums) {
	for (size_t children : {0, 1, 2, 16, 17, 40}) {
		scope_owner root = make_scope("root");
		tn_scope_alloc(root.get(), 100, 8);
		for (size_t i = 0; i < children; i++) {
			std::string name = "child-" + std::to_string(i);
			tn_scope *child = create_below(root.get(), name.c_str());
			tn_slab_alloc(tn_scope_slab(create_below(create_below(child)), 64, 0, nullptr));
			/* The first and the last are the largest. */
			tn_scope_alloc(child, (i + 1 == children ? 9000000 : i == 0 ? 8000000 : 100000) + i, 8);
			ASSERT_TRUE(tn_scope_external(child, i));
		}
		std::vector<std::string> lines = printed(root.get());
		size_t rows = 2 + 4 * children, shown = std::min<size_t>(children, 16);
		size_t sums = children > 1 ? 2 + shown + (children > shown) : 0;
		ASSERT_EQ(lines.size(), rows + sums + 1);
		auto sum = [&](size_t first, size_t count) {
			std::vector<size_t> figures(6);
			for (size_t i = first; i < first + count; i++) {
				std::vector<std::string> words = words_of(lines[i]);
				for (size_t k = 0; k < 5; k++)
					figures[k] += std::stoul(words[k + 1]);
				bool counted = words[6][0] == '(';
				figures[5] += counted ? std::stoul(words[6].substr(1)) : 1;
			}
			return figures;
		};
		EXPECT_EQ(lines.back().find("total "), 0u);
		std::vector<size_t> total = sum(rows + sums, 1);
		EXPECT_EQ(total, sum(1, rows - 1));
		EXPECT_EQ(total[5], 1 + 4 * children);
		EXPECT_GE(total[0], 100 + children * 100000);
		size_t all = children * (children - 1) / 2;
		EXPECT_EQ(lines.back().find("external") != std::string::npos, children > 1);
		if (children < 2)
			continue;
		EXPECT_NE(lines.back().find("external " + std::to_string(all)), std::string::npos);
		EXPECT_EQ(lines[rows], "with everything below:");
		EXPECT_EQ(total, sum(rows + 1, sums - 1));
		EXPECT_EQ(words_of(lines[rows + 1])[0], "itself");
		auto line_of = [&](const std::string &name) {
			for (size_t i = rows + 1; i < lines.size(); i++)
				if (lines[i].find("  " + name + " ") == 0)
					return i;
			return size_t{0};
		};
		EXPECT_EQ(line_of("others") != 0, children > 16);
		for (size_t largest : {size_t{0}, children - 1}) {
			size_t at = line_of("child-" + std::to_string(largest));
			ASSERT_NE(at, 0u);
			/* Children are shown newest first. */
			EXPECT_EQ(sum(at, 1), sum(2 + 4 * (children - 1 - largest), 4));
		}
	}
}

/* Long names push the columns to the right; they are not cut. */
TEST(scope, print_of_long_names_and_deep_trees) {
	scope_owner root = make_scope("root");
	tn_scope *s = root.get();
	for (int i = 0; i < 200; i++)
		s = create_below(s, "0123456789012345678901234567890");
	std::vector<std::string> lines = printed(root.get());
	ASSERT_EQ(lines.size(), 203u);
	for (size_t i = 2; i < 202; i++) {
		EXPECT_NE(lines[i].find("0123456789012345678901234567890 "), std::string::npos);
		EXPECT_EQ(words_of(lines[i]).size(), 8u) << lines[i];
	}
}

} /* namespace */
} /* namespace test_scope */
