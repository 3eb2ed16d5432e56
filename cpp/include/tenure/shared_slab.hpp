/* tenure/shared_slab.hpp: objects of one type, made by any thread and destroyed by any thread. See
 * shared_slab.h. */
#ifndef TENURE_SHARED_SLAB_HPP
#define TENURE_SHARED_SLAB_HPP

#include <tenure/shared_slab.h>

#include "detail/typed_slab.hpp"

namespace tenure {
inline namespace TN_INLINE_NAMESPACE {

/* Begin with `shared_slab_options options{};`: a zero is the default. */
using shared_slab_options = tn_shared_slab_options;
using shared_slab_knobs = tn_shared_slab_knobs;

namespace detail {

struct TN_VISIBLE shared_slab_calls {
	TN_SLAB_CALLS(tn_shared_slab)

	static constexpr const char *resource_name = "shared_slab_resource";
	static constexpr const char *allocated_name = "shared_slab_allocated";
	/* The stand-in is never near. */
	static inline stand_in<tn_shared_slab> stands_in{{UINT64_MAX}, {}};
	static constexpr tn_shared_slab &none = stands_in.handle;
};

struct local_calls {
	TN_ALWAYS_INLINE static void *alloc(tn_local *l) {
		return or_throw(tn_shared_slab_local_alloc(l));
	}
	TN_ALWAYS_INLINE static void free(tn_local *l, void *p) noexcept {
		tn_shared_slab_local_free(l, p);
	}
};

}

/* A shared slab of T. Its end forgets live objects without running their destructors. A moved-from
 * shared slab can be destroyed and assigned to.
 *
 * threads  any; moving, destroying, each and verify while no other call is under way */
template <class T> class shared_slab : public detail::typed_slab<T, detail::shared_slab_calls> {
	using base = detail::typed_slab<T, detail::shared_slab_calls>;

public:
	/* A thread's handle: the same verbs without a look-up. Copies stand for the same handle.
	 *
	 * threads  owner only */
	class local_handle {
	public:
		[[nodiscard]] TN_ALWAYS_INLINE void *alloc() const {
			return detail::local_calls::alloc(local_);
		}
		TN_ALWAYS_INLINE void free(void *slot) const noexcept {
			detail::local_calls::free(local_, slot);
		}
		template <class... Args> [[nodiscard]] TN_ALWAYS_INLINE T *make(Args &&...args) const {
			return detail::make_in<detail::local_calls, T>(local_, std::forward<Args>(args)...);
		}
		TN_ALWAYS_INLINE void destroy(T *object) const noexcept {
			detail::destroy_in<detail::local_calls>(local_, object);
		}

	private:
		friend class shared_slab;
		explicit local_handle(tn_local *l) : local_(l) {
		}

		tn_local *local_;
	};

	using base::base;

	/* The calling thread's handle, valid until the thread or the slab ends.
	 *
	 * throws  std::bad_alloc, also in a thread whose thread-local storage is being torn down */
	[[nodiscard]] local_handle local() TN_LIFETIMEBOUND {
		return local_handle(detail::or_throw(tn_shared_slab_local(base::get())));
	}

	/* Gives this thread's free slots to the other threads. */
	void flush() noexcept {
		tn_shared_slab_flush(base::get());
	}

	/* Sets how much the slab keeps for the next calls; a zero is the default. */
	void tune(const shared_slab_knobs &knobs) noexcept {
		tn_shared_slab_tune(base::get(), &knobs);
	}
};

}
}
#endif
