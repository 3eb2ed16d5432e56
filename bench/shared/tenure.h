/* bench/shared/tenure.h: Tenure's shared slab, in the build mode and the linkage of the including
 * file. */
#ifndef BENCH_SHARED_TENURE_H
#define BENCH_SHARED_TENURE_H

#include <cstdlib>

#include "harness/harness.h"
#include "tenure/shared_slab.h"

namespace bench {

template <size_t size> class tenure_shared {
public:
	tenure_shared() : slab_(tn_shared_slab_create(size, size < 16 ? size : 16, nullptr)) {
		if (slab_ == nullptr)
			std::abort();
	}
	~tenure_shared() {
		tn_shared_slab_destroy(slab_);
	}
	tenure_shared(const tenure_shared &) = delete;
	tenure_shared &operator=(const tenure_shared &) = delete;

	void enter(unsigned) {
	}
	void leave(unsigned) {
	}
	void *alloc() {
		return tn_shared_slab_alloc(slab_);
	}
	void free(void *p) {
		tn_shared_slab_free(slab_, p);
	}
	void trim() {
		tn_shared_slab_trim(slab_);
	}
	/* The calling thread's handle. */
	tn_local *local() {
		return tn_shared_slab_local(slab_);
	}
	tn_stats stats() const {
		tn_stats stats;
		tn_shared_slab_stats(slab_, &stats);
		return stats;
	}
	/* From the slab's own statistics. */
	size_t committed_bytes() const {
		return stats().committed_bytes;
	}

private:
	tn_shared_slab *slab_;
};

}
#endif
