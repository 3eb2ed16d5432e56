/* Not API. */
#ifndef TENURE_DETAIL_LOCK_HPP
#define TENURE_DETAIL_LOCK_HPP

#include <atomic>
#include <thread>

#include "config.hpp"

namespace tenure {
inline namespace TN_INLINE_NAMESPACE {
namespace detail {

/* A lock that is constant-initialised and never destroyed, for paths that are rarely taken: with it,
 * objects with static storage work before main and after it. */
class lock {
public:
	void take() noexcept {
		while (held_.exchange(true, std::memory_order_acquire))
			std::this_thread::yield();
	}
	void give() noexcept {
		held_.store(false, std::memory_order_release);
	}

	class held {
	public:
		explicit held(lock &l) noexcept : lock_(l) {
			lock_.take();
		}
		held(const held &) = delete;
		held &operator=(const held &) = delete;
		~held() {
			lock_.give();
		}

	private:
		lock &lock_;
	};

private:
	std::atomic<bool> held_{false};
};

}
}
}
#endif
