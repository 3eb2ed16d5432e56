/* Not API. The beginning of every header of the C++ front end. */
#ifndef TENURE_DETAIL_CONFIG_HPP
#define TENURE_DETAIL_CONFIG_HPP

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include <tenure/base.h>
#include <tenure/stats.h>

#include "namespace.hpp"

/* The result points into the object of the call, or into the argument that is marked: compilers that
 * know the attribute warn when the result outlives it. gcc 12 has no such attribute. */
#if defined(__has_cpp_attribute)
#if __has_cpp_attribute(clang::lifetimebound)
#define TN_LIFETIMEBOUND [[clang::lifetimebound]]
#elif __has_cpp_attribute(gnu::lifetimebound)
#define TN_LIFETIMEBOUND [[gnu::lifetimebound]]
#elif __has_cpp_attribute(msvc::lifetimebound)
#define TN_LIFETIMEBOUND [[msvc::lifetimebound]]
#endif
#endif
#if !defined(TN_LIFETIMEBOUND)
#define TN_LIFETIMEBOUND
#endif

#if defined(__GNUC__)
#define TN_ALWAYS_INLINE [[gnu::always_inline]] inline
#define TN_NOINLINE [[gnu::noinline, gnu::cold]]
/* One for the whole process even where symbols are hidden by default, unless T itself is hidden. */
#define TN_VISIBLE [[gnu::visibility("default")]]
#else
#define TN_ALWAYS_INLINE inline
#define TN_NOINLINE
#define TN_VISIBLE
#endif

namespace tenure {
inline namespace TN_INLINE_NAMESPACE {
namespace detail {

/* Reports the caller's mistake. Without exceptions the program ends. */
[[noreturn]] TN_NOINLINE inline void refuse([[maybe_unused]] const char *what) {
	errno = EINVAL;
#if TN_EXCEPTIONS
	throw std::invalid_argument(what);
#else
	std::abort();
#endif
}

/* Reports a failed call of the C library: EINVAL as std::invalid_argument with the text `what`, lack of
 * memory as std::bad_alloc. Without exceptions the program ends. */
[[noreturn]] TN_NOINLINE inline void fail(const char *what) {
	if (errno == EINVAL)
		refuse(what);
#if TN_EXCEPTIONS
	throw std::bad_alloc();
#else
	std::abort();
#endif
}
[[noreturn]] TN_NOINLINE inline void fail() {
	fail("tenure: invalid size, alignment or options");
}

/* Reports a product that no size_t holds. */
[[noreturn]] TN_NOINLINE inline void fail_length() {
#if TN_EXCEPTIONS
	throw std::bad_array_new_length();
#else
	std::abort();
#endif
}

template <class P> TN_ALWAYS_INLINE P *or_throw(P *p) {
	if (TN_UNLIKELY(p == nullptr))
		fail();
	return p;
}

/* Bytes of `count` objects of T. */
template <class T> TN_ALWAYS_INLINE std::size_t bytes_of(std::size_t count) {
	if (TN_UNLIKELY(count > static_cast<std::size_t>(PTRDIFF_MAX) / sizeof(T)))
		fail_length();
	return count * sizeof(T);
}

/* Builds a T at `place`: with parentheses, or an aggregate's members with braces. */
template <class T, class... Args> TN_ALWAYS_INLINE T *build(void *place, Args &&...args) {
	if constexpr (std::is_constructible_v<T, Args...>)
		return ::new (place) T(std::forward<Args>(args)...);
	else
		return ::new (place) T{std::forward<Args>(args)...};
}

/* Calls `undo` at the end of its block, unless keep() was called: an exception undoes the work. */
template <class Undo> class guard {
public:
	explicit guard(Undo undo) : undo_(undo) {
	}
	guard(const guard &) = delete;
	guard &operator=(const guard &) = delete;
	~guard() {
		if (armed_)
			undo_();
	}
	void keep() {
		armed_ = false;
	}

private:
	Undo undo_;
	bool armed_ = true;
};
template <class Undo> guard(Undo) -> guard<Undo>;

/* Builds a T at `place`; when the constructor throws, `undo` gives the memory back. */
template <class T, class Undo, class... Args>
TN_ALWAYS_INLINE T *build_or_undo(void *place, Undo undo, Args &&...args) {
	if constexpr (std::is_nothrow_constructible_v<T, Args...>) {
		return build<T>(place, std::forward<Args>(args)...);
	} else {
		guard on_throw(undo);
		T *object = build<T>(place, std::forward<Args>(args)...);
		on_throw.keep();
		return object;
	}
}

}
}
}
#endif
