/* tenure/scope.hpp: lifetimes that nest. See scope.h. */
#ifndef TENURE_SCOPE_HPP
#define TENURE_SCOPE_HPP

#include <cstdio>
#include <memory>
#include <type_traits>
#include <utility>

#include "arena.hpp"
#include "heap.hpp"
#include "slab.hpp"
#include <tenure/scope.h>

namespace tenure {
inline namespace TN_INLINE_NAMESPACE {

/* Begin with `scope_options options{};`: a zero is the default. */
using scope_options = tn_scope_options;
using scope_limits = tn_scope_limits;

namespace detail {

struct scope_calls {
	TN_CALLS(tn_scope);
	static constexpr auto copy = tn_scope_copy;

	TN_ALWAYS_INLINE static void *alloc(tn_scope *s, std::size_t size, std::size_t align) {
		void *p;
		return TN_LIKELY(tn_arena_bump(&s->arena, size, align, &p))
		           ? p
		           : or_throw(tn_scope_alloc_slow(s, size, align));
	}
};

/* Destroys the elements of make_array. */
template <class T> struct array_in_scope {
	T *elements;
	std::size_t count;

	~array_in_scope() {
		destroy_reversed(elements, count);
	}
};

}

/* A scope. It ends with this object, or earlier: when a scope above it ends or is reset. This object is
 * then empty, and its own end is a no-op. So an object in a scope may own scopes below that scope.
 *
 * Destructors of `make` and deferred calls are one list: at reset and at the end they run, the newest
 * first, and must not throw. A moved-from scope is empty. An empty scope can be destroyed, assigned to
 * and tested with `bool`.
 *
 * threads  one at a time for a whole tree; below a shared root, any thread may make, adopt and end
 *          children, and each child is for one thread at a time */
class scope : private detail::text_owner<detail::scope_calls> {
public:
	/* Creates a root.
	 *
	 * name    shown in trees, statistics and panics
	 * throws  std::invalid_argument for options that cannot be met, std::bad_alloc */
	explicit scope(const char *name = nullptr, const scope_options &options = {})
		: text_owner(created(nullptr, name, options)) {
	}
	/* Creates a scope below `parent`; it takes its first chunk at once.
	 *
	 * throws  std::invalid_argument also for a parent that is empty or ending */
	scope(scope &parent TN_LIFETIMEBOUND, const char *name, const scope_options &options = {})
		: scope(parent.handle_or_refuse(), name, options) {
	}
	scope(tn_scope *parent, const char *name, const scope_options &options = {})
		: text_owner(created(parent, name, options)) {
		follow();
	}
	scope(scope &&other) noexcept : text_owner(detail::adopt<tn_scope>{nullptr}) {
		swap(other);
	}
	scope &operator=(scope &&other) noexcept {
		scope taken(std::move(other));
		swap(taken);
		return *this;
	}
	~scope() = default;

	/* False when it is empty. */
	explicit operator bool() const noexcept {
		return handle_ != nullptr;
	}

	/* Allocates `size` bytes at `align` (a power of two up to TN_ALIGN_MAX; 0 means 16).
	 *
	 * throws  std::invalid_argument for a bad alignment, std::bad_alloc, also at a limit
	 * cost    that of tn_scope_alloc */
	[[nodiscard]] TN_ALWAYS_INLINE void *alloc(
		std::size_t size, std::size_t align = 0) TN_LIFETIMEBOUND {
		return detail::scope_calls::alloc(handle_, size, align);
	}

	/* Builds a T from its constructor's arguments, or (in braces) an aggregate from its members.
	 *
	 * throws  std::bad_alloc, and the constructor's exceptions: its memory then stays until reset
	 * cost    that of tn_scope_alloc, and of tn_scope_defer if T has a destructor to run */
	template <class T, class... Args> TN_ALWAYS_INLINE T *make(Args &&...args) TN_LIFETIMEBOUND {
		static_assert(alignof(T) <= TN_ALIGN_MAX, "tenure: alignof(T) must be at most TN_ALIGN_MAX");
		T *object = detail::build<T>(alloc(sizeof(T), alignof(T)), std::forward<Args>(args)...);
		if constexpr (!std::is_trivially_destructible_v<T>) {
			detail::guard undo([&] { std::destroy_at(object); });
			defer(destroy<T>, const_cast<std::remove_cv_t<T> *>(object));
			undo.keep();
		}
		return object;
	}

	/* Builds `count` value-initialised T (zeros, if T has no constructor).
	 *
	 * throws  std::bad_array_new_length for a product that is too large, std::bad_alloc, and a
	 *         constructor's exceptions: the elements before it are then destroyed */
	template <class T> T *make_array(std::size_t count) TN_LIFETIMEBOUND {
		static_assert(alignof(T) <= TN_ALIGN_MAX, "tenure: alignof(T) must be at most TN_ALIGN_MAX");
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

	/* Ends everything below and in it, and keeps warm memory.
	 *
	 * throws  std::bad_alloc in debug, which takes new memory after each reset, when there is none for
	 *         a scope with a parent; the scope has then ended */
	void reset() {
		tn_scope *s = handle_;
		bool follows = anchor_ != nullptr;
		tn_scope_reset(s);
		/* In one of its own deferred calls the scope is already ending, and nothing has happened. */
		if (follows && anchor_ != nullptr)
			return;
		handle_ = s;
		if (follows)
			follow();
	}

	/* std::size_t trim(): gives back the chunks without a live block; returns bytes. */
	using owner::trim;

	/* void *copy(const void *p, std::size_t size), std::string_view copy(std::string_view text): copies
	 * bytes or text into the scope, at alignment 1.
	 *
	 * throws  std::bad_alloc, also at a limit */
	using text_owner::copy;

	/* char *printf(const char *format, ...): prints into the scope; the text ends with NUL.
	 *
	 * throws  std::invalid_argument if the format cannot be printed, std::bad_alloc */
	using text_owner::printf;

	/* Makes an allocator that ends when the scope ends or is reset, and whose chunks count against the
	 * scope's limits. Destructors in the arena then run; those in a slab or a heap do not. The options'
	 * `source` must be nullptr.
	 *
	 * throws  as their constructors */
	tenure::arena &arena(const arena_options &options = {}) TN_LIFETIMEBOUND {
		return *make<tenure::arena>(
			detail::adopt<tn_arena>{detail::or_throw(tn_scope_arena(handle_, &options))});
	}
	template <class T> tenure::slab<T> &slab(const slab_options &options = {}) TN_LIFETIMEBOUND {
		return *place<tenure::slab<T>>(tn_scope_slab(handle_, sizeof(T), alignof(T), &options));
	}
	tenure::heap &heap(const heap_options &options = {}) TN_LIFETIMEBOUND {
		return *place<tenure::heap>(tn_scope_heap(handle_, &options));
	}

	/* bool owns(const void *p): whether `p` points into a block of alloc, copy, printf or make that was
	 * not taken back. */
	using owner::owns;

	/* Calls `visit(tn_scope *)` for every child, newest first. `visit` must not change a tree, take
	 * a snapshot or throw. */
	template <class Visit> void each(Visit &&visit) {
		auto call = [&](tn_scope *child) { visit(child); };
		tn_scope_each(
			handle_, [](tn_scope *child, void *at) { (*static_cast<decltype(call) *>(at))(child); },
			&call);
	}

	/* The scope above; nullptr for a root. */
	tn_scope *parent() const noexcept {
		return tn_scope_parent(handle_);
	}

	/* Calls fn(arg) once, when the scope ends or is reset.
	 *
	 * throws  std::invalid_argument when fn is nullptr or the scope is ending, std::bad_alloc */
	void defer(void (*fn)(void *arg), void *arg) {
		if (!tn_scope_defer(handle_, fn, arg))
			detail::fail("tenure: scope::defer: fn is nullptr, or the scope is ending");
	}
	/* The same with a callable object, which is moved into the scope; the call must not throw.
	 *
	 * returns  its address in the scope, for undefer */
	template <class Call> std::decay_t<Call> *defer(Call &&call) {
		using placed = std::decay_t<Call>;
		static_assert(
			alignof(placed) <= TN_ALIGN_MAX, "tenure: alignof(Call) must be at most TN_ALIGN_MAX");
		auto *kept = ::new (alloc(sizeof(placed), alignof(placed))) placed(std::forward<Call>(call));
		detail::guard undo([&] { std::destroy_at(kept); });
		defer(run<placed>, kept);
		undo.keep();
		return kept;
	}

	/* Takes back the newest deferred call of fn with arg, or the object that defer returned; false if
	 * there is none. */
	bool undefer(void (*fn)(void *arg), void *arg) noexcept {
		return tn_scope_undefer(handle_, fn, arg);
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
		if (!tn_scope_adopt(child.handle_or_refuse(), handle_))
			detail::fail(
				"tenure: scope::adopt: the child must not be a root, above this scope, or ending, "
				"and below another root neither may have a source of its own");
	}

	/* Limits the bytes that the scope and everything below it may hold; `{}` removes the limits.
	 *
	 * on_soft  must not throw
	 * throws   std::bad_alloc when more than hard_bytes is held already, std::invalid_argument for
	 *          limits that contradict each other */
	void limit(const scope_limits &limits) {
		if (!tn_scope_limit(handle_, &limits))
			detail::fail(
				"tenure: scope::limit: soft_bytes needs on_soft, and must not be above hard_bytes");
	}

	/* Sets the bytes, in all, that other libraries hold for the scope.
	 *
	 * throws  std::bad_alloc at a limit; the figure is then unchanged */
	void external(std::size_t bytes) {
		if (!tn_scope_external(handle_, bytes))
			detail::fail();
	}

	/* The figures of the scope with the allocators that it owns, and of those with all scopes below. */
	tn_stats stats() const noexcept {
		tn_stats own;
		tn_scope_stats(handle_, &own, nullptr);
		return own;
	}
	tn_stats subtree_stats() const noexcept {
		tn_stats subtree;
		tn_scope_stats(handle_, nullptr, &subtree);
		return subtree;
	}

	/* Prints the scope and everything below it as an indented tree. */
	void print(std::FILE *out) const noexcept {
		tn_scope_print(handle_, out);
	}

	/* bool verify(): walks the invariants; panics at the first broken one. */
	using owner::verify;

	/* tn_scope *get(): the C scope. The C calls may reset or destroy it; below another scope, this
	 * object is then empty. */
	using owner::get;

private:
	/* The record in a scope that can end with a scope above it: the object to empty at its end. */
	struct anchor {
		scope *object;
	};

	static detail::adopt<tn_scope> created(
		tn_scope *parent, const char *name, const scope_options &options) {
		return {detail::or_throw(tn_scope_create(parent, name, &options))};
	}

	tn_scope *handle_or_refuse() const {
		if (handle_ == nullptr)
			detail::refuse(
				"tenure: scope: the parent or child is empty: it has ended or was moved from");
		return handle_;
	}

	template <class T> static void destroy(void *object) noexcept {
		std::destroy_at(static_cast<T *>(object));
	}
	template <class Call> static void run(void *kept) noexcept {
		Call *call = static_cast<Call *>(kept);
		(*call)();
		std::destroy_at(call);
	}

	/* Defers the emptying of this object, before any other deferred call: it runs last, and the others
	 * still find the scope. */
	void follow() {
		detail::guard undo([&] { tn_scope_destroy(std::exchange(handle_, nullptr)); });
		anchor *a = ::new (alloc(sizeof(anchor), alignof(anchor))) anchor{this};
		defer(
			[](void *at) {
				scope *object = static_cast<anchor *>(at)->object;
				object->handle_ = nullptr;
				object->anchor_ = nullptr;
			},
			a);
		anchor_ = a;
		undo.keep();
	}

	void swap(scope &other) noexcept {
		std::swap(handle_, other.handle_);
		std::swap(anchor_, other.anchor_);
		for (scope *s : {this, &other})
			if (s->anchor_ != nullptr)
				s->anchor_->object = s;
	}

	/* Puts the allocator's object into the scope. Its destructor need not run: the scope ends the
	 * allocator. */
	template <class Allocator, class Handle> Allocator *place(Handle *made) {
		Allocator held(detail::adopt<Handle>{detail::or_throw(made)});
		return ::new (alloc(sizeof(Allocator), alignof(Allocator))) Allocator(std::move(held));
	}

	anchor *anchor_ = nullptr;
};

}
}
#endif
