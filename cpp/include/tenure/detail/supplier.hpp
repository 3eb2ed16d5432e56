/* Not API. Chunks for slabs, cut out of larger and larger pieces of an upstream resource. */
#ifndef TENURE_DETAIL_SUPPLIER_HPP
#define TENURE_DETAIL_SUPPLIER_HPP

#include "front.hpp"
#include "upstream.hpp"

namespace tenure {
inline namespace TN_INLINE_NAMESPACE {
namespace detail {

/* Slabs always request chunks of one size, but a pool resource promises its upstream growing requests.
 * So the supplier takes pieces, each twice as large as the one before, and cuts chunks from their lower
 * end and the slabs' small records from their upper end. Memory that a slab releases waits for the next
 * request of its size. All pieces go back at once.
 *
 * threads  any */
class supplier {
public:
	static constexpr std::size_t page_bytes = 4096;

	explicit supplier(memory_resource *upstream) noexcept : upstream_(upstream) {
	}
	supplier(const supplier &) = delete;
	supplier &operator=(const supplier &) = delete;
	~supplier() {
		give_back();
	}

	/* The source for the options of a slab. */
	tn_source as_source() noexcept {
		return {[](void *self, std::size_t size, std::size_t align) {
					return static_cast<supplier *>(self)->acquire(size, align);
				},
			[](void *self, void *p, std::size_t size) {
				static_cast<supplier *>(self)->release(p, size);
			},
			this};
	}

	/* Gives all pieces back, whether or not their chunks are in use. */
	void give_back() noexcept {
		while (pieces_ != nullptr) {
			piece old = *pieces_;
			upstream_->deallocate(
				reinterpret_cast<char *>(pieces_ + 1) - old.bytes, old.bytes, old.align);
			pieces_ = old.next;
		}
		low_ = high_ = nullptr;
		next_bytes_ = piece_bytes_min;
		for (spare *&list : spares_)
			list = nullptr;
	}

private:
	static constexpr std::size_t piece_align = 65536; /* that of most slabs' chunks */
	static constexpr std::size_t piece_bytes_min = 131072, piece_bytes_max = 4194304;
	static constexpr std::size_t size_count = 16; /* powers of two from a page on */

	/* Stands at the end of a piece, so that its chunks are aligned. */
	struct piece {
		piece *next;
		std::size_t bytes, align;
	};
	struct spare {
		spare *next;
	};

	/* The power of two of pages that holds `size`. */
	static std::size_t rank(std::size_t size) noexcept {
		std::size_t r = 0;
		while (page_bytes << r < size)
			r++;
		return r;
	}

	void *acquire(std::size_t size, std::size_t align) noexcept {
		std::size_t r = rank(size);
		for (;;) {
			std::size_t piece_bytes;
			{
				front_lock inside;
				if (void *p = cut(r, align))
					return p;
				while (next_bytes_ < 2 * (page_bytes << r))
					next_bytes_ *= 2;
				piece_bytes = next_bytes_;
			}
			if (!add_piece(piece_bytes, align))
				return nullptr;
		}
	}

	/* Returns nullptr when the newest piece has too little left. */
	void *cut(std::size_t r, std::size_t align) noexcept {
		std::size_t bytes = page_bytes << r;
		spare *p = spares_[r];
		if (p != nullptr && reinterpret_cast<std::uintptr_t>(p) % align == 0) {
			spares_[r] = p->next;
			return p;
		}
		if (room(align) < bytes)
			return nullptr;
		if (align == page_bytes)
			return high_ -= bytes;
		low_ += padding(align);
		return std::exchange(low_, low_ + bytes);
	}

	void release(void *p, std::size_t size) noexcept {
		front_lock inside;
		spare *&list = spares_[rank(size)];
		list = ::new (p) spare{list};
	}

	std::size_t padding(std::size_t align) const noexcept {
		return (align - reinterpret_cast<std::uintptr_t>(low_) % align) % align;
	}

	/* Bytes left in the newest piece for a chunk of this alignment. */
	std::size_t room(std::size_t align) const noexcept {
		std::size_t left = static_cast<std::size_t>(high_ - low_);
		return left < padding(align) ? 0 : left - padding(align);
	}

	/* When two threads add a piece at the same time, the rest of the first one is not used. */
	bool add_piece(std::size_t bytes, std::size_t align) noexcept {
		std::size_t whole = bytes + sizeof(piece), piece_at = align > piece_align ? align : piece_align;
		char *base = static_cast<char *>(allocate_from(upstream_, whole, piece_at));
		if (base == nullptr)
			return false;
		front_lock inside;
		low_ = base;
		high_ = base + bytes;
		pieces_ = ::new (high_) piece{pieces_, whole, piece_at};
		if (next_bytes_ == bytes && bytes < piece_bytes_max)
			next_bytes_ *= 2;
		return true;
	}

	memory_resource *upstream_;
	piece *pieces_ = nullptr;
	char *low_ = nullptr, *high_ = nullptr; /* the rest of the newest piece */
	std::size_t next_bytes_ = piece_bytes_min;
	spare *spares_[size_count] = {};
};

}
}
}
#endif
