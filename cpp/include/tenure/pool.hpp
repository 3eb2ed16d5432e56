/* tenure/pool.hpp: objects that are costly to build and come back used. See pool.h. */
#ifndef TENURE_POOL_HPP
#define TENURE_POOL_HPP

#include <tenure/pool.h>

#include <memory>
#include <type_traits>
#include <utility>

#include "detail/owner.hpp"
#include "detail/thrown.hpp"
#include "fwd.hpp"

namespace tenure {
inline namespace TN_INLINE_NAMESPACE {

/* Begin with `pool_options options{};`. The pool sets the callbacks and their ctx: leave them NULL. */
using pool_options = tn_pool_options;

namespace detail {

struct pool_calls {
	using handle = tn_pool;
	using options = tn_pool_options;
	static constexpr auto destroy = tn_pool_destroy;
	static constexpr auto trim = tn_pool_trim;
	static constexpr auto stats = tn_pool_stats;
};

template <class T> struct plain_pool_traits {
	void build(void *place) const {
		::new (place) T();
	}
	void reset(T &) const noexcept {
	}
	std::size_t size_of(const T &) const noexcept {
		return 0;
	}
};

}

/* The functions that build, reset and measure a pool's objects. Derive from it and hide the functions
 * to replace, or specialise it. The pool keeps one traits object for all calls. Calls come from any
 * thread, several at a time.
 *
 * build(place)  makes an object; may throw
 * reset(T &)    prepares a used object for its next user; runs when a lease ends; must not throw
 * size_of(T &)  bytes that an idle object holds beside its own; must not throw */
template <class T> struct pool_traits : detail::plain_pool_traits<T> {};

/* A pool of T. Its end destroys every object that it built; no lease may outlive it. A moved-from pool
 * can be destroyed and assigned to.
 *
 * threads  any; moving and destroying while no other call is under way */
template <class T, class Traits> class pool {
	static_assert(alignof(T) <= TN_ALIGN_MAX, "tenure: alignof(T) must be at most TN_ALIGN_MAX");

public:
	/* Holds an object until the lease ends; the object then goes back to the pool. Movable; an empty
	 * lease holds nothing.
	 *
	 * threads  one at a time; it may end on any thread */
	class lease {
	public:
		lease() = default;
		lease(lease &&other) noexcept
			: from_(other.from_), object_(std::exchange(other.object_, nullptr)) {
		}
		lease &operator=(lease &&other) noexcept {
			lease taken(std::move(other));
			std::swap(from_, taken.from_);
			std::swap(object_, taken.object_);
			return *this;
		}
		~lease() {
			put();
		}

		/* Gives the object back now. */
		void put() noexcept {
			if (object_ != nullptr)
				tn_pool_put(from_, std::exchange(object_, nullptr));
		}

		/* The object, while the lease lasts. */
		T &operator*() const noexcept TN_LIFETIMEBOUND {
			return *object_;
		}
		T *operator->() const noexcept TN_LIFETIMEBOUND {
			return object_;
		}
		/* The object's address; nullptr if the lease is empty. */
		T *get() const noexcept TN_LIFETIMEBOUND {
			return object_;
		}
		explicit operator bool() const noexcept {
			return object_ != nullptr;
		}

	private:
		friend class pool;
		lease(tn_pool *from, T *object) : from_(from), object_(object) {
		}

		tn_pool *from_ = nullptr;
		T *object_ = nullptr;
	};

	/* throws  std::invalid_argument for options with callbacks, std::bad_alloc */
	explicit pool(pool_options options = {}, Traits traits = {})
		: traits_(std::make_unique<Traits>(std::move(traits))), pool_(created(options, traits_.get())) {
	}
	explicit pool(const char *name, Traits traits = {})
		: pool(detail::named<pool_options>(name), std::move(traits)) {
	}
	pool(pool &&other) = default;
	/* The pool that this one owned ends before its traits. */
	pool &operator=(pool &&other) noexcept {
		pool_ = std::move(other.pool_);
		traits_ = std::move(other.traits_);
		return *this;
	}

	/* Takes an object, an idle one before a new one.
	 *
	 * throws  std::bad_alloc, and the exceptions of `build`; nothing is then lost
	 * cost    that of tn_pool_get */
	[[nodiscard]] lease get() TN_LIFETIMEBOUND {
		void *object;
		if (TN_UNLIKELY(!tn_pool_pop(pool_.get(), &object)))
			object = get_slow();
		return lease(pool_.get(), static_cast<T *>(object));
	}

	/* Builds `count` idle objects ahead, for the next gets.
	 *
	 * throws  std::bad_alloc, also when so many may not be idle, and the exceptions of `build`; none of
	 *         them is then there */
	void prefill(std::size_t count) {
		detail::callback_scope call;
		call.or_throw(tn_pool_prefill(pool_.get(), count) ? this : nullptr);
	}

	/* Destroys the idle objects and gives their memory back; in bytes. */
	std::size_t trim() noexcept {
		return pool_.trim();
	}

	/* Gives this thread's idle objects to the other threads. */
	void flush() noexcept {
		tn_pool_flush(pool_.get());
	}

	tn_stats stats() const noexcept {
		return pool_.stats();
	}

private:
	using plain = detail::plain_pool_traits<T>;
	/* Whether the traits replace a function: one that they do not replace costs no call. An overloaded
	 * function, which has no single address, counts as replaced. */
	template <class U, class = void> struct own_reset : std::true_type {};
	template <class U>
	struct own_reset<U, std::void_t<decltype(&U::reset)>>
		: std::bool_constant<!std::is_same_v<decltype(&U::reset), decltype(&plain::reset)>> {};
	template <class U, class = void> struct own_size_of : std::true_type {};
	template <class U>
	struct own_size_of<U, std::void_t<decltype(&U::size_of)>>
		: std::bool_constant<!std::is_same_v<decltype(&U::size_of), decltype(&plain::size_of)>> {};

	TN_NOINLINE void *get_slow() {
		detail::callback_scope call;
		return call.or_throw(tn_pool_get_slow(pool_.get()));
	}

	static detail::adopt<tn_pool> created(pool_options options, Traits *traits) {
		if (options.init != nullptr || options.reset != nullptr || options.fini != nullptr ||
			options.size_of != nullptr || options.ctx != nullptr)
			detail::refuse(
				"tenure: pool: leave the callbacks and ctx of the options NULL, and use Traits");
		options.init = build;
		options.reset = own_reset<Traits>::value ? reset : nullptr;
		options.fini = [](void *object, void *) { std::destroy_at(static_cast<T *>(object)); };
		options.size_of = own_size_of<Traits>::value ? size_of : nullptr;
		options.ctx = traits;
		return {detail::or_throw(tn_pool_create(sizeof(T), alignof(T), &options))};
	}

	static bool build(void *place, void *traits) {
		return detail::callback_scope::run([=] { static_cast<Traits *>(traits)->build(place); });
	}
	static void reset(void *object, void *traits) {
		static_cast<Traits *>(traits)->reset(*static_cast<T *>(object));
	}
	static std::size_t size_of(const void *object, void *traits) {
		return static_cast<Traits *>(traits)->size_of(*static_cast<const T *>(object));
	}

	std::unique_ptr<Traits> traits_;
	detail::owner<detail::pool_calls> pool_;
};

}
}
#endif
