/* bench/shared/module.h: the loops over Tenure's shared slab in modules of another build mode or
 * linkage than the driver's. */
#ifndef BENCH_SHARED_MODULE_H
#define BENCH_SHARED_MODULE_H

#include "harness/crew.h"
#include "harness/harness.h"

namespace bench {

enum class shared_shape { pair, batch, handoff };

/* The type of a module's export; the caller owns the contestant. */
using make_in_module = contestant *(crew &c, shared_shape s, size_t count);

}

/* From the module linked with the driver: a shared library on the shared Tenure. */
extern "C" bench::make_in_module tenure_bench_shared_linked;

#endif
