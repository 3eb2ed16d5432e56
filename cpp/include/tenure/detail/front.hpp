/* Not API. The page layer's lock. */
#ifndef TENURE_DETAIL_FRONT_HPP
#define TENURE_DETAIL_FRONT_HPP

#include <tenure/detail/front.h>

#include "config.hpp"

namespace tenure {
inline namespace TN_INLINE_NAMESPACE {
namespace detail {

/* Holds the lock (front.h) for a few instructions, which must not call anything. */
class front_lock {
public:
	front_lock() noexcept {
		tn_front_lock();
	}
	front_lock(const front_lock &) = delete;
	front_lock &operator=(const front_lock &) = delete;
	~front_lock() {
		tn_front_unlock();
	}
};

}
}
}
#endif
