/* arena.h, contract by contract: blocks, resize and realloc, copy and printf, marks. */
#include "use.h"

#include <algorithm>
#include <clocale>
#include <set>

namespace test_arena_blocks {
namespace {

/* ---- blocks ---- */

TEST(arena_blocks, size_zero_is_unique_and_valid) {
	arena_owner a = make_arena();
	std::set<void *> seen;
	for (int i = 0; i < 10000; i++) {
		void *p = tn_arena_alloc(a.get(), 0, static_cast<size_t>(1) << (i % 7));
		ASSERT_NE(p, nullptr);
		ASSERT_TRUE(seen.insert(p).second);
		ASSERT_TRUE(aligned_to(p, static_cast<size_t>(1) << (i % 7)));
	}
}

TEST(arena_blocks, every_alignment_up_to_the_largest) {
	arena_owner a = make_arena();
	for (size_t align = 1; align <= TN_ALIGN_MAX; align *= 2)
		for (size_t size : {size_t{0}, size_t{1}, size_t{17}, size_t{5000}, 100 * kib}) {
			void *p = tn_arena_alloc(a.get(), size, align);
			ASSERT_NE(p, nullptr) << size << " at " << align;
			EXPECT_TRUE(aligned_to(p, align)) << size << " at " << align;
			fill(p, size, align);
			ASSERT_TRUE(tn_arena_verify(a.get()));
		}
	EXPECT_TRUE(aligned_to(tn_arena_alloc(a.get(), 3, 0), 16));
}

TEST(arena_blocks, bad_alignments_are_refused) {
	arena_owner a = make_arena();
	std::string before = to_text(stats_of(a.get()));
	for (size_t align : {size_t{3}, size_t{5}, size_t{24}, size_t{48}, size_t{4095}, TN_ALIGN_MAX * 2,
			 TN_ALIGN_MAX + 1, SIZE_MAX, SIZE_MAX / 2 + 1}) {
		EXPECT_REFUSED(tn_arena_alloc(a.get(), 10, align), EINVAL);
		EXPECT_REFUSED(tn_arena_alloc(a.get(), 10 * mib, align), EINVAL);
		EXPECT_REFUSED(tn_arena_realloc(a.get(), nullptr, 0, 10, align), EINVAL);
	}
	EXPECT_EQ(to_text(stats_of(a.get())), before);
}

size_t occupied(size_t size, size_t align) {
	return size <= 9 ? 16 : round_up(size, align <= 8 ? 8 : 16);
}

TEST(arena_blocks, blocks_occupy_what_the_header_says) {
	for (size_t align : {size_t{1}, size_t{8}, size_t{16}})
		for (size_t size = 0; size <= 200; size++) {
			arena_owner a = make_arena();
			ASSERT_NE(tn_arena_alloc(a.get(), 16, 16), nullptr);
			size_t before = stats_of(a.get()).live_bytes;
			ASSERT_NE(tn_arena_alloc(a.get(), size, align), nullptr);
			size_t live = stats_of(a.get()).live_bytes - before;
			if (debug_mode) {
				EXPECT_GE(live, occupied(size, align)) << size << " at " << align;
			} else {
				EXPECT_EQ(live, occupied(size, align)) << size << " at " << align;
			}
		}
}

TEST(arena_blocks, neighbours_do_not_overlap_at_any_size) {
	arena_owner a = make_arena();
	for (size_t size = 0; size <= 300; size++)
		for (size_t align : {1u, 2u, 4u, 8u, 16u, 32u, 64u}) {
			char *p = static_cast<char *>(tn_arena_alloc(a.get(), size, align));
			char *q = static_cast<char *>(tn_arena_alloc(a.get(), 1, 1));
			fill(p, size, size);
			*q = 0x12;
			ASSERT_TRUE(filled(p, size, size));
			ASSERT_TRUE(q >= p + size || q + 1 <= p);
		}
}

TEST(arena_blocks, new_is_zeroed) {
	struct thing {
		int64_t a;
		char text[33];
		double d;
	};
	ledger books;
	placed_arena a(with_source(books));
	for (int i = 0; i < 500; i++) {
		thing *t = TN_NEW(a.get(), thing);
		ASSERT_NE(t, nullptr);
		ASSERT_TRUE(all_bytes(t, sizeof *t, 0));
		ASSERT_TRUE(aligned_to(t, alignof(thing)));
		std::memset(static_cast<void *>(t), 0xff, sizeof *t);
		thing *many = TN_NEW_ARRAY(a.get(), thing, 37);
		ASSERT_NE(many, nullptr);
		ASSERT_TRUE(all_bytes(many, 37 * sizeof *many, 0));
		std::memset(static_cast<void *>(many), 0xff, 37 * sizeof *many);
		if (i % 50 == 49)
			tn_arena_reset(a.get());
	}
	EXPECT_NE(TN_NEW_ARRAY(a.get(), thing, 0), nullptr);
}

TEST(arena_blocks, new_of_an_overaligned_type) {
	struct alignas(256) wide {
		char c[256];
	};
	arena_owner a = make_arena();
	ASSERT_NE(TN_NEW(a.get(), char), nullptr);
	EXPECT_TRUE(aligned_to(TN_NEW(a.get(), wide), 256));
	EXPECT_TRUE(aligned_to(TN_NEW_ARRAY(a.get(), wide, 3), 256));
}

/* ---- resize and realloc ---- */

TEST(arena_blocks, resize_of_the_last_block_is_exact) {
	for (size_t align : {1u, 8u, 16u, 64u})
		for (size_t size = 1; size <= 100; size++)
			for (size_t next = 0; next <= 130; next++) {
				arena_owner a = make_arena();
				char *p = static_cast<char *>(tn_arena_alloc(a.get(), size, align));
				ASSERT_NE(p, nullptr);
				fill(p, size, 3);
				ASSERT_TRUE(tn_arena_resize(a.get(), p, size, next)) << size << " to " << next;
				ASSERT_TRUE(filled(p, std::min(size, next), 3));
				fill(p, next, 4);
				char *q = static_cast<char *>(tn_arena_alloc(a.get(), 8, 1));
				ASSERT_GE(q, p + next);
				fill(q, 8, 5);
				ASSERT_TRUE(filled(p, next, 4));
				ASSERT_TRUE(tn_arena_verify(a.get()));
			}
}

TEST(arena_blocks, a_block_before_a_small_one_is_not_the_last) {
	for (size_t align : {1u, 8u, 16u, 64u})
		for (size_t size = 1; size <= 100; size++)
			for (size_t small = 0; small <= 17; small++) {
				arena_owner a = make_arena();
				char *p = static_cast<char *>(tn_arena_alloc(a.get(), size, align));
				char *q = static_cast<char *>(tn_arena_alloc(a.get(), small, 1));
				fill(p, size, 3);
				fill(q, small, 4);
				errno = 123;
				ASSERT_FALSE(tn_arena_resize(a.get(), p, size, size + 100));
				ASSERT_EQ(errno, 123) << "false without errno";
				for (size_t next = size + 1; next <= size + 17; next++)
					if (tn_arena_resize(a.get(), p, size, next)) {
						ASSERT_LE(p + next, q) << "block grew into its neighbour";
						ASSERT_TRUE(tn_arena_resize(a.get(), p, next, size));
					}
				ASSERT_TRUE(tn_arena_resize(a.get(), p, size, size / 2)) << "shrinking always can";
				char *r = static_cast<char *>(tn_arena_alloc(a.get(), 8, 1));
				fill(r, 8, 6);
				ASSERT_TRUE(filled(p, size / 2, 3) && filled(q, small, 4));
			}
}

TEST(arena_blocks, a_resized_block_is_still_the_last) {
	arena_owner a = make_arena();
	char *p = static_cast<char *>(tn_arena_alloc(a.get(), 10, 16));
	size_t size = 10;
	for (size_t next : {100u, 3u, 0u, 1u, 17u, 5000u, 16u, 9u, 10u, 8u, 24u, 25u, 30000u, 1u}) {
		ASSERT_TRUE(tn_arena_resize(a.get(), p, size, next)) << size << " to " << next;
		size = next;
		fill(p, size, next);
	}
	EXPECT_LE(stats_of(a.get()).live_bytes, 2 * kib) << "shrinking the last block gives its bytes back";
}

TEST(arena_blocks, resize_stops_at_the_end_of_the_chunk) {
	arena_owner a = make_arena();
	char *p = static_cast<char *>(tn_arena_alloc(a.get(), 100, 16));
	EXPECT_TRUE(tn_arena_resize(a.get(), p, 100, 50 * kib));
	std::string before = to_text(stats_of(a.get()));
	errno = 0;
	for (size_t size : {64 * kib, mib, SIZE_MAX / 2, SIZE_MAX - 16, SIZE_MAX})
		EXPECT_FALSE(tn_arena_resize(a.get(), p, 50 * kib, size)) << size;
	EXPECT_EQ(errno, 0);
	EXPECT_EQ(to_text(stats_of(a.get())), before);
}

TEST(arena_blocks, resize_of_a_large_block) {
	arena_owner a = make_arena();
	char *p = static_cast<char *>(tn_arena_alloc(a.get(), mib, 16));
	fill(p, mib, 1);
	EXPECT_TRUE(tn_arena_resize(a.get(), p, mib, mib / 2));
	EXPECT_TRUE(filled(p, mib / 2, 1));
	EXPECT_FALSE(tn_arena_resize(a.get(), p, mib / 2, 100 * mib));
	EXPECT_TRUE(filled(p, mib / 2, 1));
	EXPECT_TRUE(tn_arena_verify(a.get()));
}

TEST(arena_blocks, realloc_keeps_bytes_at_every_size) {
	for (size_t align : {1u, 8u, 16u, 64u})
		for (size_t size = 1; size <= 100; size++)
			for (size_t next = 0; next <= 120; next += 7)
				for (bool last : {true, false}) {
					arena_owner a = make_arena();
					char *p = static_cast<char *>(tn_arena_alloc(a.get(), size, align));
					fill(p, size, 3);
					if (!last)
						fill(tn_arena_alloc(a.get(), 1, 1), 1, 9);
					char *q = static_cast<char *>(tn_arena_realloc(a.get(), p, size, next, align));
					ASSERT_NE(q, nullptr);
					ASSERT_TRUE(aligned_to(q, align));
					ASSERT_TRUE(filled(q, std::min(size, next), 3));
					if (last || next <= size) {
						ASSERT_EQ(q, p) << "in place when it can: " << size << " to " << next;
					}
					fill(q, next, 4);
					char *r = static_cast<char *>(tn_arena_alloc(a.get(), 8, 1));
					fill(r, 8, 5);
					ASSERT_TRUE(filled(q, next, 4));
				}
}

TEST(arena_blocks, realloc_refuses_alignments_as_alloc_does) {
	arena_owner a = make_arena();
	for (int i = 0; i < 4; i++) {
		void *p = tn_arena_alloc(a.get(), 100, TN_ALIGN_MAX);
		ASSERT_NE(p, nullptr);
		EXPECT_REFUSED(tn_arena_realloc(a.get(), p, 100, 50, 2 * TN_ALIGN_MAX), EINVAL);
		EXPECT_REFUSED(tn_arena_realloc(a.get(), p, 100, 50, 24), EINVAL);
	}
}

TEST(arena_blocks, realloc_of_null_allocates) {
	arena_owner a = make_arena();
	char *p = static_cast<char *>(tn_arena_realloc(a.get(), nullptr, 0, 100, 32));
	ASSERT_NE(p, nullptr);
	EXPECT_TRUE(aligned_to(p, 32));
	fill(p, 100, 1);
	EXPECT_NE(tn_arena_realloc(a.get(), nullptr, 0, 0, 0), nullptr);
	EXPECT_TRUE(filled(p, 100, 1));
}

TEST(arena_blocks, realloc_moves_to_a_stricter_alignment) {
	arena_owner a = make_arena();
	for (int i = 0; i < 200; i++) {
		ASSERT_NE(tn_arena_alloc(a.get(), static_cast<size_t>(i % 5) * 8 + 9, 8), nullptr);
		char *p = static_cast<char *>(tn_arena_alloc(a.get(), 40, 8));
		fill(p, 40, 3);
		size_t next = i % 2 == 0 ? 30 : 50;
		char *q = static_cast<char *>(tn_arena_realloc(a.get(), p, 40, next, 128));
		ASSERT_NE(q, nullptr);
		ASSERT_TRUE(aligned_to(q, 128));
		ASSERT_TRUE(filled(q, 30, 3));
	}
}

TEST(arena_blocks, realloc_leaves_the_old_place_alone_until_reset) {
	arena_owner a = make_arena();
	std::vector<std::pair<char *, size_t>> left;
	char *p = static_cast<char *>(tn_arena_alloc(a.get(), 24, 8));
	for (size_t size = 24; size < 20000; size += size / 2) {
		left.push_back({p, size});
		ASSERT_NE(tn_arena_alloc(a.get(), 1, 1), nullptr);
		p = static_cast<char *>(tn_arena_realloc(a.get(), p, size, size + size / 2, 8));
		ASSERT_NE(p, nullptr);
		for (auto &old : left)
			ASSERT_TRUE(p + size + size / 2 <= old.first || old.first + old.second <= p);
	}
}

TEST(arena_blocks, realloc_between_small_and_large) {
	arena_owner a = make_arena();
	char *p = static_cast<char *>(tn_arena_alloc(a.get(), 1000, 16));
	fill(p, 1000, 1);
	p = static_cast<char *>(tn_arena_realloc(a.get(), p, 1000, 5 * mib, 16));
	ASSERT_NE(p, nullptr);
	EXPECT_TRUE(filled(p, 1000, 1));
	fill(p, 5 * mib, 2);
	p = static_cast<char *>(tn_arena_realloc(a.get(), p, 5 * mib, 9 * mib, 16));
	ASSERT_NE(p, nullptr);
	EXPECT_TRUE(filled(p, 5 * mib, 2));
	p = static_cast<char *>(tn_arena_realloc(a.get(), p, 9 * mib, 100, 16));
	ASSERT_NE(p, nullptr);
	EXPECT_TRUE(filled(p, 100, 2));
	EXPECT_TRUE(tn_arena_verify(a.get()));
}

/* ---- copy and printf ---- */

TEST(arena_blocks, copy) {
	arena_owner a = make_arena();
	char text[300];
	fill(text, sizeof text, 7);
	for (size_t size = 0; size <= sizeof text; size++) {
		void *p = tn_arena_copy(a.get(), text, size);
		ASSERT_NE(p, nullptr);
		ASSERT_TRUE(filled(p, size, 7));
		ASSERT_NE(p, static_cast<void *>(text));
	}
	EXPECT_NE(tn_arena_copy(a.get(), nullptr, 0), nullptr);
	std::vector<char> large(3 * mib);
	fill(large.data(), large.size(), 8);
	EXPECT_TRUE(filled(tn_arena_copy(a.get(), large.data(), large.size()), large.size(), 8));
}

TEST(arena_blocks, printf_at_every_length_and_fill) {
	tn_arena_options options = {};
	options.chunk_bytes = page;
	options.chunk_bytes_max = TN_NONE;
	arena_owner a = make_arena(options);
	std::string expected(600, 'q');
	for (size_t length = 0; length < 600; length++) {
		char *text = tn_arena_printf(a.get(), "%.*s", static_cast<int>(length), expected.c_str());
		ASSERT_NE(text, nullptr);
		ASSERT_EQ(std::strlen(text), length);
		ASSERT_EQ(std::string(text), expected.substr(0, length));
		char *next = static_cast<char *>(tn_arena_alloc(a.get(), 8, 1));
		std::memset(next, 0x7f, 8);
		ASSERT_EQ(std::strlen(text), length) << "the next block lies on the terminator";
	}
	EXPECT_TRUE(tn_arena_verify(a.get()));
}

TEST(arena_blocks, printf_is_exactly_as_long_as_needed) {
	for (int length = 0; length < 200; length++) {
		arena_owner a = make_arena();
		arena_owner b = make_arena();
		ASSERT_NE(tn_arena_printf(a.get(), "%*s", length, ""), nullptr);
		ASSERT_NE(tn_arena_alloc(b.get(), static_cast<size_t>(length) + 1, 1), nullptr);
		EXPECT_EQ(stats_of(a.get()).live_bytes, stats_of(b.get()).live_bytes) << length;
	}
}

TEST(arena_blocks, printf_text_of_its_own_chunk) {
	arena_owner a = make_arena();
	char *text = tn_arena_printf(a.get(), "%*d|%s", 300000, 42, "end");
	ASSERT_NE(text, nullptr);
	EXPECT_EQ(std::strlen(text), 300004u);
	EXPECT_STREQ(text + 299998, "42|end");
}

TEST(arena_blocks, printf_across_the_committed_part_of_a_range) {
	tn_arena_options options = {};
	options.reserve_bytes = 8 * mib;
	arena_owner a = make_arena(options);
	for (int i = 0; i < 200; i++) {
		char *text = tn_arena_printf(a.get(), "%*d|end", 20000, i);
		ASSERT_NE(text, nullptr);
		ASSERT_EQ(std::strlen(text), 20004u);
		ASSERT_STREQ(text + 20000, "|end");
	}
}

TEST(arena_blocks, printf_that_cannot_be_printed) {
	std::setlocale(LC_ALL, "C");
	arena_owner a = make_arena();
	std::string before = to_text(stats_of(a.get()));
	const wchar_t outside[] = {0x20ac, 0};
	EXPECT_REFUSED(tn_arena_printf(a.get(), "%ls", outside), EINVAL);
	EXPECT_EQ(to_text(stats_of(a.get())), before);
}

TEST(arena_blocks, printf_leaves_no_text_behind) {
	tn_arena_options options = {};
	options.fixed = true;
	arena_owner a = make_arena(options);
	ASSERT_NE(tn_arena_alloc(a.get(), 60 * kib, 1), nullptr);
	std::string secret(10000, 'w');
	EXPECT_EQ(tn_arena_printf(a.get(), "%s", secret.c_str()), nullptr);
	tn_arena_reset(a.get());
	bool stale = false;
	while (char *p = static_cast<char *>(tn_arena_alloc(a.get(), 64, 16)))
		stale = stale || std::memchr(p, 'w', 64) != nullptr;
	/* Release leaves contents as they are. */
	EXPECT_TRUE(!stale || release_mode) << "text of an earlier cycle";
}

TEST(arena_blocks, printf_over_the_limit) {
	tn_arena_options options = {};
	options.limit_bytes = 64 * kib;
	arena_owner a = make_arena(options);
	std::string before = to_text(stats_of(a.get()));
	EXPECT_REFUSED(tn_arena_printf(a.get(), "%*s", 100000, ""), ENOMEM);
	EXPECT_EQ(to_text(stats_of(a.get())), before);
}

/* ---- mark and rewind ---- */

TEST(arena_blocks, rewind_goes_back_to_the_mark) {
	arena_owner a = make_arena();
	char *kept = static_cast<char *>(tn_arena_alloc(a.get(), 100, 16));
	fill(kept, 100, 1);
	size_t live = stats_of(a.get()).live_bytes;
	tn_checkpoint mark = tn_arena_mark(a.get());
	for (size_t total : {size_t{0}, kib, 100 * kib, 5 * mib}) {
		char *p = static_cast<char *>(tn_arena_alloc(a.get(), 48, 16));
		allocate_total(a.get(), total, 48);
		tn_arena_rewind(a.get(), mark);
		EXPECT_EQ(stats_of(a.get()).live_bytes, live);
		EXPECT_TRUE(tn_arena_owns(a.get(), kept));
		EXPECT_FALSE(tn_arena_owns(a.get(), p));
		char *again = static_cast<char *>(tn_arena_alloc(a.get(), 48, 16));
		if (release_mode) {
			EXPECT_EQ(again, p);
		}
		tn_arena_rewind(a.get(), mark);
		EXPECT_TRUE(filled(kept, 100, 1));
		EXPECT_TRUE(tn_arena_verify(a.get()));
	}
	EXPECT_EQ(stats_of(a.get()).resets, 0u);
}

TEST(arena_blocks, marks_nest) {
	arena_owner a = make_arena();
	struct level {
		tn_checkpoint mark;
		size_t live;
		char *block;
	};
	std::vector<level> levels;
	for (size_t depth = 0; depth < 200; depth++) {
		levels.push_back({tn_arena_mark(a.get()), stats_of(a.get()).live_bytes, nullptr});
		levels.back().block = static_cast<char *>(tn_arena_alloc(a.get(), 700 * (depth % 9) + 1, 16));
		ASSERT_NE(levels.back().block, nullptr);
		fill(levels.back().block, 700 * (depth % 9) + 1, depth);
	}
	for (size_t depth = 200; depth-- > 0;) {
		ASSERT_TRUE(filled(levels[depth].block, 700 * (depth % 9) + 1, depth));
		tn_arena_rewind(a.get(), levels[depth].mark);
		ASSERT_EQ(stats_of(a.get()).live_bytes, levels[depth].live) << depth;
	}
	EXPECT_EQ(stats_of(a.get()).live_bytes, 0u);
}

TEST(arena_blocks, rewind_gives_large_blocks_back) {
	ledger books;
	placed_arena a(with_source(books));
	ASSERT_NE(tn_arena_alloc(a.get(), 100, 16), nullptr);
	char *kept = static_cast<char *>(tn_arena_alloc(a.get(), 300 * kib, 16));
	fill(kept, 300 * kib, 1);
	size_t held = books.held_bytes();
	tn_checkpoint mark = tn_arena_mark(a.get());
	for (int i = 0; i < 5; i++)
		ASSERT_NE(tn_arena_alloc(a.get(), mib, 16), nullptr);
	EXPECT_GE(books.held_bytes(), held + 5 * mib);
	tn_arena_rewind(a.get(), mark);
	EXPECT_EQ(books.held_bytes(), held);
	EXPECT_TRUE(filled(kept, 300 * kib, 1));
	EXPECT_TRUE(tn_arena_owns(a.get(), kept + 300 * kib - 1));
	EXPECT_TRUE(tn_arena_verify(a.get()));
}

TEST(arena_blocks, rewind_keeps_chunks_warm) {
	ledger books;
	placed_arena a(with_source(books));
	ASSERT_NE(tn_arena_alloc(a.get(), 100, 16), nullptr);
	tn_checkpoint mark = tn_arena_mark(a.get());
	allocate_total(a.get(), 3 * mib, 1000);
	size_t calls = books.calls();
	for (int round = 0; round < 5; round++) {
		tn_arena_rewind(a.get(), mark);
		allocate_total(a.get(), 3 * mib, 1000);
	}
	/* Debug sets forgotten memory aside for a while. */
	if (!debug_mode) {
		EXPECT_EQ(books.calls(), calls);
	}
}

TEST(arena_blocks, mark_before_the_first_chunk) {
	ledger books;
	placed_arena a(with_source(books));
	tn_checkpoint mark = tn_arena_mark(a.get());
	for (int round = 0; round < 3; round++) {
		allocate_total(a.get(), 200 * kib, 500);
		tn_arena_rewind(a.get(), mark);
		EXPECT_EQ(stats_of(a.get()).live_bytes, 0u);
		EXPECT_TRUE(tn_arena_verify(a.get()));
	}
}

TEST(arena_blocks, reset_after_a_rewind_to_before_the_first_chunk) {
	ledger books;
	placed_arena a(with_source(books));
	tn_checkpoint mark = tn_arena_mark(a.get());
	ASSERT_NE(tn_arena_alloc(a.get(), 100, 16), nullptr);
	tn_arena_rewind(a.get(), mark);
	tn_arena_reset(a.get());
	EXPECT_TRUE(tn_arena_verify(a.get()));
	char *p = static_cast<char *>(tn_arena_alloc(a.get(), mib, 16));
	ASSERT_TRUE(p != nullptr && books.holds(p, mib));
	EXPECT_GE(stats_of(a.get()).live_bytes, mib);
}

TEST(arena_blocks, rewind_to_a_mark_inside_a_block_that_grew) {
	arena_owner a = make_arena();
	char *p = static_cast<char *>(tn_arena_alloc(a.get(), 100, 16));
	fill(p, 100, 1);
	tn_checkpoint mark = tn_arena_mark(a.get());
	if (tn_arena_resize(a.get(), p, 100, 1000))
		fill(p + 100, 900, 2);
	tn_arena_rewind(a.get(), mark);
	char *q = static_cast<char *>(tn_arena_alloc(a.get(), 100, 16));
	EXPECT_GE(q, p + 100);
	fill(q, 100, 3);
	EXPECT_TRUE(filled(p, 100, 1)) << "the block has the bytes that it had at the mark";
	EXPECT_TRUE(tn_arena_verify(a.get()));
}

TEST(arena_blocks, a_large_block_that_grew_after_the_mark) {
	arena_owner a = make_arena();
	ASSERT_NE(tn_arena_alloc(a.get(), 10, 16), nullptr);
	char *p = static_cast<char *>(tn_arena_alloc(a.get(), 92742, 16));
	fill(p, 92742, 1);
	ASSERT_NE(tn_arena_alloc(a.get(), 10, 16), nullptr);
	size_t live = stats_of(a.get()).live_bytes;
	tn_checkpoint mark = tn_arena_mark(a.get());
	ASSERT_TRUE(tn_arena_resize(a.get(), p, 92742, 92780));
	std::memset(p + 92742, 2, 38);
	tn_arena_rewind(a.get(), mark);
	EXPECT_EQ(stats_of(a.get()).live_bytes, live);
	EXPECT_TRUE(tn_arena_resize(a.get(), p, 92742, 92700)) << "it has the size that it had at the mark";
	EXPECT_TRUE(filled(p, 92700, 1));
	EXPECT_TRUE(tn_arena_verify(a.get()));
}

TEST(arena_blocks, a_block_shrunk_past_the_mark_survives_the_rewind) {
	arena_owner a = make_arena();
	char *p = static_cast<char *>(tn_arena_alloc(a.get(), 1000, 16));
	fill(p, 1000, 1);
	tn_checkpoint mark = tn_arena_mark(a.get());
	ASSERT_TRUE(tn_arena_resize(a.get(), p, 1000, 10));
	char *q = static_cast<char *>(tn_arena_alloc(a.get(), 50, 16));
	fill(q, 50, 2);
	ASSERT_TRUE(filled(p, 10, 1));
	tn_arena_rewind(a.get(), mark);
	ASSERT_TRUE(tn_arena_verify(a.get()));
	char *r = static_cast<char *>(tn_arena_alloc(a.get(), 50, 16));
	fill(r, 50, 3);
	EXPECT_TRUE(filled(p, 10, 1));
}

TEST(arena_blocks, a_block_shrunk_past_the_mark_survives_growth_and_rewind) {
	arena_owner a = make_arena();
	char *p = static_cast<char *>(tn_arena_alloc(a.get(), 1000, 16));
	fill(p, 1000, 1);
	tn_checkpoint mark = tn_arena_mark(a.get());
	ASSERT_TRUE(tn_arena_resize(a.get(), p, 1000, 10));
	allocate_total(a.get(), 300 * kib, 10000);
	tn_arena_rewind(a.get(), mark);
	ASSERT_TRUE(tn_arena_verify(a.get()));
	EXPECT_TRUE(filled(p, 10, 1));
	char *q = static_cast<char *>(tn_arena_alloc(a.get(), 50, 16));
	fill(q, 50, 3);
	EXPECT_TRUE(filled(p, 10, 1));
}

void rewind_to_before_a_reset() {
	arena_owner a = make_arena();
	tn_checkpoint mark = tn_arena_mark(a.get());
	tn_arena_reset(a.get());
	tn_arena_rewind(a.get(), mark);
}

void rewind_with_a_mark_of_another() {
	arena_owner a = make_arena();
	arena_owner b = make_arena();
	tn_arena_rewind(a.get(), tn_arena_mark(b.get()));
}

TEST(arena_blocks, stale_and_foreign_checkpoints) {
	EXPECT_DEATH(rewind_to_before_a_reset(), "arena");
	EXPECT_DEATH(rewind_with_a_mark_of_another(), "arena");
}

/* ---- regressions ---- */

TEST(arena_blocks, a_trim_leaves_the_chunk_of_a_checkpoint) {
	tn_arena a;
	ASSERT_TRUE(tn_arena_init(&a, nullptr));
	ASSERT_NE(tn_arena_alloc(&a, 100, 0), nullptr);
	tn_arena_reset(&a);
	tn_checkpoint mark = tn_arena_mark(&a);
	tn_arena_trim(&a);
	tn_arena_rewind(&a, mark);
	EXPECT_TRUE(tn_arena_verify(&a));
	tn_arena_deinit(&a);
}

TEST(arena_blocks, retaining_nearly_everything_of_a_range) {
	tn_arena_options options = {};
	options.reserve_bytes = 1 << 20;
	options.retain_bytes = SIZE_MAX - 100;
	tn_arena *a = tn_arena_create(&options);
	ASSERT_NE(a, nullptr);
	ASSERT_NE(tn_arena_alloc(a, 100, 0), nullptr);
	tn_arena_reset(a);
	EXPECT_NE(tn_arena_alloc(a, 100, 0), nullptr);
	EXPECT_TRUE(tn_arena_verify(a));
	tn_arena_destroy(a);
}

/* A chunk that ends where the caller's buffer begins. */
alignas(4096) char neighbours[8192 + 4096];

void *first_neighbour(void *, size_t size, size_t) {
	return size == 8192 ? neighbours : nullptr;
}

void keep_neighbour(void *, void *, size_t) {
}

TEST(arena_blocks, a_block_that_ends_where_the_buffer_begins_is_not_its_last) {
	tn_source source = {first_neighbour, keep_neighbour, nullptr};
	tn_arena_options options = {};
	options.buffer = neighbours + 8192;
	options.buffer_bytes = 4096;
	options.chunk_bytes = 4096;
	options.source = &source;
	tn_arena a;
	ASSERT_TRUE(tn_arena_init(&a, &options));
	size_t size = 8192 - 48 - (TN_MODE == TN_MODE_DEBUG ? 64 : 0);
	void *p = tn_arena_alloc(&a, size, 16);
	ASSERT_NE(p, nullptr);
	ASSERT_TRUE(tn_arena_resize(&a, p, size, 100));
	EXPECT_EQ(static_cast<char *>(tn_arena_alloc(&a, 64, 16)) >= neighbours + 8192, true);
	EXPECT_TRUE(tn_arena_verify(&a));
	tn_arena_deinit(&a);
}

alignas(1 << 21) char aligned_buffer[4096];

TEST(arena_blocks, an_alignment_too_large_is_refused_where_the_cursor_has_it) {
	tn_arena_options options = {};
	options.buffer = aligned_buffer;
	options.buffer_bytes = sizeof aligned_buffer;
	tn_arena a;
	ASSERT_TRUE(tn_arena_init(&a, &options));
	errno = 0;
	EXPECT_EQ(tn_arena_alloc(&a, 16, size_t{1} << 21), nullptr);
	EXPECT_EQ(errno, EINVAL);
	tn_arena_deinit(&a);
}

} /* namespace */
} /* namespace test_arena_blocks */
