/* pool.h, contract by contract, on one thread or several in turn. Overlapping threads:
 * test_threads.cpp, stress.cpp. */
#include "program.h"
#include "use.h"

extern "C" {
#include "base/os.h"
}

#include <chrono>
#include <functional>
#include <thread>

namespace test_pool {
namespace {

template <typename F> void in_thread(F work) {
	std::thread(work).join();
}

size_t idle_bytes(const pool_owner &p) {
	return stats_of(p.get()).cached_bytes;
}

size_t live_count(const pool_owner &p) {
	return stats_of(p.get()).live_count;
}

/* ---- creation ---- */

TEST(pool, starts_empty) {
	workshop w;
	pool_owner p = make_pool(sizeof(widget), 0, w.options());
	ASSERT_NE(p, nullptr);
	tn_stats stats = stats_of(p.get());
	EXPECT_STREQ(stats.name, "pool");
	EXPECT_EQ(stats.live_count, 0u);
	EXPECT_EQ(stats.live_bytes, 0u);
	EXPECT_EQ(stats.cached_bytes, 0u);
	EXPECT_EQ(stats.chunk_count, 0u);
	EXPECT_EQ(stats.resets, 0u);
	EXPECT_GT(stats.committed_bytes, 0u);
	EXPECT_EQ(tn_pool_trim(p.get()), 0u);
	tn_pool_flush(p.get());
	EXPECT_EQ(w.calls, 0u) << "built before anybody asked";
}

TEST(pool, null_is_a_no_op) {
	tn_pool_destroy(nullptr);
	workshop w;
	pool_owner p = make_pool(sizeof(widget), 0, w.options());
	for (int i = 0; i < 3; i++) {
		tn_pool_put(p.get(), nullptr);
		tn_pool_put(p.get(), get_widget(p.get()));
	}
	EXPECT_EQ(w.resets, 3u) << "reset of nothing";
	EXPECT_EQ(live_count(p), 0u);
}

TEST(pool, name_is_copied_and_cut_at_31_bytes) {
	char name[] = "0123456789012345678901234567890123456789";
	tn_pool_options options = {};
	options.name = name;
	pool_owner p = make_pool(16, 0, options);
	std::memset(name, 'x', sizeof(name) - 1);
	EXPECT_STREQ(stats_of(p.get()).name, "0123456789012345678901234567890");
}

TEST(pool, bad_sizes_and_alignments_are_refused) {
	EXPECT_REFUSED(make_pool(0), EINVAL);
	for (size_t align : {size_t{3}, size_t{24}, TN_ALIGN_MAX * 2, TN_ALIGN_MAX + 1, SIZE_MAX})
		EXPECT_REFUSED(make_pool(16, align), EINVAL);
	for (size_t back = 0; back < 200; back++) {
		EXPECT_REFUSED(make_pool(SIZE_MAX - back), EINVAL);
		EXPECT_REFUSED(make_pool(SIZE_MAX / 2 - back), EINVAL);
	}
}

TEST(pool, objects_are_aligned_disjoint_and_whole) {
	for (size_t align : {size_t{0}, size_t{1}, size_t{8}, size_t{64}, size_t{4096}, TN_ALIGN_MAX})
		for (size_t size : {1u, 8u, 24u, 48u, 1000u, 4096u, 70000u}) {
			pool_owner p = make_pool(size, align);
			ASSERT_NE(p, nullptr);
			std::vector<void *> objects;
			for (size_t i = 0; i < (align == TN_ALIGN_MAX ? 3 : 50); i++) {
				objects.push_back(tn_pool_get(p.get()));
				ASSERT_TRUE(aligned_to(objects[i], align == 0 ? 16 : align)) << size;
				ASSERT_TRUE(all_bytes(objects[i], size, 0)) << "without init the bytes are zeroed";
				fill(objects[i], size, i);
			}
			for (size_t i = 0; i < objects.size(); i++)
				ASSERT_TRUE(filled(objects[i], size, i)) << size << " at " << align;
			put_all(p.get(), objects);
		}
}

TEST(pool, defaults) {
	pool_owner p(tn_pool_create(100, 0, nullptr));
	ASSERT_NE(p, nullptr);
	void *object = tn_pool_get(p.get());
	fill(object, 100, 1);
	tn_pool_put(p.get(), object);
	EXPECT_EQ(tn_pool_get(p.get()), object);
	EXPECT_TRUE(filled(object, 100, 1)) << "as it was put";
	tn_pool_put(p.get(), object);
}

/* ---- get and put ---- */

TEST(pool, the_object_put_last_is_got_first) {
	for (size_t count : {1u, 2u, 8u, 9u, 17u, 100u, 129u, 1000u, 5000u}) {
		workshop w;
		pool_owner p = make_pool(sizeof(widget), 0, w.options());
		std::vector<void *> widgets = get_widgets(p.get(), count);
		EXPECT_EQ(std::set<void *>(widgets.begin(), widgets.end()).size(), count);
		put_all(p.get(), widgets);
		size_t wrong = 0;
		for (size_t i = count; i-- > 0;)
			wrong += get_widget(p.get()) != widgets[i];
		EXPECT_EQ(wrong, 0u) << count;
		EXPECT_EQ(w.inits, count) << "idle objects come before new ones";
		for (void *object : widgets)
			EXPECT_EQ(static_cast<widget *>(object)->uses, 2u) << "what it kept from its first use";
	}
}

TEST(pool, reset_runs_once_in_each_put) {
	workshop w;
	pool_owner p = make_pool(sizeof(widget), 0, w.options());
	for (size_t i = 1; i <= 500; i++) {
		widget *object = get_widget(p.get());
		tn_pool_put(p.get(), object);
		ASSERT_EQ(w.resets, i);
	}
	EXPECT_EQ(w.inits, 1u);
	std::vector<void *> widgets = get_widgets(p.get(), 300);
	put_all(p.get(), widgets);
	tn_pool_flush(p.get());
	EXPECT_EQ(w.resets, 800u) << "nothing but put resets";
	EXPECT_EQ(w.finis, 0u);
}

TEST(pool, every_init_has_one_fini) {
	workshop w;
	pool_owner p = make_pool(sizeof(widget), 0, w.options());
	std::vector<void *> out = get_widgets(p.get(), 700);
	put_all(p.get(), get_widgets(p.get(), 900));
	EXPECT_EQ(w.inits, 1600u);
	EXPECT_EQ(w.finis, 0u);
	p.reset();
	EXPECT_EQ(w.finis, 1600u) << "those that are out, too";
	EXPECT_EQ(w.alive(), 0u);
}

TEST(pool, a_failing_init_loses_nothing) {
	workshop w;
	pool_owner p = make_pool(sizeof(widget), 0, w.options());
	std::vector<void *> out = get_widgets(p.get(), 100);
	for (size_t n = 1; n <= 100; n++) {
		tn_stats before = stats_of(p.get());
		size_t calls = w.calls;
		w.fail(1, 1 + n % 3);
		for (size_t i = 0; i < 1 + n % 3; i++)
			EXPECT_REFUSED(tn_pool_get(p.get()), ENOMEM);
		ASSERT_EQ(w.calls, calls + 1 + n % 3) << "init is called once for each get that fails";
		ASSERT_EQ(live_count(p), before.live_count);
		ASSERT_EQ(idle_bytes(p), before.cached_bytes);
		ASSERT_EQ(w.finis, 0u) << "what was never built is not taken apart";
		out.push_back(get_widget(p.get()));
		ASSERT_NE(out.back(), nullptr);
	}
	w.fail(1, SIZE_MAX);
	put_all(p.get(), out);
	out = get_widgets(p.get(), 200);
	EXPECT_REFUSED(tn_pool_get(p.get()), ENOMEM);
	put_all(p.get(), out);
}

TEST(pool, objects_without_callbacks) {
	for (int which = 0; which < 8; which++) {
		workshop w;
		tn_pool_options options = w.options();
		options.init = (which & 1) != 0 ? options.init : nullptr;
		options.reset = (which & 2) != 0 ? options.reset : nullptr;
		/* A fini that finds nothing built would complain. */
		options.fini = (which & 1) != 0 ? options.fini : nullptr;
		if ((which & 1) == 0)
			options.reset = nullptr;
		pool_owner p = make_pool(sizeof(widget), 0, options);
		std::vector<void *> objects;
		for (int i = 0; i < 300; i++)
			objects.push_back(tn_pool_get(p.get()));
		put_all(p.get(), objects);
		EXPECT_EQ(tn_pool_get(p.get()), objects.back());
		tn_pool_trim(p.get());
		EXPECT_EQ(live_count(p), 1u);
	}
}

/* A pool whose objects hold an object of another one. */
struct nested {
	static bool build(void *object, void *ctx) {
		*static_cast<void **>(object) = tn_pool_get(static_cast<tn_pool *>(ctx));
		return *static_cast<void **>(object) != nullptr;
	}
	static void take_apart(void *object, void *ctx) {
		tn_pool_put(static_cast<tn_pool *>(ctx), *static_cast<void **>(object));
	}
};

TEST(pool, callbacks_may_use_other_pools) {
	workshop w;
	pool_owner inner = make_pool(sizeof(widget), 0, w.options());
	tn_pool_options options = {};
	options.init = nested::build;
	options.fini = nested::take_apart;
	options.ctx = inner.get();
	options.max_idle_objects = 40;
	pool_owner outer = make_pool(16, 0, options);
	std::vector<void *> objects;
	for (int i = 0; i < 500; i++)
		objects.push_back(tn_pool_get(outer.get()));
	EXPECT_EQ(live_count(inner), 500u);
	put_all(outer.get(), objects);
	EXPECT_LE(live_count(inner), 40u + 4u);
	in_thread([&] { put_all(outer.get(), {tn_pool_get(outer.get()), tn_pool_get(outer.get())}); });
	tn_pool_trim(outer.get());
	EXPECT_EQ(live_count(inner), 0u);
	outer.reset();
}

TEST(pool, many_pools_at_once) {
	std::vector<pool_owner> pools;
	for (size_t i = 0; i < 100; i++)
		pools.push_back(make_pool(16 + i));
	for (int round = 0; round < 4; round++)
		for (size_t i = 0; i < pools.size(); i++) {
			void *object = tn_pool_get(pools[i].get());
			ASSERT_TRUE(round == 0 ? all_bytes(object, 16 + i, 0) : filled(object, 16 + i, i));
			fill(object, 16 + i, i);
			tn_pool_put(pools[i].get(), object);
			ASSERT_EQ(idle_bytes(pools[i]), round_up(16 + i, 16));
		}
}

/* ---- threads, one after another ---- */

TEST(pool, what_one_thread_puts_another_may_get) {
	for (bool flush : {true, false}) {
		workshop w;
		pool_owner p = make_pool(sizeof(widget), 0, w.options());
		auto put = [&] {
			put_all(p.get(), get_widgets(p.get(), 300));
			if (flush)
				tn_pool_flush(p.get());
		};
		/* A thread that ends flushes by itself. */
		flush ? put() : in_thread(put);
		in_thread([&] { put_all(p.get(), get_widgets(p.get(), 300)); });
		put_all(p.get(), get_widgets(p.get(), 300));
		EXPECT_EQ(w.inits, 300u) << "new ones, though idle ones were to be had";
		EXPECT_EQ(live_count(p), 0u);
	}
}

TEST(pool, got_here_and_put_there) {
	workshop w;
	pool_owner p = make_pool(sizeof(widget), 0, w.options());
	for (int round = 0; round < 10; round++) {
		std::vector<void *> widgets = get_widgets(p.get(), 200);
		in_thread([&] { put_all(p.get(), widgets); });
		ASSERT_EQ(live_count(p), 0u);
		ASSERT_EQ(idle_bytes(p), 200 * sizeof(widget));
	}
	EXPECT_EQ(w.inits, 200u);
}

/* ---- bounds ---- */

TEST(pool, idle_objects_are_bounded) {
	for (size_t bound : {1u, 2u, 10u, 16u, 100u, 1000u, 2000u}) {
		workshop w;
		tn_pool_options options = w.options();
		options.max_idle_objects = bound;
		pool_owner p = make_pool(sizeof(widget), 0, options);
		size_t magazine = magazine_of_bound(bound);
		for (int round = 0; round < 3; round++) {
			put_all(p.get(), get_widgets(p.get(), 3000));
			EXPECT_LE(w.alive(), bound + 2 * magazine);
			EXPECT_GE(w.alive() + magazine, bound) << "the pool keeps hardly anything";
			EXPECT_EQ(idle_bytes(p), w.alive() * sizeof(widget));
		}
		tn_pool_flush(p.get());
		EXPECT_LE(w.alive(), bound) << "in the depot the bound is exact";
		/* Threads that come and go leave no more idle objects than that. */
		for (int i = 0; i < 5; i++)
			in_thread([&] { put_all(p.get(), get_widgets(p.get(), 3000)); });
		EXPECT_LE(w.alive(), bound);
	}
}

TEST(pool, idle_bytes_are_bounded) {
	for (size_t bound : {size_t{1}, sizeof(widget), 5 * sizeof(widget), 10 * kib, 50 * kib}) {
		workshop w;
		tn_pool_options options = w.options();
		options.max_idle_bytes = bound;
		pool_owner p = make_pool(sizeof(widget), 0, options);
		size_t magazine = magazine_of_bound(bound / sizeof(widget));
		put_all(p.get(), get_widgets(p.get(), 3000));
		EXPECT_LE(idle_bytes(p), bound + 2 * magazine * sizeof(widget));
		EXPECT_GE(idle_bytes(p) + (magazine + 1) * sizeof(widget), bound);
		tn_pool_flush(p.get());
		EXPECT_LE(idle_bytes(p), bound);
		EXPECT_EQ(idle_bytes(p), w.alive() * sizeof(widget));
	}
}

TEST(pool, size_of_counts_in_idle_bytes) {
	workshop w;
	w.beside = 10000;
	tn_pool_options options = w.options();
	options.size_of = workshop::size_of;
	options.max_idle_bytes = 2 * mib;
	pool_owner p = make_pool(sizeof(widget), 0, options);
	put_all(p.get(), get_widgets(p.get(), 3000));
	size_t fits = 2 * mib / (sizeof(widget) + 10000);
	EXPECT_LE(w.alive(), fits + 2 * 64);
	EXPECT_GE(w.alive(), fits - 64);
	tn_pool_flush(p.get());
	EXPECT_LE(w.alive(), fits);
	EXPECT_EQ(idle_bytes(p), w.alive() * (sizeof(widget) + 10000));
	/* They come back lighter, so more of them fit. */
	std::vector<void *> widgets = get_widgets(p.get(), w.alive());
	for (void *object : widgets)
		static_cast<widget *>(object)->beside = 0;
	w.beside = 0;
	for (void *object : get_widgets(p.get(), 2000))
		widgets.push_back(object);
	put_all(p.get(), widgets);
	tn_pool_flush(p.get());
	EXPECT_EQ(w.alive(), widgets.size());
	EXPECT_EQ(idle_bytes(p), w.alive() * sizeof(widget));
}

TEST(pool, the_lower_of_two_bounds_holds) {
	workshop w;
	tn_pool_options options = w.options();
	options.max_idle_objects = 100;
	options.max_idle_bytes = 1000 * sizeof(widget);
	pool_owner p = make_pool(sizeof(widget), 0, options);
	put_all(p.get(), get_widgets(p.get(), 3000));
	EXPECT_LE(w.alive(), 100u + 12u);
	options.max_idle_objects = 1000;
	options.max_idle_bytes = 100 * sizeof(widget);
	workshop v;
	options.ctx = &v;
	pool_owner q = make_pool(sizeof(widget), 0, options);
	put_all(q.get(), get_widgets(q.get(), 3000));
	EXPECT_LE(v.alive(), 100u + 12u);
}

TEST(pool, none_stays_idle) {
	for (bool by_bytes : {true, false}) {
		workshop w;
		tn_pool_options options = w.options();
		(by_bytes ? options.max_idle_bytes : options.max_idle_objects) = TN_NONE;
		pool_owner p = make_pool(sizeof(widget), 0, options);
		for (size_t i = 1; i <= 20; i++) {
			tn_pool_put(p.get(), get_widget(p.get()));
			EXPECT_EQ(w.finis, i);
		}
		std::vector<void *> widgets = get_widgets(p.get(), 500);
		put_all(p.get(), widgets);
		EXPECT_EQ(w.alive(), 0u);
		EXPECT_EQ(w.resets, 520u);
		EXPECT_EQ(idle_bytes(p), 0u);
		EXPECT_EQ(live_count(p), 0u);
	}
}

/* ---- decay ---- */

/* A window is much longer than any test takes; time passes by the library's clock. */
constexpr size_t long_window_ms = 1000000;

void skip_windows(double windows) {
	__atomic_fetch_add(
		&tn_os_skipped_ms, static_cast<uint64_t>(windows * long_window_ms), __ATOMIC_RELAXED);
}

TEST(pool, a_burst_decays_to_what_is_used) {
	workshop w;
	tn_pool_options options = w.options();
	options.decay_ms = long_window_ms;
	pool_owner p = make_pool(sizeof(widget), 0, options);
	put_all(p.get(), get_widgets(p.get(), 2000));
	EXPECT_EQ(w.alive(), 2000u);
	/* 300 objects at a time pass through the depot, since a thread holds 128. */
	for (int round = 0; round < 20; round++) {
		skip_windows(0.1);
		put_all(p.get(), get_widgets(p.get(), 300));
	}
	EXPECT_LE(w.alive(), 300u + 3 * 64);
	EXPECT_GE(w.alive(), 300u);
}

/* One use in each decay_ms. */
TEST(pool, what_is_used_stays_while_a_burst_decays) {
	workshop w;
	tn_pool_options options = w.options();
	options.decay_ms = long_window_ms;
	pool_owner p = make_pool(sizeof(widget), 0, options);
	put_all(p.get(), get_widgets(p.get(), 2000));
	for (int round = 0; round < 9; round++) {
		skip_windows(0.99);
		put_all(p.get(), get_widgets(p.get(), 300));
	}
	EXPECT_GE(w.alive(), 300u);
	EXPECT_LE(w.alive(), 300u + 3 * 64) << "the burst is still there";
	EXPECT_EQ(w.inits, 2000u) << "what was used went and had to be built again";
}

TEST(pool, a_burst_decays_after_silence) {
	workshop w;
	tn_pool_options options = w.options();
	options.decay_ms = long_window_ms;
	pool_owner p = make_pool(sizeof(widget), 0, options);
	put_all(p.get(), get_widgets(p.get(), 2000));
	tn_pool_flush(p.get());
	for (int round = 0; round < 2; round++) {
		skip_windows(3.5);
		put_all(p.get(), get_widgets(p.get(), 300));
	}
	EXPECT_LE(w.alive(), 300u + 3 * 64);
}

TEST(pool, what_is_steadily_used_does_not_decay) {
	constexpr size_t count = 1000;
	workshop w;
	tn_pool_options options = w.options();
	options.decay_ms = long_window_ms;
	pool_owner p = make_pool(sizeof(widget), 0, options);
	std::vector<void *> widgets = get_widgets(p.get(), count);
	for (int round = 0; round < 6; round++) {
		skip_windows(1.2);
		/* While they are idle no window passes. */
		put_all(p.get(), widgets);
		widgets = get_widgets(p.get(), count);
	}
	put_all(p.get(), widgets);
	EXPECT_EQ(w.inits, count);
	EXPECT_EQ(w.finis, 0u);
}

TEST(pool, without_decay_idle_objects_stay) {
	workshop w;
	tn_pool_options options = w.options();
	options.decay_ms = TN_NONE;
	pool_owner p = make_pool(sizeof(widget), 0, options);
	put_all(p.get(), get_widgets(p.get(), 2000));
	for (int i = 0; i < 20; i++) {
		put_all(p.get(), get_widgets(p.get(), 300));
		skip_windows(1);
	}
	EXPECT_EQ(w.alive(), 2000u);
	EXPECT_GT(tn_pool_trim(p.get()), 0u);
	EXPECT_EQ(w.alive(), 0u);
}

/* ---- trim and figures ---- */

TEST(pool, trim_takes_every_idle_object_apart) {
	workshop w;
	pool_owner p = make_pool(sizeof(widget), 0, w.options());
	size_t own = stats_of(p.get()).committed_bytes;
	std::vector<void *> out = get_widgets(p.get(), 10);
	put_all(p.get(), get_widgets(p.get(), 2000));
	size_t before = stats_of(p.get()).committed_bytes;
	size_t bytes = tn_pool_trim(p.get());
	EXPECT_EQ(w.alive(), 10u);
	EXPECT_EQ(idle_bytes(p), 0u);
	EXPECT_EQ(live_count(p), 10u);
	EXPECT_EQ(stats_of(p.get()).committed_bytes, before - bytes);
	EXPECT_EQ(tn_pool_trim(p.get()), 0u);
	for (void *object : out)
		EXPECT_EQ(static_cast<widget *>(object)->magic, widget::sound);
	put_all(p.get(), out);
	EXPECT_GT(tn_pool_trim(p.get()), 0u);
	EXPECT_EQ(stats_of(p.get()).committed_bytes, own) << "only the record stays";
	EXPECT_EQ(stats_of(p.get()).chunk_count, 0u);
	EXPECT_NE(get_widget(p.get()), nullptr);
}

/* A thread gives up its objects on its next slow path after another thread has trimmed. */
TEST(pool, trim_asks_other_threads) {
	workshop w;
	tn_pool_options options = w.options();
	options.max_idle_objects = 128;
	pool_owner p = make_pool(sizeof(widget), 0, options);
	auto trim_elsewhere = [&] { in_thread([&] { tn_pool_trim(p.get()); }); };
	std::vector<void *> widgets = get_widgets(p.get(), 17);
	void *last = widgets.back();
	widgets.pop_back();
	put_all(p.get(), widgets); /* two full magazines */
	trim_elsewhere();
	EXPECT_EQ(w.alive(), 17u) << "this thread's magazines are its own";
	tn_pool_put(p.get(), last); /* a slow path */
	trim_elsewhere();
	EXPECT_EQ(w.alive(), 1u) << "it was asked to flush and did not";
	tn_pool_flush(p.get());
	trim_elsewhere();
	EXPECT_EQ(w.alive(), 0u) << "after its flush, any thread can take it apart";
}

TEST(pool, figures_are_exact) {
	workshop w;
	pool_owner p = make_pool(sizeof(widget), 0, w.options());
	std::vector<void *> out;
	dice d(5);
	for (int i = 0; i < 5000; i++) {
		if (out.empty() || d.below(5) < 3)
			out.push_back(get_widget(p.get()));
		else {
			std::swap(out[d.below(out.size())], out.back());
			tn_pool_put(p.get(), out.back());
			out.pop_back();
		}
		if (i % 1000 == 499)
			tn_pool_flush(p.get());
		if (i % 1000 == 999) {
			put_all(p.get(), out);
			out.clear();
		}
		tn_stats stats = stats_of(p.get());
		ASSERT_EQ(stats.live_count, out.size());
		ASSERT_EQ(stats.live_bytes, out.size() * sizeof(widget));
		ASSERT_EQ(stats.cached_bytes, (w.alive() - out.size()) * sizeof(widget));
		ASSERT_LE(stats.live_bytes + stats.cached_bytes, stats.committed_bytes);
		ASSERT_GE(stats.reserved_bytes, stats.committed_bytes);
		ASSERT_GE(stats.peak_bytes, stats.live_bytes);
	}
}

TEST(pool, pools_come_and_go) {
	for (int i = 0; i < 300; i++) {
		workshop w;
		pool_owner p = make_pool(sizeof(widget), 0, w.options());
		put_all(p.get(), get_widgets(p.get(), 20));
		ASSERT_EQ(w.inits, 20u) << "another pool's objects were found";
		get_widget(p.get());
	}
}

} /* namespace */
} /* namespace test_pool */
