/* The shared slab under a crowd: threads come and go, and every object carries its owner's stamp,
 * which is checked when it is freed. When all threads rest, the figures are exact. */
#include "crowd.h"

#include <algorithm>
#include <chrono>

namespace stress_shared_slab {
namespace {

constexpr size_t lanes = 8; /* threads at a time, beside the one that watches */
constexpr size_t own_most = 200;
constexpr size_t batch_most = 40;
constexpr uint64_t built_mark = 0xb0117b0117b01170u;

struct setting {
	const char *name;
	size_t size;
	tn_shared_slab_options options;
	bool watched;
	size_t fails_once_in;
	bool built;
};

/* Built objects begin with two words that survive; the rest is stamped. */
struct built_head {
	uint64_t mark;
	void *self;
};

class program {
public:
	program(const setting &s, uint64_t seed) : how(s), first_seed(seed), chance(~seed) {
		tn_shared_slab_options options = s.options;
		options.name = s.name;
		if (s.watched)
			options.source = &books.source;
		if (s.built) {
			options.init = build;
			options.fini = take_apart;
			options.ctx = this;
		}
		slab.reset(tn_shared_slab_create(s.size, 0, &options));
		begin = s.built ? sizeof(built_head) : 0;
	}
	~program() {
		slab.reset();
		EXPECT_EQ(built, 0) << "init and fini were not called equally often";
	}

	void run(size_t phases, size_t steps);

	/* Takes an object for the owner with the number `owner`; null without memory. */
	bool open(parcel &to, void *p, uint64_t stamp) {
		if (p == nullptr)
			return false;
		auto *head = static_cast<built_head *>(p);
		wrong += how.built && (head->mark != built_mark || head->self != p);
		to = {p, stamp};
		put_stamp(static_cast<char *>(p) + begin, how.size - begin, stamp);
		return true;
	}
	/* Leaves the object as its next owner may see it. */
	void check(const parcel &what) {
		wrong += !has_stamp(static_cast<char *>(what.p) + begin, how.size - begin, what.stamp);
	}
	size_t magazine_slots() const {
		return how.options.magazine_slots != 0 ? how.options.magazine_slots : TN_MAGAZINE_SLOTS_MAX;
	}
	/* Upper bound of the objects that are live or on their way between a magazine and the depot. */
	size_t most_live() const {
		return (lanes + 1) * (own_most + 2 * mailbox::ROOM + batch_most + 3 * magazine_slots());
	}

	const setting &how;
	shared_slab_owner slab;
	mailbox boxes[lanes + 1]; /* the last one is for objects left behind */
	std::atomic<size_t> wrong{0}, absurd{0}, refused{0}, passed{0};

private:
	static bool build(void *slot, void *ctx) {
		auto *p = static_cast<program *>(ctx);
		if (p->how.fails_once_in != 0 && p->chance.one_in(p->how.fails_once_in))
			return false;
		*static_cast<built_head *>(slot) = {built_mark, slot};
		p->built++;
		return true;
	}
	static void take_apart(void *slot, void *ctx) {
		auto *p = static_cast<program *>(ctx);
		auto *head = static_cast<built_head *>(slot);
		p->wrong += head->mark != built_mark || head->self != slot;
		p->built--;
	}

	size_t count_allocatable();
	void run_lane(size_t lane, size_t phases, size_t steps, uint64_t seed);
	void check_at_rest();

	watched_source books;
	const uint64_t first_seed;
	dice chance; /* of init, which one thread calls at a time */
	int64_t built = 0;
	size_t begin = 0;
	rendezvous rest{lanes + 1};
	std::vector<parcel> kept[lanes]; /* by the threads that rest */
};

/* One thread's life. */
class worker {
public:
	worker(program &p, size_t lane, uint64_t seed, std::vector<parcel> &own)
		: p(p), slab(p.slab.get()), own(own), d(seed), lane(lane), stamp(seed << 20) {
	}

	void live(size_t steps) {
		if (d.one_in(2))
			handle = tn_shared_slab_local(slab);
		for (size_t i = 0; i < steps; i++)
			step();
		p.refused += refused;
		p.passed += passed;
	}
	/* Called before the thread ends: its objects go to other threads, or stay behind to be cleaned
	 * up later. */
	void leave() {
		if (d.one_in(3) && p.boxes[lanes].send(own))
			own.clear();
		while (!own.empty())
			if (!pass_on(own.size() < 20 ? own.size() : 20))
				drop(own.size());
	}

private:
	void step() {
		size_t dice = d.below(64);
		if (dice < 20)
			take();
		else if (dice < 24)
			take_batch();
		else if (dice < 40)
			drop_one(d.below(own.size() + 1));
		else if (dice < 43)
			drop(d.below(batch_most + 1));
		else if (dice < 55)
			pass_on(1 + d.below(20));
		else if (dice < 62)
			open_post();
		else if (dice == 62)
			look();
		else
			give_back();
	}

	void *alloc() {
		return handle != nullptr && d.one_in(2) ? tn_shared_slab_local_alloc(handle)
		                                        : tn_shared_slab_alloc(slab);
	}
	void give(const parcel &what) {
		p.check(what);
		if (handle != nullptr && d.one_in(2))
			tn_shared_slab_local_free(handle, what.p);
		else
			tn_shared_slab_free(slab, what.p);
	}

	void take() {
		parcel one;
		if (own.size() == own_most)
			return;
		if (p.open(one, alloc(), ++stamp))
			own.push_back(one);
		else
			refused++;
	}
	void take_batch() {
		void *slots[batch_most];
		size_t count = d.below(batch_most + 1);
		if (own.size() + count > own_most)
			return;
		if (!tn_shared_slab_alloc_batch(slab, slots, count)) {
			refused++;
			return;
		}
		for (size_t i = 0; i < count; i++) {
			own.emplace_back();
			p.open(own.back(), slots[i], ++stamp);
		}
	}
	void drop_one(size_t i) {
		if (i >= own.size())
			return;
		std::swap(own[i], own.back());
		give(own.back());
		own.pop_back();
	}
	void free_all(std::vector<parcel> &parcels) {
		std::vector<void *> slots;
		for (const parcel &what : parcels) {
			p.check(what);
			slots.push_back(what.p);
			if (d.one_in(16))
				slots.push_back(nullptr);
		}
		tn_shared_slab_free_batch(slab, slots.data(), slots.size());
		parcels.clear();
	}
	std::vector<parcel> cut(size_t count) {
		count = count < own.size() ? count : own.size();
		std::vector<parcel> some(own.end() - static_cast<ptrdiff_t>(count), own.end());
		own.resize(own.size() - count);
		return some;
	}
	void drop(size_t count) {
		std::vector<parcel> some = cut(count);
		free_all(some);
	}
	bool pass_on(size_t count) {
		std::vector<parcel> some = cut(count);
		if (p.boxes[d.below(lanes)].send(some)) {
			passed += some.size();
			return true;
		}
		own.insert(own.end(), some.begin(), some.end());
		return false;
	}
	void open_post() {
		std::vector<parcel> post = p.boxes[lane].collect();
		if (d.one_in(2))
			return free_all(post);
		for (const parcel &what : post)
			give(what);
	}
	void look() {
		size_t live = tn_shared_slab_in_use(slab);
		tn_stats s = stats_of(slab);
		p.absurd += live > p.most_live() || s.live_count > p.most_live() ||
		            s.live_bytes > s.committed_bytes || s.cached_bytes > s.committed_bytes;
		p.absurd += own.empty() ? 0 : !tn_shared_slab_owns(slab, own.back().p);
	}
	void give_back() {
		if (d.one_in(8))
			tn_shared_slab_trim(slab);
		else
			tn_shared_slab_flush(slab);
	}

	program &p;
	tn_shared_slab *slab;
	tn_local *handle = nullptr;
	std::vector<parcel> &own;
	dice d;
	size_t lane, refused = 0, passed = 0;
	uint64_t stamp;
};

/* Every second lane is one thread that rests where it is; in the others, threads come and go. */
void program::run_lane(size_t lane, size_t phases, size_t steps, uint64_t seed) {
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

void program::check_at_rest() {
	std::vector<void *> expected, found;
	for (auto &own : kept)
		for (const parcel &what : own) {
			check(what);
			expected.push_back(what.p);
		}
	for (auto &box : boxes) {
		std::vector<parcel> post = box.collect();
		for (const parcel &what : post) {
			check(what);
			expected.push_back(what.p);
		}
		EXPECT_TRUE(box.send(post));
	}
	EXPECT_TRUE(tn_shared_slab_verify(slab.get()));
	EXPECT_EQ(tn_shared_slab_in_use(slab.get()), expected.size());
	EXPECT_EQ(stats_of(slab.get()).live_count, expected.size());
	tn_shared_slab_each(
		slab.get(),
		[](void *slot, void *ctx) { static_cast<std::vector<void *> *>(ctx)->push_back(slot); },
		&found);
	std::sort(expected.begin(), expected.end());
	std::sort(found.begin(), found.end());
	EXPECT_EQ(found, expected);
	EXPECT_EQ(std::adjacent_find(expected.begin(), expected.end()), expected.end())
		<< "an object has two owners";
}

/* Number of slots that one thread gets before the slab fails; all are given back. */
size_t program::count_allocatable() {
	std::vector<void *> slots;
	while (void *p = tn_shared_slab_alloc(slab.get()))
		slots.push_back(p);
	tn_shared_slab_free_batch(slab.get(), slots.data(), slots.size());
	tn_shared_slab_trim(slab.get());
	return slots.size();
}

void program::run(size_t phases, size_t steps) {
	ASSERT_NE(slab, nullptr);
	size_t limit = how.options.limit_bytes;
	size_t most = limit != 0 ? count_allocatable() : 0;
	size_t at_first = stats_of(slab.get()).committed_bytes;
	books.fails_once_in = how.built ? 0 : how.fails_once_in;
	std::vector<std::thread> threads;
	for (size_t lane = 0; lane < lanes; lane++)
		threads.emplace_back([=] { run_lane(lane, phases, steps, first_seed * 100000 + lane * 1000); });
	for (size_t phase = 0; phase < phases; phase++) {
		rest.meet();
		check_at_rest();
		rest.meet();
	}
	for (auto &thread : threads)
		thread.join();
	check_at_rest();
	for (auto &box : boxes)
		for (const parcel &what : box.collect())
			tn_shared_slab_free(slab.get(), what.p);
	books.fails_once_in = 0;
	EXPECT_EQ(tn_shared_slab_in_use(slab.get()), 0u);
	tn_shared_slab_trim(slab.get());
	EXPECT_TRUE(tn_shared_slab_verify(slab.get()));
	EXPECT_TRUE(only_record_and_shards(stats_of(slab.get()).committed_bytes, at_first));
	if (how.watched) {
		EXPECT_EQ(books.held_bytes(), stats_of(slab.get()).committed_bytes);
	}
	if (limit != 0) {
		EXPECT_EQ(count_allocatable(), most);
		EXPECT_LE(books.peak_bytes(), limit);
		EXPECT_GT(books.peak_bytes(), limit - limit / 4) << "the limit was never near";
	}
	EXPECT_EQ(wrong, 0u) << "objects that were not what their owner left";
	EXPECT_EQ(absurd, 0u) << "figures that cannot have been";
	EXPECT_GT(passed, phases * steps / 10) << "hardly anything changed hands";
}

tn_shared_slab_options options_of(size_t magazine_slots, size_t limit_bytes, size_t chunk_bytes = 0) {
	tn_shared_slab_options o = {};
	o.magazine_slots = magazine_slots;
	o.limit_bytes = limit_bytes;
	o.chunk_bytes = chunk_bytes;
	return o;
}

/* Repeats with other seeds until the time of the long form is over and the expected failures have
 * happened. */
void stress(const setting &how) {
	auto until = std::chrono::steady_clock::now() + std::chrono::seconds(stress_seconds()) / 5;
	bool fails = how.fails_once_in != 0 || how.options.limit_bytes != 0;
	uint64_t first = program_seed(), seed = first;
	size_t refused = 0;
	while (!::testing::Test::HasFailure()) {
		SCOPED_TRACE("TENURE_SEED=" + std::to_string(seed));
		program p(how, seed++);
		p.run(3, debug_mode ? 400 : sanitized ? 1000 : 10000);
		refused += p.refused;
		if (std::chrono::steady_clock::now() >= until && (refused > 0 || !fails || seed > first + 100))
			break;
	}
	EXPECT_EQ(refused > 0, fails);
}

TEST(stress_shared_slab, as_it_comes) {
	stress({"as it comes", 64, options_of(0, 0), false, 0, false});
}

TEST(stress_shared_slab, small_magazines_and_chunks) {
	stress({"small", 24, options_of(3, 0, 4096), true, 0, false});
}

TEST(stress_shared_slab, a_source_that_fails) {
	stress({"failing", 40, options_of(8, 0, 4096), true, 3, false});
}

TEST(stress_shared_slab, at_the_limit) {
	stress({"limited", 256, options_of(0, 200 * kib), true, 0, false});
}

TEST(stress_shared_slab, built_objects) {
	stress({"built", 96, options_of(0, 0, 4096), true, 50, true});
}

} /* namespace */
} /* namespace stress_shared_slab */
