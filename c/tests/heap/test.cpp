/* heap.h, contract by contract. */
#include "program.h"
#include "use.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace test_heap {
namespace {

/* ---- creation ---- */

TEST(heap, starts_empty) {
	ledger books;
	tn_heap_options options = {};
	options.source = books.source();
	options.name = "empty";
	owned_heap h = new_heap(options);
	ASSERT_NE(h, nullptr);
	tn_stats stats = figures_of(h.get());
	EXPECT_STREQ(stats.name, "empty");
	EXPECT_EQ(stats.live_bytes + stats.live_count + stats.cached_bytes + stats.peak_bytes, 0u);
	EXPECT_EQ(stats.chunk_count + stats.refills + stats.resets + stats.waste_bytes, 0u);
	EXPECT_EQ(stats.committed_bytes, books.held_bytes());
	EXPECT_EQ(books.held_bytes(), page) << "one page until there is a block";
	EXPECT_EQ(tn_heap_trim(h.get()), 0u);
	tn_heap_reset(h.get());
	EXPECT_TRUE(tn_heap_verify(h.get()));
}

TEST(heap, default_options) {
	owned_heap h(tn_heap_create(nullptr));
	EXPECT_STREQ(figures_of(h.get()).name, "heap");
	tn_heap_free(h.get(), take(h.get(), 100));
}

TEST(heap, null_is_a_no_op) {
	tn_heap_destroy(nullptr);
	owned_heap h = new_heap();
	tn_heap_free(h.get(), nullptr);
	tn_heap_free_sized(h.get(), nullptr, 100);
	EXPECT_EQ(tn_heap_usable_size(h.get(), nullptr), 0u);
	EXPECT_EQ(figures_of(h.get()).live_count, 0u);
}

TEST(heap, name_is_copied_and_cut_at_31_bytes) {
	std::string name(40, 'n');
	tn_heap_options options = {};
	options.name = name.c_str();
	owned_heap h = new_heap(options);
	name.assign(40, 'm');
	EXPECT_EQ(figures_of(h.get()).name, std::string(31, 'n'));
}

TEST(heap, half_a_source_is_refused) {
	ledger books;
	tn_source half = *books.source();
	half.release = nullptr;
	tn_heap_options options = {};
	options.source = &half;
	EXPECT_REFUSED(new_heap(options), EINVAL);
	half = *books.source();
	half.acquire = nullptr;
	EXPECT_REFUSED(new_heap(options), EINVAL);
	EXPECT_EQ(books.calls(), 0u);
}

TEST(heap, an_answer_that_is_not_aligned_is_none) {
	ledger books;
	books.misalign(64);
	tn_heap_options options = {};
	options.source = books.source();
	EXPECT_REFUSED(new_heap(options), ENOMEM);
	books.misalign(0);
	owned_heap h = new_heap(options);
	books.misalign(64);
	EXPECT_REFUSED(take(h.get(), 10), ENOMEM);
	EXPECT_REFUSED(take(h.get(), 100000), ENOMEM);
	books.misalign(0);
	EXPECT_NE(take(h.get(), 10), nullptr);
}

/* ---- sizes and alignments ---- */

TEST(heap, every_size_has_room_and_little_more) {
	owned_heap h = new_heap();
	for (size_t size = 0; size < 9000; size += size < 1100 ? 1 : 37) {
		char *p = take(h.get(), size);
		size_t room = tn_heap_usable_size(h.get(), p);
		ASSERT_TRUE(aligned_to(p, 16)) << size;
		if (debug_mode) {
			ASSERT_EQ(room, size);
		} else {
			ASSERT_GE(room, size);
			size_t least = std::max<size_t>(round_up(size, 16), 16);
			ASSERT_LE(room, size <= 128 ? least : size <= 8192 ? least * 5 / 4 : 4 * page) << size;
		}
		fill(p, room, size);
		ASSERT_TRUE(filled(p, room, size));
		if (size % 3 == 0)
			tn_heap_free_sized(h.get(), p, size);
		else if (size % 3 == 1)
			tn_heap_free(h.get(), p);
	}
	EXPECT_TRUE(tn_heap_verify(h.get()));
}

TEST(heap, size_zero_is_a_block) {
	owned_heap h = new_heap();
	std::set<char *> seen;
	for (int i = 0; i < 100; i++)
		EXPECT_TRUE(seen.insert(take(h.get(), 0)).second);
	EXPECT_EQ(seen.count(nullptr), 0u);
	EXPECT_EQ(figures_of(h.get()).live_count, 100u);
}

TEST(heap, every_alignment) {
	ledger books;
	for (bool own_source : {false, true}) {
		owned_heap h = own_source ? new_heap(books) : new_heap();
		std::vector<std::pair<char *, size_t>> blocks;
		for (size_t align = 1; align <= TN_ALIGN_MAX; align *= 2)
			for (size_t size : {0u, 1u, 24u, 100u, 200u, 1000u, 5000u, 20000u}) {
				char *p = take(h.get(), size, align);
				ASSERT_TRUE(p != nullptr && aligned_to(p, align)) << size << " at " << align;
				fill(p, size, align + size);
				blocks.push_back({p, size});
			}
		for (size_t i = 0; i < blocks.size(); i++) {
			ASSERT_TRUE(
				filled(blocks[i].first, blocks[i].second, (size_t{1} << i / 8) + blocks[i].second));
			tn_heap_free(h.get(), blocks[i].first);
		}
		EXPECT_EQ(figures_of(h.get()).live_count, 0u);
	}
}

TEST(heap, bad_alignments_are_refused) {
	owned_heap h = new_heap();
	for (size_t size : {0u, 8u, 1000u, 100000u})
		for (size_t align : {size_t{3}, size_t{5}, size_t{6}, size_t{12}, size_t{15}, size_t{17},
				 size_t{24}, 2 * TN_ALIGN_MAX, TN_ALIGN_MAX + 1, SIZE_MAX, SIZE_MAX / 2 + 1})
			EXPECT_REFUSED(take(h.get(), size, align), EINVAL);
	EXPECT_EQ(figures_of(h.get()).chunk_count, 0u);
}

TEST(heap, sizes_that_cannot_be_are_refused) {
	ledger books;
	for (bool limited : {false, true}) {
		/* The source is asked for nothing above the limit; the page layer refuses impossible sizes. */
		tn_heap_options options = {};
		options.source = limited ? books.source() : nullptr;
		options.limit_bytes = limited ? mib : 0;
		owned_heap h = new_heap(options);
		char *p = take(h.get(), 100);
		fill(p, 100, 1);
		std::string before = to_text(figures_of(h.get()));
		for (size_t back = 0; back < 5000; back += back < 50 ? 1 : 331)
			for (size_t align : {size_t{0}, size_t{1}, size_t{64}, page, TN_ALIGN_MAX}) {
				EXPECT_REFUSED(take(h.get(), SIZE_MAX - back, align), ENOMEM);
				EXPECT_REFUSED(take(h.get(), SIZE_MAX / 2 + 1 + back, align), ENOMEM);
				EXPECT_REFUSED(take(h.get(), PTRDIFF_MAX - back, align), ENOMEM);
				EXPECT_REFUSED(tn_heap_realloc(h.get(), p, SIZE_MAX - back), ENOMEM);
			}
		EXPECT_EQ(to_text(figures_of(h.get())), before);
		EXPECT_TRUE(filled(p, 100, 1));
	}
}

/* ---- order ---- */

TEST(heap, a_block_that_was_freed_is_soon_used_again) {
	owned_heap h = new_heap();
	for (size_t size : {16u, 100u, 1000u, 5000u}) {
		char *p = take(h.get(), size);
		tn_heap_free(h.get(), p);
		EXPECT_EQ(take(h.get(), size) == p, !debug_mode) << size;
	}
}

TEST(heap, neighbours_lie_together) {
	owned_heap h = new_heap();
	std::vector<char *> blocks = take_many(h.get(), 60, 64);
	for (size_t i = 1; i < blocks.size() && !debug_mode; i++)
		EXPECT_EQ(blocks[i], blocks[i - 1] + 64);
}

/* ---- zero ---- */

TEST(heap, zeroed_on_dirty_memory) {
	ledger books;
	tn_heap_options options = {};
	options.source = books.source();
	options.zero = true;
	owned_heap h = new_heap(options);
	for (int round = 0; round < 3; round++) {
		for (size_t size : {0u, 1u, 16u, 100u, 1000u, 1024u, 1025u, 8000u, 9000u, 100000u}) {
			char *p = take(h.get(), size);
			ASSERT_TRUE(all_bytes(p, size, 0));
			std::memset(p, 1, size);
			for (size_t more : {size + 5, size / 2, size, 2 * size + 100, size / 3, 3 * size}) {
				size_t had = std::min(more, size);
				p = static_cast<char *>(tn_heap_realloc(h.get(), p, more));
				ASSERT_TRUE(all_bytes(p, had, 1));
				ASSERT_TRUE(all_bytes(p + had, more - had, 0)) << size << " to " << more;
				std::memset(p, 1, more);
				size = more;
			}
			if (size % 2 == 0)
				tn_heap_free(h.get(), p);
		}
		tn_heap_reset(h.get());
	}
}

/* ---- realloc ---- */

TEST(heap, realloc_keeps_what_fits) {
	owned_heap h = new_heap();
	for (size_t from : {0u, 1u, 16u, 100u, 1000u, 8192u, 8193u, 100000u})
		for (size_t to : {0u, 1u, 24u, 128u, 900u, 8192u, 9000u, 50000u, 300000u}) {
			char *p = static_cast<char *>(tn_heap_realloc(h.get(), nullptr, from));
			fill(p, from, from);
			char *q = static_cast<char *>(tn_heap_realloc(h.get(), p, to));
			ASSERT_TRUE(filled(q, std::min(from, to), from)) << from << " to " << to;
			ASSERT_GE(tn_heap_usable_size(h.get(), q), to);
			ASSERT_EQ(figures_of(h.get()).live_count, 1u);
			tn_heap_free(h.get(), q);
		}
	EXPECT_TRUE(tn_heap_verify(h.get()));
}

TEST(heap, realloc_stays_where_it_can) {
	if (debug_mode)
		GTEST_SKIP() << "debug always moves, so that stale addresses are found out";
	owned_heap h = new_heap();
	for (size_t size : {100u, 1000u, 8192u, 10000u, 100000u}) {
		char *p = take(h.get(), size);
		size_t room = tn_heap_usable_size(h.get(), p);
		EXPECT_EQ(tn_heap_realloc(h.get(), p, room), p);
		EXPECT_EQ(tn_heap_realloc(h.get(), p, room / 2), p) << "not more than half is wasted";
		EXPECT_NE(tn_heap_realloc(h.get(), p, room / 2 - 1), p) << size;
	}
	char *p = take(h.get(), 16);
	EXPECT_EQ(tn_heap_realloc(h.get(), p, 0), p) << "there is nothing smaller";
}

TEST(heap, realloc_that_fails_leaves_the_block) {
	ledger books;
	owned_heap h = new_heap(books);
	char *p = take(h.get(), 100);
	fill(p, 100, 1);
	books.fail(1, ledger::never);
	std::string before = to_text(figures_of(h.get()));
	EXPECT_REFUSED(tn_heap_realloc(h.get(), p, 1000), ENOMEM);
	EXPECT_REFUSED(tn_heap_realloc(h.get(), p, 100000), ENOMEM);
	EXPECT_EQ(to_text(figures_of(h.get())), before);
	EXPECT_TRUE(filled(p, 100, 1));
	books.heal();
	EXPECT_TRUE(filled(tn_heap_realloc(h.get(), p, 100000), 100, 1));
}

/* ---- memory ---- */

TEST(heap, first_use_takes_little) {
	ledger books;
	owned_heap h = new_heap(books);
	for (size_t size = 16; size <= 128; size += 16)
		take(h.get(), size);
	if (!debug_mode) {
		EXPECT_LE(books.held_bytes(), 9 * page);
	}
}

TEST(heap, limit_is_exact_and_can_be_reached_again) {
	for (size_t size : {16u, 100u, 3000u, 20000u}) {
		ledger books;
		tn_heap_options options = {};
		options.source = books.source();
		options.limit_bytes = 400 * kib;
		owned_heap h = new_heap(options);
		size_t first = 0;
		for (int round = 0; round < 5; round++) {
			std::vector<char *> blocks;
			while (char *p = take(h.get(), size))
				blocks.push_back(p);
			EXPECT_EQ(errno, ENOMEM);
			EXPECT_LE(books.peak_bytes(), 400 * kib);
			EXPECT_GT(blocks.size() * size, (debug_mode ? 30 : 300) * kib) << size;
			first = round == 0 ? blocks.size() : first;
			EXPECT_GE(blocks.size() * 20, first * 19);
			EXPECT_TRUE(tn_heap_verify(h.get()));
			for (size_t i = 0; i < blocks.size(); i++)
				tn_heap_free(h.get(), blocks[i]);
		}
	}
}

TEST(heap, at_the_limit_every_free_block_is_found) {
	if (debug_mode)
		GTEST_SKIP() << "debug does not reuse while the quarantine lasts";
	tn_heap_options options = {};
	options.limit_bytes = mib;
	owned_heap h = new_heap(options);
	std::vector<char *> blocks;
	while (char *p = take(h.get(), 100))
		blocks.push_back(p);
	/* Too few frees in each chunk to have had it checked before. */
	size_t freed = 0;
	for (size_t i = 0; i < blocks.size(); i += 20, freed++)
		tn_heap_free(h.get(), blocks[i]);
	for (size_t i = 0; i < freed; i++)
		EXPECT_NE(take(h.get(), 100), nullptr) << i << " of " << freed;
	EXPECT_REFUSED(take(h.get(), 100), ENOMEM);
	EXPECT_TRUE(tn_heap_verify(h.get()));
}

TEST(heap, a_limit_is_shared_by_all_sizes) {
	ledger books;
	tn_heap_options options = {};
	options.source = books.source();
	options.limit_bytes = 600 * kib;
	owned_heap h = new_heap(options);
	for (size_t size : {16u, 40000u, 600u, 5000u, 100u, 16u}) {
		std::vector<char *> blocks;
		while (char *p = take(h.get(), size))
			blocks.push_back(p);
		EXPECT_GT(blocks.size() * size, (debug_mode ? 16 : 400) * kib) << size;
		for (char *p : blocks)
			tn_heap_free(h.get(), p);
	}
	EXPECT_LE(books.peak_bytes(), 600 * kib);
}

TEST(heap, a_limit_below_its_own_page_is_refused) {
	tn_heap_options options = {};
	options.limit_bytes = page - 1;
	EXPECT_REFUSED(new_heap(options), ENOMEM);
	options.limit_bytes = page;
	owned_heap h = new_heap(options);
	EXPECT_REFUSED(take(h.get(), 1), ENOMEM);
}

TEST(heap, reset_keeps_chunks_and_first_addresses) {
	ledger books;
	owned_heap h = new_heap(books);
	std::map<size_t, char *> first;
	size_t calls = 0;
	for (int round = 0; round < 4; round++) {
		for (size_t size : {16u, 100u, 500u, 3000u}) {
			char *p = take(h.get(), size);
			first.emplace(size, p);
			EXPECT_TRUE(debug_mode || first[size] == p) << size;
		}
		for (size_t i = 0; i < 5000; i++)
			take(h.get(), i % 1000);
		take(h.get(), 100000);
		size_t held = books.held_bytes();
		tn_heap_reset(h.get());
		EXPECT_TRUE(tn_heap_verify(h.get()));
		tn_stats stats = figures_of(h.get());
		EXPECT_EQ(stats.live_bytes + stats.live_count, 0u);
		EXPECT_EQ(stats.resets, static_cast<uint64_t>(round) + 1);
		if (!debug_mode) {
			EXPECT_EQ(held - books.held_bytes(), 100 * kib) << "large blocks go back, and only those";
			EXPECT_TRUE(round < 2 || books.calls() == calls + 1) << "the large block";
		}
		calls = books.calls();
	}
}

TEST(heap, trim_to_nothing) {
	ledger books;
	owned_heap h = new_heap(books);
	std::vector<char *> blocks;
	for (size_t i = 0; i < 20000; i++)
		blocks.push_back(take(h.get(), i % 2000));
	char *kept = take(h.get(), 77);
	fill(kept, 77, 1);
	for (char *p : blocks)
		tn_heap_free(h.get(), p);
	size_t held = books.held_bytes();
	size_t bytes = tn_heap_trim(h.get());
	EXPECT_EQ(books.held_bytes(), held - bytes);
	EXPECT_EQ(figures_of(h.get()).chunk_count, 1u);
	EXPECT_EQ(tn_heap_trim(h.get()), 0u);
	EXPECT_TRUE(filled(kept, 77, 1));
	tn_heap_free(h.get(), kept);
	tn_heap_trim(h.get());
	EXPECT_EQ(figures_of(h.get()).chunk_count, 0u);
	if (!debug_mode) {
		EXPECT_EQ(books.held_bytes(), page);
	}
	EXPECT_TRUE(tn_heap_verify(h.get()));
	EXPECT_NE(take(h.get(), 100), nullptr);
}

TEST(heap, chunks_without_blocks_go_to_other_sizes_or_back) {
	if (debug_mode)
		GTEST_SKIP() << "debug does not reuse while the quarantine lasts";
	ledger books;
	owned_heap h = new_heap(books);
	const size_t bytes = 8 * mib;
	for (size_t size : {32u, 48u, 64u, 112u, 640u, 2048u}) {
		std::vector<char *> blocks = take_many(h.get(), bytes / size, size);
		EXPECT_LE(books.held_bytes(), bytes * 5 / 4 + mib) << size;
		std::shuffle(blocks.begin(), blocks.end(), std::mt19937(1));
		for (char *p : blocks)
			tn_heap_free(h.get(), p);
		EXPECT_LE(books.held_bytes(), 2 * mib) << size;
	}
}

/* Again and again half of the blocks are freed and as many taken, in random order: held memory stays
 * close to used memory. */
TEST(heap, footprint_after_churn) {
	ledger books;
	owned_heap h = new_heap(books);
	dice d(7);
	std::vector<char *> blocks;
	size_t most = 0;
	for (int round = 0; round < (debug_mode ? 2 : 20); round++) {
		while (blocks.size() < 20000)
			blocks.push_back(take(h.get(), 16 + d.below(240)));
		most = std::max(most, books.held_bytes());
		for (int i = 0; i < 10000; i++) {
			std::swap(blocks[d.below(blocks.size())], blocks.back());
			tn_heap_free(h.get(), blocks.back());
			blocks.pop_back();
		}
	}
	if (!debug_mode) {
		EXPECT_LE(most, 20000 * 136 * 5 / 3);
	}
	EXPECT_TRUE(tn_heap_verify(h.get()));
}

TEST(heap, writing_to_free_blocks_misleads_nobody) {
	if (debug_mode)
		GTEST_SKIP() << "debug makes them inaccessible, and says so in its own tests";
	owned_heap h = new_heap();
	for (size_t size : {16u, 100u, 1000u}) {
		std::vector<char *> blocks = take_many(h.get(), 1000, size);
		for (char *p : blocks)
			tn_heap_free(h.get(), p);
		for (char *p : blocks)
			std::memset(p, 0xff, size);
		EXPECT_TRUE(tn_heap_verify(h.get()));
		std::set<char *> seen;
		for (char *p : take_many(h.get(), 1000, size))
			EXPECT_TRUE(tn_heap_owns(h.get(), p) && seen.insert(p).second);
	}
}

/* ---- looking ---- */

TEST(heap, owns) {
	owned_heap h = new_heap(), other = new_heap();
	for (size_t size : {1u, 100u, 5000u, 50000u}) {
		char *p = take(h.get(), size);
		for (size_t i = 0; i < size; i += 1 + size / 100) {
			EXPECT_TRUE(tn_heap_owns(h.get(), p + i)) << i << " of " << size;
			EXPECT_FALSE(tn_heap_owns(other.get(), p + i));
		}
		if (size > 10000) {
			uintptr_t where = address(p);
			tn_heap_free(h.get(), p);
			EXPECT_FALSE(tn_heap_owns(h.get(), reinterpret_cast<void *>(where)));
		}
	}
	int on_stack = 0;
	EXPECT_FALSE(tn_heap_owns(h.get(), nullptr));
	EXPECT_FALSE(tn_heap_owns(h.get(), &on_stack));
	EXPECT_FALSE(tn_heap_owns(h.get(), h.get()));
	EXPECT_FALSE(tn_heap_owns(h.get(), reinterpret_cast<void *>(SIZE_MAX - 10)));
	slab_owner s = make_slab(64);
	void *slot = tn_slab_alloc(s.get());
	EXPECT_FALSE(tn_heap_owns(h.get(), slot));
	tn_slab_free(s.get(), slot);
}

void note(void *p, size_t size, void *ctx) {
	auto *seen = static_cast<std::map<void *, size_t> *>(ctx);
	EXPECT_TRUE(seen->emplace(p, size).second);
}

TEST(heap, each_visits_live_blocks_with_their_size) {
	owned_heap h = new_heap();
	std::map<void *, size_t> live, seen;
	for (size_t i = 0; i < 3000; i++) {
		char *p = take(h.get(), i * 7 % 9000);
		if (i % 3 == 0)
			tn_heap_free(h.get(), p);
		else
			live[p] = tn_heap_usable_size(h.get(), p);
	}
	tn_heap_each(h.get(), note, &seen);
	EXPECT_EQ(seen, live);
}

TEST(heap, figures) {
	ledger books;
	owned_heap h = new_heap(books);
	std::vector<char *> blocks = take_many(h.get(), 1000, 100);
	char *large = take(h.get(), 100000);
	tn_stats stats = figures_of(h.get());
	EXPECT_EQ(stats.live_count, 1001u);
	EXPECT_GE(stats.live_bytes, 1000 * 112 + 100000u);
	EXPECT_EQ(stats.committed_bytes, books.held_bytes());
	EXPECT_LE(stats.live_bytes + stats.cached_bytes, stats.committed_bytes);
	EXPECT_GE(stats.peak_bytes, stats.live_bytes);
	EXPECT_GE(stats.refills, debug_mode ? 1u : 15u);
	size_t peak = stats.live_bytes;
	if (!debug_mode) {
		EXPECT_EQ(stats.live_bytes, 1000 * 112 + 100 * kib);
		EXPECT_EQ(stats.waste_bytes, 1000 * 12 + 100 * kib - 100000) << "all are of one size";
	}
	for (char *p : blocks)
		tn_heap_free(h.get(), p);
	tn_heap_free(h.get(), large);
	stats = figures_of(h.get());
	EXPECT_EQ(stats.live_bytes + stats.live_count, 0u);
	EXPECT_GE(stats.peak_bytes, peak * 9 / 10);
	EXPECT_LE(stats.peak_bytes, peak + 8 * kib);
}

TEST(heap, many_small_heaps_in_steady_state_take_nothing) {
	ledger books;
	size_t calls = 0;
	for (int round = 0; round < 100; round++) {
		owned_heap h = new_heap(books);
		size_t before = books.calls();
		for (size_t i = 0; i < 170; i++)
			fill(take(h.get(), 16 + i % 40), 16 + i % 40, i);
		calls = std::max(calls, books.calls() - before);
	}
	if (!debug_mode) {
		EXPECT_LE(calls, 4u) << "one chunk for each class";
	}
}

/* The page table has one owner for an address: a heap's block cannot be a chunk of a slab as well. */
TEST(heap, blocks_as_a_source) {
	owned_heap outer = new_heap();
	tn_source source = {[](void *ctx, size_t size, size_t align) {
							return tn_heap_alloc(static_cast<tn_heap *>(ctx), size, align);
						},
		[](void *ctx, void *p, size_t) { tn_heap_free(static_cast<tn_heap *>(ctx), p); }, outer.get()};
	tn_arena_options arena_options = {};
	arena_options.source = &source;
	arena_owner a = make_arena(arena_options);
	ASSERT_NE(tn_arena_alloc(a.get(), 100000, 16), nullptr);
	tn_slab_options slab_options = {};
	slab_options.source = &source;
	slab_owner s = make_slab(64, 0, slab_options);
	tn_shared_slab_options shared_options = {};
	shared_options.source = &source;
	shared_slab_owner shared = make_shared_slab(64, 0, shared_options);
	tn_heap_options heap_options = {};
	heap_options.source = &source;
	errno = 0;
	owned_heap inner = new_heap(heap_options);
	if (!debug_mode) {
		EXPECT_EQ(errno, ENOMEM);
		EXPECT_EQ(inner, nullptr);
		EXPECT_REFUSED(tn_slab_alloc(s.get()), ENOMEM);
		EXPECT_REFUSED(tn_shared_slab_alloc(shared.get()), ENOMEM);
	} else {
		for (int i = 0; i < 1000; i++)
			ASSERT_TRUE(tn_slab_alloc(s.get()) != nullptr &&
						tn_shared_slab_alloc(shared.get()) != nullptr &&
						tn_heap_alloc(inner.get(), 100, 0) != nullptr);
	}
	EXPECT_TRUE(tn_heap_verify(outer.get()));
	inner.reset();
	s.reset();
	shared.reset();
	a.reset();
	EXPECT_EQ(figures_of(outer.get()).live_count, 0u);
	EXPECT_TRUE(tn_heap_verify(outer.get()));
}

} /* namespace */
} /* namespace test_heap */
