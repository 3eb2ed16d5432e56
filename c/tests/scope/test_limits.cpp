/* Limits of scopes, and adopt, which moves what they count, on one thread. */
#include "use.h"

#include "ledger.h"

namespace test_scope_limits {
namespace {

constexpr size_t chunk_bytes = 16 * kib;

/* Scopes whose chunks all have one size, from a source that counts them. */
struct flat_tree {
	flat_tree() {
		options.chunk_bytes_max = TN_NONE;
		tn_scope_options of_root = options;
		of_root.source = books.source();
		root = make_scope("root", of_root);
	}
	tn_scope *create(tn_scope *parent) const {
		return create_below(parent, nullptr, options);
	}
	bool limit(tn_scope *s, size_t hard_bytes) const {
		tn_scope_limits limits = {};
		limits.hard_bytes = hard_bytes;
		return tn_scope_limit(s, &limits);
	}

	ledger books;
	tn_scope_options options = {};
	scope_owner root;
};

/* Fills the scope's chunks and takes another one. */
bool take_chunk_of(tn_scope *s) {
	size_t chunks = stats_of(s).chunk_count;
	while (stats_of(s).chunk_count == chunks)
		if (tn_scope_alloc(s, 1000, 8) == nullptr)
			return false;
	return true;
}

size_t take_all_chunks_of(tn_scope *s) {
	size_t count = 0;
	while (take_chunk_of(s))
		count++;
	EXPECT_EQ(errno, ENOMEM);
	return count;
}

/* Whether exactly `bytes` are left for the scope. */
void expect_left(tn_scope *s, size_t bytes) {
	size_t before = stats_of(s).external_bytes;
	EXPECT_REFUSED(tn_scope_external(s, before + bytes + 1), ENOMEM);
	EXPECT_EQ(stats_of(s).external_bytes, before);
	EXPECT_TRUE(tn_scope_external(s, before + bytes));
	EXPECT_REFUSED(tn_scope_external(s, SIZE_MAX), ENOMEM);
	EXPECT_TRUE(tn_scope_external(s, before));
}

TEST(scope_limits, a_hard_limit_is_exact) {
	flat_tree t;
	ASSERT_TRUE(t.limit(t.root.get(), 10 * chunk_bytes + 100));
	tn_scope *child = t.create(t.root.get());
	for (int cycle = 0; cycle < 5; cycle++) {
		ASSERT_TRUE(take_chunk_of(t.root.get()));
		EXPECT_EQ(take_all_chunks_of(child), 9u);
		EXPECT_REFUSED(take_chunk_of(t.root.get()), ENOMEM);
		EXPECT_EQ(t.books.held_bytes(), 10 * chunk_bytes);
		expect_left(child, 100);
		expect_left(t.root.get(), 100);
		EXPECT_TRUE(tn_scope_verify(t.root.get()));
		cycle % 2 == 0 ? tn_scope_reset(child) : tn_scope_reset(t.root.get());
		if (cycle % 2 != 0)
			child = t.create(t.root.get());
		tn_scope_trim(child);
		expect_left(t.root.get(), 100 + 10 * chunk_bytes - t.books.held_bytes());
		tn_scope_reset(t.root.get());
		tn_scope_trim(t.root.get());
		EXPECT_EQ(t.books.held_count(), 0u);
		child = t.create(t.root.get());
	}
	EXPECT_EQ(t.books.peak_bytes(), 10 * chunk_bytes);
}

TEST(scope_limits, a_childs_use_counts_against_every_scope_above) {
	flat_tree t;
	tn_scope *a = t.create(t.root.get()), *b = t.create(a), *c = t.create(b), *d = t.create(c);
	tn_scope *beside = t.create(a);
	ASSERT_TRUE(t.limit(t.root.get(), 1000));
	ASSERT_TRUE(t.limit(b, 700));
	ASSERT_TRUE(t.limit(c, 800));
	ASSERT_TRUE(tn_scope_external(d, 300));
	expect_left(d, 400), expect_left(c, 400), expect_left(b, 400), expect_left(a, 700);
	ASSERT_TRUE(tn_scope_external(beside, 600));
	expect_left(d, 100), expect_left(b, 100), expect_left(t.root.get(), 100);
	tn_scope_destroy(c);
	expect_left(b, 400), expect_left(beside, 400);
	ASSERT_TRUE(tn_scope_limit(t.root.get(), nullptr));
	expect_left(b, 700);
	EXPECT_TRUE(tn_scope_external(beside, 100000));
	EXPECT_TRUE(tn_scope_verify(t.root.get()));
	ASSERT_TRUE(tn_scope_limit(b, nullptr));
	EXPECT_TRUE(tn_scope_external(b, 100000));
	EXPECT_TRUE(tn_scope_external(b, 0));
	EXPECT_TRUE(tn_scope_verify(t.root.get()));
}

TEST(scope_limits, what_is_held_already_counts) {
	flat_tree t;
	tn_scope *s = t.create(t.root.get()), *below = t.create(s);
	ASSERT_TRUE(take_chunk_of(s) && take_chunk_of(below) && tn_scope_external(below, 50));
	ASSERT_NE(tn_scope_arena(below, nullptr), nullptr);
	size_t held = t.books.held_bytes() + 50;
	EXPECT_REFUSED(t.limit(s, held - 1), ENOMEM);
	EXPECT_TRUE(tn_scope_external(below, 60)) << "there is no limit";
	EXPECT_TRUE(tn_scope_external(below, 50));
	ASSERT_TRUE(t.limit(s, held));
	expect_left(below, 0);
	EXPECT_REFUSED(t.limit(s, held - 1), ENOMEM);
	expect_left(s, 0);
	ASSERT_TRUE(t.limit(s, held + 7));
	expect_left(s, 7);
	EXPECT_TRUE(tn_scope_verify(t.root.get()));
}

void never_called(tn_scope *, size_t, void *) {
	ADD_FAILURE() << "on_soft was called";
}

TEST(scope_limits, contradictions_change_nothing) {
	flat_tree t;
	tn_scope *s = t.create(t.root.get());
	ASSERT_TRUE(t.limit(s, 1000));
	tn_scope_limits limits = {};
	limits.hard_bytes = 2000;
	limits.soft_bytes = 2001;
	limits.on_soft = never_called;
	EXPECT_REFUSED(tn_scope_limit(s, &limits), EINVAL);
	limits.soft_bytes = 1999;
	limits.on_soft = nullptr;
	EXPECT_REFUSED(tn_scope_limit(s, &limits), EINVAL);
	expect_left(s, 1000);
	limits.soft_bytes = limits.hard_bytes;
	limits.on_soft = never_called;
	EXPECT_TRUE(tn_scope_limit(s, &limits));
	expect_left(s, 2000);
}

TEST(scope_limits, a_chunk_that_is_not_there_is_not_counted) {
	flat_tree t;
	ASSERT_TRUE(t.limit(t.root.get(), 2 * chunk_bytes));
	tn_scope *child = t.create(t.root.get());
	ASSERT_TRUE(t.limit(child, 2 * chunk_bytes));
	for (int i = 0; i < 10; i++) {
		t.books.fail(1, 1);
		EXPECT_REFUSED(take_chunk_of(child), ENOMEM);
		t.books.heal();
		expect_left(child, 2 * chunk_bytes);
	}
	/* The source's answer is 8 bytes off its alignment, and is given back. */
	t.books.misalign(8);
	EXPECT_REFUSED(take_chunk_of(child), ENOMEM);
	EXPECT_EQ(t.books.held_count(), 0u);
	t.books.misalign(0);
	expect_left(child, 2 * chunk_bytes);
	EXPECT_TRUE(tn_scope_verify(t.root.get()));
}

TEST(scope_limits, owned_allocators_count) {
	flat_tree t;
	tn_scope *s = t.create(t.root.get());
	ASSERT_TRUE(t.limit(s, 300 * kib));
	tn_arena *arena = tn_scope_arena(s, nullptr);
	tn_slab_options slab_options = {};
	slab_options.expendable = true;
	tn_slab *slab = tn_scope_slab(s, 1000, 0, &slab_options);
	tn_heap_options heap_options = {};
	heap_options.expendable = true;
	tn_heap *heap = tn_scope_heap(s, &heap_options);
	ASSERT_TRUE(arena != nullptr && slab != nullptr && heap != nullptr);
	size_t count = 0;
	while (tn_arena_alloc(arena, 1000, 8) != nullptr)
		count++;
	EXPECT_GT(count, 50u);
	while (tn_slab_alloc(slab) != nullptr)
		count++;
	while (tn_heap_alloc(heap, 1000, 8) != nullptr)
		count++;
	EXPECT_EQ(errno, ENOMEM);
	EXPECT_LE(t.books.peak_bytes(), 300 * kib);
	expect_left(s, 300 * kib - t.books.held_bytes());
	EXPECT_TRUE(tn_scope_verify(t.root.get()));
	tn_arena_destroy(arena);
	tn_slab_destroy(slab);
	tn_heap_destroy(heap);
	expect_left(s, 300 * kib);
	ASSERT_NE(tn_scope_arena(s, nullptr), nullptr);
	size_t held = t.books.held_bytes();
	EXPECT_TRUE(t.limit(s, held));
	EXPECT_REFUSED(tn_scope_arena(s, nullptr), ENOMEM);
	EXPECT_REFUSED(tn_scope_slab(s, 16, 0, nullptr), ENOMEM);
	EXPECT_REFUSED(tn_scope_heap(s, nullptr), ENOMEM);
	tn_scope_reset(s);
	expect_left(s, held);
}

/* Records the calls of on_soft. */
struct soft_calls {
	static void note(tn_scope *s, size_t held_bytes, void *ctx) {
		static_cast<soft_calls *>(ctx)->told.push_back({s, held_bytes});
	}
	bool limit(tn_scope *s, size_t soft_bytes, size_t hard_bytes = 0) {
		tn_scope_limits limits = {};
		limits.soft_bytes = soft_bytes;
		limits.hard_bytes = hard_bytes;
		limits.on_soft = note;
		limits.ctx = this;
		return tn_scope_limit(s, &limits);
	}
	/* Calls since the last time. */
	std::vector<std::pair<tn_scope *, size_t>> take() {
		return std::exchange(told, {});
	}
	std::vector<std::pair<tn_scope *, size_t>> told;
};

using said = std::vector<std::pair<tn_scope *, size_t>>;

TEST(scope_limits, on_soft_is_called_once_until_it_has_been_below) {
	flat_tree t;
	soft_calls calls;
	tn_scope *s = t.root.get(), *child = t.create(s);
	ASSERT_TRUE(calls.limit(s, 1000));
	for (int cycle = 0; cycle < 3; cycle++) {
		EXPECT_TRUE(tn_scope_external(child, 1000));
		EXPECT_EQ(calls.take(), said{});
		EXPECT_TRUE(tn_scope_external(child, 1001));
		EXPECT_EQ(calls.take(), (said{{s, 1001}}));
		EXPECT_TRUE(tn_scope_external(child, 5000));
		EXPECT_TRUE(tn_scope_external(child, 1001));
		EXPECT_TRUE(take_chunk_of(s));
		tn_scope_reset(s), tn_scope_trim(s);
		EXPECT_EQ(calls.take(), said{});
		child = t.create(s);
	}
	EXPECT_TRUE(take_chunk_of(child));
	EXPECT_EQ(calls.take(), (said{{s, chunk_bytes}}));
	EXPECT_TRUE(calls.limit(s, 2000)) << "what is held is above it";
	EXPECT_EQ(calls.take(), (said{{s, chunk_bytes}}));
	EXPECT_TRUE(tn_scope_limit(s, nullptr));
	EXPECT_TRUE(tn_scope_external(child, 99999));
	EXPECT_EQ(calls.take(), said{});
}

TEST(scope_limits, on_soft_of_several_levels) {
	flat_tree t;
	soft_calls outer, inner;
	tn_scope *s = t.create(t.root.get());
	ASSERT_TRUE(outer.limit(t.root.get(), 3000, 5000));
	ASSERT_TRUE(inner.limit(s, 1000, 6000));
	EXPECT_TRUE(tn_scope_external(t.root.get(), 2500));
	EXPECT_TRUE(tn_scope_external(s, 1500));
	EXPECT_EQ(inner.take(), (said{{s, 1500}}));
	EXPECT_EQ(outer.take(), (said{{t.root.get(), 4000}}));
	EXPECT_TRUE(tn_scope_external(s, 0));
	EXPECT_TRUE(tn_scope_external(t.root.get(), 0));
	EXPECT_REFUSED(tn_scope_external(s, 5001), ENOMEM);
	EXPECT_EQ(inner.take(), said{}) << "what was refused is no use";
	EXPECT_EQ(outer.take(), said{});
	EXPECT_TRUE(tn_scope_external(s, 5000));
	EXPECT_EQ(inner.take(), (said{{s, 5000}}));
	EXPECT_EQ(outer.take(), (said{{t.root.get(), 5000}}));
}

/* ---- adopt ---- */

TEST(scope_adopt, moves_a_scope_with_what_is_below) {
	scope_owner root = make_scope("root"), other = make_scope("other");
	tn_scope *a = create_below(root.get(), "a"), *b = create_below(other.get());
	tn_scope *child = create_below(a), *last = create_below(other.get());
	char *p = static_cast<char *>(tn_scope_alloc(child, 1000, 8));
	tn_slab *slab = tn_scope_slab(a, 64, 0, nullptr);
	fill(p, 1000, 1);
	uint64_t id = find_listed(snapshot(), "a")->id;
	EXPECT_TRUE(tn_scope_adopt(a, other.get()));
	EXPECT_EQ(tn_scope_parent(a), other.get());
	EXPECT_EQ(children_of(other.get()), (std::vector<tn_scope *>{a, last, b}));
	EXPECT_TRUE(tn_scope_adopt(b, other.get())) << "where it is";
	root.reset();
	EXPECT_TRUE(filled(p, 1000, 1));
	EXPECT_NE(tn_slab_alloc(slab), nullptr);
	std::vector<tn_listed> all = snapshot();
	EXPECT_EQ(find_listed(all, "a")->id, id);
	EXPECT_EQ(find_listed(all, "a")->parent_id, find_listed(all, "other")->id);
	EXPECT_EQ(find_listed(all, "slab")->parent_id, id);
	EXPECT_TRUE(tn_scope_adopt(a, b));
	EXPECT_TRUE(tn_scope_adopt(child, last));
	EXPECT_TRUE(tn_scope_verify(other.get()));
	tn_scope_destroy(other.release());
	EXPECT_EQ(snapshot().size(), 1u);
}

TEST(scope_adopt, refuses_what_cannot_be) {
	ledger books;
	tn_scope_options options = {};
	options.source = books.source();
	scope_owner root = make_scope("root"), other = make_scope("other");
	scope_owner sourced = make_scope("sourced", options);
	tn_scope *a = create_below(root.get()), *b = create_below(a), *c = create_below(b);
	tn_scope *foreign = create_below(sourced.get());
	EXPECT_REFUSED(tn_scope_adopt(root.get(), other.get()), EINVAL);
	EXPECT_REFUSED(tn_scope_adopt(a, a), EINVAL);
	EXPECT_REFUSED(tn_scope_adopt(a, b), EINVAL);
	EXPECT_REFUSED(tn_scope_adopt(a, c), EINVAL);
	EXPECT_REFUSED(tn_scope_adopt(a, sourced.get()), EINVAL);
	EXPECT_REFUSED(tn_scope_adopt(foreign, root.get()), EINVAL);
	EXPECT_EQ(children_of(root.get()), std::vector<tn_scope *>{a});
	EXPECT_EQ(children_of(a), std::vector<tn_scope *>{b});
	EXPECT_EQ(children_of(sourced.get()), std::vector<tn_scope *>{foreign});
	EXPECT_TRUE(tn_scope_adopt(create_below(foreign), sourced.get()));
	EXPECT_TRUE(tn_scope_verify(root.get()) && tn_scope_verify(sourced.get()));
}

TEST(scope_adopt, is_refused_where_it_would_exceed_a_limit) {
	flat_tree t;
	tn_scope *from = t.create(t.root.get()), *to = t.create(t.root.get()), *deep = t.create(to);
	tn_scope *child = t.create(from), *below = t.create(child);
	ASSERT_TRUE(tn_scope_external(child, 300) && tn_scope_external(below, 200));
	ASSERT_TRUE(t.limit(from, 900) && t.limit(to, 499));
	EXPECT_REFUSED(tn_scope_adopt(child, deep), ENOMEM);
	EXPECT_EQ(tn_scope_parent(child), from);
	expect_left(below, 400), expect_left(to, 499);
	EXPECT_TRUE(tn_scope_verify(t.root.get()));
	ASSERT_TRUE(t.limit(to, 600));
	EXPECT_TRUE(tn_scope_adopt(child, deep));
	expect_left(from, 900), expect_left(below, 100), expect_left(deep, 100);
	EXPECT_TRUE(tn_scope_verify(t.root.get()));
	EXPECT_TRUE(tn_scope_adopt(child, t.root.get()));
	expect_left(to, 600), expect_left(from, 900);
	EXPECT_TRUE(tn_scope_external(below, 10000));
	EXPECT_TRUE(tn_scope_verify(t.root.get()));
}

TEST(scope_adopt, below_a_common_limit_needs_no_room) {
	flat_tree t;
	soft_calls soft;
	tn_scope *from = t.create(t.root.get()), *to = t.create(t.root.get()), *child = t.create(from);
	ASSERT_TRUE(tn_scope_external(child, 1000));
	ASSERT_TRUE(soft.limit(t.root.get(), 500, 1000) && t.limit(from, 1000) && t.limit(to, 1000));
	soft.take();
	for (int i = 0; i < 4; i++) {
		ASSERT_TRUE(tn_scope_adopt(child, i % 2 == 0 ? to : from));
		expect_left(t.root.get(), 0), expect_left(i % 2 == 0 ? from : to, 0);
		EXPECT_EQ(soft.take(), said{});
		EXPECT_TRUE(tn_scope_verify(t.root.get()));
	}
	tn_scope_destroy(child);
	expect_left(from, 1000), expect_left(to, 1000);
}

TEST(scope_adopt, limits_of_the_child_stay) {
	flat_tree t;
	tn_scope *from = t.create(t.root.get()), *to = t.create(t.root.get());
	tn_scope *child = t.create(from), *below = t.create(child), *inner = t.create(below);
	ASSERT_TRUE(t.limit(child, 500) && t.limit(inner, 100) && t.limit(from, 450));
	ASSERT_TRUE(tn_scope_external(inner, 50));
	expect_left(below, 400);
	ASSERT_TRUE(tn_scope_adopt(child, to));
	expect_left(below, 450), expect_left(inner, 50), expect_left(from, 450);
	ASSERT_TRUE(t.limit(to, 300));
	expect_left(below, 250);
	ASSERT_TRUE(tn_scope_adopt(below, from));
	expect_left(below, 400), expect_left(inner, 50), expect_left(to, 300), expect_left(child, 300);
	EXPECT_TRUE(tn_scope_verify(t.root.get()));
}

} /* namespace */
} /* namespace test_scope_limits */
