/* bench/demo/cjson.h: unmodified libcjson parses a document on five allocators and drops it whole.
 *
 * The demo and the family `arena` share it. */
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

/* Figures of one parse: its tree, and its requests to an allocator. */
struct parse_figures {
	bool parsed = false;
	size_t error_at = 0; /* byte offset, when it did not parse */
	size_t items = 0, blocks = 0, bytes = 0;
	uint64_t digest = 0; /* of every item's type, name and value, in order */
	double seconds = 0;
};

/* Parses in memory of its own; the process's heap stays fresh. */
parse_figures inspect(const document &d);

/* LABEL-fresh and LABEL-aged. The subjects are glibc, mimalloc, jemalloc, tenure-arena and floor; each
 * compares the tree that it builds with `expected` before it is timed. Every turn begins with an
 * unmeasured document, which refills the caches after the other subjects. */
std::vector<workload> cjson_workloads(const document &d, const parse_figures &expected);

/* Memory of a process that ages its heap when asked to, then parses and drops the document up to 100
 * times on one subject. */
struct footprint {
	size_t peak_rss_bytes = 0;
	uint64_t first_faults = 0; /* page faults of the first document */
};
footprint cjson_footprint(
	const document &d, const parse_figures &expected, const std::string &subject, bool aged);

/* Names and versions of the compared allocators. */
std::string allocator_versions();

/* Debian's iso-codes: 6 KB and 875 KB. */
constexpr const char *small_document = "/usr/share/iso-codes/json/iso_3166-3.json";
constexpr const char *large_document = "/usr/share/iso-codes/json/iso_639-3.json";

}
#endif
