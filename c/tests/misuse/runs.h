/* Slots of 48 bytes, as size_based_arena has them. */
#include "misuse.h"

#include <tenure/detail/runs.h>

static tn_runs runs = {.name = "r", .slot_bytes = 48, .align = 8, .count = 1000, .lease_slots = 62};
static _Thread_local tn_lease lease;

static inline char *take(size_t count) {
	return tn_runs_alloc_slow(&runs, &lease, count);
}

static inline void give(void *p, size_t count) {
	tn_runs_free(&runs, &lease, p, count);
}
