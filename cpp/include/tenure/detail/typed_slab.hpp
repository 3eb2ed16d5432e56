/* Not API. The common part of slab and shared_slab: objects of one type in slots. `Calls` names the
 * functions of the C library. */
#ifndef TENURE_DETAIL_TYPED_SLAB_HPP
#define TENURE_DETAIL_TYPED_SLAB_HPP

#include <memory>
#include <type_traits>
#include <utility>

#include "front.hpp"
#include "owner.hpp"

/* The functions of tn_slab or tn_shared_slab, as members of a struct. */
#define TN_SLAB_CALLS(thing)                                                                           \
	TN_CALLS(thing);                                                                                   \
	static constexpr auto alloc_batch = thing##_alloc_batch;                                           \
	static constexpr auto free_batch = thing##_free_batch;                                             \
	static constexpr auto in_use = thing##_in_use;                                                     \
	static constexpr auto slot_size = thing##_slot_size;                                               \
	static constexpr auto each = thing##_each;                                                         \
                                                                                                       \
	/* Takes a slot from the magazine; false when `slow` has to find one, which may return nullptr. */ \
	TN_ALWAYS_INLINE static bool pop(thing *s, void **slot) noexcept {                                 \
		return thing##_pop(s, slot);                                                                   \
	}                                                                                                  \
	TN_ALWAYS_INLINE static void *slow(thing *s) noexcept {                                            \
		return thing##_alloc_slow(s);                                                                  \
	}                                                                                                  \
	TN_ALWAYS_INLINE static void *alloc(thing *s) {                                                    \
		void *p;                                                                                       \
		return TN_LIKELY(pop(s, &p)) ? p : or_throw(slow(s));                                          \
	}                                                                                                  \
	TN_ALWAYS_INLINE static void free(thing *s, void *p) noexcept {                                    \
		thing##_free(s, p);                                                                            \
	}

namespace tenure {
inline namespace TN_INLINE_NAMESPACE {
namespace detail {

/* A slab that is none: calls that are checked find behind its handle that it is not live. */
template <class Handle> struct alignas(TN_STAND_IN_ALIGN) stand_in {
	Handle handle;
	unsigned char behind[TN_STAND_IN_BYTES];
};

/* Builds a T in a slot of `from`; when the constructor throws, the slot goes back. */
template <class Calls, class T, class Handle, class... Args>
TN_ALWAYS_INLINE T *make_in(Handle *from, Args &&...args) {
	void *slot = Calls::alloc(from);
	return build_or_undo<T>(slot, [=] { Calls::free(from, slot); }, std::forward<Args>(args)...);
}

template <class Calls, class T, class Handle>
TN_ALWAYS_INLINE void destroy_in(Handle *from, T *object) noexcept {
	if (object == nullptr)
		return;
	std::destroy_at(object);
	Calls::free(from, object);
}

template <class T, class Calls> struct calls_for : Calls {
	static typename Calls::handle *create(const typename Calls::options *given) {
		return Calls::create(sizeof(T), alignof(T), given);
	}
};

template <class T, class Calls> class typed_slab : private owner<calls_for<T, Calls>> {
	static_assert(alignof(T) <= TN_ALIGN_MAX, "tenure: alignof(T) must be at most TN_ALIGN_MAX");
	using base = detail::owner<calls_for<T, Calls>>;

public:
	using handle = typename Calls::handle;
	using options = typename Calls::options;

	/* Destroys an object and gives its slot back: the deleter of a unique_ptr from make_unique, which
	 * must end before the slab. */
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

	/* From nothing, `const options &` or `const char *name`.
	 *
	 * throws  std::invalid_argument for options that cannot be met, std::bad_alloc */
	using base::base;

	/* Allocates a slot without an object in it, and gives it back.
	 *
	 * throws  std::bad_alloc */
	[[nodiscard]] TN_ALWAYS_INLINE void *alloc() TN_LIFETIMEBOUND {
		return Calls::alloc(get());
	}
	TN_ALWAYS_INLINE void free(void *slot) noexcept {
		Calls::free(get(), slot);
	}

	/* Allocates `count` slots, or none, and gives them back.
	 *
	 * throws  std::bad_alloc; no slot is then allocated */
	void alloc_batch(void **slots, std::size_t count) {
		if (!Calls::alloc_batch(get(), slots, count))
			fail();
	}
	void free_batch(void **slots, std::size_t count) noexcept {
		Calls::free_batch(get(), slots, count);
	}

	/* Builds a T in a slot.
	 *
	 * throws  std::bad_alloc, and the constructor's exceptions: the slot is then free again */
	template <class... Args> [[nodiscard]] TN_ALWAYS_INLINE T *make(Args &&...args) TN_LIFETIMEBOUND {
		return detail::make_in<Calls, T>(get(), std::forward<Args>(args)...);
	}
	template <class... Args> [[nodiscard]] unique make_unique(Args &&...args) TN_LIFETIMEBOUND {
		return unique(make(std::forward<Args>(args)...), deleter(get()));
	}

	/* Destroys an object of make and frees its slot; nullptr is a no-op. */
	TN_ALWAYS_INLINE void destroy(T *object) noexcept {
		detail::destroy_in<Calls>(get(), object);
	}

	/* std::size_t trim(): gives back the chunks without a live slot; returns bytes. */
	using base::trim;

	/* bool owns(const void *p): whether `p` points into a slot, live or free. */
	using base::owns;

	/* Calls `visit(T &)` for every live slot; each must have an object in it. `visit` must not call the
	 * slab, and must not throw. */
	template <class Visit> void each(Visit &&visit) {
		auto call = [&](T &object) { visit(object); };
		Calls::each(
			get(),
			[](void *slot, void *at) { (*static_cast<decltype(call) *>(at))(*static_cast<T *>(slot)); },
			&call);
	}

	/* The number of live slots, and the bytes of each. */
	std::size_t in_use() const noexcept {
		return Calls::in_use(get());
	}
	std::size_t slot_size() const noexcept {
		return Calls::slot_size(get());
	}

	/* tn_stats stats(): the figures of this moment. */
	using base::stats;

	/* bool verify(): walks the invariants; panics at the first broken one. */
	using base::verify;

	/* The C allocator. */
	using base::get;
};

}
}
}
#endif
