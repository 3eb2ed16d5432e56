/* shared_slab.h, contract by contract: where its memory comes from and when it goes back. */
#include "mapped_source.h"
#include "process.h"
#include "use.h"

#include <map>
#include <set>

namespace {

/* ---- flush and trim ---- */

TEST(shared_slab, flush_gives_to_others) {
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

TEST(shared_slab, flush_of_a_thread_that_never_used_it) {
	shared_slab_owner s = make_shared_slab(100);
	give(s.get(), take(s.get(), 10));
	in_thread([&] { tn_shared_slab_flush(s.get()); });
	EXPECT_TRUE(tn_shared_slab_verify(s.get()));
}

TEST(shared_slab, trim_leaves_the_record_only) {
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

TEST(shared_slab, trim_keeps_chunks_with_a_live_slot) {
	ledger books;
	shared_slab_owner s = make_shared_slab(100, 0, with_source(books));
	size_t own = books.held_count();
	std::vector<void *> slots = take(s.get(), 20000);
	std::map<uintptr_t, void *> keep;
	for (void *p : slots)
		keep[address(p) / (4 * default_chunk)] = p;
	for (void *p : slots)
		if (keep[address(p) / (4 * default_chunk)] != p)
			tn_shared_slab_free(s.get(), p);
	std::set<uintptr_t> chunks;
	for (auto &k : keep) {
		fill(k.second, 100, k.first);
		chunks.insert(address(k.second) / default_chunk);
	}
	EXPECT_GT(tn_shared_slab_trim(s.get()), 0u);
	EXPECT_EQ(books.held_count(), own + chunks.size());
	EXPECT_EQ(tn_shared_slab_in_use(s.get()), keep.size());
	EXPECT_EQ(stats_of(s.get()).partial_count, chunks.size());
	for (auto &k : keep)
		EXPECT_TRUE(filled(k.second, 100, k.first));
	EXPECT_TRUE(tn_shared_slab_verify(s.get()));
	std::vector<void *> more = take(s.get(), 20000);
	for (auto &k : keep)
		more.push_back(k.second);
	EXPECT_TRUE(disjoint(more, 112));
}

TEST(shared_slab, trimmed_memory_really_goes) {
	shared_slab_owner s = make_shared_slab(1000);
	tn_trim_all();
	size_t before = resident_bytes();
	std::vector<void *> slots = take(s.get(), 60000);
	for (void *p : slots)
		std::memset(p, 1, 1000);
	if (!sanitized) {
		EXPECT_GT(resident_bytes(), before + 50 * mib);
	}
	give(s.get(), slots);
	EXPECT_GE(tn_shared_slab_trim(s.get()), 55 * mib);
	expect_resident_below(before + 12 * mib);
}

/* A thread gives up its slots on its next slow path after another thread has trimmed. */
TEST(shared_slab, trim_asks_other_threads) {
	if (debug_mode)
		GTEST_SKIP() << "no thread holds anything there";
	ledger books;
	tn_shared_slab_options options = with_source(books);
	options.magazine_slots = 16;
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

TEST(shared_slab, a_burst_goes_back_without_trim) {
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

TEST(shared_slab, a_steady_use_of_everything_takes_nothing_and_gives_nothing_back) {
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

TEST(shared_slab, retaining_more_chunks_than_there_can_be_keeps_all) {
	ledger books;
	size_t many = chunks_kept(1000, 20000, books);
	EXPECT_EQ(chunks_kept(SIZE_MAX - 1, 20000, books), many);
}

TEST(shared_slab, magazine_slots_bound_what_a_thread_keeps) {
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

/* ---- limits and sources ---- */

TEST(shared_slab, limit_is_never_passed) {
	for (size_t limit :
		{2 * page, 3 * page, 4 * page + 1, default_chunk, 2 * default_chunk, 5 * default_chunk + 100}) {
		ledger books;
		tn_shared_slab_options options = with_source(books);
		options.limit_bytes = limit;
		shared_slab_owner s = make_shared_slab(100, 0, options);
		if (s == nullptr) {
			EXPECT_TRUE(debug_mode && limit < 5 * page) << limit;
			continue;
		}
		for (int round = 0; round < 3; round++) {
			std::vector<void *> slots = exhaust(s.get());
			EXPECT_EQ(errno, ENOMEM);
			EXPECT_LE(books.peak_bytes(), limit);
			EXPECT_TRUE(tn_shared_slab_verify(s.get()));
			/* All but the parts that hold no whole slot: the record, the chunks' heads, less than a
			 * chunk. */
			if (!debug_mode) {
				EXPECT_GT(slots.size() * 112 + page, (limit - page) * 3 / 4) << limit;
			}
			give(s.get(), slots);
			if (round == 1)
				tn_shared_slab_flush(s.get());
			EXPECT_TRUE(tn_shared_slab_verify(s.get()));
		}
		EXPECT_LE(books.peak_bytes(), limit);
	}
}

TEST(shared_slab, a_full_slab_serves_again_after_free) {
	ledger books;
	tn_shared_slab_options options = with_source(books);
	options.limit_bytes = 4 * default_chunk;
	shared_slab_owner s = make_shared_slab(100, 0, options);
	std::vector<void *> slots = exhaust(s.get());
	size_t capacity = slots.size();
	ASSERT_GT(capacity, 0u);
	for (size_t turn = 0; turn < 100; turn++) {
		tn_shared_slab_free(s.get(), slots[turn]);
		ASSERT_NE(slots[turn] = tn_shared_slab_alloc(s.get()), nullptr);
		EXPECT_REFUSED(tn_shared_slab_alloc(s.get()), ENOMEM);
	}
	for (int round = 0; round < 5; round++) {
		shuffle(slots, 7);
		give(s.get(), slots);
		slots = exhaust(s.get());
		EXPECT_EQ(slots.size(), capacity) << "round " << round;
	}
}

/* Many magazines need more than the limit leaves: then there are fewer, and every slot is still
 * served. */
TEST(shared_slab, magazines_count_against_the_limit) {
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

TEST(shared_slab, misaligned_answers_count_as_none) {
	ledger books;
	shared_slab_owner s = make_shared_slab(100, 0, with_source(books));
	size_t own = books.held_count();
	books.misalign(64);
	EXPECT_REFUSED(tn_shared_slab_alloc(s.get()), ENOMEM);
	EXPECT_EQ(books.held_count(), own);
	EXPECT_TRUE(tn_shared_slab_verify(s.get()));
	books.misalign(0);
	EXPECT_NE(tn_shared_slab_alloc(s.get()), nullptr);
}

TEST(shared_slab, failure_of_the_source_changes_nothing) {
	ledger books;
	shared_slab_owner s = make_shared_slab(100, 0, with_source(books));
	std::vector<void *> slots = take(s.get(), 100);
	books.fail(1, ledger::never);
	for (void *p : exhaust(s.get()))
		slots.push_back(p);
	EXPECT_GT(books.failures(), 0u);
	tn_stats earlier = stats_of(s.get());
	void *more[3];
	EXPECT_REFUSED(tn_shared_slab_alloc(s.get()), ENOMEM);
	EXPECT_REFUSED(tn_shared_slab_alloc_batch(s.get(), more, 3), ENOMEM);
	tn_stats later = stats_of(s.get());
	later.refills = earlier.refills;
	EXPECT_EQ(to_text(later), to_text(earlier));
	EXPECT_TRUE(tn_shared_slab_verify(s.get()));
	give(s.get(), slots);
	EXPECT_EQ(tn_shared_slab_in_use(s.get()), 0u) << "a free needs no memory";
	EXPECT_TRUE(tn_shared_slab_verify(s.get()));
	EXPECT_EQ(exhaust(s.get()).size(), slots.size());
	books.heal();
	EXPECT_NE(tn_shared_slab_alloc(s.get()), nullptr);
}

TEST(shared_slab, source_asked_for_alignment_of_the_size) {
	mapped_source source;
	tn_shared_slab_options options = {};
	options.source = &source.source;
	shared_slab_owner s = make_shared_slab(100, 0, options);
	take(s.get(), 3000);
	size_t chunks = 0;
	for (auto &chunk : source.chunks) {
		bool own = chunk.second < default_chunk;
		EXPECT_TRUE(aligned_to(chunk.first, own ? page : chunk.second));
		chunks += !own;
	}
	EXPECT_GE(chunks, 4u);
}

TEST(shared_slab, destroy_with_live_slots_is_legal) {
	ledger books;
	shared_slab_owner s = make_shared_slab(100, 0, with_source(books));
	take(s.get(), 5000);
	give(s.get(), take(s.get(), 3000));
	s.reset();
	EXPECT_EQ(books.held_count(), 0u);
}

} /* namespace */
