/* Idle memory comes home: what a burst left goes back in the traffic that follows it, be that small,
 * slow or none. Time passes by the library's own clock. */
#include <tenure/idle.h>
#include <tenure/tenure.h>

#include "allocators.h"
#include "process.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

extern "C" {
#include "base/os.h"
}

namespace idle_memory {
namespace {

constexpr size_t kib = 1024, mib = 1024 * kib;
constexpr size_t burst = 1024, object_bytes = 4096;
/* Much longer than any test takes. */
constexpr size_t decay_ms = 1000000;
constexpr bool in_debug = TN_MODE == TN_MODE_DEBUG;

void skip_ms(size_t ms) {
	__atomic_fetch_add(&tn_os_skipped_ms, ms, __ATOMIC_RELAXED);
}

/* Counts the objects that are built, and keeps 4 KiB beside each, in malloc. */
struct buffered {
	void *buffer;
};

struct counts {
	std::atomic<size_t> built{0}, ended{0};
	size_t idle_or_out() const {
		return built - ended;
	}
};

bool build(void *object, void *ctx) {
	static_cast<buffered *>(object)->buffer = std::malloc(object_bytes);
	static_cast<counts *>(ctx)->built++;
	return true;
}

void end(void *object, void *ctx) {
	std::free(static_cast<buffered *>(object)->buffer);
	static_cast<counts *>(ctx)->ended++;
}

size_t weigh(const void *, void *) {
	return object_bytes;
}

tn_pool_options options_of(counts &c, bool weighed) {
	tn_pool_options o = {};
	o.init = build;
	o.fini = end;
	o.size_of = weighed ? weigh : nullptr;
	o.ctx = &c;
	o.decay_ms = decay_ms;
	return o;
}

void get_and_put(tn_pool *p, size_t count) {
	std::vector<void *> out(count);
	for (void *&object : out)
		object = tn_pool_get(p);
	for (size_t i = count; i > 0; i--)
		tn_pool_put(p, out[i - 1]);
}

/* Two windows of traffic, `rounds` times so many at a time. */
void use_for_two_windows(tn_pool *p, size_t at_a_time, size_t rounds) {
	for (size_t i = 0; i < rounds; i++) {
		skip_ms(2 * decay_ms * (i + 1) / rounds - 2 * decay_ms * i / rounds);
		get_and_put(p, at_a_time);
	}
}

/* Runs calls on a thread that stays alive in between. */
class worker {
public:
	worker() : thread_([this] { loop(); }) {
	}
	~worker() {
		call(nullptr);
		thread_.join();
	}
	void call(std::function<void()> work) {
		std::unique_lock<std::mutex> hold(lock_);
		work_ = std::move(work);
		ends_ = work_ == nullptr;
		busy_ = true;
		changed_.notify_all();
		changed_.wait(hold, [this] { return !busy_; });
	}

private:
	void loop() {
		std::unique_lock<std::mutex> hold(lock_);
		for (;;) {
			changed_.wait(hold, [this] { return busy_; });
			if (!ends_)
				work_();
			busy_ = false;
			changed_.notify_all();
			if (ends_)
				return;
		}
	}
	std::mutex lock_;
	std::condition_variable changed_;
	std::function<void()> work_;
	bool busy_ = false, ends_ = false;
	std::thread thread_;
};

/* ---- a pool in its own traffic ---- */

void expect_that_a_burst_goes_back(size_t at_a_time, bool weighed, size_t rounds) {
	counts c;
	tn_pool_options o = options_of(c, weighed);
	tn_pool *p = tn_pool_create(sizeof(buffered), 0, &o);
	get_and_put(p, burst);
	EXPECT_EQ(c.idle_or_out(), burst);
	use_for_two_windows(p, at_a_time, rounds);
	EXPECT_LE(c.idle_or_out(), burst * 15 / 100 + at_a_time) << "after " << rounds << " rounds";
	EXPECT_GE(c.idle_or_out(), at_a_time);
	tn_pool_destroy(p);
	EXPECT_EQ(c.idle_or_out(), 0u);
}

TEST(conformance, B76_a_burst_goes_back_in_any_traffic) {
	for (size_t at_a_time : {1, 20, 40})
		for (bool weighed : {false, true})
			for (size_t rounds : {20, 200, 20000})
				expect_that_a_burst_goes_back(at_a_time, weighed, rounds);
}

/* B76: the thread that made the burst sleeps, as do eight others; one goes on. */
TEST(idle, ten_threads_of_which_nine_sleep) {
	counts c;
	tn_pool_options o = options_of(c, true);
	tn_pool *p = tn_pool_create(sizeof(buffered), 0, &o);
	{
		std::vector<std::unique_ptr<worker>> workers;
		for (int i = 0; i < 10; i++)
			workers.push_back(std::make_unique<worker>());
		for (auto &w : workers)
			w->call([&] { get_and_put(p, burst / 4); });
		workers[9]->call([&] { get_and_put(p, burst * 4); });
		workers[0]->call([&] { use_for_two_windows(p, 1, 100); });
		/* Each thread keeps at most two magazines of 64 KiB. */
		EXPECT_LE(c.idle_or_out() * object_bytes, 10 * 2 * 64 * kib);
	}
	tn_pool_destroy(p);
}

/* B76 */
TEST(idle, a_pool_that_each_thread_uses_once_in_many_windows) {
	counts c;
	tn_pool_options o = options_of(c, true);
	tn_pool *p = tn_pool_create(sizeof(buffered), 0, &o);
	{
		worker one, two;
		one.call([&] { get_and_put(p, burst); });
		for (int use = 0; use < 20; use++) {
			skip_ms(60 * decay_ms);
			(use % 2 == 0 ? one : two).call([&] { get_and_put(p, 1); });
		}
		EXPECT_LE(c.idle_or_out() * object_bytes, 4 * 64 * kib);
	}
	tn_pool_destroy(p);
}

/* B49: an object that is needed once in every decay_ms stays, while the rest of a burst goes. */
TEST(idle, what_each_window_needs_stays) {
	counts c;
	tn_pool_options o = options_of(c, true);
	tn_pool *p = tn_pool_create(sizeof(buffered), 0, &o);
	get_and_put(p, burst);
	for (int round = 0; round < 20; round++) {
		skip_ms(decay_ms);
		get_and_put(p, 300);
	}
	EXPECT_EQ(c.built, burst) << "what was used went and had to be built again";
	EXPECT_LE(c.idle_or_out(), 300u + 4 * 16);
	tn_pool_destroy(p);
}

/* A pool whose objects end by using it again: fini puts and gets, and asks for everything back. */
tn_pool *reentered;
TEST(idle, fini_comes_back_to_its_pool) {
	static counts c;
	tn_pool_options o = options_of(c, true);
	static size_t depth;
	o.fini = [](void *object, void *ctx) {
		end(object, ctx);
		if (depth++ == 0 && reentered != nullptr) {
			get_and_put(reentered, 40);
			tn_trim_all();
			get_and_put(reentered, 40);
		}
		depth--;
	};
	for (bool by_trim : {false, true}) {
		tn_pool *p = reentered = tn_pool_create(sizeof(buffered), 0, &o);
		get_and_put(p, burst);
		if (by_trim)
			tn_trim_all();
		else
			use_for_two_windows(p, 40, 100);
		EXPECT_LE(c.idle_or_out(), burst * 15 / 100 + 40);
		reentered = nullptr;
		tn_pool_destroy(p);
		EXPECT_EQ(c.idle_or_out(), 0u) << by_trim;
	}
}

/* B48: without size_of, the number is bounded by default. */
TEST(idle, the_number_of_idle_objects_is_bounded_by_default) {
	tn_pool *p = tn_pool_create(16, 0, nullptr);
	get_and_put(p, 100000);
	tn_stats stats;
	tn_pool_stats(p, &stats);
	EXPECT_LE(stats.slot_count - stats.live_count, 16384u + 128);
	EXPECT_GE(stats.slot_count - stats.live_count, 16384u - 128);
	tn_pool_destroy(p);
}

/* ---- a request ---- */

size_t committed(void *allocator, void (*stats)(void *, tn_stats *)) {
	tn_stats now;
	stats(allocator, &now);
	return now.committed_bytes;
}

TEST(conformance, B77_a_slab_obeys_with_its_next_call) {
	tn_slab *s = tn_slab_create(64, 0, nullptr);
	std::vector<void *> out(32 * mib / 64);
	worker owner;
	for (bool frees_first : {false, true}) {
		void *kept = nullptr;
		owner.call([&] {
			for (void *&p : out)
				p = tn_slab_alloc(s);
			for (size_t i = out.size(); i > 1; i--)
				tn_slab_free(s, out[i - 1]);
			kept = out[0];
			if (!frees_first)
				tn_slab_free(s, kept);
		});
		tn_trim_all();
		owner.call([&] {
			if (frees_first) {
				tn_slab_free(s, kept);
			} else {
				kept = tn_slab_alloc(s);
				tn_slab_free(s, kept);
			}
		});
		EXPECT_LE(
			committed(s, [](void *a, tn_stats *t) { tn_slab_stats(static_cast<tn_slab *>(a), t); }),
			32 * mib / 10)
			<< frees_first;
		owner.call([&] { EXPECT_TRUE(tn_slab_verify(s)); });
	}
	owner.call([&] { tn_slab_destroy(s); });
}

/* B77, batches */
TEST(idle, a_slab_obeys_with_its_next_batch) {
	tn_slab *s = tn_slab_create(64, 0, nullptr);
	std::vector<void *> out(100000);
	ASSERT_TRUE(tn_slab_alloc_batch(s, out.data(), out.size()));
	tn_slab_free_batch(s, out.data(), out.size() / 2);
	std::thread(tn_trim_all).join();
	tn_slab_free_batch(s, out.data() + out.size() / 2, out.size() / 2);
	tn_stats stats;
	tn_slab_stats(s, &stats);
	EXPECT_EQ(stats.chunk_count, 0u);
	tn_slab_destroy(s);
}

size_t heap_bytes(tn_heap *h) {
	return committed(h, [](void *a, tn_stats *t) { tn_heap_stats(static_cast<tn_heap *>(a), t); });
}

/* B77 */
TEST(idle, a_heap_obeys_with_its_next_calls) {
	for (bool zero : {false, true}) {
		tn_heap_options o = {};
		o.zero = zero;
		tn_heap *h = tn_heap_create(&o);
		std::vector<void *> out(32 * mib / 256);
		for (void *&p : out)
			p = tn_heap_alloc(h, 256, 0);
		size_t full = heap_bytes(h);
		for (void *p : out)
			tn_heap_free(h, p);
		std::thread(tn_trim_all).join();
		for (int i = 0; i < 1000; i++)
			tn_heap_free(h, tn_heap_alloc(h, 256, 0));
		EXPECT_LE(heap_bytes(h), full / 10);
		EXPECT_TRUE(tn_heap_verify(h));
		tn_heap_destroy(h);
	}
}

/* B77: an arena obeys with its next reset, or when it next needs a chunk. */
TEST(idle, an_arena_obeys_with_its_next_reset) {
	for (size_t reserved : {size_t(0), 64 * mib}) {
		tn_arena_options o = {};
		o.reserve_bytes = reserved;
		o.retain_bytes = 64 * mib;
		tn_arena *a = tn_arena_create(&o);
		for (size_t i = 0; i < 32 * mib / 1024; i++)
			tn_arena_alloc(a, 1024, 0);
		tn_arena_reset(a);
		std::thread(tn_trim_all).join();
		tn_arena_alloc(a, 1024, 0);
		tn_arena_reset(a);
		EXPECT_LE(
			committed(a, [](void *p, tn_stats *t) { tn_arena_stats(static_cast<tn_arena *>(p), t); }),
			32 * mib / 10)
			<< reserved;
		EXPECT_TRUE(tn_arena_verify(a));
		tn_arena_destroy(a);
	}
}

TEST(conformance, B78_a_shared_slab_gives_back_at_once) {
	tn_shared_slab *s = tn_shared_slab_create(64, 0, nullptr);
	auto bytes = [&] {
		return committed(
			s, [](void *a, tn_stats *t) { tn_shared_slab_stats(static_cast<tn_shared_slab *>(a), t); });
	};
	worker owner, other;
	owner.call([&] {
		std::vector<void *> out(32 * mib / 64);
		for (void *&p : out)
			p = tn_shared_slab_alloc(s);
		for (void *p : out)
			tn_shared_slab_free(s, p);
	});
	EXPECT_GT(tn_trim_all(), 28 * mib);
	EXPECT_LE(bytes(), 32 * mib / 10);
	owner.call([&] { tn_shared_slab_free(s, tn_shared_slab_alloc(s)); });
	tn_stats stats;
	tn_shared_slab_stats(s, &stats);
	EXPECT_LE(stats.chunk_count, 1u);
	/* Through a handle, and in a thread that is not near. */
	tn_shared_slab *far = tn_shared_slab_create(64, 0, nullptr);
	tn_local *handle = nullptr;
	other.call([&] {
		handle = tn_shared_slab_local(s);
		std::vector<void *> out(2000);
		for (void *&p : out)
			p = tn_shared_slab_local_alloc(handle);
		for (void *p : out)
			tn_shared_slab_local_free(handle, p);
		tn_shared_slab_free(far, tn_shared_slab_alloc(far));
	});
	tn_trim_all();
	other.call([&] { tn_shared_slab_local_free(handle, tn_shared_slab_local_alloc(handle)); });
	tn_shared_slab_stats(s, &stats);
	EXPECT_LE(stats.chunk_count, 2u) << "one for each thread";
	owner.call([&] { tn_shared_slab_flush(s); });
	other.call([&] { tn_shared_slab_flush(s); });
	tn_trim_all();
	tn_shared_slab_stats(s, &stats);
	EXPECT_EQ(stats.chunk_count, 0u);
	EXPECT_TRUE(tn_shared_slab_verify(s));
	tn_shared_slab_destroy(far);
	tn_shared_slab_destroy(s);
}

/* B78: fini runs in the thread that asks. */
TEST(idle, a_pool_is_trimmed_from_another_thread) {
	static std::thread::id ended_by;
	counts c;
	tn_pool_options o = options_of(c, true);
	o.fini = [](void *object, void *ctx) {
		ended_by = std::this_thread::get_id();
		end(object, ctx);
	};
	tn_pool *p = tn_pool_create(sizeof(buffered), 0, &o);
	worker owner;
	owner.call([&] { get_and_put(p, burst); });
	tn_trim_all();
	EXPECT_LE(c.idle_or_out() * object_bytes, 2 * 64 * kib);
	EXPECT_EQ(ended_by, std::this_thread::get_id());
	std::thread::id owner_id;
	owner.call([&] {
		owner_id = std::this_thread::get_id();
		get_and_put(p, 1);
	});
	EXPECT_EQ(c.idle_or_out(), 1u);
	EXPECT_EQ(ended_by, owner_id);
	tn_pool_destroy(p);
}

/* B78: inside init of a shared slab, whose lock is held; inside a source; inside a visit. */
TEST(idle, trim_all_from_within) {
	tn_shared_slab_options o = {};
	o.init = [](void *, void *) {
		tn_trim_all();
		return true;
	};
	tn_shared_slab *s = tn_shared_slab_create(64, 0, &o);
	std::vector<void *> out(1000);
	for (void *&p : out)
		p = tn_shared_slab_alloc(s);
	for (void *p : out)
		tn_shared_slab_free(s, p);
	EXPECT_TRUE(tn_shared_slab_verify(s));
	tn_shared_slab_destroy(s);

	tn_source source = {};
	source.acquire = [](void *, size_t size, size_t align) {
		tn_trim_all();
		return aligned_alloc(align, size);
	};
	source.release = [](void *, void *p, size_t) {
		tn_trim_all();
		std::free(p);
	};
	tn_slab_options slab_options = {};
	slab_options.source = &source;
	tn_slab *slab = tn_slab_create(64, 0, &slab_options);
	for (void *&p : out)
		p = tn_slab_alloc(slab);
	for (void *p : out)
		tn_slab_free(slab, p);
	EXPECT_TRUE(tn_slab_verify(slab));
	tn_slab_destroy(slab);
}

/* B78: two threads in the init of two slabs, each asking for the other's memory. */
/* The walk counts on slots that stay where they are. In debug the slab's lock keeps the trim out. */
TEST(idle, a_visit_of_live_slots_may_trim_all) {
	shared_slab_owner s = make_shared_slab(64);
	std::vector<void *> slots(3000);
	for (void *&p : slots)
		p = tn_shared_slab_alloc(s.get());
	for (size_t i = 0; i < slots.size(); i += 2)
		tn_shared_slab_free(s.get(), slots[i]);
	size_t visits = 0;
	auto visit = [](void *, void *ctx) {
		if ((*static_cast<size_t *>(ctx))++ % 100 == 0)
			tn_trim_all();
	};
	tn_shared_slab_each(s.get(), visit, &visits);
	EXPECT_EQ(visits, slots.size() / 2);
	EXPECT_TRUE(tn_shared_slab_verify(s.get()));
}

TEST(idle, two_that_trim_within_init_do_not_wait_for_each_other) {
	tn_shared_slab_options o = {};
	o.init = [](void *, void *) {
		tn_trim_all();
		return true;
	};
	tn_shared_slab *slabs[] = {tn_shared_slab_create(64, 0, &o), tn_shared_slab_create(64, 0, &o)};
	auto run = [&](size_t first) {
		for (size_t i = 0; i < 500; i++)
			tn_shared_slab_free(slabs[(first + i) % 2], tn_shared_slab_alloc(slabs[(first + i) % 2]));
		std::vector<void *> out;
		for (size_t i = 0; i < 500; i++)
			out.push_back(tn_shared_slab_alloc(slabs[first]));
		for (void *p : out)
			tn_shared_slab_free(slabs[first], p);
	};
	std::thread one(run, 0), two(run, 1);
	one.join();
	two.join();
	for (tn_shared_slab *s : slabs) {
		EXPECT_TRUE(tn_shared_slab_verify(s));
		tn_shared_slab_destroy(s);
	}
}

/* A request that the parent got and the child obeys. */
TEST(idle, a_fork_between_request_and_obedience) {
	tn_slab *s = tn_slab_create(64, 0, nullptr);
	counts c;
	tn_pool_options o = options_of(c, true);
	tn_pool *p = tn_pool_create(sizeof(buffered), 0, &o);
	std::vector<void *> out(100000);
	for (void *&slot : out)
		slot = tn_slab_alloc(s);
	for (void *slot : out)
		tn_slab_free(s, slot);
	get_and_put(p, burst);
	std::thread(tn_trim_all).join();
	int status = in_child(
		[&] {
			tn_slab_free(s, tn_slab_alloc(s));
			get_and_put(p, 1);
			tn_stats stats;
			tn_slab_stats(s, &stats);
			tn_trim_all();
			bool obeyed = stats.chunk_count <= 1 && c.idle_or_out() <= 1;
			return obeyed && tn_slab_verify(s) ? 0 : 1;
		},
		60);
	EXPECT_TRUE(exited_with(status, 0));
	tn_slab_free(s, tn_slab_alloc(s));
	EXPECT_TRUE(tn_slab_verify(s));
	get_and_put(p, 1);
	EXPECT_EQ(c.idle_or_out(), 1u);
	tn_slab_destroy(s);
	tn_pool_destroy(p);
}

/* Owners go on while another thread asks all the time. */
TEST(idle, owners_go_on_beside_requests) {
	std::atomic<bool> stop{false};
	tn_shared_slab *shared = tn_shared_slab_create(48, 0, nullptr);
	counts c;
	tn_pool_options o = options_of(c, true);
	tn_pool *p = tn_pool_create(sizeof(buffered), 0, &o);
	std::vector<std::thread> owners;
	for (int n = 0; n < 2; n++)
		owners.emplace_back([&] {
			tn_slab *s = tn_slab_create(32, 0, nullptr);
			tn_heap *h = tn_heap_create(nullptr);
			tn_arena *a = tn_arena_create(nullptr);
			std::vector<void *> slots(700), blocks(700), shared_slots(700);
			do {
				for (size_t i = 0; i < slots.size(); i++) {
					slots[i] = tn_slab_alloc(s);
					blocks[i] = tn_heap_alloc(h, 16 + i, 0);
					shared_slots[i] = tn_shared_slab_alloc(shared);
					tn_arena_alloc(a, 1000, 0);
					std::memset(slots[i], 1, 32);
					std::memset(blocks[i], 2, 16 + i);
				}
				for (size_t i = 0; i < slots.size(); i++) {
					tn_slab_free(s, slots[i]);
					tn_heap_free(h, blocks[i]);
					tn_shared_slab_free(shared, shared_slots[i]);
				}
				get_and_put(p, 100);
				tn_arena_reset(a);
				tn_slab_verify(s);
				tn_heap_verify(h);
				tn_arena_verify(a);
			} while (!stop);
			tn_slab_destroy(s);
			tn_heap_destroy(h);
			tn_arena_destroy(a);
		});
	for (int i = 0; i < 300; i++)
		tn_trim_all();
	stop = true;
	for (std::thread &t : owners)
		t.join();
	EXPECT_TRUE(tn_shared_slab_verify(shared));
	tn_shared_slab_destroy(shared);
	tn_pool_destroy(p);
	EXPECT_EQ(c.idle_or_out(), 0u);
}

/* ---- ahead ---- */

TEST(conformance, B79_prefill_builds_ahead) {
	counts c;
	tn_pool_options o = options_of(c, true);
	tn_pool *p = tn_pool_create(sizeof(buffered), 0, &o);
	ASSERT_TRUE(tn_pool_prefill(p, 500));
	EXPECT_EQ(c.built, 500u);
	get_and_put(p, 500);
	EXPECT_EQ(c.built, 500u);
	EXPECT_TRUE(tn_pool_prefill(p, 0));
	/* Objects that stay unused go. */
	use_for_two_windows(p, 1, 100);
	EXPECT_LE(c.idle_or_out() * object_bytes, 2 * 64 * kib);
	/* More than may be idle: nothing is built that stays. */
	size_t idle = c.idle_or_out();
	errno = 0;
	EXPECT_FALSE(tn_pool_prefill(p, 100000));
	EXPECT_EQ(errno, ENOMEM);
	EXPECT_EQ(c.idle_or_out(), idle);
	tn_pool_destroy(p);
}

TEST(idle, prefill_where_init_fails) {
	static size_t left;
	counts c;
	tn_pool_options o = options_of(c, false);
	o.init = [](void *object, void *ctx) { return left-- > 0 && build(object, ctx); };
	tn_pool *p = tn_pool_create(sizeof(buffered), 0, &o);
	left = 250;
	EXPECT_FALSE(tn_pool_prefill(p, 300));
	EXPECT_EQ(errno, ENOMEM);
	EXPECT_EQ(c.built, 250u);
	EXPECT_EQ(c.idle_or_out(), 0u);
	left = 1000;
	EXPECT_TRUE(tn_pool_prefill(p, 300));
	EXPECT_EQ(c.idle_or_out(), 300u);
	tn_pool_destroy(p);
}

TEST(conformance, B80_reserve_takes_chunks_ahead) {
	static size_t asked, most;
	asked = 0;
	most = 1000;
	tn_source source = {};
	source.acquire = [](void *, size_t size, size_t align) -> void * {
		return asked++ < most ? aligned_alloc(align, size) : nullptr;
	};
	source.release = [](void *, void *p, size_t) { std::free(p); };
	tn_slab_options o = {};
	o.source = &source;
	tn_slab *s = tn_slab_create(64, 0, &o);
	ASSERT_TRUE(tn_slab_reserve(s, 10000));
	size_t before = asked;
	std::vector<void *> out(10000);
	for (void *&p : out)
		ASSERT_NE(p = tn_slab_alloc(s), nullptr);
	EXPECT_EQ(asked, before);
	EXPECT_TRUE(tn_slab_verify(s));
	tn_stats stats, after;
	tn_slab_stats(s, &stats);
	most = asked + 3;
	EXPECT_FALSE(tn_slab_reserve(s, 100000));
	EXPECT_EQ(errno, ENOMEM);
	EXPECT_FALSE(tn_slab_reserve(s, SIZE_MAX));
	tn_slab_stats(s, &after);
	EXPECT_EQ(after.committed_bytes, stats.committed_bytes);
	for (void *p : out)
		tn_slab_free(s, p);
	EXPECT_TRUE(tn_slab_verify(s));
	tn_slab_destroy(s);
}

/* ---- maintenance ---- */

TEST(conformance, B81_maintenance_serves_a_silent_process) {
	counts c;
	tn_pool_options o = options_of(c, true);
	tn_pool *p = tn_pool_create(sizeof(buffered), 0, &o);
	tn_shared_slab *s = tn_shared_slab_create(64, 0, nullptr);
	ASSERT_TRUE(tn_maintain_start());
	ASSERT_TRUE(tn_maintain_start());
	/* The second round begins with a thread that sleeps because nothing was idle. */
	for (int round = 0; round < 2; round++) {
		get_and_put(p, burst);
		tn_pool_flush(p);
		std::vector<void *> out(32 * mib / 64);
		for (void *&slot : out)
			slot = tn_shared_slab_alloc(s);
		for (void *slot : out)
			tn_shared_slab_free(s, slot);
		tn_shared_slab_flush(s);
		tn_stats stats;
		for (int i = 0; i < 2000; i++) {
			skip_ms(decay_ms / 10);
			std::this_thread::sleep_for(std::chrono::milliseconds(5));
			tn_shared_slab_stats(s, &stats);
			if (c.idle_or_out() <= burst / 20 && (in_debug || stats.committed_bytes <= 32 * mib / 10))
				break;
		}
		EXPECT_LE(c.idle_or_out(), burst / 20);
		/* In debug a shared slab is a slab behind a lock. */
		if (!in_debug) {
			EXPECT_LE(stats.committed_bytes, 32 * mib / 10);
		}
	}
	tn_maintain_stop();
	tn_maintain_stop();
	tn_pool_destroy(p);
	tn_shared_slab_destroy(s);
}

/* ---- pressure ---- */

/* A file that tells of pressure, as the system's do. */
class told_file {
public:
	told_file() : path_("/tmp/tenure-pressure." + std::to_string(getpid())) {
		write("");
	}
	~told_file() {
		std::remove(path_.c_str());
	}
	const char *path() const {
		return path_.c_str();
	}
	void write(const std::string &text) const {
		std::string next = path_ + ".next";
		std::FILE *f = std::fopen(next.c_str(), "w");
		ASSERT_NE(f, nullptr);
		std::fputs(text.c_str(), f);
		std::fclose(f);
		std::rename(next.c_str(), path_.c_str());
	}

private:
	std::string path_;
};

struct told {
	std::atomic<size_t> first{0}, second{0}, bytes{0};
};

void note_step(unsigned step, size_t bytes, void *ctx) {
	told &t = *static_cast<told *>(ctx);
	(step == 1 ? t.first : t.second)++;
	t.bytes += bytes;
}

/* Waits until `done`, at most for ten seconds of real time, while `work` goes on. */
bool comes(const std::function<bool()> &done, const std::function<void()> &work) {
	for (int i = 0; i < 2000 && !done(); i++) {
		work();
		std::this_thread::sleep_for(std::chrono::milliseconds(5));
	}
	return done();
}

TEST(conformance, B82_pressure_takes_idle_memory_in_steps) {
	told_file file;
	const std::function<std::string(size_t)> formats[] = {
		[](size_t n) {
			return "some avg10=0.00 avg60=0.00 total=" + std::to_string(n * 1000000) + "\n";
		},
		[](size_t n) { return "low 0\nhigh " + std::to_string(n) + "\nmax 0\noom 0\noom_kill 0\n"; },
		[](size_t n) {
			return "MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable: " +
		           std::to_string(n > 1 ? 50 : 500) + " kB\n";
		},
	};
	for (const auto &format : formats) {
		told t;
		tn_pressure_options o = {};
		o.file = file.path();
		o.interval_ms = 5;
		o.callback = note_step;
		o.ctx = &t;
		file.write(format(1));
		ASSERT_TRUE(tn_pressure_start(&o));
		tn_shared_slab *shared = tn_shared_slab_create(64, 0, nullptr);
		tn_slab *s = tn_slab_create(64, 0, nullptr);
		std::vector<void *> out(8 * mib / 64);
		for (void *&p : out)
			p = tn_shared_slab_alloc(shared);
		for (void *p : out)
			tn_shared_slab_free(shared, p);
		for (void *&p : out)
			p = tn_slab_alloc(s);
		for (void *p : out)
			tn_slab_free(s, p);
		std::this_thread::sleep_for(std::chrono::milliseconds(50));
		EXPECT_EQ(t.first + t.second, 0u) << "no pressure yet";
		size_t n = 2;
		EXPECT_TRUE(comes([&] { return t.second > 0; }, [&] { file.write(format(n++)); }));
		EXPECT_GE(t.first, 1u);
		EXPECT_GT(t.bytes, 7 * mib);
		tn_slab_free(s, tn_slab_alloc(s));
		tn_stats stats;
		tn_slab_stats(s, &stats);
		EXPECT_LE(stats.chunk_count, 1u);
		tn_pressure_stop();
		size_t steps = t.first + t.second;
		file.write(format(n + 100));
		std::this_thread::sleep_for(std::chrono::milliseconds(30));
		EXPECT_EQ(t.first + t.second, steps) << "it goes on after the stop";
		tn_slab_destroy(s);
		tn_shared_slab_destroy(shared);
	}
}

TEST(idle, pressure_with_bad_options) {
	tn_pressure_options o = {};
	o.stall_percent = 101;
	EXPECT_FALSE(tn_pressure_start(&o));
	EXPECT_EQ(errno, EINVAL);
	o = {};
	o.file = "/nonexistent/pressure";
	EXPECT_FALSE(tn_pressure_start(&o));
	EXPECT_EQ(errno, EINVAL);
	tn_pressure_stop();
}

/* The system's own file: here it only has to be found, or refused as absent. */
TEST(idle, pressure_of_the_system) {
	bool on = tn_pressure_start(nullptr);
	EXPECT_TRUE(on || errno == ENOTSUP) << std::strerror(errno);
	tn_pressure_stop();
}

/* ---- it really goes ---- */

#ifdef __linux__
/* A child does the work, so that nothing else has been in its memory. */
void expect_in_child(const std::function<int()> &work) {
	if (sanitized)
		GTEST_SKIP() << "a sanitizer changes address space and resident memory";
	EXPECT_TRUE(exited_with(in_child(work, 120), 0));
}

int fill_and_free(size_t bytes) {
	tn_slab *s = tn_slab_create(1024, 0, nullptr);
	std::vector<void *> out(bytes / 1024);
	for (void *&p : out)
		std::memset(p = tn_slab_alloc(s), 1, 1024);
	for (void *p : out)
		tn_slab_free(s, p);
	tn_slab_destroy(s);
	return 0;
}

TEST(idle, what_trim_gives_back_is_not_resident) {
	for (bool locked : {false, true})
		expect_in_child([locked] {
			if (locked && mlockall(MCL_CURRENT | MCL_FUTURE) != 0)
				return 0; /* not allowed here */
			tn_trim_all();
			size_t before = resident_bytes(), told;
			fill_and_free(32 * mib);
			size_t full = resident_bytes();
			told = tn_trim_all();
			size_t went = full - std::min(full, resident_bytes());
			/* The bytes that it tells are those that went, within what the test itself took. */
			bool all = resident_bytes() <= before + 3 * mib;
			return went + 2 * mib >= told && (locked || all) ? 0 : 1;
		});
}

TEST(idle, the_address_space_of_empty_regions_goes) {
	expect_in_child([] {
		fill_and_free(mib);
		tn_trim_all();
		size_t before = address_space_bytes();
		for (int i = 0; i < 3; i++) {
			fill_and_free(300 * mib);
			tn_trim_all();
		}
		return address_space_bytes() <= before + 32 * mib ? 0 : 1;
	});
}

TEST(idle, a_first_use_with_little_address_space) {
	expect_in_child([] {
		rlimit most = {address_space_bytes() + 4 * mib, RLIM_INFINITY};
		most.rlim_max = most.rlim_cur;
		if (setrlimit(RLIMIT_AS, &most) != 0)
			return 2;
		tn_slab *s = tn_slab_create(64, 0, nullptr);
		return s != nullptr && tn_slab_alloc(s) != nullptr ? 0 : 1;
	});
}

TEST(idle, commits_follow_the_need_under_a_limit_of_data) {
	expect_in_child([] {
		rlimit most = {0, 0};
		std::FILE *f = std::fopen("/proc/self/statm", "r");
		unsigned long pages[6] = {};
		for (unsigned long &n : pages)
			if (std::fscanf(f, "%lu", &n) != 1)
				return 2;
		std::fclose(f);
		most.rlim_cur = most.rlim_max = pages[5] * 4096 + 1536 * kib;
		if (setrlimit(RLIMIT_DATA, &most) != 0)
			return 2;
		tn_slab *s = tn_slab_create(64, 0, nullptr);
		return s != nullptr && tn_slab_alloc(s) != nullptr ? 0 : 1;
	});
}
#endif

} /* namespace */
} /* namespace idle_memory */
