/* Behaviour of Tenure's resources beyond the standard's clauses, which conformance tests: warm memory,
 * figures, trim, calls that are not virtual, and debug's message at the end. */
#include "resources.h"

#include <tenure/allocator.hpp>

#include <array>
#include <list>
#include <vector>

namespace {

using tenure::arena_resource;

template <typename R> class our_resource : public testing::Test {};
TYPED_TEST_SUITE(our_resource, our_resources, name_of);

template <typename R> class our_pool : public testing::Test {};
using our_pools = testing::Types<tenure::slab_resource, tenure::shared_slab_resource>;
TYPED_TEST_SUITE(our_pool, our_pools, name_of);

/* Blocks of several sizes, each written to. */
template <typename R> void use(R &resource, size_t count) {
	for (size_t i = 0; i < count; i++) {
		size_t bytes = 16 + i % 7 * 40;
		std::memset(resource.alloc(bytes), 0x3c, bytes);
	}
}

TEST(arena_resource, reset_keeps_warm_memory) {
	recorder upstream;
	arena_resource r(&upstream);
	use(r, 5000);
	for (int cycle = 0; cycle < 5; cycle++) {
		r.reset();
		size_t requests = upstream.requests().size();
		use(r, 5000);
		/* Debug takes new memory after a reset. */
		if (!debug_mode) {
			EXPECT_EQ(upstream.requests().size(), requests);
		}
	}
	EXPECT_EQ(r.stats().resets, 5u);
	r.release();
	EXPECT_EQ(upstream.held_count(), 0u);
}

TEST(arena_resource, reset_begins_again_in_the_buffer) {
	alignas(16) char buffer[4096];
	arena_resource r(buffer, sizeof buffer, std::pmr::null_memory_resource());
	for (int cycle = 0; cycle < 100; cycle++) {
		void *p = r.alloc(2000);
		EXPECT_GE(static_cast<char *>(p), buffer);
		EXPECT_LE(static_cast<char *>(p) + 2000, buffer + sizeof buffer);
		r.reset();
	}
}

TEST(arena_resource, takes_options) {
	tenure::arena_options options{};
	options.name = "requests";
	options.limit_bytes = 128 * kib;
	arena_resource r(options);
	EXPECT_STREQ(r.stats().name, "requests");
	EXPECT_THROW(use(r, 10000), std::bad_alloc);
	EXPECT_LE(r.stats().committed_bytes, 128 * kib);
	EXPECT_STREQ(arena_resource().stats().name, "arena_resource");
	options.chunk_bytes = SIZE_MAX;
	EXPECT_THROW(arena_resource bad(options), std::invalid_argument);
}

TEST(arena_resource, lives_in_an_arena_that_is_there) {
	tenure::arena a("request");
	int *older = a.make<int>(5);
	{
		arena_resource r(a);
		EXPECT_STREQ(r.stats().name, "request");
		std::pmr::vector<int> v({1, 2, 3}, &r);
		EXPECT_TRUE(a.owns(v.data()));
		EXPECT_EQ(r.upstream_resource(), nullptr);
	}
	EXPECT_EQ(*older, 5) << "its end is not the arena's";
	EXPECT_TRUE(a.owns(older));
	arena_resource r(a);
	(void)r.alloc(100);
	r.reset();
	EXPECT_EQ(a.stats().live_bytes, 0u);
	use(r, 100000);
	size_t committed = a.stats().committed_bytes;
	r.release();
	EXPECT_EQ(a.stats().live_bytes, 0u);
	EXPECT_LE(a.stats().committed_bytes, committed);
}

/* Records its end, which is that of the arena. */
struct passenger {
	explicit passenger(int &count) : ended(count) {
	}
	~passenger() {
		ended++;
	}
	int &ended;
};

TEST(arena_resource, reset_and_release_run_the_arenas_destructors) {
	int count = 0;
	tenure::arena a;
	arena_resource r(a);
	a.make<passenger>(count);
	r.reset();
	EXPECT_EQ(count, 1);
	a.make<passenger>(count);
	r.release();
	EXPECT_EQ(count, 2);
}

TYPED_TEST(our_resource, both_ways_give_the_same_memory) {
	TypeParam r;
	std::pmr::memory_resource &virtually = r;
	for (size_t bytes : {0u, 1u, 16u, 100u, 1024u, 5000u, 8192u, 8193u, 100000u})
		for (size_t align : {1u, 8u, 16u, 64u, 4096u}) {
			void *p = r.alloc(bytes, align), *q = virtually.allocate(bytes, align);
			EXPECT_TRUE(aligned_to(p, align) && aligned_to(q, align)) << bytes << " at " << align;
			fill(p, bytes, 1);
			fill(q, bytes, 2);
			EXPECT_TRUE(filled(p, bytes, 1) && filled(q, bytes, 2));
			virtually.deallocate(p, bytes, align);
			r.free(q, bytes, align);
		}
}

TYPED_TEST(our_resource, bad_alignments_are_an_invalid_argument) {
	TypeParam r;
	for (size_t bytes : {0u, 16u, 10000u})
		for (size_t align : {size_t{3}, size_t{24}, TN_ALIGN_MAX * 2, SIZE_MAX}) {
			EXPECT_THROW((void)r.alloc(bytes, align), std::invalid_argument) << align;
		}
	EXPECT_THROW((void)r.alloc(SIZE_MAX), std::bad_alloc);
	EXPECT_THROW((void)r.alloc(PTRDIFF_MAX), std::bad_alloc);
	r.free(r.alloc(16), 16);
}

TYPED_TEST(our_pool, free_of_nothing_is_a_no_op) {
	TypeParam r;
	for (size_t bytes : {0, 1, 48, 2000, 8192, 100000})
		for (size_t align : {1, 16, 64, 65536})
			r.free(nullptr, bytes, align);
	EXPECT_EQ(r.stats().live_count, 0u);
}

TYPED_TEST(our_pool, figures_are_exact) {
	TypeParam r;
	EXPECT_STREQ(r.stats().name, facts<TypeParam>::name);
	EXPECT_EQ(r.stats().live_count, 0u);
	std::vector<void *> blocks;
	for (int i = 0; i < 1000; i++)
		blocks.push_back(r.alloc(48));
	void *large = r.alloc(100000);
	EXPECT_EQ(r.stats().live_count, 1001u);
	EXPECT_EQ(r.stats().live_bytes, 1000 * 48 + 100000u);
	EXPECT_GE(r.stats().committed_bytes, r.stats().live_bytes);
	for (void *p : blocks)
		r.free(p, 48);
	r.free(large, 100000);
	EXPECT_EQ(r.stats().live_count, 0u);
	EXPECT_EQ(r.stats().live_bytes, 0u);
}

TYPED_TEST(our_pool, trim_gives_empty_chunks_back) {
	TypeParam r;
	std::vector<void *> blocks;
	for (int i = 0; i < 10000; i++)
		blocks.push_back(r.alloc(200));
	void *kept = r.alloc(300);
	fill(kept, 300, 1);
	for (void *p : blocks)
		r.free(p, 200);
	r.trim();
	EXPECT_EQ(r.stats().chunk_count, 1u);
	EXPECT_TRUE(filled(kept, 300, 1));
	EXPECT_EQ(r.trim(), 0u);
	r.free(kept, 300);
}

TYPED_TEST(our_pool, what_upstream_gave_serves_again) {
	recorder upstream;
	TypeParam r(&upstream);
	auto cycle = [&] {
		std::array<void *, 3000> blocks;
		for (void *&p : blocks)
			p = r.alloc(128);
		for (void *p : blocks)
			r.free(p, 128);
	};
	for (int i = 0; i < 10; i++)
		cycle();
	r.trim();
	size_t requests = upstream.requests().size();
	for (int i = 0; i < 10; i++) {
		cycle();
		r.trim();
	}
	EXPECT_EQ(upstream.requests().size(), requests);
	EXPECT_EQ(upstream.given_back(), 0u);
	r.release();
	EXPECT_EQ(upstream.held_count(), 0u);
}

/* At the end. */

/* The text that `work` writes to standard error. */
template <typename F> std::string said(F work) {
	testing::internal::CaptureStderr();
	work();
	return testing::internal::GetCapturedStderr();
}

TYPED_TEST(our_resource, only_debug_says_what_was_outstanding) {
	std::string text = said([] {
		TypeParam r;
		(void)r.alloc(64);
		(void)r.alloc(100000);
		r.free(r.alloc(32), 32);
	});
	std::string line = std::string("tenure: ") + facts<TypeParam>::name +
	                   ": destroyed with 100064 bytes in 2 blocks outstanding\n";
	EXPECT_EQ(text, debug_mode ? line : "");
}

TYPED_TEST(our_resource, says_nothing_when_all_came_back) {
	EXPECT_EQ(said([] {
		TypeParam r;
		std::pmr::vector<std::pmr::string> v(&r);
		for (int i = 0; i < 1000; i++)
			v.emplace_back(static_cast<size_t>(i), 'x');
		std::list<int, tenure::allocator<int, TypeParam>> l(r);
		l.assign(1000, 7);
	}),
		"");
}

TYPED_TEST(our_resource, says_nothing_of_what_was_released) {
	EXPECT_EQ(said([] {
		TypeParam r;
		for (int i = 0; i < 100; i++)
			(void)r.alloc(100);
		(void)r.alloc(100000);
		r.release();
	}),
		"");
}

}
