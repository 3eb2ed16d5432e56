/* Not API. An upstream std::pmr::memory_resource as the source of an allocator of the C library. */
#ifndef TENURE_DETAIL_UPSTREAM_HPP
#define TENURE_DETAIL_UPSTREAM_HPP

#include <memory_resource>

#include "thrown.hpp"

namespace tenure {
inline namespace TN_INLINE_NAMESPACE {
namespace detail {

using memory_resource = std::pmr::memory_resource;

/* Returns nullptr if upstream throws. */
inline void *allocate_from(memory_resource *upstream, std::size_t size, std::size_t align) noexcept {
	void *p = nullptr;
	return callback_scope::run([&] { p = upstream->allocate(size, align); }) ? p : nullptr;
}

}
}
}
#endif
