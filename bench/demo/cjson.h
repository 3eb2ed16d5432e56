/* bench/demo/cjson.h: unmodified libcjson on five allocators: a document is parsed, and dropped whole.
 *
 * Shared by the demo and by the family `arena` of the benchmarks. */
#ifndef BENCH_DEMO_CJSON_H
#define BENCH_DEMO_CJSON_H

#include <string>
#include <vector>

#include "harness/harness.h"

namespace bench {

struct document {
	std::string label; /* in the names of workloads: no blanks, no quotes */
	std::string text;
};

/* What one parse makes, and what it asks of an allocator. */
struct parse_figures {
	bool parsed = false;
	size_t error_at = 0; /* byte offset, when it did not parse */
	size_t items = 0, blocks = 0, bytes = 0;
	uint64_t digest = 0; /* of every item's type, name and value, in order */
	double seconds = 0;
};

/* Parses once, in memory of its own: the process's heap is left as fresh as it was. */
parse_figures inspect(const document &d);

/* LABEL-fresh and LABEL-aged. The subjects are glibc, mimalloc, jemalloc, tenure-arena and floor; each
 * compares the tree that it builds with `expected` before it is timed. Every turn begins with a
 * document that does not count: it brings back what the other subjects pushed out of the caches. */
std::vector<workload> cjson_workloads(const document &d, const parse_figures &expected);

/* Of a process that parses and drops the document up to 100 times on one subject, and does nothing else
 * (where the heap is aged: but age it). */
struct footprint {
	size_t peak_rss_bytes = 0;
	uint64_t first_faults = 0; /* page faults of the first document */
};
footprint cjson_footprint(
	const document &d, const parse_figures &expected, const std::string &subject, bool aged);

/* Name and version of the allocators that are compared. */
std::string allocator_versions();

/* Debian's iso-codes: 6 KB and 875 KB. */
constexpr const char *small_document = "/usr/share/iso-codes/json/iso_3166-3.json";
constexpr const char *large_document = "/usr/share/iso-codes/json/iso_639-3.json";

}
#endif
