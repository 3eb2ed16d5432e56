/* bench/shared/module.h: the loops over Tenure's shared slab in modules of another build mode or
 * linkage than the driver's. */
#ifndef BENCH_SHARED_MODULE_H
#define BENCH_SHARED_MODULE_H

#include "harness/crew.h"
#include "harness/harness.h"

namespace bench {

enum class shared_shape { pair, batch, handoff };

/* What a module exports, under a name of its own; the caller owns the answer. */
using make_in_module = contestant *(crew &c, shared_shape s, size_t count);

}

/* Linked at link time: the module is a shared library, and so is the Tenure it uses. */
extern "C" bench::make_in_module tenure_bench_shared_linked;

#endif
