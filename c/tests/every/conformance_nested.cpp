/* The rules of spec/behaviour.md on heaps, scopes and watching. */
#include "crowd.h"
#include "ledger.h"

#include <atomic>
#include <set>

namespace conformance_nested {
namespace {

struct heap_destroyer {
	void operator()(tn_heap *h) const {
		tn_heap_destroy(h);
	}
};
using heap_owner = std::unique_ptr<tn_heap, heap_destroyer>;

struct scope_destroyer {
	void operator()(tn_scope *s) const {
		tn_scope_destroy(s);
	}
};
using scope_owner = std::unique_ptr<tn_scope, scope_destroyer>;

/* Live blocks at the end are intended. */
heap_owner make_heap(tn_heap_options options = {}) {
	options.expendable = true;
	return heap_owner(tn_heap_create(&options));
}

scope_owner make_root(const tn_scope_options &options = {}) {
	return scope_owner(tn_scope_create(nullptr, "root", &options));
}

tn_stats stats_of(const tn_heap *h) {
	tn_stats stats;
	tn_heap_stats(h, &stats);
	return stats;
}

tn_stats own_stats(const tn_scope *s) {
	tn_stats own;
	tn_scope_stats(s, &own, nullptr);
	return own;
}

tn_stats subtree_stats(const tn_scope *s) {
	tn_stats subtree;
	tn_scope_stats(s, nullptr, &subtree);
	return subtree;
}

constexpr size_t sizes[] = {0, 1, 16, 17, 100, 255, 1000, 4000, 9000, 33000, 70000, 300000};

/* ---- heap ---- */

TEST(conformance, B51_usable_size) {
	heap_owner h = make_heap();
	std::vector<std::pair<void *, size_t>> blocks;
	for (size_t size : sizes)
		for (size_t align : {0, 1, 64, 4096}) {
			void *p = tn_heap_alloc(h.get(), size, align);
			size_t usable = tn_heap_usable_size(h.get(), p);
			EXPECT_GE(usable, size);
			fill(p, usable, blocks.size());
			blocks.emplace_back(p, usable);
		}
	for (size_t i = 0; i < blocks.size(); i++)
		EXPECT_TRUE(filled(blocks[i].first, blocks[i].second, i));
	EXPECT_EQ(tn_heap_usable_size(h.get(), nullptr), 0u);
}

TEST(conformance, B52_realloc_of_a_heap) {
	heap_owner h = make_heap();
	for (size_t from : sizes)
		for (size_t to : sizes) {
			void *p = tn_heap_realloc(h.get(), nullptr, from);
			fill(p, from, 7);
			void *q = tn_heap_realloc(h.get(), p, to);
			EXPECT_TRUE(filled(q, std::min(from, to), 7)) << from << " to " << to;
			EXPECT_EQ(stats_of(h.get()).live_count, 1u) << "the old place is free again";
			errno = 0;
			EXPECT_EQ(tn_heap_realloc(h.get(), q, SIZE_MAX), nullptr);
			EXPECT_EQ(errno, ENOMEM);
			EXPECT_TRUE(filled(q, std::min(from, to), 7)) << "unchanged";
			tn_heap_free(h.get(), q);
		}
}

TEST(conformance, B53_free_with_or_without_the_size) {
	heap_owner h = make_heap();
	for (int round = 0; round < 3; round++) {
		std::vector<void *> blocks;
		for (size_t i = 0; i < 1000; i++)
			blocks.push_back(tn_heap_alloc(h.get(), i * 13, 0));
		for (size_t i = 0; i < blocks.size(); i++)
			i % 2 == 0 ? tn_heap_free(h.get(), blocks[i])
					   : tn_heap_free_sized(h.get(), blocks[i], i * 13);
		EXPECT_EQ(stats_of(h.get()).live_count, 0u);
		EXPECT_EQ(stats_of(h.get()).live_bytes, 0u);
		EXPECT_TRUE(tn_heap_verify(h.get()));
	}
	tn_heap_free_sized(h.get(), nullptr, 16);
}

TEST(conformance, B54_zero) {
	tn_heap_options options = {};
	options.zero = true;
	heap_owner h = make_heap(options);
	std::vector<unsigned char> zeros(400000);
	for (int round = 0; round < 3; round++) {
		for (size_t size : sizes) {
			char *p = static_cast<char *>(tn_heap_alloc(h.get(), size, 0));
			EXPECT_EQ(std::memcmp(p, zeros.data(), size), 0) << size;
			std::memset(p, 1, size);
			size_t more = size + 1 + size / 3;
			p = static_cast<char *>(tn_heap_realloc(h.get(), p, more));
			EXPECT_EQ(std::memcmp(p + size, zeros.data(), more - size), 0) << size << " to " << more;
			std::memset(p, 1, more);
			if (size % 2 == 0)
				tn_heap_free(h.get(), p);
		}
		tn_heap_reset(h.get());
	}
}

TEST(conformance, B55_large_blocks_go_back) {
	ledger books;
	tn_heap_options options = {};
	options.source = books.source();
	heap_owner h = make_heap(options);
	void *small = tn_heap_alloc(h.get(), 100, 0);
	size_t before = books.held_bytes();
	void *p = tn_heap_alloc(h.get(), mib, 0), *q = tn_heap_alloc(h.get(), mib, 0);
	EXPECT_GE(books.held_bytes(), before + 2 * mib);
	tn_heap_free(h.get(), p);
	/* Debug keeps it in quarantine. */
	EXPECT_TRUE(debug_mode || books.held_bytes() < before + 2 * mib);
	fill(q, mib, 1);
	tn_heap_reset(h.get());
	EXPECT_TRUE(debug_mode || books.held_bytes() < mib) << "a reset, too";
	(void)small;
}

TEST(conformance, B56_each_of_a_heap) {
	heap_owner h = make_heap();
	std::map<void *, size_t> expected, seen;
	std::vector<void *> freed;
	for (size_t i = 0; i < 2000; i++) {
		void *p = tn_heap_alloc(h.get(), i * 7 % 1500, 0);
		if (i % 3 == 0)
			freed.push_back(p);
		else
			expected[p] = tn_heap_usable_size(h.get(), p);
	}
	for (void *p : freed)
		tn_heap_free(h.get(), p);
	expected.emplace(tn_heap_alloc(h.get(), 500000, 0), 0);
	for (auto &block : expected)
		block.second = tn_heap_usable_size(h.get(), block.first);
	auto note = [](void *p, size_t size, void *ctx) {
		EXPECT_TRUE(static_cast<decltype(seen) *>(ctx)->emplace(p, size).second) << "twice";
	};
	tn_heap_each(h.get(), note, &seen);
	EXPECT_EQ(seen, expected);
}

/* ---- scopes ---- */

/* Names in the order of their ends; for one thread. */
std::vector<int> ended;

void note_end(void *number) {
	ended.push_back(static_cast<int>(reinterpret_cast<intptr_t>(number)));
}

void defer(tn_scope *s, int number) {
	EXPECT_TRUE(tn_scope_defer(s, note_end, reinterpret_cast<void *>(intptr_t{number})));
}

std::vector<int> ends() {
	return std::exchange(ended, {});
}

using numbers = std::vector<int>;

TEST(conformance, B57_the_order_of_ends) {
	scope_owner root = make_root();
	tn_scope *older = tn_scope_create(root.get(), "older", nullptr);
	tn_scope *newer = tn_scope_create(root.get(), "newer", nullptr);
	tn_scope *below = tn_scope_create(older, "below", nullptr);
	defer(root.get(), 1);
	defer(older, 2);
	defer(newer, 3);
	defer(below, 4);
	defer(root.get(), 5);
	defer(older, 6);
	root.reset();
	EXPECT_EQ(ends(), (numbers{3, 4, 6, 2, 5, 1}));
	tn_scope_destroy(nullptr);
}

TEST(conformance, B58_deferred_once) {
	scope_owner root = make_root();
	for (int number : {1, 2, 1, 3})
		defer(root.get(), number);
	auto undefer = [&root](int number) {
		return tn_scope_undefer(root.get(), note_end, reinterpret_cast<void *>(intptr_t{number}));
	};
	EXPECT_TRUE(undefer(1));
	EXPECT_FALSE(undefer(4));
	tn_scope_reset(root.get());
	EXPECT_EQ(ends(), (numbers{3, 2, 1}));
	EXPECT_FALSE(undefer(1));
	tn_scope_reset(root.get());
	EXPECT_EQ(ends(), numbers{});
	EXPECT_FALSE(tn_scope_defer(root.get(), nullptr, nullptr));
	EXPECT_EQ(errno, EINVAL);
}

struct last_words {
	tn_scope *from, *other;
	char *text;
};

TEST(conformance, B59_what_a_deferred_call_may_do) {
	scope_owner root = make_root();
	tn_scope *s = tn_scope_create(root.get(), "ends", nullptr);
	last_words w = {s, tn_scope_create(root.get(), "other", nullptr), tn_scope_printf(s, "last words")};
	tn_scope_defer(
		s,
		[](void *arg) {
			last_words *l = static_cast<last_words *>(arg);
			EXPECT_STREQ(l->text, "last words");
			EXPECT_NE(tn_scope_alloc(l->from, 100, 0), nullptr);
			tn_scope_destroy(l->other);
			tn_scope *made = tn_scope_create(tn_scope_parent(l->from), "made meanwhile", nullptr);
			defer(made, 1);
			tn_scope_destroy(tn_scope_create(nullptr, "another root", nullptr));
		},
		&w);
	defer(w.other, 2);
	tn_scope_destroy(s);
	EXPECT_EQ(ends(), numbers{2});
	EXPECT_TRUE(tn_scope_verify(root.get()));
	root.reset();
	EXPECT_EQ(ends(), numbers{1});
}

TEST(conformance, B60_reset_of_a_scope) {
	scope_owner root = make_root();
	tn_scope *s = tn_scope_create(root.get(), "stays", nullptr);
	tn_scope_limits limits = {};
	limits.hard_bytes = mib;
	EXPECT_TRUE(tn_scope_limit(s, &limits));
	void *first = nullptr;
	for (int round = 0; round < 3; round++) {
		void *p = tn_scope_alloc(s, 1000, 0);
		EXPECT_TRUE(debug_mode || round == 0 || p == first) << "warm memory";
		first = p;
		defer(tn_scope_create(s, "child", nullptr), 1);
		defer(s, 2);
		EXPECT_TRUE(tn_scope_external(s, 10000));
		tn_scope_reset(s);
		EXPECT_EQ(ends(), (numbers{1, 2}));
		EXPECT_EQ(subtree_stats(s).live_bytes, 0u);
		EXPECT_EQ(own_stats(s).external_bytes, 0u);
		EXPECT_STREQ(own_stats(s).name, "stays");
		EXPECT_EQ(tn_scope_parent(s), root.get());
		EXPECT_EQ(tn_scope_alloc(s, 2 * mib, 0), nullptr) << "the limit stays";
	}
	EXPECT_EQ(own_stats(s).resets, 3u);
}

/* Tries to add to a scope that is ending. */
void add_to(void *arg) {
	tn_scope *s = static_cast<tn_scope *>(arg);
	scope_owner root = make_root();
	tn_scope *child = tn_scope_create(root.get(), "child", nullptr);
	EXPECT_EQ(tn_scope_create(s, "late", nullptr), nullptr);
	EXPECT_FALSE(tn_scope_undefer(s, add_to, s)) << "it is being called";
	EXPECT_FALSE(tn_scope_defer(s, add_to, s));
	EXPECT_EQ(errno, EINVAL);
	EXPECT_FALSE(tn_scope_adopt(child, s));
	EXPECT_EQ(tn_scope_arena(s, nullptr), nullptr);
	EXPECT_EQ(tn_scope_slab(s, 16, 0, nullptr), nullptr);
	errno = 0;
	EXPECT_EQ(tn_scope_heap(s, nullptr), nullptr);
	EXPECT_EQ(errno, EINVAL);
	tn_scope_destroy(s);
	note_end(nullptr);
}

TEST(conformance, B61_nothing_is_added_at_the_end) {
	scope_owner root = make_root();
	tn_scope *s = tn_scope_create(root.get(), "ends", nullptr);
	tn_scope_defer(s, add_to, s);
	tn_scope_reset(s);
	tn_scope_defer(s, add_to, s);
	tn_scope_destroy(s);
	tn_scope_defer(root.get(), add_to, root.get());
	root.reset();
	EXPECT_EQ(ends(), (numbers{0, 0, 0}));
}

TEST(conformance, B62_adopt) {
	scope_owner root = make_root(), other = make_root();
	tn_scope *left = tn_scope_create(root.get(), "left", nullptr);
	tn_scope *right = tn_scope_create(other.get(), "right", nullptr);
	tn_scope *leaf = tn_scope_create(left, "leaf", nullptr);
	defer(leaf, 1);
	EXPECT_TRUE(tn_scope_adopt(left, right)) << "from another tree, too";
	EXPECT_TRUE(tn_scope_adopt(left, right)) << "it is there already";
	EXPECT_EQ(tn_scope_parent(left), right);
	tn_scope *refused[][2] = {{left, left}, {left, leaf}, {right, leaf}, {other.get(), root.get()}};
	for (auto &pair : refused) {
		errno = 0;
		EXPECT_FALSE(tn_scope_adopt(pair[0], pair[1]));
		EXPECT_EQ(errno, EINVAL);
	}
	EXPECT_TRUE(tn_scope_verify(other.get()));
	root.reset();
	EXPECT_EQ(ends(), numbers{});
	other.reset();
	EXPECT_EQ(ends(), numbers{1});
}

TEST(conformance, B63_owned_allocators) {
	ledger books;
	tn_scope_options options = {};
	options.source = books.source();
	scope_owner root = make_root(options);
	tn_scope *s = tn_scope_create(root.get(), "owner", nullptr);
	for (int round = 0; round < 3; round++) {
		tn_arena *a = tn_scope_arena(s, nullptr);
		tn_slab *slab = tn_scope_slab(s, 100, 0, nullptr);
		tn_heap *h = tn_scope_heap(s, nullptr);
		fill(tn_arena_alloc(a, 5000, 0), 5000, 1);
		fill(tn_slab_alloc(slab), 100, 1);
		fill(tn_heap_alloc(h, 5000, 0), 5000, 1);
		tn_slab *gone = tn_scope_slab(s, 100, 0, nullptr);
		tn_slab_destroy(gone);
		EXPECT_GE(own_stats(s).live_bytes, 10100u);
		EXPECT_EQ(books.held_bytes(), subtree_stats(root.get()).committed_bytes);
		EXPECT_TRUE(tn_scope_verify(root.get()));
		tn_scope_reset(s);
		EXPECT_EQ(own_stats(s).live_bytes, 0u);
	}
	tn_slab_options with_source = {};
	with_source.source = books.source();
	EXPECT_EQ(tn_scope_slab(s, 100, 0, &with_source), nullptr);
	EXPECT_EQ(errno, EINVAL);
	(void)tn_scope_heap(s, nullptr);
	root.reset();
	EXPECT_EQ(books.held_count(), 0u);
}

/* Total bytes that a scope yields in blocks of `bytes`. */
size_t had_from(tn_scope *s, size_t bytes) {
	size_t sum = 0;
	while (sum < 100 * mib && tn_scope_alloc(s, bytes, 0) != nullptr)
		sum += bytes;
	EXPECT_EQ(errno, ENOMEM);
	return sum;
}

TEST(conformance, B64_hard_limits) {
	scope_owner root = make_root();
	tn_scope *s = tn_scope_create(root.get(), "limited", nullptr);
	tn_scope *child = tn_scope_create(s, "child", nullptr);
	tn_scope_limits limits = {};
	limits.hard_bytes = 4 * mib;
	EXPECT_TRUE(tn_scope_limit(s, &limits));
	EXPECT_TRUE(tn_scope_external(child, mib));
	size_t had = had_from(child, 10000);
	EXPECT_GT(had, mib);
	EXPECT_LT(had, 3 * mib);
	EXPECT_FALSE(tn_scope_external(s, 4 * mib));
	EXPECT_EQ(errno, ENOMEM);
	EXPECT_EQ(own_stats(s).external_bytes, 0u);
	tn_slab *slab = tn_scope_slab(s, 1000, 0, nullptr);
	while (slab != nullptr && tn_slab_alloc(slab) != nullptr)
		EXPECT_LE(subtree_stats(s).committed_bytes + mib, 4 * mib);
	EXPECT_NE(tn_scope_alloc(root.get(), 5 * mib, 0), nullptr) << "above it nothing is limited";
	tn_scope_reset(s);
	EXPECT_NE(tn_scope_alloc(s, 2 * mib, 0), nullptr);
	EXPECT_TRUE(tn_scope_verify(root.get()));
	EXPECT_TRUE(tn_scope_limit(s, nullptr));
	EXPECT_NE(tn_scope_alloc(s, 5 * mib, 0), nullptr);
}

TEST(conformance, B65_soft_limits) {
	scope_owner root = make_root();
	tn_scope *child = tn_scope_create(root.get(), "child", nullptr);
	std::vector<size_t> told;
	tn_scope_limits limits = {};
	limits.soft_bytes = mib;
	limits.ctx = &told;
	limits.on_soft = [](tn_scope *s, size_t held, void *ctx) {
		EXPECT_STREQ(reinterpret_cast<tn_arena *>(s)->name, "root");
		static_cast<std::vector<size_t> *>(ctx)->push_back(held);
	};
	EXPECT_TRUE(tn_scope_limit(root.get(), &limits));
	for (size_t round = 1; round <= 3; round++) {
		for (int i = 0; i < 300; i++)
			EXPECT_NE(tn_scope_alloc(child, 10000, 0), nullptr);
		ASSERT_EQ(told.size(), round);
		EXPECT_GT(told.back(), mib);
		tn_scope_reset(child);
		tn_scope_trim(child);
	}
}

TEST(conformance, B66_limits_of_what_is_there) {
	scope_owner root = make_root();
	tn_scope *child = tn_scope_create(root.get(), "child", nullptr);
	EXPECT_NE(tn_scope_alloc(child, mib, 0), nullptr);
	EXPECT_TRUE(tn_scope_external(root.get(), mib));
	tn_scope_limits limits = {};
	limits.hard_bytes = 2 * mib;
	EXPECT_FALSE(tn_scope_limit(root.get(), &limits));
	EXPECT_EQ(errno, ENOMEM);
	EXPECT_NE(tn_scope_alloc(child, 4 * mib, 0), nullptr) << "not set";
	limits.hard_bytes = 16 * mib;
	limits.soft_bytes = 17 * mib;
	limits.on_soft = [](tn_scope *, size_t, void *) {};
	EXPECT_FALSE(tn_scope_limit(root.get(), &limits));
	EXPECT_EQ(errno, EINVAL);
	limits.soft_bytes = mib;
	limits.on_soft = nullptr;
	EXPECT_FALSE(tn_scope_limit(root.get(), &limits));
	EXPECT_EQ(errno, EINVAL);
	limits.soft_bytes = 0;
	EXPECT_TRUE(tn_scope_limit(root.get(), &limits));
	EXPECT_LT(had_from(child, 100000), 11 * mib);
	EXPECT_TRUE(tn_scope_verify(root.get()));
}

TEST(conformance, B67_limits_and_adopt) {
	scope_owner root = make_root();
	tn_scope *left = tn_scope_create(root.get(), "left", nullptr);
	tn_scope *right = tn_scope_create(root.get(), "right", nullptr);
	tn_scope *child = tn_scope_create(left, "child", nullptr);
	tn_scope_limits limits = {};
	limits.hard_bytes = 4 * mib;
	EXPECT_TRUE(tn_scope_limit(left, &limits) && tn_scope_limit(right, &limits));
	EXPECT_NE(tn_scope_alloc(child, 3 * mib, 0), nullptr);
	EXPECT_EQ(tn_scope_alloc(left, 3 * mib, 0), nullptr);
	EXPECT_TRUE(tn_scope_adopt(child, right));
	EXPECT_NE(tn_scope_alloc(left, 3 * mib, 0), nullptr) << "no more counted there";
	EXPECT_EQ(tn_scope_alloc(right, 3 * mib, 0), nullptr) << "but here";
	errno = 0;
	EXPECT_FALSE(tn_scope_adopt(child, left));
	EXPECT_EQ(errno, ENOMEM);
	EXPECT_EQ(tn_scope_parent(child), right);
	EXPECT_TRUE(tn_scope_verify(root.get()));
}

TEST(conformance, B68_figures_of_a_subtree) {
	scope_owner root = make_root();
	tn_scope *child = tn_scope_create(root.get(), "child", nullptr);
	tn_scope *leaf = tn_scope_create(child, "leaf", nullptr);
	tn_stats sum = {};
	for (tn_scope *s : {root.get(), child, leaf}) {
		tn_scope_alloc(s, 30000, 0);
		tn_arena_alloc(tn_scope_arena(s, nullptr), 500, 0);
		tn_scope_external(s, 1000);
		tn_stats own = own_stats(s);
		EXPECT_GE(own.live_bytes, 30500u);
		sum.live_bytes += own.live_bytes;
		sum.committed_bytes += own.committed_bytes;
		sum.chunk_count += own.chunk_count;
		sum.external_bytes += own.external_bytes;
	}
	tn_stats all = subtree_stats(root.get());
	EXPECT_EQ(all.live_bytes, sum.live_bytes);
	EXPECT_EQ(all.committed_bytes, sum.committed_bytes);
	EXPECT_EQ(all.chunk_count, sum.chunk_count);
	EXPECT_EQ(all.external_bytes, 3000u);
}

TEST(conformance, B69_shared_roots) {
	tn_scope_options shared = {};
	shared.shared = true;
	scope_owner root = make_root(shared), other = make_root(shared);
	std::atomic<size_t> ends_seen{0};
	auto count = [](void *at) { (*static_cast<std::atomic<size_t> *>(at))++; };
	auto work = [&] {
		for (int i = 0; i < 300; i++) {
			tn_scope *s = tn_scope_create(root.get(), "child", nullptr);
			tn_scope *below = tn_scope_create(s, "below", nullptr);
			fill(tn_scope_alloc(below, 100, 0), 100, 1);
			EXPECT_TRUE(tn_scope_defer(below, count, &ends_seen));
			EXPECT_TRUE(i % 3 != 0 || tn_scope_adopt(s, other.get()));
			if (i % 2 == 0)
				tn_scope_destroy(s);
		}
	};
	std::vector<std::thread> threads;
	for (int i = 0; i < 4; i++)
		threads.emplace_back(work);
	for (std::thread &t : threads)
		t.join();
	EXPECT_EQ(ends_seen, 600u);
	EXPECT_TRUE(tn_scope_verify(root.get()) && tn_scope_verify(other.get()));
	root.reset();
	other.reset();
	EXPECT_EQ(ends_seen, 1200u);
	scope_owner plain = make_root();
	EXPECT_EQ(tn_scope_create(plain.get(), "child", &shared), nullptr);
	EXPECT_EQ(errno, EINVAL);
}

/* ---- watching ---- */

/* Names of all that is listed at or below a root. */
struct names_below {
	const char *root;
	std::set<uint64_t> ids;
	std::vector<std::string> names;

	static bool visit(const tn_listed *l, void *self) {
		auto *n = static_cast<names_below *>(self);
		if (l->stats.name != std::string(n->root) && n->ids.count(l->parent_id) == 0)
			return true;
		EXPECT_TRUE(n->ids.insert(l->id).second) << "seen twice: " << l->stats.name;
		n->names.push_back(l->stats.name);
		return true;
	}
};

std::vector<std::string> listed(const char *root) {
	names_below found = {root, {}, {}};
	tn_stats_snapshot(names_below::visit, &found);
	return found.names;
}

TEST(conformance, B70_snapshots) {
	using names = std::vector<std::string>;
	{
		scope_owner root(tn_scope_create(nullptr, "B70 root", nullptr));
		tn_scope *child = tn_scope_create(root.get(), "child", nullptr);
		tn_slab_options options = {};
		options.name = "nodes";
		tn_scope_slab(child, 100, 0, &options);
		tn_scope_create(root.get(), "newer", nullptr);
		const names expected = {"B70 root", "newer", "child", "nodes"};
		in_thread([&] { EXPECT_EQ(listed("B70 root"), expected); });
	}
	EXPECT_EQ(listed("B70 root"), names{});
	tn_arena_options a = {};
	a.name = "B70 arena";
	{
		arena_owner named = make_arena(a);
		EXPECT_EQ(listed("B70 arena"), names{"B70 arena"});
	}
	EXPECT_EQ(listed("B70 arena"), names{});
}

TEST(conformance, B71_what_a_visitor_may_do) {
	scope_owner root = make_root();
	struct state {
		tn_scope *root;
		int calls;
	} s = {root.get(), 0};
	size_t visited = tn_stats_snapshot(
		[](const tn_listed *, void *ctx) {
			auto *at = static_cast<state *>(ctx);
			tn_scope_destroy(tn_scope_create(at->root, "child", nullptr));
			tn_scope_destroy(tn_scope_create(nullptr, "another root", nullptr));
			EXPECT_GE(tn_stats_snapshot([](const tn_listed *, void *) { return true; }, nullptr), 2u);
			return ++at->calls < 2;
		},
		&s);
	EXPECT_EQ(s.calls, 2);
	EXPECT_EQ(visited, 2u);
}

struct reports {
	std::mutex lock;
	std::map<std::string, int> by_name;

	static void add(tn_finding finding, const tn_listed *l, const char *message, void *self) {
		auto *r = static_cast<reports *>(self);
		EXPECT_NE(std::strstr(message, l->stats.name), nullptr) << message;
		std::lock_guard<std::mutex> hold(r->lock);
		r->by_name[l->stats.name] += finding == TN_FOUND_GROWING;
	}
	int of(const char *name) {
		std::lock_guard<std::mutex> hold(lock);
		return by_name[name];
	}
};

TEST(conformance, B72_watch) {
	reports r;
	tn_watch_options options = {};
	options.interval_ms = 2;
	options.growing_ms = 30;
	options.ctx = &r;
	scope_owner root = make_root();
	tn_scope *idle = tn_scope_create(root.get(), "B72 idle", nullptr);
	tn_scope *tidy = tn_scope_create(root.get(), "B72 tidy", nullptr);
	tn_scope *greedy = tn_scope_create(root.get(), "B72 greedy", nullptr);
	tn_scope_alloc(idle, mib, 0);
	ASSERT_TRUE(tn_watch(&options, reports::add));
	auto cycle = [&](int count) {
		for (int i = 0; i < count; i++) {
			tn_scope_alloc(greedy, 20 * kib, 0);
			tn_scope_alloc(tidy, mib, 0);
			tn_scope_reset(tidy);
			std::this_thread::sleep_for(std::chrono::milliseconds(1));
		}
	};
	for (int i = 0; i < 1000 && r.of("B72 greedy") == 0; i++)
		cycle(10);
	cycle(100);
	EXPECT_TRUE(tn_watch(nullptr, nullptr));
	EXPECT_EQ(r.of("B72 greedy"), 1);
	EXPECT_EQ(r.of("B72 tidy"), 0);
	EXPECT_EQ(r.of("B72 idle"), 0);
	options.slab_percent = 101;
	EXPECT_FALSE(tn_watch(&options, reports::add));
	EXPECT_EQ(errno, EINVAL);
}

} /* namespace */
} /* namespace conformance_nested */
