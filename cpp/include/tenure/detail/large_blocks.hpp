/* Not API. Blocks too large for a slab, each from upstream by itself, in a list. */
#ifndef TENURE_DETAIL_LARGE_BLOCKS_HPP
#define TENURE_DETAIL_LARGE_BLOCKS_HPP

#include "front.hpp"
#include "upstream.hpp"

namespace tenure {
inline namespace TN_INLINE_NAMESPACE {
namespace detail {

/* A doubly linked list of blocks. The links stand before a block, so it goes back in O(1).
 *
 * threads  any */
class large_blocks {
public:
	explicit large_blocks(memory_resource *upstream) noexcept : upstream_(upstream) {
	}
	large_blocks(const large_blocks &) = delete;
	large_blocks &operator=(const large_blocks &) = delete;
	~large_blocks() {
		clear();
	}

	/* Returns nullptr with errno, or with upstream's exception. */
	void *alloc(std::size_t bytes, std::size_t align) noexcept {
		std::size_t lead = lead_of(align);
		if (bytes > static_cast<std::size_t>(PTRDIFF_MAX) - lead) {
			errno = ENOMEM;
			return nullptr;
		}
		void *base = allocate_from(upstream_, lead + bytes, align_of(align));
		if (base == nullptr)
			return nullptr;
		char *p = static_cast<char *>(base) + lead;
		front_lock inside;
		head *h = ::new (p - sizeof(head)) head{first_, nullptr, bytes, align, 0};
		h->seal = seal_of(h);
		if (first_ != nullptr)
			first_->previous = h;
		first_ = h;
		count_++;
		bytes_ += bytes;
		return p;
	}

	void free(void *p, std::size_t bytes, std::size_t align) noexcept {
		auto *h = reinterpret_cast<head *>(static_cast<char *>(p) - sizeof(head));
		if (TN_MODE != TN_MODE_RELEASE)
			check(h, bytes, align);
		{
			front_lock inside;
			if (h->next != nullptr)
				h->next->previous = h->previous;
			(h->previous == nullptr ? first_ : h->previous->next) = h->next;
			count_--;
			bytes_ -= bytes;
			h->seal = 0;
		}
		give_back(p, bytes, align);
	}

	void clear() noexcept {
		while (first_ != nullptr) {
			head h = *first_;
			first_->seal = 0;
			give_back(first_ + 1, h.bytes, h.align);
			first_ = h.next;
		}
		count_ = bytes_ = 0;
	}

	void add_to(tn_stats &sum) const noexcept {
		front_lock inside;
		sum.live_count += count_;
		sum.live_bytes += bytes_;
		sum.reserved_bytes += bytes_;
		sum.committed_bytes += bytes_;
	}

private:
	struct head {
		head *next, *previous;
		std::size_t bytes, align;
		std::uintptr_t seal;
	};

	static std::size_t align_of(std::size_t align) noexcept {
		return align < alignof(std::max_align_t) ? alignof(std::max_align_t) : align;
	}
	static std::size_t lead_of(std::size_t align) noexcept {
		std::size_t at = align_of(align);
		return (sizeof(head) + at - 1) & ~(at - 1);
	}

	/* Hardened trusts a head with the seal of its address and of this list, which a free erases; debug
	 * searches the list for it. */
	void check(const head *h, std::size_t bytes, std::size_t align) const noexcept {
		bool known = TN_MODE != TN_MODE_DEBUG || is_listed(h);
		if (!known || h->seal != seal_of(h))
			tn_front_panic("resource", "deallocate", h + 1, "is no block of this resource");
		if (h->bytes != bytes || h->align != align)
			tn_front_panic("resource", "deallocate", h + 1, "has another size or alignment");
	}

	bool is_listed(const head *h) const noexcept {
		front_lock inside;
		const head *there = first_;
		while (there != nullptr && there != h)
			there = there->next;
		return there != nullptr;
	}

	std::uintptr_t seal_of(const head *h) const noexcept {
		return reinterpret_cast<std::uintptr_t>(h) ^ reinterpret_cast<std::uintptr_t>(this) ^
		       static_cast<std::uintptr_t>(0x5ea1ed);
	}

	void give_back(void *p, std::size_t bytes, std::size_t align) noexcept {
		std::size_t lead = lead_of(align);
		upstream_->deallocate(static_cast<char *>(p) - lead, lead + bytes, align_of(align));
	}

	memory_resource *upstream_;
	head *first_ = nullptr;
	std::size_t count_ = 0, bytes_ = 0;
};

}
}
}
#endif
