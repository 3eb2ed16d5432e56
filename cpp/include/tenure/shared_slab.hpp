/* tenure/shared_slab.hpp: objects of one type, made by any thread and destroyed by any thread. See
 * shared_slab.h. */
#ifndef TENURE_SHARED_SLAB_HPP
#define TENURE_SHARED_SLAB_HPP

#include <tenure/shared_slab.h>

#include "detail/typed_slab.hpp"

namespace tenure {
inline namespace TN_INLINE_NAMESPACE {

/* Begin with `shared_slab_options options{};`: what is zero is the default. */
using shared_slab_options = tn_shared_slab_options;

namespace detail {

struct TN_VISIBLE shared_slab_calls {
	using handle = tn_shared_slab;
	using options = tn_shared_slab_options;

	static constexpr const char *resource_name = "shared_slab_resource";
	static constexpr const char *allocated_name = "shared_slab_allocated";
	static inline tn_shared_slab none{UINT64_MAX}; /* a stand-in: is never near */

	/* A slot from the magazine; false when that takes more, which `slow` does, or returns nullptr. */
	TN_ALWAYS_INLINE static bool pop(tn_shared_slab *s, void **slot) noexcept {
		return tn_shared_slab_pop(s, slot);
	}
	TN_ALWAYS_INLINE static void *slow(tn_shared_slab *s) noexcept {
		return tn_shared_slab_alloc_slow(s);
	}
	TN_ALWAYS_INLINE static void *alloc(tn_shared_slab *s) {
		void *p;
		return TN_LIKELY(pop(s, &p)) ? p : or_throw(slow(s));
	}
	TN_ALWAYS_INLINE static void free(tn_shared_slab *s, void *p) noexcept {
		tn_shared_slab_free(s, p);
	}
	static constexpr auto create = tn_shared_slab_create;
	static constexpr auto end = tn_shared_slab_destroy;
	static constexpr auto alloc_batch = tn_shared_slab_alloc_batch;
	static constexpr auto free_batch = tn_shared_slab_free_batch;
	static constexpr auto trim = tn_shared_slab_trim;
	static constexpr auto in_use = tn_shared_slab_in_use;
	static constexpr auto slot_size = tn_shared_slab_slot_size;
	static constexpr auto owns = tn_shared_slab_owns;
	static constexpr auto each = tn_shared_slab_each;
	static constexpr auto stats = tn_shared_slab_stats;
	static constexpr auto verify = tn_shared_slab_verify;
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

/* A shared slab of T. Objects that are alive at its end are forgotten: their destructors do not run. A
 * moved-from one can be destroyed and assigned to.
 *
 * threads  any; moving, destroying, each and verify while no other call is under way */
template <class T> class shared_slab : public detail::typed_slab<T, detail::shared_slab_calls> {
	using base = detail::typed_slab<T, detail::shared_slab_calls>;

public:
	/* A thread's handle: the same verbs without a look-up. A copy is the same handle.
	 *
	 * threads  owner only */
	class local_handle {
	public:
		template <class... Args> [[nodiscard]] TN_ALWAYS_INLINE T *make(Args &&...args) const {
			return detail::make_in<detail::local_calls, T>(local_, std::forward<Args>(args)...);
		}
		TN_ALWAYS_INLINE void destroy(T *object) const noexcept {
			detail::destroy_in<detail::local_calls>(local_, object);
		}
		[[nodiscard]] TN_ALWAYS_INLINE void *alloc() const {
			return detail::local_calls::alloc(local_);
		}
		TN_ALWAYS_INLINE void free(void *slot) const noexcept {
			detail::local_calls::free(local_, slot);
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

	/* Gives this thread's free slots to the others. */
	void flush() noexcept {
		tn_shared_slab_flush(base::get());
	}
};

}
}
#endif
