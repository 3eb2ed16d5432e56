/* tenure/heap_resource.hpp: a std::pmr::memory_resource over a heap: blocks of any sizes that are given
 * back one by one, or all at once. */
#ifndef TENURE_HEAP_RESOURCE_HPP
#define TENURE_HEAP_RESOURCE_HPP

#include <cstdio>
#include <cstring>

#include "detail/outstanding.hpp"
#include "detail/resource_base.hpp"
#include "detail/upstream.hpp"
#include "heap.hpp"

namespace tenure {
inline namespace TN_INLINE_NAMESPACE {

/* Every block goes back by itself and its memory is used again; `release`, `reset` and the end take
 * back the rest. Containers may outlive that if the program does not touch them again: an idiom that
 * skips their destructors. Debug then writes how much was outstanding at the end.
 *
 * Chunks, and large blocks one by one, come from `upstream` (Tenure's page layer if none is named), and
 * go back to it while the resource lives. The first block creates the heap.
 *
 * threads  one at a time */
class heap_resource final : public detail::resource_base<heap_resource> {
public:
	heap_resource() noexcept : heap_resource(heap_options{}) {
	}
	explicit heap_resource(std::pmr::memory_resource *upstream) noexcept : upstream_(upstream) {
		set(heap_options{});
		if (upstream != nullptr)
			options_.source = &source_;
	}
	explicit heap_resource(const heap_options &options) noexcept {
		set(options);
		if (options.source != nullptr) {
			source_ = *options.source;
			options_.source = &source_;
		}
	}
	/* Allocates from an existing heap. A reset of that heap, or release here, takes the memory back. */
	explicit heap_resource(heap &h TN_LIFETIMEBOUND) noexcept : heap_(h.get()), is_borrowed_(true) {
	}

	~heap_resource() override {
		outstanding_.report("heap_resource");
		if (!is_borrowed_)
			tn_heap_destroy(heap_);
	}

	/* The same as allocate and deallocate, without a virtual call. Bytes; align is a power of two up to
	 * TN_ALIGN_MAX, 0 means 16; free takes the values of alloc.
	 *
	 * throws  std::invalid_argument for a bad alignment, std::bad_alloc, and upstream's exceptions */
	[[nodiscard]] TN_ALWAYS_INLINE void *alloc(
		std::size_t bytes, std::size_t align = alignof(std::max_align_t)) TN_LIFETIMEBOUND {
		if (TN_UNLIKELY(heap_ == nullptr || upstream_ != nullptr))
			return alloc_rare(bytes, align);
		void *p = detail::or_throw(tn_heap_alloc(heap_, bytes, align));
		outstanding_.add(bytes);
		return p;
	}
	TN_ALWAYS_INLINE void free(
		void *p, std::size_t bytes, std::size_t align = alignof(std::max_align_t)) noexcept {
		if (p == nullptr)
			return;
		outstanding_.remove(bytes);
		detail::heap_free(heap_, p, bytes, align);
	}

	/* Gives everything back to where it came from. */
	void release() noexcept {
		outstanding_ = {};
		if (is_borrowed_) {
			tn_heap_reset(heap_);
			tn_heap_trim(heap_);
		} else {
			tn_heap_destroy(std::exchange(heap_, nullptr));
		}
	}

	/* Forgets every block and keeps warm memory. */
	void reset() noexcept {
		outstanding_ = {};
		if (heap_ != nullptr)
			tn_heap_reset(heap_);
	}

	/* Gives back chunks without a live block; in bytes. */
	std::size_t trim() noexcept {
		return heap_ == nullptr ? 0 : tn_heap_trim(heap_);
	}

	/* The upstream that was named; nullptr stands for Tenure's page layer. */
	std::pmr::memory_resource *upstream_resource() const noexcept {
		return upstream_;
	}

	tn_stats stats() const noexcept {
		tn_stats now{};
		if (heap_ != nullptr)
			tn_heap_stats(heap_, &now);
		if (!is_borrowed_)
			std::snprintf(
				now.name, sizeof now.name, "%s", options_.name == nullptr ? "heap_resource" : name_);
		return now;
	}

private:
	/* Stands behind a chunk: a source is not told the alignment when memory comes back. */
	struct tail {
		std::size_t align;
	};

	static void *acquire(void *self, std::size_t size, std::size_t align) {
		std::pmr::memory_resource *upstream = static_cast<heap_resource *>(self)->upstream_;
		if (size > SIZE_MAX - sizeof(tail))
			return nullptr;
		void *p = detail::allocate_from(upstream, size + sizeof(tail), align);
		tail end{align};
		if (p != nullptr)
			std::memcpy(static_cast<char *>(p) + size, &end, sizeof end);
		return p;
	}
	static void give_back(void *self, void *p, std::size_t size) {
		tail end;
		std::memcpy(&end, static_cast<char *>(p) + size, sizeof end);
		static_cast<heap_resource *>(self)->upstream_->deallocate(p, size + sizeof(tail), end.align);
	}

	void set(const heap_options &options) noexcept {
		options_ = options;
		options_.expendable = true;
		if (options.name != nullptr) {
			std::snprintf(name_, sizeof name_, "%s", options.name);
			options_.name = name_;
		}
	}

	TN_NOINLINE void *alloc_rare(std::size_t bytes, std::size_t align) {
		detail::callback_scope call;
		if (heap_ == nullptr)
			heap_ = static_cast<tn_heap *>(call.or_throw(tn_heap_create(&options_)));
		void *p = call.or_throw(tn_heap_alloc(heap_, bytes, align));
		outstanding_.add(bytes);
		return p;
	}

	tn_heap *heap_ = nullptr;
	std::pmr::memory_resource *upstream_ = nullptr;
	heap_options options_{};
	tn_source source_{acquire, give_back, this};
	char name_[TN_NAME_BYTES + 1] = {};
	bool is_borrowed_ = false;
	detail::outstanding outstanding_;
};

}
}
#endif
