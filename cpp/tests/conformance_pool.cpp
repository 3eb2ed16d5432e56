/* [mem.res.pool]: a suite has the name of its clause, a test that of a statement in it. */
#include "resources.h"

namespace {

/* Takes `count` blocks of `bytes`; returns the number of requests to upstream. */
template <typename R>
size_t requests_for(block_list<R> &blocks, const recorder &books, size_t count, size_t bytes) {
	size_t before = books.requests().size();
	for (size_t i = 0; i < count; i++)
		blocks.take(bytes);
	return books.requests().size() - before;
}

/* ---- [mem.res.pool.overview] ---- */

RESOURCE_SUITE(mem_res_pool_overview, pool_resources);

TYPED_TEST(mem_res_pool_overview, owns_what_was_not_deallocated) {
	recorder books;
	{
		TypeParam r(&books);
		for (size_t i = 0; i < 1000; i++)
			fill(r.allocate(i, size_t{1} << i % 13), i, i);
		fill(r.allocate(3 * mib), 3 * mib, 1);
		EXPECT_GT(books.held_count(), 0u);
	}
	EXPECT_EQ(books.held_count(), 0u);
	EXPECT_EQ(books.wrong(), 0u);
	EXPECT_EQ(books.given_back(), books.requests().size());
}

/* A block goes to the pool of the smallest blocks that hold it: blocks of one size do not take much
 * more than their bytes. */
TYPED_TEST(mem_res_pool_overview, a_request_goes_to_the_smallest_blocks_that_fit) {
	for (size_t bytes : {16, 24, 40, 72, 100, 200, 500, 1000}) {
		recorder books;
		TypeParam r(&books);
		block_list blocks(r);
		requests_for(blocks, books, 20000, bytes);
		EXPECT_LE(books.held_bytes(), 20000 * facts<TypeParam>::room_for(bytes)) << bytes;
		EXPECT_TRUE(blocks.all_intact());
	}
}

TYPED_TEST(mem_res_pool_overview, blocks_come_in_chunks) {
	recorder books;
	TypeParam r(&books);
	block_list blocks(r);
	EXPECT_LE(requests_for(blocks, books, 10000, 32), facts<TypeParam>::requests_for_10000_of_32);
}

TYPED_TEST(mem_res_pool_overview, blocks_given_back_are_handed_out_again) {
	recorder books;
	TypeParam r(&books);
	block_list blocks(r);
	for (size_t bytes : {8, 50, 333, 1024}) {
		requests_for(blocks, books, 3000, bytes);
		blocks.give_all();
		size_t held = books.held_bytes();
		for (int round = 0; round < 5; round++) {
			requests_for(blocks, books, 3000, bytes);
			blocks.give_all();
		}
		EXPECT_LE(books.held_bytes(), held + facts<TypeParam>::quarantine_bytes) << bytes;
	}
}

TYPED_TEST(mem_res_pool_overview, chunks_grow_geometrically) {
	recorder books;
	TypeParam r(&books);
	block_list blocks(r);
	requests_for(blocks, books, 5000, 64);
	size_t largest = 0;
	for (const recorder::request &request : books.requests())
		largest = std::max(largest, request.bytes);
	EXPECT_GE(largest, facts<TypeParam>::chunk_after_5000_of_64);
}

TYPED_TEST(mem_res_pool_overview, larger_blocks_are_upstreams) {
	recorder books;
	TypeParam r(&books);
	for (size_t bytes : {r.options().largest_required_pool_block + 1, mib, 5 * mib}) {
		for (size_t align : {size_t{16}, page}) {
			size_t held = books.held_bytes(), count = books.given_back();
			void *p = r.allocate(bytes, align);
			fill(p, bytes, bytes);
			EXPECT_TRUE(books.holds(p, bytes));
			EXPECT_GE(books.held_bytes(), held + bytes);
			EXPECT_GE(books.requests().back().align, align);
			EXPECT_TRUE(filled(p, bytes, bytes));
			r.deallocate(p, bytes, align);
			EXPECT_FALSE(books.holds(p, bytes));
			EXPECT_GT(books.given_back(), count);
			EXPECT_LT(books.held_bytes(), held + bytes);
		}
	}
}

TYPED_TEST(mem_res_pool_overview, larger_blocks_are_told_apart) {
	recorder books;
	dice random(program_seed());
	TypeParam r(&books);
	block_list blocks(r);
	const size_t largest = r.options().largest_required_pool_block;
	for (int i = 0; i < 300; i++) {
		blocks.take(largest + 1 + random.below(10000), size_t{1} << random.below(13));
		if (random.one_in(2))
			blocks.give(random.below(blocks.count()));
	}
	EXPECT_TRUE(blocks.all_intact());
	r.release();
	EXPECT_EQ(books.held_count(), 0u);
}

/* ---- [mem.res.pool.options] ---- */

RESOURCE_SUITE(mem_res_pool_options, pool_resources);

TYPED_TEST(mem_res_pool_options, zero_is_a_default) {
	recorder books;
	TypeParam plain(&books), zero(std::pmr::pool_options{}, &books);
	EXPECT_GT(plain.options().max_blocks_per_chunk, 0u);
	EXPECT_GT(plain.options().largest_required_pool_block, 0u);
	EXPECT_EQ(zero.options().max_blocks_per_chunk, plain.options().max_blocks_per_chunk);
	EXPECT_EQ(zero.options().largest_required_pool_block, plain.options().largest_required_pool_block);
}

TYPED_TEST(mem_res_pool_options, more_than_the_limit_is_the_limit) {
	recorder books;
	TypeParam r(std::pmr::pool_options{SIZE_MAX, SIZE_MAX}, &books);
	EXPECT_LT(r.options().max_blocks_per_chunk, SIZE_MAX);
	EXPECT_LT(r.options().largest_required_pool_block, SIZE_MAX);
	block_list blocks(r);
	for (size_t i = 0; i < 1000; i++)
		blocks.take(i * 10);
	EXPECT_TRUE(blocks.all_intact());
}

/* Tenure's header promises it of the slabs' chunks, which are cut out of upstream's memory. */
TYPED_TEST(mem_res_pool_options, max_blocks_per_chunk_is_the_most_in_a_request) {
	recorder books;
	TypeParam r(std::pmr::pool_options{16, 0}, &books);
	block_list blocks(r);
	requests_for(blocks, books, 5000, 512);
	const size_t most = facts<TypeParam>::most_in_a_request(r.options().max_blocks_per_chunk, 512);
	for (const recorder::request &request : books.requests())
		EXPECT_LE(request.bytes, most);
	if constexpr (facts<TypeParam>::ours) {
		EXPECT_GE(r.stats().chunk_count, 5000u / 16);
	}
}

TYPED_TEST(mem_res_pool_options, largest_required_pool_block_is_pooled) {
	for (size_t largest : {8, 100, 512, 3000}) {
		recorder books;
		TypeParam r(std::pmr::pool_options{0, largest}, &books);
		EXPECT_GE(r.options().largest_required_pool_block, largest);
		block_list blocks(r);
		blocks.take(largest);
		blocks.give_all();
		size_t before = books.requests().size();
		for (int i = 0; i < 50; i++) {
			blocks.take(largest);
			blocks.give_all();
		}
		EXPECT_LE(books.requests().size() - before, 2u) << largest;
	}
}

/* ---- [mem.res.pool.ctor] ---- */

RESOURCE_SUITE(mem_res_pool_ctor, pool_resources);

TYPED_TEST(mem_res_pool_ctor, upstream_and_options_are_kept) {
	recorder books;
	std::pmr::pool_options wanted{64, 1024};
	TypeParam one(&books), two(wanted, &books);
	EXPECT_EQ(one.upstream_resource(), &books);
	EXPECT_EQ(two.upstream_resource(), &books);
	EXPECT_GE(two.options().largest_required_pool_block, 1024u);
	static_assert(!std::is_convertible_v<std::pmr::memory_resource *, TypeParam>);
	static_assert(!std::is_convertible_v<std::pmr::pool_options, TypeParam>);
	static_assert(std::is_constructible_v<TypeParam, std::pmr::pool_options>);
	static_assert(std::is_default_constructible_v<TypeParam>);
}

/* ---- [mem.res.pool.mem] ---- */

RESOURCE_SUITE(mem_res_pool_mem, pool_resources);

TYPED_TEST(mem_res_pool_mem, release_gives_back_what_was_not_deallocated) {
	recorder books;
	TypeParam r(&books);
	for (int round = 0; round < 3; round++) {
		block_list blocks(r);
		for (size_t i = 0; i < 1000; i++)
			blocks.take(i * 5, size_t{1} << i % 8);
		blocks.take(5 * mib);
		blocks.take(100, page);
		blocks.take(64 * kib, page);
		for (size_t i = 0; i < 300; i++)
			blocks.give(i);
		EXPECT_TRUE(blocks.all_intact());
		r.release();
		EXPECT_EQ(books.held_count(), 0u);
		EXPECT_EQ(books.wrong(), 0u);
		blocks.forget();
	}
	EXPECT_EQ(books.given_back(), books.requests().size());
}

TYPED_TEST(mem_res_pool_mem, release_of_nothing_and_twice) {
	recorder books;
	TypeParam r(&books);
	r.release();
	fill(r.allocate(100), 100, 1);
	r.release();
	size_t given_back = books.given_back();
	r.release();
	EXPECT_EQ(books.given_back(), given_back);
	EXPECT_EQ(books.held_count(), 0u);
}

TYPED_TEST(mem_res_pool_mem, release_keeps_upstream_and_options) {
	recorder books;
	TypeParam r(std::pmr::pool_options{32, 512}, &books);
	std::pmr::pool_options before = r.options();
	fill(r.allocate(100), 100, 1);
	r.release();
	EXPECT_EQ(r.upstream_resource(), &books);
	EXPECT_EQ(r.options().max_blocks_per_chunk, before.max_blocks_per_chunk);
	EXPECT_EQ(r.options().largest_required_pool_block, before.largest_required_pool_block);
}

TYPED_TEST(mem_res_pool_mem, do_deallocate_makes_room_in_the_pool) {
	recorder books;
	TypeParam r(&books);
	block_list blocks(r);
	for (int i = 0; i < 400000; i++) {
		blocks.take(48);
		if (blocks.count() > 10)
			blocks.give(static_cast<size_t>(i) % blocks.count());
	}
	EXPECT_LE(books.held_bytes(), facts<TypeParam>::room_for_few);
	EXPECT_TRUE(blocks.all_intact());
}

TYPED_TEST(mem_res_pool_mem, do_is_equal_is_identity) {
	TypeParam one, other;
	EXPECT_TRUE(one.is_equal(one));
	EXPECT_FALSE(one.is_equal(other));
}

/* ---- any thread: [mem.res.pool.overview] on synchronized_pool_resource ---- */

RESOURCE_SUITE(mem_res_pool_synchronized, shared_resources);

struct crossing {
	std::mutex lock;
	std::vector<held_block> blocks;
};

TYPED_TEST(mem_res_pool_synchronized, four_threads_and_blocks_that_others_give_back) {
	recorder books;
	{
		TypeParam r(&books);
		crossing middle;
		std::atomic<size_t> broken{0}, crossed{0};
		auto give = [&](const held_block &b) {
			broken += !b.intact();
			r.deallocate(b.p, b.bytes, b.align);
		};
		in_crowd(4, [&](size_t me) {
			dice random(program_seed() + me);
			std::vector<held_block> mine;
			for (size_t i = 0; i < times(1000000, 20000); i++) {
				held_block b = random_request(random, 64);
				b.p = r.allocate(b.bytes, b.align);
				b.seed = me << 32 | i;
				broken += facts<TypeParam>::aligns && !aligned_to(b.p, b.align);
				fill(b.p, b.bytes, b.seed);
				mine.push_back(b);
				if (random.one_in(2)) {
					std::swap(mine[random.below(mine.size())], mine.back());
					give(mine.back());
					mine.pop_back();
				}
				if (random.one_in(50)) {
					std::lock_guard<std::mutex> hold(middle.lock);
					std::swap(middle.blocks, mine);
					crossed += mine.size();
				}
				while (mine.size() > 200) {
					give(mine.back());
					mine.pop_back();
				}
			}
			for (const held_block &b : mine)
				give(b);
		});
		EXPECT_EQ(broken, 0u);
		EXPECT_GT(crossed, 100u);
		for (const held_block &b : middle.blocks)
			EXPECT_TRUE(b.intact());
		/* The destructor takes the blocks in the middle. */
	}
	EXPECT_EQ(books.held_count(), 0u);
	EXPECT_EQ(books.wrong(), 0u);
}

TYPED_TEST(mem_res_pool_synchronized, threads_come_and_go) {
	recorder books;
	TypeParam r(&books);
	block_list blocks(r);
	for (int round = 0; round < 50; round++)
		in_thread([&] {
			for (size_t i = 0; i < 200; i++)
				blocks.take(i);
			while (blocks.count() > 50)
				blocks.give(blocks.count() / 2);
		});
	EXPECT_TRUE(blocks.all_intact());
	r.release();
	EXPECT_EQ(books.held_count(), 0u);
}

TYPED_TEST(mem_res_pool_synchronized, larger_blocks_from_many_threads) {
	recorder books;
	TypeParam r(&books);
	const size_t large = r.options().largest_required_pool_block + 1;
	in_crowd(4, [&](size_t me) {
		block_list blocks(r);
		for (size_t i = 0; i < 200; i++) {
			blocks.take(large + me * 100 + i, 64);
			if (blocks.count() > 5)
				blocks.give(0);
		}
		EXPECT_TRUE(blocks.all_intact());
		blocks.give_all();
	});
	r.release();
	EXPECT_EQ(books.held_count(), 0u);
}

}
