/* bench/model/subjects.h: what hands out objects on the simulated machine. */
#ifndef BENCH_MODEL_SUBJECTS_H
#define BENCH_MODEL_SUBJECTS_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/machine.h"

namespace model {

constexpr size_t object_bytes = 64;

/* How threads exchanged magazines, since the start. */
struct exchange_counts {
	uint64_t exchanges = 0, foreign = 0, waits = 0;
};

class subject {
public:
	virtual ~subject() = default;

	/* By any simulated thread. */
	virtual void *alloc() = 0;
	virtual void free(void *p) = 0;
	/* The thread ends, and another one starts in its place. */
	virtual void renew_thread() {
	}
	virtual exchange_counts counts() {
		return {};
	}
};

constexpr unsigned own_choice = ~0u;
/* The library's shared slab: its sources, compiled for this machine. Of shards it has so many, up to
 * most_shards(), or as many as the library itself makes for the cores. Without one there is only the
 * depot that all threads have in common. */
std::unique_ptr<subject> make_shared_slab(const costs &c, unsigned cores, unsigned shards);
unsigned most_shards();

std::vector<std::string> subject_names();
/* Null where the subject cannot be had for so many cores. */
std::unique_ptr<subject> make_subject(const std::string &name, const costs &c, unsigned cores);

} /* namespace model */
#endif
