/* Random programs on heaps against a naive model: every live block with its bytes. */
#include "program.h"
#include "use.h"

#include <algorithm>
#include <map>

namespace model_heap {
namespace {

class heap_program {
public:
	heap_program(uint64_t seed, reach &r) : d(seed), r(r) {
		create();
	}
	~heap_program() {
		end();
	}

	void run(uint64_t ops) {
		for (uint64_t i = 0; i < ops && !::testing::Test::HasFatalFailure(); i++) {
			step();
			if (i % 64 == 0)
				check_all();
		}
		check_all();
	}

private:
	enum { LIVE_MAX = 3000 };

	struct block {
		size_t size;
		uint64_t seed;
	};
	using blocks = std::map<char *, block>;

	void step() {
		switch (d.below(20)) {
		case 0:
		case 1:
			return do_alloc_some(d.below(200));
		case 2:
		case 3:
			return do_free_some(d.below(200));
		case 4:
			return d.one_in(3) ? do_free_some(live.size()) : do_free_some(20);
		case 5:
			return d.one_in(5) ? do_reset() : do_each();
		case 6:
			return do_trim();
		case 7:
			return do_owns();
		case 8:
			return d.one_in(4) ? do_fail_next() : check_stats();
		case 9:
			return d.one_in(20) ? recreate() : do_absurd();
		case 10:
		case 11:
		case 12:
			return do_realloc();
		default:
			return d.one_in(2) ? do_alloc() : do_free();
		}
	}

	/* Creation. */

	void create() {
		tn_heap_options options = {};
		options.name = "model";
		options.source = books.source();
		options.zero = zero = d.one_in(3);
		options.limit_bytes = d.one_in(3) ? d.between(200000, 4000000) : 0;
		options.expendable = true;
		limit = options.limit_bytes == 0 ? SIZE_MAX : options.limit_bytes;
		/* A program prefers a few sizes. */
		largest = size_t{64} << d.below(10);
		books.heal();
		h = tn_heap_create(&options);
		ASSERT_NE(h, nullptr);
		resets = 0;
		r.hit(zero ? "zeroing" : "plain");
		r.hit(limit == SIZE_MAX ? "no limit" : "limit");
	}

	void end() {
		check_all();
		tn_heap_destroy(h);
		EXPECT_EQ(books.held_count(), 0u);
		live.clear();
	}

	void recreate() {
		r.hit("recreate");
		end();
		create();
	}

	/* The model. */

	void check(const blocks::value_type &one) {
		ASSERT_TRUE(filled(one.first, one.second.size, one.second.seed)) << "a live block was changed";
	}

	void add(char *p, size_t size, size_t align) {
		size_t room = tn_heap_usable_size(h, p);
		ASSERT_TRUE(aligned_to(p, align));
		ASSERT_TRUE(books.holds(p, room));
		ASSERT_TRUE(debug_mode ? room == size : room >= size);
		auto next = live.lower_bound(p);
		ASSERT_TRUE(next == live.end() || p + room <= next->first) << "overlaps a live block";
		ASSERT_TRUE(next == live.begin() || std::prev(next)->first + std::prev(next)->second.size <= p)
			<< "overlaps a live block";
		uint64_t seed = d.next();
		fill(p, size, seed);
		live[p] = {size, seed};
	}

	/* The first block at or behind a random address between the first block and the last. */
	blocks::iterator any() {
		char *lowest = live.begin()->first;
		size_t span = static_cast<size_t>(std::prev(live.end())->first - lowest);
		return live.lower_bound(lowest + d.below(span + 1));
	}

	void check_all() {
		for (const auto &one : live)
			check(one);
		ASSERT_TRUE(tn_heap_verify(h));
		check_stats();
	}

	void check_stats() {
		tn_stats stats = figures_of(h);
		size_t asked = 0, room = 0;
		for (const auto &one : live) {
			asked += one.second.size;
			room += tn_heap_usable_size(h, one.first);
		}
		ASSERT_STREQ(stats.name, "model");
		ASSERT_EQ(stats.live_count, live.size());
		ASSERT_TRUE(debug_mode ? stats.live_bytes >= asked : stats.live_bytes == room);
		ASSERT_EQ(stats.committed_bytes, books.held_bytes());
		ASSERT_LE(stats.committed_bytes, limit);
		ASSERT_LE(stats.chunk_count, books.held_count());
		ASSERT_GE(stats.peak_bytes, stats.live_bytes);
		ASSERT_LE(stats.live_bytes + stats.cached_bytes, stats.committed_bytes);
		ASSERT_LE(stats.waste_bytes, stats.live_bytes);
		ASSERT_EQ(stats.resets, resets);
		r.hit("stats");
	}

	void expect_failure(const std::string &before) {
		ASSERT_EQ(errno, ENOMEM);
		ASSERT_TRUE(books.failures() > failures || limit != SIZE_MAX) << "refused without a reason";
		if (limit == SIZE_MAX && !debug_mode) {
			ASSERT_EQ(to_text(figures_of(h)), before);
		}
		failures = books.failures();
		r.hit("failure");
	}

	size_t any_size() {
		if (d.one_in(60))
			return d.between(8000, 70000);
		return d.one_in(8) ? d.below(4 * largest) : d.below(largest);
	}

	/* Operations. */

	void do_alloc() {
		size_t size = any_size();
		size_t align = d.one_in(10) ? size_t{1} << d.below(14) : 0;
		std::string before = to_text(figures_of(h));
		size_t chunks = books.calls();
		errno = 0;
		char *p = take(h, size, align);
		if (p == nullptr)
			return expect_failure(before);
		r.hit(size > 8192 ? "large" : align > 16 ? "wide alignment" : "alloc");
		r.hit(books.calls() > chunks ? "new chunk" : "no new chunk");
		ASSERT_TRUE(!zero || all_bytes(p, size, 0));
		add(p, size, align == 0 ? 16 : align);
	}

	void do_alloc_some(size_t count) {
		for (size_t i = 0; i < count && live.size() < LIVE_MAX && !::testing::Test::HasFatalFailure();
			i++)
			do_alloc();
	}

	void do_free() {
		if (live.empty())
			return;
		auto one = any();
		check(*one);
		char *p = one->first;
		size_t size = one->second.size;
		live.erase(one);
		/* With a wide alignment the size alone does not tell where the block is. */
		if (d.one_in(2) && !aligned_to(p, 32))
			tn_heap_free_sized(h, p, size);
		else
			tn_heap_free(h, p);
		r.hit("free");
	}

	void do_free_some(size_t count) {
		while (count-- > 0 && !live.empty() && !::testing::Test::HasFatalFailure())
			do_free();
	}

	void do_realloc() {
		if (live.empty())
			return do_alloc();
		auto one = any();
		check(*one);
		block old = one->second;
		char *p = one->first;
		size_t size = d.one_in(3) ? old.size + d.below(40) : any_size();
		std::string before = to_text(figures_of(h));
		errno = 0;
		char *q = static_cast<char *>(tn_heap_realloc(h, p, size));
		if (q == nullptr) {
			check(*one);
			return expect_failure(before);
		}
		live.erase(one);
		size_t kept = std::min(size, old.size);
		ASSERT_TRUE(filled(q, kept, old.seed));
		ASSERT_TRUE(!zero || all_bytes(q + kept, size - kept, 0));
		r.hit(address(q) == address(p) ? "realloc in place" : "realloc elsewhere");
		add(q, size, 16);
	}

	void do_reset() {
		tn_heap_reset(h);
		resets++;
		live.clear();
		ASSERT_TRUE(tn_heap_verify(h));
		r.hit("reset");
	}

	void do_trim() {
		size_t held = books.held_bytes();
		size_t bytes = tn_heap_trim(h);
		ASSERT_EQ(books.held_bytes(), held - bytes);
		ASSERT_LE(figures_of(h).chunk_count, live.size());
		ASSERT_EQ(tn_heap_trim(h), 0u);
		r.hit(bytes == 0 ? "trim of nothing" : live.empty() ? "trim of all" : "trim of some");
	}

	static void note(void *p, size_t size, void *ctx) {
		static_cast<std::map<char *, size_t> *>(ctx)->emplace(static_cast<char *>(p), size);
	}

	void do_each() {
		std::map<char *, size_t> seen;
		tn_heap_each(h, note, &seen);
		ASSERT_EQ(seen.size(), live.size());
		for (const auto &one : live)
			ASSERT_TRUE(seen.count(one.first) == 1 && seen[one.first] >= one.second.size);
		r.hit("each");
	}

	void do_owns() {
		int on_stack = 0;
		ASSERT_FALSE(tn_heap_owns(h, &on_stack));
		ASSERT_FALSE(tn_heap_owns(h, nullptr));
		for (const auto &one : live)
			if (one.second.size > 0) {
				ASSERT_TRUE(tn_heap_owns(h, one.first + d.below(one.second.size)));
			}
		r.hit("owns");
	}

	void do_fail_next() {
		books.fail(1 + d.below(2), d.between(1, 4));
		failures = books.failures();
		r.hit("fail next");
	}

	void do_absurd() {
		std::string before = to_text(figures_of(h));
		errno = 0;
		ASSERT_EQ(take(h, SIZE_MAX - d.below(5000), size_t{1} << d.below(21)), nullptr);
		ASSERT_EQ(errno, ENOMEM);
		ASSERT_EQ(to_text(figures_of(h)), before);
		r.hit("absurd size");
	}

	dice d;
	reach &r;
	ledger books;
	tn_heap *h = nullptr;
	bool zero = false;
	size_t largest = 0;
	size_t limit = SIZE_MAX;
	uint64_t resets = 0;
	size_t failures = 0;
	blocks live;
};

TEST(model_heap, random_programs) {
	uint64_t ops = program_ops(debug_mode ? 3600 : 12000);
	reach r;
	if (!run_programs<heap_program>(ops, 600, r))
		return;
	uint64_t often = ops / 200;
	uint64_t seldom = ops / 3000;
	for (const char *op : {"alloc", "large", "new chunk", "no new chunk", "free", "each", "owns",
			 "absurd size", "stats", "realloc elsewhere"})
		r.expect(op, often);
	for (const char *op : {"plain", "zeroing", "limit", "no limit", "wide alignment", "recreate",
			 "reset", "trim of some", "failure", "fail next"})
		r.expect(op, seldom);
	if (!debug_mode)
		r.expect("realloc in place", often);
}

} /* namespace */
} /* namespace model_heap */
