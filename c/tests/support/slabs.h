/* Slab and shared slab under one set of names, for the tests of their common contract. */
#ifndef TENURE_TESTS_SLABS_H
#define TENURE_TESTS_SLABS_H

#include "allocators.h"
#include "ledger.h"
#include "program.h"

#include <algorithm>
#include <set>
#include <type_traits>

/* The calls of an allocator of slots, without its prefix. */
template <typename Slab> struct kind;

#define TENURE_KIND_OF_SLAB(word)                                                                      \
	template <> struct kind<tn_##word> {                                                               \
		using type = tn_##word;                                                                        \
		using options = tn_##word##_options;                                                           \
		using owner = word##_owner;                                                                    \
		static constexpr bool shared = std::is_same_v<type, tn_shared_slab>;                           \
		static owner make(size_t size, size_t align = 0, const options &o = {}) {                      \
			return make_##word(size, align, o);                                                        \
		}                                                                                              \
		static constexpr auto create = tn_##word##_create;                                             \
		static constexpr auto destroy = tn_##word##_destroy;                                           \
		static void *alloc(type *s) {                                                                  \
			return tn_##word##_alloc(s);                                                               \
		}                                                                                              \
		static void free(type *s, void *p) {                                                           \
			tn_##word##_free(s, p);                                                                    \
		}                                                                                              \
		static constexpr auto alloc_batch = tn_##word##_alloc_batch;                                   \
		static constexpr auto free_batch = tn_##word##_free_batch;                                     \
		static constexpr auto trim = tn_##word##_trim;                                                 \
		static constexpr auto owns = tn_##word##_owns;                                                 \
		static constexpr auto each = tn_##word##_each;                                                 \
		static constexpr auto in_use = tn_##word##_in_use;                                             \
		static constexpr auto slot_size = tn_##word##_slot_size;                                       \
		static constexpr auto verify = tn_##word##_verify;                                             \
	}
TENURE_KIND_OF_SLAB(slab);
TENURE_KIND_OF_SLAB(shared_slab);

/* Only the shared slab has threads that hold slots, so only it has this call. */
inline void flush(tn_slab *) {
}
inline void flush(tn_shared_slab *s) {
	tn_shared_slab_flush(s);
}

template <typename Slab> std::vector<void *> take(Slab *s, size_t count) {
	std::vector<void *> slots;
	for (size_t i = 0; i < count; i++) {
		slots.push_back(kind<Slab>::alloc(s));
		EXPECT_NE(slots.back(), nullptr);
	}
	return slots;
}

template <typename Slab> void give(Slab *s, const std::vector<void *> &slots) {
	for (void *slot : slots)
		kind<Slab>::free(s, slot);
}

/* Takes all slots of the slab. */
template <typename Slab> std::vector<void *> exhaust(Slab *s) {
	std::vector<void *> slots;
	/* A limit that does not hold should not take the machine with it. */
	constexpr size_t too_many = 500000;
	while (slots.size() < too_many) {
		void *p = kind<Slab>::alloc(s);
		if (p == nullptr)
			break;
		slots.push_back(p);
	}
	EXPECT_LT(slots.size(), too_many);
	return slots;
}

inline bool disjoint(std::vector<void *> slots, size_t size) {
	std::sort(slots.begin(), slots.end());
	for (size_t i = 1; i < slots.size(); i++)
		if (address(slots[i]) - address(slots[i - 1]) < size)
			return false;
	return true;
}

inline void shuffle(std::vector<void *> &slots, uint64_t seed) {
	dice d(seed);
	for (size_t i = slots.size(); i > 1; i--)
		std::swap(slots[i - 1], slots[d.below(i)]);
}

/* Callbacks of built slots of 64 bytes, with books; some calls of init fail. */
struct builder {
	static bool build(void *slot, void *ctx) {
		builder *b = static_cast<builder *>(ctx);
		if (++b->calls >= b->fail_from && b->calls - b->fail_from < b->fail_count)
			return false;
		EXPECT_TRUE(b->built.insert(slot).second) << "built twice";
		std::memset(slot, 0x42, 64);
		b->inits++;
		return true;
	}
	static void take_apart(void *slot, void *ctx) {
		builder *b = static_cast<builder *>(ctx);
		EXPECT_EQ(b->built.erase(slot), 1u) << "taken apart, but not built";
		EXPECT_EQ(*static_cast<unsigned char *>(slot), 0x42) << "built state lost";
		b->finis++;
	}
	/* Options of any allocator of slots, with these callbacks. */
	template <typename Options, typename = decltype(Options::init)> operator Options() {
		Options o = {};
		o.init = build;
		o.fini = take_apart;
		o.ctx = this;
		return o;
	}
	std::set<void *> built;
	size_t calls = 0, inits = 0, finis = 0;
	size_t fail_from = SIZE_MAX, fail_count = 0;
};

#endif
