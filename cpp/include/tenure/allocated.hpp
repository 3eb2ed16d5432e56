/* tenure/allocated.hpp: classes with their own new and delete. Derive publicly from one of these bases,
 * and `new T`, `new T[n]`, `delete` and `delete[]` use memory that fits T; nothing else changes:
 *
 *   class orc : public tenure::arena_allocated<orc, 1'000'000> { ... };
 *
 * (An aggregate then has a base, and its initialiser begins with `{}`: `elf{{}, 1, 2}`. A class that
 * derives from two such bases names the one whose operators it uses.)
 *
 * The bases have all forms: plain, array, nothrow, aligned, placement, sized. An object of a derived
 * class of another size goes to the global heap; as always, deleting it through a base needs a virtual
 * destructor there. A constructor that throws loses nothing. */
#ifndef TENURE_ALLOCATED_HPP
#define TENURE_ALLOCATED_HPP

#include <atomic>
#include <new>

#include "detail/operators.hpp"
#include "detail/size_classes.hpp"
#include "shared_slab.hpp"
#include "size_based_arena.hpp"
#include "slab.hpp"

namespace tenure {
inline namespace TN_INLINE_NAMESPACE {
namespace detail {

template <class T, std::size_t N, std::size_t budget_bytes> struct arena_home {
	using arena = size_based_arena<T, N, budget_bytes>;

	static arena &get() noexcept {
		return arena::get();
	}
	TN_ALWAYS_INLINE static bool pop(void **slot) noexcept {
		return tn_runs_pop(&arena::lease_, sizeof(T), slot);
	}
	static void *slow() noexcept {
		return tn_runs_alloc_slow(&arena::runs_, &arena::lease_, 1);
	}
	TN_ALWAYS_INLINE static void give_one(void *p) noexcept {
		tn_runs_free(&arena::runs_, &arena::lease_, p, 1);
	}
	static void *take_array(std::size_t bytes) noexcept {
		return tn_runs_alloc_slow(&arena::runs_, &arena::lease_, slots_of(bytes));
	}
	static void give_array(void *p, std::size_t bytes) noexcept {
		tn_runs_free(&arena::runs_, &arena::lease_, p, slots_of(bytes));
	}
	static void *take_noted_array(std::size_t bytes) noexcept {
		return tn_runs_alloc_noted(&arena::runs_, &arena::lease_, slots_of(bytes));
	}
	static bool give_unknown(void *p) noexcept {
		if (!arena::get().owns(p))
			return false;
		tn_runs_free_noted(&arena::runs_, &arena::lease_, p);
		return true;
	}

private:
	/* Slots that hold `bytes`, which include the compiler's cookie. */
	static constexpr std::size_t slots_of(std::size_t bytes) noexcept {
		std::size_t slots = bytes / sizeof(T) + (bytes % sizeof(T) != 0);
		/* One slot of such a size may not be aligned for a cookie; a run of several is. */
		std::size_t least = sizeof(T) % alignof(std::size_t) == 0 ? 1 : 2;
		return slots < least ? least : slots;
	}
};

/* A slab for T, created on first use and never destroyed, and slabs for its arrays up to 8 KiB. */
template <class T, class Calls> class TN_VISIBLE slab_home {
public:
	using handle = typename Calls::handle;

	TN_ALWAYS_INLINE static bool pop(void **slot) noexcept {
		return Calls::pop(slab(), slot);
	}
	TN_NOINLINE static void *slow() noexcept {
		handle *s = slab();
		if (s == &Calls::none)
			s = install<Calls>(slab_, &Calls::none, sizeof(T), slot_align(), options());
		return s == nullptr ? nullptr : Calls::slow(s);
	}
	TN_ALWAYS_INLINE static void give_one(void *p) noexcept {
		Calls::free(slab(), p);
	}
	static void *take_array(std::size_t bytes) noexcept {
		std::size_t index = class_of(bytes, array_align);
		if (index == class_count)
			return from_heap(bytes);
		handle *s = arrays_.find(index);
		if (s == nullptr)
			s = arrays_.add(index, options());
		void *p;
		return s == nullptr ? nullptr : Calls::pop(s, &p) ? p : Calls::slow(s);
	}
	static void give_array(void *p, std::size_t bytes) noexcept {
		std::size_t index = class_of(bytes, array_align);
		if (index == class_count)
			to_heap(p);
		else
			arrays_.give(index, p);
	}
	static void *take_noted_array(std::size_t bytes) noexcept {
		return take_array(bytes);
	}
	static bool give_unknown(void *p) noexcept {
		handle *s = slab();
		if (!owns_one(p)) {
			std::size_t index = arrays_.owner_of(p);
			if (index == class_count)
				return false;
			s = arrays_.find(index);
		}
		Calls::free(s, p);
		return true;
	}

	static slab_home &get() noexcept {
		return home_;
	}
	std::size_t trim() noexcept {
		std::size_t bytes = is_made() ? Calls::trim(slab()) : 0;
		arrays_.each([&](handle *s) { bytes += Calls::trim(s); });
		return bytes;
	}
	bool owns(const void *p) const noexcept {
		return owns_one(p) || arrays_.owner_of(p) != class_count;
	}
	std::size_t in_use() const noexcept {
		return is_made() ? Calls::in_use(slab()) : 0;
	}
	tn_stats stats() const noexcept {
		tn_stats now{};
		if (is_made())
			Calls::stats(slab(), &now);
		return now;
	}

private:
	/* Returns a stand-in without slots before the first object. */
	TN_ALWAYS_INLINE static handle *slab() noexcept {
		return slab_.load(std::memory_order_acquire);
	}
	static bool is_made() noexcept {
		return slab() != &Calls::none;
	}

	static bool owns_one(const void *p) noexcept {
		return is_made() && Calls::owns(slab(), p);
	}

	static constexpr std::size_t array_align = alignof(T) < 16 ? 16 : alignof(T);
	/* The largest alignment that T's size allows: a derived class of the same size may need it. */
	static constexpr std::size_t slot_align() noexcept {
		std::size_t natural = alignment_of_size(sizeof(T)) < 16 ? alignment_of_size(sizeof(T)) : 16;
		return natural < alignof(T) ? alignof(T) : natural;
	}

	/* Not inlined, as in operators.hpp. */
	TN_NOINLINE static void *from_heap(std::size_t bytes) noexcept {
		if constexpr (alignof(T) > __STDCPP_DEFAULT_NEW_ALIGNMENT__)
			return ::operator new[](bytes, std::align_val_t{alignof(T)}, std::nothrow);
		else
			return ::operator new[](bytes, std::nothrow);
	}
	TN_NOINLINE static void to_heap(void *p) noexcept {
		if constexpr (alignof(T) > __STDCPP_DEFAULT_NEW_ALIGNMENT__)
			::operator delete[](p, std::align_val_t{alignof(T)});
		else
			::operator delete[](p);
	}

	static typename Calls::options options() noexcept {
		typename Calls::options o{};
		o.name = Calls::allocated_name;
		return o;
	}

	static inline std::atomic<handle *> slab_{&Calls::none};
	static inline size_classes<Calls> arrays_;
	static slab_home home_;
};

template <class T, class Calls> slab_home<T, Calls> slab_home<T, Calls>::home_;

}

/* Objects in an arena for N of them, whose memory is not used again before its reset: for objects that
 * die at about the same time.
 *
 * threads  any; of home_of: see size_based_arena */
template <class T, std::size_t N, std::size_t budget_bytes = std::size_t{1} << 30>
using arena_allocated = detail::operators<T, detail::arena_home<T, N, budget_bytes>>;

/* Objects in a slab, which uses a free slot again at once.
 *
 * threads  one at a time, counting all objects of T as one allocator */
template <class T>
using slab_allocated = detail::operators<T, detail::slab_home<T, detail::slab_calls>>;

/* Objects in a shared slab.
 *
 * threads  any */
template <class T>
using shared_slab_allocated = detail::operators<T, detail::slab_home<T, detail::shared_slab_calls>>;

/* The home of the objects of T, a class that derives from one of these bases: for arena_allocated the
 * size_based_arena; for the others an object with trim() and owns(), which include arrays, and in_use()
 * and stats(), which count single objects only. */
template <class T> auto &home_of() noexcept {
	return T::tenure_home::get();
}

}
}
#endif
