/* Not API. What slab and shared_slab have in common: objects of one type in slots. `Calls` says which
 * functions of the C library they are. */
#ifndef TENURE_DETAIL_TYPED_SLAB_HPP
#define TENURE_DETAIL_TYPED_SLAB_HPP

#include <memory>
#include <type_traits>
#include <utility>

#include "config.hpp"

namespace tenure {
inline namespace TN_INLINE_NAMESPACE {
namespace detail {

/* Builds a T in a slot of `from` (Calls::handle *), which gets it back when the constructor throws. */
template <class Calls, class T, class Handle, class... Args>
TN_ALWAYS_INLINE T *make_in(Handle *from, Args &&...args) {
	void *slot = Calls::alloc(from);
	if constexpr (std::is_nothrow_constructible_v<T, Args...>) {
		return detail::build<T>(slot, std::forward<Args>(args)...);
	} else {
		guard undo([&] { Calls::free(from, slot); });
		T *object = detail::build<T>(slot, std::forward<Args>(args)...);
		undo.keep();
		return object;
	}
}

template <class Calls, class T, class Handle>
TN_ALWAYS_INLINE void destroy_in(Handle *from, T *object) noexcept {
	if (object == nullptr)
		return;
	std::destroy_at(object);
	Calls::free(from, object);
}

template <class T, class Calls> class typed_slab {
	static_assert(alignof(T) <= TN_ALIGN_MAX, "Tenure aligns up to TN_ALIGN_MAX");

public:
	using handle = typename Calls::handle;
	using options = typename Calls::options;

	/* Destroys an object and gives its slot back: what a unique_ptr from make_unique does at its end,
	 * which must come before the slab's. */
	class deleter {
	public:
		deleter() = default;
		explicit deleter(handle *from) : from_(from) {
		}
		void operator()(T *object) const noexcept {
			detail::destroy_in<Calls>(from_, object);
		}

	private:
		handle *from_ = nullptr;
	};
	using unique = std::unique_ptr<T, deleter>;

	/* throws  std::invalid_argument for options that cannot be met, std::bad_alloc */
	typed_slab() : slab_(or_throw(Calls::create(sizeof(T), alignof(T), nullptr))) {
	}
	explicit typed_slab(const options &o) : slab_(or_throw(Calls::create(sizeof(T), alignof(T), &o))) {
	}
	explicit typed_slab(const char *name) : typed_slab(named<options>(name)) {
	}
	/* Not API: see scope.hpp. */
	explicit typed_slab(adopt<handle> made) noexcept : slab_(made.handle) {
	}
	typed_slab(typed_slab &&other) noexcept : slab_(std::exchange(other.slab_, nullptr)) {
	}
	typed_slab &operator=(typed_slab &&other) noexcept {
		typed_slab taken(std::move(other));
		std::swap(slab_, taken.slab_);
		return *this;
	}
	~typed_slab() {
		Calls::end(slab_);
	}

	/* Builds a T in a slot.
	 *
	 * throws  std::bad_alloc, and what the constructor throws: the slot is free again then */
	template <class... Args> [[nodiscard]] TN_ALWAYS_INLINE T *make(Args &&...args) TN_LIFETIMEBOUND {
		return detail::make_in<Calls, T>(slab_, std::forward<Args>(args)...);
	}
	template <class... Args> [[nodiscard]] unique make_unique(Args &&...args) TN_LIFETIMEBOUND {
		return unique(detail::make_in<Calls, T>(slab_, std::forward<Args>(args)...), deleter(slab_));
	}

	/* Destroys what make built, and frees its slot; nullptr is a no-op. */
	TN_ALWAYS_INLINE void destroy(T *object) noexcept {
		detail::destroy_in<Calls>(slab_, object);
	}

	/* A slot without an object in it, and back.
	 *
	 * throws  std::bad_alloc */
	[[nodiscard]] TN_ALWAYS_INLINE void *alloc() TN_LIFETIMEBOUND {
		return Calls::alloc(slab_);
	}
	TN_ALWAYS_INLINE void free(void *slot) noexcept {
		Calls::free(slab_, slot);
	}

	/* `count` slots, or none.
	 *
	 * throws  std::bad_alloc; none is taken then */
	void alloc_batch(void **slots, std::size_t count) {
		if (!Calls::alloc_batch(slab_, slots, count))
			fail();
	}
	void free_batch(void **slots, std::size_t count) noexcept {
		Calls::free_batch(slab_, slots, count);
	}

	/* Gives back chunks without a live slot; in bytes. */
	std::size_t trim() noexcept {
		return Calls::trim(slab_);
	}
	std::size_t in_use() const noexcept {
		return Calls::in_use(slab_);
	}
	std::size_t slot_size() const noexcept {
		return Calls::slot_size(slab_);
	}
	bool owns(const void *p) const noexcept {
		return Calls::owns(slab_, p);
	}

	/* Calls `visit(T &)` for every live slot; there must be an object in each. `visit` must not call
	 * the slab, and must not throw. */
	template <class Visit> void each(Visit &&visit) {
		auto *call = std::addressof(visit);
		Calls::each(
			slab_,
			[](void *slot, void *at) {
				(**static_cast<decltype(call) *>(at))(*static_cast<T *>(slot));
			},
			&call);
	}

	tn_stats stats() const noexcept {
		tn_stats now;
		Calls::stats(slab_, &now);
		return now;
	}
	bool verify() const noexcept {
		return Calls::verify(slab_);
	}

	/* The C allocator. */
	handle *get() const noexcept TN_LIFETIMEBOUND {
		return slab_;
	}

private:
	handle *slab_;
};

}
}
}
#endif
