/* tn_watch: a silent failure is named, once and in time; behaviour that only looks like one is not. */
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <cerrno>

#include <tenure/tenure.h>

namespace {

struct found {
	tn_finding finding;
	std::string name, message;
};

struct log {
	std::mutex mutex;
	std::vector<found> all;

	std::vector<found> of(const std::string &name) {
		std::lock_guard<std::mutex> guard(mutex);
		std::vector<found> some;
		for (const found &f : all)
			if (f.name == name)
				some.push_back(f);
		return some;
	}
	bool has(const std::string &name) {
		return !of(name).empty();
	}
};

void note(tn_finding finding, const tn_listed *listed, const char *message, void *ctx) {
	log *l = static_cast<log *>(ctx);
	std::lock_guard<std::mutex> guard(l->mutex);
	l->all.push_back({finding, listed->stats.name, message});
}

constexpr unsigned growing_ms = 300;

tn_watch_options quick(log *l) {
	tn_watch_options o{};
	o.interval_ms = 20;
	o.growing_ms = o.idle_ms = growing_ms;
	o.least_bytes = 16 << 10;
	o.ctx = l;
	return o;
}

using clock = std::chrono::steady_clock;

/* Runs `step` every few milliseconds until `done`, for seconds at most; how many milliseconds it took.
 * */
template <class Step, class Done> long run(Step step, Done done) {
	auto begin = clock::now();
	auto passed = [&] {
		return std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - begin).count();
	};
	while (!done() && passed() < 20'000) {
		step();
		std::this_thread::sleep_for(std::chrono::milliseconds(5));
	}
	return passed();
}

class watch : public ::testing::Test {
protected:
	void TearDown() override {
		tn_watch(nullptr, nullptr);
	}

	void begin() {
		tn_watch_options o = quick(&log_);
		ASSERT_TRUE(tn_watch(&o, note));
	}

	log log_;
};

TEST_F(watch, scope_that_never_resets_is_named_in_time_and_others_are_not) {
	tn_scope *root = tn_scope_create(nullptr, "process", nullptr);
	tn_scope_options options{};
	options.ident = "GET /feed\n\xe2\x80\xae";
	tn_scope *grows = tn_scope_create(root, "keep-alive", &options);
	tn_scope *resets = tn_scope_create(root, "tidy", nullptr);
	tn_scope *idle = tn_scope_create(root, "long-lived", nullptr);
	tn_arena_options named{};
	named.name = "growing arena";
	tn_arena *arena = tn_arena_create(&named);
	ASSERT_NE(tn_scope_alloc(idle, 1 << 20, 0), nullptr);
	ASSERT_NE(tn_scope_alloc(grows, 64 << 10, 0), nullptr);
	begin();
	int steps = 0;
	long took = run(
		[&] {
			tn_scope_alloc(grows, 500, 0);
			tn_arena_alloc(arena, 500, 0);
			tn_scope_alloc(resets, 32 << 10, 0);
			if (++steps % 10 == 0)
				tn_scope_reset(resets);
		},
		[&] { return log_.has("keep-alive") && log_.has("growing arena"); });
	/* A busy machine cannot stop at an exact time; but the failure is not named at once either. */
	EXPECT_GE(took, growing_ms / 2);
	run([&] { tn_scope_alloc(grows, 500, 0); },
		[until = clock::now() + std::chrono::milliseconds(200)] { return clock::now() > until; });
	std::vector<found> reports = log_.of("keep-alive");
	ASSERT_EQ(reports.size(), 1u);
	EXPECT_EQ(reports[0].finding, TN_FOUND_GROWING);
	EXPECT_NE(reports[0].message.find("scope \"keep-alive\" (GET /feed??"
									  "??"
									  "): grew from "),
		std::string::npos)
		<< reports[0].message;
	EXPECT_EQ(log_.of("growing arena").size(), 1u);
	EXPECT_FALSE(log_.has("long-lived"));
	EXPECT_FALSE(log_.has("tidy"));
	EXPECT_FALSE(log_.has("process"));
	tn_scope_destroy(root);
	tn_arena_destroy(arena);
}

TEST_F(watch, pools) {
	tn_pool_options options{};
	options.name = "too small";
	options.max_idle_objects = 4;
	tn_pool *small = tn_pool_create(8 << 10, 0, &options);
	options = tn_pool_options{};
	options.name = "burst";
	options.decay_ms = 1'000'000;
	tn_pool *burst = tn_pool_create(8 << 10, 0, &options);
	options.name = "steady";
	tn_pool *steady = tn_pool_create(8 << 10, 0, &options);
	auto use = [](tn_pool *p, size_t count) {
		std::vector<void *> objects(count);
		for (void *&object : objects)
			object = tn_pool_get(p);
		for (void *object : objects)
			tn_pool_put(p, object);
	};
	std::vector<void *> held(50);
	for (void *&object : held)
		object = tn_pool_get(steady);
	use(burst, 200);
	begin();
	run(
		[&] {
			use(small, 40);
			use(steady, 10);
		},
		[&] { return log_.has("too small") && log_.has("burst"); });
	ASSERT_EQ(log_.of("too small").size(), 1u);
	EXPECT_EQ(log_.of("too small")[0].finding, TN_FOUND_AT_BOUND);
	ASSERT_EQ(log_.of("burst").size(), 1u);
	EXPECT_EQ(log_.of("burst")[0].finding, TN_FOUND_IDLE);
	EXPECT_NE(
		log_.of("burst")[0].message.find("keeps 200 of 200 objects (1.6 MiB) idle"), std::string::npos)
		<< log_.of("burst")[0].message;
	EXPECT_FALSE(log_.has("steady"));
	for (void *object : held)
		tn_pool_put(steady, object);
	for (tn_pool *p : {small, burst, steady})
		tn_pool_destroy(p);
}

TEST_F(watch, slabs_and_heaps) {
	tn_slab_options options{};
	options.retain_chunks = 1000;
	options.name = "sparse";
	tn_slab *sparse = tn_slab_create(1024, 0, &options);
	options.name = "dense";
	tn_slab *dense = tn_slab_create(1024, 0, &options);
	std::vector<void *> slots(1000);
	for (void *&slot : slots) {
		slot = tn_slab_alloc(sparse);
		tn_slab_alloc(dense);
	}
	for (size_t i = 0; i < slots.size(); i++)
		if (i % 10 != 0)
			tn_slab_free(sparse, slots[i]);
	tn_heap_options heap_options{};
	heap_options.expendable = true;
	heap_options.name = "odd sizes";
	tn_heap *odd = tn_heap_create(&heap_options);
	heap_options.name = "even sizes";
	tn_heap *even = tn_heap_create(&heap_options);
	for (int i = 0; i < 20'000; i++) {
		tn_heap_alloc(odd, 17, 0);
		tn_heap_alloc(even, 32, 0);
	}
	begin();
	run([] {}, [&] { return log_.has("sparse") && log_.has("odd sizes"); });
	ASSERT_EQ(log_.of("sparse").size(), 1u);
	EXPECT_EQ(log_.of("sparse")[0].finding, TN_FOUND_SPARSE);
	ASSERT_EQ(log_.of("odd sizes").size(), 1u);
	EXPECT_EQ(log_.of("odd sizes")[0].finding, TN_FOUND_WASTE);
	EXPECT_FALSE(log_.has("dense"));
	EXPECT_FALSE(log_.has("even sizes"));
	tn_slab_destroy(sparse);
	tn_slab_destroy(dense);
	tn_heap_destroy(odd);
	tn_heap_destroy(even);
}

/* Objects that are allocated or got, and never given back. */
TEST_F(watch, every_kind_that_only_grows) {
	tn_slab_options slab_options{};
	slab_options.name = "leaking slab";
	tn_slab *slab = tn_slab_create(1024, 0, &slab_options);
	slab_options.name = "busy slab";
	tn_slab *busy = tn_slab_create(1024, 0, &slab_options);
	tn_shared_slab_options shared_options{};
	shared_options.name = "leaking shared slab";
	tn_shared_slab *shared = tn_shared_slab_create(1024, 0, &shared_options);
	tn_pool_options pool_options{};
	pool_options.name = "leaking pool";
	tn_pool *pool = tn_pool_create(1024, 0, &pool_options);
	tn_heap_options heap_options{};
	heap_options.expendable = true;
	heap_options.name = "leaking heap";
	tn_heap *heap = tn_heap_create(&heap_options);
	begin();
	std::vector<void *> slots;
	run(
		[&] {
			for (int i = 0; i < 20; i++) {
				tn_slab_alloc(slab);
				tn_shared_slab_alloc(shared);
				tn_pool_get(pool);
				tn_heap_alloc(heap, 1000, 0);
				slots.push_back(tn_slab_alloc(busy));
			}
			if (slots.size() >= 500)
				for (; !slots.empty(); slots.pop_back())
					tn_slab_free(busy, slots.back());
		},
		[&] {
			return log_.has("leaking slab") && log_.has("leaking shared slab") &&
		           log_.has("leaking pool") && log_.has("leaking heap");
		});
	for (const char *name : {"leaking slab", "leaking shared slab", "leaking pool", "leaking heap"}) {
		ASSERT_EQ(log_.of(name).size(), 1u) << name;
		EXPECT_EQ(log_.of(name)[0].finding, TN_FOUND_GROWING) << log_.of(name)[0].message;
		EXPECT_NE(log_.of(name)[0].message.find("and gives nothing back"), std::string::npos);
	}
	EXPECT_FALSE(log_.has("busy slab"));
	tn_slab_destroy(slab);
	tn_slab_destroy(busy);
	tn_shared_slab_destroy(shared);
	tn_pool_destroy(pool);
	tn_heap_destroy(heap);
}

/* A connection that keeps something of each request, in its own scope; the requests below it end. */
TEST_F(watch, growth_of_a_scope_beside_what_comes_and_goes_below_it) {
	tn_scope *root = tn_scope_create(nullptr, "process", nullptr);
	tn_scope *keeps = tn_scope_create(root, "keep-alive", nullptr);
	tn_scope *tidy = tn_scope_create(root, "tidy", nullptr);
	begin();
	size_t turn = 0;
	tn_scope *requests[2] = {nullptr, nullptr};
	auto serve = [&](tn_scope *connection, tn_scope **request) {
		if (turn % 20 == 0) {
			tn_scope_destroy(*request);
			*request = tn_scope_create(connection, "request", nullptr);
		}
		tn_scope_alloc(*request, 32 << 10, 0);
	};
	run(
		[&] {
			serve(keeps, &requests[0]);
			serve(tidy, &requests[1]);
			tn_scope_alloc(keeps, 500, 0);
			turn++;
		},
		[&] { return log_.has("keep-alive"); });
	ASSERT_EQ(log_.of("keep-alive").size(), 1u);
	EXPECT_EQ(log_.of("keep-alive")[0].finding, TN_FOUND_GROWING);
	EXPECT_FALSE(log_.has("tidy"));
	EXPECT_FALSE(log_.has("process"));
	tn_scope_destroy(root);
}

TEST_F(watch, many_allocators_and_a_callback_that_changes_them) {
	static std::vector<tn_arena *> arenas;
	tn_arena_options named{};
	named.name = "one of many";
	for (int i = 0; i < 3'000; i++)
		arenas.push_back(tn_arena_create(&named));
	tn_watch_options o = quick(&log_);
	o.growing_ms = 40;
	auto destroy_one = [](tn_finding finding, const tn_listed *listed, const char *message, void *ctx) {
		note(finding, listed, message, ctx);
		tn_scope_destroy(tn_scope_create(nullptr, "made by the callback", nullptr));
	};
	ASSERT_TRUE(tn_watch(&o, destroy_one));
	size_t turn = 0;
	run(
		[&] {
			for (tn_arena *a : arenas)
				tn_arena_alloc(a, 100, 0);
			turn++;
		},
		[&] { return log_.of("one of many").size() == arenas.size(); });
	EXPECT_EQ(log_.of("one of many").size(), arenas.size());
	for (tn_arena *a : arenas)
		tn_arena_destroy(a);
	arenas.clear();
}

TEST_F(watch, begins_ends_and_is_replaced) {
	tn_watch_options o = quick(&log_);
	o.slab_percent = 101;
	errno = 0;
	EXPECT_FALSE(tn_watch(&o, note));
	EXPECT_EQ(errno, EINVAL);
	o = quick(&log_);
	o.waste_percent = 101;
	EXPECT_FALSE(tn_watch(&o, note));
	begin();
	log second;
	o = quick(&second);
	ASSERT_TRUE(tn_watch(&o, note));
	tn_arena_options named{};
	named.name = "growing";
	tn_arena *a = tn_arena_create(&named);
	run([&] { tn_arena_alloc(a, 100, 0); }, [&] { return second.has("growing"); });
	EXPECT_TRUE(second.has("growing"));
	EXPECT_FALSE(log_.has("growing"));
	ASSERT_TRUE(tn_watch(nullptr, nullptr));
	EXPECT_TRUE(tn_watch(nullptr, nullptr));
	tn_arena_destroy(a);
}

} /* namespace */
