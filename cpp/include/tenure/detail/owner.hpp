/* Not API. The members that arena, heap, scope and the slabs have in common. */
#ifndef TENURE_DETAIL_OWNER_HPP
#define TENURE_DETAIL_OWNER_HPP

#include <cstdarg>
#include <cstdio>
#include <string_view>
#include <utility>

#include "config.hpp"

/* The functions that these allocators of the C library share, as members of a struct: `thing` is the
 * name of the type, as in TN_CALLS(tn_heap). */
#define TN_CALLS(thing)                                                                                \
	using handle = thing;                                                                              \
	using options = thing##_options;                                                                   \
	static constexpr auto create = thing##_create;                                                     \
	static constexpr auto destroy = thing##_destroy;                                                   \
	static constexpr auto trim = thing##_trim;                                                         \
	static constexpr auto owns = thing##_owns;                                                         \
	static constexpr auto stats = thing##_stats;                                                       \
	static constexpr auto verify = thing##_verify

namespace tenure {
inline namespace TN_INLINE_NAMESPACE {
namespace detail {

/* Options with a name and the default for the rest. */
template <class Options> Options named(const char *name) noexcept {
	Options options{};
	options.name = name;
	return options;
}

/* A handle whose new owner is the object that is built from it. */
template <class Handle> struct adopt {
	Handle *handle;
};

/* Owns an allocator of the C library; `Calls` names its functions. A class that derives from it in
 * private lists the members that it has. A moved-from owner is empty, and can be assigned to. */
template <class Calls> class owner {
public:
	using handle = typename Calls::handle;

	/* throws  std::invalid_argument for options that cannot be met, std::bad_alloc */
	owner() : handle_(or_throw(Calls::create(nullptr))) {
	}
	explicit owner(const typename Calls::options &options)
		: handle_(or_throw(Calls::create(&options))) {
	}
	explicit owner(const char *name) : owner(named<typename Calls::options>(name)) {
	}
	/* For a scope, which creates the allocators that it owns. */
	explicit owner(adopt<handle> made) noexcept : handle_(made.handle) {
	}
	owner(owner &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {
	}
	owner &operator=(owner &&other) noexcept {
		owner taken(std::move(other));
		std::swap(handle_, taken.handle_);
		return *this;
	}
	~owner() {
		Calls::destroy(handle_);
	}

	std::size_t trim() noexcept {
		return Calls::trim(handle_);
	}

	bool owns(const void *p) const noexcept {
		return Calls::owns(handle_, p);
	}
	tn_stats stats() const noexcept {
		tn_stats now;
		Calls::stats(handle_, &now);
		return now;
	}
	bool verify() const noexcept {
		return Calls::verify(handle_);
	}
	handle *get() const noexcept TN_LIFETIMEBOUND {
		return handle_;
	}

protected:
	handle *handle_;
};

/* An owner that bytes and text are copied into. */
template <class Calls> class text_owner : public owner<Calls> {
public:
	using owner<Calls>::owner;

	void *copy(const void *p, std::size_t size) TN_LIFETIMEBOUND {
		return or_throw(Calls::copy(owner<Calls>::handle_, p, size));
	}
	std::string_view copy(std::string_view text) TN_LIFETIMEBOUND {
		return {static_cast<char *>(copy(text.data(), text.size())), text.size()};
	}

#if defined(__GNUC__)
	[[gnu::format(printf, 2, 3)]]
#endif
	char *printf(const char *format, ...) TN_LIFETIMEBOUND {
		std::va_list values, again;
		va_start(values, format);
		va_copy(again, values);
		guard end([&] {
			va_end(again);
			va_end(values);
		});
		int length = std::vsnprintf(nullptr, 0, format, values);
		if (length < 0)
			refuse("tenure: printf: the values cannot be printed in this format");
		std::size_t size = static_cast<std::size_t>(length) + 1;
		char *text = static_cast<char *>(Calls::alloc(owner<Calls>::handle_, size, 1));
		std::vsnprintf(text, size, format, again);
		return text;
	}
};

}
}
}
#endif
