/* The common contract of slab.h and shared_slab.h, on one thread. */
#include "mapped_source.h"
#include "process.h"
#include "slabs.h"

#include <map>
#include <set>

namespace test_slabs {
namespace {

template <typename Kind> class slabs : public ::testing::Test {};

struct kind_names {
	template <typename Kind> static std::string GetName(int) {
		return Kind::shared ? "shared_slab" : "slab";
	}
};
using kinds = ::testing::Types<kind<tn_slab>, kind<tn_shared_slab>>;
TYPED_TEST_SUITE(slabs, kinds, kind_names);

/* ---- creation ---- */

TYPED_TEST(slabs, starts_empty) {
	typename TypeParam::owner s = TypeParam::make(24);
	ASSERT_NE(s, nullptr);
	tn_stats stats = stats_of(s.get());
	EXPECT_STREQ(stats.name, TypeParam::shared ? "shared slab" : "slab");
	EXPECT_EQ(stats.live_bytes, 0u);
	EXPECT_EQ(stats.live_count, 0u);
	EXPECT_EQ(stats.cached_bytes, 0u);
	EXPECT_EQ(stats.chunk_count, 0u);
	EXPECT_EQ(stats.partial_count, 0u);
	EXPECT_EQ(stats.resets, 0u);
	EXPECT_EQ(TypeParam::in_use(s.get()), 0u);
	EXPECT_EQ(TypeParam::trim(s.get()), 0u);
	flush(s.get());
	EXPECT_TRUE(TypeParam::verify(s.get()));
	typename TypeParam::owner plain(TypeParam::create(8, 0, nullptr));
	EXPECT_NE(plain, nullptr);
}

TYPED_TEST(slabs, null_is_a_no_op) {
	TypeParam::destroy(nullptr);
	typename TypeParam::owner s = TypeParam::make(16);
	TypeParam::free(s.get(), nullptr);
	if constexpr (TypeParam::shared) {
		tn_local *l = tn_shared_slab_local(s.get());
		ASSERT_NE(l, nullptr);
		tn_shared_slab_local_free(l, nullptr);
	}
	void *nothing[3] = {nullptr, nullptr, nullptr};
	TypeParam::free_batch(s.get(), nothing, 3);
	TypeParam::free_batch(s.get(), nullptr, 0);
	EXPECT_TRUE(TypeParam::alloc_batch(s.get(), nullptr, 0));
	EXPECT_EQ(TypeParam::in_use(s.get()), 0u);
	EXPECT_EQ(stats_of(s.get()).chunk_count, 0u);
	EXPECT_TRUE(TypeParam::verify(s.get()));
}

TYPED_TEST(slabs, name_is_copied_and_cut_at_31_bytes) {
	char name[] = "0123456789012345678901234567890123456789";
	typename TypeParam::options options = {};
	options.name = name;
	typename TypeParam::owner s = TypeParam::make(16, 0, options);
	std::memset(name, 'x', sizeof(name) - 1);
	EXPECT_STREQ(stats_of(s.get()).name, "0123456789012345678901234567890");
}

TYPED_TEST(slabs, slot_size_is_rounded_to_align) {
	for (size_t align : {0u, 1u, 2u, 4u, 8u, 16u, 32u, 64u, 4096u})
		for (size_t size = 1; size < 200; size += 3) {
			typename TypeParam::owner s = TypeParam::make(size, align);
			ASSERT_NE(s, nullptr) << size << " at " << align;
			ASSERT_EQ(TypeParam::slot_size(s.get()), round_up(size, align == 0 ? 16 : align));
		}
}

TYPED_TEST(slabs, bad_sizes_and_alignments_are_refused) {
	EXPECT_REFUSED(TypeParam::make(0), EINVAL);
	for (size_t align : {size_t{3}, size_t{24}, size_t{48}, TN_ALIGN_MAX * 2, TN_ALIGN_MAX + 1,
			 SIZE_MAX, SIZE_MAX / 2 + 1})
		EXPECT_REFUSED(TypeParam::make(16, align), EINVAL);
	for (size_t back = 0; back < 200; back++) {
		EXPECT_REFUSED(TypeParam::make(SIZE_MAX - back), EINVAL);
		EXPECT_REFUSED(TypeParam::make(SIZE_MAX / 2 - back), EINVAL);
		EXPECT_REFUSED(TypeParam::make(SIZE_MAX / 2 + back, 4096), EINVAL);
	}
}

TYPED_TEST(slabs, half_a_source_is_refused) {
	ledger books;
	tn_source half = *books.source();
	half.release = nullptr;
	typename TypeParam::options options = {};
	options.source = &half;
	EXPECT_REFUSED(TypeParam::make(16, 0, options), EINVAL);
	half = *books.source();
	half.acquire = nullptr;
	EXPECT_REFUSED(TypeParam::make(16, 0, options), EINVAL);
}

TYPED_TEST(slabs, absurd_chunk_bytes_are_refused) {
	ledger books;
	typename TypeParam::options options = with_source(books);
	for (size_t size : {SIZE_MAX - 1, SIZE_MAX / 2 + 2, SIZE_MAX - 4096}) {
		options.chunk_bytes = size;
		EXPECT_REFUSED(TypeParam::make(16, 0, options), EINVAL);
	}
	EXPECT_EQ(books.calls(), 0u);
}

TYPED_TEST(slabs, chunks_are_powers_of_two_that_hold_a_slot) {
	struct row {
		size_t size, chunk_bytes;
	};
	for (row r :
		{row{16, 0}, {16, 1}, {16, 5000}, {16, 70 * kib}, {40 * kib, 0}, {64 * kib, 0}, {mib + 1, 0}}) {
		ledger books;
		typename TypeParam::options options = with_source(books);
		options.chunk_bytes = r.chunk_bytes;
		typename TypeParam::owner s = TypeParam::make(r.size, 0, options);
		ASSERT_NE(s, nullptr) << r.size << " in " << r.chunk_bytes;
		size_t own = books.calls();
		void *p = TypeParam::alloc(s.get());
		ASSERT_NE(p, nullptr);
		fill(p, r.size, 1);
		if (!TypeParam::shared) {
			ASSERT_EQ(books.calls(), own + 1);
		}
		size_t chunk = books.sizes()[own];
		EXPECT_EQ(chunk & (chunk - 1), 0u);
		EXPECT_GE(chunk, std::max(r.size, r.chunk_bytes));
		if (r.size <= 16) {
			size_t wanted = r.chunk_bytes == 0 ? default_chunk : r.chunk_bytes;
			EXPECT_TRUE(chunk < 2 * wanted || chunk == page) << chunk;
		}
	}
}

template <typename TypeParam> void use_slots_of(size_t size, size_t align) {
	typename TypeParam::owner s = TypeParam::make(size, align);
	ASSERT_NE(s, nullptr) << size << " at " << align;
	for (int round = 0; round < 2; round++) {
		std::vector<void *> slots = take(s.get(), 100);
		ASSERT_TRUE(disjoint(slots, TypeParam::slot_size(s.get()))) << size << " at " << align;
		for (size_t i = 0; i < slots.size(); i++) {
			ASSERT_TRUE(aligned_to(slots[i], align)) << size << " at " << align;
			fill(slots[i], size, i);
		}
		for (size_t i = 0; i < slots.size(); i++)
			ASSERT_TRUE(filled(slots[i], size, i)) << size << " at " << align;
		ASSERT_TRUE(TypeParam::verify(s.get()));
		give(s.get(), slots);
		ASSERT_TRUE(TypeParam::verify(s.get()));
	}
}

TYPED_TEST(slabs, slots_are_aligned_disjoint_and_whole) {
	for (size_t align : {size_t{1}, size_t{8}, size_t{16}, size_t{64}, size_t{4096}, 64 * kib})
		for (size_t size :
			{1u, 7u, 8u, 9u, 16u, 24u, 33u, 48u, 100u, 500u, 1000u, 4095u, 4096u, 5000u, 70000u})
			use_slots_of<TypeParam>(size, align);
}

TYPED_TEST(slabs, the_largest_alignment) {
	typename TypeParam::owner s = TypeParam::make(10, TN_ALIGN_MAX);
	ASSERT_NE(s, nullptr);
	std::vector<void *> slots = take(s.get(), 5);
	for (void *p : slots)
		EXPECT_TRUE(aligned_to(p, TN_ALIGN_MAX));
	EXPECT_EQ(TypeParam::slot_size(s.get()), TN_ALIGN_MAX);
	EXPECT_TRUE(disjoint(slots, TN_ALIGN_MAX));
}

tn_local *handle_of(tn_slab *) {
	return nullptr;
}
tn_local *handle_of(tn_shared_slab *s) {
	return tn_shared_slab_local(s);
}

/* More slabs than a thread's inlined calls know at a time. */
TYPED_TEST(slabs, many_slabs_at_once) {
	std::vector<typename TypeParam::owner> slabs;
	std::vector<tn_local *> handles;
	for (size_t i = 0; i < 300; i++) {
		slabs.push_back(TypeParam::make(16 + i));
		ASSERT_NE(slabs.back(), nullptr);
		handles.push_back(handle_of(slabs.back().get()));
	}
	for (size_t round = 1; round <= 4; round++)
		for (size_t i = 0; i < slabs.size(); i++) {
			fill(TypeParam::alloc(slabs[i].get()), 16 + i, i);
			ASSERT_EQ(TypeParam::in_use(slabs[i].get()), round);
			ASSERT_EQ(handle_of(slabs[i].get()), handles[i]);
		}
	for (size_t i = 0; i < slabs.size(); i += 2)
		slabs[i].reset();
	for (size_t i = 0; i < slabs.size(); i++)
		if (slabs[i] != nullptr) {
			EXPECT_EQ(TypeParam::in_use(slabs[i].get()), 4u);
			EXPECT_TRUE(TypeParam::verify(slabs[i].get()));
		}
}

/* ---- order ---- */

TYPED_TEST(slabs, last_in_first_out) {
	std::vector<size_t> counts = {1, 2, 15, 16, 17, 31, 32, 62, 63, 127, 128, 129, 508, 509, 511};
	/* As many as debug's quarantine holds. */
	const size_t most = debug_mode ? 4000 : 20000;
	if (TypeParam::shared)
		counts.insert(counts.end(), {1016, 1017, most});
	for (size_t count : counts) {
		typename TypeParam::owner s = TypeParam::make(32);
		std::vector<void *> slots = take(s.get(), count);
		shuffle(slots, count);
		give(s.get(), slots);
		size_t wrong = 0;
		for (size_t i = count; i-- > 0;)
			wrong += TypeParam::alloc(s.get()) != slots[i];
		if (debug_mode) {
			EXPECT_EQ(wrong, count) << "debug does not reuse while the quarantine lasts";
		} else {
			EXPECT_EQ(wrong, 0u) << count;
		}
	}
}

TYPED_TEST(slabs, a_batch_is_freed_in_order) {
	typename TypeParam::owner s = TypeParam::make(32);
	std::vector<void *> slots = take(s.get(), 1000);
	TypeParam::free_batch(s.get(), slots.data(), slots.size());
	EXPECT_EQ(TypeParam::in_use(s.get()), 0u);
	EXPECT_EQ(TypeParam::alloc(s.get()) == slots.back(), !debug_mode);
}

TYPED_TEST(slabs, fresh_slots_lie_in_order) {
	typename TypeParam::owner s = TypeParam::make(64);
	std::vector<void *> slots = take(s.get(), 200);
	size_t ascending = 0;
	for (size_t i = 1; i < slots.size(); i++)
		ascending += slots[i] > slots[i - 1];
	EXPECT_GT(ascending, 150u);
}

/* ---- batches ---- */

TYPED_TEST(slabs, batches_of_every_size) {
	typename TypeParam::owner s = TypeParam::make(24, 8);
	std::vector<void *> slots(1200);
	size_t step = debug_mode && TypeParam::shared ? 41 : 1;
	for (size_t count = 0; count <= 1200; count += count < 600 ? step : 53) {
		std::fill(slots.begin(), slots.end(), nullptr);
		ASSERT_TRUE(TypeParam::alloc_batch(s.get(), slots.data(), count));
		ASSERT_EQ(TypeParam::in_use(s.get()), count);
		std::set<void *> unique(slots.begin(), slots.begin() + static_cast<std::ptrdiff_t>(count));
		ASSERT_EQ(unique.size(), count);
		ASSERT_EQ(unique.count(nullptr), 0u);
		ASSERT_TRUE(std::all_of(slots.begin() + static_cast<std::ptrdiff_t>(count), slots.end(),
			[](void *p) { return p == nullptr; }));
		for (size_t i = 0; i < count; i++)
			fill(slots[i], 24, i);
		for (size_t i = 0; i < count; i++)
			ASSERT_TRUE(filled(slots[i], 24, i));
		TypeParam::free_batch(s.get(), slots.data(), count);
		ASSERT_EQ(TypeParam::in_use(s.get()), 0u);
		if (count % 50 == 0 || step > 1) {
			ASSERT_TRUE(TypeParam::verify(s.get()));
		}
	}
}

TYPED_TEST(slabs, batch_is_all_or_nothing) {
	ledger books;
	typename TypeParam::options options = with_source(books);
	options.limit_bytes = 3 * default_chunk;
	typename TypeParam::owner s = TypeParam::make(100, 0, options);
	std::vector<void *> all = exhaust(s.get());
	size_t capacity = all.size();
	give(s.get(), all);
	ASSERT_GT(capacity, 2u);
	std::vector<void *> slots(capacity + 500);
	for (size_t live : {size_t{0}, size_t{1}, capacity / 2, capacity - 1, capacity}) {
		std::vector<void *> held = take(s.get(), live);
		for (size_t count = capacity - live + 1; count < capacity - live + 400; count += 57) {
			EXPECT_REFUSED(TypeParam::alloc_batch(s.get(), slots.data(), count), ENOMEM);
			ASSERT_EQ(TypeParam::in_use(s.get()), live);
			ASSERT_TRUE(TypeParam::verify(s.get()));
		}
		ASSERT_TRUE(TypeParam::alloc_batch(s.get(), slots.data(), capacity - live))
			<< "nothing was lost";
		ASSERT_EQ(TypeParam::in_use(s.get()), capacity);
		held.insert(
			held.end(), slots.begin(), slots.begin() + static_cast<std::ptrdiff_t>(capacity - live));
		ASSERT_TRUE(disjoint(held, 112));
		if constexpr (TypeParam::shared)
			TypeParam::free_batch(s.get(), held.data(), held.size());
		else
			tn_slab_reset(s.get());
	}
}

TYPED_TEST(slabs, absurd_batches_are_refused) {
	typename TypeParam::options options = {};
	options.limit_bytes = mib;
	typename TypeParam::owner s = TypeParam::make(100, 0, options);
	void *one = TypeParam::alloc(s.get());
	void *slots[1] = {nullptr};
	for (size_t count : {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / 8 + 1, SIZE_MAX / 112 + 1}) {
		EXPECT_REFUSED(TypeParam::alloc_batch(s.get(), slots, count), ENOMEM);
		EXPECT_EQ(TypeParam::in_use(s.get()), 1u);
	}
	TypeParam::free(s.get(), one);
	EXPECT_TRUE(TypeParam::verify(s.get()));
}

TYPED_TEST(slabs, free_batch_skips_null) {
	typename TypeParam::owner s = TypeParam::make(40);
	std::vector<void *> slots = take(s.get(), 300);
	for (size_t i = 0; i < slots.size(); i += 3) {
		TypeParam::free(s.get(), slots[i]);
		slots[i] = nullptr;
	}
	TypeParam::free_batch(s.get(), slots.data(), slots.size());
	EXPECT_EQ(TypeParam::in_use(s.get()), 0u);
	EXPECT_TRUE(TypeParam::verify(s.get()));
}

/* ---- memory of slots ---- */

TYPED_TEST(slabs, one_object_does_not_touch_the_whole_chunk) {
	mapped_source source;
	typename TypeParam::options options = {};
	options.source = &source.source;
	options.chunk_bytes = 4 * mib;
	typename TypeParam::owner s = TypeParam::make(64, 0, options);
	void *p = TypeParam::alloc(s.get());
	ASSERT_NE(p, nullptr);
	std::memset(p, 1, 64);
	/* Debug fills the fences of a chunk of a slab at once. */
	size_t touched = source.resident_pages();
	EXPECT_GT(touched, 0u);
	if (!debug_mode) {
		EXPECT_LE(touched, TypeParam::shared ? 40u : 160u)
			<< "of 1024: the record, magazines, the first slots, the head";
	}
	EXPECT_GE(stats_of(s.get()).committed_bytes, 4 * mib);
}

TYPED_TEST(slabs, contents_after_free) {
	typename TypeParam::owner s = TypeParam::make(256);
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

TYPED_TEST(slabs, what_is_written_to_free_slots_misleads_nobody) {
	if (debug_mode)
		GTEST_SKIP() << "free slots are inaccessible there";
	typename TypeParam::owner s = TypeParam::make(48);
	std::vector<void *> slots = take(s.get(), 5000);
	std::set<void *> mine(slots.begin(), slots.end());
	give(s.get(), slots);
	flush(s.get());
	for (void *p : slots)
		std::memset(p, 0xff, TypeParam::slot_size(s.get()));
	EXPECT_TRUE(TypeParam::verify(s.get()));
	std::vector<void *> again = take(s.get(), 5000);
	EXPECT_TRUE(disjoint(again, 48));
	for (void *p : again) {
		EXPECT_TRUE(TypeParam::owns(s.get(), p));
		EXPECT_TRUE(mine.erase(p) == 1 || TypeParam::shared);
	}
}

/* ---- trim and retention ---- */

TYPED_TEST(slabs, trim_keeps_chunks_with_a_live_slot) {
	ledger books;
	typename TypeParam::owner s = TypeParam::make(100, 0, with_source(books));
	size_t own = books.held_count();
	std::vector<void *> slots = take(s.get(), 20000);
	std::map<uintptr_t, void *> keep;
	for (void *p : slots)
		keep[address(p) / (4 * default_chunk)] = p;
	for (void *p : slots)
		if (keep[address(p) / (4 * default_chunk)] != p)
			TypeParam::free(s.get(), p);
	std::set<uintptr_t> chunks;
	for (auto &k : keep) {
		fill(k.second, 100, k.first);
		chunks.insert(address(k.second) / default_chunk);
	}
	EXPECT_GT(TypeParam::trim(s.get()), 0u);
	EXPECT_EQ(books.held_count(), own + chunks.size());
	EXPECT_EQ(TypeParam::in_use(s.get()), keep.size());
	EXPECT_EQ(stats_of(s.get()).partial_count, chunks.size());
	for (auto &k : keep)
		EXPECT_TRUE(filled(k.second, 100, k.first));
	EXPECT_TRUE(TypeParam::verify(s.get()));
	std::vector<void *> more = take(s.get(), 20000);
	for (auto &k : keep)
		more.push_back(k.second);
	EXPECT_TRUE(disjoint(more, 112));
}

TYPED_TEST(slabs, trimmed_memory_really_goes) {
	typename TypeParam::owner s = TypeParam::make(1000);
	tn_trim_all();
	size_t before = resident_bytes();
	std::vector<void *> slots = take(s.get(), 60000);
	for (void *p : slots)
		std::memset(p, 1, 1000);
	if (!sanitized) {
		EXPECT_GT(resident_bytes(), before + 50 * mib);
	}
	give(s.get(), slots);
	EXPECT_GE(TypeParam::trim(s.get()), 55 * mib);
	if (!TypeParam::shared)
		tn_trim_all();
	expect_resident_below(before + 12 * mib);
}

/* ---- built slots ---- */

TYPED_TEST(slabs, slots_are_built_once_and_keep_their_state) {
	builder b;
	{
		typename TypeParam::owner s = TypeParam::make(64, 0, b);
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
			if (round % 3 == 0)
				flush(s.get());
			slots = take(s.get(), 1000);
		}
		/* Debug builds others while the freed ones are in quarantine. */
		if (!debug_mode) {
			EXPECT_EQ(b.inits, built);
			for (void *p : slots)
				EXPECT_EQ(static_cast<char *>(p)[1], 0x55) << "what the user left in it survives";
			EXPECT_EQ(b.finis, 0u);
		}
		EXPECT_TRUE(TypeParam::verify(s.get()));
	}
	EXPECT_EQ(b.finis, b.inits);
	EXPECT_TRUE(b.built.empty());
}

TYPED_TEST(slabs, building_is_lazy) {
	builder b;
	typename TypeParam::owner s = TypeParam::make(64, 0, b);
	TypeParam::free(s.get(), TypeParam::alloc(s.get()));
	EXPECT_GE(b.inits, 1u);
	EXPECT_LE(b.inits, 64u);
}

TYPED_TEST(slabs, trim_takes_apart_what_goes_back) {
	builder b;
	typename TypeParam::owner s = TypeParam::make(64, 0, b);
	std::vector<void *> slots = take(s.get(), 3000);
	void *kept = slots.back();
	slots.pop_back();
	give(s.get(), slots);
	EXPECT_GT(TypeParam::trim(s.get()), 0u);
	EXPECT_EQ(b.built.size(), b.inits - b.finis);
	EXPECT_EQ(b.built.count(kept), 1u);
	EXPECT_LE(b.built.size(), 1100u) << "one chunk of slots";
	take(s.get(), 3000);
	EXPECT_TRUE(TypeParam::verify(s.get()));
}

/* Allocates until the limit, through failures of init; returns how many slots there were. */
template <typename Slab> size_t exhaust_with_failing_init(builder &b, Slab *s) {
	std::vector<void *> slots;
	for (errno = 0;; errno = 0) {
		size_t calls = b.calls;
		if (void *p = kind<Slab>::alloc(s)) {
			slots.push_back(p);
			continue;
		}
		EXPECT_EQ(errno, ENOMEM);
		EXPECT_TRUE(kind<Slab>::verify(s));
		EXPECT_EQ(kind<Slab>::in_use(s), slots.size());
		if (calls == b.calls)
			break;
		EXPECT_EQ(b.calls, calls + 1) << "init is called once for each alloc that fails";
	}
	EXPECT_TRUE(disjoint(slots, 64));
	for (void *p : slots)
		EXPECT_EQ(b.built.count(p), 1u);
	return slots.size();
}

TYPED_TEST(slabs, a_failing_init_loses_nothing) {
	size_t capacity = 0;
	for (size_t n = 1; n <= 150; n++) {
		builder b;
		ledger books;
		typename TypeParam::options options = b;
		options.source = books.source();
		options.limit_bytes = debug_mode ? 8 * page : 4 * page;
		options.chunk_bytes = page;
		b.fail_from = n;
		b.fail_count = 1 + n % 3;
		typename TypeParam::owner s = TypeParam::make(64, 0, options);
		ASSERT_NE(s, nullptr);
		size_t count = exhaust_with_failing_init(b, s.get());
		capacity = n == 1 ? count : capacity;
		ASSERT_GT(capacity, 30u);
		ASSERT_EQ(count, capacity) << "init failed at " << n;
		ASSERT_EQ(b.calls, count + (n <= capacity ? b.fail_count : 0)) << n;
	}
}

TYPED_TEST(slabs, a_failing_init_leaves_a_batch_undone) {
	builder b;
	typename TypeParam::owner s = TypeParam::make(64, 0, b);
	std::vector<void *> slots(300);
	b.fail_from = 150;
	b.fail_count = 1;
	EXPECT_REFUSED(TypeParam::alloc_batch(s.get(), slots.data(), slots.size()), ENOMEM);
	EXPECT_EQ(TypeParam::in_use(s.get()), 0u);
	EXPECT_TRUE(TypeParam::verify(s.get()));
	EXPECT_EQ(b.built.size(), b.inits - b.finis);
	ASSERT_TRUE(TypeParam::alloc_batch(s.get(), slots.data(), slots.size()));
	for (void *p : slots)
		EXPECT_EQ(b.built.count(p), 1u);
}

/* ---- looking ---- */

void note_slot(void *slot, void *ctx) {
	EXPECT_TRUE(static_cast<std::set<void *> *>(ctx)->insert(slot).second) << "visited twice";
}

TYPED_TEST(slabs, each_visits_the_live_slots) {
	typename TypeParam::owner s = TypeParam::make(40);
	std::vector<void *> slots = take(s.get(), 3000);
	std::set<void *> live(slots.begin(), slots.end());
	for (size_t stride : {7u, 3u, 2u, 1u}) {
		std::set<void *> seen;
		TypeParam::each(s.get(), note_slot, &seen);
		EXPECT_EQ(seen, live);
		for (size_t i = 0; i < slots.size(); i += stride)
			if (live.erase(slots[i]) == 1)
				TypeParam::free(s.get(), slots[i]);
		if (stride == 3)
			flush(s.get());
	}
	std::set<void *> seen;
	TypeParam::each(s.get(), note_slot, &seen);
	EXPECT_TRUE(seen.empty());
	EXPECT_TRUE(TypeParam::verify(s.get()));
}

TYPED_TEST(slabs, owns_carved_slots_only) {
	typename TypeParam::owner s = TypeParam::make(48), other = TypeParam::make(48);
	int on_stack = 0;
	std::unique_ptr<char[]> heap(new char[100]);
	EXPECT_FALSE(TypeParam::owns(s.get(), &on_stack));
	char *p = static_cast<char *>(TypeParam::alloc(s.get()));
	char *q = static_cast<char *>(TypeParam::alloc(other.get()));
	EXPECT_TRUE(TypeParam::owns(s.get(), p));
	EXPECT_TRUE(TypeParam::owns(s.get(), p + 47));
	EXPECT_FALSE(TypeParam::owns(s.get(), q));
	EXPECT_FALSE(TypeParam::owns(other.get(), p));
	EXPECT_FALSE(TypeParam::owns(s.get(), nullptr));
	EXPECT_FALSE(TypeParam::owns(s.get(), &on_stack));
	EXPECT_FALSE(TypeParam::owns(s.get(), heap.get()));
	EXPECT_FALSE(TypeParam::owns(s.get(), s.get()));
	EXPECT_FALSE(TypeParam::owns(s.get(), reinterpret_cast<void *>(SIZE_MAX)));
	EXPECT_FALSE(TypeParam::owns(s.get(), reinterpret_cast<void *>(16)));
	EXPECT_FALSE(TypeParam::owns(s.get(), p + 60 * kib)) << "not carved yet";
	TypeParam::free(s.get(), p);
	EXPECT_TRUE(TypeParam::owns(s.get(), p)) << "live or free";
	TypeParam::trim(s.get());
	EXPECT_FALSE(TypeParam::owns(s.get(), p)) << "given back";
}

TYPED_TEST(slabs, owns_every_slot_at_every_byte) {
	typename TypeParam::owner s = TypeParam::make(40, 8);
	for (void *p : take(s.get(), 3000))
		for (size_t i = 0; i < 40; i++)
			ASSERT_TRUE(TypeParam::owns(s.get(), static_cast<char *>(p) + i));
}

TYPED_TEST(slabs, figures_are_exact) {
	ledger books;
	typename TypeParam::owner s = TypeParam::make(100, 0, with_source(books));
	size_t own = books.held_count();
	std::vector<void *> slots;
	dice d(5);
	size_t peak = 0;
	for (int i = 0; i < 4000; i++) {
		if (slots.empty() || d.below(5) < 3)
			slots.push_back(TypeParam::alloc(s.get()));
		else {
			std::swap(slots[d.below(slots.size())], slots.back());
			TypeParam::free(s.get(), slots.back());
			slots.pop_back();
		}
		tn_stats stats = stats_of(s.get());
		ASSERT_EQ(stats.live_count, slots.size());
		ASSERT_EQ(TypeParam::in_use(s.get()), slots.size());
		ASSERT_EQ(stats.committed_bytes, books.held_bytes());
		if (!TypeParam::shared) {
			ASSERT_EQ(stats.chunk_count, books.held_count() - own);
		}
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
	EXPECT_GT(stats_of(s.get()).refills, 0u);
	EXPECT_EQ(stats_of(s.get()).resets, 0u);
}

/* ---- limits and sources ---- */

TYPED_TEST(slabs, limit_is_never_passed) {
	for (size_t limit :
		{2 * page, 3 * page, 4 * page + 1, default_chunk, 2 * default_chunk, 5 * default_chunk + 100}) {
		ledger books;
		typename TypeParam::options options = with_source(books);
		options.limit_bytes = limit;
		typename TypeParam::owner s = TypeParam::make(100, 0, options);
		if (s == nullptr) {
			EXPECT_TRUE(debug_mode && limit < 5 * page) << limit;
			continue;
		}
		for (int round = 0; round < 3; round++) {
			std::vector<void *> slots = exhaust(s.get());
			EXPECT_EQ(errno, ENOMEM);
			EXPECT_LE(books.peak_bytes(), limit);
			EXPECT_TRUE(TypeParam::verify(s.get()));
			/* All but the parts that hold no whole slot: the record, the chunks' heads, less than a
			 * chunk. */
			if (!debug_mode) {
				EXPECT_GT(slots.size() * 112 + page, (limit - page) * 3 / 4) << limit;
			}
			give(s.get(), slots);
			if (round == 1)
				flush(s.get());
			EXPECT_TRUE(TypeParam::verify(s.get()));
		}
		EXPECT_LE(books.peak_bytes(), limit);
	}
}

TYPED_TEST(slabs, a_full_slab_serves_again_after_free) {
	ledger books;
	typename TypeParam::options options = with_source(books);
	options.limit_bytes = 4 * default_chunk;
	typename TypeParam::owner s = TypeParam::make(100, 0, options);
	std::vector<void *> slots = exhaust(s.get());
	size_t capacity = slots.size();
	ASSERT_GT(capacity, 0u);
	for (size_t turn = 0; turn < 100; turn++) {
		TypeParam::free(s.get(), slots[turn]);
		ASSERT_NE(slots[turn] = TypeParam::alloc(s.get()), nullptr);
		EXPECT_REFUSED(TypeParam::alloc(s.get()), ENOMEM);
	}
	for (int round = 0; round < 5; round++) {
		shuffle(slots, 7);
		give(s.get(), slots);
		slots = exhaust(s.get());
		EXPECT_EQ(slots.size(), capacity) << "round " << round;
	}
}

TYPED_TEST(slabs, misaligned_answers_count_as_none) {
	ledger books;
	typename TypeParam::owner s = TypeParam::make(100, 0, with_source(books));
	size_t own = books.held_count();
	books.misalign(64);
	EXPECT_REFUSED(TypeParam::alloc(s.get()), ENOMEM);
	EXPECT_EQ(books.held_count(), own);
	EXPECT_TRUE(TypeParam::verify(s.get()));
	books.misalign(0);
	EXPECT_NE(TypeParam::alloc(s.get()), nullptr);
}

TYPED_TEST(slabs, failure_of_the_source_changes_nothing) {
	ledger books;
	typename TypeParam::owner s = TypeParam::make(100, 0, with_source(books));
	std::vector<void *> slots = take(s.get(), 100);
	books.fail(1, ledger::never);
	for (void *p : exhaust(s.get()))
		slots.push_back(p);
	EXPECT_GT(books.failures(), 0u);
	tn_stats earlier = stats_of(s.get());
	void *more[3];
	EXPECT_REFUSED(TypeParam::alloc(s.get()), ENOMEM);
	EXPECT_REFUSED(TypeParam::alloc_batch(s.get(), more, 3), ENOMEM);
	tn_stats later = stats_of(s.get());
	later.refills = earlier.refills;
	EXPECT_EQ(to_text(later), to_text(earlier));
	EXPECT_TRUE(TypeParam::verify(s.get()));
	give(s.get(), slots);
	EXPECT_EQ(TypeParam::in_use(s.get()), 0u) << "a free needs no memory";
	EXPECT_TRUE(TypeParam::verify(s.get()));
	EXPECT_EQ(exhaust(s.get()).size(), slots.size());
	books.heal();
	EXPECT_NE(TypeParam::alloc(s.get()), nullptr);
}

TYPED_TEST(slabs, source_asked_for_alignment_of_the_size) {
	mapped_source source;
	typename TypeParam::options options = {};
	options.source = &source.source;
	typename TypeParam::owner s = TypeParam::make(100, 0, options);
	take(s.get(), 3000);
	size_t chunks = 0;
	for (auto &chunk : source.chunks) {
		/* The slab's own record is smaller, and no chunk. */
		bool own = chunk.second < default_chunk;
		EXPECT_TRUE(aligned_to(chunk.first, own ? page : chunk.second));
		chunks += !own;
	}
	EXPECT_GE(chunks, 4u);
}

TYPED_TEST(slabs, destroy_with_live_slots_is_legal) {
	ledger books;
	typename TypeParam::owner s = TypeParam::make(100, 0, with_source(books));
	take(s.get(), 5000);
	give(s.get(), take(s.get(), 3000));
	s.reset();
	EXPECT_EQ(books.held_count(), 0u);
}

} /* namespace */
} /* namespace test_slabs */
