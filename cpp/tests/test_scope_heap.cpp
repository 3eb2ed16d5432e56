/* scope.hpp, heap.hpp, their resources and stats.hpp: ends and their order, the state after an
 * exception, and objects whose scope has ended before them. */
#include "ledger.h"
#include "resources.h"
#include "witness.h"

#include <tenure/allocator.hpp>
#include <tenure/scope_resource.hpp>
#include <tenure/stats.hpp>

#include <list>
#include <optional>

namespace {

using tenure::heap;
using tenure::scope;

class typed_scope : public witnessed {};
class typed_heap : public witnessed {};

void note(void *id) {
	noted::ended.push_back(*static_cast<int *>(id));
}

/* Construction. */

TEST_F(typed_scope, takes_a_name_and_options) {
	EXPECT_STREQ(scope().stats().name, "scope");
	EXPECT_STREQ(scope("server").stats().name, "server");
	tenure::scope_options options{};
	options.chunk_bytes = 64 * kib;
	scope s("server", options), child(s, "connection");
	EXPECT_EQ(s.parent(), nullptr);
	EXPECT_EQ(child.parent(), s.get());
	EXPECT_GE((void(s.alloc(1)), s.stats().committed_bytes), 64 * kib);
}

TEST_F(typed_scope, bad_options_are_an_invalid_argument) {
	scope s("server");
	tenure::scope_options shared{};
	shared.shared = true;
	EXPECT_THROW(scope(s, "connection", shared), std::invalid_argument);
	s.defer([&s] { EXPECT_THROW(scope(s, "late"), std::invalid_argument); });
	s.reset();
}

TEST_F(typed_scope, bad_alignments_are_an_invalid_argument) {
	scope s;
	for (size_t align : {size_t{3}, size_t{24}, TN_ALIGN_MAX * 2})
		EXPECT_THROW((void)s.alloc(16, align), std::invalid_argument) << align;
	EXPECT_THROW((void)s.alloc(SIZE_MAX), std::bad_alloc);
	EXPECT_THROW(s.make_array<long>(SIZE_MAX / 4), std::bad_array_new_length);
}

/* make, copy, printf. */

TEST_F(typed_scope, destructors_and_deferred_calls_are_one_list) {
	int two = 2;
	{
		scope s;
		s.make<noted>(1);
		s.defer(note, &two);
		s.make<noted>(3);
		s.defer([] { noted::ended.push_back(4); });
		noted *five = s.make_array<noted>(2);
		five[0].id = 5;
		five[1].id = 6;
		EXPECT_EQ(ended(), ids{});
	}
	EXPECT_EQ(ended(), (ids{6, 5, 4, 3, 2, 1}));
}

TEST_F(typed_scope, a_deferred_call_cannot_reset_its_own) {
	scope root("root");
	scope child(root, "child");
	int calls = 0;
	child.defer([&] {
		calls++;
		child.reset();
	});
	child.reset();
	EXPECT_EQ(calls, 1);
	EXPECT_NE(child.alloc(8), nullptr);
}

TEST_F(typed_scope, reset_runs_them_once) {
	scope s;
	for (int round = 0; round < 3; round++) {
		s.make<noted>(1);
		s.make<noted>(2);
		s.reset();
		EXPECT_EQ(ended(), (ids{2, 1}));
		EXPECT_EQ(s.stats().live_bytes, 0u);
	}
	s.reset();
	EXPECT_EQ(ended(), ids{});
	EXPECT_EQ(s.stats().resets, 4u);
}

TEST_F(typed_scope, what_a_constructor_makes_ends_after_its_maker) {
	struct maker : noted {
		explicit maker(scope &s) : noted(2) {
			s.make<noted>(1);
		}
	};
	scope s;
	s.make<maker>(s);
	s.reset();
	EXPECT_EQ(ended(), (ids{2, 1}));
}

TEST_F(typed_scope, a_constructor_that_throws_leaves_nothing_to_run) {
	scope s;
	throw_in(1);
	EXPECT_THROW(s.make<witness>(), out_of_clay);
	throw_in(4);
	EXPECT_THROW(s.make_array<witness>(5), out_of_clay);
	EXPECT_EQ(witness::alive, 0u);
	s.make<witness>();
	EXPECT_EQ(witness::alive, 1u);
}

/* The source fails once, at each of its requests in turn. */
TEST_F(typed_scope, what_cannot_be_deferred_is_destroyed_at_once) {
	size_t failed = 0;
	for (size_t request = 1; failed + 1 >= request; request++) {
		ledger books;
		tenure::scope_options options{};
		options.source = books.source();
		options.chunk_bytes = 4 * kib;
		options.chunk_bytes_max = TN_NONE;
		scope s("small", options);
		books.fail(request, 1);
		for (size_t i = 0; i < 300; i++) {
			size_t before = witness::alive;
			try {
				s.make<witness>();
				s.make_array<witness>(2);
				s.defer([kept = std::make_unique<witness>()] {});
				EXPECT_EQ(witness::alive, before + 4);
			} catch (const std::bad_alloc &) {
				before = witness::alive;
				failed++;
			}
			ASSERT_TRUE(s.verify());
		}
		books.heal();
		s.reset();
		EXPECT_EQ(witness::alive, 0u);
	}
	EXPECT_GT(failed, 3u);
}

TEST_F(typed_scope, copy_and_printf) {
	scope s;
	EXPECT_EQ(s.copy(std::string_view("text")), "text");
	const char *text = s.printf("%d of %s", 42, "them");
	EXPECT_STREQ(text, "42 of them");
	EXPECT_TRUE(s.owns(text + 10));
	EXPECT_FALSE(s.owns(&s));
	struct pair {
		int a, b;
	};
	EXPECT_EQ((s.make<pair>(1, 2)->b), 2) << "an aggregate, too";
	EXPECT_EQ(s.make_array<long>(100)[99], 0) << "value-initialised";
}

/* Deferred calls. */

TEST_F(typed_scope, deferred_calls_may_own_what_only_moves) {
	int called = 0;
	{
		scope s;
		auto count = [&called, kept = std::make_unique<noted>(7)] { called += kept->id; };
		s.defer(std::move(count));
		EXPECT_EQ(called, 0);
		EXPECT_EQ(witness::alive, 1u);
	}
	EXPECT_EQ(called, 7);
	EXPECT_EQ(ended(), ids{7}) << "the callable itself ends after its call";
}

TEST_F(typed_scope, deferred_calls_are_aligned) {
	struct alignas(256) wide {
		bool *right;
		void operator()() const {
			*right = aligned_to(this, 256);
		}
	};
	bool right = false;
	scope s;
	s.defer(wide{&right});
	s.reset();
	EXPECT_TRUE(right);
}

TEST_F(typed_scope, undefer_takes_the_newest_back) {
	int one = 1, two = 2;
	scope s;
	s.defer(note, &one);
	s.defer(note, &two);
	s.defer(note, &one);
	EXPECT_TRUE(s.undefer(note, &one));
	auto *three = s.defer([kept = std::make_unique<noted>(3)] { noted::ended.push_back(4); });
	EXPECT_TRUE(s.undefer(three));
	EXPECT_EQ(ended(), ids{3}) << "destroyed, and not called";
	s.reset();
	EXPECT_EQ(ended(), (ids{2, 1}));
	EXPECT_FALSE(s.undefer(note, &one));
}

TEST_F(typed_scope, nothing_is_deferred_to_what_is_ending) {
	scope s;
	s.defer([&s] {
		EXPECT_THROW(s.defer([] {}), std::invalid_argument);
		EXPECT_THROW(s.make<noted>(1), std::invalid_argument);
	});
	EXPECT_THROW(s.defer(nullptr, nullptr), std::invalid_argument);
	s.reset();
	EXPECT_EQ(ended(), ids{1}) << "destroyed at once";
}

/* The tree. */

TEST_F(typed_scope, an_exception_unwinds_what_is_below) {
	scope session("session");
	session.make<noted>(1);
	auto run = [&] {
		scope query(session, "query");
		query.make<noted>(2);
		scope part(query, "part");
		part.make<noted>(3);
		throw out_of_stock{4};
	};
	EXPECT_THROW(run(), out_of_stock);
	EXPECT_EQ(ended(), (ids{3, 2}));
	EXPECT_TRUE(session.verify());
	session.make<noted>(5);
	session.reset();
	EXPECT_EQ(ended(), (ids{5, 1}));
}

TEST_F(typed_scope, is_empty_once_it_has_ended_with_one_above) {
	std::optional<scope> process("process");
	scope connection(*process, "connection"), request(connection, "request");
	request.make<noted>(1);
	connection.reset();
	EXPECT_EQ(ended(), ids{1});
	EXPECT_TRUE(connection);
	EXPECT_FALSE(request);
	EXPECT_THROW(scope(request, "part"), std::invalid_argument);
	EXPECT_THROW(connection.adopt(request), std::invalid_argument);
	request = scope(connection, "request");
	request.make<noted>(2);
	request.reset();
	EXPECT_EQ(ended(), ids{2});
	EXPECT_TRUE(request) << "its own reset does not end it";
	scope moved = std::move(request);
	EXPECT_FALSE(request);
	moved.make<noted>(3);
	process.reset();
	EXPECT_EQ(ended(), ids{3});
	EXPECT_FALSE(moved || connection);
}

TEST_F(typed_scope, may_own_what_owns_scopes_below_it) {
	struct session : noted {
		explicit session(scope &above) : noted(1), request(above, "request") {
			request.make<noted>(2);
		}
		~session() {
			EXPECT_FALSE(request) << "children end first";
		}
		scope request;
	};
	scope connection("connection");
	connection.make<session>(connection);
	connection.reset();
	EXPECT_EQ(ended(), (ids{2, 1}));
}

TEST_F(typed_scope, moves) {
	EXPECT_FALSE(std::is_copy_constructible_v<scope>);
	EXPECT_TRUE(std::is_nothrow_move_constructible_v<scope>);
	EXPECT_TRUE(std::is_nothrow_move_assignable_v<scope>);
	scope root("root"), first(root, "first"), second(root, "second");
	first.make<noted>(1);
	second.make<noted>(2);
	first = std::move(second);
	EXPECT_EQ(ended(), ids{1});
	EXPECT_FALSE(second);
	EXPECT_STREQ(first.stats().name, "second");
	scope taken(std::move(first));
	EXPECT_TRUE(taken);
	root = scope("another");
	EXPECT_EQ(ended(), ids{2});
	EXPECT_FALSE(taken);
	EXPECT_STREQ(root.stats().name, "another");
}

TEST_F(typed_scope, adopt) {
	scope root("root"), other("other");
	scope left(root, "left"), right(root, "right"), leaf(left, "leaf");
	leaf.make<noted>(1);
	right.adopt(leaf);
	EXPECT_EQ(leaf.parent(), right.get());
	left.reset();
	EXPECT_EQ(ended(), ids{});
	EXPECT_THROW(leaf.adopt(right), std::invalid_argument) << "below itself";
	EXPECT_THROW(root.adopt(other), std::invalid_argument) << "a root";
	right.reset();
	EXPECT_EQ(ended(), ids{1});
	EXPECT_FALSE(leaf);
}

TEST_F(typed_scope, each_visits_the_children) {
	scope root("root"), first(root, "first"), second(root, "second"), below(second, "below");
	std::vector<tn_scope *> children;
	root.each([&](tn_scope *child) { children.push_back(child); });
	EXPECT_EQ(children, (std::vector<tn_scope *>{second.get(), first.get()}));
}

/* Limits and figures. */

TEST_F(typed_scope, limits) {
	scope root("root"), child(root, "child");
	static size_t told;
	told = 0;
	tenure::scope_limits limits{};
	limits.hard_bytes = mib;
	limits.soft_bytes = 256 * kib;
	limits.on_soft = [](tn_scope *, size_t, void *) { told++; };
	root.limit(limits);
	EXPECT_THROW(
		{
			for (int i = 0; i < 1000; i++)
				(void)child.alloc(10 * kib);
		},
		std::bad_alloc);
	EXPECT_EQ(told, 1u);
	EXPECT_LE(root.subtree_stats().committed_bytes, mib);
	EXPECT_THROW(root.external(mib), std::bad_alloc);
	limits.soft_bytes = 2 * mib;
	EXPECT_THROW(root.limit(limits), std::invalid_argument);
	limits = {};
	limits.hard_bytes = 64 * kib;
	EXPECT_THROW(root.limit(limits), std::bad_alloc) << "holds more";
	root.limit({});
	(void)child.alloc(2 * mib);
	root.external(5 * mib);
	EXPECT_EQ(root.stats().external_bytes, 5 * mib);
	root.reset();
	EXPECT_EQ(root.stats().external_bytes, 0u);
}

TEST_F(typed_scope, stats_are_its_own_or_the_subtrees) {
	scope root("root"), child(root, "child");
	(void)child.alloc(10000);
	EXPECT_LT(root.stats().live_bytes, 10000u);
	EXPECT_GE(child.stats().live_bytes, 10000u);
	EXPECT_EQ(root.subtree_stats().live_bytes, root.stats().live_bytes + child.stats().live_bytes);
	EXPECT_EQ(child.trim(), 0u);
	EXPECT_TRUE(root.verify());
}

TEST_F(typed_scope, print_shows_the_tree) {
	scope root("root");
	tenure::scope_options options{};
	options.ident = "select 1";
	scope child(root, "query", options);
	std::FILE *file = std::tmpfile();
	root.print(file);
	std::rewind(file);
	char text[1000] = {};
	EXPECT_GT(std::fread(text, 1, sizeof text - 1, file), 0u);
	std::fclose(file);
	const char *above = std::strstr(text, "root"), *below = std::strstr(text, "query");
	EXPECT_TRUE(above != nullptr && below > above) << text;
	EXPECT_NE(std::strstr(text, "select 1"), nullptr) << text;
}

/* Allocators that a scope owns, and containers. */

TEST_F(typed_scope, owned_allocators_end_with_it) {
	scope s("session");
	tenure::arena &a = s.arena();
	a.make<noted>(1);
	tenure::slab<noted> &nodes = s.slab<noted>();
	noted *two = nodes.make(2);
	heap &h = s.heap();
	std::memset(h.alloc(1000), 1, 1000);
	EXPECT_EQ(nodes.in_use(), 1u);
	EXPECT_GE(s.stats().committed_bytes,
		a.stats().committed_bytes + nodes.stats().committed_bytes + h.stats().committed_bytes);
	EXPECT_TRUE(s.verify());
	nodes.destroy(two);
	EXPECT_EQ(ended(), ids{2});
	(void)nodes.alloc();
	s.reset();
	EXPECT_EQ(ended(), ids{1}) << "an arena runs destructors";
	EXPECT_EQ(s.stats().live_bytes, 0u);
	tenure::slab_options bad{};
	bad.chunk_bytes = SIZE_MAX;
	EXPECT_THROW(s.slab<int>(bad), std::invalid_argument);
}

TEST_F(typed_scope, owned_allocators_have_names_and_limits) {
	scope s("session");
	tenure::heap_options options{};
	options.name = "script";
	options.limit_bytes = 256 * kib;
	heap &h = s.heap(options);
	EXPECT_STREQ(h.stats().name, "script");
	EXPECT_THROW(
		{
			for (int i = 0; i < 100; i++)
				(void)h.alloc(10 * kib);
		},
		std::bad_alloc);
	tenure::scope_limits limits{};
	limits.hard_bytes = mib;
	s.limit(limits);
	EXPECT_THROW((void)s.arena().alloc(2 * mib), std::bad_alloc);
}

TEST_F(typed_scope, containers_lie_in_it) {
	scope s;
	tenure::scope_resource memory(s);
	auto *words = s.make<std::pmr::vector<std::pmr::string>>(&memory);
	for (int i = 0; i < 100; i++)
		words->emplace_back(100, 'x');
	EXPECT_TRUE(s.owns(words->back().data()));
	std::vector<int, tenure::allocator<int, scope>> numbers({1, 2, 3}, s);
	EXPECT_TRUE(s.owns(numbers.data()));
	EXPECT_TRUE(memory == memory);
	EXPECT_THROW((void)memory.allocate(1, 3), std::invalid_argument);
	scope moved = std::move(s);
	words->emplace_back(1000, 'y');
	EXPECT_TRUE(moved.owns(words->back().data())) << "a resource is the scope's, not the object's";
}

/* Heap. */

TEST_F(typed_heap, takes_a_name_or_options) {
	EXPECT_STREQ(heap().stats().name, "heap");
	EXPECT_STREQ(heap("document").stats().name, "document");
	ledger books;
	books.fail(1, ledger::never);
	tenure::heap_options options{};
	options.source = books.source();
	EXPECT_THROW(
		{
			heap h(options);
			(void)h.alloc(1);
		},
		std::bad_alloc);
	tn_source none{};
	options.source = &none;
	EXPECT_THROW(heap h(options), std::invalid_argument);
}

TEST_F(typed_heap, alloc_free_realloc) {
	heap h;
	for (size_t size : {0u, 1u, 16u, 100u, 1000u, 40000u, 3000000u})
		for (size_t align : {0u, 1u, 16u, 64u, 4096u}) {
			void *p = h.alloc(size, align), *q = h.alloc(size, align);
			EXPECT_TRUE(aligned_to(p, align == 0 ? 16 : align));
			EXPECT_GE(h.usable_size(p), size);
			fill(p, size, 1);
			fill(q, size, 2);
			EXPECT_TRUE(h.owns(p) && filled(p, size, 1));
			p = h.realloc(p, size + 5000);
			EXPECT_TRUE(filled(p, size, 1));
			h.free(p);
			h.free(q, size, align);
		}
	h.free(nullptr);
	h.free(nullptr, 16);
	EXPECT_EQ(h.stats().live_count, 0u);
	EXPECT_THROW((void)h.alloc(16, 3), std::invalid_argument);
	EXPECT_THROW((void)h.alloc(SIZE_MAX), std::bad_alloc);
	h.trim();
	EXPECT_TRUE(h.verify());
}

TEST_F(typed_heap, make_and_destroy) {
	heap h;
	noted *one = h.make<noted>(1);
	struct alignas(128) wide : noted {
		using noted::noted;
	};
	wide *two = h.make<wide>(2);
	EXPECT_TRUE(aligned_to(two, 128));
	{
		heap::unique<noted> three = h.make_unique<noted>(3);
		EXPECT_EQ(h.stats().live_count, 3u);
	}
	h.destroy(one);
	h.destroy(two);
	h.destroy(static_cast<noted *>(nullptr));
	EXPECT_EQ(ended(), (ids{3, 1, 2}));
	throw_in(1);
	EXPECT_THROW((void)h.make<witness>(), out_of_clay);
	EXPECT_EQ(h.stats().live_count, 0u);
	const int *seven = h.make<const int>(7);
	h.destroy(seven);
	EXPECT_EQ(h.stats().live_count, 0u);
}

struct shape {
	virtual ~shape() = default;
	long area = 0;
};
struct coloured {
	virtual ~coloured() = default;
	long colour = 0;
};
struct disc : shape, coloured, noted {
	disc() : noted(1) {
	}
	char rest[500];
};

TEST_F(typed_heap, destroy_through_a_base) {
	heap h;
	coloured *second = h.make<disc>();
	h.destroy(second);
	shape *first = h.make<disc>();
	h.destroy(first);
	EXPECT_EQ(ended(), (ids{1, 1}));
	EXPECT_EQ(h.stats().live_count, 0u);
	EXPECT_TRUE(h.verify());
}

TEST_F(typed_heap, reset_and_the_end_forget) {
	tenure::heap_options options{};
	options.expendable = true;
	{
		heap h(options);
		(void)h.make<witness>();
		h.reset();
		EXPECT_EQ(h.stats().live_count, 0u);
		(void)h.make<witness>();
	}
	EXPECT_EQ(witness::alive, 2u) << "their destructors do not run";
	witness::alive = 0;
}

TEST_F(typed_heap, each_visits_what_is_live) {
	heap h;
	std::map<void *, size_t> expected, seen;
	for (size_t size : {10u, 100u, 1000u, 100000u}) {
		void *p = h.alloc(size);
		expected[p] = h.usable_size(p);
	}
	h.each([&](void *p, size_t size) { seen[p] = size; });
	EXPECT_EQ(seen, expected);
	for (auto &block : expected)
		h.free(block.first);
}

TEST_F(typed_heap, moves) {
	EXPECT_FALSE(std::is_copy_constructible_v<heap>);
	EXPECT_TRUE(std::is_nothrow_move_constructible_v<heap>);
	heap first("first"), second("second");
	void *p = second.alloc(100);
	first = std::move(second);
	EXPECT_TRUE(first.owns(p));
	heap third(std::move(first));
	EXPECT_STREQ(third.stats().name, "second");
	third.free(p);
}

TEST_F(typed_heap, containers_give_memory_back) {
	heap h;
	{
		std::list<int, tenure::allocator<int, heap>> l(h);
		l.assign(1000, 7);
		EXPECT_EQ(h.stats().live_count, 1000u + (sizeof(void *) == 4));
	}
	EXPECT_EQ(h.stats().live_count, 0u);
}

/* Resource. */

TEST(heap_resource, lives_in_a_heap_that_is_there) {
	tenure::heap_options options{};
	options.name = "document";
	options.expendable = true;
	heap h(options);
	tenure::heap_resource r(h);
	{
		std::pmr::vector<int> v({1, 2, 3}, &r);
		EXPECT_TRUE(h.owns(v.data()));
		EXPECT_STREQ(r.stats().name, "document");
	}
	EXPECT_EQ(h.stats().live_count, 0u);
	(void)r.alloc(100);
	r.release();
	EXPECT_EQ(h.stats().live_count, 0u);
	EXPECT_TRUE(h.verify());
}

TEST(heap_resource, reset_keeps_warm_memory) {
	recorder upstream;
	tenure::heap_resource r(&upstream);
	EXPECT_EQ(r.trim(), 0u);
	EXPECT_STREQ(r.stats().name, "heap_resource");
	r.reset();
	EXPECT_EQ(upstream.requests().size(), 0u) << "made with the first block";
	auto use = [&r] {
		for (size_t i = 0; i < 5000; i++)
			std::memset(r.alloc(16 + i % 7 * 40), 1, 16);
	};
	use();
	r.reset();
	size_t requests = upstream.requests().size();
	use();
	/* Debug takes new memory after a reset. */
	if (!debug_mode) {
		EXPECT_EQ(upstream.requests().size(), requests);
	}
	r.reset();
	r.trim();
	if (!debug_mode) {
		EXPECT_LT(upstream.held_bytes(), 64 * kib);
	}
	r.release();
	EXPECT_EQ(upstream.held_count(), 0u);
}

TEST(heap_resource, takes_options) {
	tenure::heap_options options{};
	options.name = "document";
	options.limit_bytes = 256 * kib;
	options.zero = true;
	tenure::heap_resource r(options);
	EXPECT_STREQ(r.stats().name, "document");
	char *p = static_cast<char *>(r.allocate(1000));
	EXPECT_EQ(std::count(p, p + 1000, 0), 1000);
	EXPECT_STREQ(r.stats().name, "document");
	EXPECT_THROW((void)r.allocate(mib), std::bad_alloc);
	r.deallocate(p, 1000);
	r.free(nullptr, 1000);
	EXPECT_EQ(r.stats().live_count, 0u);
}

/* Snapshots and watches. */

TEST(snapshot, sees_the_tree) {
	scope root("snapshot root"), child(root, "snapshot child");
	uint64_t id = 0;
	std::vector<std::string> names;
	size_t count = tenure::snapshot([&](const tn_listed &l) {
		if (l.stats.name == std::string("snapshot root"))
			id = l.id;
		if (id != 0 && (l.id == id || l.parent_id == id))
			names.push_back(l.stats.name);
	});
	EXPECT_GE(count, 3u);
	EXPECT_EQ(names, (std::vector<std::string>{"snapshot root", "snapshot child"}));
	EXPECT_EQ(tenure::snapshot([](const tn_listed &) { return false; }), 1u);
}

TEST(snapshot, throws_what_its_visitor_throws) {
	scope root("root");
	size_t calls = 0;
	EXPECT_THROW(tenure::snapshot([&](const tn_listed &) {
		calls++;
		throw out_of_stock{1};
	}),
		out_of_stock);
	EXPECT_EQ(calls, 1u);
	EXPECT_GE(tenure::snapshot([](const tn_listed &) {}), 2u) << "and not again";
}

TEST(watch, reports_by_name) {
	std::atomic<bool> found{false};
	tenure::watch_options options{};
	options.interval_ms = options.growing_ms = 1;
	options.least_bytes = 1;
	tenure::watch watching(
		[&found](tn_finding finding, const tn_listed &l, const char *message) {
			if (finding == TN_FOUND_GROWING && l.stats.name == std::string("greedy"))
				found = std::strstr(message, "greedy") != nullptr;
		},
		options);
	EXPECT_THROW(tenure::watch second([](auto &&...) {}), std::invalid_argument);
	scope greedy("greedy");
	for (int i = 0; i < 5000 && !found; i++) {
		(void)greedy.alloc(20 * kib);
		std::this_thread::sleep_for(std::chrono::milliseconds(1));
	}
	EXPECT_TRUE(found);
}

TEST(watch, bad_options_are_an_invalid_argument) {
	auto report = [](tn_finding, const tn_listed &, const char *) {};
	tenure::watch_options options{};
	options.waste_percent = 101;
	EXPECT_THROW(tenure::watch w(report, options), std::invalid_argument);
	options = {};
	options.ctx = &options;
	EXPECT_THROW(tenure::watch w(report, options), std::invalid_argument);
	for (int i = 0; i < 2; i++)
		tenure::watch fine(report);
}

}
