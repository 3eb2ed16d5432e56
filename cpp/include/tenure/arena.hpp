/* tenure/arena.hpp: objects that die together, with their destructors. See arena.h. */
#ifndef TENURE_ARENA_HPP
#define TENURE_ARENA_HPP

#include <memory>
#include <type_traits>
#include <utility>

#include "detail/owner.hpp"
#include <tenure/arena.h>

namespace tenure {
inline namespace TN_INLINE_NAMESPACE {

/* Begin with `arena_options options{};`: a zero is the default. */
using arena_options = tn_arena_options;

namespace detail {

struct arena_calls {
	TN_CALLS(tn_arena);
	static constexpr auto copy = tn_arena_copy;

	TN_ALWAYS_INLINE static void *alloc(tn_arena *a, std::size_t size, std::size_t align) {
		void *p;
		return TN_LIKELY(tn_arena_bump(a, size, align, &p))
		           ? p
		           : or_throw(tn_arena_alloc_slow(a, size, align));
	}
};

/* The record before an object or an array with destructors to run. */
struct cleanup {
	cleanup *next;
	void (*run)(cleanup *) noexcept;
};

template <class T> struct object_cleanup : cleanup {
	alignas(T) unsigned char bytes[sizeof(T)];

	T *object() {
		return std::launder(reinterpret_cast<T *>(bytes));
	}
	static void destroy(cleanup *c) noexcept {
		std::destroy_at(static_cast<object_cleanup *>(c)->object());
	}
};

template <class T> void destroy_reversed(T *elements, std::size_t count) noexcept {
	for (std::size_t i = count; i > 0; i--)
		std::destroy_at(elements + i - 1);
}

/* The elements follow the record. */
template <class T>
struct alignas(alignof(T) < alignof(cleanup) ? alignof(cleanup) : alignof(T)) array_cleanup : cleanup {
	std::size_t count;

	T *elements() {
		return reinterpret_cast<T *>(this + 1);
	}
	static void destroy(cleanup *c) noexcept {
		auto *self = static_cast<array_cleanup *>(c);
		destroy_reversed(self->elements(), self->count);
	}
};

}

/* An arena that runs destructors. Objects of `make` and `make_array` are destroyed at reset, at rewind
 * and at the arena's end, the newest first; their destructors must not throw. A type without a
 * destructor to run pays nothing.
 *
 * A moved-from arena can be destroyed and assigned to. Pointers into an arena stay valid when it moves.
 *
 * threads  one at a time */
class arena : private detail::text_owner<detail::arena_calls> {
public:
	/* A position, from mark(). Copy it freely. */
	class checkpoint {
		friend class arena;
		tn_checkpoint position;
		detail::cleanup *newest;
	};
	class savepoint;

	/* From nothing, `const arena_options &` or `const char *name`.
	 *
	 * throws  std::invalid_argument for options that cannot be met, std::bad_alloc */
	using text_owner::text_owner;
	arena() = default;
	arena(arena &&other) noexcept
		: text_owner(std::move(other)), newest_(std::exchange(other.newest_, nullptr)) {
	}
	arena &operator=(arena &&other) noexcept {
		arena taken(std::move(other));
		std::swap(handle_, taken.handle_);
		std::swap(newest_, taken.newest_);
		return *this;
	}
	~arena() {
		run_cleanups(nullptr);
	}

	/* Allocates `size` bytes at `align` (a power of two up to TN_ALIGN_MAX; 0 means 16).
	 *
	 * throws  std::invalid_argument for a bad alignment, std::bad_alloc
	 * cost    that of tn_arena_alloc */
	[[nodiscard]] TN_ALWAYS_INLINE void *alloc(
		std::size_t size, std::size_t align = 0) TN_LIFETIMEBOUND {
		return detail::arena_calls::alloc(handle_, size, align);
	}

	/* Builds a T from its constructor's arguments, or (in braces) an aggregate from its members.
	 *
	 * throws  std::bad_alloc, and the constructor's exceptions; the next block can then use all but 16
	 *         bytes of the object's memory
	 * cost    that of tn_arena_alloc, and two stores more if T has a destructor to run */
	template <class T, class... Args> TN_ALWAYS_INLINE T *make(Args &&...args) TN_LIFETIMEBOUND {
		static_assert(alignof(T) <= TN_ALIGN_MAX, "tenure: alignof(T) must be at most TN_ALIGN_MAX");
		if constexpr (std::is_trivially_destructible_v<T>) {
			void *p = alloc(sizeof(T), alignof(T));
			return construct<T>(p, p, sizeof(T), std::forward<Args>(args)...);
		} else {
			using head = detail::object_cleanup<T>;
			auto *h = static_cast<head *>(alloc(sizeof(head), alignof(head)));
			T *object = construct<T>(h, h->bytes, sizeof(head), std::forward<Args>(args)...);
			link(h, head::destroy);
			return object;
		}
	}

	/* Builds `count` value-initialised T (zeros, if T has no constructor).
	 *
	 * throws  std::bad_array_new_length for a product that is too large, std::bad_alloc, and a
	 *         constructor's exceptions: the elements before it are then destroyed */
	template <class T> T *make_array(std::size_t count) TN_LIFETIMEBOUND {
		static_assert(alignof(T) <= TN_ALIGN_MAX, "tenure: alignof(T) must be at most TN_ALIGN_MAX");
		std::size_t bytes = detail::bytes_of<T>(count);
		if constexpr (std::is_trivially_destructible_v<T>) {
			void *p = alloc(bytes, alignof(T));
			return fill(p, bytes, static_cast<std::remove_cv_t<T> *>(p), count);
		} else {
			using head = detail::array_cleanup<T>;
			/* Cannot wrap: bytes are at most PTRDIFF_MAX. An empty array has an address of its own. */
			std::size_t whole = sizeof(head) + (bytes == 0 ? 1 : bytes);
			auto *h = static_cast<head *>(alloc(whole, alignof(head)));
			fill(h, whole, const_cast<std::remove_cv_t<T> *>(h->elements()), count);
			h->count = count;
			link(h, head::destroy);
			return h->elements();
		}
	}

	/* Grows or shrinks a block of alloc, copy or printf in place; false if that is impossible. */
	bool resize(void *p, std::size_t old_size, std::size_t new_size) noexcept {
		return tn_arena_resize(handle_, p, old_size, new_size);
	}

	/* Grows or shrinks a block, and moves it if it must.
	 *
	 * throws  as alloc; the block is then unchanged */
	[[nodiscard]] void *realloc(
		void *p, std::size_t old_size, std::size_t new_size, std::size_t align = 0) TN_LIFETIMEBOUND {
		return detail::or_throw(tn_arena_realloc(handle_, p, old_size, new_size, align));
	}

	/* Destroys and forgets everything, and keeps warm memory.
	 *
	 * cost  the destructors; O(1) without any, if one chunk was enough */
	void reset() noexcept {
		run_cleanups(nullptr);
		tn_arena_reset(handle_);
	}

	/* std::size_t trim(): gives back the chunks without a live block; returns bytes. */
	using owner::trim;

	/* Remembers the current position; valid until a reset or a rewind to an earlier one. */
	[[nodiscard]] checkpoint mark() {
		checkpoint now;
		now.position = tn_arena_mark(handle_);
		now.newest = newest_;
		return now;
	}

	/* Destroys and forgets everything younger than the mark. The checkpoint stays valid. */
	void rewind(const checkpoint &to) noexcept {
		run_cleanups(to.newest);
		tn_arena_rewind(handle_, to.position);
	}

	/* void *copy(const void *p, std::size_t size), std::string_view copy(std::string_view text): copies
	 * bytes or text into the arena, at alignment 1.
	 *
	 * throws  std::bad_alloc */
	using text_owner::copy;

	/* char *printf(const char *format, ...): prints into the arena; the text ends with NUL.
	 *
	 * throws  std::invalid_argument if the format cannot be printed, std::bad_alloc */
	using text_owner::printf;

	/* bool owns(const void *p): whether `p` points into a block that the arena has not taken back. */
	using owner::owns;

	/* tn_stats stats(): the figures of this moment. */
	using owner::stats;

	/* bool verify(): walks the invariants; panics at the first broken one. */
	using owner::verify;

	/* tn_arena *get(): the C arena, to allocate from. Reset and rewind the C++ object instead: the C
	 * calls run no destructors. */
	using owner::get;

private:
	/* Builds a T at `place`; the `block` of `size` bytes goes back when the constructor throws. */
	template <class T, class... Args>
	TN_ALWAYS_INLINE T *construct(void *block, void *place, std::size_t size, Args &&...args) {
		auto give_back = [&] { tn_arena_resize(handle_, block, size, 0); };
		return detail::build_or_undo<T>(place, give_back, std::forward<Args>(args)...);
	}

	/* Builds `count` value-initialised T. When one of them throws, those before it are destroyed in
	 * reverse order, and the block goes back. */
	template <class T> T *fill(void *block, std::size_t size, T *elements, std::size_t count) {
		std::size_t built = 0;
		detail::guard undo([&] {
			detail::destroy_reversed(elements, built);
			tn_arena_resize(handle_, block, size, 0);
		});
		for (; built < count; built++)
			::new (static_cast<void *>(elements + built)) T();
		undo.keep();
		return elements;
	}

	TN_ALWAYS_INLINE void link(detail::cleanup *c, void (*run)(detail::cleanup *) noexcept) {
		c->next = newest_;
		c->run = run;
		newest_ = c;
	}

	/* Objects that a destructor builds meanwhile are destroyed as well. A stale checkpoint is not in
	 * the list: the loop stops at its end, and the C library then reports the checkpoint. */
	TN_ALWAYS_INLINE void run_cleanups(const detail::cleanup *until) noexcept {
		while (newest_ != until && newest_ != nullptr) {
			detail::cleanup *c = newest_;
			newest_ = c->next;
			c->run(c);
		}
	}

	detail::cleanup *newest_ = nullptr;
};

/* Rewinds the arena, at the end of its block, to the position at its own construction. The arena must
 * not be moved or reset meanwhile.
 *
 * threads  one at a time, as its arena */
class arena::savepoint {
public:
	explicit savepoint(arena &a TN_LIFETIMEBOUND) : arena_(a), begin_(a.mark()) {
	}
	savepoint(const savepoint &) = delete;
	savepoint &operator=(const savepoint &) = delete;
	~savepoint() {
		arena_.rewind(begin_);
	}

private:
	arena &arena_;
	checkpoint begin_;
};

}
}
#endif
