/* Random legal calls of the whole C API, one round after another: every option, absurd sizes and
 * alignments, sources without memory, limits, hostile names. Each live block has a pattern that is
 * checked while it lives, and an error is either EINVAL or ENOMEM. Sanitizers see the rest.
 *
 *   fuzz [SECONDS [SEED]]
 *
 * Every round has a seed of its own, which is printed when it fails; TENURE_SEED is the first one. */
#include "program.h"

#include <tenure/tenure.h>

#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace {

uint64_t round_seed, round_ops;

void say_round(const char *why) {
	std::fprintf(stderr, "fuzz: %s in the round with TENURE_SEED=%llu, after %llu calls\n", why,
		static_cast<unsigned long long>(round_seed), static_cast<unsigned long long>(round_ops));
}

void require(bool holds, const char *what, int line) {
	if (holds)
		return;
	std::fprintf(stderr, "fuzz.cpp:%d: %s\n", line, what);
	say_round("failed");
	std::abort();
}
#define REQUIRE(holds) require(holds, #holds, __LINE__)

void on_panic(const char *message) {
	std::fprintf(stderr, "%s\n", message);
	say_round("a panic");
}

#if defined(__SANITIZE_ADDRESS__)
void on_death() {
	say_round("an error");
}
#else
extern "C" void on_signal(int number) {
	char text[120];
	int size = std::snprintf(text, sizeof text, "fuzz: signal %d, TENURE_SEED=%llu, after %llu calls\n",
		number, static_cast<unsigned long long>(round_seed),
		static_cast<unsigned long long>(round_ops));
	if (write(2, text, static_cast<size_t>(size)) < 0)
		_exit(2);
	std::signal(number, SIG_DFL);
	std::raise(number);
}
#endif

void tell_deaths() {
	tn_on_panic(on_panic);
#if defined(__SANITIZE_ADDRESS__)
	__sanitizer_set_death_callback(on_death);
#else
	for (int number : {SIGSEGV, SIGBUS})
		std::signal(number, on_signal);
#endif
}

/* ---- values ---- */

/* Powers of two between these are more than the machine has, but not more than an address space: where
 * a system promises so much, filling it ends the process. */
enum { BITS_MOST = 24, BITS_ABSURD = sizeof(size_t) == 8 ? 42 : 31 };

class values : public dice {
public:
	using dice::dice;
	/* Mostly small, sometimes absurd. */
	size_t size() {
		switch (below(40)) {
		case 0:
			return SIZE_MAX - below(100);
		case 1:
			return size_t{1} << between(BITS_ABSURD, sizeof(size_t) * CHAR_BIT - 1);
		case 2:
			return PTRDIFF_MAX - below(20) + below(40);
		case 3:
			return between(1 << 16, 1 << 21);
		case 4:
			return 0;
		case 5:
		case 6:
		case 7:
			return between(1, 1 << 14);
		default:
			return between(1, 300);
		}
	}
	/* 0, a power of two, and sometimes no alignment at all. */
	size_t align() {
		switch (below(12)) {
		case 0:
			return next() >> below(64);
		case 1:
			return size_t{1} << below(22);
		case 2:
		case 3:
		case 4:
			return size_t{1} << below(8);
		default:
			return 0;
		}
	}
	size_t option() {
		switch (below(6)) {
		case 0:
			return TN_NONE;
		case 1:
			return one_in(2) ? SIZE_MAX >> below(sizeof(size_t) * CHAR_BIT - BITS_ABSURD)
			                 : below(1 << BITS_MOST) >> below(BITS_MOST);
		case 2:
			return between(1, 1 << 20);
		default:
			return 0;
		}
	}
	size_t limit() {
		return one_in(3) ? between(1, 1 << 22) : 0;
	}
	const char *name() {
		static const char *const names[] = {nullptr, "", "n", "GET /\x1b]0;x\x07\n%s%n",
			"\xff\xfe\xc2\x9b", "a name that is longer than the thirty-one bytes that are kept",
			"\u202eb"};
		return names[below(sizeof names / sizeof names[0])];
	}
};

/* ---- blocks ---- */

struct block {
	unsigned char *p;
	size_t size;
	unsigned char pattern;
};

/* The bytes of a block that are filled: all of a small one, the ends of a large one. */
template <class Visit> void each_byte(const block &b, size_t size, Visit visit) {
	size_t end = size < 4096 ? size : 2048;
	for (size_t i = 0; i < end; i++)
		visit(b.p[i], static_cast<unsigned char>(b.pattern + i));
	for (size_t i = size < 4096 ? size : b.size - 2048; i < b.size && end < size; i++)
		visit(b.p[i], static_cast<unsigned char>(b.pattern + i));
}

void fill(const block &b) {
	each_byte(b, b.size, [](unsigned char &byte, unsigned char value) { byte = value; });
}

void check(const block &b) {
	each_byte(b, b.size, [](unsigned char &byte, unsigned char value) { REQUIRE(byte == value); });
}

void check_start(const block &b, size_t size) {
	for (size_t i = 0; i < size && i < 2048; i++)
		REQUIRE(b.p[i] == static_cast<unsigned char>(b.pattern + i));
}

bool valid_align(size_t align) {
	return (align & (align - 1)) == 0 && align <= TN_ALIGN_MAX;
}

/* Checks the outcome of a call that hands out memory. */
bool got(void *p, size_t size, size_t align) {
	if (p == nullptr) {
		REQUIRE(errno == (valid_align(align) ? ENOMEM : EINVAL));
		return false;
	}
	REQUIRE(valid_align(align) && size <= PTRDIFF_MAX);
	REQUIRE(reinterpret_cast<uintptr_t>(p) % (align == 0 ? 16 : align) == 0);
	return true;
}

struct blocks {
	std::vector<block> all;
	void add(values &v, void *p, size_t size) {
		all.push_back({static_cast<unsigned char *>(p), size, static_cast<unsigned char>(v.next())});
		fill(all.back());
	}
	block take(size_t i) {
		block b = all[i];
		check(b);
		all[i] = all.back();
		all.pop_back();
		return b;
	}
	void check_all() const {
		for (const block &b : all)
			check(b);
	}
};

/* ---- a source that fails now and then ---- */

struct source {
	values v{0};
	size_t fails_one_in = 0, held = 0;
	tn_source source_of() {
		return {[](void *ctx, size_t size, size_t align) {
					return static_cast<source *>(ctx)->acquire(size, align);
				},
			[](void *ctx, void *p, size_t size) {
				static_cast<source *>(ctx)->held -= size;
				std::free(p);
			},
			this};
	}
	void *acquire(size_t size, size_t align) {
		void *p = nullptr;
		if (size > 64 << 20 || (fails_one_in != 0 && v.one_in(fails_one_in)))
			return nullptr;
		if (posix_memalign(&p, align < 16 ? 16 : align, size) != 0)
			return nullptr;
		held += size;
		return p;
	}
};

void check_stats(const tn_stats &s) {
	REQUIRE(std::strlen(s.name) <= TN_NAME_BYTES);
	REQUIRE(s.committed_bytes <= s.reserved_bytes);
	REQUIRE(s.thread_cached_bytes <= s.cached_bytes);
	REQUIRE(s.partial_count <= s.chunk_count);
}

/* ---- allocators: each call does one random thing ---- */

struct allocator {
	virtual ~allocator() = default;
	virtual void call(values &v) = 0;
};

/* Blocks of an arena in their order: those behind a mark end at a rewind. */
struct arena final : allocator {
	tn_arena *a;
	source from;
	std::vector<char> buffer;
	blocks live;
	struct mark {
		tn_checkpoint at;
		size_t count;
	};
	std::vector<mark> marks;
	explicit arena(values &v) {
		tn_arena_options o = {};
		tn_source its = from.source_of();
		from.fails_one_in = v.one_in(2) ? v.between(1, 9) : 0;
		o.name = v.name();
		o.chunk_bytes = v.option();
		o.chunk_bytes_max = v.option();
		o.limit_bytes = v.limit();
		o.retain_bytes = v.option();
		o.fixed = v.one_in(5);
		if (v.one_in(4)) {
			buffer.resize(v.between(1, 5000));
			o.buffer = buffer.data();
			o.buffer_bytes = v.one_in(9) ? 0 : buffer.size();
		}
		o.reserve_bytes = v.one_in(5) ? v.between(1, 1 << 24) : v.one_in(9) ? v.option() : 0;
		o.source = v.one_in(3) ? &its : nullptr;
		a = tn_arena_create(v.one_in(8) ? nullptr : &o);
		REQUIRE(a != nullptr || errno == ENOMEM || errno == EINVAL);
	}
	~arena() override {
		live.check_all();
		tn_arena_destroy(a);
		REQUIRE(from.held == 0);
	}
	void add(values &v, void *p, size_t size, size_t align) {
		if (got(p, size, align)) {
			REQUIRE(size == 0 || tn_arena_owns(a, p));
			live.add(v, p, size);
		}
	}
	void change(values &v) {
		size_t i = v.below(live.all.size()), size = v.size(), align = v.one_in(2) ? 0 : v.align();
		block &b = live.all[i];
		check(b);
		if (v.one_in(2)) {
			if (!tn_arena_resize(a, b.p, b.size, size))
				return check(b);
			REQUIRE(size <= PTRDIFF_MAX);
		} else {
			void *p = tn_arena_realloc(a, b.p, b.size, size, align);
			if (!got(p, size, align))
				return check(b);
			block moved = {static_cast<unsigned char *>(p), size, b.pattern};
			check_start(moved, size < b.size ? size : b.size);
			b.p = moved.p;
		}
		b.size = size;
		fill(b);
		/* A block that moved lies behind the marks. */
		marks.clear();
	}
	void call(values &v) override {
		if (a == nullptr)
			return;
		size_t size = v.size(), align = v.align();
		switch (v.below(24)) {
		case 0:
			tn_arena_reset(a);
			return live.all.clear(), marks.clear();
		case 1:
			tn_arena_trim(a);
			return live.check_all();
		case 2:
			return marks.push_back({tn_arena_mark(a), live.all.size()});
		case 3:
			if (marks.empty())
				return;
			live.check_all();
			tn_arena_rewind(a, marks.back().at);
			live.all.resize(marks.back().count);
			return marks.pop_back();
		case 4:
			REQUIRE(tn_arena_verify(a));
			return live.check_all();
		case 5: {
			tn_stats s;
			tn_arena_stats(a, &s);
			return check_stats(s);
		}
		case 6: {
			size_t count = v.one_in(4) ? v.size() : v.below(20);
			auto *p = static_cast<unsigned char *>(tn_arena_alloc_zeroed(a, count, size, align));
			bool wraps = size != 0 && count > SIZE_MAX / size;
			if (!got(p, wraps ? SIZE_MAX : count * size, align))
				return;
			for (size_t i = 0; i < count * size && i < 5000; i++)
				REQUIRE(p[i] == 0);
			return live.add(v, p, count * size);
		}
		case 7: {
			char text[100];
			std::memset(text, 'x', sizeof text);
			char *copy = static_cast<char *>(tn_arena_copy(a, text, v.below(sizeof text)));
			REQUIRE(copy != nullptr || errno == ENOMEM);
			char *printed = tn_arena_printf(a, "%*d", static_cast<int>(v.below(3000)), 7);
			REQUIRE(printed != nullptr ? printed[std::strlen(printed) - 1] == '7' : errno == ENOMEM);
			return;
		}
		case 8:
		case 9:
		case 10:
			if (!live.all.empty())
				change(v);
			return;
		default:
			return add(v, tn_arena_alloc(a, size, align), size, align);
		}
	}
};

bool maybe_init(void *slot, void *ctx) {
	(void)slot;
	return !static_cast<values *>(ctx)->one_in(50);
}

void no_fini(void *, void *) {
}

struct slab final : allocator {
	tn_slab *s;
	source from;
	values own;
	size_t size, align;
	bool expendable = false; /* otherwise debug would list live slots at the end */
	blocks live;
	explicit slab(values &v) : own(v.next()), size(v.size()), align(v.align()) {
		tn_slab_options o = {};
		tn_source its = from.source_of();
		from.fails_one_in = v.one_in(2) ? v.between(1, 9) : 0;
		o.name = v.name();
		o.chunk_bytes = v.one_in(3) ? v.option() : 0;
		o.limit_bytes = v.limit();
		o.retain_chunks = v.option();
		o.expendable = v.one_in(2);
		o.ctx = &own;
		o.init = v.one_in(3) ? maybe_init : nullptr;
		o.fini = o.init != nullptr ? no_fini : nullptr;
		o.source = v.one_in(3) ? &its : nullptr;
		bool plain = v.one_in(8);
		expendable = o.expendable && !plain;
		s = tn_slab_create(size, align, plain ? nullptr : &o);
		REQUIRE(s != nullptr || errno == ENOMEM || errno == EINVAL);
		REQUIRE(s == nullptr || (valid_align(align) && tn_slab_slot_size(s) >= size));
	}
	~slab() override {
		live.check_all();
		for (const block &b : live.all)
			if (!expendable)
				tn_slab_free(s, b.p);
		tn_slab_destroy(s);
		REQUIRE(from.held == 0);
	}
	void call(values &v) override {
		void *slots[70];
		size_t count = v.below(70);
		if (s == nullptr)
			return;
		switch (v.below(20)) {
		case 0:
			if (v.one_in(4))
				tn_slab_reset(s), live.all.clear();
			return;
		case 1:
			tn_slab_trim(s);
			return live.check_all();
		case 2:
			REQUIRE(tn_slab_verify(s) && tn_slab_in_use(s) == live.all.size());
			return live.check_all();
		case 3: {
			size_t seen = 0;
			tn_slab_each(s, [](void *, void *ctx) { ++*static_cast<size_t *>(ctx); }, &seen);
			REQUIRE(seen == live.all.size());
			tn_stats stats;
			tn_slab_stats(s, &stats);
			REQUIRE(stats.live_count == seen);
			return check_stats(stats);
		}
		case 4:
		case 5:
			if (!tn_slab_alloc_batch(s, slots, count))
				return REQUIRE(errno == ENOMEM);
			for (size_t i = 0; i < count; i++)
				live.add(v, slots[i], size);
			return;
		case 6:
		case 7:
			count = count < live.all.size() ? count : live.all.size();
			for (size_t i = 0; i < count; i++)
				slots[i] = live.take(v.below(live.all.size())).p;
			return tn_slab_free_batch(s, slots, count);
		case 8:
		case 9:
		case 10:
		case 11:
		case 12:
			return tn_slab_free(s, live.all.empty() ? nullptr : live.take(v.below(live.all.size())).p);
		default:
			void *p = tn_slab_alloc(s);
			if (p != nullptr)
				REQUIRE(tn_slab_owns(s, p));
			if (got(p, size, align))
				live.add(v, p, size);
		}
	}
};

struct shared_slab final : allocator {
	tn_shared_slab *s;
	source from;
	values own;
	size_t size, align;
	bool expendable = false;
	blocks live;
	explicit shared_slab(values &v) : own(v.next()), size(v.size()), align(v.align()) {
		tn_shared_slab_options o = {};
		tn_source its = from.source_of();
		from.fails_one_in = v.one_in(2) ? v.between(1, 9) : 0;
		o.name = v.name();
		o.chunk_bytes = v.one_in(3) ? v.option() : 0;
		o.magazine_slots = v.one_in(3) ? v.below(TN_MAGAZINE_SLOTS_MAX + 2) : 0;
		o.limit_bytes = v.limit();
		o.retain_chunks = v.option();
		o.shard_slots = v.option();
		o.expendable = v.one_in(2);
		o.ctx = &own;
		o.init = v.one_in(3) ? maybe_init : nullptr;
		o.fini = o.init != nullptr ? no_fini : nullptr;
		o.source = v.one_in(3) ? &its : nullptr;
		bool plain = v.one_in(8);
		expendable = o.expendable && !plain;
		s = tn_shared_slab_create(size, align, plain ? nullptr : &o);
		REQUIRE(s != nullptr || errno == ENOMEM || errno == EINVAL);
	}
	~shared_slab() override {
		live.check_all();
		for (const block &b : live.all)
			if (!expendable)
				tn_shared_slab_free(s, b.p);
		tn_shared_slab_destroy(s);
		REQUIRE(from.held == 0);
	}
	/* Another thread frees some slots and takes some, and ends. */
	void hand_over(values &v) {
		size_t count = v.below(live.all.size() + 1);
		uint64_t seed = v.next();
		std::thread([&] {
			values its(seed);
			for (size_t i = 0; i < count; i++)
				tn_shared_slab_free(s, live.take(its.below(live.all.size())).p);
			for (size_t i = its.below(40); i > 0; i--)
				alloc(its, tn_shared_slab_alloc(s));
			if (its.one_in(3))
				tn_shared_slab_flush(s);
		}).join();
	}
	void alloc(values &v, void *p) {
		if (got(p, size, align))
			live.add(v, p, size);
	}
	void call(values &v) override {
		void *slots[300];
		size_t count = v.below(v.one_in(5) ? 300 : 30);
		if (s == nullptr)
			return;
		switch (v.below(24)) {
		case 0:
			tn_shared_slab_trim(s);
			return live.check_all();
		case 1:
			REQUIRE(tn_shared_slab_verify(s) && tn_shared_slab_in_use(s) == live.all.size());
			return live.check_all();
		case 2: {
			size_t seen = 0;
			tn_shared_slab_each(s, [](void *, void *ctx) { ++*static_cast<size_t *>(ctx); }, &seen);
			REQUIRE(seen == live.all.size());
			tn_stats stats;
			tn_shared_slab_stats(s, &stats);
			REQUIRE(stats.live_count == seen);
			return check_stats(stats);
		}
		case 3: {
			tn_shared_slab_knobs knobs = {v.option(), v.option()};
			return tn_shared_slab_tune(s, &knobs);
		}
		case 4:
			return tn_shared_slab_flush(s);
		case 5:
			return v.one_in(3) ? hand_over(v) : void();
		case 6:
		case 7:
			if (!tn_shared_slab_alloc_batch(s, slots, count))
				return REQUIRE(errno == ENOMEM);
			for (size_t i = 0; i < count; i++)
				live.add(v, slots[i], size);
			return;
		case 8:
		case 9:
			count = count < live.all.size() ? count : live.all.size();
			for (size_t i = 0; i < count; i++)
				slots[i] = live.take(v.below(live.all.size())).p;
			return tn_shared_slab_free_batch(s, slots, count);
		case 10:
		case 11: {
			tn_local *l = tn_shared_slab_local(s);
			if (l == nullptr)
				return REQUIRE(errno == ENOMEM);
			if (v.one_in(2) && !live.all.empty())
				return tn_shared_slab_local_free(l, live.take(v.below(live.all.size())).p);
			return alloc(v, tn_shared_slab_local_alloc(l));
		}
		case 12:
		case 13:
		case 14:
		case 15:
			return tn_shared_slab_free(
				s, live.all.empty() ? nullptr : live.take(v.below(live.all.size())).p);
		default:
			return alloc(v, tn_shared_slab_alloc(s));
		}
	}
};

struct pool final : allocator {
	tn_pool *p;
	values own;
	size_t size, align;
	blocks live;
	explicit pool(values &v) : own(v.next()), size(v.size()), align(v.align()) {
		tn_pool_options o = {};
		o.name = v.name();
		o.ctx = &own;
		o.init = v.one_in(3) ? maybe_init : nullptr;
		o.reset = v.one_in(3) ? no_fini : nullptr;
		o.fini = v.one_in(3) ? no_fini : nullptr;
		if (v.one_in(3))
			o.size_of = [](const void *, void *ctx) {
				return static_cast<values *>(ctx)->below(100000);
			};
		o.max_idle_objects = v.option();
		o.max_idle_bytes = v.option();
		o.decay_ms = v.one_in(2) ? v.option() : v.between(1, 5);
		p = tn_pool_create(size, align, v.one_in(8) ? nullptr : &o);
		REQUIRE(p != nullptr || errno == ENOMEM || errno == EINVAL);
	}
	~pool() override {
		live.check_all();
		for (const block &b : live.all)
			tn_pool_put(p, b.p);
		tn_pool_destroy(p);
	}
	void call(values &v) override {
		if (p == nullptr)
			return;
		switch (v.below(20)) {
		case 0:
			tn_pool_trim(p);
			return live.check_all();
		case 1:
			return tn_pool_flush(p);
		case 2: {
			tn_stats stats;
			tn_pool_stats(p, &stats);
			REQUIRE(stats.live_count == live.all.size());
			return check_stats(stats);
		}
		case 3:
			if (!live.all.empty() && v.one_in(3))
				std::thread([&] { tn_pool_put(p, live.take(0).p); }).join();
			return;
		default:
			if (v.one_in(2) && !live.all.empty())
				return tn_pool_put(p, live.take(v.below(live.all.size())).p);
			void *object = tn_pool_get(p);
			if (got(object, size, align))
				live.add(v, object, size);
		}
	}
};

struct heap final : allocator {
	tn_heap *h;
	source from;
	bool zero = false, expendable = false;
	blocks live;
	explicit heap(values &v) {
		tn_heap_options o = {};
		tn_source its = from.source_of();
		from.fails_one_in = v.one_in(2) ? v.between(1, 9) : 0;
		o.name = v.name();
		o.limit_bytes = v.limit();
		bool plain = v.one_in(8);
		zero = o.zero = v.one_in(3) && !plain;
		expendable = o.expendable = v.one_in(2) && !plain;
		o.source = v.one_in(3) ? &its : nullptr;
		h = tn_heap_create(plain ? nullptr : &o);
		REQUIRE(h != nullptr || errno == ENOMEM || errno == EINVAL);
	}
	~heap() override {
		live.check_all();
		for (const block &b : live.all)
			if (!expendable)
				tn_heap_free(h, b.p);
		tn_heap_destroy(h);
		REQUIRE(from.held == 0);
	}
	void change(values &v) {
		size_t i = v.below(live.all.size()), size = v.size();
		block &b = live.all[i];
		check(b);
		void *p = tn_heap_realloc(h, b.p, size);
		if (p == nullptr) {
			REQUIRE(errno == ENOMEM);
			return check(b);
		}
		block moved = {static_cast<unsigned char *>(p), size, b.pattern};
		check_start(moved, size < b.size ? size : b.size);
		for (size_t k = b.size; zero && k < size && k < b.size + 4000; k++)
			REQUIRE(moved.p[k] == 0);
		b = moved;
		fill(b);
	}
	void call(values &v) override {
		if (h == nullptr)
			return;
		size_t size = v.size(), align = v.align();
		switch (v.below(24)) {
		case 0:
			if (v.one_in(4))
				tn_heap_reset(h), live.all.clear();
			return;
		case 1:
			tn_heap_trim(h);
			return live.check_all();
		case 2:
			REQUIRE(tn_heap_verify(h));
			return live.check_all();
		case 3: {
			size_t seen = 0;
			tn_heap_each(h, [](void *, size_t, void *ctx) { ++*static_cast<size_t *>(ctx); }, &seen);
			REQUIRE(seen == live.all.size());
			tn_stats stats;
			tn_heap_stats(h, &stats);
			REQUIRE(stats.live_count == seen && stats.waste_bytes <= stats.live_bytes);
			return check_stats(stats);
		}
		case 4:
		case 5:
		case 6:
			if (!live.all.empty())
				change(v);
			return;
		case 7:
		case 8:
		case 9:
		case 10:
		case 11:
		case 12:
			return tn_heap_free(h, live.all.empty() ? nullptr : live.take(v.below(live.all.size())).p);
		default:
			auto *p = static_cast<unsigned char *>(tn_heap_alloc(h, size, align));
			if (!got(p, size, align))
				return;
			REQUIRE(tn_heap_owns(h, p) && tn_heap_usable_size(h, p) >= size);
			for (size_t i = 0; zero && i < size && i < 4000; i++)
				REQUIRE(p[i] == 0);
			live.add(v, p, size);
		}
	}
};

/* A tree of scopes, with the allocators that they own. */
struct scopes final : allocator {
	struct node {
		tn_scope *s;
		tn_scope *parent;
		blocks live;
	};
	source from;
	std::vector<node> all; /* parents before their children */
	size_t deferred = 0, ran = 0;
	explicit scopes(values &v) {
		tn_scope_options o = {};
		tn_source its = from.source_of();
		from.fails_one_in = v.one_in(2) ? v.between(1, 9) : 0;
		o.ident = v.name();
		o.chunk_bytes = v.option();
		o.chunk_bytes_max = v.option();
		o.shared = v.one_in(4);
		o.source = v.one_in(3) ? &its : nullptr;
		tn_scope *root = tn_scope_create(nullptr, v.name(), v.one_in(8) ? nullptr : &o);
		REQUIRE(root != nullptr || errno == ENOMEM || errno == EINVAL);
		if (root != nullptr)
			all.push_back({root, nullptr, {}});
	}
	~scopes() override {
		for (const node &n : all)
			n.live.check_all();
		tn_scope_destroy(all.empty() ? nullptr : all[0].s);
		REQUIRE(ran == deferred);
		REQUIRE(from.held == 0);
	}
	bool is_below(const tn_scope *s, const tn_scope *above) const {
		for (; s != nullptr; s = parent_of(s))
			if (s == above)
				return true;
		return false;
	}
	tn_scope *parent_of(const tn_scope *s) const {
		for (const node &n : all)
			if (n.s == s)
				return n.parent;
		return nullptr;
	}
	/* Forgets a scope and those below it; a reset keeps the scope itself. */
	void forget(tn_scope *s, bool itself) {
		std::vector<node> kept;
		for (node &n : all)
			if (!is_below(n.s, s) || (n.s == s && !itself))
				kept.push_back(n.s == s ? node{n.s, n.parent, {}} : std::move(n));
		all = std::move(kept);
	}
	void create(values &v, tn_scope *parent) {
		tn_scope_options o = {};
		o.ident = v.name();
		o.chunk_bytes = v.option();
		o.chunk_bytes_max = v.option();
		tn_scope *s = tn_scope_create(parent, v.name(), v.one_in(2) ? nullptr : &o);
		if (s == nullptr)
			return REQUIRE(errno == ENOMEM || errno == EINVAL);
		REQUIRE(tn_scope_parent(s) == parent);
		all.push_back({s, parent, {}});
	}
	void own(values &v, tn_scope *s) {
		size_t size = v.between(1, 500);
		if (v.one_in(3)) {
			tn_arena *a = tn_scope_arena(s, nullptr);
			if (a != nullptr && tn_arena_alloc(a, size, 0) == nullptr)
				REQUIRE(errno == ENOMEM);
		} else if (v.one_in(2)) {
			tn_slab_options o = {};
			o.expendable = true;
			tn_slab *its = tn_scope_slab(s, size, 0, &o);
			if (its != nullptr && tn_slab_alloc(its) == nullptr)
				REQUIRE(errno == ENOMEM);
		} else {
			tn_heap_options o = {};
			o.expendable = true;
			tn_heap *h = tn_scope_heap(s, &o);
			if (h != nullptr && tn_heap_alloc(h, size, 0) == nullptr)
				REQUIRE(errno == ENOMEM);
		}
	}
	void defer(values &v, tn_scope *s) {
		auto run = [](void *count) { ++*static_cast<size_t *>(count); };
		bool done = tn_scope_defer(s, run, &ran);
		REQUIRE(done || errno == ENOMEM);
		if (done && v.one_in(3))
			REQUIRE(tn_scope_undefer(s, run, &ran));
		else
			deferred += done;
	}
	void limit(values &v, tn_scope *s) {
		tn_scope_limits limits = {};
		limits.hard_bytes = v.one_in(2) ? v.between(1, 1 << 22) : 0;
		limits.soft_bytes = v.one_in(2) ? v.between(1, 1 << 20) : 0;
		limits.on_soft = [](tn_scope *, size_t, void *) {};
		if (!tn_scope_limit(s, v.one_in(4) ? nullptr : &limits))
			REQUIRE(errno == ENOMEM || errno == EINVAL);
		if (!tn_scope_external(s, v.one_in(9) ? v.size() : v.below(1 << 20)))
			REQUIRE(errno == ENOMEM);
	}
	void look(tn_scope *s) const {
		tn_stats one, below;
		tn_scope_stats(s, &one, &below);
		check_stats(one);
		REQUIRE(below.live_bytes >= one.live_bytes && below.committed_bytes >= one.committed_bytes);
		REQUIRE(tn_scope_verify(s));
		static FILE *const nowhere = std::fopen("/dev/null", "w");
		tn_scope_print(s, nowhere);
	}
	void call(values &v) override {
		if (all.empty())
			return;
		size_t i = v.below(all.size()), size = v.size(), align = v.align();
		tn_scope *s = all[i].s;
		switch (v.below(30)) {
		case 0:
			if (i == 0 && !v.one_in(20))
				return;
			for (const node &n : all)
				n.live.check_all();
			forget(s, true);
			return tn_scope_destroy(s);
		case 1:
			if (i == 0 && !v.one_in(10))
				return;
			tn_scope_reset(s);
			return forget(s, false);
		case 2:
			tn_scope_trim(s);
			return all[i].live.check_all();
		case 3:
		case 4:
		case 5:
			return all.size() < 60 ? create(v, s) : void();
		case 6:
			return own(v, s);
		case 7:
			return defer(v, s);
		case 8:
			return limit(v, s);
		case 9:
			return look(s);
		case 10: {
			tn_scope *to = all[v.below(all.size())].s;
			bool legal = i != 0 && !is_below(to, s);
			if (!legal || tn_scope_parent(s) == to)
				return;
			if (!tn_scope_adopt(s, to))
				return REQUIRE(errno == ENOMEM || errno == EINVAL);
			all[i].parent = to;
			return;
		}
		case 11: {
			char *text = tn_scope_printf(s, "%*d", static_cast<int>(v.below(3000)), 7);
			REQUIRE(text != nullptr || errno == ENOMEM);
			REQUIRE(tn_scope_copy(s, "abc", 3) != nullptr || errno == ENOMEM);
			return;
		}
		default:
			void *p = tn_scope_alloc(s, size, align);
			if (!got(p, size, align))
				return;
			REQUIRE(size == 0 || tn_scope_owns(s, p));
			all[i].live.add(v, p, size);
		}
	}
};

/* ---- the process ---- */

void look_at_all(values &v) {
	size_t seen = 0;
	auto visit = [](const tn_listed *listed, void *ctx) {
		REQUIRE(std::strlen(listed->ident) <= TN_IDENT_BYTES &&
				std::strlen(listed->stats.name) <= TN_NAME_BYTES);
		return ++*static_cast<size_t *>(ctx) < 1000;
	};
	switch (v.below(6)) {
	case 0:
		tn_trim_all();
		return;
	case 1: {
		tn_watch_options o = {};
		o.interval_ms = static_cast<unsigned>(v.between(1, 50));
		o.least_bytes = v.between(1, 100000);
		o.slab_percent = static_cast<unsigned>(v.below(110));
		o.waste_percent = static_cast<unsigned>(v.below(110));
		auto found = [](tn_finding, const tn_listed *, const char *message, void *) {
			REQUIRE(std::strchr(message, '\n') == nullptr && std::strchr(message, '\x1b') == nullptr);
		};
		if (!tn_watch(&o, v.one_in(3) ? nullptr : static_cast<tn_watch_callback>(found)))
			REQUIRE(errno == EINVAL || errno == ENOMEM || errno == ENOTSUP);
		return;
	}
	case 2:
		if (v.one_in(4))
			v.one_in(2) ? (void)tn_live_start() : tn_live_stop();
		return;
	default:
		tn_stats_snapshot(visit, &seen);
		REQUIRE(seen > 0);
	}
}

std::unique_ptr<allocator> make(values &v) {
	switch (v.below(6)) {
	case 0:
		return std::make_unique<arena>(v);
	case 1:
		return std::make_unique<slab>(v);
	case 2:
		return std::make_unique<shared_slab>(v);
	case 3:
		return std::make_unique<pool>(v);
	case 4:
		return std::make_unique<heap>(v);
	default:
		return std::make_unique<scopes>(v);
	}
}

void run_round(uint64_t seed) {
	values v(seed);
	std::vector<std::unique_ptr<allocator>> all;
	round_seed = seed;
	for (round_ops = 0; round_ops < 3000; round_ops++) {
		if (all.size() < 3 || (all.size() < 12 && v.one_in(100)))
			all.push_back(make(v));
		else if (v.one_in(300))
			all.erase(all.begin() + static_cast<ptrdiff_t>(v.below(all.size())));
		else if (v.one_in(200))
			look_at_all(v);
		else
			all[v.below(all.size())]->call(v);
	}
}

} /* namespace */

int main(int count, char **words) {
	double seconds = count > 1 ? std::atof(words[1]) : 2;
	uint64_t seed = count > 2 ? std::strtoull(words[2], nullptr, 0) : program_seed(), rounds = 0;
	auto begun = std::chrono::steady_clock::now();
	tell_deaths();
	do
		run_round(seed + rounds++);
	while (std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count() < seconds);
	tn_watch(nullptr, nullptr);
	std::printf("fuzz: %llu rounds from TENURE_SEED=%llu\n", static_cast<unsigned long long>(rounds),
		static_cast<unsigned long long>(seed));
	return 0;
}
