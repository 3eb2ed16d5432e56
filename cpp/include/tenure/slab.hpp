/* tenure/slab.hpp: objects of one type, freed one by one, on one thread at a time. See slab.h. */
#ifndef TENURE_SLAB_HPP
#define TENURE_SLAB_HPP

#include <tenure/slab.h>

#include "detail/typed_slab.hpp"

namespace tenure {
inline namespace TN_INLINE_NAMESPACE {

/* Begin with `slab_options options{};`: a zero is the default. */
using slab_options = tn_slab_options;

namespace detail {

struct TN_VISIBLE slab_calls {
	TN_SLAB_CALLS(tn_slab)

	static constexpr const char *resource_name = "slab_resource", *allocated_name = "slab_allocated";
	/* Every call is beyond the bounds of the stand-in. */
	static inline void *no_slots[2]{};
	static inline stand_in<tn_slab> stands_in{{no_slots, UINTPTR_MAX, 0}, {}};
	static constexpr tn_slab &none = stands_in.handle;
};

}

/* A slab of T. Reset and the slab's end forget live objects without running their destructors. A
 * moved-from slab can be destroyed and assigned to.
 *
 * threads  one at a time */
template <class T> class slab : public detail::typed_slab<T, detail::slab_calls> {
	using base = detail::typed_slab<T, detail::slab_calls>;

public:
	using base::base;

	/* Takes chunks ahead, so that the next `count` slots need none.
	 *
	 * throws  std::bad_alloc; no chunk is then taken */
	void reserve(std::size_t count) {
		if (!tn_slab_reserve(base::get(), count))
			detail::fail();
	}

	/* Forgets every object and keeps the chunks. */
	void reset() noexcept {
		tn_slab_reset(base::get());
	}
};

}
}
#endif
