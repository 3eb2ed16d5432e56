/* Not API. Debug: counts the live blocks of a resource. Empty in the other modes. */
#ifndef TENURE_DETAIL_OUTSTANDING_HPP
#define TENURE_DETAIL_OUTSTANDING_HPP

#include <cstdio>

#include "config.hpp"

namespace tenure {
inline namespace TN_INLINE_NAMESPACE {
namespace detail {

/* Writes debug's line about a resource that ends before its containers. */
inline void report_outstanding(const char *kind, std::size_t blocks, std::size_t bytes) noexcept {
	if (blocks != 0)
		std::fprintf(stderr, "tenure: %s: destroyed with %zu bytes in %zu blocks outstanding\n", kind,
			bytes, blocks);
}

class outstanding {
public:
	TN_ALWAYS_INLINE void add(std::size_t bytes) noexcept {
		if (TN_MODE == TN_MODE_DEBUG) {
			blocks_++;
			bytes_ += bytes;
		}
	}
	TN_ALWAYS_INLINE void remove(std::size_t bytes) noexcept {
		if (TN_MODE == TN_MODE_DEBUG) {
			blocks_--;
			bytes_ -= bytes;
		}
	}
	void report(const char *kind) const noexcept {
		if (TN_MODE == TN_MODE_DEBUG)
			report_outstanding(kind, blocks_, bytes_);
	}

private:
	std::size_t blocks_ = 0, bytes_ = 0;
};

}
}
}
#endif
