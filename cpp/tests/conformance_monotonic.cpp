/* [mem.res.monotonic.buffer]: a suite has the name of its clause, a test that of a statement in it. */
#include "resources.h"

#include <algorithm>
#include <set>

namespace {

/* Requests to upstream for `total` bytes in blocks of `bytes`. */
template <typename R> size_t requests_for(R &r, const recorder &books, size_t total, size_t bytes) {
	size_t before = books.requests().size();
	for (size_t taken = 0; taken < total; taken += bytes)
		std::memset(r.allocate(bytes), 1, bytes);
	return books.requests().size() - before;
}

std::vector<size_t> sizes_of(const recorder &books, size_t from = 0) {
	std::vector<size_t> sizes;
	for (size_t i = from; i < books.requests().size(); i++)
		sizes.push_back(books.requests()[i].bytes);
	return sizes;
}

/* ---- [mem.res.monotonic.buffer.overview] ---- */

RESOURCE_SUITE(mem_res_monotonic_buffer_overview, monotonic_resources);

TYPED_TEST(mem_res_monotonic_buffer_overview, deallocate_has_no_effect) {
	recorder books;
	TypeParam r(&books);
	block_list kept(r);
	kept.take(100);
	std::set<void *> seen;
	for (int i = 0; i < 1000; i++) {
		void *p = r.allocate(64);
		EXPECT_TRUE(seen.insert(p).second) << "handed out again";
		fill(p, 64, 1);
		r.deallocate(p, 64);
		EXPECT_TRUE(filled(p, 64, 1));
	}
	EXPECT_EQ(books.given_back(), 0u);
	EXPECT_TRUE(kept.all_intact());
}

TYPED_TEST(mem_res_monotonic_buffer_overview, consumption_grows_until_the_end) {
	recorder books;
	{
		TypeParam r(&books);
		for (size_t held = 0; books.held_bytes() < mib; held = books.held_bytes()) {
			r.deallocate(r.allocate(1000), 1000);
			EXPECT_GE(books.held_bytes(), held);
		}
		EXPECT_EQ(books.given_back(), 0u);
	}
	EXPECT_EQ(books.held_bytes(), 0u);
}

TYPED_TEST(mem_res_monotonic_buffer_overview, the_initial_buffer_is_used_before_upstream_is) {
	recorder books;
	alignas(64) char buffer[4096];
	TypeParam r(buffer, sizeof buffer, &books);
	size_t inside = 0;
	for (; books.requests().empty(); inside++) {
		void *p = r.allocate(16, 16);
		size_t offset = address(p) - address(buffer);
		bool within = offset < sizeof buffer && sizeof buffer - offset >= 16;
		EXPECT_EQ(within, books.requests().empty());
		std::memset(p, 1, 16);
	}
	EXPECT_GT(inside, facts<TypeParam>::blocks_of_16_in(sizeof buffer));
}

/* Each additional buffer is larger than the previous one, by a factor. The header says at which size
 * Tenure's buffers stop growing. */
TYPED_TEST(mem_res_monotonic_buffer_overview, buffers_grow_geometrically) {
	recorder books;
	TypeParam r(&books);
	size_t requests = requests_for(r, books, 32 * mib, 64);
	std::vector<size_t> sizes = sizes_of(books);
	size_t growing = 1;
	for (size_t i = 1; i < sizes.size(); i++) {
		EXPECT_GE(sizes[i], sizes[i - 1]);
		if (sizes[i - 1] < facts<TypeParam>::largest_buffer) {
			EXPECT_GE(sizes[i], std::min(sizes[i - 1] * 5 / 4, facts<TypeParam>::largest_buffer));
			growing++;
		}
	}
	/* log 32 Mi / log 5/4 */
	EXPECT_LE(growing, 78u);
	EXPECT_LE(requests - growing, books.held_bytes() / facts<TypeParam>::largest_buffer);
}

/* ---- [mem.res.monotonic.buffer.ctor] ---- */

RESOURCE_SUITE(mem_res_monotonic_buffer_ctor, monotonic_resources);

TYPED_TEST(mem_res_monotonic_buffer_ctor, asks_upstream_for_nothing_yet) {
	recorder books;
	char buffer[64];
	TypeParam one(&books), two(size_t{4096}, &books), three(buffer, sizeof buffer, &books);
	EXPECT_EQ(books.requests().size(), 0u);
	EXPECT_EQ(one.upstream_resource(), &books);
	EXPECT_EQ(two.upstream_resource(), &books);
	EXPECT_EQ(three.upstream_resource(), &books);
}

TYPED_TEST(mem_res_monotonic_buffer_ctor, conversions_are_explicit) {
	static_assert(!std::is_convertible_v<std::pmr::memory_resource *, TypeParam>);
	static_assert(!std::is_convertible_v<size_t, TypeParam>);
	static_assert(std::is_constructible_v<TypeParam, size_t>);
	static_assert(std::is_constructible_v<TypeParam, void *, size_t>);
	static_assert(std::is_default_constructible_v<TypeParam>);
}

TYPED_TEST(mem_res_monotonic_buffer_ctor, initial_size_is_the_least_that_is_asked_for) {
	for (size_t initial : {size_t{1}, size_t{100}, size_t{1000}, 100 * kib, 10 * mib}) {
		recorder books;
		TypeParam r(initial, &books);
		std::memset(r.allocate(1, 1), 1, 1);
		ASSERT_EQ(books.requests().size(), 1u);
		EXPECT_GE(books.requests()[0].bytes, initial);
	}
}

TYPED_TEST(mem_res_monotonic_buffer_ctor, initial_size_is_had_in_one_request) {
	recorder books;
	TypeParam r(100 * kib, &books);
	size_t requests = requests_for(r, books, facts<TypeParam>::blocks_of_16_in(100 * kib) * 16, 16);
	EXPECT_EQ(requests, 1u);
}

TYPED_TEST(mem_res_monotonic_buffer_ctor, buffer_size_is_the_least_that_is_asked_for_after_it) {
	recorder books;
	std::vector<char> buffer(100 * kib);
	TypeParam r(buffer.data(), buffer.size(), &books);
	while (books.requests().empty())
		std::memset(r.allocate(64), 1, 64);
	EXPECT_GE(books.requests()[0].bytes, buffer.size());
}

TYPED_TEST(mem_res_monotonic_buffer_ctor, a_buffer_may_be_none_tiny_or_crooked) {
	recorder books;
	alignas(64) char place[1024];
	for (size_t bytes : {size_t{0}, size_t{1}, size_t{15}, size_t{100}, size_t{1023}}) {
		std::memset(place, 0x77, sizeof place);
		TypeParam r(bytes == 0 ? nullptr : place + 1, bytes, &books);
		block_list blocks(r);
		for (size_t i = 0; i < 100; i++)
			blocks.take(i, size_t{1} << i % 7);
		EXPECT_TRUE(blocks.all_intact());
		EXPECT_EQ(place[0], 0x77) << "a byte before the buffer was written";
		EXPECT_TRUE(all_bytes(place + 1 + bytes, sizeof place - 1 - bytes, 0x77)) << "bytes behind it";
	}
}

TYPED_TEST(mem_res_monotonic_buffer_ctor, null_memory_resource_makes_the_buffer_the_limit) {
	alignas(16) char buffer[2048];
	TypeParam r(buffer, sizeof buffer, std::pmr::null_memory_resource());
	block_list blocks(r);
	EXPECT_THROW(for (;;) blocks.take(32), std::bad_alloc);
	EXPECT_GE(blocks.count(), facts<TypeParam>::blocks_of_16_in(sizeof buffer) / 2);
	EXPECT_TRUE(blocks.all_intact());
	r.release();
	size_t count = blocks.count();
	blocks.forget();
	EXPECT_THROW(for (;;) blocks.take(32), std::bad_alloc);
	EXPECT_EQ(blocks.count(), count);
}

TYPED_TEST(mem_res_monotonic_buffer_ctor, destructor_gives_everything_back) {
	recorder books;
	char buffer[256];
	{
		TypeParam r(buffer, sizeof buffer, &books);
		for (size_t i = 0; i < 100; i++)
			fill(r.allocate(i * 100, size_t{1} << i % 13), i * 100, i);
		EXPECT_GT(books.held_count(), 0u);
	}
	EXPECT_EQ(books.held_count(), 0u);
	EXPECT_EQ(books.wrong(), 0u);
	EXPECT_EQ(books.given_back(), books.requests().size());
}

/* ---- [mem.res.monotonic.buffer.mem] ---- */

RESOURCE_SUITE(mem_res_monotonic_buffer_mem, monotonic_resources);

TYPED_TEST(mem_res_monotonic_buffer_mem, release_gives_back_what_was_not_deallocated) {
	recorder books;
	TypeParam r(&books);
	for (int round = 0; round < 3; round++) {
		block_list blocks(r);
		for (size_t i = 0; i < 100; i++)
			blocks.take(i * 10);
		blocks.take(5 * mib);
		blocks.take(100, page);
		blocks.take(64 * kib, page);
		EXPECT_TRUE(blocks.all_intact());
		r.release();
		EXPECT_EQ(books.held_count(), 0u);
		EXPECT_EQ(books.given_back(), books.requests().size());
		blocks.forget();
	}
}

TYPED_TEST(mem_res_monotonic_buffer_mem, release_of_nothing_and_twice) {
	recorder books;
	TypeParam r(&books);
	r.release();
	EXPECT_EQ(books.requests().size(), 0u);
	std::memset(r.allocate(100), 1, 100);
	r.release();
	r.release();
	EXPECT_EQ(books.given_back(), 1u);
	EXPECT_EQ(books.wrong(), 0u);
}

TYPED_TEST(mem_res_monotonic_buffer_mem, release_makes_the_initial_buffer_new) {
	recorder books;
	alignas(64) char buffer[1024];
	TypeParam r(buffer, sizeof buffer, &books);
	const void *first = r.allocate(64);
	EXPECT_LT(address(first) - address(buffer), sizeof buffer);
	for (int i = 0; i < 100; i++)
		std::memset(r.allocate(64), 1, 64);
	r.release();
	size_t before = books.requests().size();
	EXPECT_EQ(r.allocate(64), first);
	EXPECT_EQ(books.requests().size(), before);
}

/* LWG 3120: the size of the next buffer, too, is the initial one again. */
TYPED_TEST(mem_res_monotonic_buffer_mem, release_makes_the_growth_new) {
	recorder books;
	TypeParam plain(&books), sized(5000, &books);
	for (TypeParam *r : {&plain, &sized}) {
		size_t start = books.requests().size();
		requests_for(*r, books, 4 * mib, 64);
		r->release();
		std::vector<size_t> first = sizes_of(books, start);
		start = books.requests().size();
		requests_for(*r, books, 4 * mib, 64);
		EXPECT_EQ(sizes_of(books, start), first);
	}
}

TYPED_TEST(mem_res_monotonic_buffer_mem, do_allocate_asks_when_the_buffer_cannot_fit_it) {
	recorder books;
	alignas(64) char buffer[1024];
	TypeParam r(buffer, sizeof buffer, &books);
	block_list blocks(r);
	EXPECT_TRUE(books.holds(blocks.take(sizeof buffer + 1).p, sizeof buffer + 1));
	EXPECT_EQ(books.requests().size(), 1u);
	EXPECT_GE(books.requests()[0].bytes, sizeof buffer + 1);
}

TYPED_TEST(mem_res_monotonic_buffer_mem, do_allocate_asks_at_the_alignment_it_needs) {
	for (size_t align = 16; align <= page; align *= 2) {
		recorder books;
		TypeParam r(&books);
		block_list blocks(r);
		/* Not at the beginning of a buffer. */
		blocks.take(1, 1);
		blocks.take(10, align);
		blocks.take(mib, align);
		EXPECT_TRUE(blocks.all_intact());
	}
}

TYPED_TEST(mem_res_monotonic_buffer_mem, do_is_equal_is_identity) {
	TypeParam one, other;
	EXPECT_TRUE(one.is_equal(one));
	EXPECT_FALSE(one.is_equal(other));
}

}
