/* bench/slab/sized.h: adapters for objects of a size that is known at run time only, in workloads that
 * measure the objects and not their alloc: an adapter is made from the size and has alloc(), which
 * never returns NULL. Nothing is freed before the process ends. */
#ifndef BENCH_SLAB_SIZED_H
#define BENCH_SLAB_SIZED_H

#include <boost/pool/pool.hpp>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "harness/harness.h"
#include "harness/loaded_malloc.h"
#include "tenure/shared_slab.h"
#include "tenure/slab.h"

namespace bench {

inline void *or_abort(void *p) {
	if (p == nullptr)
		std::abort();
	return p;
}

/* The alignment of a type of this size, at most malloc's. */
inline size_t sized_align(size_t size) {
	return size % 16 == 0 ? 16 : 8;
}

class sized_slab {
public:
	explicit sized_slab(size_t size) : slab_(tn_slab_create(size, sized_align(size), nullptr)) {
	}
	void *alloc() {
		return or_abort(tn_slab_alloc(slab_));
	}
	/* From the slab's own statistics. */
	size_t committed_bytes() const {
		tn_stats stats;
		tn_slab_stats(slab_, &stats);
		return stats.committed_bytes;
	}

private:
	tn_slab *slab_;
};

class sized_shared {
public:
	explicit sized_shared(size_t size)
		: slab_(tn_shared_slab_create(size, sized_align(size), nullptr)) {
	}
	void *alloc() {
		return or_abort(tn_shared_slab_alloc(slab_));
	}
	size_t committed_bytes() const {
		tn_stats stats;
		tn_shared_slab_stats(slab_, &stats);
		return stats.committed_bytes;
	}

private:
	tn_shared_slab *slab_;
};

/* Allocators that do not tell what they hold. */
class sized_peer {
public:
	explicit sized_peer(size_t size) : size_(size) {
	}
	size_t committed_bytes() const {
		return 0;
	}

protected:
	const size_t size_;
};

template <const malloc_calls &(*load)()> class sized_malloc : public sized_peer {
public:
	using sized_peer::sized_peer;

	void *alloc() {
		return or_abort(calls_.alloc(size_));
	}

private:
	malloc_calls calls_ = load();
};

class sized_boost : public sized_peer {
public:
	using sized_peer::sized_peer;

	void *alloc() {
		return or_abort((pool_.malloc)());
	}

private:
	static constexpr size_t chunk_bytes = 65536;

	size_t chunk_slots_ = std::max<size_t>(1, chunk_bytes / size_);
	boost::pool<boost::default_user_allocator_malloc_free> pool_{size_, chunk_slots_, chunk_slots_};
};

template <template <class> class C> std::vector<subject> sized_subjects(size_t size) {
	return {
		make_subject<C<sized_slab>>("tenure-slab", size),
		make_subject<C<sized_shared>>("tenure-shared", size),
		make_subject<C<sized_malloc<glibc_calls>>>("glibc", size),
		make_subject<C<sized_malloc<mimalloc_calls>>>("mimalloc", size),
		make_subject<C<sized_malloc<jemalloc_calls>>>("jemalloc", size),
		make_subject<C<sized_boost>>("boost", size),
	};
}

}
#endif
