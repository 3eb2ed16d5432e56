/* tenure/scope_resource.hpp: a std::pmr::memory_resource over a scope. */
#ifndef TENURE_SCOPE_RESOURCE_HPP
#define TENURE_SCOPE_RESOURCE_HPP

#include <memory_resource>

#include "scope.hpp"

namespace tenure {
inline namespace TN_INLINE_NAMESPACE {

/* Hands out memory of a scope; `deallocate` does nothing; the scope takes all of it back when it ends
 * or is reset. Containers may be alive at that time if nobody touches them again.
 *
 * threads  as the scope */
class scope_resource final : public std::pmr::memory_resource {
public:
	explicit scope_resource(const scope &s TN_LIFETIMEBOUND) noexcept : scope_(s.get()) {
	}
	explicit scope_resource(tn_scope *s) noexcept : scope_(s) {
	}
	scope_resource(const scope_resource &) = delete;
	scope_resource &operator=(const scope_resource &) = delete;

private:
	void *do_allocate(std::size_t bytes, std::size_t align) override {
		return detail::or_throw(tn_scope_alloc(scope_, bytes, align));
	}
	void do_deallocate(void *, std::size_t, std::size_t) override {
	}
	bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override {
		return this == &other;
	}

	tn_scope *scope_;
};

}
}
#endif
