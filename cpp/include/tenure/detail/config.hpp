/* Not API. What every header of the C++ front end begins with. */
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

#include "../fwd.hpp"

/* What is returned points into what the function was called on, or was given: compilers that know the
 * attribute warn where it outlives that. gcc 12 has none. */
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
/* One for the whole process also where symbols are hidden by default, as long as T itself is not. */
#define TN_VISIBLE [[gnu::visibility("default")]]
#else
#define TN_ALWAYS_INLINE inline
#define TN_NOINLINE
#define TN_VISIBLE
#endif

namespace tenure {
inline namespace TN_INLINE_NAMESPACE {
namespace detail {

/* What a failed call of the C library becomes: std::invalid_argument for the caller's mistake,
 * std::bad_alloc for lack of memory. Without exceptions the program ends. */
[[noreturn]] TN_NOINLINE inline void fail() {
#if TN_EXCEPTIONS
	if (errno == EINVAL)
		throw std::invalid_argument("tenure: a size, an alignment or options that cannot be");
	throw std::bad_alloc();
#else
	std::abort();
#endif
}

/* A product that no size_t holds. */
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

/* Options of which only the name is not the default. */
template <class Options> Options named(const char *name) noexcept {
	Options options{};
	options.name = name;
	return options;
}

/* An allocator of the C library that whoever made it hands over. */
template <class Handle> struct adopt {
	Handle *handle;
};

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

/* Undoes something when a scope is left by an exception, that is, unless it was told to keep it. */
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

}
}
}
#endif
