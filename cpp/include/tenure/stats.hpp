/* tenure/stats.hpp: all listed allocators at a glance, and a watch over them. See stats.h. */
#ifndef TENURE_STATS_HPP
#define TENURE_STATS_HPP

#include <atomic>
#include <memory>
#include <type_traits>
#include <utility>

#include "detail/thrown.hpp"

namespace tenure {
inline namespace TN_INLINE_NAMESPACE {

/* Begin with `watch_options options{};`: what is zero is the default. The ctx is the watch's own. */
using watch_options = tn_watch_options;

namespace detail {

inline std::atomic<bool> is_watched{false};

}

/* Calls `visit(const tn_listed &)` for every listed allocator, parents before what they own, until one
 * call returns false (where it returns anything); how many were visited.
 *
 * throws   what `visit` throws, which ends the visit
 * threads  any; owners are not stopped */
template <class Visit> std::size_t snapshot(Visit &&visit) {
	auto *call = std::addressof(visit);
	detail::callback_scope end;
	std::size_t count = tn_stats_snapshot(
		[](const tn_listed *listed, void *at) {
			bool goes_on = true;
			bool done = detail::callback_scope::run([&] {
				auto &one = **static_cast<decltype(call) *>(at);
				if constexpr (std::is_void_v<decltype(one(*listed))>)
					one(*listed);
				else
					goes_on = one(*listed);
			});
			return done && goes_on;
		},
		&call);
	end.rethrow();
	return count;
}

/* Watches all listed allocators while it lives, and calls `report(tn_finding, const tn_listed &, const
 * char *message)` once for each silent failure. There is one in a process.
 *
 *     tenure::watch watching([](tn_finding, const tn_listed &, const char *line) { std::puts(line); });
 *
 * `report` is called by the watching thread, and must neither throw nor end the watch.
 *
 * threads  any */
template <class Report> class watch {
public:
	/* throws  std::invalid_argument for a percentage above 100, options with a ctx, and while there is
	 *         another watch; std::bad_alloc where there is no thread for it */
	explicit watch(Report report, watch_options options = {}) : report_(std::move(report)) {
		if (options.ctx != nullptr || detail::is_watched.exchange(true)) {
			errno = EINVAL;
			detail::fail();
		}
		options.ctx = this;
		if (!tn_watch(&options, call)) {
			detail::is_watched = false;
			detail::fail();
		}
	}
	watch(const watch &) = delete;
	watch &operator=(const watch &) = delete;
	~watch() {
		tn_watch(nullptr, nullptr);
		detail::is_watched = false;
	}

private:
	static void call(tn_finding finding, const tn_listed *listed, const char *message, void *self) {
		static_cast<watch *>(self)->report_(finding, *listed, message);
	}

	Report report_;
};

}
}
#endif
