/* Scopes and snapshots with many threads: shared roots, limits, readers of trees that come and go. */
#include "use.h"

#include "crowd.h"

#include <set>

#include <pthread.h>

namespace test_scope_threads {
namespace {

constexpr size_t crowd = 8;

/* Chunks from malloc, whose sum is watched, with the external bytes that threads report. */
class metered_source {
public:
	metered_source() : source{acquire, release, this} {
	}
	/* less() precedes a release and more() follows an acquisition, so the sum never exceeds the bytes
	 * that are held. */
	void more(size_t bytes) {
		size_t now = held_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
		size_t most = most_.load(std::memory_order_relaxed);
		while (now > most && !most_.compare_exchange_weak(most, now, std::memory_order_relaxed))
			continue;
	}
	void less(size_t bytes) {
		held_.fetch_sub(bytes, std::memory_order_relaxed);
	}
	size_t held() const {
		return held_;
	}
	size_t most() const {
		return most_;
	}

	const tn_source source;

private:
	static void *acquire(void *ctx, size_t size, size_t align) {
		void *p = nullptr;
		if (posix_memalign(&p, align < page ? page : align, size) != 0)
			return nullptr;
		static_cast<metered_source *>(ctx)->more(size);
		return p;
	}
	static void release(void *ctx, void *p, size_t size) {
		static_cast<metered_source *>(ctx)->less(size);
		std::free(p);
	}

	std::atomic<size_t> held_{0}, most_{0};
};

scope_owner shared_root(const char *name, const tn_source *source = nullptr) {
	tn_scope_options options = {};
	options.shared = true;
	options.source = source;
	return make_scope(name, options);
}

/* ---- limits ---- */

/* A thread's own scope below a shared root with limits. */
struct customer {
	customer(tn_scope *shared, metered_source &m, uint64_t seed) : root(shared), meter(m), d(seed) {
		options.chunk_bytes_max = TN_NONE;
		own = create_below(root, "own", options);
	}

	void external(size_t bytes) {
		if (bytes < said)
			meter.less(said - bytes);
		if (!tn_scope_external(own, bytes)) {
			EXPECT_EQ(errno, ENOMEM);
			EXPECT_GT(bytes, said);
			refused++;
			return;
		}
		if (bytes > said)
			meter.more(bytes - said);
		said = bytes;
	}

	void end_own() {
		meter.less(said);
		said = 0;
		d.one_in(2) ? tn_scope_reset(own) : renew();
	}

	void renew() {
		tn_scope_destroy(own);
		own = create_below(root, "own", options);
		ASSERT_NE(own, nullptr);
	}

	void step() {
		switch (d.below(16)) {
		case 0:
			return end_own();
		case 1:
		case 2:
			return external(d.below(60 * kib));
		case 3: {
			tn_scope *child = create_below(own, "child", options);
			refused += tn_scope_alloc(child, d.below(40 * kib), 8) == nullptr;
			return d.one_in(2) ? tn_scope_destroy(child) : void();
		}
		case 4:
			refused += tn_scope_arena(own, nullptr) == nullptr;
			return;
		default:
			refused += tn_scope_alloc(own, d.below(4 * kib), 8) == nullptr;
		}
	}

	tn_scope *root, *own = nullptr;
	metered_source &meter;
	dice d;
	tn_scope_options options = {};
	size_t said = 0, refused = 0;
};

TEST(scope_threads, a_hard_limit_is_exact_under_eight_threads) {
	constexpr size_t hard_bytes = 512 * kib + 12345;
	constexpr size_t nearly = hard_bytes - 16 * kib;
	metered_source meter;
	scope_owner root = shared_root("root", &meter.source);
	tn_scope_limits limits = {};
	limits.hard_bytes = hard_bytes;
	ASSERT_TRUE(tn_scope_limit(root.get(), &limits));
	std::atomic<size_t> refused{0};
	in_crowd(crowd, [&](size_t i) {
		customer c(root.get(), meter, program_seed() + i);
		const size_t steps = times(10000000, 20000);
		for (size_t n = 0; n < steps || (n < 20 * steps && meter.most() <= nearly); n++)
			c.step();
		c.meter.less(c.said);
		tn_scope_external(c.own, 0);
		refused += c.refused;
	});
	EXPECT_LE(meter.most(), hard_bytes);
	EXPECT_GT(meter.most(), nearly);
	EXPECT_GT(refused, 1000u / (sanitized ? 10 : 1));
	EXPECT_TRUE(tn_scope_verify(root.get()));
	EXPECT_EQ(stats_below(root.get()).committed_bytes, meter.held());
	EXPECT_TRUE(tn_scope_external(root.get(), hard_bytes - meter.held()));
	EXPECT_REFUSED(tn_scope_external(root.get(), hard_bytes - meter.held() + 1), ENOMEM);
	tn_scope_reset(root.get());
	EXPECT_EQ(meter.held(), 0u);
	EXPECT_TRUE(tn_scope_external(root.get(), hard_bytes));
	EXPECT_REFUSED(tn_scope_external(root.get(), hard_bytes + 1), ENOMEM);
}

TEST(scope_threads, on_soft_is_called_by_one_of_those_that_go_above) {
	struct note {
		std::atomic<size_t> calls{0}, least{SIZE_MAX};
	} told;
	scope_owner root = shared_root("root");
	tn_scope_limits limits = {};
	limits.soft_bytes = 1000;
	limits.ctx = &told;
	limits.on_soft = [](tn_scope *, size_t held_bytes, void *ctx) {
		static_cast<note *>(ctx)->calls++;
		static_cast<note *>(ctx)->least = held_bytes;
	};
	ASSERT_TRUE(tn_scope_limit(root.get(), &limits));
	const size_t rounds = times(200000, 3000);
	rendezvous turn(3);
	in_crowd(3, [&](size_t i) {
		tn_scope *own = create_below(root.get());
		for (size_t n = 0; n < rounds; n++) {
			turn.meet();
			EXPECT_TRUE(tn_scope_external(own, 400 + i));
			turn.meet();
			EXPECT_EQ(told.calls, n + 1);
			EXPECT_GT(told.least, 1000u);
			turn.meet();
			EXPECT_TRUE(tn_scope_external(own, 300));
		}
	});
}

/* ---- shared roots ---- */

/* Scopes on their way from thread to thread. */
class cloakroom {
public:
	void leave(tn_scope *s) {
		std::lock_guard<std::mutex> hold(lock_);
		scopes_.push_back(s);
	}
	tn_scope *fetch(dice &d) {
		std::lock_guard<std::mutex> hold(lock_);
		if (scopes_.empty())
			return nullptr;
		std::swap(scopes_[d.below(scopes_.size())], scopes_.back());
		tn_scope *s = scopes_.back();
		scopes_.pop_back();
		return s;
	}
	size_t count() {
		std::lock_guard<std::mutex> hold(lock_);
		return scopes_.size();
	}

private:
	std::mutex lock_;
	std::vector<tn_scope *> scopes_;
};

/* Roots S and T; below them scopes s with children c, each of which has its own address in
 * its memory. */
struct two_roots {
	void plant(tn_scope *s) {
		auto *word = static_cast<tn_scope **>(tn_scope_alloc(s, sizeof(tn_scope *), 8));
		*word = s;
		ASSERT_TRUE(tn_scope_defer(s, harvest, word));
		planted++;
	}
	static void harvest(void *arg) {
		harvested += tn_scope_owns(*static_cast<tn_scope **>(arg), arg);
	}
	void step(dice &d) {
		tn_scope *root = d.one_in(2) ? first.get() : second.get();
		tn_scope *s = d.one_in(3) ? nullptr : room.fetch(d);
		if (s == nullptr) {
			tn_scope_options options = {};
			options.ident = "ident of s";
			s = create_below(root, "s", options);
			plant(s);
		}
		if (d.one_in(3))
			plant(create_below(s, "c"));
		if (d.one_in(3)) {
			EXPECT_TRUE(tn_scope_adopt(s, root));
			EXPECT_EQ(tn_scope_parent(s), root);
		}
		if (d.one_in(4))
			tn_scope_reset(s);
		if (d.one_in(3) || room.count() > 30)
			tn_scope_destroy(s);
		else
			room.leave(s);
	}

	scope_owner first = shared_root("S"), second = shared_root("T");
	cloakroom room;
	std::atomic<size_t> planted{0};
	static inline std::atomic<size_t> harvested{0};
};

TEST(scope_threads, children_of_shared_roots_come_and_go_on_any_thread) {
	two_roots both;
	both.harvested = 0;
	std::atomic<size_t> seen{0};
	in_crowd(4, [&](size_t i) {
		dice d(program_seed() + i);
		auto note = [](tn_scope *, void *ctx) { ++*static_cast<std::atomic<size_t> *>(ctx); };
		for (size_t n = times(3000000, 20000); n > 0; n--) {
			both.step(d);
			if (i == 0 && n % 16 == 0)
				tn_scope_each(both.first.get(), note, &seen);
		}
	});
	EXPECT_GT(seen, 100u);
	EXPECT_EQ(children_of(both.first.get()).size() + children_of(both.second.get()).size(),
		both.room.count());
	EXPECT_TRUE(tn_scope_verify(both.first.get()) && tn_scope_verify(both.second.get()));
	both.first.reset(), both.second.reset();
	EXPECT_EQ(both.harvested, both.planted);
}

TEST(scope_threads, a_tree_is_handed_from_thread_to_thread) {
	tn_scope *root = nullptr;
	for (size_t i = 0; i < 50; i++) {
		in_thread([&] {
			if (root == nullptr)
				root = tn_scope_create(nullptr, "root", nullptr);
			tn_scope *child = create_below(root);
			fill(tn_scope_alloc(child, 30000, 8), 30000, i);
			create_below(child);
			tn_slab_alloc(tn_scope_slab(child, 64, 0, nullptr));
		});
		in_thread([&] {
			EXPECT_TRUE(tn_scope_verify(root));
			if (i % 3 == 0)
				tn_scope_reset(root);
			if (i % 10 == 9)
				tn_scope_destroy(std::exchange(root, nullptr));
		});
	}
}

/* Memory that a thread keeps for its next scopes goes back when the thread ends. */
TEST(scope_threads, threads_that_end_keep_nothing) {
	auto one_each = [](size_t count) {
		for (size_t i = 0; i < count; i++)
			in_thread([] {
				scope_owner root = make_scope("root");
				create_below(root.get());
			});
	};
	one_each(100);
	size_t before = address_space_bytes();
	one_each(times(100000, 2000));
	if (!sanitized) {
		EXPECT_LT(address_space_bytes(), before + mib);
	}
}

pthread_key_t last_words;

/* Called at a thread's end in every round, also after the library has ended its state of the thread. */
void use_scopes_at_exit(void *left) {
	scope_owner root = make_scope("at exit");
	for (int i = 0; i < 50; i++)
		EXPECT_NE(tn_scope_alloc(create_below(root.get()), 100, 8), nullptr);
	uintptr_t rounds = reinterpret_cast<uintptr_t>(left) - 1;
	pthread_setspecific(last_words, reinterpret_cast<void *>(rounds));
}

TEST(scope_threads, scopes_work_to_the_end_of_a_thread) {
	ASSERT_EQ(pthread_key_create(&last_words, use_scopes_at_exit), 0);
	for (bool before : {true, false})
		in_thread([&] {
			if (before)
				make_scope("before");
			pthread_setspecific(last_words, reinterpret_cast<void *>(uintptr_t{3}));
		});
	pthread_key_delete(last_words);
	EXPECT_EQ(snapshot().size(), 1u);
}

/* ---- snapshots ---- */

/* Checks of a reader while scopes come and go. The names say what must be true. */
class critic {
public:
	void look() {
		depths_.clear();
		stable_ = 0;
		tn_stats_snapshot(visit, this);
	}
	size_t stable() const {
		return stable_;
	}

	size_t visited = 0;

private:
	static bool visit(const tn_listed *listed, void *ctx) {
		static_cast<critic *>(ctx)->judge(*listed);
		return !::testing::Test::HasFailure();
	}

	void judge(const tn_listed &l) {
		visited++;
		EXPECT_TRUE(depths_.emplace(l.id, l.depth).second) << l.stats.name << " twice";
		EXPECT_EQ(l.parent_id == 0, l.depth == 0);
		if (l.depth > 0) {
			auto parent = depths_.find(l.parent_id);
			ASSERT_NE(parent, depths_.end()) << l.stats.name << " without its parent";
			EXPECT_EQ(parent->second + 1, l.depth) << l.stats.name;
		}
		std::string name = l.stats.name;
		if (name == "S" || name == "T" || name == "root")
			expect(l, TN_KIND_SCOPE, 0, "");
		else if (name == "s")
			expect(l, TN_KIND_SCOPE, 1, "ident of s");
		else if (name == "c")
			expect(l, TN_KIND_SCOPE, 2, "");
		else if (name[0] == 'd')
			expect(l, TN_KIND_SCOPE, static_cast<unsigned>(std::stoul(name.substr(1))), "");
		else if (name == "stable")
			expect_stable(l);
		else if (name.find("slab ") == 0)
			expect_slab(l, std::stoul(name.substr(5)));
		else
			EXPECT_EQ(l.kind, TN_KIND_PAGES) << name;
	}

	static void expect(const tn_listed &l, tn_kind kind, unsigned depth, const char *ident) {
		EXPECT_EQ(l.kind, kind) << l.stats.name;
		EXPECT_EQ(l.depth, depth) << l.stats.name;
		EXPECT_STREQ(l.ident, ident) << l.stats.name;
		EXPECT_LE(l.stats.live_bytes, l.stats.committed_bytes) << l.stats.name;
	}

	void expect_stable(const tn_listed &l) {
		stable_++;
		EXPECT_EQ(l.stats.committed_bytes, l.stats.reserved_bytes);
		EXPECT_GT(l.stats.live_bytes, 0u);
		EXPECT_GE(l.stats.refills, 1u);
	}

	static void expect_slab(const tn_listed &l, size_t slot_bytes) {
		EXPECT_EQ(l.kind, TN_KIND_SLAB);
		/* An allocator is listed a moment before it publishes figures. */
		EXPECT_EQ(l.stats.slot_bytes, l.stats.committed_bytes == 0 ? 0 : slot_bytes);
		EXPECT_EQ(l.stats.live_bytes, l.stats.live_count * slot_bytes);
		EXPECT_EQ(l.stats.live_bytes + l.stats.cached_bytes, l.stats.slot_count * slot_bytes);
		EXPECT_LE(l.stats.slot_count * slot_bytes, l.stats.committed_bytes);
	}

	std::map<uint64_t, unsigned> depths_;
	size_t stable_ = 0;
};

/* The tree of one thread; scopes are named by their depth. */
void grow_and_fell(dice &d) {
	scope_owner root = make_scope("root");
	std::vector<tn_scope *> all = {root.get()};
	std::vector<size_t> depths = {0};
	for (size_t i = d.below(40); i > 0; i--) {
		size_t at = d.below(all.size());
		std::string name = "d" + std::to_string(depths[at] + 1);
		all.push_back(create_below(all[at], name.c_str()));
		depths.push_back(depths[at] + 1);
		tn_scope_alloc(all.back(), d.below(20000), 8);
	}
	if (d.one_in(2))
		tn_scope_reset(all[d.below(all.size())]);
}

/* Named slabs of several sizes, whose records are reused again and again. */
void build_and_raze(dice &d) {
	size_t size = 16 * d.between(1, 20);
	std::string name = "slab " + std::to_string(size);
	tn_slab_options options = {};
	options.name = name.c_str();
	options.expendable = true;
	slab_owner s = make_slab(size, 0, options);
	std::vector<void *> slots(d.below(300));
	ASSERT_TRUE(tn_slab_alloc_batch(s.get(), slots.data(), slots.size()));
	while (!slots.empty() && !d.one_in(100)) {
		tn_slab_free(s.get(), slots.back());
		slots.pop_back();
	}
	slots.resize(slots.size() + d.below(300));
}

/* Allocators that stay are in every snapshot, while others between them come and go. */
TEST(scope_threads, snapshots_while_trees_come_and_go) {
	constexpr size_t stable_count = 100;
	two_roots both;
	std::vector<arena_owner> stable;
	tn_arena_options options = {};
	options.name = "stable";
	for (size_t i = 0; i < stable_count; i++) {
		stable.push_back(make_arena(options));
		tn_arena_alloc(stable.back().get(), 100, 8);
	}
	std::atomic<bool> stop{false};
	std::vector<std::thread> owners;
	for (uint64_t i = 0; i < 4; i++)
		owners.emplace_back([&, i] {
			for (dice d(program_seed() + i); !stop;)
				i == 0 ? grow_and_fell(d) : i == 1 ? build_and_raze(d) : both.step(d);
		});
	in_crowd(2, [&](size_t) {
		critic c;
		for (size_t n = times(100000, 1500); n > 0 && !HasFailure(); n--) {
			c.look();
			EXPECT_EQ(c.stable(), stable_count);
		}
		EXPECT_GT(c.visited, times(100000, 1500) * stable_count);
	});
	stop = true;
	for (std::thread &owner : owners)
		owner.join();
}

TEST(scope_threads, print_and_trim_all_while_the_owner_goes_on) {
	std::atomic<bool> stop{false};
	scope_owner root = make_scope("root");
	FILE *out = std::fopen("/dev/null", "w");
	std::thread owner([&] {
		for (dice d(program_seed()); !stop;) {
			tn_scope *child = create_below(root.get(), "child");
			tn_slab *slab = tn_scope_slab(child, 64, 0, nullptr);
			for (size_t i = 0; i < 1000; i++) {
				tn_scope_alloc(child, d.below(200), 8);
				tn_slab_free(slab, tn_slab_alloc(slab));
			}
			d.one_in(2) ? tn_scope_reset(root.get()) : tn_scope_destroy(child);
		}
	});
	for (size_t n = times(20000, 300); n > 0; n--) {
		tn_scope_print(root.get(), out);
		tn_trim_all();
	}
	stop = true;
	owner.join();
	std::fclose(out);
	EXPECT_TRUE(tn_scope_verify(root.get()));
}

} /* namespace */
} /* namespace test_scope_threads */
