/* Not API. The virtual functions of every resource of Tenure. */
#ifndef TENURE_DETAIL_RESOURCE_BASE_HPP
#define TENURE_DETAIL_RESOURCE_BASE_HPP

#include <memory_resource>

#include "config.hpp"

namespace tenure {
inline namespace TN_INLINE_NAMESPACE {
namespace detail {

/* Calls alloc(bytes, align) and free(p, bytes, align) of Self. Containers point to a resource: it can
 * be neither copied nor moved. */
template <class Self> class resource_base : public std::pmr::memory_resource {
public:
	resource_base() = default;
	resource_base(const resource_base &) = delete;
	resource_base &operator=(const resource_base &) = delete;

private:
	void *do_allocate(std::size_t bytes, std::size_t align) final {
		return static_cast<Self *>(this)->alloc(bytes, align);
	}
	void do_deallocate(void *p, std::size_t bytes, std::size_t align) final {
		static_cast<Self *>(this)->free(p, bytes, align);
	}
	bool do_is_equal(const std::pmr::memory_resource &other) const noexcept final {
		return this == &other;
	}
};

}
}
}
#endif
