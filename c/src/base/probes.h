/* Static probes (USDT) where the system has them: perf and bpftrace see through them what profilers of
 * malloc do not, `perf list sdt_tenure:*` or `bpftrace -l 'usdt:PROGRAM:tenure:*'`. A probe
 * without a listener is a nop.
 *
 *   tenure:chunk_acquire(address, bytes)   an allocator took a chunk from its source
 *   tenure:chunk_release(address, bytes)   and gave it back
 *   tenure:reset(kind, name)               out of line: not the resets that tn_arena_reset inlines */
#ifndef TENURE_PROBES_H
#define TENURE_PROBES_H

#if defined(__linux__) && defined(__has_include)
#if __has_include(<sys/sdt.h>)
#include <sys/sdt.h>
/* sys/sdt.h leaves variadic arguments out, which -pedantic-errors of clang refuses. */
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wgnu-zero-variadic-macro-arguments"
#endif
#define TN_PROBE(name, first, second) DTRACE_PROBE2(tenure, name, first, second)
#endif
#endif
#if !defined(TN_PROBE)
#define TN_PROBE(name, first, second) ((void)(first), (void)(second))
#endif

#endif
