/* Not API. Every form of operator new and delete of a class; a home allocates its objects. */
#ifndef TENURE_DETAIL_OPERATORS_HPP
#define TENURE_DETAIL_OPERATORS_HPP

#include <new>

#include "config.hpp"

namespace tenure {
inline namespace TN_INLINE_NAMESPACE {
namespace detail {

/* `Home` has static functions that do not throw; a failed take returns nullptr with errno.
 *
 *   pop(&p)                                  memory for one object; false if slow() has to find it
 *   give_one(p)
 *   take_array(bytes), give_array(p, bytes)  at 16 bytes, or alignof(T) if that is more
 *   take_noted_array(bytes)                  the same, and give_unknown can tell the size
 *   give_unknown(p)                          an object or an array; false if it is not the home's
 *
 * A single object of another size than T's belongs to a derived class: it goes to the global heap, as
 * do alignments over T's. Deallocation functions take a size, so that compilers pass it, and keep it
 * before arrays. Those that undo a nothrow or an aligned new get no size, and ask the home. They and
 * their heap are not inlined: compilers would warn of a mismatch where there is none. */
template <class T, class Home> class operators {
public:
	using tenure_home = Home;

	[[nodiscard]] TN_ALWAYS_INLINE static void *operator new(std::size_t bytes) {
		return bytes == sizeof(T) ? take_one() : ::operator new(bytes);
	}
	TN_ALWAYS_INLINE static void operator delete(void *p, std::size_t bytes) noexcept {
		if (bytes == sizeof(T))
			Home::give_one(p);
		else
			::operator delete(p);
	}

	[[nodiscard]] static void *operator new[](std::size_t bytes) {
		return or_throw(Home::take_array(bytes));
	}
	static void operator delete[](void *p, std::size_t bytes) noexcept {
		Home::give_array(p, bytes);
	}

	[[nodiscard]] TN_ALWAYS_INLINE static void *operator new(
		std::size_t bytes, std::align_val_t align) {
		return is_ours(bytes, align) ? take_one() : from_heap(bytes, align);
	}
	static void operator delete(void *p, std::size_t bytes, std::align_val_t align) noexcept {
		if (is_ours(bytes, align))
			Home::give_one(p);
		else
			::operator delete(p, align);
	}

	[[nodiscard]] TN_ALWAYS_INLINE static void *operator new[](
		std::size_t bytes, std::align_val_t align) {
		return fits_array(align) ? or_throw(Home::take_noted_array(bytes))
		                         : array_from_heap(bytes, align);
	}
	static void operator delete[](void *p, std::size_t bytes, std::align_val_t align) noexcept {
		if (fits_array(align))
			Home::give_array(p, bytes);
		else
			::operator delete[](p, align);
	}

	[[nodiscard]] static void *operator new(std::size_t bytes, const std::nothrow_t &tag) noexcept {
		return bytes == sizeof(T) ? try_one() : from_heap(bytes, tag);
	}
	TN_NOINLINE static void operator delete(void *p, const std::nothrow_t &) noexcept {
		if (!Home::give_unknown(p))
			::operator delete(p);
	}

	[[nodiscard]] static void *operator new[](std::size_t bytes, const std::nothrow_t &) noexcept {
		return Home::take_noted_array(bytes);
	}
	TN_NOINLINE static void operator delete[](void *p, const std::nothrow_t &) noexcept {
		if (!Home::give_unknown(p))
			::operator delete[](p);
	}

	[[nodiscard]] static void *operator new(
		std::size_t bytes, std::align_val_t align, const std::nothrow_t &tag) noexcept {
		return is_ours(bytes, align) ? try_one() : from_heap(bytes, align, tag);
	}
	TN_NOINLINE static void operator delete(
		void *p, std::align_val_t align, const std::nothrow_t &) noexcept {
		if (!Home::give_unknown(p))
			::operator delete(p, align);
	}

	[[nodiscard]] static void *operator new[](
		std::size_t bytes, std::align_val_t align, const std::nothrow_t &tag) noexcept {
		return fits_array(align) ? Home::take_noted_array(bytes) : array_from_heap(bytes, align, tag);
	}
	TN_NOINLINE static void operator delete[](
		void *p, std::align_val_t align, const std::nothrow_t &) noexcept {
		if (!Home::give_unknown(p))
			::operator delete[](p, align);
	}

	/* These undo an aligned new, also without a size. They are templates because `delete` would prefer
	 * ordinary functions without a size to those with one. */
	template <class A, class = std::enable_if_t<std::is_same_v<A, std::align_val_t>>>
	TN_NOINLINE static void operator delete(void *p, A align) noexcept {
		if (!Home::give_unknown(p))
			::operator delete(p, align);
	}
	template <class A, class = std::enable_if_t<std::is_same_v<A, std::align_val_t>>>
	TN_NOINLINE static void operator delete[](void *p, A align) noexcept {
		if (!Home::give_unknown(p))
			::operator delete[](p, align);
	}

	[[nodiscard]] static void *operator new(std::size_t, void *place) noexcept {
		return place;
	}
	static void operator delete(void *, void *) noexcept {
	}
	[[nodiscard]] static void *operator new[](std::size_t, void *place) noexcept {
		return place;
	}
	static void operator delete[](void *, void *) noexcept {
	}

private:
	TN_ALWAYS_INLINE static void *take_one() {
		void *p;
		return TN_LIKELY(Home::pop(&p)) ? p : or_throw(Home::slow());
	}
	static void *try_one() noexcept {
		void *p;
		return Home::pop(&p) ? p : Home::slow();
	}
	template <class... How>
	TN_NOINLINE static void *from_heap(std::size_t bytes, How... how) noexcept(
		noexcept(::operator new(bytes, how...))) {
		return ::operator new(bytes, how...);
	}
	template <class... How>
	TN_NOINLINE static void *array_from_heap(std::size_t bytes, How... how) noexcept(
		noexcept(::operator new[](bytes, how...))) {
		return ::operator new[](bytes, how...);
	}
	static constexpr bool is_ours(std::size_t bytes, std::align_val_t align) noexcept {
		return bytes == sizeof(T) && static_cast<std::size_t>(align) <= alignof(T);
	}
	static constexpr bool fits_array(std::align_val_t align) noexcept {
		return static_cast<std::size_t>(align) <= alignof(T) || static_cast<std::size_t>(align) <= 16;
	}
};

}
}
}
#endif
