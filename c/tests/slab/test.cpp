/* slab.h, contract by contract; the contract that it shares with shared_slab.h is in test_both.cpp. */
#include "mapped_source.h"
#include "process.h"
#include "slabs.h"

#include <sys/mman.h>

namespace test_slab {
namespace {

/* ---- memory of slots ---- */

TEST(slab, alloc_free_and_reset_touch_no_slot) {
	mapped_source source;
	tn_slab_options options = {};
	options.source = &source.source;
	options.chunk_bytes = 4 * mib;
	slab_owner s = make_slab(page, page, options);
	std::vector<void *> slots = take(s.get(), 2000);
	give(s.get(), std::vector<void *>(slots.begin(), slots.begin() + 1000));
	tn_slab_reset(s.get());
	take(s.get(), 1500);
	size_t touched = source.resident_pages();
	if (release_mode) {
		EXPECT_LE(touched, 50u);
	} else {
		EXPECT_GE(touched, 1000u) << "hardened wipes and debug poisons what was handed out";
	}
}

TEST(slab, contents_after_reset) {
	slab_owner s = make_slab(256);
	for (void *p : take(s.get(), 500))
		std::memset(p, 0x77, 256);
	tn_slab_reset(s.get());
	size_t stale = 0;
	for (void *p : take(s.get(), 500))
		stale += std::memchr(p, 0x77, 256) != nullptr;
	if (release_mode) {
		EXPECT_EQ(stale, 500u);
	} else {
		EXPECT_EQ(stale, 0u);
	}
}

/* ---- reset, trim and retention ---- */

TEST(slab, reset_of_an_empty_slab) {
	slab_owner s = make_slab(24);
	tn_slab_reset(s.get());
	EXPECT_EQ(stats_of(s.get()).chunk_count, 0u);
	EXPECT_TRUE(tn_slab_verify(s.get()));
}

TEST(slab, each_visits_nothing_after_reset) {
	slab_owner s = make_slab(40);
	std::vector<void *> slots = take(s.get(), 3000);
	for (size_t i = 0; i < slots.size(); i += 3)
		tn_slab_free(s.get(), slots[i]);
	tn_slab_reset(s.get());
	auto count = [](void *, void *ctx) { ++*static_cast<size_t *>(ctx); };
	size_t seen = 0;
	tn_slab_each(s.get(), count, &seen);
	EXPECT_EQ(seen, 0u);
}

TEST(slab, reset_forgets_every_slot_and_keeps_the_chunks) {
	ledger books;
	slab_owner s = make_slab(100, 0, with_source(books));
	std::vector<void *> slots = take(s.get(), 5000);
	size_t held = books.held_bytes();
	size_t calls = books.calls();
	for (uint64_t round = 1; round <= 5; round++) {
		tn_slab_reset(s.get());
		EXPECT_EQ(tn_slab_in_use(s.get()), 0u);
		EXPECT_EQ(stats_of(s.get()).live_bytes, 0u);
		EXPECT_EQ(stats_of(s.get()).resets, round);
		EXPECT_TRUE(tn_slab_verify(s.get()));
		if (!debug_mode) {
			EXPECT_EQ(books.held_bytes(), held);
		}
		slots = take(s.get(), 5000);
		EXPECT_TRUE(disjoint(slots, 112));
	}
	if (!debug_mode) {
		EXPECT_EQ(books.calls(), calls);
	}
}

TEST(slab, trim_gives_back_every_chunk_without_live_slots) {
	ledger books;
	slab_owner s = make_slab(100, 0, with_source(books));
	size_t own = books.held_bytes();
	std::vector<void *> slots = take(s.get(), 10000);
	EXPECT_EQ(tn_slab_trim(s.get()), 0u);
	give(s.get(), slots);
	size_t held = books.held_bytes();
	EXPECT_EQ(tn_slab_trim(s.get()), held - own);
	EXPECT_EQ(books.held_bytes(), own);
	EXPECT_EQ(stats_of(s.get()).chunk_count, 0u);
	EXPECT_EQ(tn_slab_trim(s.get()), 0u);
	EXPECT_TRUE(tn_slab_verify(s.get()));
	EXPECT_TRUE(disjoint(take(s.get(), 10000), 112));
}

/* Chunks that stay after `count` slots were taken and freed, and some more frees were seen. */
size_t chunks_kept(size_t retain, size_t count, const ledger &books) {
	tn_slab_options options = with_source(books);
	options.retain_chunks = retain;
	slab_owner s = make_slab(112, 0, options);
	give(s.get(), take(s.get(), count));
	for (int round = 0; round < 400; round++)
		give(s.get(), take(s.get(), 600));
	EXPECT_TRUE(tn_slab_verify(s.get()));
	return stats_of(s.get()).chunk_count;
}

TEST(slab, retain_chunks_bounds_the_empty_chunks) {
	ledger books;
	size_t none = chunks_kept(TN_NONE, 60000, books);
	size_t five = chunks_kept(5, 60000, books);
	size_t many = chunks_kept(1000, 60000, books);
	/* In debug the quarantine holds chunks too. */
	if (debug_mode) {
		EXPECT_LE(none, five);
	} else {
		/* Half as many again; at 546 slots a chunk, 1022 slots in two magazines and what was in use
		 * when it was decided (up to 600); and a chunk that is partly free. */
		size_t in_hand = (1022 + 600) / 546;
		EXPECT_LE(none, in_hand + 2);
		EXPECT_GE(five, 5u);
		EXPECT_LE(five, 5 + 3 + in_hand + 2);
	}
	EXPECT_GE(many, 100u) << "fewer chunks than may stay: all of them stay";
}

TEST(slab, default_retention_keeps_what_recent_use_needs) {
	ledger books;
	slab_owner s = make_slab(112, 0, with_source(books));
	give(s.get(), take(s.get(), 20000));
	give(s.get(), take(s.get(), 20000));
	size_t calls = books.calls();
	for (int round = 0; round < 10; round++)
		give(s.get(), take(s.get(), 20000));
	if (!debug_mode) {
		EXPECT_EQ(books.calls(), calls) << "a steady load takes nothing from the source";
	}
	for (int round = 0; round < 2000; round++)
		give(s.get(), take(s.get(), 600));
	if (!debug_mode) {
		EXPECT_LE(stats_of(s.get()).chunk_count, 6u) << "a smaller load gives back";
	}
}

TEST(slab, retaining_more_chunks_than_there_can_be_keeps_all) {
	ledger books;
	size_t many = chunks_kept(1000, 60000, books);
	EXPECT_EQ(chunks_kept(SIZE_MAX - 1, 60000, books), many);
}

/* Debug protects freed slots one by one, which takes a mapping each. */
int use_without_mappings() {
	slab_owner s = make_slab(64);
	std::vector<void *> slots = take(s.get(), 4000);
	for (size_t i = 0; i < slots.size(); i += 2)
		tn_slab_free(s.get(), slots[i]);
	for (int access = PROT_NONE;
		mmap(nullptr, page, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;)
		access ^= PROT_READ;
	for (size_t i = 1; i < slots.size(); i += 2)
		tn_slab_free(s.get(), slots[i]);
	for (int i = 0; i < 20000; i++) {
		void *p = tn_slab_alloc(s.get());
		if (p == nullptr)
			return 1;
		std::memset(p, i, 64);
		tn_slab_free(s.get(), p);
	}
	return tn_slab_verify(s.get()) ? 0 : 2;
}

TEST(slab, goes_on_when_the_process_has_no_more_mappings) {
	if (sanitized)
		GTEST_SKIP() << "a sanitizer needs mappings of its own";
	EXPECT_TRUE(exited_with(in_child(use_without_mappings, 60), 0));
}

/* ---- built slots ---- */

TEST(slab, reset_takes_every_built_slot_apart) {
	builder b;
	slab_owner s = make_slab(64, 0, b);
	for (int round = 0; round < 4; round++) {
		std::vector<void *> slots = take(s.get(), 3000);
		give(s.get(), std::vector<void *>(slots.begin(), slots.begin() + 1700));
		tn_slab_reset(s.get());
		EXPECT_TRUE(b.built.empty());
		EXPECT_EQ(b.finis, b.inits);
		EXPECT_TRUE(tn_slab_verify(s.get()));
	}
}

} /* namespace */
} /* namespace test_slab */
