/* shared_slab.h, contract by contract: where its memory comes from and when it goes back. */
#include "crowd.h"
#include "slabs.h"

#include <set>

namespace test_shared_slab_memory {
namespace {

/* ---- flush and trim ---- */

TEST(shared_slab_memory, flush_gives_to_others) {
	ledger books;
	shared_slab_owner s = make_shared_slab(100, 0, with_source(books));
	for (size_t count : {1u, 30u, 400u, 3000u}) {
		std::vector<void *> slots = take(s.get(), count);
		std::set<void *> mine(slots.begin(), slots.end());
		give(s.get(), slots);
		tn_shared_slab_flush(s.get());
		tn_shared_slab_flush(s.get());
		EXPECT_EQ(tn_shared_slab_in_use(s.get()), 0u);
		in_thread([&] {
			std::vector<void *> theirs;
			size_t chunks = stats_of(s.get()).chunk_count;
			while (!mine.empty() && stats_of(s.get()).chunk_count == chunks) {
				theirs.push_back(tn_shared_slab_alloc(s.get()));
				mine.erase(theirs.back());
			}
			if (!debug_mode) {
				EXPECT_EQ(mine.size(), 0u) << "a chunk was taken, though free slots were to be had";
			}
			give(s.get(), theirs);
		});
		EXPECT_TRUE(tn_shared_slab_verify(s.get()));
	}
}

TEST(shared_slab_memory, flush_of_a_thread_that_never_used_it) {
	shared_slab_owner s = make_shared_slab(100);
	give(s.get(), take(s.get(), 10));
	in_thread([&] { tn_shared_slab_flush(s.get()); });
	EXPECT_TRUE(tn_shared_slab_verify(s.get()));
}

TEST(shared_slab_memory, trim_leaves_the_record_only) {
	for (size_t size : {1u, 8u, 24u, 100u, 5000u, 100000u})
		for (size_t count : {1u, 3u, 300u, 3000u}) {
			ledger books;
			tn_shared_slab_options options = with_source(books);
			options.retain_chunks = 100;
			shared_slab_owner s = make_shared_slab(size, 1, options);
			size_t own = books.held_bytes();
			std::vector<void *> slots = take(s.get(), std::min<size_t>(count, 10 * mib / size));
			give(s.get(), slots);
			size_t held = books.held_bytes();
			ASSERT_EQ(tn_shared_slab_trim(s.get()), held - own) << count << " of " << size;
			ASSERT_EQ(books.held_bytes(), own);
			tn_stats stats = stats_of(s.get());
			EXPECT_EQ(stats.committed_bytes, own);
			EXPECT_EQ(stats.chunk_count, 0u);
			EXPECT_EQ(stats.cached_bytes, 0u);
			EXPECT_EQ(tn_shared_slab_trim(s.get()), 0u);
			EXPECT_TRUE(tn_shared_slab_verify(s.get()));
			ASSERT_TRUE(disjoint(take(s.get(), slots.size()), size)) << "it goes on";
		}
}

/* A thread gives up its slots on its next slow path after another thread has trimmed. */
TEST(shared_slab_memory, trim_asks_other_threads) {
	if (debug_mode)
		GTEST_SKIP() << "no thread holds anything there";
	ledger books;
	tn_shared_slab_options options = with_source(books);
	options.magazine_slots = 16;
	options.chunk_bytes = 64 * kib;
	shared_slab_owner s = make_shared_slab(16 * kib, 0, options);
	size_t own = books.held_bytes();
	auto trim_elsewhere = [&] { in_thread([&] { tn_shared_slab_trim(s.get()); }); };
	std::vector<void *> slots = take(s.get(), 33);
	void *last = slots.back();
	slots.pop_back();
	tn_shared_slab_flush(s.get());
	give(s.get(), slots); /* two full magazines */
	trim_elsewhere();
	EXPECT_GE(stats_of(s.get()).chunk_count, 33u / 3) << "this thread's magazines are its own";
	tn_shared_slab_free(s.get(), last); /* a slow path */
	trim_elsewhere();
	EXPECT_LE(stats_of(s.get()).chunk_count, 1u) << "it was asked to flush and did not";
	tn_shared_slab_flush(s.get());
	trim_elsewhere();
	EXPECT_EQ(books.held_bytes(), own) << "after its flush, any thread can give it back";
}

/* ---- retention ---- */

/* Chunks that stay after `count` slots were taken, freed and flushed. */
size_t chunks_kept(size_t retain, size_t count, const ledger &books) {
	tn_shared_slab_options options = with_source(books);
	options.retain_chunks = retain;
	options.magazine_slots = 64;
	shared_slab_owner s = make_shared_slab(112, 0, options);
	give(s.get(), take(s.get(), count));
	/* Windows end by what goes through the depot. */
	for (size_t moved = 0; moved < 8 * count; moved += 600)
		give(s.get(), take(s.get(), 600));
	EXPECT_TRUE(tn_shared_slab_verify(s.get()));
	return stats_of(s.get()).chunk_count;
}

TEST(shared_slab_memory, a_burst_goes_back_without_trim) {
	ledger books;
	size_t none = chunks_kept(TN_NONE, 20000, books);
	size_t five = chunks_kept(5, 20000, books);
	size_t many = chunks_kept(1000, 20000, books);
	if (debug_mode) {
		EXPECT_LE(none, five) << "the quarantine holds chunks too";
	} else {
		/* At 580 slots a chunk: 600 in use, two magazines, and chunks that are partly free. */
		EXPECT_LE(none, 6u);
		EXPECT_LE(five, 11u);
		EXPECT_GE(five, 5u);
		EXPECT_GE(five, none);
	}
	EXPECT_GE(many, 30u) << "fewer chunks than may stay: all of them stay";
}

TEST(shared_slab_memory, a_steady_use_of_everything_takes_nothing_and_gives_nothing_back) {
	ledger books;
	shared_slab_owner s = make_shared_slab(112, 0, with_source(books));
	give(s.get(), take(s.get(), 20000));
	give(s.get(), take(s.get(), 20000));
	size_t calls = books.calls(), released = books.released();
	for (int round = 0; round < 30; round++)
		give(s.get(), take(s.get(), 20000));
	if (!debug_mode) {
		EXPECT_EQ(books.calls(), calls);
		EXPECT_EQ(books.released(), released);
	}
}

TEST(shared_slab_memory, retaining_more_chunks_than_there_can_be_keeps_all) {
	ledger books;
	size_t many = chunks_kept(1000, 20000, books);
	EXPECT_EQ(chunks_kept(SIZE_MAX - 1, 20000, books), many);
}

TEST(shared_slab_memory, magazine_slots_bound_what_a_thread_keeps) {
	if (debug_mode)
		GTEST_SKIP() << "there are no magazines";
	for (size_t magazine : {size_t{1}, size_t{2}, size_t{31}, size_t{200}, TN_MAGAZINE_SLOTS_MAX}) {
		ledger books;
		tn_shared_slab_options options = with_source(books);
		options.magazine_slots = magazine;
		shared_slab_owner s = make_shared_slab(16, 0, options);
		std::vector<void *> slots = take(s.get(), 3000);
		std::set<void *> mine(slots.begin(), slots.end());
		give(s.get(), slots);
		in_thread([&] {
			size_t same = 0;
			for (void *p : take(s.get(), 3000))
				same += mine.count(p);
			EXPECT_GE(same, 3000 - 2 * magazine) << "more than two magazines were kept";
		});
		EXPECT_TRUE(tn_shared_slab_verify(s.get()));
	}
}

/* ---- limits ---- */

/* Many magazines need more than the limit leaves: then there are fewer, and every slot is still
 * served. */
TEST(shared_slab_memory, magazines_count_against_the_limit) {
	for (size_t magazine_slots : {1u, 2u, 5u}) {
		ledger books;
		tn_shared_slab_options options = with_source(books);
		options.limit_bytes = 16 * page;
		options.magazine_slots = magazine_slots;
		shared_slab_owner s = make_shared_slab(16, 0, options);
		std::vector<void *> slots = exhaust(s.get());
		size_t capacity = slots.size();
		for (int round = 0; round < 3; round++) {
			give(s.get(), slots);
			EXPECT_LE(books.peak_bytes(), 16 * page);
			slots = exhaust(s.get());
			EXPECT_EQ(slots.size(), capacity);
		}
	}
}

} /* namespace */
} /* namespace test_shared_slab_memory */
