/* Random programs on pools against a naive model: every object with its built state, whether it is
 * out or idle, and one fini for each init. Now and then another thread comes, and ends. */
#include "program.h"
#include "use.h"

#include <algorithm>
#include <map>
#include <thread>

namespace model_pool {
namespace {

class pool_program {
public:
	pool_program(uint64_t seed, reach &r) : d(seed), r(r) {
		create();
	}
	~pool_program() {
		end();
	}

	void run(uint64_t ops) {
		for (uint64_t i = 0; i < ops && !::testing::Test::HasFatalFailure(); i++) {
			step();
			check_stats();
			if (i % 64 == 0)
				check_all();
		}
		check_all();
	}

private:
	struct object {
		uint64_t magic, size, name, uses, beside;
		unsigned char rest[1];
	};
	static constexpr uint64_t sound = 0x6f626a6563740001;
	static constexpr size_t head = offsetof(object, rest);

	/* State that the pool must preserve. */
	struct memory {
		uint64_t name, uses;
		bool out;
	};

	void step() {
		switch (d.below(16)) {
		case 0:
		case 1:
			return do_get_some(d.below(200));
		case 2:
		case 3:
			return do_put_some(d.below(200));
		case 4:
			return d.one_in(2) ? do_get_some(1000) : do_put_some(out.size());
		case 5:
			return do_trim();
		case 6:
			return do_flush();
		case 7:
			return do_fail_init();
		case 8:
			return d.one_in(4) ? do_other_thread() : do_get_and_put();
		case 9:
			return d.one_in(10) ? recreate() : do_get();
		case 10:
			return tn_pool_put(p, nullptr);
		case 11:
			return do_get_and_put();
		default:
			return d.one_in(2) ? do_get() : do_put();
		}
	}

	/* Creation. */

	void create() {
		static const size_t sizes[] = {48, 100, 1000, 4096, 9000};
		static const size_t bounds[] = {1, 2, 15, 16, 100, 700, TN_NONE};
		tn_pool_options options = {};
		options.name = "model";
		size = sizes[d.below(sizeof sizes / sizeof sizes[0])];
		options.init = build;
		options.reset = clean;
		options.fini = take_apart;
		options.ctx = this;
		/* Whole windows pass at unpredictable places. */
		options.decay_ms = d.one_in(2) ? 1 : 0;
		decays = options.decay_ms == 1;
		size_t slot = round_up(size, 16);
		most_objects = 64 * mib / slot;
		most_bytes = 64 * mib;
		if (d.one_in(2)) {
			options.max_idle_objects = bounds[d.below(sizeof bounds / sizeof bounds[0])];
			most_objects = options.max_idle_objects == TN_NONE ? 0 : options.max_idle_objects;
		}
		if (d.one_in(3)) {
			options.max_idle_bytes = d.between(1, 500 * slot);
			most_bytes = options.max_idle_bytes;
		}
		weighs = d.one_in(3);
		options.size_of = weighs ? size_of : nullptr;
		magazine = magazine_of_bound(std::min(most_objects, most_bytes / slot));
		init_failures = 0;
		p = tn_pool_create(size, 0, &options);
		ASSERT_NE(p, nullptr);
		own = stats_of(p).committed_bytes;
		r.hit(weighs ? "weighed" : "not weighed");
		r.hit(magazine == 0 ? "nothing stays idle" : magazine < 64 ? "tight bound" : "wide bound");
		r.hit(decays ? "decays at once" : "decays late");
	}

	void end() {
		check_all();
		tn_pool_destroy(p);
		EXPECT_TRUE(objects.empty()) << "objects that were never taken apart";
		out.clear();
		objects.clear();
	}

	void recreate() {
		r.hit("recreate");
		end();
		create();
	}

	static bool build(void *place, void *ctx) {
		pool_program *m = static_cast<pool_program *>(ctx);
		if (m->init_failures > 0) {
			m->init_failures--;
			m->init_failed++;
			return false;
		}
		EXPECT_EQ(m->objects.count(place), 0u) << "built twice";
		object *o = static_cast<object *>(place);
		*o = {sound, m->size, ++m->last_name, 0, m->d.below(5000), {0}};
		fill(o->rest, m->size - head, o->name);
		m->objects[place] = {o->name, 0, false};
		m->r.hit("init");
		return true;
	}

	static void clean(void *place, void *ctx) {
		pool_program *m = static_cast<pool_program *>(ctx);
		m->resets++;
		m->judge(place);
	}

	static void take_apart(void *place, void *ctx) {
		pool_program *m = static_cast<pool_program *>(ctx);
		EXPECT_EQ(m->objects.count(place), 1u) << "taken apart, but not built";
		m->judge(place);
		static_cast<object *>(place)->magic = 0;
		m->objects.erase(place);
		m->r.hit("fini");
	}

	static size_t size_of(const void *place, void *ctx) {
		static_cast<pool_program *>(ctx)->r.hit("size_of");
		return static_cast<const object *>(place)->beside;
	}

	/* The model. */

	void judge(const void *place) {
		const object *o = static_cast<const object *>(place);
		const memory &m = objects[const_cast<void *>(place)];
		ASSERT_EQ(o->magic, sound);
		ASSERT_EQ(o->name, m.name) << "another object";
		ASSERT_EQ(o->uses, m.uses) << "its state was lost";
		ASSERT_TRUE(filled(o->rest, size - head, o->name)) << "its bytes were changed";
	}

	size_t idle() const {
		return objects.size() - out.size();
	}

	void check_all() {
		for (void *place : out)
			judge(place);
		check_stats();
	}

	void check_stats() {
		tn_stats stats = stats_of(p);
		size_t slot = round_up(size, 16);
		ASSERT_STREQ(stats.name, "model");
		ASSERT_EQ(stats.live_count, out.size());
		ASSERT_EQ(stats.live_bytes, out.size() * slot);
		ASSERT_GE(stats.cached_bytes, idle() * slot);
		if (!weighs) {
			ASSERT_EQ(stats.cached_bytes, idle() * slot);
		}
		size_t bound = std::min(most_objects, most_bytes / slot);
		ASSERT_LE(idle(), bound + 2 * magazine) << "more is idle than may be";
		ASSERT_LE(stats.cached_bytes, most_bytes + 2 * magazine * slot);
		ASSERT_LE(objects.size() * slot, stats.committed_bytes);
		r.hit(idle() > bound ? "beyond the bound" : "within the bound");
	}

	/* Operations. */

	void do_get() {
		size_t built = last_name;
		bool any_idle = idle() > 0;
		errno = 0;
		void *place = tn_pool_get(p);
		if (place == nullptr) {
			ASSERT_EQ(errno, ENOMEM);
			ASSERT_GT(init_failed, 0u) << "refused without a reason";
			init_failed = 0;
			r.hit("failure");
			return;
		}
		if (last_name == built) {
			r.hit("got an idle one");
		} else {
			/* No other thread can hold idle objects. */
			ASSERT_FALSE(any_idle && !decays && !elsewhere) << "a new one, though others were idle";
			r.hit("got a new one");
		}
		ASSERT_EQ(objects.count(place), 1u);
		memory &m = objects[place];
		ASSERT_FALSE(m.out) << "it is out already";
		judge(place);
		m.out = true;
		m.uses++;
		static_cast<object *>(place)->uses++;
		out.push_back(place);
	}

	void do_get_some(size_t count) {
		/* Keeps the working set of repeated checks within the processor's caches. */
		size_t most = std::min<size_t>(2000, mib / size);
		for (size_t i = 0; i < count && out.size() < most && !::testing::Test::HasFatalFailure(); i++)
			do_get();
	}

	void do_put() {
		do_put_some(1);
	}

	void do_put_some(size_t count) {
		count = std::min(count, out.size());
		bool shuffled = d.one_in(2);
		r.hit(shuffled ? "put in random order" : "put in LIFO order");
		while (count-- > 0 && !::testing::Test::HasFatalFailure()) {
			if (shuffled)
				std::swap(out.back(), out[d.below(out.size())]);
			put_last();
		}
	}

	void put_last() {
		void *place = out.back();
		judge(place);
		objects[place].out = false;
		out.pop_back();
		size_t before = resets, there = objects.size();
		tn_pool_put(p, place);
		ASSERT_EQ(resets, before + 1);
		r.hit(objects.size() < there ? "put took some apart" : "put");
	}

	void do_get_and_put() {
		if (out.empty())
			return;
		void *place = out.back();
		put_last();
		bool kept = objects.count(place) == 1;
		do_get();
		if (kept) {
			ASSERT_EQ(out.back(), place) << "the one put last comes first";
			r.hit("the same again");
		}
	}

	void do_flush() {
		tn_pool_flush(p);
		size_t bound = std::min(most_objects, most_bytes / round_up(size, 16));
		ASSERT_LE(idle(), bound) << "in the depot the bound is exact";
		ASSERT_LE(stats_of(p).cached_bytes, most_bytes);
		r.hit("flush");
	}

	void do_trim() {
		size_t before = stats_of(p).committed_bytes;
		size_t bytes = tn_pool_trim(p);
		ASSERT_EQ(idle(), 0u);
		ASSERT_EQ(stats_of(p).committed_bytes, before - bytes);
		ASSERT_TRUE(!out.empty() || only_record_and_shards(before - bytes, own));
		ASSERT_EQ(tn_pool_trim(p), 0u);
		r.hit(bytes == 0 ? "trim of nothing" : "trim");
	}

	void do_fail_init() {
		init_failures = d.between(1, 3);
		r.hit("fail init");
	}

	void do_other_thread() {
		elsewhere = true;
		std::thread([this] {
			do_get_some(d.below(500));
			do_put_some(d.below(500));
			do_get_some(d.below(50));
			/* The program's own thread may hold some beyond the bound all the time. */
			if (d.one_in(4))
				tn_pool_flush(p);
		}).join();
		elsewhere = false;
		r.hit("another thread");
	}

	dice d;
	reach &r;
	tn_pool *p = nullptr;
	size_t size = 0;
	size_t most_objects = 0;
	size_t most_bytes = 0;
	size_t magazine = 0;
	size_t own = 0;
	bool weighs = false;
	bool decays = false;
	bool elsewhere = false;
	size_t init_failures = 0;
	size_t init_failed = 0;
	size_t resets = 0;
	uint64_t last_name = 0;
	std::map<void *, memory> objects;
	std::vector<void *> out;
};

TEST(model_pool, random_programs) {
	uint64_t ops = program_ops(debug_mode ? 3000 : 6000);
	reach r;
	if (!run_programs<pool_program>(ops, 500, r))
		return;
	uint64_t often = ops / 200;
	uint64_t seldom = ops / 3000;
	for (const char *op : {"got an idle one", "got a new one", "the same again", "put",
			 "put took some apart", "flush", "put in random order", "put in LIFO order", "init", "fini",
			 "size_of", "fail init", "within the bound"})
		r.expect(op, often);
	for (const char *op : {"recreate", "another thread", "trim", "failure", "beyond the bound",
			 "weighed", "not weighed", "decays at once", "decays late", "tight bound", "wide bound"})
		r.expect(op, seldom);
	r.expect("nothing stays idle", ops / 100000);
}

} /* namespace */
} /* namespace model_pool */
