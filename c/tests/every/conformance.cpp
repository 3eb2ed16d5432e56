/* The rules of spec/behaviour.md. A test is named after the rule that it shows: B<number>_<words>.
 * Rules of threads and pools are in conformance_shared.cpp. */
#include "crowd.h"
#include "slabs.h"

#include <cstdio>
#include <fstream>
#include <random>
#include <set>

namespace conformance {
namespace {

struct odd {
	char c[24];
};

tn_arena_options arena_from(const ledger &books) {
	tn_arena_options options = {};
	options.source = books.source();
	return options;
}

tn_slab_options slab_from(const ledger &books) {
	tn_slab_options options = {};
	options.source = books.source();
	return options;
}

std::vector<void *> take(tn_slab *s, size_t count) {
	std::vector<void *> slots(count);
	EXPECT_TRUE(tn_slab_alloc_batch(s, slots.data(), count));
	return slots;
}

TEST(conformance, B1_alignment) {
	arena_owner a = make_arena();
	for (size_t align = 1; align <= TN_ALIGN_MAX; align *= 2) {
		EXPECT_TRUE(aligned_to(tn_arena_alloc(a.get(), 3, align), align));
		EXPECT_TRUE(aligned_to(tn_arena_realloc(a.get(), nullptr, 0, 3, align), align));
		slab_owner s = make_slab(3, align);
		EXPECT_TRUE(aligned_to(tn_slab_alloc(s.get()), align));
		shared_slab_owner shared = make_shared_slab(3, align);
		EXPECT_TRUE(aligned_to(tn_shared_slab_alloc(shared.get()), align));
		pool_owner p = make_pool(3, align);
		EXPECT_TRUE(aligned_to(tn_pool_get(p.get()), align));
	}
	EXPECT_TRUE(aligned_to(tn_arena_alloc(a.get(), 3, 0), 16));
	slab_owner s = make_slab(3, 0);
	for (void *p : take(s.get(), 10))
		EXPECT_TRUE(aligned_to(p, 16));
}

TEST(conformance, B2_size_zero) {
	arena_owner a = make_arena();
	std::set<void *> seen;
	for (int i = 0; i < 100; i++) {
		EXPECT_TRUE(seen.insert(tn_arena_alloc(a.get(), 0, 1)).second);
		EXPECT_TRUE(seen.insert(tn_arena_alloc(a.get(), 1, 1)).second);
		EXPECT_TRUE(seen.insert(tn_arena_copy(a.get(), nullptr, 0)).second);
		EXPECT_TRUE(seen.insert(TN_NEW_ARRAY(a.get(), odd, 0)).second);
	}
	EXPECT_EQ(seen.count(nullptr), 0u);
}

TEST(conformance, B3_blocks_are_their_users) {
	arena_owner a = make_arena();
	slab_owner s = make_slab(40);
	shared_slab_owner shared = make_shared_slab(40);
	std::vector<void *> blocks, slots, shared_slots = take(shared.get(), 500);
	for (size_t i = 0; i < 500; i++)
		fill(shared_slots[i], 40, i);
	for (size_t i = 0; i < 500; i++) {
		blocks.push_back(tn_arena_alloc(a.get(), i, 1));
		fill(blocks.back(), i, i);
		slots.push_back(tn_slab_alloc(s.get()));
		fill(slots.back(), 40, i);
	}
	for (size_t i = 0; i < 500; i++) {
		EXPECT_TRUE(filled(blocks[i], i, i));
		EXPECT_TRUE(filled(slots[i], 40, i));
		EXPECT_TRUE(filled(shared_slots[i], 40, i));
	}
}

TEST(conformance, B4_bad_alignment) {
	arena_owner a = make_arena();
	for (size_t align : {size_t{3}, size_t{24}, 2 * TN_ALIGN_MAX, SIZE_MAX}) {
		EXPECT_REFUSED(tn_arena_alloc(a.get(), 8, align), EINVAL);
		EXPECT_REFUSED(tn_arena_realloc(a.get(), nullptr, 0, 8, align), EINVAL);
		EXPECT_REFUSED(make_slab(8, align), EINVAL);
		EXPECT_REFUSED(make_shared_slab(8, align), EINVAL);
		EXPECT_REFUSED(make_pool(8, align), EINVAL);
	}
}

TEST(conformance, B5_sizes_that_cannot_be) {
	arena_owner a = make_arena();
	char byte = 0;
	for (size_t back = 0; back < 100; back++) {
		EXPECT_REFUSED(tn_arena_alloc(a.get(), SIZE_MAX - back, 16), ENOMEM);
		EXPECT_REFUSED(tn_arena_alloc(a.get(), PTRDIFF_MAX - back, 1), ENOMEM);
		EXPECT_REFUSED(tn_arena_copy(a.get(), &byte, SIZE_MAX - back), ENOMEM);
		EXPECT_REFUSED(TN_NEW_ARRAY(a.get(), odd, SIZE_MAX / 24 + 1 + back), ENOMEM);
	}
	slab_owner s = make_slab(24);
	void *none[1];
	EXPECT_REFUSED(tn_slab_alloc_batch(s.get(), none, SIZE_MAX / 24 + 2), ENOMEM);
	shared_slab_owner shared = make_shared_slab(24);
	EXPECT_REFUSED(tn_shared_slab_alloc_batch(shared.get(), none, SIZE_MAX / 24 + 2), ENOMEM);
}

TEST(conformance, B6_constructors_zero) {
	ledger books;
	placed_arena a(arena_from(books));
	for (int i = 0; i < 50; i++) {
		odd *p = TN_NEW(a.get(), odd);
		EXPECT_TRUE(all_bytes(p, sizeof *p, 0));
		odd *many = TN_NEW_ARRAY(a.get(), odd, 10);
		EXPECT_TRUE(all_bytes(many, 10 * sizeof *many, 0));
		std::memset(many, 1, 10 * sizeof *many);
		tn_arena_reset(a.get());
	}
}

TEST(conformance, B7_failure_changes_nothing) {
	ledger books;
	placed_arena a(arena_from(books));
	char *p = static_cast<char *>(tn_arena_alloc(a.get(), 1000, 16));
	fill(p, 1000, 1);
	books.fail(1, ledger::never);
	std::string before = to_text(stats_of(a.get()));
	EXPECT_REFUSED(tn_arena_alloc(a.get(), mib, 16), ENOMEM);
	EXPECT_REFUSED(tn_arena_realloc(a.get(), p, 1000, mib, 16), ENOMEM);
	EXPECT_REFUSED(tn_arena_alloc(a.get(), 8, 3), EINVAL);
	EXPECT_EQ(to_text(stats_of(a.get())), before);
	EXPECT_TRUE(filled(p, 1000, 1));
	EXPECT_NE(tn_arena_alloc(a.get(), 8, 8), nullptr);
}

TEST(conformance, B8_a_source_that_recovers) {
	ledger books;
	placed_arena a(arena_from(books));
	slab_owner s = make_slab(100, 0, slab_from(books));
	shared_slab_owner shared = make_shared_slab(100, 0, with_source(books));
	books.fail(1, 3);
	EXPECT_REFUSED(tn_arena_alloc(a.get(), 8, 8), ENOMEM);
	EXPECT_REFUSED(tn_slab_alloc(s.get()), ENOMEM);
	EXPECT_REFUSED(tn_shared_slab_alloc(shared.get()), ENOMEM);
	EXPECT_NE(tn_arena_alloc(a.get(), 8, 8), nullptr);
	EXPECT_NE(tn_slab_alloc(s.get()), nullptr);
	EXPECT_NE(tn_shared_slab_alloc(shared.get()), nullptr);
}

TEST(conformance, B9_limit) {
	ledger books, others;
	tn_arena_options options = arena_from(books);
	options.limit_bytes = 300 * kib;
	placed_arena a(options);
	while (tn_arena_alloc(a.get(), 100, 16) != nullptr)
		continue;
	EXPECT_LE(books.peak_bytes(), 300 * kib);
	EXPECT_REFUSED(tn_arena_alloc(a.get(), 100, 16), ENOMEM);
	tn_slab_options slab_options = slab_from(others);
	slab_options.limit_bytes = 300 * kib;
	slab_owner s = make_slab(100, 0, slab_options);
	while (tn_slab_alloc(s.get()) != nullptr)
		continue;
	EXPECT_LE(others.peak_bytes(), 300 * kib);
	EXPECT_GT(others.peak_bytes(), 100 * kib);
	ledger third;
	tn_shared_slab_options shared_options = with_source(third);
	shared_options.limit_bytes = 300 * kib;
	shared_slab_owner shared = make_shared_slab(100, 0, shared_options);
	while (tn_shared_slab_alloc(shared.get()) != nullptr)
		continue;
	EXPECT_LE(third.peak_bytes(), 300 * kib);
	EXPECT_GT(third.peak_bytes(), 100 * kib);
}

TEST(conformance, B10_everything_goes_back) {
	ledger books;
	{
		arena_owner a = make_arena(arena_from(books));
		placed_arena b(arena_from(books));
		slab_owner s = make_slab(100, 0, slab_from(books));
		shared_slab_owner shared = make_shared_slab(100, 0, with_source(books));
		give(shared.get(), take(shared.get(), 3000));
		in_thread([&] { take(shared.get(), 3000); });
		for (size_t i = 0; i < 300; i++) {
			tn_arena_alloc(a.get(), i * 100, 16);
			tn_arena_alloc(b.get(), i * 1000, 64);
			tn_slab_alloc(s.get());
		}
		EXPECT_GT(books.held_count(), 10u);
	}
	EXPECT_EQ(books.held_count(), 0u);
	EXPECT_EQ(books.wrong(), 0u);
}

TEST(conformance, B11_contradicting_options) {
	ledger books;
	char buffer[100];
	tn_arena_options options = arena_from(books);
	options.reserve_bytes = mib;
	EXPECT_REFUSED(make_arena(options), EINVAL);
	options = {};
	options.buffer = buffer;
	options.buffer_bytes = sizeof buffer;
	options.reserve_bytes = mib;
	EXPECT_REFUSED(make_arena(options), EINVAL);
	tn_source half = *books.source();
	half.release = nullptr;
	tn_slab_options slab_options = {};
	slab_options.source = &half;
	EXPECT_REFUSED(make_slab(16, 0, slab_options), EINVAL);
	tn_shared_slab_options shared_options = with_source(books);
	shared_options.magazine_slots = TN_MAGAZINE_SLOTS_MAX + 1;
	EXPECT_REFUSED(make_shared_slab(16, 0, shared_options), EINVAL);
	EXPECT_EQ(books.calls(), 0u);
}

TEST(conformance, B12_null) {
	tn_arena_destroy(nullptr);
	tn_arena_deinit(nullptr);
	tn_slab_destroy(nullptr);
	slab_owner s = make_slab(16);
	tn_slab_free(s.get(), nullptr);
	void *none[2] = {nullptr, nullptr};
	tn_slab_free_batch(s.get(), none, 2);
	EXPECT_EQ(tn_slab_in_use(s.get()), 0u);
	tn_shared_slab_destroy(nullptr);
	shared_slab_owner shared = make_shared_slab(16);
	tn_shared_slab_free(shared.get(), nullptr);
	tn_shared_slab_local_free(tn_shared_slab_local(shared.get()), nullptr);
	tn_shared_slab_free_batch(shared.get(), none, 2);
	EXPECT_EQ(tn_shared_slab_in_use(shared.get()), 0u);
	tn_pool_destroy(nullptr);
	pool_owner p = make_pool(16);
	tn_pool_put(p.get(), nullptr);
	EXPECT_EQ(stats_of(p.get()).live_count, 0u);
}

TEST(conformance, B13_destroy_with_live_objects) {
	ledger books;
	slab_owner s = make_slab(16, 0, slab_from(books));
	take(s.get(), 100);
	s.reset();
	shared_slab_owner shared = make_shared_slab(100, 0, with_source(books));
	take(shared.get(), 100);
	shared.reset();
	EXPECT_EQ(books.held_count(), 0u);
	tn_pool_get(make_pool(100).get());
}

TEST(conformance, B14_reset) {
	arena_owner a = make_arena();
	slab_owner s = make_slab(16);
	for (uint64_t i = 1; i < 5; i++) {
		tn_arena_alloc(a.get(), 100000, 16);
		take(s.get(), 100);
		tn_arena_reset(a.get());
		tn_slab_reset(s.get());
		EXPECT_EQ(stats_of(a.get()).live_bytes, 0u);
		EXPECT_EQ(stats_of(a.get()).resets, i);
		EXPECT_EQ(tn_slab_in_use(s.get()), 0u);
		EXPECT_EQ(stats_of(s.get()).resets, i);
	}
}

TEST(conformance, B15_the_same_first_address) {
	arena_owner a = make_arena();
	void *first = tn_arena_alloc(a.get(), 100, 16);
	tn_arena_alloc(a.get(), 1000, 16);
	tn_arena_reset(a.get());
	void *again = tn_arena_alloc(a.get(), 100, 16);
	EXPECT_TRUE(!release_mode || again == first);
}

TEST(conformance, B16_steady_use_takes_nothing) {
	ledger books;
	placed_arena a(arena_from(books));
	slab_owner s = make_slab(100, 0, slab_from(books));
	shared_slab_owner shared = make_shared_slab(100, 0, with_source(books));
	size_t calls = 0;
	for (int i = 0; i < 20; i++) {
		for (int k = 0; k < 1000; k++)
			tn_arena_alloc(a.get(), 300, 16);
		std::vector<void *> slots = take(s.get(), 5000);
		tn_slab_free_batch(s.get(), slots.data(), slots.size());
		give(shared.get(), take(shared.get(), 5000));
		tn_arena_reset(a.get());
		calls = i == 5 ? books.calls() : calls;
	}
	EXPECT_TRUE(debug_mode || books.calls() == calls);
}

TEST(conformance, B17_trim) {
	ledger books;
	placed_arena a(arena_from(books));
	slab_owner s = make_slab(100, 0, slab_from(books));
	void *live = tn_arena_alloc(a.get(), 100, 16);
	fill(live, 100, 1);
	tn_checkpoint mark = tn_arena_mark(a.get());
	for (int i = 0; i < 1000; i++)
		tn_arena_alloc(a.get(), 1000, 16);
	tn_arena_rewind(a.get(), mark);
	std::vector<void *> slots = take(s.get(), 5000);
	fill(slots.front(), 100, 2);
	tn_slab_free_batch(s.get(), slots.data() + 1, slots.size() - 1);
	size_t held = books.held_bytes();
	size_t bytes = tn_arena_trim(a.get()) + tn_slab_trim(s.get());
	EXPECT_GT(bytes, 0u);
	EXPECT_EQ(books.held_bytes(), held - bytes);
	EXPECT_EQ(tn_arena_trim(a.get()) + tn_slab_trim(s.get()), 0u);
	EXPECT_TRUE(filled(live, 100, 1) && filled(slots.front(), 100, 2));
	shared_slab_owner shared = make_shared_slab(100, 0, with_source(books));
	std::vector<void *> shared_slots = take(shared.get(), 5000);
	void *kept = shared_slots.back();
	fill(kept, 100, 3);
	shared_slots.pop_back();
	give(shared.get(), shared_slots);
	held = books.held_bytes();
	bytes = tn_shared_slab_trim(shared.get());
	EXPECT_GT(bytes, 0u);
	EXPECT_EQ(books.held_bytes(), held - bytes);
	EXPECT_EQ(tn_shared_slab_trim(shared.get()), 0u);
	EXPECT_TRUE(filled(kept, 100, 3));
}

TEST(conformance, B18_nobody_reads_what_was_forgotten) {
	arena_owner a = make_arena();
	slab_owner s = make_slab(100);
	shared_slab_owner shared = make_shared_slab(100);
	for (int round = 0; round < 5; round++) {
		char *p = static_cast<char *>(tn_arena_alloc(a.get(), 100, 16));
		char *q = static_cast<char *>(tn_slab_alloc(s.get()));
		char *o = static_cast<char *>(tn_shared_slab_alloc(shared.get()));
		EXPECT_TRUE(release_mode || std::memchr(o, 0x77, 100) == nullptr);
		std::memset(o, 0x77, 100);
		tn_shared_slab_free(shared.get(), o);
		EXPECT_TRUE(release_mode || std::memchr(p, 0x77, 100) == nullptr);
		EXPECT_TRUE(release_mode || std::memchr(q, 0x77, 100) == nullptr);
		std::memset(p, 0x77, 100);
		std::memset(q, 0x77, 100);
		tn_slab_free(s.get(), q);
		tn_arena_reset(a.get());
	}
}

TEST(conformance, B19_resize) {
	arena_owner a = make_arena();
	char *p = static_cast<char *>(tn_arena_alloc(a.get(), 100, 16));
	EXPECT_TRUE(tn_arena_resize(a.get(), p, 100, 200)) << "the last block, and there is room";
	tn_arena_alloc(a.get(), 1, 1);
	errno = 5;
	EXPECT_FALSE(tn_arena_resize(a.get(), p, 200, 400));
	EXPECT_EQ(errno, 5);
	EXPECT_TRUE(tn_arena_resize(a.get(), p, 200, 200));
	EXPECT_TRUE(tn_arena_resize(a.get(), p, 200, 50));
	EXPECT_TRUE(tn_arena_resize(a.get(), p, 50, 0));
}

TEST(conformance, B20_realloc) {
	arena_owner a = make_arena();
	char *p = static_cast<char *>(tn_arena_alloc(a.get(), 100, 16));
	fill(p, 100, 1);
	EXPECT_EQ(tn_arena_realloc(a.get(), p, 100, 150, 16), p);
	tn_arena_alloc(a.get(), 1, 1);
	char *q = static_cast<char *>(tn_arena_realloc(a.get(), p, 150, 500, 16));
	EXPECT_NE(q, p);
	EXPECT_TRUE(filled(q, 100, 1));
	EXPECT_EQ(tn_arena_realloc(a.get(), q, 500, 60, 16), q);
	EXPECT_TRUE(filled(q, 60, 1));
}

TEST(conformance, B21_old_places) {
	arena_owner a = make_arena();
	char *p = static_cast<char *>(tn_arena_alloc(a.get(), 100, 16));
	tn_arena_alloc(a.get(), 1, 1);
	EXPECT_NE(tn_arena_realloc(a.get(), p, 100, 1000, 16), nullptr);
	for (int i = 0; i < 100; i++) {
		char *q = static_cast<char *>(tn_arena_alloc(a.get(), 64, 16));
		EXPECT_TRUE(q + 64 <= p || p + 100 <= q);
	}
}

TEST(conformance, B22_marks) {
	arena_owner a = make_arena();
	char *p = static_cast<char *>(tn_arena_alloc(a.get(), 100, 16));
	fill(p, 100, 1);
	tn_checkpoint outer = tn_arena_mark(a.get());
	size_t live = stats_of(a.get()).live_bytes;
	char *q = static_cast<char *>(tn_arena_alloc(a.get(), 200000, 16));
	fill(q, 200000, 2);
	tn_checkpoint inner = tn_arena_mark(a.get());
	tn_arena_alloc(a.get(), 100000, 16);
	tn_arena_rewind(a.get(), inner);
	EXPECT_TRUE(filled(q, 200000, 2) && tn_arena_owns(a.get(), q));
	tn_arena_rewind(a.get(), outer);
	EXPECT_FALSE(tn_arena_owns(a.get(), q));
	EXPECT_TRUE(filled(p, 100, 1) && tn_arena_owns(a.get(), p));
	EXPECT_EQ(stats_of(a.get()).live_bytes, live);
}

TEST(conformance, B23_a_block_that_grew_after_the_mark) {
	arena_owner a = make_arena();
	char *p = static_cast<char *>(tn_arena_alloc(a.get(), 100, 16));
	fill(p, 100, 1);
	tn_checkpoint mark = tn_arena_mark(a.get());
	ASSERT_TRUE(tn_arena_resize(a.get(), p, 100, 1000));
	tn_arena_rewind(a.get(), mark);
	char *q = static_cast<char *>(tn_arena_alloc(a.get(), 1000, 16));
	fill(q, 1000, 2);
	EXPECT_TRUE(filled(p, 100, 1));
	EXPECT_TRUE(tn_arena_verify(a.get()));
}

TEST(conformance, B24_large_blocks_go_back) {
	ledger books;
	placed_arena a(arena_from(books));
	tn_arena_alloc(a.get(), 16, 16);
	size_t held = books.held_bytes();
	tn_checkpoint mark = tn_arena_mark(a.get());
	tn_arena_alloc(a.get(), 10 * mib, 16);
	tn_arena_alloc(a.get(), 16, 16);
	EXPECT_GT(books.held_bytes(), 10 * mib);
	tn_arena_rewind(a.get(), mark);
	EXPECT_EQ(books.held_bytes(), held);
	tn_arena_alloc(a.get(), 10 * mib, 16);
	tn_arena_reset(a.get());
	EXPECT_LE(books.held_bytes(), held);
}

TEST(conformance, B25_fixed) {
	ledger books;
	alignas(16) char buffer[1000];
	tn_arena_options options = arena_from(books);
	options.fixed = true;
	placed_arena chunk(options);
	options.buffer = buffer;
	options.buffer_bytes = sizeof buffer;
	placed_arena buffered(options);
	while (char *p = static_cast<char *>(tn_arena_alloc(buffered.get(), 16, 16)))
		EXPECT_TRUE(p >= buffer && p + 16 <= buffer + sizeof buffer);
	EXPECT_EQ(books.calls(), 0u);
	while (tn_arena_alloc(chunk.get(), 100, 16) != nullptr)
		continue;
	EXPECT_REFUSED(tn_arena_alloc(chunk.get(), mib, 16), ENOMEM);
	EXPECT_EQ(books.calls(), 1u);
}

TEST(conformance, B26_copy_and_printf) {
	arena_owner a = make_arena();
	EXPECT_EQ(std::memcmp(tn_arena_copy(a.get(), "tenure", 6), "tenure", 6), 0);
	for (int width = 0; width < 500; width++) {
		char *text = tn_arena_printf(a.get(), "%*d", width + 1, 7);
		char *next = static_cast<char *>(tn_arena_alloc(a.get(), 1, 1));
		*next = 'x';
		EXPECT_EQ(std::strlen(text), static_cast<size_t>(width) + 1);
	}
}

TEST(conformance, B27_slot_size) {
	for (size_t align : {1u, 8u, 16u, 64u})
		for (size_t size = 1; size < 100; size++)
			EXPECT_EQ(tn_slab_slot_size(make_slab(size, align).get()), round_up(size, align));
	for (size_t align : {1u, 8u, 16u, 64u})
		for (size_t size = 1; size < 100; size += 7)
			EXPECT_EQ(
				tn_shared_slab_slot_size(make_shared_slab(size, align).get()), round_up(size, align));
}

TEST(conformance, B28_last_in_first_out) {
	slab_owner s = make_slab(100);
	std::vector<void *> slots = take(s.get(), 1000);
	for (void *p : slots)
		tn_slab_free(s.get(), p);
	for (size_t i = slots.size(); i-- > 0;)
		EXPECT_EQ(tn_slab_alloc(s.get()) == slots[i], !debug_mode);
	shared_slab_owner shared = make_shared_slab(100);
	slots = take(shared.get(), 1000);
	give(shared.get(), slots);
	for (size_t i = slots.size(); i-- > 0;)
		EXPECT_EQ(tn_shared_slab_alloc(shared.get()) == slots[i], !debug_mode);
}

TEST(conformance, B28_older_ones_that_were_freed_in_disorder) {
	if (debug_mode)
		GTEST_SKIP() << "debug does not reuse while the quarantine lasts";
	const size_t count = 20000, magazine = 511;
	slab_owner s = make_slab(32);
	std::vector<void *> slots = take(s.get(), count), again;
	std::shuffle(slots.begin(), slots.end(), std::mt19937(1));
	for (void *p : slots)
		tn_slab_free(s.get(), p);
	for (size_t i = 0; i < count; i++)
		again.push_back(tn_slab_alloc(s.get()));
	size_t last_in_first_out = 0;
	while (
		last_in_first_out < count && again[last_in_first_out] == slots[count - 1 - last_in_first_out])
		last_in_first_out++;
	EXPECT_GE(last_in_first_out, magazine);
	EXPECT_LE(last_in_first_out, 2 * magazine);
	/* Slots come chunk after chunk, in ascending order within each. */
	size_t descents = 0;
	for (size_t i = 2 * magazine + 1; i < count; i++)
		if (uintptr_t(again[i]) < uintptr_t(again[i - 1])) {
			descents++;
			EXPECT_NE(uintptr_t(again[i]) / 65536, uintptr_t(again[i - 1]) / 65536);
		}
	EXPECT_LE(descents, count * 40 / 65536 + 1);
	std::sort(slots.begin(), slots.end());
	std::sort(again.begin(), again.end());
	EXPECT_EQ(again, slots) << "each once";
	EXPECT_TRUE(tn_slab_verify(s.get()));
}

TEST(conformance, B29_batches) {
	ledger books;
	tn_slab_options options = slab_from(books);
	options.limit_bytes = 200 * kib;
	slab_owner s = make_slab(100, 0, options);
	std::vector<void *> slots(10000);
	EXPECT_REFUSED(tn_slab_alloc_batch(s.get(), slots.data(), slots.size()), ENOMEM);
	EXPECT_EQ(tn_slab_in_use(s.get()), 0u);
	EXPECT_TRUE(tn_slab_alloc_batch(s.get(), slots.data(), 20));
	EXPECT_EQ(tn_slab_in_use(s.get()), 20u);
	EXPECT_TRUE(tn_slab_alloc_batch(s.get(), slots.data(), 0));
	tn_shared_slab_options shared_options = with_source(books);
	shared_options.limit_bytes = 200 * kib;
	shared_slab_owner shared = make_shared_slab(100, 0, shared_options);
	EXPECT_REFUSED(tn_shared_slab_alloc_batch(shared.get(), slots.data(), slots.size()), ENOMEM);
	EXPECT_REFUSED(tn_shared_slab_alloc_batch(shared.get(), slots.data(), 1900), ENOMEM);
	EXPECT_EQ(tn_shared_slab_in_use(shared.get()), 0u);
	EXPECT_TRUE(tn_shared_slab_alloc_batch(shared.get(), slots.data(), 20));
	EXPECT_EQ(tn_shared_slab_in_use(shared.get()), 20u);
}

struct counts {
	std::set<void *> built;
	bool wrong = false;
};

bool build(void *p, void *ctx) {
	counts *c = static_cast<counts *>(ctx);
	c->wrong = c->wrong || !c->built.insert(p).second;
	std::memset(p, 0x42, 100);
	return true;
}

void take_apart(void *p, void *ctx) {
	counts *c = static_cast<counts *>(ctx);
	c->wrong = c->wrong || c->built.erase(p) != 1 || !all_bytes(p, 100, 0x42);
}

TEST(conformance, B30_built_slots) {
	counts c;
	tn_slab_options options = {};
	options.init = build;
	options.fini = take_apart;
	options.ctx = &c;
	slab_owner s = make_slab(100, 0, options);
	for (int round = 0; round < 10; round++) {
		std::vector<void *> slots = take(s.get(), 300);
		for (void *p : slots)
			EXPECT_TRUE(all_bytes(p, 100, 0x42));
		tn_slab_free_batch(s.get(), slots.data(), slots.size());
	}
	tn_slab_reset(s.get());
	EXPECT_TRUE(c.built.empty());
	take(s.get(), 300);
	EXPECT_GE(c.built.size(), 300u);
	s.reset();
	EXPECT_TRUE(c.built.empty());
	tn_shared_slab_options shared_options = {};
	shared_options.init = build;
	shared_options.fini = take_apart;
	shared_options.ctx = &c;
	shared_slab_owner shared = make_shared_slab(100, 0, shared_options);
	for (int round = 0; round < 10; round++) {
		std::vector<void *> slots = take(shared.get(), 300);
		for (void *p : slots)
			EXPECT_TRUE(all_bytes(p, 100, 0x42));
		give(shared.get(), slots);
	}
	tn_shared_slab_trim(shared.get());
	EXPECT_TRUE(c.built.empty());
	take(shared.get(), 300);
	shared.reset();
	EXPECT_TRUE(c.built.empty());
	EXPECT_FALSE(c.wrong);
}

void note(void *p, void *ctx) {
	EXPECT_TRUE(static_cast<std::set<void *> *>(ctx)->insert(p).second);
}

TEST(conformance, B31_each) {
	slab_owner s = make_slab(100);
	std::vector<void *> slots = take(s.get(), 1000);
	tn_slab_free_batch(s.get(), slots.data(), 500);
	std::set<void *> seen;
	tn_slab_each(s.get(), note, &seen);
	EXPECT_EQ(seen, std::set<void *>(slots.begin() + 500, slots.end()));
	shared_slab_owner shared = make_shared_slab(100);
	slots = take(shared.get(), 1000);
	tn_shared_slab_free_batch(shared.get(), slots.data(), 500);
	seen.clear();
	tn_shared_slab_each(shared.get(), note, &seen);
	EXPECT_EQ(seen, std::set<void *>(slots.begin() + 500, slots.end()));
}

TEST(conformance, B32_writing_to_free_slots) {
	slab_owner s = make_slab(100);
	std::vector<void *> slots = take(s.get(), 1000);
	tn_slab_free_batch(s.get(), slots.data(), slots.size());
	/* Debug makes them inaccessible; its own tests check that. */
	for (void *p : slots)
		if (!debug_mode)
			std::memset(p, 0xff, 100);
	EXPECT_TRUE(tn_slab_verify(s.get()));
	for (void *p : take(s.get(), 1000))
		EXPECT_TRUE(tn_slab_owns(s.get(), p));
	shared_slab_owner shared = make_shared_slab(100);
	slots = take(shared.get(), 1000);
	give(shared.get(), slots);
	tn_shared_slab_flush(shared.get());
	for (void *p : slots)
		if (!debug_mode)
			std::memset(p, 0xff, 100);
	EXPECT_TRUE(tn_shared_slab_verify(shared.get()));
	for (void *p : take(shared.get(), 1000))
		EXPECT_TRUE(tn_shared_slab_owns(shared.get(), p));
}

TEST(conformance, B33_owns) {
	arena_owner a = make_arena(), b = make_arena();
	slab_owner s = make_slab(100), t = make_slab(100);
	char *p = static_cast<char *>(tn_arena_alloc(a.get(), 100, 16));
	char *q = static_cast<char *>(tn_slab_alloc(s.get()));
	tn_arena_alloc(b.get(), 100, 16);
	tn_slab_alloc(t.get());
	for (int i = 0; i < 100; i++)
		EXPECT_TRUE(tn_arena_owns(a.get(), p + i) && tn_slab_owns(s.get(), q + i));
	EXPECT_FALSE(tn_arena_owns(b.get(), p) || tn_slab_owns(t.get(), q));
	EXPECT_FALSE(tn_arena_owns(a.get(), nullptr) || tn_slab_owns(s.get(), nullptr));
	EXPECT_FALSE(tn_arena_owns(a.get(), &p) || tn_slab_owns(s.get(), &q));
	shared_slab_owner shared = make_shared_slab(100);
	char *o = static_cast<char *>(tn_shared_slab_alloc(shared.get()));
	for (int i = 0; i < 100; i++)
		EXPECT_TRUE(tn_shared_slab_owns(shared.get(), o + i));
	EXPECT_FALSE(tn_shared_slab_owns(shared.get(), q) || tn_slab_owns(s.get(), o));
	EXPECT_FALSE(tn_shared_slab_owns(shared.get(), nullptr) || tn_shared_slab_owns(shared.get(), &o));
}

TEST(conformance, B34_figures) {
	ledger books;
	placed_arena a(arena_from(books));
	slab_owner s = make_slab(100, 0, slab_from(books));
	size_t slab_own = books.held_bytes();
	EXPECT_EQ(stats_of(s.get()).committed_bytes, slab_own);
	take(s.get(), 777);
	EXPECT_EQ(tn_slab_in_use(s.get()), 777u);
	EXPECT_EQ(stats_of(s.get()).live_count, 777u);
	EXPECT_EQ(stats_of(s.get()).committed_bytes, books.held_bytes());
	size_t slab_bytes = books.held_bytes();
	tn_arena_alloc(a.get(), 200000, 16);
	EXPECT_EQ(stats_of(a.get()).committed_bytes, books.held_bytes() - slab_bytes);
	EXPECT_GE(stats_of(a.get()).live_bytes, 200000u);
	size_t before = books.held_bytes();
	shared_slab_owner shared = make_shared_slab(100, 0, with_source(books));
	EXPECT_EQ(stats_of(shared.get()).committed_bytes, books.held_bytes() - before);
	take(shared.get(), 777);
	EXPECT_EQ(tn_shared_slab_in_use(shared.get()), 777u);
	EXPECT_EQ(stats_of(shared.get()).live_count, 777u);
	EXPECT_EQ(stats_of(shared.get()).committed_bytes, books.held_bytes() - before);
}

TEST(conformance, B35_names) {
	tn_arena_options arena_options = {};
	tn_slab_options slab_options = {};
	std::string name(50, 'n');
	arena_options.name = slab_options.name = name.c_str();
	arena_owner a = make_arena(arena_options);
	slab_owner s = make_slab(16, 0, slab_options);
	tn_shared_slab_options shared_options = {};
	tn_pool_options pool_options = {};
	shared_options.name = pool_options.name = name.c_str();
	shared_slab_owner shared = make_shared_slab(16, 0, shared_options);
	pool_owner p = make_pool(16, 0, pool_options);
	name.assign(50, 'm');
	EXPECT_EQ(stats_of(shared.get()).name, std::string(31, 'n'));
	EXPECT_EQ(stats_of(p.get()).name, std::string(31, 'n'));
	EXPECT_EQ(stats_of(a.get()).name, std::string(31, 'n'));
	EXPECT_EQ(stats_of(s.get()).name, std::string(31, 'n'));
}

TEST(conformance, B36_verify) {
	ledger books;
	placed_arena a(arena_from(books));
	slab_owner s = make_slab(100, 0, slab_from(books));
	shared_slab_owner shared = make_shared_slab(100, 0, with_source(books));
	for (size_t i = 0; i < 100; i++) {
		books.fail(1 + i % 5, i % 3);
		for (size_t k = 0; k < i; k++)
			tn_shared_slab_alloc(shared.get());
		EXPECT_TRUE(tn_shared_slab_verify(shared.get()));
		tn_arena_alloc(a.get(), i * 1000, 16);
		tn_slab_alloc(s.get());
		if (i % 30 == 29)
			tn_arena_reset(a.get());
		EXPECT_TRUE(tn_arena_verify(a.get()) && tn_slab_verify(s.get()));
	}
}

std::set<int> rules_of_the_document() {
	std::set<int> rules;
	std::ifstream file(TENURE_RULES);
	for (std::string line; std::getline(file, line);) {
		int rule = 0, head = 0;
		if (std::sscanf(line.c_str(), "- **B%d** %n", &rule, &head) == 1 && head > 0) {
			EXPECT_TRUE(rules.insert(rule).second) << "a number is used twice: " << line;
		}
	}
	return rules;
}

std::set<int> rules_of_the_tests() {
	std::set<int> rules;
	const ::testing::TestSuite *suite = ::testing::UnitTest::GetInstance()->current_test_suite();
	for (int i = 0; i < suite->total_test_count(); i++) {
		int rule = 0;
		if (std::sscanf(suite->GetTestInfo(i)->name(), "B%d_", &rule) == 1)
			rules.insert(rule);
	}
	return rules;
}

TEST(conformance, every_rule_is_cited_and_every_citation_is_a_rule) {
	std::set<int> document = rules_of_the_document();
	EXPECT_GE(document.size(), 30u);
	EXPECT_EQ(document, rules_of_the_tests());
}

} /* namespace */
} /* namespace conformance */
