/* Contents of a snapshot: which allocators are listed, where, with which figures. Snapshots while
 * other threads go on: scope/test_threads.cpp. */
#include "../scope/use.h"

#include "process.h"

#include <map>
#include <set>

namespace test_listing {
namespace {

tn_arena_options arena_named(const char *name) {
	tn_arena_options options = {};
	options.name = name;
	return options;
}

/* Ids are unique, and a parent comes before its children, one level up. */
void expect_in_order(const std::vector<tn_listed> &all) {
	std::map<uint64_t, unsigned> depths;
	for (const tn_listed &listed : all) {
		EXPECT_NE(listed.id, 0u);
		EXPECT_TRUE(depths.emplace(listed.id, listed.depth).second) << listed.stats.name << " twice";
		EXPECT_EQ(listed.parent_id == 0, listed.depth == 0) << listed.stats.name;
		if (listed.depth > 0) {
			auto parent = depths.find(listed.parent_id);
			ASSERT_NE(parent, depths.end()) << listed.stats.name << " before its parent";
			EXPECT_EQ(parent->second + 1, listed.depth) << listed.stats.name;
		}
	}
}

TEST(listing, the_page_layer_is_the_first) {
	std::vector<tn_listed> all = snapshot();
	ASSERT_EQ(all.size(), 1u);
	EXPECT_EQ(all[0].kind, TN_KIND_PAGES);
	EXPECT_EQ(all[0].depth, 0u);
	EXPECT_EQ(all[0].parent_id, 0u);
	EXPECT_NE(all[0].id, 0u);
	EXPECT_STREQ(all[0].ident, "");
}

TEST(listing, kinds_have_names) {
	const std::vector<std::string> names = {
		"?", "arena", "slab", "shared slab", "pool", "heap", "scope", "pages", "?"};
	for (size_t i = 0; i < names.size(); i++)
		EXPECT_EQ(tn_kind_name(static_cast<tn_kind>(i)), names[i]);
}

TEST(listing, who_has_a_name_is_listed) {
	arena_owner no_arena = make_arena();
	slab_owner no_slab = make_slab(64);
	shared_slab_owner no_shared = make_shared_slab(64);
	pool_owner no_pool = make_pool(64);
	EXPECT_EQ(snapshot().size(), 1u);
	tn_arena_options arena_options = arena_named("an arena");
	placed_arena placed(arena_options);
	arena_options.name = "";
	arena_owner arena = make_arena(arena_options);
	tn_slab_options slab_options = {};
	slab_options.name = "a slab";
	slab_owner slab = make_slab(64, 0, slab_options);
	tn_shared_slab_options shared_options = {};
	shared_options.name = "a shared slab";
	shared_slab_owner shared = make_shared_slab(64, 0, shared_options);
	tn_pool_options pool_options = {};
	pool_options.name = "0123456789012345678901234567890123456789";
	pool_owner pool = make_pool(64, 0, pool_options);
	tn_heap_options heap_options = {};
	heap_options.name = "a heap";
	tn_heap *heap = tn_heap_create(&heap_options);
	scope_owner scope = make_scope();
	std::vector<tn_listed> all = snapshot();
	expect_in_order(all);
	std::vector<std::pair<std::string, tn_kind>> found;
	for (const tn_listed &listed : all)
		found.push_back({listed.stats.name, listed.kind});
	EXPECT_EQ(std::vector(found.begin() + 1, found.end()),
		(std::vector<std::pair<std::string, tn_kind>>{{"scope", TN_KIND_SCOPE},
			{"a heap", TN_KIND_HEAP}, {"0123456789012345678901234567890", TN_KIND_POOL},
			{"a shared slab", TN_KIND_SHARED_SLAB}, {"a slab", TN_KIND_SLAB}, {"", TN_KIND_ARENA},
			{"an arena", TN_KIND_ARENA}}))
		<< "newest first";
	tn_heap_destroy(heap);
	scope.reset(), pool.reset(), shared.reset(), slab.reset(), arena.reset();
	EXPECT_EQ(snapshot().size(), 2u);
}

TEST(listing, a_tree_is_walked_depth_first_and_newest_first) {
	scope_owner root = make_scope("r");
	tn_scope *a = create_below(root.get(), "a"), *b = create_below(root.get(), "b");
	create_below(a, "a1"), create_below(b, "b1");
	tn_scope *a2 = create_below(a, "a2");
	tn_arena_options options = arena_named("arena of a2");
	tn_scope_arena(a2, &options);
	scope_owner other = make_scope("o");
	std::string order;
	std::vector<tn_listed> all = snapshot();
	for (const tn_listed &listed : all)
		order += std::string(listed.depth, '.') + listed.stats.name + " ";
	EXPECT_EQ(order, "pages o r .b ..b1 .a ..a2 ...arena of a2 ..a1 ");
	expect_in_order(all);
}

TEST(listing, ids_stay_and_are_never_used_again) {
	scope_owner root = make_scope("root");
	tn_scope *stays = create_below(root.get(), "stays");
	uint64_t id = find_listed(snapshot(), "stays")->id;
	std::set<uint64_t> seen;
	for (int i = 0; i < 2000; i++) {
		tn_scope *s = create_below(i % 3 == 0 ? stays : root.get(), "goes");
		tn_arena_options options = arena_named("goes too");
		arena_owner arena = make_arena(options);
		tn_scope_reset(s);
		std::vector<tn_listed> all = snapshot();
		ASSERT_TRUE(seen.insert(find_listed(all, "goes")->id).second);
		ASSERT_TRUE(seen.insert(find_listed(all, "goes too")->id).second);
		ASSERT_EQ(find_listed(all, "stays")->id, id);
		tn_scope_destroy(s);
	}
}

/* A tree deeper than the path that a walk remembers, with branches on every level. */
TEST(listing, a_deep_tree_with_branches) {
	constexpr size_t depth = 1000;
	scope_owner root = make_scope("root");
	tn_scope *s = root.get();
	for (size_t i = 0; i < depth; i++) {
		tn_scope *older = create_below(s), *next = create_below(s);
		create_below(s), create_below(older);
		s = next;
	}
	std::vector<tn_listed> all = snapshot();
	EXPECT_EQ(all.size(), 2 + 4 * depth);
	expect_in_order(all);
}

/* ---- figures ---- */

void expect_listed_as(const tn_listed *listed, const tn_stats &stats) {
	ASSERT_NE(listed, nullptr) << stats.name;
	EXPECT_EQ(listed->stats.live_bytes, stats.live_bytes) << stats.name;
	EXPECT_EQ(listed->stats.live_count, stats.live_count) << stats.name;
	EXPECT_EQ(listed->stats.cached_bytes, stats.cached_bytes) << stats.name;
	EXPECT_EQ(listed->stats.reserved_bytes, stats.reserved_bytes) << stats.name;
	EXPECT_EQ(listed->stats.committed_bytes, stats.committed_bytes) << stats.name;
	EXPECT_EQ(listed->stats.chunk_count, stats.chunk_count) << stats.name;
	EXPECT_EQ(listed->stats.refills, stats.refills) << stats.name;
	EXPECT_EQ(listed->stats.resets, stats.resets) << stats.name;
	EXPECT_EQ(listed->stats.slot_bytes, stats.slot_bytes) << stats.name;
	EXPECT_EQ(listed->stats.slot_count, stats.slot_count) << stats.name;
	EXPECT_EQ(listed->stats.external_bytes, stats.external_bytes) << stats.name;
	EXPECT_GE(listed->stats.peak_bytes, stats.live_bytes) << stats.name;
	EXPECT_EQ(listed->stats.exchanges, stats.exchanges) << stats.name;
	EXPECT_EQ(listed->stats.foreign, stats.foreign) << stats.name;
	EXPECT_EQ(listed->stats.waits, stats.waits) << stats.name;
}

/* At rest they equal the owner's stats after every single call. */
TEST(listing, figures_of_an_arena_and_a_scope) {
	tn_arena_options options = arena_named("arena");
	options.chunk_bytes = 8 * kib;
	arena_owner arena = make_arena(options);
	scope_owner scope = make_scope("scope");
	for (size_t i = 0; i < 3000; i++) {
		tn_arena_alloc(arena.get(), i * 7 % 300 * (i % 97 == 0 ? 200 : 1), 8);
		tn_scope_alloc(scope.get(), i * 11 % 300 * (i % 89 == 0 ? 200 : 1), 32);
		if (i % 201 == 200)
			tn_arena_reset(arena.get()), tn_scope_reset(scope.get());
		if (i % 307 == 0)
			tn_arena_trim(arena.get()), tn_scope_external(scope.get(), i);
		if (i % 5 != 0 && i % 201 < 190)
			continue;
		std::vector<tn_listed> all = snapshot();
		expect_listed_as(find_listed(all, "arena"), stats_of(arena.get()));
		expect_listed_as(find_listed(all, "scope"), stats_of(scope.get()));
		ASSERT_FALSE(HasFailure()) << i;
	}
}

TEST(listing, figures_of_an_arena_with_a_buffer_or_a_range) {
	char buffer[1000];
	tn_arena_options options = arena_named("buffer");
	options.buffer = buffer;
	options.buffer_bytes = sizeof buffer;
	arena_owner with_buffer = make_arena(options);
	options = arena_named("range");
	options.reserve_bytes = 16 * mib;
	arena_owner with_range = make_arena(options);
	for (size_t i = 0; i < 500; i++) {
		tn_arena *both[] = {with_buffer.get(), with_range.get()};
		for (tn_arena *a : both) {
			tn_arena_alloc(a, 10 * i, 8);
			if (i % 50 == 30)
				tn_arena_reset(a);
		}
		std::vector<tn_listed> all = snapshot();
		expect_listed_as(find_listed(all, "buffer"), stats_of(with_buffer.get()));
		expect_listed_as(find_listed(all, "range"), stats_of(with_range.get()));
		ASSERT_FALSE(HasFailure()) << i;
	}
}

TEST(listing, figures_of_slabs_and_a_heap) {
	tn_slab_options slab_options = {};
	slab_options.name = "slab";
	slab_options.expendable = true;
	slab_owner slab = make_slab(48, 0, slab_options);
	tn_shared_slab_options shared_options = {};
	shared_options.name = "shared";
	shared_options.expendable = true;
	shared_slab_owner shared = make_shared_slab(48, 0, shared_options);
	tn_heap_options heap_options = {};
	heap_options.name = "heap";
	heap_options.expendable = true;
	std::unique_ptr<tn_heap, void (*)(tn_heap *)> heap(tn_heap_create(&heap_options), tn_heap_destroy);
	std::vector<void *> slots, shared_slots;
	for (size_t i = 0; i < 2000; i++) {
		bool grow = i / 500 % 2 == 0 ? i % 5 != 0 : i % 5 == 0;
		if (grow) {
			slots.push_back(tn_slab_alloc(slab.get()));
			shared_slots.push_back(tn_shared_slab_alloc(shared.get()));
		} else if (!slots.empty()) {
			tn_slab_free(slab.get(), slots.back());
			tn_shared_slab_free(shared.get(), shared_slots.back());
			slots.pop_back(), shared_slots.pop_back();
		}
		tn_heap_alloc(heap.get(), i * 13 % 2000, 8);
		if (i % 7 != 0)
			continue;
		std::vector<tn_listed> all = snapshot();
		expect_listed_as(find_listed(all, "slab"), stats_of(slab.get()));
		ASSERT_EQ(find_listed(all, "shared")->stats.live_count, shared_slots.size());
		ASSERT_EQ(find_listed(all, "shared")->stats.live_bytes, stats_of(shared.get()).live_bytes);
		tn_stats of_heap;
		tn_heap_stats(heap.get(), &of_heap);
		ASSERT_EQ(find_listed(all, "heap")->stats.committed_bytes, of_heap.committed_bytes);
		ASSERT_FALSE(HasFailure()) << i;
	}
}

TEST(listing, a_thousand_of_all_kinds) {
	std::vector<arena_owner> arenas;
	std::vector<slab_owner> slabs;
	std::vector<shared_slab_owner> shared_slabs;
	scope_owner root = make_scope("root");
	tn_slab_options slab_options = {};
	tn_shared_slab_options shared_options = {};
	slab_options.expendable = shared_options.expendable = true;
	std::map<std::string, size_t> live;
	for (size_t i = 0; i < 1000; i++) {
		std::string name = "number " + std::to_string(i);
		size_t count = i % 17;
		slab_options.name = shared_options.name = name.c_str();
		if (i % 4 == 0)
			arenas.push_back(make_arena(arena_named(name.c_str())));
		else if (i % 4 == 1)
			slabs.push_back(make_slab(64, 0, slab_options));
		else if (i % 4 == 2 && i < 300)
			shared_slabs.push_back(make_shared_slab(64, 0, shared_options));
		tn_scope *s =
			i % 4 == 3 || (i % 4 == 2 && i >= 300) ? create_below(root.get(), name.c_str()) : nullptr;
		for (size_t k = 0; k < count; k++)
			s != nullptr ? tn_scope_alloc(s, 64, 16)
			: i % 4 == 0 ? tn_arena_alloc(arenas.back().get(), 64, 16)
			: i % 4 == 1 ? tn_slab_alloc(slabs.back().get())
						 : tn_shared_slab_alloc(shared_slabs.back().get());
		live[name] = count;
	}
	std::vector<tn_listed> all = snapshot();
	ASSERT_EQ(all.size(), 1002u);
	expect_in_order(all);
	for (const tn_listed &listed : all) {
		if (live.count(listed.stats.name) == 0)
			continue;
		size_t count = live[listed.stats.name];
		bool counted = listed.kind == TN_KIND_SLAB || listed.kind == TN_KIND_SHARED_SLAB;
		EXPECT_TRUE(debug_mode || listed.stats.live_bytes == 64 * count) << listed.stats.name;
		EXPECT_EQ(listed.stats.live_count, counted ? count : 0) << listed.stats.name;
	}
}

/* Counting the slots of partly used chunks takes a walk: the snapshot shows it after the next change
 * of magazines. */
TEST(listing, partly_used_chunks_are_counted_when_asked_for) {
	tn_slab_options options = {};
	options.name = "slab";
	options.retain_chunks = 1000;
	slab_owner slab = make_slab(64, 0, options);
	std::vector<void *> slots(20000);
	ASSERT_TRUE(tn_slab_alloc_batch(slab.get(), slots.data(), slots.size()));
	std::vector<void *> kept, others;
	for (size_t i = 0; i < slots.size(); i++)
		(i % 10 == 0 ? kept : others).push_back(slots[i]);
	tn_slab_free_batch(slab.get(), others.data(), others.size());
	snapshot();
	ASSERT_TRUE(tn_slab_alloc_batch(slab.get(), others.data(), 2000));
	tn_slab_free_batch(slab.get(), others.data(), 2000);
	tn_stats listed = find_listed(snapshot(), "slab")->stats;
	EXPECT_GT(listed.partial_count, 0u);
	EXPECT_GT(listed.partial_live_count, 0u);
	EXPECT_LE(listed.partial_live_count, slots.size());
	tn_slab_free_batch(slab.get(), kept.data(), kept.size());
}

void wait_ms(long ms) {
	const timespec pause = {ms / 1000, ms % 1000 * 1000000};
	nanosleep(&pause, nullptr);
}

uint64_t age_of(const char *name) {
	return find_listed(snapshot(), name)->age_ms;
}

TEST(listing, age_is_since_memory_was_taken_or_the_last_reset) {
	scope_owner root = make_scope("root");
	tn_scope *scope = create_below(root.get(), "scope");
	arena_owner arena = make_arena(arena_named("arena"));
	wait_ms(60);
	EXPECT_EQ(age_of("scope"), 0u) << "it has no memory and nothing below it";
	EXPECT_GE(age_of("arena"), 40u);
	EXPECT_GE(age_of("root"), 40u);
	tn_scope_alloc(scope, 100, 8);
	EXPECT_EQ(age_of("scope"), 0u) << "noted by this snapshot";
	wait_ms(60);
	EXPECT_GE(age_of("scope"), 40u);
	tn_scope_reset(scope);
	tn_arena_alloc(arena.get(), 100, 8);
	tn_arena_reset(arena.get());
	EXPECT_LE(age_of("scope"), 30u);
	EXPECT_LE(age_of("arena"), 30u);
	wait_ms(60);
	EXPECT_GE(age_of("scope"), 40u);
	EXPECT_GE(age_of("arena"), 40u);
	EXPECT_LE(age_of("arena"), 10000u);
}

/* ---- the visitor ---- */

TEST(listing, a_visitor_stops_the_walk) {
	scope_owner root = make_scope("root");
	for (int i = 0; i < 20; i++)
		create_below(root.get());
	for (size_t most = 1; most <= 22; most++) {
		size_t left = most;
		auto visit = [](const tn_listed *, void *ctx) { return --*static_cast<size_t *>(ctx) > 0; };
		EXPECT_EQ(tn_stats_snapshot(visit, &left), most);
	}
}

struct changer {
	static bool visit(const tn_listed *listed, void *ctx) {
		changer *c = static_cast<changer *>(ctx);
		EXPECT_TRUE(c->seen.insert(listed->id).second) << listed->stats.name << " twice";
		if (listed->kind == TN_KIND_SCOPE)
			c->act(std::string(listed->stats.name));
		return c->seen.size() < 1000;
	}
	size_t run() {
		return tn_stats_snapshot(visit, this);
	}
	std::function<void(const std::string &name)> act;
	std::set<uint64_t> seen;
};

TEST(listing, a_visitor_destroys_what_it_sees_and_what_it_would_see) {
	scope_owner root = make_scope("root");
	std::map<std::string, tn_scope *> scopes;
	for (int i = 0; i < 20; i++) {
		std::string name = std::to_string(i);
		scopes[name] = create_below(root.get(), name.c_str());
		create_below(scopes[name], "below");
	}
	std::string order;
	changer c;
	c.act = [&](const std::string &name) {
		order += name + " ";
		if (name == "19" || name == "12")
			tn_scope_destroy(scopes[name]);
		if (name == "15")
			for (const char *gone : {"15", "14", "13"})
				tn_scope_destroy(scopes[gone]);
		if (name == "10")
			tn_scope_reset(root.get());
	};
	c.run();
	EXPECT_EQ(order, "root 19 18 below 17 below 16 below 15 12 11 below 10 ");
}

TEST(listing, a_visitor_creates) {
	scope_owner root = make_scope("root"), older = make_scope("older");
	changer c;
	c.act = [&](const std::string &) {
		create_below(root.get(), "new");
		create_below(older.get(), "new");
		tn_scope_alloc(root.get(), 5000, 8);
		snapshot();
	};
	EXPECT_LT(c.run(), 1000u) << "it follows what is made for it";
}

TEST(listing, a_visitor_moves_what_it_has_seen) {
	scope_owner older = make_scope("older"), newer = make_scope("newer");
	tn_scope *moved = create_below(newer.get(), "moved");
	create_below(moved, "below");
	std::string order;
	changer c;
	c.act = [&](const std::string &name) {
		order += name + " ";
		if (name == "below") {
			EXPECT_TRUE(tn_scope_adopt(moved, older.get()));
		}
	};
	c.run();
	EXPECT_EQ(order.find("newer "), 0u);
	EXPECT_NE(order.find("older"), std::string::npos);
	EXPECT_EQ(snapshot().size(), 5u);
}

/* The same on one level: allocators that move to the front of their own parent. */
TEST(listing, a_visitor_moves_among_siblings) {
	scope_owner root = make_scope("root");
	tn_scope *a = create_below(root.get(), "a"), *b = create_below(root.get(), "b");
	tn_scope *c1 = create_below(a, "c1");
	tn_scope *last = create_below(b, "last");
	changer c;
	std::string order;
	c.act = [&](const std::string &name) {
		order += name + " ";
		if (name == "last") {
			EXPECT_TRUE(tn_scope_adopt(last, a));
		}
		if (name == "a") {
			EXPECT_TRUE(tn_scope_adopt(c1, b));
		}
	};
	c.run();
	EXPECT_EQ(order.find("root b last a"), 0u) << order;
	EXPECT_EQ(snapshot().size(), 6u);
}

/* ---- trim ---- */

TEST(listing, trim_all_reaches_owners_where_they_next_change_chunks) {
	tn_slab_options options = {};
	options.name = "slab";
	options.retain_chunks = 1000;
	slab_owner slab = make_slab(64, 0, options);
	scope_owner scope = make_scope("scope");
	std::vector<void *> slots(20000);
	ASSERT_TRUE(tn_slab_alloc_batch(slab.get(), slots.data(), slots.size()));
	tn_slab_free_batch(slab.get(), slots.data(), slots.size());
	for (int cycle = 0; cycle < 2; cycle++) {
		for (int i = 0; i < 2000; i++)
			tn_scope_alloc(scope.get(), 500, 8);
		tn_scope_reset(scope.get());
	}
	size_t of_slab = stats_of(slab.get()).committed_bytes;
	size_t of_scope = stats_of(scope.get()).committed_bytes;
	tn_trim_all();
	EXPECT_EQ(stats_of(slab.get()).committed_bytes, of_slab) << "owners are not stopped";
	ASSERT_TRUE(tn_slab_alloc_batch(slab.get(), slots.data(), 2000));
	tn_slab_free_batch(slab.get(), slots.data(), 2000);
	for (int i = 0; i < 40; i++)
		tn_scope_alloc(scope.get(), 500, 8);
	/* The 2,000 are a tenth of it; in debug they wait in a quarantine with as many again. */
	EXPECT_LT(stats_of(slab.get()).committed_bytes, of_slab / 4 * 3);
	EXPECT_TRUE(debug_mode || stats_of(scope.get()).committed_bytes < of_scope / 2);
	EXPECT_TRUE(tn_slab_verify(slab.get()) && tn_scope_verify(scope.get()));
}

TEST(listing, trim_all_gives_back_warm_chunks) {
	arena_owner a = make_arena();
	for (int i = 0; i < 100; i++)
		tn_arena_alloc(a.get(), 20000, 8);
	a.reset();
	size_t cached = snapshot()[0].stats.cached_bytes;
	size_t bytes = tn_trim_all();
	EXPECT_GE(bytes, cached);
	EXPECT_EQ(snapshot()[0].stats.cached_bytes, 0u);
	EXPECT_EQ(tn_trim_all(), 0u);
}

} /* namespace */
} /* namespace test_listing */
