/* tenure/heap.hpp: a private malloc that can be dropped whole. See heap.h. */
#ifndef TENURE_HEAP_HPP
#define TENURE_HEAP_HPP

#include <memory>
#include <type_traits>
#include <utility>

#include "detail/owner.hpp"
#include <tenure/heap.h>

namespace tenure {
inline namespace TN_INLINE_NAMESPACE {

/* Begin with `heap_options options{};`: a zero is the default. */
using heap_options = tn_heap_options;

namespace detail {

struct heap_calls {
	TN_CALLS(tn_heap);
};

/* The size tells the class of a block, at alignments up to that of every class. */
TN_ALWAYS_INLINE void heap_free(tn_heap *h, void *p, std::size_t size, std::size_t align) noexcept {
	if (TN_LIKELY(align <= 16))
		tn_heap_free_sized(h, p, size);
	else
		tn_heap_free(h, p);
}

/* T may be a base of the object: the block is that of the whole object. */
template <class T> void heap_destroy(tn_heap *h, T *object) noexcept {
	if (object == nullptr)
		return;
	if constexpr (std::is_polymorphic_v<T> && !std::is_final_v<T>) {
		static_assert(std::has_virtual_destructor_v<T>,
			"tenure: to destroy through a polymorphic base, give it a virtual destructor");
		const volatile void *block = dynamic_cast<const volatile void *>(object);
		std::destroy_at(object);
		tn_heap_free(h, const_cast<void *>(block));
	} else {
		std::destroy_at(object);
		heap_free(h, const_cast<std::remove_cv_t<T> *>(object), sizeof(T), alignof(T));
	}
}

}

/* A heap. Reset and the heap's end forget live objects without running their destructors. A moved-from
 * heap can be destroyed and assigned to.
 *
 * threads  one at a time */
class heap : private detail::owner<detail::heap_calls> {
public:
	/* Destroys an object and frees its block: the deleter of a unique_ptr from make_unique, which must
	 * end before the heap. */
	template <class T> class deleter {
	public:
		deleter() = default;
		explicit deleter(tn_heap *from) : from_(from) {
		}
		void operator()(T *object) const noexcept {
			detail::heap_destroy(from_, object);
		}

	private:
		tn_heap *from_ = nullptr;
	};
	template <class T> using unique = std::unique_ptr<T, deleter<T>>;

	/* From nothing, `const heap_options &` or `const char *name`.
	 *
	 * throws  std::invalid_argument for options that cannot be met, std::bad_alloc */
	using owner::owner;

	/* Allocates `size` bytes at `align` (a power of two up to TN_ALIGN_MAX; 0 means 16).
	 *
	 * throws  std::invalid_argument for a bad alignment, std::bad_alloc */
	[[nodiscard]] TN_ALWAYS_INLINE void *alloc(
		std::size_t size, std::size_t align = 0) TN_LIFETIMEBOUND {
		return detail::or_throw(tn_heap_alloc(handle_, size, align));
	}

	/* Gives a block back; nullptr is a no-op. The size and the alignment, if given, are those of its
	 * allocation. */
	TN_ALWAYS_INLINE void free(void *p) noexcept {
		tn_heap_free(handle_, p);
	}
	TN_ALWAYS_INLINE void free(void *p, std::size_t size, std::size_t align = 0) noexcept {
		detail::heap_free(handle_, p, size, align);
	}

	/* Builds a T in a block of its own.
	 *
	 * throws  std::bad_alloc, and the constructor's exceptions: the block is then free again */
	template <class T, class... Args>
	[[nodiscard]] TN_ALWAYS_INLINE T *make(Args &&...args) TN_LIFETIMEBOUND {
		static_assert(alignof(T) <= TN_ALIGN_MAX, "tenure: alignof(T) must be at most TN_ALIGN_MAX");
		void *p = alloc(sizeof(T), alignof(T));
		auto give_back = [&] { free(p, sizeof(T), alignof(T)); };
		return detail::build_or_undo<T>(p, give_back, std::forward<Args>(args)...);
	}
	template <class T, class... Args>
	[[nodiscard]] unique<T> make_unique(Args &&...args) TN_LIFETIMEBOUND {
		return unique<T>(make<T>(std::forward<Args>(args)...), deleter<T>(handle_));
	}

	/* Destroys an object of make and frees its block; nullptr is a no-op. T may be a base with a
	 * virtual destructor. */
	template <class T> TN_ALWAYS_INLINE void destroy(T *object) noexcept {
		detail::heap_destroy(handle_, object);
	}

	/* Resizes a block, in place if it can; nullptr stands for a new one. The block keeps no alignment
	 * above 16.
	 *
	 * throws  as alloc; the block is then unchanged */
	[[nodiscard]] void *realloc(void *p, std::size_t new_size) TN_LIFETIMEBOUND {
		return detail::or_throw(tn_heap_realloc(handle_, p, new_size));
	}

	/* Forgets every block and keeps the chunks. */
	void reset() noexcept {
		tn_heap_reset(handle_);
	}

	/* std::size_t trim(): gives back the chunks without a live block; returns bytes. */
	using owner::trim;

	/* bool owns(const void *p): whether `p` points into a live or free block. */
	using owner::owns;

	/* Calls `visit(void *, std::size_t)` for every live block, with the bytes that it has room for.
	 * `visit` must not call the heap, and must not throw. */
	template <class Visit> void each(Visit &&visit) {
		auto call = [&](void *p, std::size_t size) { visit(p, size); };
		tn_heap_each(
			handle_,
			[](void *p, std::size_t size, void *at) { (*static_cast<decltype(call) *>(at))(p, size); },
			&call);
	}

	/* Bytes that a block has room for. */
	std::size_t usable_size(const void *p) const noexcept {
		return tn_heap_usable_size(handle_, p);
	}

	/* tn_stats stats(): the figures of this moment. */
	using owner::stats;

	/* bool verify(): walks the invariants; panics at the first broken one. */
	using owner::verify;

	/* tn_heap *get(): the C heap. */
	using owner::get;
};

}
}
#endif
