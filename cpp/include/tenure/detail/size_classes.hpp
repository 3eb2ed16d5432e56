/* Not API. A slab for each class of sizes, created on first use: for the pool resources, and for arrays
 * of the class-specific operators. */
#ifndef TENURE_DETAIL_SIZE_CLASSES_HPP
#define TENURE_DETAIL_SIZE_CLASSES_HPP

#include <atomic>

#include "config.hpp"

namespace tenure {
inline namespace TN_INLINE_NAMESPACE {
namespace detail {

/* Sizes up to 1 KiB in steps of 16 bytes, up to 8 KiB in four steps a doubling. A slot is aligned to
 * the largest power of two that divides its size: a size that is a multiple of an alignment has it. */
constexpr std::size_t fine_count = 64, fine_step = 16, fine_bytes = fine_count * fine_step;
constexpr std::size_t class_bytes_max = 8192, class_align_max = 4096;
constexpr std::size_t class_count = fine_count + 3 * 4;

constexpr std::size_t class_bytes(std::size_t index) {
	if (index < fine_count)
		return (index + 1) * fine_step;
	std::size_t doubling = (index - fine_count) / 4, quarter = (index - fine_count) % 4;
	return (fine_bytes + (quarter + 1) * fine_bytes / 4) << doubling;
}
static_assert(class_bytes(class_count - 1) == class_bytes_max);

constexpr std::size_t alignment_of_size(std::size_t size) {
	return size & (~size + 1);
}

/* Whether every fine class has this alignment: a bit each for 0, 1, 2, 4, 8 and 16. */
TN_ALWAYS_INLINE constexpr bool is_plain(std::size_t align) {
	return align <= 16 && ((std::size_t{0x10117} >> align) & 1) != 0;
}

/* The class for blocks of `bytes` (0 counts as 1) at `align`, a power of two or 0 for 16; class_count
 * if no slab can hold them. */
constexpr std::size_t class_of(std::size_t bytes, std::size_t align) {
	std::size_t size = bytes == 0 ? 1 : bytes;
	align = align == 0 ? fine_step : align;
	if (size > class_bytes_max || align > class_align_max)
		return class_count;
	if (align > fine_step)
		size = (size + align - 1) & ~(align - 1);
	if (size <= fine_bytes)
		return (size - 1) / fine_step;
	std::size_t index = fine_count;
	while (index < class_count && (class_bytes(index) < size || class_bytes(index) % align != 0))
		index++;
	return index;
}

/* Creates a slab and replaces `none` by it in `place`; returns nullptr with errno. If two threads do so
 * at the same time, one slab stays. Without a lock: creating one may wait for another thread. */
template <class Calls>
typename Calls::handle *install(std::atomic<typename Calls::handle *> &place,
	typename Calls::handle *none, std::size_t bytes, std::size_t align,
	const typename Calls::options &options) noexcept {
	typename Calls::handle *there = none, *made = Calls::create(bytes, align, &options);
	if (made == nullptr || place.compare_exchange_strong(there, made, std::memory_order_acq_rel))
		return made;
	Calls::destroy(made);
	return there;
}

/* The slabs. Constant-initialised; only `clear` destroys them. */
template <class Calls> class size_classes {
public:
	using handle = typename Calls::handle;

	constexpr size_classes() noexcept = default;
	size_classes(const size_classes &) = delete;
	size_classes &operator=(const size_classes &) = delete;

	/* The slab of a class; nullptr before its first use. */
	TN_ALWAYS_INLINE handle *find(std::size_t index) const noexcept {
		return slabs_[index].load(std::memory_order_acquire);
	}

	/* The slab of a class, created if there is none; nullptr with errno. */
	TN_NOINLINE handle *add(std::size_t index, const typename Calls::options &options) noexcept {
		std::size_t bytes = class_bytes(index);
		return install<Calls>(slabs_[index], nullptr, bytes, slot_align(bytes), options);
	}

	/* Frees a slot of a class. In a class without a slab, the stand-in reports the foreign pointer as a
	 * slab does. */
	void give(std::size_t index, void *p) noexcept {
		handle *s = find(index);
		Calls::free(s == nullptr ? &Calls::none : s, p);
	}

	/* The class that carved `p`, or class_count. */
	std::size_t owner_of(const void *p) const noexcept {
		for (std::size_t i = 0; i < class_count; i++)
			if (handle *s = find(i))
				if (Calls::owns(s, p))
					return i;
		return class_count;
	}

	template <class Visit> void each(Visit visit) const {
		for (const std::atomic<handle *> &s : slabs_)
			if (handle *there = s.load(std::memory_order_acquire))
				visit(there);
	}

	void clear() noexcept {
		for (std::atomic<handle *> &s : slabs_)
			Calls::destroy(s.exchange(nullptr));
	}

private:
	static constexpr std::size_t slot_align(std::size_t bytes) {
		std::size_t align = alignment_of_size(bytes);
		return align < class_align_max ? align : class_align_max;
	}

	std::atomic<handle *> slabs_[class_count] = {};
};

}
}
}
#endif
