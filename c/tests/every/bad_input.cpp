/* Invalid sizes, counts and alignments: each is refused for the right reason, or the block is really
 * there. */
#include "../heap/use.h"
#include "crowd.h"

#include <algorithm>
#include <cinttypes>

#include <sys/sysinfo.h>

namespace bad_input {
namespace {

constexpr size_t chunk = 64 * kib;
constexpr size_t limit = 4 * mib;
constexpr size_t small_limit = 256 * kib;

std::vector<size_t> interesting_sizes() {
	std::vector<size_t> sizes;
	auto round = [&sizes](size_t middle, size_t below, size_t above) {
		for (size_t i = 0; i <= below + above; i++)
			sizes.push_back(middle - below + i);
	};
	for (unsigned k = 0; k < 64; k++)
		round(size_t{1} << k, 64, 64);
	round(SIZE_MAX, 128, 0);
	round(PTRDIFF_MAX, 64, 64);
	round(chunk, 64, 64);
	round(0, 0, 100);
	std::sort(sizes.begin(), sizes.end());
	sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
	return sizes;
}

/* The largest sizes and the boundaries; each is tried with every alignment at every fill. */
std::vector<size_t> edges() {
	return {0, 1, 8, 9, 15, 16, 17, chunk - 64, chunk - 1, chunk, chunk + 1, PTRDIFF_MAX - size_t{4097},
		PTRDIFF_MAX - size_t{1}, PTRDIFF_MAX, size_t{PTRDIFF_MAX} + 1, SIZE_MAX - 4097, SIZE_MAX - 4096,
		SIZE_MAX - 65, SIZE_MAX - 64, SIZE_MAX - 63, SIZE_MAX - 32, SIZE_MAX - 17, SIZE_MAX - 16,
		SIZE_MAX - 15, SIZE_MAX - 9, SIZE_MAX - 8, SIZE_MAX - 7, SIZE_MAX - 1, SIZE_MAX};
}

std::vector<size_t> alignments() {
	std::vector<size_t> all = {0, 3, 5, 6, 7, 12, 24, 48, 100, 4095, 4097, TN_ALIGN_MAX - 1,
		TN_ALIGN_MAX + 1, SIZE_MAX, SIZE_MAX - 1, size_t{PTRDIFF_MAX}, SIZE_MAX - 15};
	for (unsigned k = 0; k < 64; k++)
		all.push_back(size_t{1} << k);
	return all;
}

bool good_alignment(size_t align) {
	return (align & (align - 1)) == 0 && align <= TN_ALIGN_MAX;
}

/* Each of the many other sizes is tried with every n-th alignment; the next size starts one further. */
size_t align_step_of_many() {
	return stress_seconds() > 0 || sanitized ? 1 : 5;
}

/* An arena with books, and the checks that follow each call on it. */
class witness {
public:
	explicit witness(bool fixed) : a(options(fixed)) {
		EXPECT_TRUE(a.ready);
		old = static_cast<char *>(tn_arena_alloc(a.get(), 40, 8));
		start = tn_arena_mark(a.get());
	}

	/* Moves the cursor by `bytes` past where it was, in steps of 8. */
	void fill_to(size_t bytes) {
		tn_arena_rewind(a.get(), start);
		start = tn_arena_mark(a.get());
		if (bytes >= 16) {
			ASSERT_NE(tn_arena_alloc(a.get(), bytes, 1), nullptr);
		}
		filled = tn_arena_mark(a.get());
		before = stats_of(a.get());
	}

	/* `p` is the answer to a call with these arguments. */
	void judge(char *p, size_t size, size_t align) {
		if (p == nullptr) {
			ASSERT_EQ(errno, good_alignment(align) ? ENOMEM : EINVAL) << size << " at " << align;
			expect_unchanged();
			return;
		}
		ASSERT_TRUE(good_alignment(align)) << size << " at " << align;
		ASSERT_TRUE(aligned_to(p, align == 0 ? 16 : align)) << size << " at " << align;
		ASSERT_TRUE(books.holds(p, size))
			<< "a block of " << size << " at " << align << " is not there";
		if (size > 0 && size <= mib)
			p[0] = p[size - 1] = 1;
		take_back();
	}

	void expect_unchanged() {
		tn_stats now = stats_of(a.get());
		ASSERT_EQ(now.live_bytes, before.live_bytes);
		ASSERT_EQ(now.committed_bytes, before.committed_bytes);
		ASSERT_EQ(now.chunk_count, before.chunk_count);
		ASSERT_EQ(now.refills, before.refills);
	}

	void take_back() {
		tn_arena_rewind(a.get(), filled);
		filled = tn_arena_mark(a.get());
		before = stats_of(a.get());
	}

	ledger books;
	placed_arena a;
	char *old = nullptr;

private:
	tn_arena_options options(bool fixed) {
		tn_arena_options o = {};
		o.source = books.source();
		o.limit_bytes = limit;
		o.fixed = fixed;
		return o;
	}

	tn_checkpoint start, filled;
	tn_stats before;
};

void sweep_alloc(bool fixed, const std::vector<size_t> &sizes, size_t fill_step, size_t align_step) {
	witness w(fixed);
	std::vector<size_t> aligns = alignments();
	size_t turn = 0;
	for (size_t fill = 0; fill < 64; fill += fill_step) {
		w.fill_to(fill + turn++ % fill_step);
		for (size_t size : sizes)
			for (size_t k = turn++ % align_step; k < aligns.size(); k += align_step) {
				size_t align = aligns[k];
				errno = 0;
				w.judge(static_cast<char *>(tn_arena_alloc(w.a.get(), size, align)), size, align);
				if (::testing::Test::HasFatalFailure())
					return;
			}
	}
	EXPECT_TRUE(tn_arena_verify(w.a.get()));
}

TEST(bad_input, arena_alloc_at_the_edges_at_every_fill) {
	sweep_alloc(false, edges(), 1, 1);
	sweep_alloc(true, edges(), 1, 1);
}

TEST(bad_input, arena_alloc_of_every_size_and_alignment) {
	sweep_alloc(false, interesting_sizes(), 64, align_step_of_many());
	sweep_alloc(true, interesting_sizes(), 64, align_step_of_many());
}

/* Address space has room for these; the machine's memory and swap do not. */
TEST(bad_input, sizes_that_the_machine_does_not_have) {
	struct sysinfo has;
	ASSERT_EQ(sysinfo(&has), 0);
	const size_t all = (has.totalram + has.totalswap) * has.mem_unit;
	std::vector<size_t> sizes = {all + mib, 2 * all};
	for (size_t bits = 36; bits <= 46; bits += 2)
		if (size_t{1} << bits > all)
			sizes.push_back(size_t{1} << bits);
	arena_owner a = make_arena();
	tn_arena_options ranged = {};
	ranged.reserve_bytes = size_t{1} << 46;
	arena_owner range = make_arena(ranged);
	owned_heap h = new_heap();
	tn_heap_options zeroed = {};
	zeroed.zero = true;
	owned_heap zero = new_heap(zeroed);
	for (size_t size : sizes) {
		EXPECT_REFUSED(tn_arena_alloc(a.get(), size, 16), ENOMEM);
		EXPECT_REFUSED(TN_NEW_ARRAY(a.get(), char, size), ENOMEM);
		EXPECT_REFUSED(tn_heap_alloc(h.get(), size, 16), ENOMEM);
		EXPECT_REFUSED(tn_heap_alloc(zero.get(), size, 16), ENOMEM);
		if (range != nullptr) {
			EXPECT_REFUSED(tn_arena_alloc(range.get(), size, 16), ENOMEM);
		}
		slab_owner s = make_slab(size);
		if (s != nullptr) {
			EXPECT_REFUSED(tn_slab_alloc(s.get()), ENOMEM);
		}
		pool_owner p = make_pool(size);
		if (p != nullptr) {
			EXPECT_REFUSED(tn_pool_get(p.get()), ENOMEM);
		}
	}
}

/* A large block takes memory where it is written: fresh memory is zero, and what goes back to the
 * system needs no wiping. */
TEST(bad_input, a_sparse_block_takes_no_memory) {
	constexpr size_t size = size_t{1} << 30;
	if (sanitized)
		GTEST_SKIP() << "a sanitizer changes resident memory";
	tn_heap_options zeroed = {};
	zeroed.zero = true;
	owned_heap zero = new_heap(zeroed);
	arena_owner a = make_arena();
	const size_t before = resident_bytes();
	for (int i = 0; i < 2; i++) {
		char *p = TN_NEW_ARRAY(a.get(), char, size);
		char *q = take(zero.get(), size);
		ASSERT_TRUE(p != nullptr && q != nullptr);
		for (size_t at = 0; at < size; at += size / 16) {
			ASSERT_EQ(p[at], 0);
			ASSERT_EQ(q[at], 0);
			p[at] = q[at] = 1;
		}
		EXPECT_LT(resident_bytes(), before + 100 * mib);
		tn_arena_reset(a.get());
		EXPECT_LT(resident_bytes(), before + 100 * mib);
	}
}

TEST(bad_input, arena_resize) {
	witness w(false);
	for (size_t fill = 0; fill < 64; fill++)
		for (size_t size : interesting_sizes()) {
			w.fill_to(fill);
			char *last = static_cast<char *>(tn_arena_alloc(w.a.get(), 24, 8));
			size_t live = stats_of(w.a.get()).live_bytes;
			errno = 0;
			if (!tn_arena_resize(w.a.get(), last, 24, size)) {
				ASSERT_EQ(errno, 0);
				ASSERT_EQ(stats_of(w.a.get()).live_bytes, live) << size;
				continue;
			}
			ASSERT_TRUE(w.books.holds(last, size)) << size;
			if (size > 0)
				last[0] = last[size - 1] = 1;
		}
}

TEST(bad_input, arena_realloc) {
	std::vector<size_t> aligns = alignments();
	const size_t align_step = align_step_of_many();
	for (bool last : {true, false}) {
		witness w(false);
		size_t turn = 0;
		for (size_t size : interesting_sizes())
			for (size_t k = turn % align_step; k < aligns.size(); k += align_step) {
				size_t align = aligns[k];
				/* A block that stays in place keeps its address if that has the alignment. */
				w.fill_to(turn++ % 64);
				char *p = static_cast<char *>(tn_arena_alloc(w.a.get(), 24, 8));
				if (!last)
					tn_arena_alloc(w.a.get(), 16, 8);
				size_t live = stats_of(w.a.get()).live_bytes;
				fill(p, 24, size);
				errno = 0;
				char *q = static_cast<char *>(tn_arena_realloc(w.a.get(), p, 24, size, align));
				if (q == nullptr) {
					ASSERT_EQ(errno, good_alignment(align) ? ENOMEM : EINVAL)
						<< size << " at " << align;
					ASSERT_EQ(stats_of(w.a.get()).live_bytes, live);
					ASSERT_TRUE(filled(p, 24, size));
					continue;
				}
				ASSERT_TRUE(good_alignment(align)) << size << " at " << align;
				ASSERT_TRUE(aligned_to(q, align == 0 ? 16 : align));
				ASSERT_TRUE(w.books.holds(q, size));
				ASSERT_TRUE(filled(q, std::min<size_t>(size, 24), size));
			}
	}
}

TEST(bad_input, arena_copy_reads_nothing_that_cannot_be_kept) {
	witness w(false);
	char byte = 1;
	w.fill_to(0);
	for (size_t size : interesting_sizes()) {
		if (size <= limit)
			continue;
		EXPECT_REFUSED(tn_arena_copy(w.a.get(), &byte, size), ENOMEM);
		w.expect_unchanged();
	}
}

TEST(bad_input, arena_printf_of_too_much) {
	witness w(false);
	w.fill_to(0);
	for (int width : {5000000, 60000000}) {
		EXPECT_REFUSED(tn_arena_printf(w.a.get(), "%*s", width, ""), ENOMEM);
		w.expect_unchanged();
	}
}

template <typename T> void sweep_arrays() {
	witness w(false);
	w.fill_to(0);
	for (size_t count : interesting_sizes()) {
		errno = 0;
		T *p = TN_NEW_ARRAY(w.a.get(), T, count);
		bool fits = count <= 2 * limit / sizeof(T);
		ASSERT_TRUE(p == nullptr || fits) << count;
		if (p == nullptr) {
			ASSERT_EQ(errno, ENOMEM) << count;
			w.expect_unchanged();
			continue;
		}
		ASSERT_TRUE(w.books.holds(reinterpret_cast<char *>(p), count * sizeof(T)));
		w.take_back();
	}
}

TEST(bad_input, arrays_whose_size_wraps) {
	struct odd {
		char c[24];
	};
	struct large {
		char c[4096];
	};
	sweep_arrays<char>();
	sweep_arrays<uint64_t>();
	sweep_arrays<odd>();
	sweep_arrays<large>();
	witness w(false);
	for (unsigned k = 1; k < 40; k++)
		for (size_t off = 0; off < 3; off++) {
			/* count * 24 is a little more than 2^64. */
			size_t count = SIZE_MAX / 24 + 1 + off + (size_t{1} << k);
			EXPECT_REFUSED(TN_NEW_ARRAY(w.a.get(), odd, count), ENOMEM);
		}
}

TEST(bad_input, slab_create) {
	std::vector<size_t> sizes = interesting_sizes();
	std::vector<size_t> aligns = alignments();
	for (size_t i = 0; i < sizes.size(); i++)
		for (size_t k = i % 4; k < aligns.size(); k += 4) {
			size_t size = sizes[i], align = aligns[k];
			ledger books;
			tn_slab_options options = {};
			options.source = books.source();
			options.limit_bytes = small_limit;
			errno = 0;
			slab_owner s = make_slab(size, align, options);
			bool valid = size != 0 && good_alignment(align);
			if (s == nullptr) {
				ASSERT_TRUE(errno == EINVAL || (valid && errno == ENOMEM)) << size << " at " << align;
				ASSERT_TRUE(!valid || size > small_limit / 4) << size << " at " << align;
				continue;
			}
			ASSERT_TRUE(valid) << size << " at " << align;
			ASSERT_GE(tn_slab_slot_size(s.get()), size);
			/* A chunk of this alignment has at least this size, and so is refused. */
			errno = 0;
			char *p = static_cast<char *>(tn_slab_alloc(s.get()));
			if (p == nullptr) {
				ASSERT_EQ(errno, ENOMEM);
				continue;
			}
			ASSERT_TRUE(books.holds(p, size));
			ASSERT_TRUE(aligned_to(p, align == 0 ? 16 : align));
			p[0] = p[size - 1] = 1;
		}
}

TEST(bad_input, slab_batch_counts) {
	tn_slab_options options = {};
	options.limit_bytes = limit;
	slab_owner s = make_slab(100, 0, options);
	void *none[1] = {nullptr};
	for (size_t count : interesting_sizes()) {
		if (count < size_t{1} << 60)
			continue;
		EXPECT_REFUSED(tn_slab_alloc_batch(s.get(), none, count), ENOMEM);
		ASSERT_EQ(none[0], nullptr);
		ASSERT_EQ(tn_slab_in_use(s.get()), 0u);
	}
}

TEST(bad_input, heap_alloc_and_realloc) {
	std::vector<size_t> sizes = interesting_sizes();
	std::vector<size_t> aligns = alignments();
	tn_heap_options options = {};
	options.limit_bytes = 8 * mib;
	owned_heap h = new_heap(options);
	char *kept = take(h.get(), 100);
	fill(kept, 100, 1);
	/* Debug checks every block whenever memory is short. */
	const size_t step = debug_mode ? 32 : 4;
	for (size_t i = 0; i < sizes.size(); i++)
		for (size_t k = i % step; k < aligns.size(); k += step) {
			size_t size = sizes[i], align = aligns[k];
			errno = 0;
			char *p = take(h.get(), size, align);
			if (p == nullptr) {
				ASSERT_EQ(errno, good_alignment(align) ? ENOMEM : EINVAL) << size << " at " << align;
				ASSERT_TRUE(!good_alignment(align) || size > 3 * mib) << size << " at " << align;
				continue;
			}
			ASSERT_TRUE(good_alignment(align) && size <= 8 * mib) << size << " at " << align;
			ASSERT_TRUE(aligned_to(p, align == 0 ? 16 : align));
			fill(p, std::min(size, page), 2);
			char *q = static_cast<char *>(tn_heap_realloc(h.get(), p, sizes[(i + k) % sizes.size()]));
			tn_heap_free(h.get(), q == nullptr ? p : q);
			ASSERT_EQ(figures_of(h.get()).live_count, 1u);
		}
	EXPECT_TRUE(filled(kept, 100, 1) && tn_heap_verify(h.get()));
}

/* Debug keeps a record of every allocator, so a thousand of them take long. */
std::vector<size_t> some_sizes() {
	std::vector<size_t> some;
	for (size_t size : interesting_sizes())
		if (!debug_mode || size % 8 == 0 || size < 128)
			some.push_back(size);
	return some;
}

TEST(bad_input, shared_slab_and_pool_create) {
	std::vector<size_t> sizes = some_sizes();
	std::vector<size_t> aligns = alignments();
	for (size_t i = 0; i < sizes.size(); i++)
		for (size_t k = i % 6; k < aligns.size(); k += 6) {
			size_t size = sizes[i], align = aligns[k];
			ledger books;
			tn_shared_slab_options options = {};
			options.source = books.source();
			options.limit_bytes = small_limit;
			bool valid = size != 0 && good_alignment(align);
			errno = 0;
			shared_slab_owner s = make_shared_slab(size, align, options);
			if (s == nullptr) {
				ASSERT_TRUE(errno == EINVAL || (valid && errno == ENOMEM)) << size << " at " << align;
				ASSERT_TRUE(!valid || size > small_limit / 4) << size << " at " << align;
			} else {
				ASSERT_TRUE(valid) << size << " at " << align;
				ASSERT_GE(tn_shared_slab_slot_size(s.get()), size);
			}
			errno = 0;
			char *p = s == nullptr ? nullptr : static_cast<char *>(tn_shared_slab_alloc(s.get()));
			ASSERT_TRUE(p != nullptr || errno == ENOMEM || s == nullptr);
			if (p != nullptr) {
				ASSERT_TRUE(books.holds(p, size) && aligned_to(p, align == 0 ? 16 : align));
				p[0] = p[size - 1] = 1;
			}
			errno = 0;
			pool_owner pool = make_pool(size, align);
			ASSERT_TRUE(pool != nullptr || errno == EINVAL || (valid && errno == ENOMEM));
			ASSERT_TRUE(pool == nullptr || valid) << size << " at " << align;
		}
}

TEST(bad_input, shared_slab_batch_counts) {
	tn_shared_slab_options options = {};
	options.limit_bytes = limit;
	shared_slab_owner s = make_shared_slab(100, 0, options), unlimited = make_shared_slab(100);
	void *none[1] = {nullptr};
	for (size_t count : interesting_sizes()) {
		if (count < size_t{1} << 60)
			continue;
		EXPECT_REFUSED(tn_shared_slab_alloc_batch(s.get(), none, count), ENOMEM);
		EXPECT_REFUSED(tn_shared_slab_alloc_batch(unlimited.get(), none, count), ENOMEM);
		ASSERT_EQ(none[0], nullptr);
		ASSERT_EQ(tn_shared_slab_in_use(s.get()), 0u);
	}
	EXPECT_TRUE(tn_shared_slab_verify(s.get()));
}

/* Valid values of each option; every other value is refused or works. */
TEST(bad_input, shared_slab_options) {
	for (size_t value : some_sizes())
		for (int which = 0; which < 4; which++) {
			ledger books;
			tn_shared_slab_options options = {};
			options.source = books.source();
			options.limit_bytes = which == 3 ? value : small_limit;
			(which == 0      ? options.chunk_bytes
				: which == 1 ? options.magazine_slots
							 : options.retain_chunks) = which == 3 ? 0 : value;
			errno = 0;
			shared_slab_owner s = make_shared_slab(16, 0, options);
			if (which == 1) {
				ASSERT_EQ(s == nullptr, value > TN_MAGAZINE_SLOTS_MAX) << value;
			}
			if (s == nullptr) {
				ASSERT_TRUE(errno == EINVAL || (errno == ENOMEM && which != 1)) << value;
				ASSERT_EQ(books.held_count(), 0u);
				continue;
			}
			ASSERT_LE(books.held_bytes(), options.limit_bytes == 0 ? SIZE_MAX : options.limit_bytes);
			errno = 0;
			void *p = tn_shared_slab_alloc(s.get());
			ASSERT_TRUE(p != nullptr || errno == ENOMEM) << value << " as option " << which;
			tn_shared_slab_free(s.get(), p);
			ASSERT_TRUE(tn_shared_slab_verify(s.get()));
		}
}

TEST(bad_input, pool_options) {
	for (size_t value : some_sizes())
		for (int which = 0; which < 3; which++) {
			tn_pool_options options = {};
			(which == 0      ? options.max_idle_objects
				: which == 1 ? options.max_idle_bytes
							 : options.decay_ms) = value;
			pool_owner p = make_pool(16, 0, options);
			ASSERT_NE(p, nullptr) << value << " as option " << which;
			void *objects[3];
			for (void *&object : objects)
				ASSERT_NE(object = tn_pool_get(p.get()), nullptr);
			for (void *object : objects)
				tn_pool_put(p.get(), object);
			ASSERT_EQ(stats_of(p.get()).live_count, 0u);
			tn_pool_flush(p.get());
			ASSERT_TRUE(which != 1 || stats_of(p.get()).cached_bytes <= value || value == 0);
		}
}

TEST(bad_input, options) {
	for (size_t size : interesting_sizes()) {
		ledger books;
		tn_slab_options slab = {};
		slab.source = books.source();
		slab.limit_bytes = small_limit;
		slab.chunk_bytes = size;
		errno = 0;
		slab_owner s = make_slab(16, 0, slab);
		ASSERT_TRUE(s != nullptr || errno == EINVAL || errno == ENOMEM) << size;
		if (s != nullptr && tn_slab_alloc(s.get()) == nullptr) {
			ASSERT_EQ(errno, ENOMEM);
		}
		for (int which = 0; which < 4; which++) {
			tn_arena_options arena = {};
			arena.limit_bytes = which == 3 ? size : small_limit;
			arena.source = which == 2 ? nullptr : books.source();
			(which == 0      ? arena.chunk_bytes
				: which == 1 ? arena.retain_bytes
							 : arena.reserve_bytes) = which == 3 ? 0 : size;
			if (which == 2 && size == 0)
				continue;
			errno = 0;
			arena_owner a = make_arena(arena);
			ASSERT_TRUE(a != nullptr || errno == EINVAL || errno == ENOMEM)
				<< size << " as option " << which;
			if (a != nullptr && tn_arena_alloc(a.get(), 100, 0) == nullptr) {
				ASSERT_EQ(errno, ENOMEM);
			}
			if (a != nullptr) {
				ASSERT_TRUE(tn_arena_verify(a.get()));
			}
		}
	}
}

/* The bump of tn_arena_alloc at any width. `accepted` says whether the fast path serves the call. */
template <typename word> word bump(word cursor, word end, word size, word align, bool &accepted) {
	align = align == 0 ? word{16} : align;
	word needed = size < 9 ? word{9} : size;
	word grain = align < 16 ? word{7} : word{15};
	word skew = static_cast<word>((cursor | align) & static_cast<word>(align - 1));
	accepted = skew == 0 && needed <= static_cast<word>(end - cursor);
	return static_cast<word>(cursor + (static_cast<word>(needed + grain) & static_cast<word>(~grain)));
}

struct verdicts {
	size_t wrong_accepts = 0, wrong_rejects = 0, wrong_cursors = 0, accepts = 0;
};

void compare_with_oracle(int cursor, int end, int size, int align, verdicts &v) {
	bool accepted;
	int next = bump<uint8_t>(static_cast<uint8_t>(cursor), static_cast<uint8_t>(end),
		static_cast<uint8_t>(size), static_cast<uint8_t>(align), accepted);
	int real_align = align == 0 ? 16 : align;
	bool power = (real_align & (real_align - 1)) == 0;
	bool fits = power && cursor % real_align == 0 && cursor + std::max(size, 9) <= end;
	v.wrong_accepts += accepted && !fits;
	v.wrong_rejects += !accepted && fits;
	if (!accepted)
		return;
	v.accepts++;
	bool sound = next <= end && next >= cursor + size && next >= cursor + 16 && next % 8 == 0;
	v.wrong_cursors += !sound;
}

TEST(bad_input, the_bump_at_eight_bits_exhaustively) {
	verdicts v;
	for (int cursor = 0; cursor < 256; cursor += 8)
		for (int end = (cursor + 15) / 16 * 16; end < 256; end += 16)
			for (int size = 0; size < 256; size++)
				for (int align = 0; align < 256; align++)
					compare_with_oracle(cursor, end, size, align, v);
	EXPECT_EQ(v.wrong_accepts, 0u);
	EXPECT_EQ(v.wrong_rejects, 0u);
	EXPECT_EQ(v.wrong_cursors, 0u);
	EXPECT_GT(v.accepts, 10000u);
}

/* The copy above is the formula that the header has. */
TEST(bad_input, the_bump_at_full_width_is_the_same) {
	if (debug_mode)
		GTEST_SKIP() << "debug never bumps";
	tn_arena_options options = {};
	options.fixed = true;
	arena_owner a = make_arena(options);
	size_t accepts = 0;
	for (size_t fill = 0; fill < 200; fill += 8)
		for (size_t size = 0; size < 200; size++)
			for (size_t align : alignments()) {
				tn_arena_reset(a.get());
				if (fill >= 16) {
					tn_arena_alloc(a.get(), fill, 8);
				}
				bool accepted;
				uintptr_t cursor = address(a->cursor);
				uintptr_t next = bump<uintptr_t>(cursor, address(a->limit), size, align, accepted);
				void *p = tn_arena_alloc(a.get(), size, align);
				if (!accepted || a->current == nullptr || cursor == 0)
					continue;
				accepts++;
				ASSERT_EQ(address(p), cursor);
				ASSERT_EQ(address(a->cursor), next);
			}
	EXPECT_GT(accepts, 10000u);
}

} /* namespace */
} /* namespace bad_input */
