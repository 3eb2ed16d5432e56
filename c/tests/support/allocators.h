/* Owners, snapshots and fill patterns that every test of an allocator needs. */
#ifndef TENURE_TESTS_ALLOCATORS_H
#define TENURE_TESTS_ALLOCATORS_H

#include <tenure/tenure.h>

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

constexpr bool release_mode = TN_MODE == TN_MODE_RELEASE;
constexpr bool hardened_mode = TN_MODE == TN_MODE_HARDENED;
constexpr bool debug_mode = TN_MODE == TN_MODE_DEBUG;

constexpr size_t kib = 1024;
constexpr size_t mib = 1024 * kib;
constexpr size_t page = 4 * kib;
constexpr size_t default_chunk = 64 * kib;

struct arena_destroyer {
	void operator()(tn_arena *a) const {
		tn_arena_destroy(a);
	}
};
using arena_owner = std::unique_ptr<tn_arena, arena_destroyer>;

struct slab_destroyer {
	void operator()(tn_slab *s) const {
		tn_slab_destroy(s);
	}
};
using slab_owner = std::unique_ptr<tn_slab, slab_destroyer>;

struct shared_slab_destroyer {
	void operator()(tn_shared_slab *s) const {
		tn_shared_slab_destroy(s);
	}
};
using shared_slab_owner = std::unique_ptr<tn_shared_slab, shared_slab_destroyer>;

struct pool_destroyer {
	void operator()(tn_pool *p) const {
		tn_pool_destroy(p);
	}
};
using pool_owner = std::unique_ptr<tn_pool, pool_destroyer>;

struct scope_destroyer {
	void operator()(tn_scope *s) const {
		tn_scope_destroy(s);
	}
};
using scope_owner = std::unique_ptr<tn_scope, scope_destroyer>;

inline arena_owner make_arena(const tn_arena_options &options = {}) {
	return arena_owner(tn_arena_create(&options));
}

inline slab_owner make_slab(size_t size, size_t align = 0, const tn_slab_options &options = {}) {
	return slab_owner(tn_slab_create(size, align, &options));
}

inline shared_slab_owner make_shared_slab(
	size_t size, size_t align = 0, const tn_shared_slab_options &options = {}) {
	return shared_slab_owner(tn_shared_slab_create(size, align, &options));
}

inline pool_owner make_pool(size_t size, size_t align = 0, const tn_pool_options &options = {}) {
	return pool_owner(tn_pool_create(size, align, &options));
}

/* A root. */
inline scope_owner make_scope(const char *name = nullptr, const tn_scope_options &options = {}) {
	return scope_owner(tn_scope_create(nullptr, name, &options));
}

/* An arena in the caller's storage. */
class placed_arena {
public:
	explicit placed_arena(const tn_arena_options &options = {})
		: ready(tn_arena_init(&storage, &options)) {
	}
	~placed_arena() {
		if (ready)
			tn_arena_deinit(&storage);
	}
	placed_arena(const placed_arena &) = delete;
	placed_arena &operator=(const placed_arena &) = delete;
	tn_arena *get() {
		return &storage;
	}

	tn_arena storage;
	const bool ready;
};

inline tn_stats stats_of(const tn_arena *a) {
	tn_stats stats;
	tn_arena_stats(a, &stats);
	return stats;
}

inline tn_stats stats_of(const tn_slab *s) {
	tn_stats stats;
	tn_slab_stats(s, &stats);
	return stats;
}

inline tn_stats stats_of(const tn_shared_slab *s) {
	tn_stats stats;
	tn_shared_slab_stats(s, &stats);
	return stats;
}

inline tn_stats stats_of(const tn_pool *p) {
	tn_stats stats;
	tn_pool_stats(p, &stats);
	return stats;
}

/* Of the scope and the allocators that it owns. */
inline tn_stats stats_of(const tn_scope *s) {
	tn_stats stats;
	tn_scope_stats(s, &stats, nullptr);
	return stats;
}

/* With all scopes below. */
inline tn_stats stats_below(const tn_scope *s) {
	tn_stats stats;
	tn_scope_stats(s, nullptr, &stats);
	return stats;
}

inline std::string to_text(const tn_stats &s) {
	std::string text = s.name;
	auto add = [&text](const char *label, uint64_t value) {
		text += std::string(" ") + label + "=" + std::to_string(value);
	};
	add("live_bytes", s.live_bytes);
	add("live_count", s.live_count);
	add("cached_bytes", s.cached_bytes);
	add("reserved_bytes", s.reserved_bytes);
	add("committed_bytes", s.committed_bytes);
	add("peak_bytes", s.peak_bytes);
	add("chunk_count", s.chunk_count);
	add("partial_count", s.partial_count);
	add("refills", s.refills);
	add("resets", s.resets);
	add("external_bytes", s.external_bytes);
	return text;
}

/* A byte pattern that differs from block to block and along each block. */
inline unsigned char pattern_at(uint64_t seed, size_t i) {
	return static_cast<unsigned char>((seed * 131 + i * 7 + (i >> 8)) ^ 0x5a);
}

inline void fill(void *p, size_t size, uint64_t seed) {
	for (size_t i = 0; i < size; i++)
		static_cast<unsigned char *>(p)[i] = pattern_at(seed, i);
}

inline bool filled(const void *p, size_t size, uint64_t seed) {
	for (size_t i = 0; i < size; i++)
		if (static_cast<const unsigned char *>(p)[i] != pattern_at(seed, i))
			return false;
	return true;
}

inline bool all_bytes(const void *p, size_t size, unsigned char value) {
	const unsigned char *bytes = static_cast<const unsigned char *>(p);
	for (size_t i = 0; i < size; i++)
		if (bytes[i] != value)
			return false;
	return true;
}

inline bool aligned_to(const void *p, size_t align) {
	return reinterpret_cast<uintptr_t>(p) % align == 0;
}

inline uintptr_t address(const void *p) {
	return reinterpret_cast<uintptr_t>(p);
}

inline size_t round_up(size_t size, size_t grain) {
	return (size + grain - 1) / grain * grain;
}

#define EXPECT_REFUSED(call, code)                                                                     \
	do {                                                                                               \
		errno = 0;                                                                                     \
		EXPECT_FALSE(call) << #call;                                                                   \
		EXPECT_EQ(errno, code) << #call;                                                               \
	} while (false)

/* Whether an allocator that held so many bytes when it was made holds no more now than that and, once
 * several threads used it, its shards: one or two pages, which stay until it ends. */
inline bool only_record_and_shards(size_t held, size_t at_first) {
	return held == at_first || held == at_first + 4096 || held == at_first + 8192;
}

#endif
