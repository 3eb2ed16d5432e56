/* tenure/pool.hpp: objects that are costly to build and come back used. See pool.h. */
#ifndef TENURE_POOL_HPP
#define TENURE_POOL_HPP

#include <tenure/pool.h>

#include <memory>
#include <type_traits>
#include <utility>

#include "detail/thrown.hpp"

namespace tenure {
inline namespace TN_INLINE_NAMESPACE {

/* Begin with `pool_options options{};`. The callbacks and their ctx are the pool's own: leave them
 * NULL. */
using pool_options = tn_pool_options;

namespace detail {

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

/* What a pool does with its objects. Derive from it and hide what should be otherwise, or specialise
 * it; what it keeps is there for every call. Calls come from any thread, several at a time.
 *
 * build(place)  makes an object; may throw
 * reset(T &)    makes a used one fit for its next user; runs when a lease ends; must not throw
 * size_of(T &)  bytes that an idle object holds beside its own; must not throw */
template <class T> struct pool_traits : detail::plain_pool_traits<T> {};

/* A pool of T. Every object that it built is destroyed at its end; no lease may outlive it. A
 * moved-from pool can be destroyed and assigned to.
 *
 * threads  any; moving and destroying while no other call is under way */
template <class T, class Traits> class pool {
	static_assert(alignof(T) <= TN_ALIGN_MAX, "Tenure aligns up to TN_ALIGN_MAX");

public:
	/* An object that is out, until the lease ends: then it goes back to the pool. Movable; an empty one
	 * holds nothing.
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

		/* The object, while the lease lasts. */
		T &operator*() const noexcept TN_LIFETIMEBOUND {
			return *object_;
		}
		T *operator->() const noexcept TN_LIFETIMEBOUND {
			return object_;
		}
		/* nullptr for an empty one. */
		T *get() const noexcept TN_LIFETIMEBOUND {
			return object_;
		}
		explicit operator bool() const noexcept {
			return object_ != nullptr;
		}

		/* Gives the object back now. */
		void put() noexcept {
			if (object_ != nullptr)
				tn_pool_put(from_, std::exchange(object_, nullptr));
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
		: traits_(std::make_unique<Traits>(std::move(traits))) {
		if (options.init != nullptr || options.reset != nullptr || options.fini != nullptr ||
			options.size_of != nullptr || options.ctx != nullptr) {
			errno = EINVAL;
			detail::fail();
		}
		options.init = build;
		options.reset = own_reset<Traits>::value ? reset : nullptr;
		options.fini = [](void *object, void *) { std::destroy_at(static_cast<T *>(object)); };
		options.size_of = own_size_of<Traits>::value ? size_of : nullptr;
		options.ctx = traits_.get();
		pool_ = detail::or_throw(tn_pool_create(sizeof(T), alignof(T), &options));
	}
	explicit pool(const char *name, Traits traits = {})
		: pool(detail::named<pool_options>(name), std::move(traits)) {
	}
	pool(pool &&other) noexcept
		: traits_(std::move(other.traits_)), pool_(std::exchange(other.pool_, nullptr)) {
	}
	pool &operator=(pool &&other) noexcept {
		pool taken(std::move(other));
		std::swap(traits_, taken.traits_);
		std::swap(pool_, taken.pool_);
		return *this;
	}
	~pool() {
		tn_pool_destroy(pool_);
	}

	/* Takes an object, an idle one before a new one.
	 *
	 * throws  std::bad_alloc, and what `build` throws; nothing is lost then
	 * cost    that of tn_pool_get */
	[[nodiscard]] lease get() TN_LIFETIMEBOUND {
		void *object;
		if (TN_UNLIKELY(!tn_pool_pop(pool_, &object)))
			object = get_slow();
		return lease(pool_, static_cast<T *>(object));
	}

	/* Gives this thread's idle objects to the others. */
	void flush() noexcept {
		tn_pool_flush(pool_);
	}

	/* Destroys what is idle; returns bytes given back. */
	std::size_t trim() noexcept {
		return tn_pool_trim(pool_);
	}

	tn_stats stats() const noexcept {
		tn_stats now;
		tn_pool_stats(pool_, &now);
		return now;
	}

private:
	using plain = detail::plain_pool_traits<T>;
	/* Whether the traits have a function of their own: what they do not change costs no call. One that
	 * has no address, because it is overloaded, is their own. */
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
		return call.or_throw(tn_pool_get_slow(pool_));
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
	tn_pool *pool_ = nullptr;
};

}
}
#endif
