/* arena.h, contract by contract: options, chunks, reset, trim, figures. Blocks: test_blocks.cpp. */
#include "process.h"
#include "use.h"

#include <algorithm>

namespace test_arena {
namespace {

/* ---- creation and options ---- */

TEST(arena, starts_empty) {
	arena_owner a = make_arena();
	ASSERT_NE(a, nullptr);
	tn_stats stats = stats_of(a.get());
	EXPECT_STREQ(stats.name, "arena");
	EXPECT_EQ(stats.live_bytes, 0u);
	EXPECT_EQ(stats.live_count, 0u);
	EXPECT_EQ(stats.partial_count, 0u);
	EXPECT_EQ(stats.resets, 0u);
	EXPECT_EQ(stats.chunk_count, 1u);
	/* Debug keeps the arena apart from its chunks, which do not survive a reset. */
	EXPECT_EQ(stats.committed_bytes, debug_mode ? page : default_chunk);
	EXPECT_GE(stats.reserved_bytes, stats.committed_bytes);
	EXPECT_GE(stats.cached_bytes + page, stats.committed_bytes);
	EXPECT_TRUE(tn_arena_verify(a.get()));
}

TEST(arena, null_options_are_the_defaults) {
	arena_owner a(tn_arena_create(nullptr));
	arena_owner b = make_arena();
	ASSERT_NE(a, nullptr);
	EXPECT_EQ(to_text(stats_of(a.get())), to_text(stats_of(b.get())));
	tn_arena placed;
	ASSERT_TRUE(tn_arena_init(&placed, nullptr));
	EXPECT_STREQ(stats_of(&placed).name, "arena");
	tn_arena_deinit(&placed);
}

TEST(arena, init_takes_its_first_chunk_when_first_needed) {
	ledger books;
	placed_arena a(with_source(books));
	ASSERT_TRUE(a.ready);
	EXPECT_EQ(books.calls(), 0u);
	EXPECT_EQ(stats_of(a.get()).committed_bytes, 0u);
	EXPECT_EQ(stats_of(a.get()).chunk_count, 0u);
	EXPECT_FALSE(tn_arena_owns(a.get(), &books));
	EXPECT_EQ(tn_arena_trim(a.get()), 0u);
	tn_arena_reset(a.get());
	EXPECT_TRUE(tn_arena_verify(a.get()));
	EXPECT_NE(tn_arena_alloc(a.get(), 1, 0), nullptr);
	EXPECT_EQ(books.calls(), 1u);
	EXPECT_EQ(stats_of(a.get()).chunk_count, 1u);
}

TEST(arena, storage_can_be_used_again_after_deinit) {
	tn_arena storage;
	for (int round = 0; round < 3; round++) {
		ledger books;
		tn_arena_options options = with_source(books);
		ASSERT_TRUE(tn_arena_init(&storage, &options));
		allocate_total(&storage, 300 * kib, 100);
		tn_arena_deinit(&storage);
		EXPECT_EQ(books.held_count(), 0u);
	}
}

TEST(arena, null_is_a_no_op) {
	tn_arena_destroy(nullptr);
	tn_arena_deinit(nullptr);
}

TEST(arena, name_is_copied_and_cut_at_31_bytes) {
	char name[] = "0123456789012345678901234567890123456789";
	tn_arena_options options = {};
	options.name = name;
	arena_owner a = make_arena(options);
	std::memset(name, 'x', sizeof(name) - 1);
	EXPECT_STREQ(stats_of(a.get()).name, "0123456789012345678901234567890");
	options.name = "";
	arena_owner b = make_arena(options);
	ASSERT_NE(b, nullptr);
}

TEST(arena, chunks_double_from_the_first_to_the_largest) {
	ledger books;
	placed_arena a(with_source(books));
	allocate_total(a.get(), 8 * mib, 4000);
	ASSERT_GE(books.sizes().size(), 6u);
	size_t expected = default_chunk;
	for (size_t size : books.sizes()) {
		EXPECT_EQ(size, expected);
		expected = std::min(expected * 2, default_chunk_max);
	}
}

TEST(arena, chunk_bytes_none_of_growth) {
	ledger books;
	tn_arena_options options = with_source(books);
	options.chunk_bytes = 16 * kib;
	options.chunk_bytes_max = TN_NONE;
	placed_arena a(options);
	allocate_total(a.get(), mib, 1000);
	ASSERT_GE(books.sizes().size(), 64u);
	for (size_t size : books.sizes())
		EXPECT_EQ(size, 16 * kib);
}

TEST(arena, chunk_bytes_is_rounded_up_to_pages) {
	for (size_t size : {size_t{4097}, size_t{5000}, 3 * page, 100 * kib}) {
		ledger books;
		tn_arena_options options = with_source(books);
		options.chunk_bytes = size;
		placed_arena a(options);
		ASSERT_TRUE(a.ready);
		ASSERT_NE(tn_arena_alloc(a.get(), 100, 0), nullptr);
		EXPECT_EQ(books.sizes().front(), round_up(size, page));
	}
}

TEST(arena, tiny_chunk_bytes_work) {
	for (size_t size = 1; size < 64; size++) {
		ledger books;
		tn_arena_options options = with_source(books);
		options.chunk_bytes = size;
		placed_arena a(options);
		ASSERT_TRUE(a.ready);
		ASSERT_NE(tn_arena_alloc(a.get(), 100, 0), nullptr);
		EXPECT_EQ(books.sizes().front(), page);
	}
}

TEST(arena, chunk_bytes_max_is_the_largest) {
	ledger books;
	tn_arena_options options = with_source(books);
	options.chunk_bytes_max = 256 * kib;
	placed_arena a(options);
	allocate_total(a.get(), 4 * mib, 1000);
	EXPECT_EQ(*std::max_element(books.sizes().begin(), books.sizes().end()), 256 * kib);
}

TEST(arena, limit_is_exact_and_the_last_chunk_is_clipped) {
	for (size_t limit : {64 * kib, 100 * kib, 200 * kib, 1000 * kib, 5 * mib}) {
		ledger books;
		tn_arena_options options = with_source(books);
		options.limit_bytes = limit;
		placed_arena a(options);
		size_t total = exhaust(a.get());
		EXPECT_EQ(errno, ENOMEM);
		EXPECT_LE(books.peak_bytes(), limit);
		EXPECT_GT(books.peak_bytes(), limit - page);
		EXPECT_EQ(stats_of(a.get()).committed_bytes, books.held_bytes());
		/* Debug spends memory on each block. */
		if (!debug_mode) {
			EXPECT_GT(total, limit - 2 * page);
		}
		EXPECT_TRUE(tn_arena_verify(a.get()));
	}
}

TEST(arena, limit_holds_for_the_page_layer_too) {
	for (size_t limit : {64 * kib, 100 * kib, 300 * kib, 3 * mib}) {
		tn_arena_options options = {};
		options.limit_bytes = limit;
		arena_owner a = make_arena(options);
		ASSERT_NE(a, nullptr);
		size_t total = exhaust(a.get());
		EXPECT_LE(stats_of(a.get()).committed_bytes, limit);
		EXPECT_LE(total, limit);
		if (!debug_mode) {
			EXPECT_GT(total, limit * 3 / 4);
		}
	}
}

TEST(arena, limit_counts_large_blocks_and_returns_what_they_used) {
	ledger books;
	tn_arena_options options = with_source(books);
	options.limit_bytes = mib;
	placed_arena a(options);
	for (int round = 0; round < 5; round++) {
		ASSERT_NE(tn_arena_alloc(a.get(), 100, 0), nullptr);
		EXPECT_NE(tn_arena_alloc(a.get(), 800 * kib, 0), nullptr);
		EXPECT_REFUSED(tn_arena_alloc(a.get(), 400 * kib, 0), ENOMEM);
		tn_arena_reset(a.get());
	}
	EXPECT_LE(books.peak_bytes(), mib);
}

TEST(arena, limit_below_the_first_chunk_clips_that) {
	ledger books;
	tn_arena_options options = with_source(books);
	options.limit_bytes = 2 * page;
	placed_arena a(options);
	ASSERT_TRUE(a.ready);
	EXPECT_NE(tn_arena_alloc(a.get(), 64, 0), nullptr);
	exhaust(a.get());
	EXPECT_EQ(books.peak_bytes(), 2 * page);
}

TEST(arena, limit_none_is_no_limit) {
	tn_arena_options options = {};
	options.limit_bytes = TN_NONE;
	arena_owner a = make_arena(options);
	ASSERT_NE(a, nullptr);
	EXPECT_NE(tn_arena_alloc(a.get(), 10 * mib, 0), nullptr);
}

/* One request of `total` bytes in small blocks, then reset; chunks held afterwards. */
size_t chunks_after_cycle(tn_arena *a, size_t total) {
	allocate_total(a, total, 1000);
	tn_arena_reset(a);
	return stats_of(a).chunk_count;
}

TEST(arena, retain_none_keeps_the_first_chunk_only) {
	ledger books;
	tn_arena_options options = with_source(books);
	options.retain_bytes = TN_NONE;
	placed_arena a(options);
	EXPECT_EQ(chunks_after_cycle(a.get(), 4 * mib), debug_mode ? 0u : 1u);
	EXPECT_EQ(books.held_bytes(), debug_mode ? 0 : default_chunk) << "debug sets all aside";
}

TEST(arena, retain_bytes_bounds_what_is_kept) {
	for (size_t retain : {size_t{1}, 100 * kib, 200 * kib, 500 * kib, mib, 100 * mib}) {
		ledger books;
		tn_arena_options options = with_source(books);
		options.retain_bytes = retain;
		placed_arena a(options);
		allocate_total(a.get(), 4 * mib, 1000);
		size_t kept = 0;
		for (size_t size : books.sizes()) {
			if (kept != 0 && kept + size > retain)
				break;
			kept += size;
		}
		tn_arena_reset(a.get());
		/* Debug gives all chunks to the quarantine. */
		EXPECT_EQ(books.held_bytes(), debug_mode ? 0 : kept) << retain;
	}
}

TEST(arena, steady_cycles_take_nothing_from_the_source) {
	for (size_t total : {10 * kib, 500 * kib, 5 * mib}) {
		ledger books;
		placed_arena a(with_source(books));
		for (int round = 0; round < 4; round++)
			chunks_after_cycle(a.get(), total);
		size_t calls = books.calls();
		for (int round = 0; round < 20; round++)
			chunks_after_cycle(a.get(), total);
		EXPECT_EQ(books.calls(), debug_mode ? calls * 6 : calls)
			<< total << "; debug renews its chunks";
	}
}

TEST(arena, default_retention_decays_to_what_recent_use_needs) {
	ledger books;
	placed_arena a(with_source(books));
	size_t kept = chunks_after_cycle(a.get(), 16 * mib);
	EXPECT_TRUE(debug_mode ? kept == 0 : kept > 5) << kept;
	for (int round = 0; round < 1000; round++)
		chunks_after_cycle(a.get(), 10 * kib);
	EXPECT_LE(books.held_bytes(), 512 * kib);
}

/* The caller's buffer. */

TEST(arena, buffer_is_used_first_and_never_given_back) {
	ledger books;
	std::vector<char> buffer(8 * kib + 16);
	{
		tn_arena_options options = with_source(books);
		options.buffer = buffer.data();
		options.buffer_bytes = buffer.size();
		placed_arena a(options);
		ASSERT_TRUE(a.ready);
		char *p = static_cast<char *>(tn_arena_alloc(a.get(), 64, 16));
		EXPECT_GE(p, buffer.data());
		EXPECT_LE(p + 64, buffer.data() + buffer.size());
		EXPECT_EQ(books.calls(), 0u);
		EXPECT_EQ(stats_of(a.get()).chunk_count, 1u);
		EXPECT_EQ(stats_of(a.get()).committed_bytes, 0u);
		allocate_total(a.get(), 100 * kib, 64);
		EXPECT_GT(books.calls(), 0u);
		EXPECT_EQ(stats_of(a.get()).chunk_count, 1 + books.held_count());
		tn_arena_reset(a.get());
		p = static_cast<char *>(tn_arena_alloc(a.get(), 64, 16));
		EXPECT_GE(p, buffer.data());
		EXPECT_LE(p + 64, buffer.data() + buffer.size());
	}
	EXPECT_EQ(books.held_count(), 0u);
}

TEST(arena, create_with_a_fixed_buffer_takes_only_its_own_storage) {
	ledger books;
	alignas(16) char buffer[16 * kib];
	tn_arena_options options = with_source(books);
	options.buffer = buffer;
	options.buffer_bytes = sizeof buffer;
	options.fixed = true;
	arena_owner a = make_arena(options);
	ASSERT_NE(a, nullptr);
	size_t total = exhaust(a.get());
	EXPECT_EQ(errno, ENOMEM);
	if (!debug_mode) {
		EXPECT_GT(total, sizeof buffer - kib);
	}
	EXPECT_LE(books.peak_bytes(), page);
}

/* Total bytes that a fixed arena over `bytes` at `offset` hands out; the canaries around it are
 * checked. */
size_t blocks_in_buffer(std::vector<char> &room, size_t offset, size_t bytes, size_t block) {
	char *buffer = room.data() + offset;
	buffer[-1] = 0x3c;
	buffer[bytes] = 0x3c;
	tn_arena_options options = {};
	options.buffer = buffer;
	options.buffer_bytes = bytes;
	options.fixed = true;
	errno = 0;
	tn_arena a;
	if (!tn_arena_init(&a, &options)) {
		EXPECT_EQ(errno, EINVAL);
		return 0;
	}
	size_t count = 0;
	errno = 0;
	for (char *last = nullptr; char *p = static_cast<char *>(tn_arena_alloc(&a, block, 8)); last = p) {
		EXPECT_TRUE(p >= buffer && p + block <= buffer + bytes);
		EXPECT_TRUE(last == nullptr || p >= last + block);
		p[0] = p[block - 1] = 0x77;
		count++;
	}
	EXPECT_EQ(errno, ENOMEM);
	EXPECT_TRUE(tn_arena_verify(&a));
	tn_arena_deinit(&a);
	EXPECT_EQ(buffer[-1], 0x3c);
	EXPECT_EQ(buffer[bytes], 0x3c);
	return count;
}

TEST(arena, every_buffer_size_at_every_misalignment) {
	std::vector<char> space(4096 + 256);
	size_t base = 64 - address(space.data()) % 64;
	for (size_t offset = 0; offset < 64; offset++) {
		size_t before = 0;
		for (size_t bytes = 0; bytes <= 4096; bytes++) {
			size_t count = blocks_in_buffer(space, base + offset, bytes, 64);
			ASSERT_GE(count, before) << "a larger buffer holds less: " << bytes << " at " << offset;
			before = count;
			if (!debug_mode) {
				ASSERT_GE(count * 64 + 64 + 192, bytes) << bytes << " at " << offset;
			}
			if (::testing::Test::HasFailure())
				return;
		}
	}
}

TEST(arena, every_buffer_size_with_small_blocks) {
	std::vector<char> space(4096 + 256);
	for (size_t bytes = 0; bytes <= 4096; bytes++) {
		blocks_in_buffer(space, 1 + bytes % 64, bytes, 9);
		if (::testing::Test::HasFailure())
			return;
	}
}

TEST(arena, growing_arenas_accept_every_buffer_size) {
	std::vector<char> space(4096 + 256);
	for (size_t bytes = 1; bytes <= 4096; bytes++) {
		tn_arena_options options = {};
		options.buffer = space.data() + bytes % 61;
		options.buffer_bytes = bytes;
		placed_arena a(options);
		ASSERT_TRUE(a.ready) << bytes;
		void *p = tn_arena_alloc(a.get(), 200, 64);
		ASSERT_TRUE(p != nullptr && aligned_to(p, 64)) << bytes;
		fill(p, 200, bytes);
	}
}

/* ---- fixed and reserved ---- */

TEST(arena, fixed_is_exhausted_and_usable_after_reset) {
	ledger books;
	tn_arena_options options = with_source(books);
	options.chunk_bytes = 128 * kib;
	options.fixed = true;
	placed_arena a(options);
	size_t first = exhaust(a.get());
	EXPECT_EQ(errno, ENOMEM);
	if (!debug_mode) {
		EXPECT_GT(first, 128 * kib - page);
	}
	EXPECT_EQ(books.calls(), 1u);
	tn_arena_reset(a.get());
	EXPECT_EQ(exhaust(a.get()), first);
	EXPECT_EQ(books.calls(), debug_mode ? 2u : 1u) << "debug renews its chunk";
	EXPECT_LE(books.peak_bytes(), 128 * kib);
}

TEST(arena, fixed_puts_large_blocks_into_its_chunk) {
	ledger books;
	tn_arena_options options = with_source(books);
	options.fixed = true;
	placed_arena a(options);
	EXPECT_NE(tn_arena_alloc(a.get(), default_chunk / 2, 0), nullptr);
	EXPECT_NE(tn_arena_alloc(a.get(), default_chunk / 3, 0), nullptr);
	EXPECT_REFUSED(tn_arena_alloc(a.get(), default_chunk / 2, 0), ENOMEM);
	EXPECT_EQ(books.calls(), 1u);
}

TEST(arena, fixed_never_grows_after_a_rewind) {
	ledger books;
	tn_arena_options options = with_source(books);
	options.fixed = true;
	placed_arena a(options);
	tn_checkpoint mark = tn_arena_mark(a.get());
	ASSERT_NE(tn_arena_alloc(a.get(), 16, 16), nullptr);
	tn_arena_rewind(a.get(), mark);
	EXPECT_REFUSED(tn_arena_alloc(a.get(), 100 * kib, 16), ENOMEM);
	EXPECT_LE(books.peak_bytes(), default_chunk);
}

TEST(arena, reserve_is_one_range_committed_as_it_fills) {
	tn_arena_options options = {};
	options.reserve_bytes = 1024 * mib;
	arena_owner a = make_arena(options);
	ASSERT_NE(a, nullptr);
	tn_stats stats = stats_of(a.get());
	EXPECT_GE(stats.reserved_bytes, 1024 * mib);
	EXPECT_LE(stats.committed_bytes, 4 * mib);
	char *first = static_cast<char *>(tn_arena_alloc(a.get(), 64, 16));
	for (int i = 0; i < 40; i++) {
		char *p = static_cast<char *>(tn_arena_alloc(a.get(), mib, 16));
		ASSERT_NE(p, nullptr);
		EXPECT_GT(p, first);
		EXPECT_LT(static_cast<size_t>(p - first), 1024 * mib);
		p[0] = p[mib - 1] = 1;
	}
	stats = stats_of(a.get());
	EXPECT_GE(stats.committed_bytes, 40 * mib);
	EXPECT_LE(stats.committed_bytes, 160 * mib);
	EXPECT_LE(stats.chunk_count, 2u) << "the range, and what the arena itself lies in";
	EXPECT_TRUE(tn_arena_verify(a.get()));
}

TEST(arena, reserve_ends_where_it_ends) {
	tn_arena_options options = {};
	options.reserve_bytes = 8 * mib;
	placed_arena a(options);
	ASSERT_TRUE(a.ready);
	size_t total = exhaust(a.get());
	EXPECT_EQ(errno, ENOMEM);
	EXPECT_LE(total, 8 * mib);
	if (!debug_mode) {
		EXPECT_GT(total, 8 * mib - 64 * kib);
	}
	EXPECT_REFUSED(tn_arena_alloc(a.get(), mib, 16), ENOMEM);
	EXPECT_LE(stats_of(a.get()).committed_bytes, 8 * mib);
}

TEST(arena, reserve_gives_back_above_retain_bytes_at_reset) {
	tn_arena_options options = {};
	options.reserve_bytes = 256 * mib;
	options.retain_bytes = mib;
	placed_arena a(options);
	ASSERT_TRUE(a.ready);
	size_t before = resident_bytes();
	allocate_total(a.get(), 100 * mib, 10000);
	if (!sanitized) {
		EXPECT_GT(resident_bytes(), before + 90 * mib);
	}
	tn_arena_reset(a.get());
	EXPECT_LE(stats_of(a.get()).committed_bytes, 2 * mib);
	EXPECT_GE(stats_of(a.get()).reserved_bytes, 256 * mib);
	expect_resident_below(before + 10 * mib);
	allocate_total(a.get(), 50 * mib, 10000);
	EXPECT_TRUE(tn_arena_verify(a.get()));
}

TEST(arena, reserve_obeys_limit_bytes) {
	tn_arena_options options = {};
	options.reserve_bytes = 64 * mib;
	options.limit_bytes = 3 * mib;
	placed_arena a(options);
	ASSERT_TRUE(a.ready);
	size_t total = exhaust(a.get());
	EXPECT_EQ(errno, ENOMEM);
	EXPECT_LE(stats_of(a.get()).committed_bytes, 3 * mib);
	if (!debug_mode) {
		EXPECT_GT(total, 2 * mib);
	}
}

/* ---- invalid options ---- */

void expect_invalid(const tn_arena_options &options, const char *why) {
	errno = 0;
	EXPECT_EQ(make_arena(options), nullptr) << why;
	EXPECT_EQ(errno, EINVAL) << why;
	errno = 0;
	placed_arena placed(options);
	EXPECT_FALSE(placed.ready) << why;
	EXPECT_EQ(errno, EINVAL) << why;
}

TEST(arena, contradicting_options_are_refused) {
	ledger books;
	char buffer[kib];
	tn_arena_options options = {};
	options.reserve_bytes = mib;
	options.buffer = buffer;
	options.buffer_bytes = sizeof buffer;
	expect_invalid(options, "reserve with buffer");

	options = with_source(books);
	options.reserve_bytes = mib;
	expect_invalid(options, "reserve with source");

	options = {};
	options.buffer_bytes = 100;
	expect_invalid(options, "bytes without a buffer");

	tn_source half = *books.source();
	half.release = nullptr;
	options = {};
	options.source = &half;
	expect_invalid(options, "a source that cannot release");
	half = *books.source();
	half.acquire = nullptr;
	expect_invalid(options, "a source that cannot acquire");

	options = {};
	options.chunk_bytes = 256 * kib;
	options.chunk_bytes_max = 64 * kib;
	expect_invalid(options, "a largest chunk below the first");
	EXPECT_EQ(books.calls(), 0u);
}

TEST(arena, absurd_option_sizes_are_refused) {
	for (size_t size : {SIZE_MAX - 1, SIZE_MAX - 4095, SIZE_MAX / 2 + 1, SIZE_MAX / 2}) {
		ledger books;
		tn_arena_options options = with_source(books);
		options.chunk_bytes = size;
		errno = 0;
		EXPECT_EQ(make_arena(options), nullptr) << size;
		EXPECT_TRUE(errno == EINVAL || errno == ENOMEM);

		options = {};
		options.reserve_bytes = size;
		errno = 0;
		EXPECT_EQ(make_arena(options), nullptr) << size;
		EXPECT_TRUE(errno == EINVAL || errno == ENOMEM);
	}
}

/* ---- large blocks ---- */

TEST(arena, large_block_does_not_stay) {
	arena_owner a = make_arena();
	ASSERT_NE(a, nullptr);
	ASSERT_NE(tn_arena_alloc(a.get(), 100, 0), nullptr);
	tn_trim_all();
	size_t before = resident_bytes();
	size_t committed = stats_of(a.get()).committed_bytes;
	void *large = tn_arena_alloc(a.get(), 50 * mib, 16);
	ASSERT_NE(large, nullptr);
	std::memset(large, 1, 50 * mib);
	EXPECT_GE(stats_of(a.get()).committed_bytes, 50 * mib);
	for (int i = 0; i < 1000; i++)
		ASSERT_NE(tn_arena_alloc(a.get(), 50, 0), nullptr);
	tn_arena_reset(a.get());
	EXPECT_LE(stats_of(a.get()).committed_bytes, committed + mib);
	expect_resident_below(before + 8 * mib);
	EXPECT_TRUE(tn_arena_verify(a.get()));
}

TEST(arena, large_block_never_becomes_current) {
	ledger books;
	placed_arena a(with_source(books));
	char *before = static_cast<char *>(tn_arena_alloc(a.get(), 16, 16));
	char *large = static_cast<char *>(tn_arena_alloc(a.get(), 200 * kib, 16));
	char *after = static_cast<char *>(tn_arena_alloc(a.get(), 16, 16));
	ASSERT_TRUE(before != nullptr && large != nullptr && after != nullptr);
	EXPECT_EQ(books.calls(), 2u);
	EXPECT_LE(books.sizes().back(), 200 * kib + 2 * page);
	EXPECT_EQ(books.sizes().back() % page, 0u);
	EXPECT_GT(after, before);
	EXPECT_LT(after, before + kib);
	tn_arena_reset(a.get());
	EXPECT_EQ(books.held_bytes(), debug_mode ? 0 : default_chunk);
}

TEST(arena, large_means_more_than_a_quarter_of_the_next_chunk) {
	ledger books;
	placed_arena a(with_source(books));
	ASSERT_NE(tn_arena_alloc(a.get(), 16, 16), nullptr);
	/* The next chunk would have 128 KiB. */
	ASSERT_NE(tn_arena_alloc(a.get(), 31 * kib, 16), nullptr);
	ASSERT_NE(tn_arena_alloc(a.get(), 31 * kib, 16), nullptr);
	ASSERT_NE(tn_arena_alloc(a.get(), 31 * kib, 16), nullptr);
	EXPECT_EQ(books.sizes(), (std::vector<size_t>{64 * kib, 128 * kib}));
	/* The one after that 256 KiB. */
	ASSERT_NE(tn_arena_alloc(a.get(), 110 * kib, 16), nullptr);
	ASSERT_EQ(books.sizes().size(), 3u);
	EXPECT_LT(books.sizes().back(), 128 * kib);
}

TEST(arena, a_thousand_large_blocks_go_back) {
	ledger books;
	placed_arena a(with_source(books));
	std::vector<char *> blocks;
	for (size_t i = 0; i < 1000; i++) {
		blocks.push_back(static_cast<char *>(tn_arena_alloc(a.get(), 64 * kib + i, 64)));
		ASSERT_NE(blocks.back(), nullptr);
		EXPECT_TRUE(aligned_to(blocks.back(), 64));
		blocks.back()[0] = blocks.back()[64 * kib + i - 1] = static_cast<char>(i);
	}
	for (size_t i = 0; i < 1000; i++)
		ASSERT_EQ(blocks[i][0], static_cast<char>(i));
	tn_arena_reset(a.get());
	EXPECT_LE(books.held_bytes(), 4 * mib);
}

/* ---- reset ---- */

TEST(arena, reset_goes_back_to_the_first_address) {
	for (size_t total : {kib, 60 * kib, 3 * mib}) {
		arena_owner a = make_arena();
		void *first = tn_arena_alloc(a.get(), 48, 16);
		for (int round = 0; round < 3; round++) {
			allocate_total(a.get(), total, 48);
			tn_arena_reset(a.get());
			void *again = tn_arena_alloc(a.get(), 48, 16);
			if (release_mode) {
				EXPECT_EQ(again, first);
			}
			if (debug_mode) {
				EXPECT_NE(again, first) << "debug keeps forgotten blocks inaccessible";
			}
		}
	}
}

TEST(arena, reset_forgets_everything) {
	arena_owner a = make_arena();
	void *p = tn_arena_alloc(a.get(), 100, 0);
	EXPECT_TRUE(tn_arena_owns(a.get(), p));
	allocate_total(a.get(), mib, 500);
	tn_arena_reset(a.get());
	tn_stats stats = stats_of(a.get());
	EXPECT_EQ(stats.live_bytes, 0u);
	EXPECT_EQ(stats.resets, 1u);
	EXPECT_FALSE(tn_arena_owns(a.get(), p));
	tn_arena_reset(a.get());
	EXPECT_EQ(stats_of(a.get()).resets, 2u);
}

TEST(arena, reset_wipes_where_the_mode_says_so) {
	ledger books;
	placed_arena a(with_source(books));
	for (int round = 0; round < 20; round++) {
		bool stale = false;
		for (size_t total = 0; total < 200 * kib; total += 1000) {
			char *p = static_cast<char *>(tn_arena_alloc(a.get(), 1000, 16));
			ASSERT_NE(p, nullptr);
			stale = stale || std::memchr(p, 0x77, 1000) != nullptr;
			std::memset(p, 0x77, 1000);
		}
		EXPECT_EQ(stale, release_mode && round > 0) << "release leaves contents, the others do not";
		tn_arena_reset(a.get());
	}
}

/* ---- trim, owns, sources ---- */

TEST(arena, trim_gives_back_chunks_without_live_blocks) {
	ledger books;
	placed_arena a(with_source(books));
	allocate_total(a.get(), 4 * mib, 1000);
	size_t full = books.held_bytes();
	EXPECT_EQ(tn_arena_trim(a.get()), 0u) << "every chunk holds a live block";
	EXPECT_EQ(books.held_bytes(), full);
	tn_arena_reset(a.get());
	size_t held = books.held_bytes();
	EXPECT_EQ(tn_arena_trim(a.get()), held);
	EXPECT_EQ(books.held_bytes(), 0u);
	EXPECT_EQ(stats_of(a.get()).committed_bytes, 0u);
	EXPECT_EQ(tn_arena_trim(a.get()), 0u);
	EXPECT_TRUE(tn_arena_verify(a.get()));
	allocate_total(a.get(), 4 * mib, 1000);
	EXPECT_TRUE(tn_arena_verify(a.get()));
}

TEST(arena, trim_keeps_live_blocks) {
	ledger books;
	placed_arena a(with_source(books));
	char *kept = static_cast<char *>(tn_arena_alloc(a.get(), 5000, 16));
	fill(kept, 5000, 1);
	tn_checkpoint mark = tn_arena_mark(a.get());
	allocate_total(a.get(), 4 * mib, 1000);
	tn_arena_rewind(a.get(), mark);
	size_t held = books.held_bytes();
	EXPECT_EQ(tn_arena_trim(a.get()), held - default_chunk);
	EXPECT_EQ(books.held_bytes(), default_chunk);
	EXPECT_TRUE(filled(kept, 5000, 1));
	allocate_total(a.get(), mib, 1000);
	EXPECT_TRUE(filled(kept, 5000, 1));
}

TEST(arena, trim_of_a_created_arena_leaves_it_usable) {
	arena_owner a = make_arena();
	allocate_total(a.get(), 4 * mib, 1000);
	tn_arena_reset(a.get());
	tn_arena_trim(a.get());
	EXPECT_LE(stats_of(a.get()).committed_bytes, default_chunk);
	EXPECT_TRUE(tn_arena_verify(a.get()));
	allocate_total(a.get(), mib, 1000);
}

TEST(arena, owns_what_it_handed_out) {
	arena_owner a = make_arena();
	arena_owner b = make_arena();
	int on_stack = 0;
	std::vector<std::pair<char *, size_t>> blocks;
	for (size_t size : {size_t{16}, size_t{4096}, 60 * kib, mib, size_t{32}})
		blocks.push_back({static_cast<char *>(tn_arena_alloc(a.get(), size, 16)), size});
	for (auto &block : blocks) {
		EXPECT_TRUE(tn_arena_owns(a.get(), block.first));
		EXPECT_TRUE(tn_arena_owns(a.get(), block.first + block.second / 2));
		EXPECT_TRUE(tn_arena_owns(a.get(), block.first + block.second - 1));
		EXPECT_FALSE(tn_arena_owns(b.get(), block.first));
	}
	EXPECT_FALSE(tn_arena_owns(a.get(), nullptr));
	EXPECT_FALSE(tn_arena_owns(a.get(), &on_stack));
	EXPECT_FALSE(tn_arena_owns(a.get(), blocks.back().first + 4096)) << "not handed out yet";
	EXPECT_FALSE(tn_arena_owns(a.get(), reinterpret_cast<void *>(SIZE_MAX)));
	EXPECT_FALSE(tn_arena_owns(a.get(), reinterpret_cast<void *>(8)));
}

TEST(arena, figures_agree_with_the_source) {
	ledger books;
	placed_arena a(with_source(books));
	size_t asked = 0;
	size_t peak = 0;
	for (size_t i = 0; i < 3000; i++) {
		size_t size = i % 211 * (i % 97 == 0 ? 1000 : 3);
		ASSERT_NE(tn_arena_alloc(a.get(), size, 8), nullptr);
		asked += size;
		tn_stats stats = stats_of(a.get());
		ASSERT_EQ(stats.committed_bytes, books.held_bytes());
		ASSERT_EQ(stats.chunk_count, books.held_count());
		ASSERT_GE(stats.live_bytes, asked);
		ASSERT_LE(stats.live_bytes + stats.cached_bytes, stats.committed_bytes);
		ASSERT_GE(stats.reserved_bytes, stats.committed_bytes);
		peak = std::max(peak, stats.live_bytes);
		ASSERT_EQ(stats.peak_bytes, peak) << "stats samples the peak";
		if (i % 1000 == 999) {
			tn_arena_reset(a.get());
			asked = 0;
		}
	}
	EXPECT_GE(stats_of(a.get()).refills, books.calls() / 2);
}

TEST(arena, misaligned_answers_count_as_none) {
	for (size_t skew : {1u, 8u}) {
		ledger books;
		books.misalign(skew);
		tn_arena_options options = with_source(books);
		EXPECT_REFUSED(make_arena(options), ENOMEM);
		placed_arena a(options);
		ASSERT_TRUE(a.ready);
		EXPECT_REFUSED(tn_arena_alloc(a.get(), 10, 16), ENOMEM);
		EXPECT_REFUSED(tn_arena_alloc(a.get(), mib, 16), ENOMEM);
		EXPECT_EQ(books.held_count(), 0u);
		books.misalign(0);
		EXPECT_NE(tn_arena_alloc(a.get(), 10, 16), nullptr);
	}
}

TEST(arena, failure_of_the_source_changes_nothing) {
	ledger books;
	placed_arena a(with_source(books));
	char *p = static_cast<char *>(tn_arena_alloc(a.get(), 1000, 16));
	fill(p, 1000, 1);
	ASSERT_NE(tn_arena_alloc(a.get(), 1, 1), nullptr);
	std::string before = to_text(stats_of(a.get()));
	books.fail(1, ledger::never);
	EXPECT_REFUSED(tn_arena_alloc(a.get(), 70 * kib, 16), ENOMEM);
	EXPECT_REFUSED(tn_arena_alloc(a.get(), 10 * mib, 16), ENOMEM);
	EXPECT_REFUSED(tn_arena_realloc(a.get(), p, 1000, mib, 16), ENOMEM);
	EXPECT_REFUSED(tn_arena_copy(a.get(), books.held().begin()->first, 64 * kib), ENOMEM);
	EXPECT_REFUSED(tn_arena_printf(a.get(), "%*s", 100000, ""), ENOMEM);
	EXPECT_EQ(TN_NEW_ARRAY(a.get(), char, 100000), nullptr);
	EXPECT_FALSE(tn_arena_resize(a.get(), p, 1000, mib));
	EXPECT_EQ(to_text(stats_of(a.get())), before);
	EXPECT_TRUE(filled(p, 1000, 1));
	EXPECT_TRUE(tn_arena_verify(a.get()));
	books.heal();
	EXPECT_NE(tn_arena_alloc(a.get(), 10 * mib, 16), nullptr);
}

} /* namespace */
} /* namespace test_arena */
