/* tenure/scope_resource.hpp: a std::pmr::memory_resource over a scope. */
#ifndef TENURE_SCOPE_RESOURCE_HPP
#define TENURE_SCOPE_RESOURCE_HPP

#include "detail/resource_base.hpp"
#include "scope.hpp"

namespace tenure {
inline namespace TN_INLINE_NAMESPACE {

/* Hands out memory of a scope; `deallocate` does nothing. The scope takes all of it back when it ends
 * or is reset. Containers may outlive that if the program does not touch them again.
 *
 * threads  as the scope */
class scope_resource final : public detail::resource_base<scope_resource> {
public:
	explicit scope_resource(const scope &s TN_LIFETIMEBOUND) noexcept : scope_(s.get()) {
	}
	explicit scope_resource(tn_scope *s) noexcept : scope_(s) {
	}

private:
	friend class detail::resource_base<scope_resource>;

	void *alloc(std::size_t bytes, std::size_t align) {
		return detail::or_throw(tn_scope_alloc(scope_, bytes, align));
	}
	void free(void *, std::size_t, std::size_t) {
	}

	tn_scope *scope_;
};

}
}
#endif
