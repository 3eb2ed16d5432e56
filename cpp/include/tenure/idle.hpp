/* tenure/idle.hpp: maintenance, and what happens under memory pressure, while an object lives. See
 * idle.h. */
#ifndef TENURE_IDLE_HPP
#define TENURE_IDLE_HPP

#include <tenure/idle.h>

#include <atomic>
#include <mutex>
#include <utility>

#include "detail/config.hpp"

namespace tenure {
inline namespace TN_INLINE_NAMESPACE {

/* Begin with `pressure_options options{};`: a zero is the default. Leave callback and ctx NULL. */
using pressure_options = tn_pressure_options;

namespace detail {

inline std::atomic<bool> is_pressed{false};

}

/* Gives back in the background what pools, shared slabs and the page layer keep without need, while it
 * lives. Two of them do not disturb each other: the last one that ends ends the maintenance.
 *
 * threads  any */
class maintenance {
public:
	/* throws  std::bad_alloc if there is no thread for it */
	maintenance() {
		std::lock_guard<std::mutex> hold(lock);
		if (!tn_maintain_start())
			detail::fail();
		living++;
	}
	maintenance(const maintenance &) = delete;
	maintenance &operator=(const maintenance &) = delete;
	~maintenance() {
		std::lock_guard<std::mutex> hold(lock);
		if (--living == 0)
			tn_maintain_stop();
	}

private:
	static inline std::mutex lock;
	static inline unsigned living = 0;
};

/* Gives idle memory back in steps when memory gets scarce, while it lives, and calls `report(unsigned
 * step, std::size_t bytes)` after each. A process can have one at a time.
 *
 *     tenure::pressure pressed([](unsigned step, std::size_t bytes) { shrink_caches(step); });
 *
 * Tenure's thread calls `report`, which must neither throw nor end the pressure.
 *
 * threads  any */
template <class Report> class pressure {
public:
	/* throws  std::invalid_argument for a percentage above 100, a file that cannot be read, options
	 *         with a callback or ctx, and while another one lives; std::bad_alloc without a thread */
	explicit pressure(Report report, pressure_options options = {}) : report_(std::move(report)) {
		if (options.callback != nullptr || options.ctx != nullptr)
			detail::refuse("tenure: pressure: leave callback and ctx of the options NULL");
		if (detail::is_pressed.exchange(true))
			detail::refuse("tenure: pressure: another one is alive; end it first");
		options.callback = call;
		options.ctx = this;
		if (!tn_pressure_start(&options)) {
			detail::is_pressed = false;
			detail::fail("tenure: pressure: options that cannot be met");
		}
	}
	pressure(const pressure &) = delete;
	pressure &operator=(const pressure &) = delete;
	~pressure() {
		tn_pressure_stop();
		detail::is_pressed = false;
	}

private:
	static void call(unsigned step, std::size_t bytes, void *self) {
		static_cast<pressure *>(self)->report_(step, bytes);
	}

	Report report_;
};

}
}
#endif
