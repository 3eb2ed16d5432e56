/* tenure/allocator.hpp: an allocator for containers that knows its resource's type, so that nothing is
 * virtual. */
#ifndef TENURE_ALLOCATOR_HPP
#define TENURE_ALLOCATOR_HPP

#include <memory>
#include <type_traits>

#include "detail/config.hpp"

namespace tenure {
inline namespace TN_INLINE_NAMESPACE {

/* Allocates T from a Resource: an arena_resource, slab_resource or shared_slab_resource, an arena, or
 * anything with `alloc(bytes, align)` and, unless freeing is nothing, `free(p, bytes, align)`. It must
 * outlive what it allocated for.
 *
 * Moving and swapping containers takes the allocator along, so it never copies elements; copies of a
 * container use the same resource. Equal is what has the same resource.
 *
 * threads  as the resource */
template <class T, class Resource> class allocator {
public:
	using value_type = T;
	using propagate_on_container_move_assignment = std::true_type;
	using propagate_on_container_swap = std::true_type;
	using is_always_equal = std::false_type;
	template <class U> struct rebind { using other = allocator<U, Resource>; };

	allocator(Resource &r TN_LIFETIMEBOUND) noexcept : resource_(std::addressof(r)) {
	}
	template <class U>
	allocator(const allocator<U, Resource> &other) noexcept : resource_(other.resource()) {
	}

	/* throws  std::bad_array_new_length for a product that cannot be, and as the resource */
	[[nodiscard]] TN_FORCED T *allocate(std::size_t count) {
		return static_cast<T *>(resource_->alloc(detail::bytes_of<T>(count), alignof(T)));
	}
	TN_FORCED void deallocate(T *p, std::size_t count) noexcept {
		if constexpr (frees<Resource>(0))
			resource_->free(p, count * sizeof(T), alignof(T));
	}

	Resource *resource() const noexcept {
		return resource_;
	}

private:
	template <class R>
	static constexpr auto frees(int)
		-> decltype(std::declval<R &>().free(nullptr, std::size_t(), std::size_t()), true) {
		return true;
	}
	template <class> static constexpr bool frees(...) {
		return false;
	}

	Resource *resource_;
};

template <class T, class U, class Resource>
bool operator==(const allocator<T, Resource> &a, const allocator<U, Resource> &b) noexcept {
	return a.resource() == b.resource();
}
template <class T, class U, class Resource>
bool operator!=(const allocator<T, Resource> &a, const allocator<U, Resource> &b) noexcept {
	return a.resource() != b.resource();
}

}
}
#endif
