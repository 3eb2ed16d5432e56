/* Random programs on slabs and shared slabs against a naive model: every live slot with its bytes. On a
 * shared slab one thread runs at a time; now and then another one comes, uses the slots, leaves some of
 * them behind, and ends. */
#include "slabs.h"

#include <map>
#include <thread>

namespace model_slab {
namespace {

struct slot {
	char *p;
	uint64_t seed;
};

template <typename Slab> class slab_program {
public:
	slab_program(uint64_t seed, reach &r) : d(seed), r(r) {
		create();
	}
	~slab_program() {
		end();
	}

	void run(uint64_t ops) {
		for (uint64_t i = 0; i < ops && !::testing::Test::HasFatalFailure(); i++) {
			step();
			ASSERT_EQ(call::in_use(s), live.size());
			if (i % 64 == 0)
				check_all();
		}
		check_all();
	}

private:
	using call = kind<Slab>;

	/* Keeps the working set of repeated checks within the processor's caches. */
	size_t live_max() const {
		return call::shared ? std::min<size_t>(3000, 4 * mib / size) : 3000;
	}

	void step() {
		switch (d.below(26)) {
		case 0:
		case 1:
			return do_alloc_some(d.below(200));
		case 2:
		case 3:
			return do_free_some(d.below(200));
		case 4:
			return d.one_in(2) ? do_free_some(live.size()) : do_alloc_some(1500);
		case 5:
		case 6:
			return do_alloc_batch();
		case 7:
		case 8:
			return do_free_batch();
		case 9:
			return !call::shared && d.one_in(6) ? do_reset() : do_last_in_first_out();
		case 10:
			return do_trim();
		case 11:
			return do_verify();
		case 12:
			return check_stats();
		case 13:
			return do_each();
		case 14:
			return do_owns();
		case 15:
			return do_fail_next();
		case 16:
			return do_fail_init();
		case 17:
			return d.one_in(20) ? recreate() : do_alloc();
		case 18:
			return do_absurd_batch();
		case 19:
			return do_flush();
		case 20:
			return d.one_in(4) ? do_other_thread() : do_flush();
		case 21:
			return do_free_null_and_one();
		default:
			return d.one_in(2) ? do_alloc() : do_free();
		}
	}

	/* Creation. */

	void create() {
		static const size_t sizes[] = {1, 8, 16, 24, 32, 48, 100, 256, 1000, 4096, 20000};
		[[maybe_unused]] static const size_t magazines[] = {1, 2, 7, 31, 100, TN_MAGAZINE_SLOTS_MAX};
		typename call::options options = {};
		options.name = "model";
		options.source = books.source();
		if (d.one_in(2))
			options.chunk_bytes = d.between(1, 40000);
		options.limit_bytes = d.one_in(3) ? d.between(100000, 2000000) : 0;
		if (d.one_in(2))
			options.retain_chunks = d.one_in(2) ? TN_NONE : d.between(1, 20);
		bool adaptive = true;
		if constexpr (call::shared)
			if (d.one_in(2)) {
				options.magazine_slots = magazines[d.below(sizeof magazines / sizeof magazines[0])];
				adaptive = false;
			}
		size = sizes[d.below(sizeof sizes / sizeof sizes[0])];
		align = size_t{1} << d.below(8);
		building = size >= 8 && d.one_in(3);
		if (building) {
			options.init = build;
			options.fini = take_apart;
			options.ctx = this;
		}
		limit = options.limit_bytes == 0 ? SIZE_MAX : options.limit_bytes;
		books.heal();
		init_failures = 0;
		s = call::create(size, align, &options);
		ASSERT_NE(s, nullptr);
		ASSERT_EQ(call::slot_size(s), round_up(size, align));
		own = books.held_bytes();
		own_count = books.held_count();
		resets = 0;
		handle = nullptr;
		r.hit(building ? "with init" : "plain");
		r.hit(align > 16 ? "wide alignment" : "narrow alignment");
		r.hit(adaptive ? "adaptive magazines" : "fixed magazines");
		r.hit(limit == SIZE_MAX ? "without limit" : "with limit");
	}

	void end() {
		check_all();
		call::destroy(s);
		EXPECT_EQ(books.held_count(), 0u);
		EXPECT_TRUE(built.empty());
		live.clear();
		addresses.clear();
		built.clear();
	}

	void recreate() {
		r.hit("recreate");
		end();
		create();
	}

	static bool build(void *p, void *ctx) {
		slab_program *m = static_cast<slab_program *>(ctx);
		if (m->init_failures > 0) {
			m->init_failures--;
			m->init_failed++;
			return false;
		}
		EXPECT_TRUE(m->built.insert(p).second) << "built twice";
		static_cast<unsigned char *>(p)[0] = 0x42;
		m->r.hit("init");
		return true;
	}

	static void take_apart(void *p, void *ctx) {
		slab_program *m = static_cast<slab_program *>(ctx);
		EXPECT_EQ(m->built.erase(p), 1u) << "taken apart, but not built";
		EXPECT_EQ(*static_cast<unsigned char *>(p), 0x42) << "built state lost";
		m->r.hit("fini");
	}

	/* The two ways in. */

	tn_local *local() {
		tn_local *now = tn_shared_slab_local(s);
		EXPECT_NE(now, nullptr);
		if (!elsewhere) {
			EXPECT_TRUE(handle == nullptr || handle == now) << "a thread has one handle";
			handle = now;
		}
		return now;
	}

	void *alloc() {
		if constexpr (call::shared)
			if (d.one_in(2)) {
				r.hit("alloc through the handle");
				return tn_shared_slab_local_alloc(local());
			}
		return call::alloc(s);
	}

	void free(void *p) {
		if constexpr (call::shared)
			if (d.one_in(2)) {
				r.hit("free through the handle");
				return tn_shared_slab_local_free(local(), p);
			}
		call::free(s, p);
	}

	/* The model. A built slot keeps its first byte. */

	size_t first_byte() const {
		return building ? 1 : 0;
	}

	void write(const slot &one) {
		fill(one.p + first_byte(), size - first_byte(), one.seed);
	}

	void check(const slot &one) {
		ASSERT_TRUE(filled(one.p + first_byte(), size - first_byte(), one.seed))
			<< "a live slot was changed";
	}

	void add(void *p) {
		char *c = static_cast<char *>(p);
		ASSERT_TRUE(aligned_to(c, align));
		ASSERT_TRUE(books.holds(c, size));
		auto next = addresses.lower_bound(c);
		ASSERT_TRUE(next == addresses.end() || c + size <= *next) << "overlaps a live slot";
		ASSERT_TRUE(next == addresses.begin() || *std::prev(next) + size <= c)
			<< "overlaps a live slot";
		if (building) {
			ASSERT_EQ(built.count(p), 1u);
		}
		addresses.insert(c);
		live.push_back({c, d.next()});
		write(live.back());
	}

	/* The slots to free next, in one of three orders, at the end of `live`. */
	void choose(size_t count) {
		size_t order = d.below(3);
		static const char *const orders[] = {
			"free in LIFO order", "free in random order", "free in FIFO order"};
		r.hit(orders[order]);
		if (order == 2)
			std::reverse(live.begin(), live.end());
		if (order == 1)
			for (size_t i = 0; i < count; i++)
				std::swap(live[live.size() - 1 - i], live[d.below(live.size() - i)]);
	}

	slot remove_last() {
		slot last = live.back();
		check(last);
		live.pop_back();
		addresses.erase(last.p);
		return last;
	}

	void check_all() {
		for (const slot &one : live)
			check(one);
		check_stats();
	}

	std::set<const void *> chunks_with_live() const {
		std::set<const void *> with_live;
		for (const slot &one : live)
			with_live.insert(std::prev(books.held().upper_bound(one.p))->first);
		return with_live;
	}

	void check_stats() {
		tn_stats stats = stats_of(s);
		ASSERT_STREQ(stats.name, "model");
		ASSERT_EQ(stats.live_count, live.size());
		size_t least = live.size() * call::slot_size(s);
		if (debug_mode) {
			ASSERT_GE(stats.live_bytes, least);
		} else {
			ASSERT_EQ(stats.live_bytes, least);
		}
		ASSERT_EQ(stats.committed_bytes, books.held_bytes());
		ASSERT_LE(books.held_bytes(), limit);
		ASSERT_GE(stats.reserved_bytes, stats.committed_bytes);
		ASSERT_GE(stats.peak_bytes, stats.live_bytes);
		ASSERT_LE(stats.live_bytes + stats.cached_bytes, stats.committed_bytes);
		ASSERT_EQ(stats.resets, resets);
		size_t with_live = chunks_with_live().size();
		ASSERT_LE(with_live, stats.chunk_count);
		ASSERT_LE(stats.partial_count, stats.chunk_count);
		if (!call::shared) {
			ASSERT_EQ(stats.chunk_count, books.held_count() - own_count);
			ASSERT_LE(stats.partial_count, with_live) << "chunks without live slots are not partial";
		}
		r.hit(stats.partial_count == 0 ? "no partial chunk" : "partial chunks");
		r.hit("stats");
	}

	void expect_failure(const char *what) {
		ASSERT_EQ(errno, ENOMEM);
		ASSERT_EQ(call::in_use(s), live.size());
		ASSERT_EQ(stats_of(s).live_count, live.size());
		ASSERT_TRUE(books.failures() > failures || init_failed > 0 || limit != SIZE_MAX) << what;
		failures = books.failures();
		init_failed = 0;
		r.hit("failure");
	}

	/* Operations. */

	void do_alloc() {
		size_t held = books.held_bytes();
		errno = 0;
		void *p = alloc();
		if (p == nullptr)
			return expect_failure("alloc refused without a reason");
		r.hit(books.held_bytes() > held ? "new chunk" : "alloc");
		add(p);
	}

	void do_alloc_some(size_t count) {
		for (size_t i = 0; i < count && live.size() < live_max() && !::testing::Test::HasFatalFailure();
			i++)
			do_alloc();
	}

	void do_free() {
		do_free_some(1);
	}

	void do_free_some(size_t count) {
		count = std::min(count, live.size());
		if (count == 0)
			return;
		choose(count);
		size_t held = books.held_bytes();
		while (count-- > 0)
			free(remove_last().p);
		r.hit(books.held_bytes() < held ? "free gave chunks back" : "free");
	}

	void do_alloc_batch() {
		size_t count =
			std::min<size_t>(d.one_in(4) ? d.below(1500) : d.below(100), live_max() - live.size());
		std::vector<void *> slots(count);
		errno = 0;
		if (!call::alloc_batch(s, slots.data(), count))
			return expect_failure("batch refused without a reason");
		r.hit("batch");
		for (void *p : slots)
			add(p);
	}

	void do_free_batch() {
		size_t count = std::min(d.one_in(4) ? d.below(1500) : d.below(100), live.size());
		std::vector<void *> slots;
		if (count > 0)
			choose(count);
		while (count-- > 0) {
			if (d.one_in(20))
				slots.push_back(nullptr);
			slots.push_back(remove_last().p);
		}
		call::free_batch(s, slots.data(), slots.size());
		r.hit("free batch");
	}

	void do_last_in_first_out() {
		if (live.empty())
			return;
		choose(1);
		slot last = remove_last();
		free(last.p);
		errno = 0;
		void *again = alloc();
		/* In debug the quarantine yields before an alloc has to fail; a shared slab without memory for
		 * a magazine keeps no order. */
		constexpr bool may_yield = debug_mode || call::shared;
		if (again == nullptr && may_yield)
			return expect_failure("alloc refused without a reason");
		bool pressed =
			may_yield && (books.failures() > failures || init_failed > 0 || limit != SIZE_MAX);
		ASSERT_TRUE((again == last.p) == !debug_mode || pressed);
		r.hit("last in, first out");
		add(again);
	}

	void do_free_null_and_one() {
		free(nullptr);
		do_free();
	}

	void do_reset() {
		if constexpr (!call::shared) {
			tn_slab_reset(s);
			resets++;
			live.clear();
			addresses.clear();
			ASSERT_TRUE(built.empty());
			r.hit("reset");
		}
	}

	void do_flush() {
		flush(s);
		r.hit("flush");
	}

	/* Slots that another thread frees or leaves behind serve every thread. */
	void do_other_thread() {
		if (!call::shared)
			return;
		elsewhere = true;
		std::thread([this] {
			do_alloc_some(d.below(1500));
			do_free_some(d.below(1500));
			do_alloc_batch();
			do_free_batch();
			if (d.one_in(2))
				do_trim();
		}).join();
		elsewhere = false;
		r.hit("another thread");
	}

	void do_trim() {
		flush(s);
		size_t held = books.held_bytes();
		size_t bytes = call::trim(s);
		ASSERT_EQ(books.held_bytes(), held - bytes);
		if (!elsewhere) {
			size_t chunks = chunks_with_live().size();
			ASSERT_EQ(stats_of(s).chunk_count, chunks) << "chunks without a live slot are gone";
			ASSERT_TRUE(!live.empty() || only_record_and_shards(books.held_bytes(), own));
			ASSERT_EQ(call::trim(s), 0u);
		}
		for (const slot &one : live)
			check(one);
		r.hit(bytes == 0 ? "trim of nothing" : live.empty() ? "trim of all" : "trim of some");
	}

	void do_verify() {
		ASSERT_TRUE(call::verify(s));
		r.hit("verify");
	}

	static void note(void *p, void *ctx) {
		static_cast<std::vector<char *> *>(ctx)->push_back(static_cast<char *>(p));
	}

	void do_each() {
		std::vector<char *> seen;
		call::each(s, note, &seen);
		std::sort(seen.begin(), seen.end());
		ASSERT_TRUE(seen == std::vector<char *>(addresses.begin(), addresses.end()));
		r.hit("each");
	}

	void do_owns() {
		int on_stack = 0;
		ASSERT_FALSE(call::owns(s, &on_stack));
		ASSERT_FALSE(call::owns(s, s));
		ASSERT_FALSE(call::owns(s, nullptr));
		for (const slot &one : live)
			ASSERT_TRUE(call::owns(s, one.p + d.below(size)));
		r.hit("owns");
	}

	void do_fail_next() {
		books.fail(1 + d.below(3), d.between(1, 4));
		r.hit("fail next");
	}

	void do_fail_init() {
		if (!building)
			return;
		init_failures = d.between(1, 3);
		r.hit("fail init");
	}

	void do_absurd_batch() {
		void *none[1] = {nullptr};
		errno = 0;
		ASSERT_FALSE(call::alloc_batch(s, none, SIZE_MAX - d.below(100)));
		ASSERT_EQ(errno, ENOMEM);
		ASSERT_EQ(none[0], nullptr);
		r.hit("absurd batch");
	}

	dice d;
	reach &r;
	ledger books;
	Slab *s = nullptr;
	tn_local *handle = nullptr; /* of the program's own thread */
	bool elsewhere = false;
	size_t size = 0;
	size_t align = 0;
	size_t limit = SIZE_MAX;
	size_t own = 0, own_count = 0;
	uint64_t resets = 0;
	size_t failures = 0;
	bool building = false;
	size_t init_failures = 0;
	size_t init_failed = 0;
	std::set<void *> built;
	std::vector<slot> live;
	std::set<char *> addresses;
};

/* Runs programs of `ops` operations in all, and expects that they reached each of the events of both
 * kinds of slabs. */
template <typename Slab> bool run(uint64_t ops, reach &r) {
	if (!run_programs<slab_program<Slab>>(ops, 1000, r))
		return false;
	for (const char *op : {"alloc", "new chunk", "free", "free in LIFO order", "free in random order",
			 "free in FIFO order", "batch", "free batch", "verify", "stats", "each", "owns",
			 "absurd batch", "last in, first out", "fail next", "init", "fini", "partial chunks",
			 "flush"})
		r.expect(op, ops / 200);
	for (const char *op :
		{"plain", "with init", "wide alignment", "narrow alignment", "recreate", "trim of nothing",
			"trim of some", "failure", "fail init", "no partial chunk", "trim of all"})
		r.expect(op, ops / 3000);
	for (const char *option : {"with limit", "without limit"})
		r.expect(option, ops / 10000);
	return true;
}

TEST(model_slab, random_programs) {
	uint64_t ops = program_ops(20000);
	reach r;
	if (!run<tn_slab>(ops, r))
		return;
	r.expect("reset", ops / 3000);
	r.expect("free gave chunks back", debug_mode ? ops / 20000 : ops / 3000);
}

TEST(model_shared_slab, random_programs) {
	uint64_t ops = program_ops(debug_mode ? 6000 : 10000);
	reach r;
	if (!run<tn_shared_slab>(ops, r))
		return;
	for (const char *op : {"alloc through the handle", "free through the handle"})
		r.expect(op, ops / 200);
	r.expect("another thread", ops / 3000);
	for (const char *option : {"adaptive magazines", "fixed magazines"})
		r.expect(option, ops / 10000);
	/* Debug's quarantine is larger than the number of slots that these programs free. */
	r.expect("free gave chunks back", debug_mode ? 0 : ops / 20000);
}

} /* namespace */
} /* namespace model_slab */
