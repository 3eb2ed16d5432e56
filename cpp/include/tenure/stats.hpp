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

/* Begin with `watch_options options{};`: a zero is the default. Leave ctx NULL: the watch uses it. */
using watch_options = tn_watch_options;

namespace detail {

inline std::atomic<bool> is_watched{false};

}

/* Calls `visit(const tn_listed &)` for every listed allocator, parents before the allocators that they
 * own, and stops if `visit` returns false. It may also return nothing.
 *
 * returns  the number of allocators visited
 * throws   the exceptions of `visit`, which end the snapshot
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
 * char *message)` once for each silent failure. A process can have one watch at a time.
 *
 *     tenure::watch watching([](tn_finding, const tn_listed &, const char *line) { std::puts(line); });
 *
 * The watching thread calls `report`, which must neither throw nor end the watch.
 *
 * threads  any */
template <class Report> class watch {
public:
	/* throws  std::invalid_argument for a percentage above 100, options with a ctx, and while another
	 *         watch lives; std::bad_alloc if there is no thread for it */
	explicit watch(Report report, watch_options options = {}) : report_(std::move(report)) {
		if (options.ctx != nullptr)
			detail::refuse("tenure: watch: leave ctx of the options NULL; the callable can hold state");
		if (detail::is_watched.exchange(true))
			detail::refuse("tenure: watch: another watch is alive; end it first");
		options.ctx = this;
		if (!tn_watch(&options, call)) {
			detail::is_watched = false;
			detail::fail("tenure: watch: a percentage of the options is above 100");
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
