/* bench/slab/tenure.h: Tenure's slab, in the build mode of the including file. */
#ifndef BENCH_SLAB_TENURE_H
#define BENCH_SLAB_TENURE_H

#include "slab/workloads.h"
#include "tenure/slab.h"

namespace bench {

class tenure_slab {
public:
	tenure_slab() : slab_(tn_slab_create(slot_bytes, 16, nullptr)) {
	}
	~tenure_slab() {
		tn_slab_destroy(slab_);
	}
	tenure_slab(const tenure_slab &) = delete;
	tenure_slab &operator=(const tenure_slab &) = delete;

	void *alloc() {
		return tn_slab_alloc(slab_);
	}
	void free(void *p) {
		tn_slab_free(slab_, p);
	}
	void reset(void **, size_t) {
		tn_slab_reset(slab_);
	}
	void describe(row &r) const {
		tn_stats stats;
		tn_slab_stats(slab_, &stats);
		r.fields["committed_bytes"] = static_cast<double>(stats.committed_bytes);
	}

private:
	tn_slab *slab_;
};

}
#endif
