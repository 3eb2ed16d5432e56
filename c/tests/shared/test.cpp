/* shared_slab.h, contract by contract, on one thread or several in turn. The contract that it shares
 * with slab.h is in slab/test_both.cpp; overlapping threads are in test_threads.cpp and stress.cpp. */
#include "crowd.h"
#include "mapped_source.h"
#include "slabs.h"

namespace test_shared_slab {
namespace {

/* ---- creation ---- */

TEST(shared_slab, contradicting_options_take_nothing) {
	ledger books;
	tn_shared_slab_options options = with_source(books);
	options.fini = [](void *, void *) {};
	EXPECT_REFUSED(make_shared_slab(16, 0, options), EINVAL);
	options = with_source(books);
	for (size_t slots : {TN_MAGAZINE_SLOTS_MAX + 1, SIZE_MAX}) {
		options.magazine_slots = slots;
		EXPECT_REFUSED(make_shared_slab(16, 0, options), EINVAL);
	}
	EXPECT_EQ(books.calls(), 0u);
}

TEST(shared_slab, no_memory_for_the_record) {
	for (size_t n = 1; n <= 3; n++) {
		ledger books;
		books.fail(n, ledger::never);
		shared_slab_owner s = make_shared_slab(16, 0, with_source(books));
		EXPECT_TRUE(s != nullptr || errno == ENOMEM);
		EXPECT_TRUE(n > 1 || s == nullptr);
		s.reset();
		EXPECT_EQ(books.held_count(), 0u);
	}
	for (size_t limit : {size_t{1}, size_t{100}, page - 1}) {
		ledger books;
		tn_shared_slab_options options = with_source(books);
		options.limit_bytes = limit;
		EXPECT_REFUSED(make_shared_slab(16, 0, options), ENOMEM);
		EXPECT_EQ(books.peak_bytes(), 0u);
	}
}

TEST(shared_slab, slots_of_a_mebibyte) {
	ledger books;
	shared_slab_owner s = make_shared_slab(mib, 4096, with_source(books));
	size_t own = books.held_bytes();
	for (int round = 0; round < 3; round++) {
		std::vector<void *> slots = take(s.get(), 12);
		EXPECT_TRUE(disjoint(slots, mib));
		for (size_t i = 0; i < slots.size(); i++)
			static_cast<char *>(slots[i])[0] = static_cast<char *>(slots[i])[mib - 1] = 1;
		give(s.get(), slots);
		EXPECT_EQ(tn_shared_slab_in_use(s.get()), 0u);
		EXPECT_TRUE(tn_shared_slab_verify(s.get()));
	}
	tn_shared_slab_trim(s.get());
	EXPECT_EQ(books.held_bytes(), own);
}

/* ---- the handle ---- */

TEST(shared_slab, a_thread_has_one_handle_for_each_slab) {
	shared_slab_owner s = make_shared_slab(32), other = make_shared_slab(32);
	tn_local *l = tn_shared_slab_local(s.get());
	ASSERT_NE(l, nullptr);
	EXPECT_NE(tn_shared_slab_local(other.get()), l);
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(tn_shared_slab_local(s.get()), l);
		give(s.get(), take(s.get(), 1000));
		tn_shared_slab_flush(s.get());
		tn_shared_slab_trim(s.get());
	}
	in_thread([&] {
		tn_local *theirs = tn_shared_slab_local(s.get());
		EXPECT_NE(theirs, nullptr);
		EXPECT_NE(theirs, l);
		EXPECT_EQ(tn_shared_slab_local(s.get()), theirs);
	});
}

TEST(shared_slab, handle_and_slab_share_the_magazines) {
	shared_slab_owner s = make_shared_slab(32);
	tn_local *l = tn_shared_slab_local(s.get());
	for (size_t count : {1u, 10u, 700u, 5000u}) {
		std::vector<void *> slots;
		for (size_t i = 0; i < count; i++)
			slots.push_back(i % 2 == 0 ? tn_shared_slab_local_alloc(l) : tn_shared_slab_alloc(s.get()));
		ASSERT_TRUE(disjoint(slots, 32));
		ASSERT_EQ(tn_shared_slab_in_use(s.get()), count);
		for (size_t i = 0; i < count; i++)
			if (i % 3 == 0)
				tn_shared_slab_local_free(l, slots[i]);
			else
				tn_shared_slab_free(s.get(), slots[i]);
		ASSERT_EQ(tn_shared_slab_in_use(s.get()), 0u);
		void *p = tn_shared_slab_local_alloc(l);
		EXPECT_EQ(p == slots.back(), !debug_mode);
		tn_shared_slab_local_free(l, p);
		ASSERT_TRUE(tn_shared_slab_verify(s.get()));
	}
}

TEST(shared_slab, a_handle_from_before_any_alloc_works) {
	shared_slab_owner s = make_shared_slab(32);
	tn_local *l = tn_shared_slab_local(s.get());
	void *p = tn_shared_slab_local_alloc(l);
	ASSERT_NE(p, nullptr);
	fill(p, 32, 1);
	EXPECT_EQ(tn_shared_slab_in_use(s.get()), 1u);
	tn_shared_slab_local_free(l, p);
	EXPECT_EQ(tn_shared_slab_in_use(s.get()), 0u);
}

TEST(shared_slab, slabs_come_and_go) {
	shared_slab_owner stays = make_shared_slab(40);
	std::vector<void *> slots = take(stays.get(), 100);
	for (int i = 0; i < 1000; i++) {
		shared_slab_owner s = make_shared_slab(40);
		tn_local *l = tn_shared_slab_local(s.get());
		tn_shared_slab_free(s.get(), tn_shared_slab_alloc(s.get()));
		fill(tn_shared_slab_local_alloc(l), 40, 1);
		ASSERT_EQ(tn_shared_slab_in_use(s.get()), 1u) << "another slab's magazine was found";
	}
	EXPECT_EQ(tn_shared_slab_in_use(stays.get()), 100u);
	give(stays.get(), slots);
	EXPECT_TRUE(tn_shared_slab_verify(stays.get()));
}

/* ---- memory of slots ---- */

TEST(shared_slab, alloc_free_flush_and_trim_touch_no_slot) {
	mapped_source source;
	tn_shared_slab_options options = {};
	options.source = &source.source;
	options.chunk_bytes = 4 * mib;
	shared_slab_owner s = make_shared_slab(page, page, options);
	std::vector<void *> slots = take(s.get(), 2000);
	void *kept = slots.back();
	slots.pop_back();
	give(s.get(), std::vector<void *>(slots.begin(), slots.begin() + 1000));
	tn_shared_slab_flush(s.get());
	take(s.get(), 700);
	tn_shared_slab_trim(s.get());
	size_t touched = source.resident_pages();
	if (release_mode) {
		EXPECT_LE(touched, 50u);
	} else {
		EXPECT_GE(touched, 600u) << "hardened wipes and debug poisons what was freed";
	}
	EXPECT_TRUE(tn_shared_slab_owns(s.get(), kept));
}

TEST(shared_slab, chunks_are_counted) {
	ledger books;
	tn_shared_slab_options options = with_source(books);
	options.chunk_bytes = 16 * kib;
	shared_slab_owner s = make_shared_slab(100, 0, options);
	take(s.get(), 5000);
	size_t chunks = 0;
	for (auto &held : books.held())
		chunks += held.second == 16 * kib;
	EXPECT_EQ(stats_of(s.get()).chunk_count, chunks);
	EXPECT_GT(chunks, 30u);
}

#if TN_MODE != TN_MODE_DEBUG
/* Two magazines of four stay with the thread; the depot gets the other eight, and gives them back. */
TEST(shared_slab, exchanges_are_counted) {
	tn_shared_slab_options options = {};
	options.magazine_slots = 4;
	shared_slab_owner s = make_shared_slab(64, 0, options);
	std::vector<void *> slots = take(s.get(), 40);
	EXPECT_EQ(stats_of(s.get()).exchanges, 0u);
	tn_shared_slab_free_batch(s.get(), slots.data(), slots.size());
	EXPECT_EQ(stats_of(s.get()).exchanges, 8u);
	take(s.get(), 40);
	EXPECT_EQ(stats_of(s.get()).exchanges, 16u);
	EXPECT_EQ(stats_of(s.get()).foreign + stats_of(s.get()).waits, 0u);
}

/* Slots in magazines count as live in the chunks. */
size_t in_magazines(tn_shared_slab *s) {
	return stats_of(s).partial_live_count;
}

TEST(shared_slab, a_depot_keeps_no_more_than_shard_slots) {
	tn_shared_slab_options options = {};
	options.magazine_slots = 4;
	options.shard_slots = 10;
	shared_slab_owner s = make_shared_slab(64, 0, options);
	std::vector<void *> slots = take(s.get(), 40);
	tn_shared_slab_free_batch(s.get(), slots.data(), slots.size());
	EXPECT_EQ(in_magazines(s.get()), 8u + 8u);
	tn_shared_slab_knobs more = {0, 40};
	tn_shared_slab_tune(s.get(), &more);
	slots = take(s.get(), 40);
	tn_shared_slab_free_batch(s.get(), slots.data(), slots.size());
	EXPECT_EQ(in_magazines(s.get()), 40u);
	tn_shared_slab_knobs none = {0, TN_NONE};
	tn_shared_slab_tune(s.get(), &none);
	for (int round = 0; round < 10; round++) {
		slots = take(s.get(), 12);
		tn_shared_slab_free_batch(s.get(), slots.data(), slots.size());
	}
	EXPECT_EQ(in_magazines(s.get()), 8u);
}

TEST(shared_slab, retain_chunks_can_be_changed) {
	tn_shared_slab_options options = {};
	options.chunk_bytes = 4 * kib;
	options.magazine_slots = 1;
	options.shard_slots = TN_NONE;
	shared_slab_owner s = make_shared_slab(256, 0, options);
	for (size_t keep : {size_t{5}, size_t{2}, TN_NONE}) {
		tn_shared_slab_knobs knobs = {keep, TN_NONE};
		tn_shared_slab_tune(s.get(), &knobs);
		std::vector<void *> slots = take(s.get(), 200);
		tn_shared_slab_free_batch(s.get(), slots.data(), slots.size());
		tn_shared_slab_flush(s.get());
		/* The depot's slots are in one chunk, or in two. */
		size_t kept = keep == TN_NONE ? 0 : keep;
		EXPECT_GE(stats_of(s.get()).chunk_count, kept);
		EXPECT_LE(stats_of(s.get()).chunk_count, kept + 2);
	}
}
#endif

} /* namespace */
} /* namespace test_shared_slab */
