/* tenure/allocator.hpp: an allocator for containers that knows its resource's type, without virtual
 * calls. */
#ifndef TENURE_ALLOCATOR_HPP
#define TENURE_ALLOCATOR_HPP

#include <memory>
#include <type_traits>

#include "detail/config.hpp"

namespace tenure {
inline namespace TN_INLINE_NAMESPACE {

namespace detail {

template <class R, class = void> struct has_free : std::false_type {};
template <class R> struct has_free<R, std::void_t<decltype(&R::free)>> : std::true_type {};

template <class R, class = void> struct allocates : std::false_type {};
template <class R>
struct allocates<R,
	std::void_t<decltype(static_cast<void *>(std::declval<R &>().alloc(std::size_t(), std::size_t())))>>
	: std::true_type {};

template <class R, class = void> struct frees : std::false_type {};
template <class R>
struct frees<R, std::void_t<decltype(std::declval<R &>().free(
					static_cast<void *>(nullptr), std::size_t(), std::size_t()))>> : std::true_type {};

}

/* Whether an allocator can use R: it needs `alloc(bytes, align)`, and either `free(p, bytes, align)` or
 * no `free` at all. */
template <class R>
constexpr bool is_resource =
	detail::allocates<R>::value && (detail::frees<R>::value || !detail::has_free<R>::value);

#if defined(__cpp_concepts) && __cpp_concepts >= 201907L
template <class R>
concept resource = is_resource<R>;
#endif

/* Allocates T from a Resource: an arena_resource, slab_resource or shared_slab_resource, an arena, or
 * any other type that is_resource. The resource must not move, and must outlive its containers.
 *
 * Moving and swapping containers moves the allocator too, so it never copies elements; a copy of a
 * container uses the same resource. Allocators are equal if they have the same resource.
 *
 * threads  as the resource */
template <class T, class Resource> class allocator {
public:
	using value_type = T;
	using propagate_on_container_move_assignment = std::true_type;
	using propagate_on_container_swap = std::true_type;
	using is_always_equal = std::false_type;
	template <class U> struct rebind {
		using other = allocator<U, Resource>;
	};

	allocator(Resource &r TN_LIFETIMEBOUND) noexcept : resource_(std::addressof(r)) {
	}
	template <class U>
	allocator(const allocator<U, Resource> &other) noexcept : resource_(other.resource()) {
	}

	/* throws  std::bad_array_new_length for a product that is too large, and as the resource */
	[[nodiscard]] TN_ALWAYS_INLINE T *allocate(std::size_t count) {
		static_assert(is_resource<Resource>,
			"tenure: Resource needs alloc(bytes, align), and either free(p, bytes, align) or no free");
		return static_cast<T *>(resource_->alloc(detail::bytes_of<T>(count), alignof(T)));
	}
	TN_ALWAYS_INLINE void deallocate(T *p, std::size_t count) noexcept {
		if constexpr (detail::frees<Resource>::value)
			resource_->free(p, count * sizeof(T), alignof(T));
	}

	Resource *resource() const noexcept {
		return resource_;
	}

private:
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
