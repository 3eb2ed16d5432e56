/* tenure/heap.hpp: a private malloc that can be dropped whole. See heap.h. */
#ifndef TENURE_HEAP_HPP
#define TENURE_HEAP_HPP

#include <memory>
#include <type_traits>
#include <utility>

#include "detail/config.hpp"
#include <tenure/heap.h>

namespace tenure {
inline namespace TN_INLINE_NAMESPACE {

/* Begin with `heap_options options{};`: what is zero is the default. */
using heap_options = tn_heap_options;

namespace detail {

/* The size says what it is part of: at alignments up to what every class has. */
TN_ALWAYS_INLINE void heap_free(tn_heap *h, void *p, std::size_t size, std::size_t align) noexcept {
	if (TN_LIKELY(align <= 16))
		tn_heap_free_sized(h, p, size);
	else
		tn_heap_free(h, p);
}

/* The block is the whole object's, whichever of its bases is named. */
template <class T> void heap_destroy(tn_heap *h, T *object) noexcept {
	if (object == nullptr)
		return;
	if constexpr (std::is_polymorphic_v<T> && !std::is_final_v<T>) {
		static_assert(std::has_virtual_destructor_v<T>, "which destructor?");
		const volatile void *block = dynamic_cast<const volatile void *>(object);
		std::destroy_at(object);
		tn_heap_free(h, const_cast<void *>(block));
	} else {
		std::destroy_at(object);
		heap_free(h, const_cast<std::remove_cv_t<T> *>(object), sizeof(T), alignof(T));
	}
}

}

/* A heap. Objects that are alive at reset or at its end are forgotten: their destructors do not run. A
 * moved-from heap can be destroyed and assigned to.
 *
 * threads  one at a time */
class heap {
public:
	/* Destroys an object and frees its block: what a unique_ptr from make_unique does at its end, which
	 * must come before the heap's. */
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

	/* throws  std::invalid_argument for options that cannot be met, std::bad_alloc */
	heap() : heap_(detail::or_throw(tn_heap_create(nullptr))) {
	}
	explicit heap(const heap_options &options) : heap_(detail::or_throw(tn_heap_create(&options))) {
	}
	explicit heap(const char *name) : heap(detail::named<heap_options>(name)) {
	}
	/* Not API: see scope.hpp. */
	explicit heap(detail::adopt<tn_heap> made) noexcept : heap_(made.handle) {
	}
	heap(heap &&other) noexcept : heap_(std::exchange(other.heap_, nullptr)) {
	}
	heap &operator=(heap &&other) noexcept {
		heap taken(std::move(other));
		std::swap(heap_, taken.heap_);
		return *this;
	}
	~heap() {
		tn_heap_destroy(heap_);
	}

	/* Allocates `size` bytes at `align` (a power of two up to TN_ALIGN_MAX; 0 means 16).
	 *
	 * throws  std::invalid_argument for a bad alignment, std::bad_alloc */
	[[nodiscard]] TN_ALWAYS_INLINE void *alloc(
		std::size_t size, std::size_t align = 0) TN_LIFETIMEBOUND {
		return detail::or_throw(tn_heap_alloc(heap_, size, align));
	}

	/* Gives a block back; nullptr is a no-op. The size and the alignment, where they are given, are
	 * those that it was allocated with. */
	TN_ALWAYS_INLINE void free(void *p) noexcept {
		tn_heap_free(heap_, p);
	}
	TN_ALWAYS_INLINE void free(void *p, std::size_t size, std::size_t align = 0) noexcept {
		detail::heap_free(heap_, p, size, align);
	}

	/* Resizes a block, in place where it can; nullptr is a new one. Alignments above 16 are not kept.
	 *
	 * throws  as alloc; the block is unchanged then */
	[[nodiscard]] void *realloc(void *p, std::size_t new_size) TN_LIFETIMEBOUND {
		return detail::or_throw(tn_heap_realloc(heap_, p, new_size));
	}

	/* Builds a T in a block of its own.
	 *
	 * throws  std::bad_alloc, and what the constructor throws: the block is free again then */
	template <class T, class... Args>
	[[nodiscard]] TN_ALWAYS_INLINE T *make(Args &&...args) TN_LIFETIMEBOUND {
		return build<T>(std::forward<Args>(args)...);
	}
	template <class T, class... Args>
	[[nodiscard]] unique<T> make_unique(Args &&...args) TN_LIFETIMEBOUND {
		return unique<T>(build<T>(std::forward<Args>(args)...), deleter<T>(heap_));
	}

	/* Destroys what make built, and frees its block; nullptr is a no-op. A base may be named that has
	 * a virtual destructor. */
	template <class T> TN_ALWAYS_INLINE void destroy(T *object) noexcept {
		detail::heap_destroy(heap_, object);
	}

	/* Bytes that a block has room for. */
	std::size_t usable_size(const void *p) const noexcept {
		return tn_heap_usable_size(heap_, p);
	}

	/* Forgets every block and keeps the chunks. */
	void reset() noexcept {
		tn_heap_reset(heap_);
	}

	/* Gives back chunks without a live block; in bytes. */
	std::size_t trim() noexcept {
		return tn_heap_trim(heap_);
	}
	bool owns(const void *p) const noexcept {
		return tn_heap_owns(heap_, p);
	}

	/* Calls `visit(void *, std::size_t)` for every live block with the bytes that it has room for.
	 * `visit` must not call the heap, and must not throw. */
	template <class Visit> void each(Visit &&visit) {
		auto *call = std::addressof(visit);
		tn_heap_each(
			heap_,
			[](void *p, std::size_t size, void *at) { (**static_cast<decltype(call) *>(at))(p, size); },
			&call);
	}

	tn_stats stats() const noexcept {
		tn_stats now;
		tn_heap_stats(heap_, &now);
		return now;
	}
	bool verify() const noexcept {
		return tn_heap_verify(heap_);
	}

	/* The C heap. */
	tn_heap *get() const noexcept TN_LIFETIMEBOUND {
		return heap_;
	}

private:
	template <class T, class... Args> TN_ALWAYS_INLINE T *build(Args &&...args) {
		static_assert(alignof(T) <= TN_ALIGN_MAX, "Tenure aligns up to TN_ALIGN_MAX");
		void *p = alloc(sizeof(T), alignof(T));
		if constexpr (std::is_nothrow_constructible_v<T, Args...>) {
			return detail::build<T>(p, std::forward<Args>(args)...);
		} else {
			detail::guard undo([&] { free(p, sizeof(T), alignof(T)); });
			T *object = detail::build<T>(p, std::forward<Args>(args)...);
			undo.keep();
			return object;
		}
	}

	tn_heap *heap_;
};

}
}
#endif
