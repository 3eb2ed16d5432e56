/* tenure/slab.hpp: objects of one type, freed one by one, on one thread at a time. See slab.h. */
#ifndef TENURE_SLAB_HPP
#define TENURE_SLAB_HPP

#include <tenure/slab.h>

#include "detail/typed_slab.hpp"

namespace tenure {
inline namespace TN_INLINE_NAMESPACE {

/* Begin with `slab_options options{};`: what is zero is the default. */
using slab_options = tn_slab_options;

namespace detail {

struct TN_VISIBLE slab_calls {
	using handle = tn_slab;
	using options = tn_slab_options;

	static constexpr const char *resource_name = "slab_resource", *allocated_name = "slab_allocated";
	static inline tn_slab none{0, 0}; /* a stand-in: has no slot, and is full */

	/* A slot from the magazine; false when that takes more, which `slow` does, or returns nullptr. */
	TN_ALWAYS_INLINE static bool pop(tn_slab *s, void **slot) noexcept {
		return tn_slab_pop(s, slot);
	}
	TN_ALWAYS_INLINE static void *slow(tn_slab *s) noexcept {
		return tn_slab_alloc_slow(s);
	}
	TN_ALWAYS_INLINE static void *alloc(tn_slab *s) {
		void *p;
		return TN_LIKELY(pop(s, &p)) ? p : or_throw(slow(s));
	}
	TN_ALWAYS_INLINE static void free(tn_slab *s, void *p) noexcept {
		tn_slab_free(s, p);
	}
	static constexpr auto create = tn_slab_create;
	static constexpr auto end = tn_slab_destroy;
	static constexpr auto alloc_batch = tn_slab_alloc_batch;
	static constexpr auto free_batch = tn_slab_free_batch;
	static constexpr auto trim = tn_slab_trim;
	static constexpr auto in_use = tn_slab_in_use;
	static constexpr auto slot_size = tn_slab_slot_size;
	static constexpr auto owns = tn_slab_owns;
	static constexpr auto each = tn_slab_each;
	static constexpr auto stats = tn_slab_stats;
	static constexpr auto verify = tn_slab_verify;
};

}

/* A slab of T. Objects that are alive at reset or at its end are forgotten: their destructors do not
 * run. A moved-from slab can be destroyed and assigned to.
 *
 * threads  one at a time */
template <class T> class slab : public detail::typed_slab<T, detail::slab_calls> {
	using base = detail::typed_slab<T, detail::slab_calls>;

public:
	using base::base;

	/* Forgets every object and keeps the chunks. */
	void reset() noexcept {
		tn_slab_reset(base::get());
	}
};

}
}
#endif
