/* Not API. An upstream std::pmr::memory_resource as the source of an allocator of the C library. */
#ifndef TENURE_DETAIL_UPSTREAM_HPP
#define TENURE_DETAIL_UPSTREAM_HPP

#include <exception>
#include <memory_resource>
#include <utility>

#include "config.hpp"

namespace tenure {
inline namespace TN_INLINE_NAMESPACE {
namespace detail {

using memory_resource = std::pmr::memory_resource;

/* What an upstream resource threw: exceptions must not pass through the C library, and wait here. */
inline std::exception_ptr &thrown_upstream() {
	static thread_local std::exception_ptr thrown;
	return thrown;
}

/* nullptr where upstream throws. */
inline void *allocate_from(memory_resource *upstream, std::size_t size, std::size_t align) noexcept {
#if TN_EXCEPTIONS
	try {
		return upstream->allocate(size, align);
	} catch (...) {
		thrown_upstream() = std::current_exception();
		return nullptr;
	}
#else
	return upstream->allocate(size, align);
#endif
}

/* As fail(), with what upstream threw. */
[[noreturn]] TN_OUTLINED inline void fail_upstream() {
#if TN_EXCEPTIONS
	if (std::exception_ptr thrown = std::exchange(thrown_upstream(), nullptr))
		std::rethrow_exception(thrown);
#endif
	fail();
}

template <class P> TN_FORCED P *had_upstream(P *p) {
	if (TN_UNLIKELY(p == nullptr))
		fail_upstream();
	return p;
}

}
}
}
#endif
