/* tenure/slab_resource.hpp: std::pmr::memory_resources over slabs: slab_resource in place of
 * std::pmr::unsynchronized_pool_resource, shared_slab_resource in place of
 * std::pmr::synchronized_pool_resource. */
#ifndef TENURE_SLAB_RESOURCE_HPP
#define TENURE_SLAB_RESOURCE_HPP

#include <cstdio>

#include "detail/large_blocks.hpp"
#include "detail/outstanding.hpp"
#include "detail/resource_base.hpp"
#include "detail/size_classes.hpp"
#include "detail/supplier.hpp"
#include "fwd.hpp"
#include "shared_slab.hpp"
#include "slab.hpp"

namespace tenure {
inline namespace TN_INLINE_NAMESPACE {

/* A slab for each class of sizes up to 8 KiB; larger blocks, and alignments over 4 KiB, go to the
 * upstream resource one by one. Memory goes back at `release` and at the end; containers may outlive
 * that if the program does not touch them again. Debug then writes how much was outstanding.
 *
 * Each class in use has chunks of 64 KiB (less by max_blocks_per_chunk), which are cut out of pieces of
 * upstream's memory. A piece is twice as large as the one before, from 128 KiB to 4 MiB. If no upstream
 * is named, chunks come from Tenure's page layer, and go back to it while the resource lives; large
 * blocks come from std::pmr::new_delete_resource(). In both cases only used memory is touched.
 *
 * Any thread that needs memory calls the upstream of a shared_slab_resource, without a lock: the
 * upstream must be safe for any thread.
 *
 * slab_resource is for one thread at a time, shared_slab_resource for any; see fwd.hpp.
 *
 * threads  one at a time, or any; release, and the end, when no other call is under way */
template <class Calls>
class basic_slab_resource final : public detail::resource_base<basic_slab_resource<Calls>> {
public:
	/* Roles as in std::pmr. `largest_required_pool_block` is rounded up to a class and at most 8 KiB;
	 * `max_blocks_per_chunk` is met as far as a chunk of a page allows. */
	basic_slab_resource() : basic_slab_resource(std::pmr::pool_options(), nullptr) {
	}
	explicit basic_slab_resource(std::pmr::memory_resource *upstream)
		: basic_slab_resource(std::pmr::pool_options(), upstream) {
	}
	explicit basic_slab_resource(
		const std::pmr::pool_options &options, std::pmr::memory_resource *upstream = nullptr)
		: upstream_(upstream), supplier_(upstream), source_(supplier_.as_source()),
		  large_(upstream == nullptr ? std::pmr::new_delete_resource() : upstream),
		  options_(effective(options)),
		  classes_used_(detail::class_of(options_.largest_required_pool_block, 1) + 1) {
	}

	~basic_slab_resource() override {
		if (TN_MODE == TN_MODE_DEBUG) {
			tn_stats now = stats();
			detail::report_outstanding(Calls::resource_name, now.live_count, now.live_bytes);
		}
		release();
	}

	/* The same as allocate and deallocate, without a virtual call. Bytes; align is a power of two up to
	 * TN_ALIGN_MAX, 0 means 16; free takes the values of alloc.
	 *
	 * throws  std::invalid_argument for a bad alignment, std::bad_alloc, and upstream's exceptions */
	[[nodiscard]] TN_ALWAYS_INLINE void *alloc(
		std::size_t bytes, std::size_t align = alignof(std::max_align_t)) TN_LIFETIMEBOUND {
		std::size_t index = (bytes - 1) / detail::fine_step;
		void *p;
		if (TN_LIKELY(index < detail::fine_count && detail::is_plain(align))) {
			typename Calls::handle *s = classes_.find(index);
			if (TN_LIKELY(s != nullptr))
				return TN_LIKELY(Calls::pop(s, &p)) ? p : alloc_slow(s);
		}
		return alloc_rare(bytes, align);
	}
	TN_ALWAYS_INLINE void free(
		void *p, std::size_t bytes, std::size_t align = alignof(std::max_align_t)) noexcept {
		std::size_t index = (bytes - 1) / detail::fine_step;
		if (TN_LIKELY(index < detail::fine_count && align <= detail::fine_step)) {
			typename Calls::handle *s = classes_.find(index);
			if (TN_LIKELY(s != nullptr)) {
				Calls::free(s, p);
				return;
			}
		}
		free_rare(p, bytes, align);
	}

	/* Gives everything back, live blocks included.
	 *
	 * threads  one at a time, when no other call is under way */
	void release() noexcept {
		classes_.clear();
		supplier_.give_back();
		large_.clear();
	}

	/* Gives back the chunks without a live block; returns bytes. A named upstream gets them only at
	 * release. */
	std::size_t trim() noexcept {
		std::size_t bytes = 0;
		classes_.each([&](typename Calls::handle *s) { bytes += Calls::trim(s); });
		return bytes;
	}

	std::pmr::pool_options options() const noexcept {
		return options_;
	}

	/* The upstream that was named; nullptr stands for Tenure's page layer. */
	std::pmr::memory_resource *upstream_resource() const noexcept {
		return upstream_;
	}

	/* The sum over all slabs and the large blocks. */
	tn_stats stats() const noexcept {
		tn_stats sum{};
		std::snprintf(sum.name, sizeof sum.name, "%s", Calls::resource_name);
		classes_.each([&](typename Calls::handle *s) {
			tn_stats one;
			Calls::stats(s, &one);
			sum.live_bytes += one.live_bytes;
			sum.live_count += one.live_count;
			sum.cached_bytes += one.cached_bytes;
			sum.reserved_bytes += one.reserved_bytes;
			sum.committed_bytes += one.committed_bytes;
			sum.peak_bytes += one.peak_bytes;
			sum.chunk_count += one.chunk_count;
			sum.partial_count += one.partial_count;
			sum.refills += one.refills;
			sum.exchanges += one.exchanges;
			sum.foreign += one.foreign;
			sum.waits += one.waits;
		});
		large_.add_to(sum);
		return sum;
	}

private:
	static std::pmr::pool_options effective(std::pmr::pool_options asked) noexcept {
		std::size_t largest = asked.largest_required_pool_block;
		if (largest == 0 || largest > detail::class_bytes_max)
			largest = detail::class_bytes_max;
		asked.largest_required_pool_block = detail::class_bytes(detail::class_of(largest, 1));
		constexpr std::size_t most = chunk_bytes / detail::fine_step;
		if (asked.max_blocks_per_chunk == 0 || asked.max_blocks_per_chunk > most)
			asked.max_blocks_per_chunk = most;
		return asked;
	}

	/* The class of a block; class_count stands for the large blocks. */
	std::size_t class_of(std::size_t bytes, std::size_t align) const noexcept {
		std::size_t index = detail::class_of(bytes, align);
		return index < classes_used_ ? index : detail::class_count;
	}

	typename Calls::options slab_options_of(std::size_t index) const noexcept {
		typename Calls::options o{};
		o.name = Calls::resource_name;
		o.expendable = true;
		if (upstream_ != nullptr)
			o.source = &source_;
		std::size_t most = options_.max_blocks_per_chunk;
		if (most < chunk_bytes / detail::class_bytes(index))
			o.chunk_bytes = most * detail::class_bytes(index);
		return o;
	}

	TN_NOINLINE void *alloc_rare(std::size_t bytes, std::size_t align) {
		if ((align & (align - 1)) != 0 || align > TN_ALIGN_MAX)
			detail::refuse("tenure: the alignment must be a power of two, at most TN_ALIGN_MAX");
		std::size_t index = class_of(bytes, align);
		detail::callback_scope call;
		if (index == detail::class_count)
			return call.or_throw(large_.alloc(bytes, align));
		typename Calls::handle *s = classes_.find(index);
		if (s == nullptr)
			s = classes_.add(index, slab_options_of(index));
		void *p = nullptr;
		return s != nullptr && Calls::pop(s, &p)
		           ? p
		           : call.or_throw(s == nullptr ? nullptr : Calls::slow(s));
	}

	/* Without an upstream no code is called back, so nothing can be thrown. Every call on a shared slab
	 * that is not near comes here. */
	TN_ALWAYS_INLINE void *alloc_slow(typename Calls::handle *s) {
		return upstream_ == nullptr ? detail::or_throw(Calls::slow(s)) : alloc_from_upstream(s);
	}
	TN_NOINLINE static void *alloc_from_upstream(typename Calls::handle *s) {
		detail::callback_scope call;
		return call.or_throw(Calls::slow(s));
	}

	TN_NOINLINE void free_rare(void *p, std::size_t bytes, std::size_t align) noexcept {
		if (p == nullptr)
			return;
		std::size_t index = class_of(bytes, align);
		if (index == detail::class_count)
			large_.free(p, bytes, align);
		else
			classes_.give(index, p);
	}

	static constexpr std::size_t chunk_bytes = 65536;

	detail::size_classes<Calls> classes_;
	std::pmr::memory_resource *upstream_;
	detail::supplier supplier_;
	tn_source source_;
	detail::large_blocks large_;
	std::pmr::pool_options options_;
	std::size_t classes_used_; /* up to the largest pool block; the rest has no slab */
};

}
}
#endif
