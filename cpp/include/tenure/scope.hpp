/* tenure/scope.hpp: lifetimes that nest. See scope.h. */
#ifndef TENURE_SCOPE_HPP
#define TENURE_SCOPE_HPP

#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#include "arena.hpp"
#include "heap.hpp"
#include "slab.hpp"
#include <tenure/scope.h>

namespace tenure {
inline namespace TN_INLINE_NAMESPACE {

/* Begin with `scope_options options{};`: what is zero is the default. */
using scope_options = tn_scope_options;
using scope_limits = tn_scope_limits;

namespace detail {

/* What has the elements of make_array destroyed. */
template <class T> struct array_in_scope {
	T *elements;
	std::size_t count;

	~array_in_scope() {
		destroy_reversed(elements, count);
	}
};

}

/* A scope that ends with this object, or before it: with a scope above, when that ends or is reset.
 * This object is empty then, and its end a no-op; so what a scope owns may own scopes below it.
 *
 * Destructors of what `make` built and deferred calls are one list: at reset and at the end they run,
 * the newest first, and must not throw. A moved-from scope is empty; an empty one can be destroyed,
 * assigned to and asked whether it is.
 *
 * threads  one at a time for a whole tree; below a shared root any for what makes, adopts and ends
 *          children, and each child is for one at a time */
class scope {
public:
	/* A root.
	 *
	 * name    shown in trees, statistics and panics
	 * throws  std::invalid_argument for options that cannot be met, std::bad_alloc */
	explicit scope(const char *name = nullptr, const scope_options &options = {})
		: scope_(detail::or_throw(tn_scope_create(nullptr, name, &options))) {
	}
	/* Below another one, where it takes its first chunk at once.
	 *
	 * throws  std::invalid_argument also for a parent that is empty or ending */
	scope(scope &parent TN_LIFETIMEBOUND, const char *name, const scope_options &options = {})
		: scope(parent.there(), name, options) {
	}
	scope(tn_scope *parent, const char *name, const scope_options &options = {})
		: scope_(detail::or_throw(tn_scope_create(parent, name, &options))) {
		follow();
	}
	scope(scope &&other) noexcept {
		swap(other);
	}
	scope &operator=(scope &&other) noexcept {
		scope taken(std::move(other));
		swap(taken);
		return *this;
	}
	~scope() {
		tn_scope_destroy(scope_);
	}

	/* False when it is empty. */
	explicit operator bool() const noexcept {
		return scope_ != nullptr;
	}

	/* Allocates `size` bytes at `align` (a power of two up to TN_ALIGN_MAX; 0 means 16).
	 *
	 * throws  std::invalid_argument for a bad alignment, std::bad_alloc, also at a limit
	 * cost    that of tn_scope_alloc */
	[[nodiscard]] TN_ALWAYS_INLINE void *alloc(
		std::size_t size, std::size_t align = 0) TN_LIFETIMEBOUND {
		void *p;
		return TN_LIKELY(tn_arena_bump(&scope_->arena, size, align, &p))
		           ? p
		           : detail::or_throw(tn_scope_alloc_slow(scope_, size, align));
	}

	/* Builds a T from its constructor's arguments, or (in braces) an aggregate from its members.
	 *
	 * throws  std::bad_alloc, and what the constructor throws; its memory stays until reset then
	 * cost    that of tn_scope_alloc, and of tn_scope_defer where T has a destructor to run */
	template <class T, class... Args> TN_ALWAYS_INLINE T *make(Args &&...args) TN_LIFETIMEBOUND {
		static_assert(alignof(T) <= TN_ALIGN_MAX, "a scope aligns up to TN_ALIGN_MAX");
		T *object = detail::build<T>(alloc(sizeof(T), alignof(T)), std::forward<Args>(args)...);
		if constexpr (!std::is_trivially_destructible_v<T>) {
			detail::guard undo([&] { std::destroy_at(object); });
			defer(destroy<T>, const_cast<std::remove_cv_t<T> *>(object));
			undo.keep();
		}
		return object;
	}

	/* Builds `count` value-initialised T (zeros, where T has no constructor).
	 *
	 * throws  std::bad_array_new_length for a product that cannot be, std::bad_alloc, and what a
	 *         constructor throws: then the elements before it are destroyed */
	template <class T> T *make_array(std::size_t count) TN_LIFETIMEBOUND {
		static_assert(alignof(T) <= TN_ALIGN_MAX, "a scope aligns up to TN_ALIGN_MAX");
		T *elements = static_cast<T *>(alloc(detail::bytes_of<T>(count), alignof(T)));
		std::uninitialized_value_construct_n(elements, count);
		if constexpr (!std::is_trivially_destructible_v<T>) {
			detail::guard undo([&] { detail::destroy_reversed(elements, count); });
			using array = detail::array_in_scope<T>;
			defer(destroy<array>, ::new (alloc(sizeof(array), alignof(array))) array{elements, count});
			undo.keep();
		}
		return elements;
	}

	/* Copies bytes, or text, into the scope, at alignment 1. */
	void *copy(const void *p, std::size_t size) TN_LIFETIMEBOUND {
		return detail::or_throw(tn_scope_copy(scope_, p, size));
	}
	std::string_view copy(std::string_view text) TN_LIFETIMEBOUND {
		return {static_cast<char *>(copy(text.data(), text.size())), text.size()};
	}

	/* Prints into the scope; the text ends with NUL.
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

	/* Ends everything below and in it, and keeps warm memory.
	 *
	 * throws  std::bad_alloc in debug, which has new memory after each reset, when there is none for a
	 *         scope with a parent; it has ended then */
	void reset() {
		tn_scope *s = scope_;
		bool follows = anchor_ != nullptr;
		tn_scope_reset(s);
		/* In a deferred call of its own it is ending already, and nothing has happened. */
		if (follows && anchor_ != nullptr)
			return;
		scope_ = s;
		if (follows)
			follow();
	}

	/* Gives back the chunks that nothing lives in; in bytes. */
	std::size_t trim() noexcept {
		return tn_scope_trim(scope_);
	}

	/* Has fn(arg) called when the scope ends or is reset, once.
	 *
	 * throws  std::invalid_argument when fn is nullptr or the scope is ending, std::bad_alloc */
	void defer(void (*fn)(void *arg), void *arg) {
		if (!tn_scope_defer(scope_, fn, arg))
			detail::fail();
	}
	/* The same with anything that can be called and moved; it lies in the scope, and must not throw.
	 *
	 * returns  where it lies, for undefer */
	template <class Call> std::decay_t<Call> *defer(Call &&call) {
		using placed = std::decay_t<Call>;
		static_assert(alignof(placed) <= TN_ALIGN_MAX, "a scope aligns up to TN_ALIGN_MAX");
		auto *kept = ::new (alloc(sizeof(placed), alignof(placed))) placed(std::forward<Call>(call));
		detail::guard undo([&] { std::destroy_at(kept); });
		defer(run<placed>, kept);
		undo.keep();
		return kept;
	}

	/* Takes the newest deferred call of fn with arg back, or what defer returned; whether there was. */
	bool undefer(void (*fn)(void *arg), void *arg) noexcept {
		return tn_scope_undefer(scope_, fn, arg);
	}
	template <class Call> bool undefer(Call *kept) noexcept {
		if (!undefer(run<Call>, kept))
			return false;
		std::destroy_at(kept);
		return true;
	}

	/* Moves `child`, with everything below it, below this scope, whose limits count it from then on.
	 *
	 * throws  std::invalid_argument for a root, an ancestor of this scope and the like,
	 *         std::bad_alloc when it would exceed a limit; nothing is moved then */
	void adopt(scope &child) {
		if (!tn_scope_adopt(child.there(), scope_))
			detail::fail();
	}

	/* Allocators that end when the scope ends or is reset, and whose chunks count against its limits;
	 * of an arena the destructors run then, those in a slab or a heap do not. `source` must be nullptr.
	 *
	 * throws  as their constructors */
	tenure::arena &arena(const arena_options &options = {}) TN_LIFETIMEBOUND {
		return *make<tenure::arena>(
			detail::adopt<tn_arena>{detail::or_throw(tn_scope_arena(scope_, &options))});
	}
	template <class T> tenure::slab<T> &slab(const slab_options &options = {}) TN_LIFETIMEBOUND {
		return *place<tenure::slab<T>>(tn_scope_slab(scope_, sizeof(T), alignof(T), &options));
	}
	tenure::heap &heap(const heap_options &options = {}) TN_LIFETIMEBOUND {
		return *place<tenure::heap>(tn_scope_heap(scope_, &options));
	}

	/* Sets the limits of what it and everything below it may hold; `{}` for none.
	 *
	 * on_soft  must not throw
	 * throws   std::bad_alloc when more than hard_bytes is held already, std::invalid_argument for
	 *          limits that cannot be */
	void limit(const scope_limits &limits) {
		if (!tn_scope_limit(scope_, &limits))
			detail::fail();
	}

	/* Says how many bytes, in all, other libraries hold on its behalf.
	 *
	 * throws  std::bad_alloc at a limit; what was said before still holds */
	void external(std::size_t bytes) {
		if (!tn_scope_external(scope_, bytes))
			detail::fail();
	}

	/* The scope above; nullptr for a root. */
	tn_scope *parent() const noexcept {
		return tn_scope_parent(scope_);
	}
	/* Whether `p` points into what alloc, copy, printf or make handed out and was not taken back. */
	bool owns(const void *p) const noexcept {
		return tn_scope_owns(scope_, p);
	}

	/* Calls `visit(tn_scope *)` for every child, newest first. `visit` must not change a tree, take
	 * a snapshot or throw. */
	template <class Visit> void each(Visit &&visit) {
		auto *call = std::addressof(visit);
		tn_scope_each(
			scope_, [](tn_scope *child, void *at) { (**static_cast<decltype(call) *>(at))(child); },
			&call);
	}

	/* Of it with the allocators that it owns; of that with all scopes below. */
	tn_stats stats() const noexcept {
		tn_stats own;
		tn_scope_stats(scope_, &own, nullptr);
		return own;
	}
	tn_stats subtree_stats() const noexcept {
		tn_stats subtree;
		tn_scope_stats(scope_, nullptr, &subtree);
		return subtree;
	}

	/* Prints it and what is below it as an indented tree. */
	void print(std::FILE *out) const noexcept {
		tn_scope_print(scope_, out);
	}

	/* Walks the invariants; panics at the first one that is broken. */
	bool verify() const noexcept {
		return tn_scope_verify(scope_);
	}

	/* The C scope. Reset and destroy it here: below another one it ends for this object with either. */
	tn_scope *get() const noexcept TN_LIFETIMEBOUND {
		return scope_;
	}

private:
	tn_scope *there() const {
		if (scope_ == nullptr) {
			errno = EINVAL;
			detail::fail();
		}
		return scope_;
	}

	/* Lies in a scope that can end with one above it, and says whose it is. */
	struct anchor {
		scope *owner;
	};

	template <class T> static void destroy(void *object) noexcept {
		std::destroy_at(static_cast<T *>(object));
	}
	template <class Call> static void run(void *kept) noexcept {
		Call *call = static_cast<Call *>(kept);
		(*call)();
		std::destroy_at(call);
	}

	/* The oldest deferred call, so that the others find the scope still here. */
	void follow() {
		detail::guard undo([&] { tn_scope_destroy(std::exchange(scope_, nullptr)); });
		anchor *a = ::new (alloc(sizeof(anchor), alignof(anchor))) anchor{this};
		defer(
			[](void *at) {
				scope *owner = static_cast<anchor *>(at)->owner;
				owner->scope_ = nullptr;
				owner->anchor_ = nullptr;
			},
			a);
		anchor_ = a;
		undo.keep();
	}

	void swap(scope &other) noexcept {
		std::swap(scope_, other.scope_);
		std::swap(anchor_, other.anchor_);
		for (scope *s : {this, &other})
			if (s->anchor_ != nullptr)
				s->anchor_->owner = s;
	}

	/* The allocator's object, whose destructor has nothing to do that the scope does not. */
	template <class Allocator, class Handle> Allocator *place(Handle *made) {
		Allocator held(detail::adopt<Handle>{detail::or_throw(made)});
		return ::new (alloc(sizeof(Allocator), alignof(Allocator))) Allocator(std::move(held));
	}

	tn_scope *scope_ = nullptr;
	anchor *anchor_ = nullptr;
};

}
}
#endif
