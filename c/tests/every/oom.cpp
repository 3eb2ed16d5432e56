/* The n-th call to the source fails, for n = 1, 2, ... until a run is clean; then it and all calls
 * after it. */
#include "../heap/use.h"
#include "crowd.h"

#include <algorithm>

#include <sys/resource.h>

namespace {

/* A script runs to its end whatever fails. A call that failed is tried once more. */
class script {
public:
	explicit script(const tn_source *source) : source(source) {
	}

	void run_arena(bool placed) {
		tn_arena_options options = {};
		options.source = source;
		options.chunk_bytes = 8 * kib;
		options.chunk_bytes_max = 64 * kib;
		tn_arena storage;
		tn_arena *a = nullptr;
		auto create = [&] {
			a = placed ? (tn_arena_init(&storage, &options) ? &storage : nullptr)
			           : tn_arena_create(&options);
			return a != nullptr;
		};
		if (!attempt(create))
			return;
		for (int cycle = 0; cycle < 3; cycle++) {
			use_arena(a);
			check(a);
			blocks.clear();
			tn_arena_reset(a);
			check(a);
			if (cycle == 1)
				tn_arena_trim(a);
			check(a);
		}
		placed ? tn_arena_deinit(a) : tn_arena_destroy(a);
	}

	void run_slab(size_t size, size_t many) {
		tn_slab_options options = {};
		options.source = source;
		options.chunk_bytes = 8 * kib;
		options.retain_chunks = 1;
		options.init = build;
		options.fini = take_apart;
		options.ctx = this;
		tn_slab *s = nullptr;
		auto create = [&] { return (s = tn_slab_create(size, 0, &options)) != nullptr; };
		if (!attempt(create))
			return;
		for (int cycle = 0; cycle < 3; cycle++) {
			use_slab(s, size, many);
			slots.clear();
			tn_slab_reset(s);
			check(s, size);
		}
		use_slab(s, size, many);
		tn_slab_destroy(s);
		slots.clear();
		EXPECT_EQ(built, 0u);
	}

	void run_shared_slab(size_t size, size_t many, size_t magazine_slots) {
		tn_shared_slab_options options = {};
		options.source = source;
		options.chunk_bytes = 8 * kib;
		options.magazine_slots = magazine_slots;
		options.init = build;
		options.fini = take_apart;
		options.ctx = this;
		tn_shared_slab *s = nullptr;
		auto create = [&] { return (s = tn_shared_slab_create(size, 0, &options)) != nullptr; };
		if (!attempt(create))
			return;
		for (int cycle = 0; cycle < 2; cycle++) {
			use_shared_slab(s, size, many);
			tn_shared_slab_free_batch(s, slots.data(), slots.size() / 2);
			slots.erase(slots.begin(), slots.begin() + static_cast<std::ptrdiff_t>(slots.size() / 2));
			check(s, size);
		}
		tn_shared_slab_destroy(s);
		slots.clear();
		EXPECT_EQ(built, 0u);
	}

	void run_heap(bool zero) {
		tn_heap_options options = {};
		options.source = source;
		options.zero = zero;
		options.expendable = true;
		tn_heap *h = nullptr;
		auto create = [&] { return (h = tn_heap_create(&options)) != nullptr; };
		if (!attempt(create))
			return;
		for (int cycle = 0; cycle < 3; cycle++) {
			for (size_t i = 0; i < 24; i++)
				one_block(h, nullptr, i * i * 16);
			for (size_t i = 0; i < blocks.size(); i += 4)
				one_block(h, &blocks[i], blocks[i].size * 3 + 10);
			for (size_t i = 0; i < blocks.size(); i += 3) {
				tn_heap_free(h, blocks[i].p);
				blocks[i] = blocks.back();
				blocks.pop_back();
			}
			cycle == 0 ? static_cast<void>(tn_heap_trim(h)) : check(h);
			if (cycle == 1) {
				tn_heap_reset(h);
				blocks.clear();
			}
		}
		tn_heap_destroy(h);
		blocks.clear();
	}

	/* A root and a child with everything that a scope can own. */
	void run_scope() {
		tn_scope_options options = {};
		options.source = source;
		tn_scope *root = nullptr, *child = nullptr;
		if (!attempt([&] { return (root = tn_scope_create(nullptr, "root", &options)) != nullptr; }))
			return;
		for (int cycle = 0; cycle < 3; cycle++) {
			use_scope(root);
			if (attempt([&] { return (child = tn_scope_create(root, "child", nullptr)) != nullptr; }))
				use_scope(child);
			if (cycle == 1)
				tn_scope_reset(root);
			EXPECT_TRUE(tn_scope_verify(root));
		}
		tn_scope_destroy(root);
		EXPECT_EQ(deferred, 0u);
	}

	/* A pool takes its memory from the page layer; what fails here is init. */
	void run_pool(size_t size, size_t many) {
		tn_pool_options options = {};
		options.init = build_or_fail;
		options.fini = take_apart;
		options.ctx = this;
		options.max_idle_objects = many / 2;
		tn_pool *p = nullptr;
		auto create = [&] { return (p = tn_pool_create(size, 0, &options)) != nullptr; };
		if (!attempt(create))
			return;
		for (int cycle = 0; cycle < 3; cycle++) {
			for (size_t i = 0; i < many; i++)
				one_object(p, size);
			for (size_t i = 0; i < slots.size(); i++)
				EXPECT_TRUE(all_bytes(slots[i], 8, 0x42));
			while (slots.size() > many / 4) {
				tn_pool_put(p, slots.back());
				slots.pop_back();
			}
			check(p, size);
			cycle == 0 ? tn_pool_flush(p) : static_cast<void>(tn_pool_trim(p));
			check(p, size);
		}
		tn_pool_destroy(p);
		slots.clear();
		EXPECT_EQ(built, 0u);
	}

	size_t refused = 0;
	size_t init_calls = 0, fail_from = SIZE_MAX, fail_count = 0, init_failures = 0;

private:
	struct piece {
		void *p;
		size_t size;
	};

	/* Whether `call` succeeded, at the second attempt at the latest. */
	template <typename F> bool attempt(F call) {
		for (int turn = 0; turn < 2; turn++) {
			errno = 0;
			if (call())
				return true;
			EXPECT_EQ(errno, ENOMEM);
			refused++;
		}
		return false;
	}

	static std::string figures(const tn_arena *a) {
		return to_text(stats_of(a));
	}

	template <typename F> void block(tn_arena *a, size_t size, F call) {
		void *p = nullptr;
		bool had = attempt([&] {
			std::string before = figures(a);
			p = call();
			if (p == nullptr) {
				EXPECT_EQ(figures(a), before) << "a failure changed something";
				check(a);
			}
			return p != nullptr;
		});
		if (!had)
			return;
		blocks.push_back({p, size});
		fill(p, size, size);
	}

	void use_arena(tn_arena *a) {
		for (size_t i = 0; i < 30; i++)
			block(a, 100 + i, [&] { return tn_arena_alloc(a, 100 + i, 8); });
		block(a, 40000, [&] { return tn_arena_alloc(a, 40000, 16); });
		block(a, 5000, [&] { return tn_arena_alloc(a, 5000, 4096); });
		tn_checkpoint mark = tn_arena_mark(a);
		size_t kept = blocks.size();
		block(a, 24 * 100, [&] { return static_cast<void *>(TN_NEW_ARRAY(a, char, 24 * 100)); });
		block(a, 4096, [&] { return tn_arena_copy(a, text, 4096); });
		block(a, 12001, [&] { return static_cast<void *>(tn_arena_printf(a, "%*d", 12000, 1)); });
		check(a);
		tn_arena_rewind(a, mark);
		blocks.resize(kept);
		check(a);
		grow_last(a);
		for (size_t i = 0; i < 20; i++)
			block(a, 1500, [&] { return tn_arena_alloc(a, 1500, 64); });
	}

	/* Realloc up through several chunks, then down. */
	void grow_last(tn_arena *a) {
		block(a, 64, [&] { return tn_arena_alloc(a, 64, 16); });
		if (blocks.empty())
			return;
		for (size_t size : {size_t{200}, size_t{3000}, size_t{20000}, 150 * kib, size_t{50}}) {
			piece &last = blocks.back();
			void *p = nullptr;
			if (!attempt(
					[&] { return (p = tn_arena_realloc(a, last.p, last.size, size, 16)) != nullptr; }))
				continue;
			EXPECT_TRUE(filled(p, std::min(last.size, size), last.size));
			last = {p, size};
			fill(p, size, size);
		}
		if (tn_arena_resize(a, blocks.back().p, blocks.back().size, 20)) {
			blocks.back().size = 20;
			fill(blocks.back().p, 20, 20);
		}
	}

	void check(const tn_arena *a) {
		EXPECT_TRUE(tn_arena_verify(a));
		for (const piece &b : blocks)
			EXPECT_TRUE(filled(b.p, b.size, b.size));
	}

	static bool build(void *p, void *ctx) {
		static_cast<script *>(ctx)->built++;
		std::memset(p, 0x42, 8);
		return true;
	}
	static void take_apart(void *p, void *ctx) {
		static_cast<script *>(ctx)->built--;
		EXPECT_TRUE(all_bytes(p, 8, 0x42));
	}

	static void run_deferred(void *ctx) {
		static_cast<script *>(ctx)->deferred--;
	}

	template <typename F> bool change(tn_scope *s, F call) {
		return attempt([&] {
			std::string before = to_text(stats_of(s));
			bool done = call();
			int code = errno;
			if (!done) {
				EXPECT_EQ(to_text(stats_of(s)), before) << "a failure changed something";
			}
			EXPECT_TRUE(tn_scope_verify(s));
			errno = code;
			return done;
		});
	}

	void use_scope(tn_scope *s) {
		deferred += change(s, [&] { return tn_scope_defer(s, run_deferred, this); });
		for (size_t size : {size_t{100}, size_t{3000}, 20 * kib, 100 * kib, size_t{3000}})
			change(s, [&] { return tn_scope_alloc(s, size, 8) != nullptr; });
		change(s, [&] { return tn_scope_printf(s, "%*d", 12000, 1) != nullptr; });
		change(s, [&] { return tn_scope_arena(s, nullptr) != nullptr; });
		tn_slab *slab = nullptr;
		if (change(s, [&] { return (slab = tn_scope_slab(s, 40, 0, nullptr)) != nullptr; }))
			attempt([&] { return tn_slab_alloc(slab) != nullptr; });
		tn_heap *heap = nullptr;
		if (change(s, [&] { return (heap = tn_scope_heap(s, nullptr)) != nullptr; }))
			attempt([&] { return tn_heap_alloc(heap, 1000, 0) != nullptr; });
		deferred += change(s, [&] { return tn_scope_defer(s, run_deferred, this); });
	}

	void use_slab(tn_slab *s, size_t size, size_t many) {
		for (size_t i = 0; i < many; i++)
			one_slot(s, size);
		batch(s, size, many / 6);
		batch(s, size, many * 2);
		check(s, size);
		for (size_t i = 0; i < slots.size(); i += 2)
			tn_slab_free(s, slots[i]);
		std::vector<void *> kept;
		for (size_t i = 1; i < slots.size(); i += 2)
			kept.push_back(slots[i]);
		slots = kept;
		check(s, size);
		tn_slab_trim(s);
		check(s, size);
		batch(s, size, many / 3);
		tn_slab_free_batch(s, slots.data(), slots.size() / 2);
		slots.erase(slots.begin(), slots.begin() + static_cast<std::ptrdiff_t>(slots.size() / 2));
		check(s, size);
	}

	void keep(void *p, size_t size) {
		fill(static_cast<char *>(p) + 8, size - 8, address(p));
		slots.push_back(p);
	}

	void one_slot(tn_slab *s, size_t size) {
		void *p = nullptr;
		if (attempt([&] { return (p = tn_slab_alloc(s)) != nullptr; }))
			keep(p, size);
		else
			check(s, size);
	}

	void batch(tn_slab *s, size_t size, size_t count) {
		std::vector<void *> more(count);
		bool had = attempt([&] {
			bool all = tn_slab_alloc_batch(s, more.data(), count);
			if (!all)
				check(s, size);
			return all;
		});
		if (!had)
			return;
		for (void *p : more)
			keep(p, size);
	}

	void check(tn_slab *s, size_t size) {
		EXPECT_TRUE(tn_slab_verify(s));
		EXPECT_EQ(tn_slab_in_use(s), slots.size());
		for (void *p : slots)
			EXPECT_TRUE(filled(static_cast<char *>(p) + 8, size - 8, address(p)));
	}

	void use_shared_slab(tn_shared_slab *s, size_t size, size_t many) {
		for (size_t i = 0; i < many; i++)
			one_slot(s, size);
		batch(s, size, many / 6);
		batch(s, size, many * 2);
		check(s, size);
		auto use = [&] {
			for (size_t i = 0; i < many / 2; i++)
				one_slot(s, size);
			free_every_other(s);
		};
		/* When address space runs out, a thread may get none either. */
		source != nullptr ? std::thread(use).join() : use();
		check(s, size);
		tn_shared_slab_trim(s);
		check(s, size);
		batch(s, size, many / 3);
		free_every_other(s);
		tn_shared_slab_flush(s);
		check(s, size);
	}

	void free_every_other(tn_shared_slab *s) {
		std::vector<void *> kept;
		for (size_t i = 0; i < slots.size(); i++)
			if (i % 2 == 0)
				tn_shared_slab_free(s, slots[i]);
			else
				kept.push_back(slots[i]);
		slots = kept;
	}

	void one_slot(tn_shared_slab *s, size_t size) {
		void *p = nullptr;
		tn_local *l = slots.size() % 2 == 0 ? tn_shared_slab_local(s) : nullptr;
		auto alloc = [&] {
			p = l == nullptr ? tn_shared_slab_alloc(s) : tn_shared_slab_local_alloc(l);
			return p != nullptr;
		};
		if (attempt(alloc))
			keep(p, size);
		else
			check(s, size);
	}

	void batch(tn_shared_slab *s, size_t size, size_t count) {
		std::vector<void *> more(count);
		bool had = attempt([&] {
			bool all = tn_shared_slab_alloc_batch(s, more.data(), count);
			if (!all)
				check(s, size);
			return all;
		});
		for (size_t i = 0; had && i < count; i++)
			keep(more[i], size);
	}

	void check(tn_shared_slab *s, size_t size) {
		EXPECT_TRUE(tn_shared_slab_verify(s));
		EXPECT_EQ(tn_shared_slab_in_use(s), slots.size());
		for (void *p : slots)
			EXPECT_TRUE(filled(static_cast<char *>(p) + 8, size - 8, address(p)));
	}

	static bool build_or_fail(void *p, void *ctx) {
		script *s = static_cast<script *>(ctx);
		s->init_calls++;
		if (s->init_calls < s->fail_from || s->init_calls - s->fail_from >= s->fail_count)
			return build(p, ctx);
		s->init_failures++;
		return false;
	}

	void one_object(tn_pool *p, size_t size) {
		void *object = nullptr;
		if (attempt([&] { return (object = tn_pool_get(p)) != nullptr; }))
			keep(object, size);
		else
			check(p, size);
	}

	/* A new block, or `old` of another size. */
	void one_block(tn_heap *h, piece *old, size_t size) {
		void *p = nullptr;
		bool had = attempt([&] {
			std::string before = to_text(figures_of(h));
			p = tn_heap_realloc(h, old == nullptr ? nullptr : old->p, size);
			/* Debug gives up its quarantine before a call fails. */
			EXPECT_TRUE(p != nullptr || debug_mode || to_text(figures_of(h)) == before);
			return p != nullptr;
		});
		if (!had)
			return check(h);
		fill(p, size, size);
		if (old == nullptr)
			blocks.push_back({p, size});
		else
			*old = {p, size};
	}

	void check(const tn_heap *h) {
		EXPECT_TRUE(tn_heap_verify(h));
		EXPECT_EQ(figures_of(h).live_count, blocks.size());
		for (const piece &b : blocks)
			EXPECT_TRUE(filled(b.p, b.size, b.size));
	}

	void check(tn_pool *p, size_t size) {
		tn_stats stats = stats_of(p);
		EXPECT_EQ(stats.live_count, slots.size());
		EXPECT_EQ(stats.live_bytes + stats.cached_bytes, built * round_up(size, 16));
	}

	const tn_source *source;
	std::vector<piece> blocks;
	std::vector<void *> slots;
	size_t built = 0, deferred = 0;
	char text[4096] = {};
};

/* Fails call n and the `count` - 1 after it, for n = 1, 2, ... until none fails. An optional
 * acquisition, as for a magazine or to spare the quarantine, may fail unseen. */
template <typename F> void fail_each_call(size_t count, F run, bool always_told = true) {
	for (size_t n = 1;; n++) {
		SCOPED_TRACE(
			"call " + std::to_string(n) + " fails, and so do " + std::to_string(count - 1) + " more");
		ledger books;
		books.fail(n, count);
		script s(books.source());
		run(s);
		ASSERT_EQ(books.held_count(), 0u);
		ASSERT_EQ(books.wrong(), 0u);
		ASSERT_TRUE(s.refused == 0 || books.failures() > 0) << "refused without a reason";
		ASSERT_TRUE(s.refused > 0 || books.failures() == 0 || !always_told)
			<< "a failure that nobody was told of";
		if (::testing::Test::HasFailure())
			return;
		if (books.failures() == 0) {
			EXPECT_GT(n, 3u) << "the script hardly needs the source";
			return;
		}
	}
}

const size_t counts[] = {1, 2, 3, ledger::never};

TEST(oom, arena_placed) {
	for (size_t count : counts)
		fail_each_call(count, [](script &s) { s.run_arena(true); });
}

TEST(oom, arena_created) {
	for (size_t count : counts)
		fail_each_call(count, [](script &s) { s.run_arena(false); });
}

TEST(oom, slab_of_small_slots) {
	for (size_t count : counts)
		fail_each_call(count, [](script &s) { s.run_slab(40, 300); });
}

TEST(oom, slab_of_large_slots) {
	for (size_t count : counts)
		fail_each_call(count, [](script &s) { s.run_slab(3000, 12); });
}

/* A class whose usual chunk is refused takes another one, so a failure may pass unseen. */
TEST(oom, heap) {
	for (size_t count : counts)
		fail_each_call(count, [&](script &s) { s.run_heap(count == 2); }, false);
}

/* The page layer itself, with `left` bytes of address space. */
int run_with_address_space(size_t left) {
	rlimit most = {};
	most.rlim_cur = most.rlim_max = address_space_bytes() + left;
	if (setrlimit(RLIMIT_AS, &most) != 0)
		return 2;
	script s(nullptr);
	s.run_arena(true);
	s.run_arena(false);
	s.run_slab(40, 300);
	s.run_slab(3000, 300);
	s.run_shared_slab(3000, 30, 0);
	s.run_pool(3000, 30);
	s.run_heap(false);
	s.run_scope();
	tn_arena_options options = {};
	options.reserve_bytes = 512 * mib;
	arena_owner reserved = make_arena(options);
	if (reserved == nullptr && errno != ENOMEM)
		return 3;
	return ::testing::Test::HasFailure() ? 4 : s.refused > 0 ? 10 : 11;
}

TEST(oom, page_layer_under_a_limit_of_address_space) {
	if (sanitized)
		GTEST_SKIP() << "the sanitizer's own memory fails first";
	bool refused = false, served = false;
	const size_t step = stress_seconds() > 0 ? 4 * page : 20 * page;
	/* Room for a large malloc, since the assertions need memory themselves. */
	for (size_t left = 256 * kib; left <= 512 * mib; left += left < 4 * mib ? step : left / 4) {
		int status = in_child([left] { return run_with_address_space(left); }, 30);
		ASSERT_TRUE(exited_with(status, 10) || exited_with(status, 11))
			<< left << " bytes: status " << status;
		refused = refused || exited_with(status, 10);
		served = served || exited_with(status, 11);
	}
	EXPECT_TRUE(refused) << "no limit was tight enough";
	EXPECT_TRUE(served) << "no limit was wide enough";
}

/* Runs after the page layer's test, which needs a process that has reserved nothing yet. */

TEST(oom, scope) {
	for (size_t count : counts)
		fail_each_call(count, [](script &s) { s.run_scope(); }, false);
}

TEST(oom, shared_slab_of_small_slots) {
	for (size_t count : counts)
		for (size_t magazine_slots : {0, 8})
			fail_each_call(count, [&](script &s) { s.run_shared_slab(40, 80, magazine_slots); }, false);
}

TEST(oom, shared_slab_of_large_slots) {
	for (size_t count : counts)
		fail_each_call(count, [](script &s) { s.run_shared_slab(3000, 6, 2); }, false);
}

TEST(oom, pool) {
	for (size_t count : counts)
		for (size_t n = 1;; n++) {
			SCOPED_TRACE("init " + std::to_string(n) + " fails, and some more");
			script s(nullptr);
			s.fail_from = n;
			s.fail_count = count;
			s.run_pool(40, 40);
			ASSERT_EQ(s.refused, s.init_failures);
			if (HasFailure() || s.init_failures == 0) {
				EXPECT_GT(n, 40u);
				break;
			}
		}
}

TEST(oom, limit_reached_and_left_again) {
	tn_arena_options options = {};
	options.limit_bytes = 200 * kib;
	arena_owner a = make_arena(options);
	for (int round = 0; round < 50; round++) {
		while (tn_arena_alloc(a.get(), 1000, 16) != nullptr)
			continue;
		EXPECT_EQ(errno, ENOMEM);
		EXPECT_TRUE(tn_arena_verify(a.get()));
		tn_arena_reset(a.get());
		ASSERT_NE(tn_arena_alloc(a.get(), 1000, 16), nullptr);
	}
}

} /* namespace */
