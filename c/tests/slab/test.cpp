/* slab.h, contract by contract. */
#include "allocators.h"
#include "ledger.h"
#include "mapped_source.h"
#include "process.h"
#include "program.h"

#include <algorithm>
#include <map>
#include <set>

namespace {

constexpr size_t default_chunk = 64 * kib;

tn_slab_options with_source(const ledger &books) {
	tn_slab_options options = {};
	options.source = books.source();
	return options;
}

std::vector<void *> take(tn_slab *s, size_t count) {
	std::vector<void *> slots;
	for (size_t i = 0; i < count; i++) {
		slots.push_back(tn_slab_alloc(s));
		EXPECT_NE(slots.back(), nullptr);
	}
	return slots;
}

void give(tn_slab *s, const std::vector<void *> &slots) {
	for (void *slot : slots)
		tn_slab_free(s, slot);
}

/* All that the slab has. */
std::vector<void *> exhaust(tn_slab *s) {
	std::vector<void *> slots;
	while (void *p = tn_slab_alloc(s))
		slots.push_back(p);
	return slots;
}

bool disjoint(std::vector<void *> slots, size_t size) {
	std::sort(slots.begin(), slots.end());
	for (size_t i = 1; i < slots.size(); i++)
		if (address(slots[i]) - address(slots[i - 1]) < size)
			return false;
	return true;
}

/* ---- creation ---- */

TEST(slab, starts_empty) {
	slab_owner s = make_slab(24);
	ASSERT_NE(s, nullptr);
	tn_stats stats = stats_of(s.get());
	EXPECT_STREQ(stats.name, "slab");
	EXPECT_EQ(stats.live_bytes, 0u);
	EXPECT_EQ(stats.live_count, 0u);
	EXPECT_EQ(stats.chunk_count, 0u);
	EXPECT_EQ(stats.partial_count, 0u);
	EXPECT_EQ(stats.resets, 0u);
	EXPECT_EQ(tn_slab_in_use(s.get()), 0u);
	EXPECT_EQ(tn_slab_trim(s.get()), 0u);
	EXPECT_TRUE(tn_slab_verify(s.get()));
	tn_slab_reset(s.get());
	EXPECT_TRUE(tn_slab_verify(s.get()));
}

TEST(slab, null_is_a_no_op) {
	tn_slab_destroy(nullptr);
	slab_owner s = make_slab(16);
	tn_slab_free(s.get(), nullptr);
	void *nothing[3] = {nullptr, nullptr, nullptr};
	tn_slab_free_batch(s.get(), nothing, 3);
	EXPECT_EQ(tn_slab_in_use(s.get()), 0u);
	EXPECT_TRUE(tn_slab_verify(s.get()));
}

TEST(slab, name_is_copied_and_cut_at_31_bytes) {
	char name[] = "0123456789012345678901234567890123456789";
	tn_slab_options options = {};
	options.name = name;
	slab_owner s = make_slab(16, 0, options);
	std::memset(name, 'x', sizeof(name) - 1);
	EXPECT_STREQ(stats_of(s.get()).name, "0123456789012345678901234567890");
}

TEST(slab, slot_size_is_rounded_to_align) {
	for (size_t align : {0u, 1u, 2u, 4u, 8u, 16u, 32u, 64u, 4096u})
		for (size_t size = 1; size < 200; size += 3) {
			slab_owner s = make_slab(size, align);
			ASSERT_NE(s, nullptr) << size << " at " << align;
			ASSERT_EQ(tn_slab_slot_size(s.get()), round_up(size, align == 0 ? 16 : align));
		}
}

TEST(slab, bad_sizes_and_alignments_are_refused) {
	EXPECT_REFUSED(make_slab(0), EINVAL);
	for (size_t align : {size_t{3}, size_t{24}, size_t{48}, TN_ALIGN_MAX * 2, TN_ALIGN_MAX + 1,
			 SIZE_MAX, SIZE_MAX / 2 + 1})
		EXPECT_REFUSED(make_slab(16, align), EINVAL);
	for (size_t back = 0; back < 200; back++) {
		EXPECT_REFUSED(make_slab(SIZE_MAX - back), EINVAL);
		EXPECT_REFUSED(make_slab(SIZE_MAX / 2 - back), EINVAL);
		EXPECT_REFUSED(make_slab(SIZE_MAX / 2 + back, 4096), EINVAL);
	}
}

TEST(slab, half_a_source_is_refused) {
	ledger books;
	tn_source half = *books.source();
	half.release = nullptr;
	tn_slab_options options = {};
	options.source = &half;
	EXPECT_REFUSED(make_slab(16, 0, options), EINVAL);
	half = *books.source();
	half.acquire = nullptr;
	EXPECT_REFUSED(make_slab(16, 0, options), EINVAL);
}

TEST(slab, absurd_chunk_bytes_are_refused) {
	ledger books;
	tn_slab_options options = with_source(books);
	for (size_t size : {SIZE_MAX - 1, SIZE_MAX / 2 + 2, SIZE_MAX - 4096}) {
		options.chunk_bytes = size;
		EXPECT_REFUSED(make_slab(16, 0, options), EINVAL);
	}
	EXPECT_EQ(books.held_count(), 0u);
}

TEST(slab, chunks_are_powers_of_two_that_hold_a_slot) {
	struct row {
		size_t size, chunk_bytes;
	};
	for (row r :
		{row{16, 0}, {16, 1}, {16, 5000}, {16, 70 * kib}, {40 * kib, 0}, {64 * kib, 0}, {mib + 1, 0}}) {
		ledger books;
		tn_slab_options options = with_source(books);
		options.chunk_bytes = r.chunk_bytes;
		slab_owner s = make_slab(r.size, 0, options);
		ASSERT_NE(s, nullptr) << r.size << " in " << r.chunk_bytes;
		size_t own = books.calls();
		void *p = tn_slab_alloc(s.get());
		ASSERT_NE(p, nullptr);
		fill(p, r.size, 1);
		ASSERT_EQ(books.calls(), own + 1);
		size_t chunk = books.sizes().back();
		EXPECT_EQ(chunk & (chunk - 1), 0u);
		EXPECT_GE(chunk, std::max(r.size, r.chunk_bytes));
		if (r.size <= 16) {
			size_t wanted = r.chunk_bytes == 0 ? default_chunk : r.chunk_bytes;
			EXPECT_TRUE(chunk < 2 * wanted || chunk == page) << chunk;
		}
	}
}

TEST(slab, slots_are_aligned_disjoint_and_whole) {
	for (size_t align : {size_t{1}, size_t{8}, size_t{16}, size_t{64}, size_t{4096}, 64 * kib})
		for (size_t size : {1u, 7u, 8u, 9u, 16u, 24u, 33u, 100u, 500u, 4096u, 5000u, 70000u}) {
			slab_owner s = make_slab(size, align);
			ASSERT_NE(s, nullptr) << size << " at " << align;
			std::vector<void *> slots = take(s.get(), 100);
			ASSERT_TRUE(disjoint(slots, tn_slab_slot_size(s.get()))) << size << " at " << align;
			for (size_t i = 0; i < slots.size(); i++) {
				ASSERT_TRUE(aligned_to(slots[i], align)) << size << " at " << align;
				fill(slots[i], size, i);
			}
			for (size_t i = 0; i < slots.size(); i++)
				ASSERT_TRUE(filled(slots[i], size, i)) << size << " at " << align;
			ASSERT_TRUE(tn_slab_verify(s.get()));
		}
}

TEST(slab, the_largest_alignment) {
	slab_owner s = make_slab(10, TN_ALIGN_MAX);
	ASSERT_NE(s, nullptr);
	for (void *p : take(s.get(), 5))
		EXPECT_TRUE(aligned_to(p, TN_ALIGN_MAX));
	EXPECT_EQ(tn_slab_slot_size(s.get()), TN_ALIGN_MAX);
}

/* ---- order ---- */

TEST(slab, last_in_first_out) {
	for (size_t count : {1u, 2u, 15u, 16u, 17u, 127u, 128u, 129u, 511u}) {
		slab_owner s = make_slab(32);
		std::vector<void *> slots = take(s.get(), count);
		dice d(count);
		for (size_t i = count; i > 1; i--)
			std::swap(slots[i - 1], slots[d.below(i)]);
		give(s.get(), slots);
		size_t wrong = 0;
		for (size_t i = count; i-- > 0;)
			wrong += tn_slab_alloc(s.get()) != slots[i];
		if (debug_mode) {
			EXPECT_EQ(wrong, count) << "debug does not reuse while the quarantine lasts";
		} else {
			EXPECT_EQ(wrong, 0u) << count;
		}
	}
}

TEST(slab, a_batch_is_freed_in_order) {
	slab_owner s = make_slab(32);
	std::vector<void *> slots = take(s.get(), 1000);
	tn_slab_free_batch(s.get(), slots.data(), slots.size());
	EXPECT_EQ(tn_slab_in_use(s.get()), 0u);
	if (debug_mode) {
		EXPECT_NE(tn_slab_alloc(s.get()), slots.back());
	} else {
		EXPECT_EQ(tn_slab_alloc(s.get()), slots.back());
	}
}

TEST(slab, fresh_slots_lie_in_order) {
	slab_owner s = make_slab(64);
	std::vector<void *> slots = take(s.get(), 200);
	size_t ascending = 0;
	for (size_t i = 1; i < slots.size(); i++)
		ascending += slots[i] > slots[i - 1];
	EXPECT_GT(ascending, 150u);
}

/* ---- batches ---- */

TEST(slab, batches_of_every_size) {
	slab_owner s = make_slab(24, 8);
	std::vector<void *> slots(600);
	for (size_t count = 0; count <= 600; count++) {
		std::fill(slots.begin(), slots.end(), nullptr);
		ASSERT_TRUE(tn_slab_alloc_batch(s.get(), slots.data(), count));
		ASSERT_EQ(tn_slab_in_use(s.get()), count);
		std::set<void *> unique(slots.begin(), slots.begin() + static_cast<std::ptrdiff_t>(count));
		ASSERT_EQ(unique.size(), count);
		ASSERT_EQ(unique.count(nullptr), 0u);
		for (size_t i = 0; i < count; i++)
			fill(slots[i], 24, i);
		for (size_t i = 0; i < count; i++)
			ASSERT_TRUE(filled(slots[i], 24, i));
		tn_slab_free_batch(s.get(), slots.data(), count);
		ASSERT_EQ(tn_slab_in_use(s.get()), 0u);
		if (count % 50 == 0) {
			ASSERT_TRUE(tn_slab_verify(s.get()));
		}
	}
}

TEST(slab, batch_is_all_or_nothing) {
	ledger books;
	tn_slab_options options = with_source(books);
	options.limit_bytes = 3 * default_chunk;
	slab_owner s = make_slab(100, 0, options);
	size_t capacity = exhaust(s.get()).size();
	tn_slab_reset(s.get());
	ASSERT_GT(capacity, 2u);
	std::vector<void *> slots(capacity + 500);
	for (size_t live : {size_t{0}, size_t{1}, capacity / 2, capacity - 1, capacity}) {
		std::vector<void *> held = take(s.get(), live);
		for (size_t count = capacity - live + 1; count < capacity - live + 400; count += 57) {
			errno = 0;
			ASSERT_FALSE(tn_slab_alloc_batch(s.get(), slots.data(), count));
			ASSERT_EQ(errno, ENOMEM);
			ASSERT_EQ(tn_slab_in_use(s.get()), live);
			ASSERT_TRUE(tn_slab_verify(s.get()));
		}
		ASSERT_TRUE(tn_slab_alloc_batch(s.get(), slots.data(), capacity - live)) << "nothing was lost";
		ASSERT_EQ(tn_slab_in_use(s.get()), capacity);
		ASSERT_TRUE(disjoint(slots, 0));
		tn_slab_reset(s.get());
	}
}

TEST(slab, absurd_batches_are_refused) {
	tn_slab_options options = {};
	options.limit_bytes = mib;
	slab_owner s = make_slab(100, 0, options);
	void *one = tn_slab_alloc(s.get());
	void *slots[1] = {nullptr};
	for (size_t count : {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / 8 + 1, SIZE_MAX / 112 + 1}) {
		EXPECT_REFUSED(tn_slab_alloc_batch(s.get(), slots, count), ENOMEM);
		EXPECT_EQ(tn_slab_in_use(s.get()), 1u);
	}
	tn_slab_free(s.get(), one);
	EXPECT_TRUE(tn_slab_verify(s.get()));
}

TEST(slab, free_batch_skips_null) {
	slab_owner s = make_slab(40);
	std::vector<void *> slots = take(s.get(), 300);
	for (size_t i = 0; i < slots.size(); i += 3) {
		tn_slab_free(s.get(), slots[i]);
		slots[i] = nullptr;
	}
	tn_slab_free_batch(s.get(), slots.data(), slots.size());
	EXPECT_EQ(tn_slab_in_use(s.get()), 0u);
	EXPECT_TRUE(tn_slab_verify(s.get()));
}

/* ---- what is touched ---- */

TEST(slab, one_object_does_not_touch_the_whole_chunk) {
	mapped_source source;
	tn_slab_options options = {};
	options.source = &source.source;
	options.chunk_bytes = 4 * mib;
	slab_owner s = make_slab(64, 0, options);
	void *p = tn_slab_alloc(s.get());
	ASSERT_NE(p, nullptr);
	std::memset(p, 1, 64);
	size_t touched = source.resident_pages();
	/* Debug fills the fences of a chunk at once. */
	if (debug_mode) {
		EXPECT_GT(touched, 0u);
	} else {
		EXPECT_LE(touched, 160u) << "of 1024: the magazines' links, the first slots, the head";
	}
	EXPECT_GE(stats_of(s.get()).committed_bytes, 4 * mib);
}

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

TEST(slab, contents_after_free) {
	slab_owner s = make_slab(256);
	std::vector<void *> slots = take(s.get(), 500);
	for (void *p : slots)
		std::memset(p, 0x77, 256);
	give(s.get(), slots);
	size_t stale = 0;
	for (void *p : take(s.get(), 500))
		stale += std::memchr(p, 0x77, 256) != nullptr;
	if (release_mode) {
		EXPECT_EQ(stale, 500u) << "as they were";
	} else {
		EXPECT_EQ(stale, 0u) << "wiped, or not reused yet";
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

TEST(slab, what_is_written_to_free_slots_misleads_nobody) {
	if (debug_mode)
		GTEST_SKIP() << "free slots are inaccessible there";
	slab_owner s = make_slab(48);
	std::vector<void *> slots = take(s.get(), 5000);
	std::set<void *> mine(slots.begin(), slots.end());
	give(s.get(), slots);
	for (void *p : slots)
		std::memset(p, 0xff, tn_slab_slot_size(s.get()));
	EXPECT_TRUE(tn_slab_verify(s.get()));
	for (void *p : take(s.get(), 5000))
		EXPECT_EQ(mine.erase(p), 1u);
}

/* ---- reset, trim and retention ---- */

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

TEST(slab, trim_keeps_chunks_with_a_live_slot) {
	ledger books;
	slab_owner s = make_slab(100, 0, with_source(books));
	size_t own = books.held_count();
	std::vector<void *> slots = take(s.get(), 20000);
	std::map<uintptr_t, void *> keep;
	for (void *p : slots)
		keep[address(p) / (4 * default_chunk)] = p;
	for (void *p : slots)
		if (keep[address(p) / (4 * default_chunk)] != p)
			tn_slab_free(s.get(), p);
	for (auto &k : keep)
		fill(k.second, 100, k.first);
	std::set<uintptr_t> chunks;
	for (auto &k : keep)
		chunks.insert(address(k.second) / default_chunk);
	EXPECT_GT(tn_slab_trim(s.get()), 0u);
	EXPECT_EQ(books.held_count(), own + chunks.size());
	EXPECT_EQ(tn_slab_in_use(s.get()), keep.size());
	EXPECT_EQ(stats_of(s.get()).partial_count, chunks.size());
	for (auto &k : keep)
		EXPECT_TRUE(filled(k.second, 100, k.first));
	EXPECT_TRUE(tn_slab_verify(s.get()));
	std::vector<void *> more = take(s.get(), 20000);
	for (auto &k : keep)
		more.push_back(k.second);
	EXPECT_TRUE(disjoint(more, 112));
}

TEST(slab, trimmed_memory_really_goes) {
	slab_owner s = make_slab(1000);
	tn_trim_all();
	size_t before = resident_bytes();
	std::vector<void *> slots = take(s.get(), 60000);
	for (void *p : slots)
		std::memset(p, 1, 1000);
	if (!sanitized) {
		EXPECT_GT(resident_bytes(), before + 50 * mib);
	}
	give(s.get(), slots);
	EXPECT_GE(tn_slab_trim(s.get()), 55 * mib);
	tn_trim_all();
	expect_resident_below(before + 12 * mib);
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

/* ---- built slots ---- */

struct builder {
	static bool build(void *slot, void *ctx) {
		builder *b = static_cast<builder *>(ctx);
		if (++b->calls >= b->fail_from && b->calls - b->fail_from < b->fail_count)
			return false;
		EXPECT_TRUE(b->built.insert(slot).second) << "built twice";
		std::memset(slot, 0x42, 64);
		b->inits++;
		return true;
	}
	static void take_apart(void *slot, void *ctx) {
		builder *b = static_cast<builder *>(ctx);
		EXPECT_EQ(b->built.erase(slot), 1u) << "taken apart, but not built";
		EXPECT_EQ(*static_cast<unsigned char *>(slot), 0x42) << "built state lost";
		b->finis++;
	}
	tn_slab_options options() {
		tn_slab_options o = {};
		o.init = build;
		o.fini = take_apart;
		o.ctx = this;
		return o;
	}
	std::set<void *> built;
	size_t calls = 0, inits = 0, finis = 0;
	size_t fail_from = SIZE_MAX, fail_count = 0;
};

TEST(slab, slots_are_built_once_and_keep_their_state) {
	builder b;
	{
		slab_owner s = make_slab(64, 0, b.options());
		EXPECT_EQ(b.inits, 0u);
		std::vector<void *> slots = take(s.get(), 1000);
		EXPECT_GE(b.inits, 1000u);
		size_t built = b.inits;
		for (void *p : slots) {
			EXPECT_TRUE(all_bytes(p, 64, 0x42));
			static_cast<char *>(p)[1] = 0x55;
		}
		for (int round = 0; round < 10; round++) {
			give(s.get(), slots);
			slots = take(s.get(), 1000);
		}
		/* Debug builds others while the freed ones are in quarantine. */
		if (!debug_mode) {
			EXPECT_EQ(b.inits, built);
			for (void *p : slots)
				EXPECT_EQ(static_cast<char *>(p)[1], 0x55) << "what the user left in it survives";
		}
		EXPECT_TRUE(debug_mode || b.finis == 0);
		EXPECT_TRUE(tn_slab_verify(s.get()));
	}
	EXPECT_EQ(b.finis, b.inits);
	EXPECT_TRUE(b.built.empty());
}

TEST(slab, building_is_lazy) {
	builder b;
	slab_owner s = make_slab(64, 0, b.options());
	tn_slab_free(s.get(), tn_slab_alloc(s.get()));
	EXPECT_GE(b.inits, 1u);
	EXPECT_LE(b.inits, 64u);
}

TEST(slab, reset_takes_every_built_slot_apart) {
	builder b;
	slab_owner s = make_slab(64, 0, b.options());
	for (int round = 0; round < 4; round++) {
		std::vector<void *> slots = take(s.get(), 3000);
		give(s.get(), std::vector<void *>(slots.begin(), slots.begin() + 1700));
		tn_slab_reset(s.get());
		EXPECT_TRUE(b.built.empty());
		EXPECT_EQ(b.finis, b.inits);
		EXPECT_TRUE(tn_slab_verify(s.get()));
	}
}

TEST(slab, trim_takes_apart_what_goes_back) {
	builder b;
	slab_owner s = make_slab(64, 0, b.options());
	std::vector<void *> slots = take(s.get(), 3000);
	void *kept = slots.back();
	slots.pop_back();
	give(s.get(), slots);
	EXPECT_GT(tn_slab_trim(s.get()), 0u);
	EXPECT_EQ(b.built.size(), b.inits - b.finis);
	EXPECT_EQ(b.built.count(kept), 1u);
	EXPECT_LE(b.built.size(), 1100u) << "one chunk of slots";
	take(s.get(), 3000);
	EXPECT_TRUE(tn_slab_verify(s.get()));
}

TEST(slab, a_failing_init_loses_nothing) {
	for (size_t n = 1; n <= 150; n++) {
		builder b;
		ledger books;
		tn_slab_options options = b.options();
		options.source = books.source();
		options.limit_bytes = 3 * page;
		options.chunk_bytes = page;
		b.fail_from = n;
		b.fail_count = 1 + n % 3;
		slab_owner s = make_slab(64, 0, options);
		std::vector<void *> slots;
		size_t refused = 0;
		for (errno = 0;; errno = 0) {
			size_t calls = b.calls;
			if (void *p = tn_slab_alloc(s.get())) {
				slots.push_back(p);
				continue;
			}
			ASSERT_EQ(errno, ENOMEM);
			ASSERT_TRUE(tn_slab_verify(s.get()));
			ASSERT_EQ(tn_slab_in_use(s.get()), slots.size());
			if (calls == b.calls)
				break;
			refused++;
		}
		static size_t capacity = slots.size();
		ASSERT_LE(refused, b.fail_count);
		ASSERT_EQ(slots.size(), capacity) << "init failed at " << n;
		ASSERT_EQ(refused, n <= capacity ? b.fail_count : 0) << n;
		ASSERT_TRUE(disjoint(slots, 64));
		for (void *p : slots)
			ASSERT_EQ(b.built.count(p), 1u);
	}
}

TEST(slab, a_failing_init_leaves_a_batch_undone) {
	builder b;
	slab_owner s = make_slab(64, 0, b.options());
	std::vector<void *> slots(300);
	b.fail_from = 150;
	b.fail_count = 1;
	EXPECT_REFUSED(tn_slab_alloc_batch(s.get(), slots.data(), slots.size()), ENOMEM);
	EXPECT_EQ(tn_slab_in_use(s.get()), 0u);
	EXPECT_TRUE(tn_slab_verify(s.get()));
	EXPECT_EQ(b.built.size(), b.inits - b.finis);
	ASSERT_TRUE(tn_slab_alloc_batch(s.get(), slots.data(), slots.size()));
	for (void *p : slots)
		EXPECT_EQ(b.built.count(p), 1u);
}

/* ---- looking ---- */

void note_slot(void *slot, void *ctx) {
	EXPECT_TRUE(static_cast<std::set<void *> *>(ctx)->insert(slot).second) << "visited twice";
}

TEST(slab, each_visits_the_live_slots) {
	slab_owner s = make_slab(40);
	std::vector<void *> slots = take(s.get(), 3000);
	std::set<void *> live(slots.begin(), slots.end());
	for (size_t stride : {7u, 3u, 2u}) {
		std::set<void *> seen;
		tn_slab_each(s.get(), note_slot, &seen);
		EXPECT_EQ(seen, live);
		for (size_t i = 0; i < slots.size(); i += stride)
			if (live.erase(slots[i]) == 1)
				tn_slab_free(s.get(), slots[i]);
	}
	tn_slab_reset(s.get());
	std::set<void *> seen;
	tn_slab_each(s.get(), note_slot, &seen);
	EXPECT_TRUE(seen.empty());
}

TEST(slab, owns_carved_slots_only) {
	slab_owner s = make_slab(48);
	slab_owner other = make_slab(48);
	int on_stack = 0;
	std::unique_ptr<char[]> heap(new char[100]);
	EXPECT_FALSE(tn_slab_owns(s.get(), &on_stack));
	char *p = static_cast<char *>(tn_slab_alloc(s.get()));
	char *q = static_cast<char *>(tn_slab_alloc(other.get()));
	EXPECT_TRUE(tn_slab_owns(s.get(), p));
	EXPECT_TRUE(tn_slab_owns(s.get(), p + 47));
	EXPECT_FALSE(tn_slab_owns(s.get(), q));
	EXPECT_FALSE(tn_slab_owns(other.get(), p));
	EXPECT_FALSE(tn_slab_owns(s.get(), nullptr));
	EXPECT_FALSE(tn_slab_owns(s.get(), &on_stack));
	EXPECT_FALSE(tn_slab_owns(s.get(), heap.get()));
	EXPECT_FALSE(tn_slab_owns(s.get(), s.get()));
	EXPECT_FALSE(tn_slab_owns(s.get(), reinterpret_cast<void *>(SIZE_MAX)));
	EXPECT_FALSE(tn_slab_owns(s.get(), reinterpret_cast<void *>(16)));
	EXPECT_FALSE(tn_slab_owns(s.get(), p + 60 * kib)) << "not carved yet";
	tn_slab_free(s.get(), p);
	EXPECT_TRUE(tn_slab_owns(s.get(), p)) << "live or free";
	tn_slab_trim(s.get());
	EXPECT_FALSE(tn_slab_owns(s.get(), p)) << "given back";
}

TEST(slab, owns_every_slot_at_every_byte) {
	slab_owner s = make_slab(40, 8);
	for (void *p : take(s.get(), 3000))
		for (size_t i = 0; i < 40; i++)
			ASSERT_TRUE(tn_slab_owns(s.get(), static_cast<char *>(p) + i));
}

TEST(slab, figures_are_exact) {
	ledger books;
	slab_owner s = make_slab(100, 0, with_source(books));
	size_t own = books.held_count();
	std::vector<void *> slots;
	dice d(5);
	size_t peak = 0;
	for (int i = 0; i < 4000; i++) {
		if (slots.empty() || d.below(5) < 3)
			slots.push_back(tn_slab_alloc(s.get()));
		else {
			std::swap(slots[d.below(slots.size())], slots.back());
			tn_slab_free(s.get(), slots.back());
			slots.pop_back();
		}
		tn_stats stats = stats_of(s.get());
		ASSERT_EQ(stats.live_count, slots.size());
		ASSERT_EQ(tn_slab_in_use(s.get()), slots.size());
		ASSERT_EQ(stats.committed_bytes, books.held_bytes());
		ASSERT_EQ(stats.chunk_count, books.held_count() - own);
		ASSERT_GE(stats.reserved_bytes, stats.committed_bytes);
		ASSERT_LE(stats.live_bytes + stats.cached_bytes, stats.committed_bytes);
		ASSERT_GE(stats.live_bytes, slots.size() * 112);
		if (!debug_mode) {
			ASSERT_EQ(stats.live_bytes, slots.size() * 112);
		}
		peak = std::max(peak, stats.live_bytes);
		ASSERT_GE(stats.peak_bytes, stats.live_bytes);
		ASSERT_LE(stats.peak_bytes, peak);
	}
}

/* ---- limits and sources ---- */

TEST(slab, limit_is_never_passed) {
	for (size_t limit : {default_chunk, 2 * default_chunk, 5 * default_chunk + 100}) {
		ledger books;
		tn_slab_options options = with_source(books);
		options.limit_bytes = limit;
		slab_owner s = make_slab(100, 0, options);
		ASSERT_NE(s, nullptr);
		std::vector<void *> slots = exhaust(s.get());
		EXPECT_EQ(errno, ENOMEM);
		EXPECT_LE(books.peak_bytes(), limit);
		if (!debug_mode && limit >= 2 * default_chunk) {
			EXPECT_GT(slots.size() * 112, (limit - default_chunk) / 2);
		}
		give(s.get(), slots);
		EXPECT_TRUE(tn_slab_verify(s.get()));
		EXPECT_GE(exhaust(s.get()).size(), 0u);
		EXPECT_LE(books.peak_bytes(), limit);
	}
}

TEST(slab, a_full_slab_serves_again_after_free) {
	ledger books;
	tn_slab_options options = with_source(books);
	options.limit_bytes = 4 * default_chunk;
	slab_owner s = make_slab(100, 0, options);
	std::vector<void *> slots = exhaust(s.get());
	size_t capacity = slots.size();
	ASSERT_GT(capacity, 0u);
	for (int round = 0; round < 5; round++) {
		give(s.get(), slots);
		slots = exhaust(s.get());
		EXPECT_EQ(slots.size(), capacity) << "round " << round;
	}
}

TEST(slab, misaligned_answers_count_as_none) {
	ledger books;
	slab_owner s = make_slab(100, 0, with_source(books));
	size_t own = books.held_count();
	books.misalign(64);
	EXPECT_REFUSED(tn_slab_alloc(s.get()), ENOMEM);
	EXPECT_EQ(books.held_count(), own);
	EXPECT_TRUE(tn_slab_verify(s.get()));
	books.misalign(0);
	EXPECT_NE(tn_slab_alloc(s.get()), nullptr);
}

TEST(slab, failure_of_the_source_changes_nothing) {
	ledger books;
	slab_owner s = make_slab(100, 0, with_source(books));
	std::vector<void *> slots = take(s.get(), 100);
	books.fail(1, ledger::never);
	for (void *p : exhaust(s.get()))
		slots.push_back(p);
	EXPECT_GT(books.failures(), 0u);
	std::string before = to_text(stats_of(s.get()));
	tn_stats earlier = stats_of(s.get());
	void *more[3];
	EXPECT_REFUSED(tn_slab_alloc(s.get()), ENOMEM);
	EXPECT_REFUSED(tn_slab_alloc_batch(s.get(), more, 3), ENOMEM);
	tn_stats later = stats_of(s.get());
	later.refills = earlier.refills;
	EXPECT_EQ(to_text(later), before);
	EXPECT_TRUE(tn_slab_verify(s.get()));
	books.heal();
	EXPECT_NE(tn_slab_alloc(s.get()), nullptr);
}

TEST(slab, source_asked_for_alignment_of_the_size) {
	mapped_source source;
	tn_slab_options options = {};
	options.source = &source.source;
	slab_owner s = make_slab(100, 0, options);
	take(s.get(), 3000);
	size_t chunks = 0;
	for (auto &chunk : source.chunks) {
		/* What the slab itself lies in is smaller, and no chunk. */
		bool own = chunk.second < default_chunk;
		EXPECT_TRUE(aligned_to(chunk.first, own ? page : chunk.second));
		chunks += !own;
	}
	EXPECT_GE(chunks, 4u);
}

TEST(slab, destroy_with_live_slots_is_legal) {
	ledger books;
	slab_owner s = make_slab(100, 0, with_source(books));
	take(s.get(), 5000);
	s.reset();
	EXPECT_EQ(books.held_count(), 0u);
}

TEST(slab, many_slabs_at_once) {
	std::vector<slab_owner> slabs;
	for (size_t i = 0; i < 300; i++) {
		slabs.push_back(make_slab(16 + i));
		ASSERT_NE(slabs.back(), nullptr);
		fill(tn_slab_alloc(slabs.back().get()), 16 + i, i);
	}
	for (auto &s : slabs)
		EXPECT_EQ(tn_slab_in_use(s.get()), 1u);
}

TEST(slab, retaining_more_chunks_than_there_can_be_keeps_all) {
	ledger books;
	size_t many = chunks_kept(1000, 60000, books);
	EXPECT_EQ(chunks_kept(SIZE_MAX - 1, 60000, books), many);
}

} /* namespace */
