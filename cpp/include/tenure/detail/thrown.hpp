/* Not API. Exceptions must not pass through the C library: those of callbacks wait until it returns. */
#ifndef TENURE_DETAIL_THROWN_HPP
#define TENURE_DETAIL_THROWN_HPP

#include <exception>

#include "config.hpp"

namespace tenure {
inline namespace TN_INLINE_NAMESPACE {
namespace detail {

/* A local variable around a call of the C library that may call back. Calls nest: an upstream resource
 * may be one of Tenure's. */
class callback_scope {
public:
	callback_scope() noexcept : outer_(innermost()) {
		innermost() = this;
	}
	callback_scope(const callback_scope &) = delete;
	callback_scope &operator=(const callback_scope &) = delete;
	~callback_scope() {
		innermost() = outer_;
	}

	/* Calls `f`; returns false, with errno, if it throws. */
	template <class F> static bool run(F f) noexcept {
#if TN_EXCEPTIONS
		try {
			f();
			return true;
		} catch (...) {
			if (innermost() != nullptr)
				innermost()->thrown_ = std::current_exception();
			errno = ENOMEM;
			return false;
		}
#else
		f();
		return true;
#endif
	}

	/* Throws the exception of the callback, if there was one. */
	void rethrow() const {
#if TN_EXCEPTIONS
		if (thrown_ != nullptr)
			std::rethrow_exception(thrown_);
#endif
	}

	/* Returns the call's result; instead of nullptr, throws the callback's exception, or as fail(). */
	void *or_throw(void *p) const {
		if (p != nullptr)
			return p;
		rethrow();
		fail();
	}

private:
	static callback_scope *&innermost() noexcept {
		static thread_local callback_scope *scope;
		return scope;
	}

	callback_scope *outer_;
	std::exception_ptr thrown_;
};

}
}
}
#endif
