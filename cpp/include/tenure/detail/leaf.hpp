/* Not API. */
#ifndef TENURE_DETAIL_LEAF_HPP
#define TENURE_DETAIL_LEAF_HPP

#include <tenure/detail/leaf.h>

#include "config.hpp"

namespace tenure {
inline namespace TN_INLINE_NAMESPACE {
namespace detail {

/* Holds the page layer's lock (leaf.h): for a few instructions that call nothing. */
class leaf_lock {
public:
	leaf_lock() noexcept {
		tn_leaf_lock();
	}
	leaf_lock(const leaf_lock &) = delete;
	leaf_lock &operator=(const leaf_lock &) = delete;
	~leaf_lock() {
		tn_leaf_unlock();
	}
};

}
}
}
#endif
