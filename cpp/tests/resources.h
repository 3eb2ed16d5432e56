/* For the tests of memory resources: an upstream that keeps accounts, and the properties of each
 * resource under test. */
#ifndef TENURE_TESTS_RESOURCES_H
#define TENURE_TESTS_RESOURCES_H

#include "crowd.h"

#include <tenure/arena_resource.hpp>
#include <tenure/heap_resource.hpp>
#include <tenure/slab_resource.hpp>

#include <cstddef>
#include <exception>
#include <memory_resource>
#include <new>
#include <optional>
#include <type_traits>

/* The exception of an upstream that has one of its own. */
struct out_of_stock {
	int code;
};

/* An upstream that keeps accounts, checks every block that comes back, and throws on request. Its
 * blocks have exactly the requested alignment. */
class recorder final : public std::pmr::memory_resource {
public:
	struct request {
		size_t bytes, align;
	};
	static constexpr size_t always = SIZE_MAX;
	/* A request for more fails. */
	static constexpr size_t stock_bytes = 1024 * mib;

	recorder() = default;
	~recorder() override {
		EXPECT_EQ(held_.size(), 0u) << "blocks never given back";
		EXPECT_EQ(wrong_, 0u) << "blocks given back that were not held, or not so";
		for (auto &block : held_)
			std::free(block.second.base);
	}

	const std::vector<request> &requests() const {
		return requests_;
	}
	size_t held_count() const {
		return held_.size();
	}
	size_t held_bytes() const {
		return held_bytes_;
	}
	size_t given_back() const {
		return given_back_;
	}
	size_t wrong() const {
		return wrong_;
	}
	size_t failures() const {
		return failures_;
	}

	/* Request number `first` (from 1, counted from now) and the next count-1 fail: with bad_alloc, or
	 * with out_of_stock{code} if there is a code. */
	void fail(size_t first, size_t count, int code = 0) {
		fail_from_ = requests_.size() + first;
		fail_count_ = count;
		code_ = code;
	}
	void heal() {
		fail_count_ = 0;
	}

	bool holds(const void *p, size_t bytes) const {
		auto next = held_.upper_bound(address(p));
		if (next == held_.begin())
			return false;
		auto block = std::prev(next);
		size_t offset = address(p) - block->first;
		return offset <= block->second.bytes && bytes <= block->second.bytes - offset;
	}

private:
	struct block {
		void *base;
		size_t bytes, align;
	};

	void *do_allocate(size_t bytes, size_t align) override {
		std::lock_guard<std::mutex> hold(lock_);
		requests_.push_back({bytes, align});
		wrong_ += align == 0 || (align & (align - 1)) != 0;
		size_t number = requests_.size();
		if (number >= fail_from_ && number - fail_from_ < fail_count_)
			refuse();
		void *base = nullptr;
		size_t stricter = align < 8 ? 16 : 2 * align;
		if (bytes > stock_bytes || posix_memalign(&base, stricter, bytes + align) != 0)
			throw std::bad_alloc();
		char *p = static_cast<char *>(base) + align;
		/* A resource that relies on zeroed memory fails. */
		std::memset(p, 0xa5, bytes);
		held_[address(p)] = {base, bytes, align};
		held_bytes_ += bytes;
		return p;
	}

	void do_deallocate(void *p, size_t bytes, size_t align) override {
		std::lock_guard<std::mutex> hold(lock_);
		auto found = held_.find(address(p));
		if (found == held_.end() || found->second.bytes != bytes || found->second.align != align) {
			wrong_++;
			return;
		}
		std::memset(p, 0xdd, bytes);
		held_bytes_ -= bytes;
		given_back_++;
		std::free(found->second.base);
		held_.erase(found);
	}

	bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override {
		return this == &other;
	}

	[[noreturn]] void refuse() {
		failures_++;
		if (code_ != 0)
			throw out_of_stock{code_};
		throw std::bad_alloc();
	}

	std::mutex lock_;
	std::map<uintptr_t, block> held_;
	std::vector<request> requests_;
	size_t held_bytes_ = 0, given_back_ = 0, wrong_ = 0, failures_ = 0;
	size_t fail_from_ = 0, fail_count_ = 0;
	int code_ = 0;
};

/* ---- the resources under test ---- */

template <typename R> struct facts;

template <> struct facts<std::pmr::monotonic_buffer_resource> {
	static constexpr const char *name = "std_monotonic";
	static constexpr bool aligns = true;
	/* The size at which its buffers stop growing. */
	static constexpr size_t largest_buffer = SIZE_MAX;
	/* The least number of 16-byte blocks in a buffer of `bytes`. */
	static constexpr size_t blocks_of_16_in(size_t bytes) {
		return bytes / 16;
	}
};

struct facts_of_std_pools {
	static constexpr bool ours = false;
	/* See shortcomings. */
	static constexpr bool aligns = false;
	/* The most of upstream's memory per block, with many blocks. */
	static constexpr size_t room_for(size_t bytes) {
		return 4 * bytes;
	}
	/* The most bytes that wait after a free before they are used again. */
	static constexpr size_t quarantine_bytes = 0;
	static constexpr size_t requests_for_10000_of_32 = 30;
	static constexpr size_t chunk_after_5000_of_64 = 2000 * 64;
	/* The largest request to upstream, with that many blocks in a chunk. */
	static constexpr size_t most_in_a_request(size_t blocks, size_t bytes) {
		return blocks * bytes + 4 * kib;
	}
	/* The most bytes that it holds for a dozen small blocks. */
	static constexpr size_t room_for_few = 64 * kib;
};

template <> struct facts<std::pmr::unsynchronized_pool_resource> : facts_of_std_pools {
	static constexpr const char *name = "std_unsynchronized_pool";
};

template <> struct facts<std::pmr::synchronized_pool_resource> : facts_of_std_pools {
	static constexpr const char *name = "std_synchronized_pool";
};

template <> struct facts<tenure::arena_resource> {
	static constexpr const char *name = "arena_resource";
	static constexpr bool aligns = true;
	static constexpr size_t largest_buffer = 2 * mib;
	/* Debug adds a guard and a record to each. */
	static constexpr size_t blocks_of_16_in(size_t bytes) {
		return bytes / (debug_mode ? 64 : 16);
	}
};

struct facts_of_slab_resources {
	static constexpr bool ours = true;
	static constexpr bool aligns = true;
	static constexpr size_t room_for(size_t bytes) {
		return 5 * (bytes + (debug_mode ? 32 : 0));
	}
	/* In debug 16 MiB of slots for each slab, and their records and the rest of a piece. */
	static constexpr size_t quarantine_bytes = debug_mode ? 32 * mib : 0;
	static constexpr size_t requests_for_10000_of_32 = 30;
	static constexpr size_t chunk_after_5000_of_64 = 256 * kib;
	/* Chunks are cut out of pieces that double, whatever the options say. */
	static constexpr size_t most_in_a_request(size_t, size_t) {
		return 4 * mib + 4 * kib;
	}
	static constexpr size_t room_for_few = 192 * kib + quarantine_bytes;
};

template <> struct facts<tenure::slab_resource> : facts_of_slab_resources {
	static constexpr const char *name = "slab_resource";
};

template <> struct facts<tenure::shared_slab_resource> : facts_of_slab_resources {
	static constexpr const char *name = "shared_slab_resource";
};

template <> struct facts<tenure::heap_resource> {
	static constexpr const char *name = "heap_resource";
	static constexpr bool aligns = true;
};

struct name_of {
	template <typename R> static std::string GetName(int) {
		return facts<R>::name;
	}
};

using our_resources = testing::Types<tenure::arena_resource, tenure::slab_resource,
	tenure::shared_slab_resource, tenure::heap_resource>;
/* The standard library's own resources are the same in all our modes. */
#if TN_MODE == TN_MODE_RELEASE
using monotonic_resources = testing::Types<std::pmr::monotonic_buffer_resource, tenure::arena_resource>;
using pool_resources = testing::Types<std::pmr::unsynchronized_pool_resource,
	std::pmr::synchronized_pool_resource, tenure::slab_resource, tenure::shared_slab_resource>;
using shared_resources =
	testing::Types<std::pmr::synchronized_pool_resource, tenure::shared_slab_resource>;
using all_resources = testing::Types<std::pmr::monotonic_buffer_resource,
	std::pmr::unsynchronized_pool_resource, std::pmr::synchronized_pool_resource,
	tenure::arena_resource, tenure::slab_resource, tenure::shared_slab_resource, tenure::heap_resource>;
#else
using monotonic_resources = testing::Types<tenure::arena_resource>;
using pool_resources = testing::Types<tenure::slab_resource, tenure::shared_slab_resource>;
using shared_resources = testing::Types<tenure::shared_slab_resource>;
using all_resources = our_resources;
#endif

/* Clauses that a peer does not fulfil, which shows that the test can fail. */
struct shortcoming {
	const char *resource, *test, *reason;
};
constexpr const char *blocks_out_of_alignment =
	"a pool places blocks at multiples of their size, not of the alignment (gcc 12)";
constexpr const char *lost_after_an_exception =
	"crashes in the request after one that upstream refused (gcc 12)";
constexpr shortcoming shortcomings[] = {
	{"std_unsynchronized_pool", "allocate_has_the_size_and_the_alignment", blocks_out_of_alignment},
	{"std_synchronized_pool", "allocate_has_the_size_and_the_alignment", blocks_out_of_alignment},
	{"std_unsynchronized_pool", "allocate_aligns_for_any_type_when_not_told", blocks_out_of_alignment},
	{"std_synchronized_pool", "allocate_aligns_for_any_type_when_not_told", blocks_out_of_alignment},
	{"std_unsynchronized_pool", "do_allocate_that_throws_changes_nothing", lost_after_an_exception},
	{"std_synchronized_pool", "do_allocate_that_throws_changes_nothing", lost_after_an_exception},
};

template <typename R> class resource_test : public testing::Test {
protected:
	void SetUp() override {
		const char *test = testing::UnitTest::GetInstance()->current_test_info()->name();
		for (const shortcoming &s : shortcomings)
			if (s.resource == std::string_view(facts<R>::name) && s.test == std::string_view(test))
				GTEST_SKIP() << s.reason;
	}
};

#define RESOURCE_SUITE(suite, resources)                                                               \
	template <typename R> class suite : public resource_test<R> {};                                    \
	TYPED_TEST_SUITE(suite, resources, name_of)

/* ---- blocks ---- */

struct held_block {
	void *p;
	size_t bytes, align;
	uint64_t seed;

	bool intact() const {
		return filled(p, bytes, seed);
	}
};

/* Blocks of a resource, each full of a pattern of its own. */
template <typename R> class block_list {
public:
	explicit block_list(R &from) : from_(from) {
	}
	/* Throws the exceptions of allocate, and then holds the same blocks as before. */
	const held_block &take(size_t bytes, size_t align = alignof(std::max_align_t)) {
		void *p = from_.allocate(bytes, align);
		EXPECT_NE(p, nullptr);
		EXPECT_TRUE(aligned_to(p, align) || !facts<R>::aligns) << bytes << " bytes at " << align;
		fill(p, bytes, ++seed_);
		blocks_.push_back({p, bytes, align, seed_});
		return blocks_.back();
	}
	void give(size_t i) {
		held_block gone = blocks_[i];
		EXPECT_TRUE(gone.intact()) << gone.bytes << " bytes at " << gone.align;
		blocks_[i] = blocks_.back();
		blocks_.pop_back();
		from_.deallocate(gone.p, gone.bytes, gone.align);
	}
	void give_all() {
		while (!blocks_.empty())
			give(blocks_.size() - 1);
	}
	/* The resource itself has taken them back. */
	void forget() {
		blocks_.clear();
	}
	size_t count() const {
		return blocks_.size();
	}
	bool all_intact() const {
		for (const held_block &b : blocks_)
			if (!b.intact())
				return false;
		return true;
	}

private:
	R &from_;
	std::vector<held_block> blocks_;
	uint64_t seed_ = 0;
};

/* Sizes from a byte to several pages at alignments up to `align_max`, most of them small. */
inline held_block random_request(dice &random, size_t align_max) {
	size_t align = 1;
	while (align < align_max && !random.one_in(3))
		align *= 2;
	return {nullptr, random.below(random.one_in(20) ? 40000 : 400), align, 0};
}

#endif
