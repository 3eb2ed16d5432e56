/* tenure/arena.hpp: objects that die together, with their destructors. See arena.h. */
#ifndef TENURE_ARENA_HPP
#define TENURE_ARENA_HPP

#include <cstdarg>
#include <cstdio>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#include "detail/config.hpp"
#include <tenure/arena.h>

namespace tenure {
inline namespace TN_INLINE_NAMESPACE {

/* Begin with `arena_options options{};`: what is zero is the default. */
using arena_options = tn_arena_options;

namespace detail {

/* What stands before an object, or an array, whose destructors have to run. */
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

/* The elements follow it. */
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

/* The text that `format` makes of `rest`, in memory from `to.alloc`. */
template <class Owner> char *print_into(Owner &to, const char *format, std::va_list rest) {
	std::va_list again;
	va_copy(again, rest);
	guard end([&] { va_end(again); });
	int length = std::vsnprintf(nullptr, 0, format, rest);
	if (length < 0) {
		errno = EINVAL;
		fail();
	}
	std::size_t size = static_cast<std::size_t>(length) + 1;
	char *text = static_cast<char *>(to.alloc(size, 1));
	std::vsnprintf(text, size, format, again);
	return text;
}

TN_ALWAYS_INLINE void *arena_alloc(tn_arena *a, std::size_t size, std::size_t align) {
	void *p;
	return TN_LIKELY(tn_arena_bump(a, size, align, &p)) ? p
	                                                    : or_throw(tn_arena_alloc_slow(a, size, align));
}

}

/* An arena that runs destructors: those of what `make` and `make_array` built run at reset, rewind and
 * destruction, the newest first, and types that need none pay nothing. They must not throw.
 *
 * A moved-from arena can be destroyed and assigned to. What points into an arena moves with it.
 *
 * threads  one at a time */
class arena {
public:
	/* A position, from mark(). Copy it freely. */
	class checkpoint {
		friend class arena;
		tn_checkpoint position;
		detail::cleanup *newest;
	};
	class savepoint;

	/* throws  std::invalid_argument for options that cannot be met, std::bad_alloc */
	arena() : arena_(detail::or_throw(tn_arena_create(nullptr))) {
	}
	explicit arena(const arena_options &options) : arena_(detail::or_throw(tn_arena_create(&options))) {
	}
	explicit arena(const char *name) : arena(detail::named<arena_options>(name)) {
	}
	/* Not API: see scope.hpp. */
	explicit arena(detail::adopt<tn_arena> made) noexcept : arena_(made.handle) {
	}
	arena(arena &&other) noexcept
		: arena_(std::exchange(other.arena_, nullptr)), newest_(std::exchange(other.newest_, nullptr)) {
	}
	arena &operator=(arena &&other) noexcept {
		arena taken(std::move(other));
		std::swap(arena_, taken.arena_);
		std::swap(newest_, taken.newest_);
		return *this;
	}
	~arena() {
		run_cleanups(nullptr);
		tn_arena_destroy(arena_);
	}

	/* Allocates `size` bytes at `align` (a power of two up to TN_ALIGN_MAX; 0 means 16).
	 *
	 * throws  std::invalid_argument for a bad alignment, std::bad_alloc
	 * cost    that of tn_arena_alloc */
	[[nodiscard]] TN_ALWAYS_INLINE void *alloc(
		std::size_t size, std::size_t align = 0) TN_LIFETIMEBOUND {
		return detail::arena_alloc(arena_, size, align);
	}

	/* Builds a T from its constructor's arguments, or (in braces) an aggregate from its members.
	 *
	 * throws  std::bad_alloc, and what the constructor throws; then the object's memory is all but 16
	 *         bytes there for the next block
	 * cost    that of tn_arena_alloc, and two stores more where T has a destructor to run */
	template <class T, class... Args> TN_ALWAYS_INLINE T *make(Args &&...args) TN_LIFETIMEBOUND {
		static_assert(alignof(T) <= TN_ALIGN_MAX, "an arena aligns up to TN_ALIGN_MAX");
		if constexpr (std::is_trivially_destructible_v<T>) {
			return construct<T>(alloc(sizeof(T), alignof(T)), sizeof(T), std::forward<Args>(args)...);
		} else {
			using head = detail::object_cleanup<T>;
			auto *h = static_cast<head *>(alloc(sizeof(head), alignof(head)));
			T *object = construct<T>(h, h->bytes, sizeof(head), std::forward<Args>(args)...);
			link(h, head::destroy);
			return object;
		}
	}

	/* Builds `count` value-initialised T (zeros, where T has no constructor).
	 *
	 * throws  std::bad_array_new_length for a product that cannot be, std::bad_alloc, and what a
	 *         constructor throws: then the elements before it are destroyed */
	template <class T> T *make_array(std::size_t count) TN_LIFETIMEBOUND {
		static_assert(alignof(T) <= TN_ALIGN_MAX, "an arena aligns up to TN_ALIGN_MAX");
		std::size_t bytes = detail::bytes_of<T>(count);
		if constexpr (std::is_trivially_destructible_v<T>) {
			void *p = alloc(bytes, alignof(T));
			return fill(p, bytes, static_cast<std::remove_cv_t<T> *>(p), count);
		} else {
			using head = detail::array_cleanup<T>;
			/* Cannot wrap: bytes are at most PTRDIFF_MAX. No element, too, has its own address. */
			std::size_t whole = sizeof(head) + (bytes == 0 ? 1 : bytes);
			auto *h = static_cast<head *>(alloc(whole, alignof(head)));
			fill(h, whole, const_cast<std::remove_cv_t<T> *>(h->elements()), count);
			h->count = count;
			link(h, head::destroy);
			return h->elements();
		}
	}

	/* Grows or shrinks a block from alloc, copy or printf where it is; whether it could. */
	bool resize(void *p, std::size_t old_size, std::size_t new_size) noexcept {
		return tn_arena_resize(arena_, p, old_size, new_size);
	}

	/* The same, by moving the block where it has to.
	 *
	 * throws  as alloc; the block is unchanged then */
	[[nodiscard]] void *realloc(
		void *p, std::size_t old_size, std::size_t new_size, std::size_t align = 0) TN_LIFETIMEBOUND {
		return detail::or_throw(tn_arena_realloc(arena_, p, old_size, new_size, align));
	}

	/* Copies bytes, or text, into the arena, at alignment 1. */
	void *copy(const void *p, std::size_t size) TN_LIFETIMEBOUND {
		return detail::or_throw(tn_arena_copy(arena_, p, size));
	}
	std::string_view copy(std::string_view text) TN_LIFETIMEBOUND {
		return {static_cast<char *>(copy(text.data(), text.size())), text.size()};
	}

	/* Prints into the arena; the text ends with NUL.
	 *
	 * throws  std::invalid_argument when the format cannot be printed, std::bad_alloc */
#if defined(__GNUC__)
	[[gnu::format(printf, 2, 3)]]
#endif
	char *printf(const char *format, ...) TN_LIFETIMEBOUND {
		std::va_list rest;
		va_start(rest, format);
		detail::guard end([&] { va_end(rest); });
		return detail::print_into(*this, format, rest);
	}

	/* Remembers the current position; valid until a reset or a rewind to an earlier one. */
	[[nodiscard]] checkpoint mark() {
		checkpoint now;
		now.position = tn_arena_mark(arena_);
		now.newest = newest_;
		return now;
	}

	/* Destroys and forgets what is younger than the mark. The checkpoint stays valid. */
	void rewind(const checkpoint &to) noexcept {
		run_cleanups(to.newest);
		tn_arena_rewind(arena_, to.position);
	}

	/* Destroys and forgets everything, and keeps warm memory.
	 *
	 * cost  the destructors; without any O(1) when one chunk was enough */
	void reset() noexcept {
		run_cleanups(nullptr);
		tn_arena_reset(arena_);
	}

	/* Gives back the chunks that nothing lives in; in bytes. */
	std::size_t trim() noexcept {
		return tn_arena_trim(arena_);
	}

	/* Whether `p` points into what the arena has handed out and not taken back. */
	bool owns(const void *p) const noexcept {
		return tn_arena_owns(arena_, p);
	}

	tn_stats stats() const noexcept {
		tn_stats now;
		tn_arena_stats(arena_, &now);
		return now;
	}

	/* Walks the invariants; panics at the first one that is broken. */
	bool verify() const noexcept {
		return tn_arena_verify(arena_);
	}

	/* The C arena, for what only allocates: reset and rewind it here, or destructors do not run. */
	tn_arena *get() const noexcept TN_LIFETIMEBOUND {
		return arena_;
	}

private:
	template <class T, class... Args>
	TN_ALWAYS_INLINE T *construct(void *place, std::size_t size, Args &&...args) {
		return construct<T>(place, place, size, std::forward<Args>(args)...);
	}

	/* A T at `place`; `block` of `size` bytes goes back when the constructor throws. */
	template <class T, class... Args>
	TN_ALWAYS_INLINE T *construct(void *block, void *place, std::size_t size, Args &&...args) {
		if constexpr (std::is_nothrow_constructible_v<T, Args...>) {
			return detail::build<T>(place, std::forward<Args>(args)...);
		} else {
			detail::guard undo([&] { tn_arena_resize(arena_, block, size, 0); });
			T *object = detail::build<T>(place, std::forward<Args>(args)...);
			undo.keep();
			return object;
		}
	}

	/* `count` value-initialised T; when one of them throws, those before it go in reverse order, and
	 * the block goes back. */
	template <class T> T *fill(void *block, std::size_t size, T *elements, std::size_t count) {
		std::size_t built = 0;
		detail::guard undo([&] {
			detail::destroy_reversed(elements, built);
			tn_arena_resize(arena_, block, size, 0);
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

	/* What a destructor builds meanwhile is destroyed as well. The end of the list ends it where a
	 * checkpoint is stale, which the C library then says. */
	TN_ALWAYS_INLINE void run_cleanups(const detail::cleanup *until) noexcept {
		while (newest_ != until && newest_ != nullptr) {
			detail::cleanup *c = newest_;
			newest_ = c->next;
			c->run(c);
		}
	}

	tn_arena *arena_;
	detail::cleanup *newest_ = nullptr;
};

/* Rewinds to where it was made when it goes out of scope. The arena must stay where it is, and must not
 * be reset meanwhile.
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
