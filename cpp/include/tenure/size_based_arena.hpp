/* tenure/size_based_arena.hpp: room for N objects of one type, which are never used twice. */
#ifndef TENURE_SIZE_BASED_ARENA_HPP
#define TENURE_SIZE_BASED_ARENA_HPP

#include <tenure/detail/runs.h>

#include "detail/config.hpp"
#include "fwd.hpp"

namespace tenure {
inline namespace TN_INLINE_NAMESPACE {

namespace detail {
template <class T, std::size_t N, std::size_t budget_bytes> struct arena_home;
}

/* Room for `N` objects of T. A program has one arena for each T and N, from the first constructor
 * before main to the last destructor after it; shared libraries share it if T is visible in all of
 * them. Memory that is given back is counted, and not used again before `reset`: so allocating moves a
 * cursor, and giving back is a subtraction.
 *
 * Threads lease runs of `lease` slots, so a slot costs no atomic operation, and the arena holds at
 * least N objects and at most N and a lease for every thread that uses it. A module that uses one must
 * not be unloaded before the threads that used it have ended, the main thread included.
 *
 * budget_bytes  the limit for N objects; more does not compile
 * threads       any; reset and trim when no other call is under way */
template <class T, std::size_t N, std::size_t budget_bytes> class TN_VISIBLE size_based_arena {
	static_assert(N > 0, "tenure: N must be at least 1");
	static_assert(N <= budget_bytes / sizeof(T),
		"tenure: N objects of T exceed budget_bytes: lower N or raise budget_bytes");
	static_assert(alignof(T) <= TN_ALIGN_MAX, "tenure: alignof(T) must be at most TN_ALIGN_MAX");

public:
	/* Slots that a thread leases at a time. */
	static constexpr std::size_t lease = sizeof(T) >= 4096 || N < 32 ? 1
	                                     : N / 16 < 4096 / sizeof(T) ? N / 16
	                                                                 : 4096 / sizeof(T);

	size_based_arena(const size_based_arena &) = delete;
	size_based_arena &operator=(const size_based_arena &) = delete;

	static constexpr size_based_arena &get() noexcept {
		return instance_;
	}
	static constexpr std::size_t capacity() noexcept {
		return N;
	}

	/* Allocates memory for one object.
	 *
	 * throws  std::bad_alloc when N are used; the arena stays usable
	 * cost    a bump of a cursor in thread-local storage; one call in a lease takes a lock */
	[[nodiscard]] TN_ALWAYS_INLINE void *allocate_one() {
		void *p;
		return TN_LIKELY(tn_runs_pop(&lease_, sizeof(T), &p)) ? p : allocate_n(1);
	}

	/* Allocates memory for `count` objects side by side.
	 *
	 * throws  as allocate_one */
	[[nodiscard]] void *allocate_n(std::size_t count) {
		return detail::or_throw(tn_runs_alloc_slow(&runs_, &lease_, at_least_one(count)));
	}

	/* Gives back memory of allocate_one, or of allocate_n with the same count; nullptr is a no-op. The
	 * memory is not used again before reset. Hardened and debug panic about memory that was given back
	 * before, or never came from this arena.
	 *
	 * cost  a subtraction in thread-local storage */
	TN_ALWAYS_INLINE void deallocate_one(void *p) noexcept {
		tn_runs_free(&runs_, &lease_, p, 1);
	}
	TN_ALWAYS_INLINE void deallocate_n(void *p, std::size_t count) noexcept {
		tn_runs_free(&runs_, &lease_, p, at_least_one(count));
	}

	/* Begins again from the first slot, in warm memory, if all objects are gone.
	 *
	 * returns  whether all were gone; otherwise nothing changes */
	bool reset() noexcept {
		return tn_runs_reset(&runs_);
	}

	/* Gives back memory that was not needed since the reset; returns bytes. */
	std::size_t trim() noexcept {
		return tn_runs_trim(&runs_);
	}

	/* Whether `p` points into memory for its objects. */
	bool owns(const void *p) const noexcept {
		return tn_runs_owns(&runs_, p);
	}

	/* Slots handed out since the reset, and those of them that are still live: exact while no other
	 * thread allocates or gives back. */
	std::size_t used() const noexcept {
		return tn_runs_used(&runs_);
	}
	std::size_t in_use() const noexcept {
		return tn_runs_in_use(&runs_);
	}

	tn_stats stats() const noexcept {
		tn_stats now;
		tn_runs_stats(&runs_, &now);
		return now;
	}

private:
	friend struct detail::arena_home<T, N, budget_bytes>;

	constexpr size_based_arena() noexcept = default;

	static constexpr std::size_t at_least_one(std::size_t count) noexcept {
		return count == 0 ? 1 : count;
	}

	static constexpr tn_runs make_runs() noexcept {
		tn_runs r{};
		r.name = "size_based_arena";
		r.slot_bytes = sizeof(T);
		r.align = alignof(T);
		r.count = N;
		r.lease_slots = lease;
		return r;
	}

	/* All three are constant-initialised: no use has to check for their construction. */
	static size_based_arena instance_;
	static inline tn_runs runs_ = make_runs();
	static inline TN_THREAD tn_lease lease_;
};

template <class T, std::size_t N, std::size_t budget_bytes>
size_based_arena<T, N, budget_bytes> size_based_arena<T, N, budget_bytes>::instance_;

}
}
#endif
