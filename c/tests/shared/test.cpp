/* shared_slab.h, contract by contract, on one thread or one after another: what a slot is.
 * What overlapping threads do is tested elsewhere. */
#include "mapped_source.h"
#include "use.h"

#include <set>

namespace {

/* ---- creation ---- */

TEST(shared_slab, starts_empty) {
	shared_slab_owner s = make_shared_slab(24);
	ASSERT_NE(s, nullptr);
	tn_stats stats = stats_of(s.get());
	EXPECT_STREQ(stats.name, "shared slab");
	EXPECT_EQ(stats.live_bytes, 0u);
	EXPECT_EQ(stats.live_count, 0u);
	EXPECT_EQ(stats.cached_bytes, 0u);
	EXPECT_EQ(stats.chunk_count, 0u);
	EXPECT_EQ(stats.partial_count, 0u);
	EXPECT_EQ(stats.resets, 0u);
	EXPECT_EQ(tn_shared_slab_in_use(s.get()), 0u);
	EXPECT_EQ(tn_shared_slab_trim(s.get()), 0u);
	tn_shared_slab_flush(s.get());
	EXPECT_TRUE(tn_shared_slab_verify(s.get()));
	shared_slab_owner plain(tn_shared_slab_create(8, 0, nullptr));
	EXPECT_NE(plain, nullptr);
}

TEST(shared_slab, null_is_a_no_op) {
	tn_shared_slab_destroy(nullptr);
	shared_slab_owner s = make_shared_slab(16);
	tn_shared_slab_free(s.get(), nullptr);
	tn_local *l = tn_shared_slab_local(s.get());
	ASSERT_NE(l, nullptr);
	tn_shared_slab_local_free(l, nullptr);
	void *nothing[3] = {nullptr, nullptr, nullptr};
	tn_shared_slab_free_batch(s.get(), nothing, 3);
	tn_shared_slab_free_batch(s.get(), nullptr, 0);
	EXPECT_TRUE(tn_shared_slab_alloc_batch(s.get(), nullptr, 0));
	EXPECT_EQ(tn_shared_slab_in_use(s.get()), 0u);
	EXPECT_EQ(stats_of(s.get()).chunk_count, 0u);
	EXPECT_TRUE(tn_shared_slab_verify(s.get()));
}

TEST(shared_slab, name_is_copied_and_cut_at_31_bytes) {
	char name[] = "0123456789012345678901234567890123456789";
	tn_shared_slab_options options = {};
	options.name = name;
	shared_slab_owner s = make_shared_slab(16, 0, options);
	std::memset(name, 'x', sizeof(name) - 1);
	EXPECT_STREQ(stats_of(s.get()).name, "0123456789012345678901234567890");
}

TEST(shared_slab, slot_size_is_rounded_to_align) {
	for (size_t align : {0u, 1u, 2u, 4u, 8u, 16u, 32u, 64u, 4096u})
		for (size_t size = 1; size < 200; size += 3) {
			shared_slab_owner s = make_shared_slab(size, align);
			ASSERT_NE(s, nullptr) << size << " at " << align;
			ASSERT_EQ(tn_shared_slab_slot_size(s.get()), round_up(size, align == 0 ? 16 : align));
		}
}

TEST(shared_slab, bad_sizes_and_alignments_are_refused) {
	EXPECT_REFUSED(make_shared_slab(0), EINVAL);
	for (size_t align : {size_t{3}, size_t{24}, size_t{48}, TN_ALIGN_MAX * 2, TN_ALIGN_MAX + 1,
			 SIZE_MAX, SIZE_MAX / 2 + 1})
		EXPECT_REFUSED(make_shared_slab(16, align), EINVAL);
	for (size_t back = 0; back < 200; back++) {
		EXPECT_REFUSED(make_shared_slab(SIZE_MAX - back), EINVAL);
		EXPECT_REFUSED(make_shared_slab(SIZE_MAX / 2 - back), EINVAL);
		EXPECT_REFUSED(make_shared_slab(SIZE_MAX / 2 + back, 4096), EINVAL);
	}
}

TEST(shared_slab, contradicting_options_take_nothing) {
	ledger books;
	tn_source half = *books.source();
	half.release = nullptr;
	tn_shared_slab_options options = {};
	options.source = &half;
	EXPECT_REFUSED(make_shared_slab(16, 0, options), EINVAL);
	half = *books.source();
	half.acquire = nullptr;
	EXPECT_REFUSED(make_shared_slab(16, 0, options), EINVAL);
	options = with_source(books);
	options.fini = [](void *, void *) {};
	EXPECT_REFUSED(make_shared_slab(16, 0, options), EINVAL);
	options = with_source(books);
	for (size_t slots : {TN_MAGAZINE_SLOTS_MAX + 1, SIZE_MAX}) {
		options.magazine_slots = slots;
		EXPECT_REFUSED(make_shared_slab(16, 0, options), EINVAL);
	}
	options = with_source(books);
	for (size_t size : {SIZE_MAX - 1, SIZE_MAX / 2 + 2, SIZE_MAX - 4096}) {
		options.chunk_bytes = size;
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

TEST(shared_slab, chunks_are_powers_of_two_that_hold_a_slot) {
	struct row {
		size_t size, chunk_bytes;
	};
	for (row r :
		{row{16, 0}, {16, 1}, {16, 5000}, {16, 70 * kib}, {40 * kib, 0}, {64 * kib, 0}, {mib + 1, 0}}) {
		ledger books;
		tn_shared_slab_options options = with_source(books);
		options.chunk_bytes = r.chunk_bytes;
		shared_slab_owner s = make_shared_slab(r.size, 0, options);
		ASSERT_NE(s, nullptr) << r.size << " in " << r.chunk_bytes;
		size_t own = books.calls();
		void *p = tn_shared_slab_alloc(s.get());
		ASSERT_NE(p, nullptr);
		fill(p, r.size, 1);
		size_t chunk = books.sizes()[own];
		EXPECT_EQ(chunk & (chunk - 1), 0u);
		EXPECT_GE(chunk, std::max(r.size, r.chunk_bytes));
		if (r.size <= 16) {
			size_t wanted = r.chunk_bytes == 0 ? default_chunk : r.chunk_bytes;
			EXPECT_TRUE(chunk < 2 * wanted || chunk == page) << chunk;
		}
	}
}

void use_slots_of(size_t size, size_t align) {
	shared_slab_owner s = make_shared_slab(size, align);
	ASSERT_NE(s, nullptr) << size << " at " << align;
	for (int round = 0; round < 2; round++) {
		std::vector<void *> slots = take(s.get(), 100);
		ASSERT_TRUE(disjoint(slots, tn_shared_slab_slot_size(s.get()))) << size << " at " << align;
		for (size_t i = 0; i < slots.size(); i++) {
			ASSERT_TRUE(aligned_to(slots[i], align)) << size << " at " << align;
			fill(slots[i], size, i);
		}
		for (size_t i = 0; i < slots.size(); i++)
			ASSERT_TRUE(filled(slots[i], size, i)) << size << " at " << align;
		ASSERT_TRUE(tn_shared_slab_verify(s.get()));
		give(s.get(), slots);
		ASSERT_TRUE(tn_shared_slab_verify(s.get()));
	}
}

TEST(shared_slab, slots_are_aligned_disjoint_and_whole) {
	for (size_t align : {size_t{1}, size_t{8}, size_t{16}, size_t{64}, size_t{4096}, 64 * kib})
		for (size_t size :
			{1u, 7u, 8u, 9u, 16u, 24u, 33u, 48u, 100u, 500u, 1000u, 4095u, 4096u, 5000u, 70000u})
			use_slots_of(size, align);
}

TEST(shared_slab, the_largest_alignment) {
	shared_slab_owner s = make_shared_slab(10, TN_ALIGN_MAX);
	ASSERT_NE(s, nullptr);
	std::vector<void *> slots = take(s.get(), 5);
	for (void *p : slots)
		EXPECT_TRUE(aligned_to(p, TN_ALIGN_MAX));
	EXPECT_EQ(tn_shared_slab_slot_size(s.get()), TN_ALIGN_MAX);
	EXPECT_TRUE(disjoint(slots, TN_ALIGN_MAX));
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

/* More slabs than a thread's inlined calls know at a time. */
TEST(shared_slab, many_slabs_at_once) {
	std::vector<shared_slab_owner> slabs;
	std::vector<tn_local *> handles;
	for (size_t i = 0; i < 300; i++) {
		slabs.push_back(make_shared_slab(16 + i));
		ASSERT_NE(slabs.back(), nullptr);
		handles.push_back(tn_shared_slab_local(slabs.back().get()));
	}
	for (size_t round = 1; round <= 4; round++)
		for (size_t i = 0; i < slabs.size(); i++) {
			fill(tn_shared_slab_alloc(slabs[i].get()), 16 + i, i);
			ASSERT_EQ(tn_shared_slab_in_use(slabs[i].get()), round);
			ASSERT_EQ(tn_shared_slab_local(slabs[i].get()), handles[i]);
		}
	for (size_t i = 0; i < slabs.size(); i += 2)
		slabs[i].reset();
	for (size_t i = 0; i < slabs.size(); i++)
		if (slabs[i] != nullptr) {
			EXPECT_EQ(tn_shared_slab_in_use(slabs[i].get()), 4u);
			EXPECT_TRUE(tn_shared_slab_verify(slabs[i].get()));
		}
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

/* ---- order ---- */

TEST(shared_slab, last_in_first_out) {
	for (size_t count : {1u, 2u, 31u, 32u, 62u, 63u, 127u, 508u, 509u, 1016u, 1017u, 20000u}) {
		shared_slab_owner s = make_shared_slab(32);
		std::vector<void *> slots = take(s.get(), count);
		shuffle(slots, count);
		give(s.get(), slots);
		size_t wrong = 0;
		for (size_t i = count; i-- > 0;)
			wrong += tn_shared_slab_alloc(s.get()) != slots[i];
		if (debug_mode) {
			EXPECT_EQ(wrong, count) << "debug does not reuse while the quarantine lasts";
		} else {
			EXPECT_EQ(wrong, 0u) << count;
		}
	}
}

TEST(shared_slab, a_batch_is_freed_in_order) {
	shared_slab_owner s = make_shared_slab(32);
	std::vector<void *> slots = take(s.get(), 1000);
	tn_shared_slab_free_batch(s.get(), slots.data(), slots.size());
	EXPECT_EQ(tn_shared_slab_in_use(s.get()), 0u);
	EXPECT_EQ(tn_shared_slab_alloc(s.get()) == slots.back(), !debug_mode);
}

TEST(shared_slab, fresh_slots_lie_in_order) {
	shared_slab_owner s = make_shared_slab(64);
	std::vector<void *> slots = take(s.get(), 200);
	size_t ascending = 0;
	for (size_t i = 1; i < slots.size(); i++)
		ascending += slots[i] > slots[i - 1];
	EXPECT_GT(ascending, 150u);
}

/* ---- batches ---- */

TEST(shared_slab, batches_of_every_size) {
	shared_slab_owner s = make_shared_slab(24, 8);
	std::vector<void *> slots(1200);
	for (size_t count = 0; count <= 1200; count += debug_mode ? 41 : count < 600 ? 1 : 53) {
		std::fill(slots.begin(), slots.end(), nullptr);
		ASSERT_TRUE(tn_shared_slab_alloc_batch(s.get(), slots.data(), count));
		ASSERT_EQ(tn_shared_slab_in_use(s.get()), count);
		std::set<void *> unique(slots.begin(), slots.begin() + static_cast<std::ptrdiff_t>(count));
		ASSERT_EQ(unique.size(), count);
		ASSERT_EQ(unique.count(nullptr), 0u);
		ASSERT_TRUE(std::all_of(slots.begin() + static_cast<std::ptrdiff_t>(count), slots.end(),
			[](void *p) { return p == nullptr; }));
		for (size_t i = 0; i < count; i++)
			fill(slots[i], 24, i);
		for (size_t i = 0; i < count; i++)
			ASSERT_TRUE(filled(slots[i], 24, i));
		tn_shared_slab_free_batch(s.get(), slots.data(), count);
		ASSERT_EQ(tn_shared_slab_in_use(s.get()), 0u);
		if (count % 50 == 0 || debug_mode) {
			ASSERT_TRUE(tn_shared_slab_verify(s.get()));
		}
	}
}

TEST(shared_slab, batch_is_all_or_nothing) {
	ledger books;
	tn_shared_slab_options options = with_source(books);
	options.limit_bytes = 3 * default_chunk;
	shared_slab_owner s = make_shared_slab(100, 0, options);
	std::vector<void *> all = exhaust(s.get());
	size_t capacity = all.size();
	give(s.get(), all);
	ASSERT_GT(capacity, 2u);
	std::vector<void *> slots(capacity + 500);
	for (size_t live : {size_t{0}, size_t{1}, capacity / 2, capacity - 1, capacity}) {
		std::vector<void *> held = take(s.get(), live);
		for (size_t count = capacity - live + 1; count < capacity - live + 400; count += 57) {
			EXPECT_REFUSED(tn_shared_slab_alloc_batch(s.get(), slots.data(), count), ENOMEM);
			ASSERT_EQ(tn_shared_slab_in_use(s.get()), live);
			ASSERT_TRUE(tn_shared_slab_verify(s.get()));
		}
		ASSERT_TRUE(tn_shared_slab_alloc_batch(s.get(), slots.data(), capacity - live))
			<< "nothing was lost";
		ASSERT_EQ(tn_shared_slab_in_use(s.get()), capacity);
		tn_shared_slab_free_batch(s.get(), slots.data(), capacity - live);
		give(s.get(), held);
	}
}

TEST(shared_slab, free_batch_skips_null) {
	shared_slab_owner s = make_shared_slab(40);
	std::vector<void *> slots = take(s.get(), 300);
	for (size_t i = 0; i < slots.size(); i += 3) {
		tn_shared_slab_free(s.get(), slots[i]);
		slots[i] = nullptr;
	}
	tn_shared_slab_free_batch(s.get(), slots.data(), slots.size());
	EXPECT_EQ(tn_shared_slab_in_use(s.get()), 0u);
	EXPECT_TRUE(tn_shared_slab_verify(s.get()));
}

/* ---- what is touched, and what it holds ---- */

TEST(shared_slab, one_object_does_not_touch_the_whole_chunk) {
	mapped_source source;
	tn_shared_slab_options options = {};
	options.source = &source.source;
	options.chunk_bytes = 4 * mib;
	shared_slab_owner s = make_shared_slab(64, 0, options);
	void *p = tn_shared_slab_alloc(s.get());
	ASSERT_NE(p, nullptr);
	std::memset(p, 1, 64);
	if (!debug_mode) {
		EXPECT_LE(source.resident_pages(), 40u) << "of 1024: the record, a magazine, bits, states";
	}
	EXPECT_GE(stats_of(s.get()).committed_bytes, 4 * mib);
}

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

TEST(shared_slab, contents_after_free) {
	shared_slab_owner s = make_shared_slab(256);
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

TEST(shared_slab, what_is_written_to_free_slots_misleads_nobody) {
	if (debug_mode)
		GTEST_SKIP() << "free slots are inaccessible there";
	shared_slab_owner s = make_shared_slab(48);
	std::vector<void *> slots = take(s.get(), 5000);
	give(s.get(), slots);
	tn_shared_slab_flush(s.get());
	for (void *p : slots)
		std::memset(p, 0xff, tn_shared_slab_slot_size(s.get()));
	EXPECT_TRUE(tn_shared_slab_verify(s.get()));
	std::vector<void *> again = take(s.get(), 5000);
	EXPECT_TRUE(disjoint(again, 48));
	for (void *p : again)
		EXPECT_TRUE(tn_shared_slab_owns(s.get(), p));
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
	tn_shared_slab_options options() {
		tn_shared_slab_options o = {};
		o.init = build;
		o.fini = take_apart;
		o.ctx = this;
		return o;
	}
	std::set<void *> built;
	size_t calls = 0, inits = 0, finis = 0;
	size_t fail_from = SIZE_MAX, fail_count = 0;
};

TEST(shared_slab, slots_are_built_once_and_keep_their_state) {
	builder b;
	{
		shared_slab_owner s = make_shared_slab(64, 0, b.options());
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
				tn_shared_slab_flush(s.get());
			slots = take(s.get(), 1000);
		}
		/* Debug builds others while the freed ones are in quarantine. */
		if (!debug_mode) {
			EXPECT_EQ(b.inits, built);
			for (void *p : slots)
				EXPECT_EQ(static_cast<char *>(p)[1], 0x55) << "what the user left in it survives";
			EXPECT_EQ(b.finis, 0u);
		}
		EXPECT_TRUE(tn_shared_slab_verify(s.get()));
	}
	EXPECT_EQ(b.finis, b.inits);
	EXPECT_TRUE(b.built.empty());
}

TEST(shared_slab, building_is_lazy) {
	builder b;
	shared_slab_owner s = make_shared_slab(64, 0, b.options());
	tn_shared_slab_free(s.get(), tn_shared_slab_alloc(s.get()));
	EXPECT_GE(b.inits, 1u);
	EXPECT_LE(b.inits, 64u);
}

TEST(shared_slab, trim_takes_apart_what_goes_back) {
	builder b;
	shared_slab_owner s = make_shared_slab(64, 0, b.options());
	std::vector<void *> slots = take(s.get(), 3000);
	void *kept = slots.back();
	slots.pop_back();
	give(s.get(), slots);
	EXPECT_GT(tn_shared_slab_trim(s.get()), 0u);
	EXPECT_EQ(b.built.size(), b.inits - b.finis);
	EXPECT_EQ(b.built.count(kept), 1u);
	EXPECT_LE(b.built.size(), 1100u) << "one chunk of slots";
	take(s.get(), 3000);
	EXPECT_TRUE(tn_shared_slab_verify(s.get()));
}

/* Allocates until the limit, through failures of init; returns how many slots there were. */
size_t exhaust_with_failing_init(builder &b, tn_shared_slab *s) {
	std::vector<void *> slots;
	for (errno = 0;; errno = 0) {
		size_t calls = b.calls;
		if (void *p = tn_shared_slab_alloc(s)) {
			slots.push_back(p);
			continue;
		}
		EXPECT_EQ(errno, ENOMEM);
		EXPECT_TRUE(tn_shared_slab_verify(s));
		EXPECT_EQ(tn_shared_slab_in_use(s), slots.size());
		if (calls == b.calls)
			break;
		EXPECT_EQ(b.calls, calls + 1) << "init is called once for each alloc that fails";
	}
	EXPECT_TRUE(disjoint(slots, 64));
	for (void *p : slots)
		EXPECT_EQ(b.built.count(p), 1u);
	return slots.size();
}

TEST(shared_slab, a_failing_init_loses_nothing) {
	size_t capacity = 0;
	for (size_t n = 1; n <= 150; n++) {
		builder b;
		ledger books;
		tn_shared_slab_options options = b.options();
		options.source = books.source();
		options.limit_bytes = debug_mode ? 8 * page : 4 * page;
		options.chunk_bytes = page;
		b.fail_from = n;
		b.fail_count = 1 + n % 3;
		shared_slab_owner s = make_shared_slab(64, 0, options);
		ASSERT_NE(s, nullptr);
		size_t count = exhaust_with_failing_init(b, s.get());
		capacity = n == 1 ? count : capacity;
		ASSERT_GT(capacity, 30u);
		ASSERT_EQ(count, capacity) << "init failed at " << n;
		ASSERT_EQ(b.calls, count + (n <= capacity ? b.fail_count : 0)) << n;
	}
}

TEST(shared_slab, a_failing_init_leaves_a_batch_undone) {
	builder b;
	shared_slab_owner s = make_shared_slab(64, 0, b.options());
	std::vector<void *> slots(300);
	b.fail_from = 150;
	b.fail_count = 1;
	EXPECT_REFUSED(tn_shared_slab_alloc_batch(s.get(), slots.data(), slots.size()), ENOMEM);
	EXPECT_EQ(tn_shared_slab_in_use(s.get()), 0u);
	EXPECT_TRUE(tn_shared_slab_verify(s.get()));
	EXPECT_EQ(b.built.size(), b.inits - b.finis);
	ASSERT_TRUE(tn_shared_slab_alloc_batch(s.get(), slots.data(), slots.size()));
	for (void *p : slots)
		EXPECT_EQ(b.built.count(p), 1u);
}

/* ---- looking ---- */

void note_slot(void *slot, void *ctx) {
	EXPECT_TRUE(static_cast<std::set<void *> *>(ctx)->insert(slot).second) << "visited twice";
}

TEST(shared_slab, each_visits_the_live_slots) {
	shared_slab_owner s = make_shared_slab(40);
	std::vector<void *> slots = take(s.get(), 3000);
	std::set<void *> live(slots.begin(), slots.end());
	for (size_t stride : {7u, 3u, 2u, 1u}) {
		std::set<void *> seen;
		tn_shared_slab_each(s.get(), note_slot, &seen);
		EXPECT_EQ(seen, live);
		for (size_t i = 0; i < slots.size(); i += stride)
			if (live.erase(slots[i]) == 1)
				tn_shared_slab_free(s.get(), slots[i]);
		if (stride == 3)
			tn_shared_slab_flush(s.get());
	}
	std::set<void *> seen;
	tn_shared_slab_each(s.get(), note_slot, &seen);
	EXPECT_TRUE(seen.empty());
	EXPECT_TRUE(tn_shared_slab_verify(s.get()));
}

TEST(shared_slab, owns_carved_slots_only) {
	shared_slab_owner s = make_shared_slab(48), other = make_shared_slab(48);
	int on_stack = 0;
	std::unique_ptr<char[]> heap(new char[100]);
	EXPECT_FALSE(tn_shared_slab_owns(s.get(), &on_stack));
	char *p = static_cast<char *>(tn_shared_slab_alloc(s.get()));
	char *q = static_cast<char *>(tn_shared_slab_alloc(other.get()));
	EXPECT_TRUE(tn_shared_slab_owns(s.get(), p));
	EXPECT_TRUE(tn_shared_slab_owns(s.get(), p + 47));
	EXPECT_FALSE(tn_shared_slab_owns(s.get(), q));
	EXPECT_FALSE(tn_shared_slab_owns(other.get(), p));
	EXPECT_FALSE(tn_shared_slab_owns(s.get(), nullptr));
	EXPECT_FALSE(tn_shared_slab_owns(s.get(), &on_stack));
	EXPECT_FALSE(tn_shared_slab_owns(s.get(), heap.get()));
	EXPECT_FALSE(tn_shared_slab_owns(s.get(), s.get()));
	EXPECT_FALSE(tn_shared_slab_owns(s.get(), reinterpret_cast<void *>(SIZE_MAX)));
	EXPECT_FALSE(tn_shared_slab_owns(s.get(), reinterpret_cast<void *>(16)));
	EXPECT_FALSE(tn_shared_slab_owns(s.get(), p + 60 * kib)) << "not carved yet";
	tn_shared_slab_free(s.get(), p);
	EXPECT_TRUE(tn_shared_slab_owns(s.get(), p)) << "live or free";
	tn_shared_slab_trim(s.get());
	EXPECT_FALSE(tn_shared_slab_owns(s.get(), p)) << "given back";
}

TEST(shared_slab, owns_every_slot_at_every_byte) {
	shared_slab_owner s = make_shared_slab(40, 8);
	for (void *p : take(s.get(), 3000))
		for (size_t i = 0; i < 40; i++)
			ASSERT_TRUE(tn_shared_slab_owns(s.get(), static_cast<char *>(p) + i));
}

TEST(shared_slab, figures_are_exact) {
	ledger books;
	shared_slab_owner s = make_shared_slab(100, 0, with_source(books));
	std::vector<void *> slots;
	dice d(5);
	size_t peak = 0;
	for (int i = 0; i < 4000; i++) {
		if (slots.empty() || d.below(5) < 3)
			slots.push_back(tn_shared_slab_alloc(s.get()));
		else {
			std::swap(slots[d.below(slots.size())], slots.back());
			tn_shared_slab_free(s.get(), slots.back());
			slots.pop_back();
		}
		tn_stats stats = stats_of(s.get());
		ASSERT_EQ(stats.live_count, slots.size());
		ASSERT_EQ(tn_shared_slab_in_use(s.get()), slots.size());
		ASSERT_EQ(stats.committed_bytes, books.held_bytes());
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

} /* namespace */
