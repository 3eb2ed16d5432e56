/* tenure/arena_resource.hpp: a std::pmr::memory_resource over an arena, in place of
 * std::pmr::monotonic_buffer_resource. */
#ifndef TENURE_ARENA_RESOURCE_HPP
#define TENURE_ARENA_RESOURCE_HPP

#include <cstdio>

#include "arena.hpp"
#include "detail/outstanding.hpp"
#include "detail/resource_base.hpp"
#include "detail/upstream.hpp"

namespace tenure {
inline namespace TN_INLINE_NAMESPACE {

/* Hands out memory by moving a cursor; `deallocate` does nothing; `release`, `reset` and the end take
 * all of it back. Containers may outlive that if the program does not touch them again: an idiom that
 * skips their destructors. Debug then writes how much was outstanding at the end.
 *
 * A block takes at least 16 bytes, also in the buffer. Chunks come from the buffer, then from
 * `upstream` (Tenure's page layer if none is named), and double up to 2 MiB. A block over a quarter of
 * the next chunk is requested by itself.
 *
 * threads  one at a time */
class arena_resource final : public detail::resource_base<arena_resource> {
public:
	/* Names and roles as in std::pmr::monotonic_buffer_resource; sizes are bytes.
	 *
	 * throws  std::invalid_argument for options that cannot be met */
	arena_resource() : arena_resource(arena_options{}) {
	}
	explicit arena_resource(std::pmr::memory_resource *upstream) : arena_resource(sized(0), upstream) {
	}
	explicit arena_resource(std::size_t initial_size) : arena_resource(sized(initial_size)) {
	}
	arena_resource(std::size_t initial_size, std::pmr::memory_resource *upstream)
		: arena_resource(sized(initial_size), upstream) {
	}
	arena_resource(void *buffer TN_LIFETIMEBOUND, std::size_t size)
		: arena_resource(buffered(buffer, size)) {
	}
	arena_resource(void *buffer TN_LIFETIMEBOUND, std::size_t size, std::pmr::memory_resource *upstream)
		: arena_resource(buffered(buffer, size), upstream) {
	}
	explicit arena_resource(const arena_options &options) : options_(options), arena_(&own_) {
		if (options.source != nullptr) {
			source_ = *options.source;
			options_.source = &source_;
		}
		begin();
	}
	/* Allocates from an existing arena, which must not be moved. A reset of that arena, or release
	 * here, takes the memory back. */
	explicit arena_resource(arena &a TN_LIFETIMEBOUND) : arena_(a.get()), borrowed_(&a) {
	}

	~arena_resource() override {
		outstanding_.report("arena_resource");
		if (borrowed_ == nullptr)
			tn_arena_deinit(arena_);
	}

	/* The same as allocate and deallocate, without a virtual call. Bytes; align is a power of two up to
	 * TN_ALIGN_MAX.
	 *
	 * throws  std::invalid_argument for a bad alignment, std::bad_alloc, and upstream's exceptions */
	[[nodiscard]] TN_ALWAYS_INLINE void *alloc(
		std::size_t bytes, std::size_t align = alignof(std::max_align_t)) TN_LIFETIMEBOUND {
		outstanding_.add(bytes);
		void *p = nullptr;
		/* Alignments up to 8 place a block alike, and the bump is shorter with a constant. */
		if (TN_LIKELY(is_small(align) ? tn_arena_bump(arena_, bytes, 8, &p)
									  : tn_arena_bump(arena_, bytes, align, &p)))
			return p;
		return alloc_slow(bytes, align);
	}
	TN_ALWAYS_INLINE void free(
		void *, std::size_t bytes, std::size_t = alignof(std::max_align_t)) noexcept {
		outstanding_.remove(bytes);
	}

	/* Gives everything back to where it came from and begins again, with the buffer. */
	void release() noexcept {
		outstanding_ = {};
		if (borrowed_ != nullptr) {
			borrowed_->reset();
			borrowed_->trim();
			return;
		}
		/* A second attempt to reserve the range might fail. */
		if (options_.reserve_bytes != 0) {
			tn_arena_reset(arena_);
			tn_arena_trim(arena_);
			return;
		}
		char name[TN_NAME_BYTES + 1];
		std::snprintf(name, sizeof name, "%s", own_.name);
		if (options_.name != nullptr)
			options_.name = name;
		tn_arena_deinit(arena_);
		if (tn_arena_init(arena_, &options_))
			return;
		/* Without a name it is not listed, and needs no memory. */
		options_.name = nullptr;
		tn_arena_init(arena_, &options_);
	}

	/* Forgets every block and keeps warm memory: the next cycle requests none. */
	void reset() noexcept {
		outstanding_ = {};
		if (borrowed_ != nullptr)
			borrowed_->reset();
		else
			tn_arena_reset(arena_);
	}

	/* The upstream that was named; nullptr stands for Tenure's page layer. */
	std::pmr::memory_resource *upstream_resource() const noexcept {
		return upstream_;
	}

	tn_stats stats() const noexcept {
		tn_stats now;
		tn_arena_stats(arena_, &now);
		if (borrowed_ == nullptr && options_.name == nullptr)
			std::snprintf(now.name, sizeof now.name, "arena_resource");
		return now;
	}

private:
	static arena_options sized(std::size_t initial_size) noexcept {
		arena_options options{};
		if (initial_size != 0)
			options.chunk_bytes = with_head(initial_size);
		return options;
	}
	static arena_options buffered(void *buffer, std::size_t size) noexcept {
		arena_options options{};
		options.buffer = size == 0 ? nullptr : buffer;
		options.buffer_bytes = buffer == nullptr ? 0 : size;
		/* The first chunk after the buffer is no smaller than it. */
		if (size > default_chunk_bytes)
			options.chunk_bytes = with_head(size);
		return options;
	}
	/* Adds the head of a chunk. The arena refuses a size that is too large. */
	static std::size_t with_head(std::size_t size) noexcept {
		std::size_t head = sizeof(tn_arena_chunk) + 64;
		return size > SIZE_MAX - head ? size : size + head;
	}

	arena_resource(const arena_options &options, std::pmr::memory_resource *upstream)
		: options_(options), arena_(&own_), upstream_(upstream) {
		if (upstream != nullptr)
			options_.source = &source_;
		begin();
	}

	void begin() {
		if (!tn_arena_init(&own_, &options_))
			detail::fail();
	}

	/* A bit each for 1, 2, 4 and 8. */
	static constexpr bool is_small(std::size_t align) noexcept {
		return align <= 8 && ((std::size_t{0x116} >> align) & 1) != 0;
	}

	static constexpr std::size_t default_chunk_bytes = 65536;
	/* An arena requests chunks at one alignment only. */
	static constexpr std::size_t chunk_align = 16;

	static void *acquire(void *self, std::size_t size, std::size_t) {
		return detail::allocate_from(static_cast<arena_resource *>(self)->upstream_, size, chunk_align);
	}
	static void give_back(void *self, void *p, std::size_t size) {
		static_cast<arena_resource *>(self)->upstream_->deallocate(p, size, chunk_align);
	}

	TN_NOINLINE void *alloc_slow(std::size_t bytes, std::size_t align) {
		detail::callback_scope call;
		void *p = tn_arena_alloc_slow(arena_, bytes, align);
		if (p == nullptr)
			outstanding_.remove(bytes);
		return call.or_throw(p);
	}

	arena_options options_{};
	tn_source source_{acquire, give_back, this};
	tn_arena own_;
	tn_arena *arena_;
	arena *borrowed_ = nullptr;
	std::pmr::memory_resource *upstream_ = nullptr;
	detail::outstanding outstanding_;
};

}
}
#endif
