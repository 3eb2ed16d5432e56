/* The pool under a crowd: threads come and go, objects with buffers are put by another thread than
 * the one that got them, init fails now and then, and idle objects stay within their bound. */
#include "crowd.h"

#include <algorithm>
#include <chrono>

namespace stress_pool {
namespace {

constexpr size_t lanes = 8;
constexpr size_t own_most = 60;
constexpr size_t buffer_bytes = 96;
constexpr uint64_t built_mark = 0xb0117b0117b01170u;

struct setting {
	const char *name;
	size_t max_idle_objects, max_idle_bytes, decay_ms, fails_once_in;
	bool weighs;
};

/* An object owns a buffer and records whether it is in use. */
struct vessel {
	uint64_t mark;
	vessel *self;
	char *buffer;
	uint64_t stamp; /* number of the user, 0 for none */
};

class program {
public:
	program(const setting &s, uint64_t seed) : how(s), first_seed(seed) {
		tn_pool_options o = {};
		o.name = s.name;
		o.init = build;
		o.reset = clean;
		o.fini = take_apart;
		o.size_of = s.weighs ? weigh : nullptr;
		o.ctx = this;
		o.max_idle_objects = s.max_idle_objects;
		o.max_idle_bytes = s.max_idle_bytes;
		o.decay_ms = s.decay_ms;
		pool = make_pool(sizeof(vessel), 0, o);
	}
	~program() {
		pool.reset();
		EXPECT_EQ(built, 0) << "init and fini were not called equally often";
		EXPECT_EQ(wrong, 0u);
	}

	void run(size_t phases, size_t steps);

	vessel *get(uint64_t stamp) {
		auto *v = static_cast<vessel *>(tn_pool_get(pool.get()));
		if (v == nullptr) {
			refused++;
			return nullptr;
		}
		wrong += v->mark != built_mark || v->self != v || v->stamp != 0;
		v->stamp = stamp;
		put_stamp(v->buffer, buffer_bytes, stamp);
		return v;
	}
	void put(vessel *v, uint64_t stamp) {
		wrong += v->mark != built_mark || v->stamp != stamp;
		wrong += !has_stamp(v->buffer, buffer_bytes, stamp);
		tn_pool_put(pool.get(), v);
	}
	/* Idle objects that the contract allows a thread to hold beyond the bound. */
	size_t held_most() const {
		size_t by_bytes = how.max_idle_bytes == TN_NONE ? 0 : how.max_idle_bytes / sizeof(vessel);
		size_t bound = std::min(how.max_idle_objects == TN_NONE ? 0 : how.max_idle_objects, by_bytes);
		return 2 * (bound == 0 ? 0 : std::min<size_t>(std::max<size_t>(bound / 16, 1), 64));
	}
	size_t idle_most() const {
		return how.max_idle_objects == TN_NONE ? 0 : how.max_idle_objects;
	}

	const setting &how;
	pool_owner pool;
	mailbox boxes[lanes + 1];
	std::atomic<size_t> wrong{0}, refused{0}, passed{0};

private:
	static program *of(void *ctx) {
		return static_cast<program *>(ctx);
	}
	static bool build(void *p, void *ctx) {
		thread_local dice chance(of(ctx)->first_seed ^ address(&chance));
		if (of(ctx)->how.fails_once_in != 0 && chance.one_in(of(ctx)->how.fails_once_in))
			return false;
		auto *v = static_cast<vessel *>(p);
		*v = {built_mark, v, static_cast<char *>(std::malloc(buffer_bytes)), 0};
		int64_t now = ++of(ctx)->built;
		int64_t most = of(ctx)->most_built;
		while (now > most && !of(ctx)->most_built.compare_exchange_weak(most, now))
			continue;
		return true;
	}
	static void clean(void *p, void *ctx) {
		auto *v = static_cast<vessel *>(p);
		of(ctx)->wrong += v->stamp == 0;
		v->stamp = 0;
	}
	static size_t weigh(const void *p, void *ctx) {
		auto *v = static_cast<const vessel *>(p);
		of(ctx)->wrong += v->mark != built_mark || v->stamp != 0;
		return buffer_bytes;
	}
	static void take_apart(void *p, void *ctx) {
		auto *v = static_cast<vessel *>(p);
		of(ctx)->wrong += v->mark != built_mark || v->self != v;
		v->mark = 0;
		std::free(v->buffer);
		of(ctx)->built--;
	}

	void check_at_rest(size_t threads);
	void run_lane(size_t lane, size_t phases, size_t steps);

	const uint64_t first_seed;
	std::atomic<int64_t> built{0}, most_built{0};
	rendezvous rest{lanes + 1};
	std::vector<parcel> kept[lanes];
};

class worker {
public:
	worker(program &p, size_t lane, uint64_t seed, std::vector<parcel> &own)
		: p(p), own(own), d(seed), lane(lane), stamp(seed << 20) {
	}
	void live(size_t steps) {
		for (size_t i = 0; i < steps; i++)
			step();
	}
	void leave() {
		if (d.one_in(3) && p.boxes[lanes].send(own))
			own.clear();
		drop(own.size());
	}

private:
	void step() {
		size_t dice = d.below(64);
		if (dice < 28)
			take();
		else if (dice < 40)
			drop(1);
		else if (dice < 42)
			drop(d.below(30));
		else if (dice < 52)
			pass_on(1 + d.below(6));
		else if (dice < 61)
			open_post();
		else if (dice < 63)
			look();
		else
			give_back();
	}
	void take() {
		if (own.size() == own_most)
			return;
		vessel *v = p.get(++stamp);
		if (v != nullptr)
			own.push_back({v, stamp});
	}
	void drop(size_t count) {
		for (; count > 0 && !own.empty(); count--) {
			p.put(static_cast<vessel *>(own.back().p), own.back().stamp);
			own.pop_back();
		}
	}
	void pass_on(size_t count) {
		count = count < own.size() ? count : own.size();
		std::vector<parcel> some(own.end() - static_cast<ptrdiff_t>(count), own.end());
		if (!p.boxes[d.below(lanes)].send(some))
			return;
		own.resize(own.size() - count);
		p.passed += count;
	}
	void open_post() {
		for (const parcel &what : p.boxes[lane].collect())
			p.put(static_cast<vessel *>(what.p), what.stamp);
	}
	void look() {
		tn_stats s = stats_of(p.pool.get());
		size_t in_the_air = (lanes + 1) * (own_most + 2 * mailbox::ROOM + 3 * TN_MAGAZINE_SLOTS_MAX);
		p.wrong += s.live_count > in_the_air || s.live_bytes > s.committed_bytes;
	}
	void give_back() {
		if (d.one_in(8))
			tn_pool_trim(p.pool.get());
		else
			tn_pool_flush(p.pool.get());
	}

	program &p;
	std::vector<parcel> &own;
	dice d;
	size_t lane;
	uint64_t stamp;
};

void program::run_lane(size_t lane, size_t phases, size_t steps) {
	uint64_t seed = first_seed * 100000 + lane * 1000;
	worker stays(*this, lane, seed, kept[lane]);
	for (size_t phase = 0; phase < phases; phase++) {
		constexpr size_t lives = 5;
		for (size_t i = 0; lane % 2 != 0 && i < lives; i++)
			in_thread([&] {
				std::vector<parcel> own;
				worker w(*this, lane, seed + 100 * phase + 10 + i, own);
				w.live(steps / lives);
				w.leave();
			});
		if (lane % 2 == 0)
			stays.live(steps);
		rest.meet();
		rest.meet();
	}
	if (lane % 2 == 0)
		stays.leave();
}

/* `threads` threads rest and may hold idle objects. */
void program::check_at_rest(size_t threads) {
	size_t out = 0;
	for (auto &own : kept)
		out += own.size();
	for (auto &box : boxes)
		out += box.count();
	tn_stats s = stats_of(pool.get());
	EXPECT_EQ(s.live_count, out);
	size_t idle = static_cast<size_t>(built) - out;
	EXPECT_LE(idle, idle_most() + threads * held_most());
	if (how.weighs) {
		EXPECT_GE(s.cached_bytes, idle * sizeof(vessel));
		EXPECT_LE(s.cached_bytes, idle * (sizeof(vessel) + buffer_bytes));
		EXPECT_LE(s.cached_bytes, how.max_idle_bytes + threads * held_most() * sizeof(vessel));
	} else {
		EXPECT_EQ(s.cached_bytes, idle * sizeof(vessel));
	}
}

void program::run(size_t phases, size_t steps) {
	ASSERT_NE(pool, nullptr);
	std::vector<std::thread> threads;
	for (size_t lane = 0; lane < lanes; lane++)
		threads.emplace_back([=] { run_lane(lane, phases, steps); });
	for (size_t phase = 0; phase < phases; phase++) {
		rest.meet();
		check_at_rest(lanes / 2);
		rest.meet();
	}
	for (auto &thread : threads)
		thread.join();
	check_at_rest(0);
	for (auto &box : boxes)
		for (const parcel &what : box.collect())
			put(static_cast<vessel *>(what.p), what.stamp);
	check_at_rest(1);
	tn_pool_trim(pool.get());
	EXPECT_EQ(built, 0) << "nothing is out, and trim leaves nothing idle";
	EXPECT_EQ(stats_of(pool.get()).cached_bytes, 0u);
	/* Some objects are out when the pool ends; debug lists them. */
	for (uint64_t i = 0; i < 5 && !debug_mode; i++)
		get(i + 1);
	EXPECT_GT(passed, phases * steps / 20) << "hardly anything changed hands";
	EXPECT_GT(most_built, 0);
}

void stress(const setting &how) {
	auto until = std::chrono::steady_clock::now() + std::chrono::seconds(stress_seconds()) / 4;
	uint64_t first = program_seed(), seed = first;
	size_t refused = 0;
	while (!::testing::Test::HasFailure()) {
		SCOPED_TRACE("TENURE_SEED=" + std::to_string(seed));
		program p(how, seed++);
		p.run(3, debug_mode || sanitized ? 800 : 5000);
		refused += p.refused;
		bool enough = refused > 0 || how.fails_once_in == 0 || seed > first + 100;
		if (std::chrono::steady_clock::now() >= until && enough)
			break;
	}
	EXPECT_EQ(refused > 0, how.fails_once_in != 0);
}

TEST(stress_pool, bounded_by_objects) {
	stress({"by objects", 100, 64 * mib, TN_NONE, 0, false});
}

TEST(stress_pool, bounded_by_bytes_and_weighed) {
	stress({"by bytes", 1000000, 20000, TN_NONE, 0, true});
}

TEST(stress_pool, decays_and_fails) {
	stress({"decays", 2000, 64 * mib, 1, 20, false});
}

TEST(stress_pool, keeps_nothing) {
	stress({"nothing", TN_NONE, 64 * mib, 0, 30, false});
}

} /* namespace */
} /* namespace stress_pool */
