/* Random programs on slabs against a naive model: every live slot with its bytes. */
#include "allocators.h"
#include "ledger.h"
#include "program.h"

#include <algorithm>
#include <map>
#include <set>

namespace {

struct slot {
	char *p;
	uint64_t seed;
};

class slab_program {
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
			ASSERT_EQ(tn_slab_in_use(s), live.size());
			if (i % 64 == 0)
				check_all();
		}
		check_all();
	}

private:
	enum { LIVE_MAX = 3000 };

	void step() {
		switch (d.below(24)) {
		case 0:
		case 1:
			return do_alloc_some(d.below(200));
		case 2:
		case 3:
			return do_free_some(d.below(200));
		case 4:
			return do_free_some(live.size());
		case 5:
		case 6:
			return do_alloc_batch();
		case 7:
		case 8:
			return do_free_batch();
		case 9:
			return d.one_in(6) ? do_reset() : do_last_in_first_out();
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
		case 20:
			return do_free_null_and_one();
		default:
			return d.one_in(2) ? do_alloc() : do_free();
		}
	}

	/* Creation. */

	void create() {
		static const size_t sizes[] = {1, 8, 16, 24, 32, 48, 100, 256, 1000, 4096, 20000};
		tn_slab_options options = {};
		options.name = "model";
		options.source = books.source();
		if (d.one_in(2))
			options.chunk_bytes = d.between(1, 40000);
		options.limit_bytes = d.one_in(3) ? d.between(100000, 2000000) : 0;
		if (d.one_in(2))
			options.retain_chunks = d.one_in(2) ? TN_NONE : d.between(1, 20);
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
		s = tn_slab_create(size, align, &options);
		ASSERT_NE(s, nullptr);
		ASSERT_EQ(tn_slab_slot_size(s), round_up(size, align));
		own = books.held_count();
		resets = 0;
		r.hit(building ? "with init" : "plain");
		r.hit(align > 16 ? "wide alignment" : "narrow alignment");
	}

	void end() {
		check_all();
		tn_slab_destroy(s);
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

	void check_stats() {
		tn_stats stats = stats_of(s);
		ASSERT_STREQ(stats.name, "model");
		ASSERT_EQ(stats.live_count, live.size());
		size_t least = live.size() * tn_slab_slot_size(s);
		if (debug_mode) {
			ASSERT_GE(stats.live_bytes, least);
		} else {
			ASSERT_EQ(stats.live_bytes, least);
		}
		ASSERT_EQ(stats.committed_bytes, books.held_bytes());
		ASSERT_EQ(stats.chunk_count, books.held_count() - own);
		ASSERT_GE(stats.reserved_bytes, stats.committed_bytes);
		ASSERT_GE(stats.peak_bytes, stats.live_bytes);
		ASSERT_LE(stats.live_bytes + stats.cached_bytes, stats.committed_bytes);
		ASSERT_EQ(stats.resets, resets);
		check_partial(stats);
		r.hit("stats");
	}

	/* Chunks with live slots are full or partial; those without are neither. */
	void check_partial(const tn_stats &stats) {
		std::set<const void *> with_live;
		for (const slot &one : live)
			with_live.insert(std::prev(books.held().upper_bound(one.p))->first);
		ASSERT_LE(stats.partial_count, with_live.size());
		ASSERT_LE(with_live.size(), stats.chunk_count);
		r.hit(stats.partial_count == 0 ? "no partial chunk" : "partial chunks");
	}

	void expect_failure(const std::string &before) {
		ASSERT_EQ(errno, ENOMEM);
		tn_stats now = stats_of(s);
		ASSERT_EQ(now.live_count, live.size());
		ASSERT_TRUE(books.failures() > failures || init_failed > 0 || limit != SIZE_MAX) << before;
		failures = books.failures();
		init_failed = 0;
		r.hit("failure");
	}

	/* Operations. */

	void do_alloc() {
		size_t chunks = books.held_count();
		errno = 0;
		void *p = tn_slab_alloc(s);
		if (p == nullptr)
			return expect_failure("alloc refused without a reason");
		r.hit(books.held_count() > chunks ? "new chunk" : "alloc");
		add(p);
	}

	void do_alloc_some(size_t count) {
		for (size_t i = 0; i < count && live.size() < LIVE_MAX && !::testing::Test::HasFatalFailure();
			i++)
			do_alloc();
	}

	void do_free() {
		if (live.empty())
			return;
		choose(1);
		size_t chunks = books.held_count();
		tn_slab_free(s, remove_last().p);
		r.hit(books.held_count() < chunks ? "free gave chunks back" : "free");
	}

	void do_free_some(size_t count) {
		count = std::min(count, live.size());
		if (count == 0)
			return;
		choose(count);
		size_t chunks = books.held_count();
		while (count-- > 0)
			tn_slab_free(s, remove_last().p);
		r.hit(books.held_count() < chunks ? "free gave chunks back" : "free");
	}

	void do_alloc_batch() {
		size_t count =
			std::min<size_t>(d.one_in(4) ? d.below(1500) : d.below(100), LIVE_MAX - live.size());
		std::vector<void *> slots(count);
		errno = 0;
		if (!tn_slab_alloc_batch(s, slots.data(), count))
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
		tn_slab_free_batch(s, slots.data(), slots.size());
		r.hit("free batch");
	}

	void do_last_in_first_out() {
		if (live.empty())
			return;
		choose(1);
		slot last = remove_last();
		tn_slab_free(s, last.p);
		errno = 0;
		void *again = tn_slab_alloc(s);
		if (debug_mode && again == nullptr)
			return expect_failure("alloc refused without a reason");
		if (debug_mode) {
			/* The quarantine yields before an alloc has to fail, and only then. */
			bool pressed = books.failures() > failures || init_failed > 0 || limit != SIZE_MAX;
			ASSERT_TRUE(again != last.p || pressed) << "quarantine";
		} else {
			ASSERT_EQ(again, last.p);
		}
		r.hit("last in, first out");
		add(again);
	}

	void do_free_null_and_one() {
		tn_slab_free(s, nullptr);
		do_free();
	}

	void do_reset() {
		tn_slab_reset(s);
		resets++;
		live.clear();
		addresses.clear();
		ASSERT_TRUE(built.empty());
		r.hit("reset");
	}

	void do_trim() {
		size_t held = books.held_bytes();
		size_t bytes = tn_slab_trim(s);
		ASSERT_EQ(books.held_bytes(), held - bytes);
		std::set<const void *> with_live;
		for (const slot &one : live)
			with_live.insert(std::prev(books.held().upper_bound(one.p))->first);
		ASSERT_EQ(books.held_count() - own, with_live.size()) << "chunks without a live slot are gone";
		ASSERT_EQ(tn_slab_trim(s), 0u);
		for (const slot &one : live)
			check(one);
		r.hit(bytes == 0 ? "trim of nothing" : live.empty() ? "trim of all" : "trim of some");
	}

	void do_verify() {
		ASSERT_TRUE(tn_slab_verify(s));
		r.hit("verify");
	}

	static void note(void *p, void *ctx) {
		static_cast<std::vector<char *> *>(ctx)->push_back(static_cast<char *>(p));
	}

	void do_each() {
		std::vector<char *> seen;
		tn_slab_each(s, note, &seen);
		std::sort(seen.begin(), seen.end());
		ASSERT_TRUE(seen == std::vector<char *>(addresses.begin(), addresses.end()));
		r.hit("each");
	}

	void do_owns() {
		int on_stack = 0;
		ASSERT_FALSE(tn_slab_owns(s, &on_stack));
		ASSERT_FALSE(tn_slab_owns(s, s));
		ASSERT_FALSE(tn_slab_owns(s, nullptr));
		for (const slot &one : live)
			ASSERT_TRUE(tn_slab_owns(s, one.p + d.below(size)));
		r.hit("owns");
	}

	void do_fail_next() {
		books.fail(1 + d.below(2), d.between(1, 3));
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
		ASSERT_FALSE(tn_slab_alloc_batch(s, none, SIZE_MAX - d.below(100)));
		ASSERT_EQ(errno, ENOMEM);
		ASSERT_EQ(none[0], nullptr);
		r.hit("absurd batch");
	}

	dice d;
	reach &r;
	ledger books;
	tn_slab *s = nullptr;
	size_t size = 0;
	size_t align = 0;
	size_t limit = SIZE_MAX;
	size_t own = 0;
	uint64_t resets = 0;
	size_t failures = 0;
	bool building = false;
	size_t init_failures = 0;
	size_t init_failed = 0;
	std::set<void *> built;
	std::vector<slot> live;
	std::set<char *> addresses;
};

TEST(model_slab, random_programs) {
	uint64_t ops = program_ops(20000);
	reach r;
	if (!run_programs<slab_program>(ops, 1000, r))
		return;
	uint64_t often = ops / 200;
	uint64_t seldom = ops / 3000;
	for (const char *op : {"alloc", "new chunk", "free", "free in LIFO order", "free in random order",
			 "free in FIFO order", "batch", "free batch", "verify", "stats", "each", "owns",
			 "absurd batch", "last in, first out", "fail next", "init", "fini", "partial chunks"})
		r.expect(op, often);
	for (const char *op : {"plain", "with init", "wide alignment", "narrow alignment", "recreate",
			 "reset", "trim of nothing", "trim of some", "failure", "fail init", "no partial chunk",
			 "trim of all", "free gave chunks back"})
		r.expect(op, seldom);
}

} /* namespace */
