/* Random programs on arenas against a naive model: every live block by address, with its bytes. */
#include "allocators.h"
#include "ledger.h"
#include "program.h"

#include <algorithm>
#include <map>

namespace model_arena {
namespace {

struct block {
	char *p;
	size_t size;
	uint64_t seed;
	uint64_t birth; /* counts allocations; a rewind forgets what is younger than its mark */
};

struct mark {
	tn_checkpoint checkpoint;
	uint64_t birth;
	std::vector<std::pair<uint64_t, size_t>> sizes; /* of the blocks live at that time, by birth */
};

class arena_program {
public:
	arena_program(uint64_t seed, reach &r) : d(seed), r(r) {
		create();
	}
	~arena_program() {
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
	enum { BLOCKS_MAX = 400 };

	void step() {
		switch (d.below(32)) {
		case 0:
		case 1:
		case 2:
		case 3:
		case 4:
		case 5:
			return do_alloc(d.below(100), small_align());
		case 6:
		case 7:
			return do_alloc(d.below(3000), any_align());
		case 8:
			return do_alloc(d.below(200000), any_align());
		case 9:
			return do_alloc(0, any_align());
		case 10:
		case 11:
			return do_new_array();
		case 12:
		case 13:
		case 14:
			return do_resize();
		case 15:
		case 16:
		case 17:
			return do_realloc();
		case 18:
			return do_copy();
		case 19:
			return do_printf();
		case 20:
		case 21:
			return do_mark();
		case 22:
			return do_rewind();
		case 23:
			return d.one_in(6) ? do_reset() : do_bad_call();
		case 24:
			return d.one_in(4) ? do_trim() : do_owns();
		case 25:
			return d.one_in(20) ? recreate() : do_stats();
		case 26:
			return do_verify();
		case 27:
			return do_fail_next();
		case 28:
			return do_huge();
		default:
			return do_alloc(d.below(40), 8);
		}
	}

	size_t small_align() {
		return size_t{1} << d.below(5);
	}
	size_t any_align() {
		return d.one_in(8) ? size_t{1} << d.below(15) : small_align();
	}

	/* Creation. */

	void create() {
		tn_arena_options options = {};
		options.name = "model";
		books.heal();
		kind = d.below(6);
		if (kind != 3)
			options.source = books.source();
		if (d.one_in(2))
			options.chunk_bytes = d.between(1, 20000);
		if (d.one_in(3))
			options.chunk_bytes_max = d.one_in(2) ? TN_NONE : d.between(20000, 300000);
		if (d.one_in(3))
			options.retain_bytes = d.one_in(2) ? TN_NONE : d.between(1, 500000);
		options.limit_bytes = d.one_in(2) ? d.between(50000, 3000000) : 0;
		limit = options.limit_bytes == 0 ? SIZE_MAX : options.limit_bytes;
		if (kind == 1) {
			options.buffer = buffer + d.below(64);
			options.buffer_bytes = d.between(1, sizeof buffer - 64);
		}
		options.fixed = kind == 2;
		if (kind == 3)
			options.reserve_bytes = d.between(100000, 8000000);
		placed = d.one_in(2);
		if (placed)
			a = tn_arena_init(&storage, &options) ? &storage : nullptr;
		else
			a = tn_arena_create(&options);
		ASSERT_NE(a, nullptr);
		static const char *const kinds[] = {"chunks", "buffer", "fixed", "reserve", "chunks", "chunks"};
		r.hit(kinds[kind]);
		resets = 0;
	}

	void end() {
		check_all();
		if (placed)
			tn_arena_deinit(a);
		else
			tn_arena_destroy(a);
		EXPECT_EQ(books.held_count(), 0u);
		forget_all();
		dead.clear();
	}

	void recreate() {
		r.hit("recreate");
		end();
		create();
	}

	/* The model. */

	void forget_all() {
		blocks.clear();
		dead.clear();
		marks.clear();
	}

	/* No live block, and no block that a realloc left behind, overlaps [p, p + size). */
	void expect_free(const char *p, size_t size) {
		for (const block &b : blocks)
			ASSERT_TRUE(p + std::max<size_t>(size, 1) <= b.p || b.p + std::max<size_t>(b.size, 1) <= p);
		for (const block &b : dead)
			ASSERT_TRUE(p + size <= b.p || b.p + b.size <= p) << "reused before reset";
	}

	bool in_memory(const char *p, size_t size) {
		if (kind == 3)
			return tn_arena_owns(a, p) && (size == 0 || tn_arena_owns(a, p + size - 1));
		bool in_buffer = p >= buffer && p + size <= buffer + sizeof buffer;
		return in_buffer || books.holds(p, size);
	}

	void add(void *p, size_t size, size_t align) {
		char *c = static_cast<char *>(p);
		ASSERT_TRUE(aligned_to(c, align));
		ASSERT_TRUE(in_memory(c, size));
		expect_free(c, size);
		if (::testing::Test::HasFatalFailure())
			return;
		blocks.push_back({c, size, d.next(), births++});
		fill(c, size, blocks.back().seed);
		limit_blocks();
	}

	/* Keeps the naive walks short. */
	void limit_blocks() {
		if (blocks.size() > BLOCKS_MAX)
			do_reset();
	}

	void check(const block &b) {
		ASSERT_TRUE(filled(b.p, b.size, b.seed)) << "a block of " << b.size << " bytes was changed";
	}

	void check_all() {
		for (const block &b : blocks)
			check(b);
		check_stats();
	}

	void check_stats() {
		tn_stats stats = stats_of(a);
		size_t asked = 0;
		for (const block &b : blocks)
			asked += b.size;
		ASSERT_STREQ(stats.name, "model");
		ASSERT_GE(stats.live_bytes, asked);
		ASSERT_TRUE(stats.live_bytes > 0 || (blocks.empty() && dead.empty()));
		ASSERT_EQ(stats.live_count, 0u);
		ASSERT_EQ(stats.partial_count, 0u);
		ASSERT_EQ(stats.resets, resets);
		ASSERT_GE(stats.peak_bytes, stats.live_bytes);
		ASSERT_GE(stats.reserved_bytes, stats.committed_bytes);
		ASSERT_LE(stats.committed_bytes, limit);
		if (kind != 3) {
			ASSERT_EQ(stats.committed_bytes, books.held_bytes());
			ASSERT_LE(stats.chunk_count, books.held_count() + 1);
			ASSERT_GE(stats.chunk_count, books.held_count());
		}
	}

	/* A call failed: it was allowed to, and it changed nothing. */
	void expect_failure(const std::string &before, int code) {
		ASSERT_EQ(errno, code);
		std::string now = to_text(stats_of(a));
		ASSERT_EQ(now, before);
		bool may = kind == 2 || kind == 3 || books.failures() > failures || limit != SIZE_MAX ||
		           code == EINVAL;
		ASSERT_TRUE(may) << "refused without a reason";
		failures = books.failures();
		r.hit("failure");
	}

	struct growth {
		tn_stats stats;
		size_t calls;
	};
	growth before_growth() {
		return {stats_of(a), books.calls()};
	}

	void note_growth(const growth &g, size_t size) {
		tn_stats now = stats_of(a);
		if (now.chunk_count > g.stats.chunk_count)
			r.hit(size > 20000 ? "large block" : "new chunk");
		if (kind == 3 && now.committed_bytes > g.stats.committed_bytes)
			r.hit("commit more");
	}

	/* Operations. */

	void do_alloc(size_t size, size_t align) {
		growth g = before_growth();
		std::string before = to_text(g.stats);
		errno = 0;
		void *p = tn_arena_alloc(a, size, align);
		if (p == nullptr)
			return expect_failure(before, ENOMEM);
		r.hit(size == 0 ? "alloc of 0" : "alloc");
		note_growth(g, size);
		add(p, size, align);
	}

	void do_new_array() {
		size_t count = d.below(200);
		std::string before = to_text(stats_of(a));
		errno = 0;
		uint64_t *p = TN_NEW_ARRAY(a, uint64_t, count);
		if (p == nullptr)
			return expect_failure(before, ENOMEM);
		ASSERT_TRUE(all_bytes(p, count * sizeof *p, 0));
		r.hit("array");
		add(p, count * sizeof *p, alignof(uint64_t));
	}

	/* Mostly the last block, so that growth in place happens. */
	block *pick() {
		if (blocks.empty())
			return nullptr;
		return d.one_in(2) ? &blocks.back() : &blocks[d.below(blocks.size())];
	}

	size_t new_size_for(size_t size) {
		switch (d.below(4)) {
		case 0:
			return d.below(size + 1);
		case 1:
			return size + d.below(20);
		case 2:
			return d.one_in(10) ? d.below(300000) : d.below(2 * size + 50);
		default:
			return d.below(300);
		}
	}

	void expect_room(const block &b, size_t new_size) {
		for (const block &other : blocks) {
			if (other.birth == b.birth)
				continue;
			bool apart = b.p + std::max<size_t>(new_size, 1) <= other.p ||
			             other.p + std::max<size_t>(other.size, 1) <= b.p;
			ASSERT_TRUE(apart) << "grew into another block";
		}
		for (const block &other : dead)
			ASSERT_TRUE(b.p + new_size <= other.p || other.p + other.size <= b.p)
				<< "grew into an old place";
	}

	void do_resize() {
		block *b = pick();
		if (b == nullptr)
			return;
		check(*b);
		size_t size = new_size_for(b->size);
		std::string before = to_text(stats_of(a));
		errno = 77;
		if (!tn_arena_resize(a, b->p, b->size, size)) {
			ASSERT_GT(size, b->size) << "shrinking always can";
			ASSERT_EQ(errno, 77) << "false without errno";
			ASSERT_EQ(to_text(stats_of(a)), before);
			r.hit("resize refused");
			return check(*b);
		}
		ASSERT_TRUE(in_memory(b->p, size));
		ASSERT_TRUE(filled(b->p, std::min(size, b->size), b->seed));
		r.hit(size > b->size ? "grown in place" : "shrunk in place");
		expect_room(*b, size);
		b->size = size;
		fill(b->p, size, b->seed);
	}

	void do_realloc() {
		block *b = pick();
		if (b == nullptr || d.one_in(10)) {
			size_t size = d.below(200);
			errno = 0;
			std::string before = to_text(stats_of(a));
			void *p = tn_arena_realloc(a, nullptr, 0, size, 16);
			if (p == nullptr)
				return expect_failure(before, ENOMEM);
			r.hit("realloc of NULL");
			return add(p, size, 16);
		}
		realloc_block(*b);
	}

	void realloc_block(block &b) {
		check(b);
		size_t size = new_size_for(b.size);
		size_t align = any_align();
		std::string before = to_text(stats_of(a));
		errno = 0;
		char *p = static_cast<char *>(tn_arena_realloc(a, b.p, b.size, size, align));
		if (p == nullptr) {
			check(b);
			return expect_failure(before, ENOMEM);
		}
		ASSERT_TRUE(aligned_to(p, align));
		ASSERT_TRUE(filled(p, std::min(size, b.size), b.seed));
		if (p == b.p) {
			r.hit(size > b.size ? "realloc grew in place" : "realloc shrank in place");
			expect_room(b, size);
			b.size = size;
			return fill(p, size, b.seed);
		}
		ASSERT_TRUE(size > b.size || !aligned_to(b.p, align)) << "moved without need";
		r.hit("realloc moved");
		block old = b;
		blocks.erase(blocks.begin() + (&b - blocks.data()));
		dead.push_back(old);
		add(p, size, align);
	}

	void do_copy() {
		unsigned char text[500];
		size_t size = d.below(sizeof text);
		uint64_t seed = d.next();
		fill(text, size, seed);
		std::string before = to_text(stats_of(a));
		errno = 0;
		void *p = tn_arena_copy(a, text, size);
		if (p == nullptr)
			return expect_failure(before, ENOMEM);
		ASSERT_TRUE(filled(p, size, seed));
		r.hit("copy");
		add(p, size, 1);
	}

	void do_printf() {
		std::string text(
			d.one_in(10) ? d.below(20000) : d.below(200), static_cast<char>('a' + d.below(26)));
		int number = static_cast<int>(d.below(100000));
		std::string expected = text + "|" + std::to_string(number);
		std::string before = to_text(stats_of(a));
		errno = 0;
		char *p = tn_arena_printf(a, "%s|%d", text.c_str(), number);
		if (p == nullptr)
			return expect_failure(before, ENOMEM);
		ASSERT_EQ(std::strlen(p), expected.size());
		ASSERT_TRUE(p == expected);
		r.hit("printf");
		add(p, expected.size() + 1, 1);
	}

	void do_mark() {
		if (marks.size() > 20)
			return;
		mark m = {tn_arena_mark(a), births, {}};
		for (const block &b : blocks)
			m.sizes.push_back({b.birth, b.size});
		marks.push_back(m);
		r.hit("mark");
	}

	void do_rewind() {
		if (marks.empty())
			return;
		size_t depth = d.one_in(3) ? d.below(marks.size()) : marks.size() - 1;
		const mark m = marks[depth];
		size_t held = books.held_bytes();
		tn_arena_rewind(a, m.checkpoint);
		r.hit(books.held_bytes() < held ? "rewind gave back" : "rewind");
		/* A checkpoint may be used again; those behind it are stale. */
		marks.resize(depth + (d.one_in(2) ? 1 : 0));
		auto younger = [&m](const block &b) { return b.birth >= m.birth; };
		blocks.erase(std::remove_if(blocks.begin(), blocks.end(), younger), blocks.end());
		dead.erase(std::remove_if(dead.begin(), dead.end(), younger), dead.end());
		for (block &b : dead)
			cut_to_mark(b, m);
		for (block &b : blocks) {
			cut_to_mark(b, m);
			check(b);
		}
	}

	/* A block that grew after the mark still has the bytes of that time. */
	void cut_to_mark(block &b, const mark &m) {
		for (auto &size : m.sizes)
			if (size.first == b.birth && size.second < b.size) {
				b.size = size.second;
				r.hit("rewind cut a grown block");
			}
	}

	void do_reset() {
		check_all();
		size_t calls = books.calls();
		size_t held = books.held_bytes();
		tn_arena_reset(a);
		ASSERT_EQ(books.calls(), calls) << "a reset takes nothing";
		r.hit(books.held_bytes() < held ? "reset gave back" : "reset kept all");
		resets++;
		forget_all();
		ASSERT_EQ(stats_of(a).live_bytes, 0u);
		fill_again();
	}

	/* Kept chunks are used before a new one is taken. */
	void fill_again() {
		tn_stats stats = stats_of(a);
		if (kind == 3 || stats.chunk_count < 3 || d.one_in(2))
			return;
		size_t calls = books.calls();
		while (stats_of(a).cached_bytes > 3000 && books.calls() == calls && blocks.size() < 100)
			do_alloc(d.between(500, 1500), 16);
		if (books.calls() == calls)
			r.hit("retained chunk reuse");
	}

	void do_trim() {
		size_t held = books.held_bytes();
		size_t committed = stats_of(a).committed_bytes;
		size_t bytes = tn_arena_trim(a);
		ASSERT_EQ(stats_of(a).committed_bytes, committed - bytes);
		if (kind != 3) {
			ASSERT_EQ(books.held_bytes(), held - bytes);
		}
		r.hit(bytes == 0 ? "trim of nothing" : "trim");
		ASSERT_EQ(tn_arena_trim(a), 0u);
	}

	void do_owns() {
		int on_stack = 0;
		ASSERT_FALSE(tn_arena_owns(a, &on_stack));
		ASSERT_FALSE(tn_arena_owns(a, nullptr));
		ASSERT_FALSE(tn_arena_owns(a, a));
		for (const block &b : blocks) {
			ASSERT_TRUE(tn_arena_owns(a, b.p));
			ASSERT_TRUE(tn_arena_owns(a, b.p + (b.size == 0 ? 0 : b.size - 1)));
		}
		r.hit("owns");
	}

	void do_stats() {
		check_stats();
		r.hit("stats");
	}

	void do_verify() {
		ASSERT_TRUE(tn_arena_verify(a));
		r.hit("verify");
	}

	void do_fail_next() {
		books.fail(1 + d.below(2), d.between(1, 3));
		r.hit("fail next");
	}

	void do_huge() {
		std::string before = to_text(stats_of(a));
		errno = 0;
		ASSERT_EQ(tn_arena_alloc(a, SIZE_MAX - d.below(200), small_align()), nullptr);
		ASSERT_EQ(errno, ENOMEM);
		ASSERT_EQ(to_text(stats_of(a)), before);
		r.hit("huge");
	}

	void do_bad_call() {
		std::string before = to_text(stats_of(a));
		errno = 0;
		ASSERT_EQ(tn_arena_alloc(a, d.below(1000), 3 * small_align()), nullptr);
		ASSERT_EQ(errno, EINVAL);
		ASSERT_EQ(to_text(stats_of(a)), before);
		r.hit("bad alignment");
	}

	dice d;
	reach &r;
	ledger books;
	tn_arena storage;
	tn_arena *a = nullptr;
	char buffer[30000];
	bool placed = false;
	size_t kind = 0;
	size_t limit = SIZE_MAX;
	uint64_t resets = 0;
	uint64_t births = 0;
	size_t failures = 0;
	std::vector<block> blocks; /* in order of birth */
	std::vector<block> dead;   /* left behind by realloc */
	std::vector<mark> marks;
};

TEST(model_arena, random_programs) {
	uint64_t ops = program_ops(150000);
	reach r;
	if (!run_programs<arena_program>(ops, 3000, r))
		return;
	uint64_t often = ops / 500;
	uint64_t seldom = ops / 10000;
	for (const char *op : {"alloc", "alloc of 0", "array", "grown in place", "shrunk in place",
			 "resize refused", "realloc of NULL", "realloc grew in place", "realloc shrank in place",
			 "realloc moved", "copy", "printf", "mark", "rewind", "owns", "stats", "verify",
			 "fail next", "huge", "bad alignment", "failure", "new chunk", "large block"})
		r.expect(op, often);
	for (const char *op : {"chunks", "buffer", "fixed", "reserve", "recreate", "rewind gave back",
			 "rewind cut a grown block", "reset gave back", "trim", "trim of nothing", "commit more"})
		r.expect(op, seldom);
	/* Debug gives every chunk away at reset, and so has nothing to keep. */
	if (!debug_mode) {
		r.expect("reset kept all", seldom);
		r.expect("retained chunk reuse", seldom);
	}
}

} /* namespace */
} /* namespace model_arena */
