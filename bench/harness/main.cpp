/* bench/harness/main.cpp: tenure-bench FAMILY [--rounds N] [--out FILE] [--only PART] */
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "harness/harness.h"

static int usage() {
	std::fprintf(stderr, "usage: tenure-bench FAMILY [--rounds N] [--out FILE] [--only PART]\n"
						 "       tenure-bench --list FAMILY\n"
						 "       tenure-bench --count WORKLOAD SUBJECT REPEATS\n"
						 "FAMILY is one of:");
	for (const std::string &name : bench::family_names())
		std::fprintf(stderr, " %s", name.c_str());
	std::fprintf(stderr,
		"\nWrites build/bench/FAMILY.json unless --out says otherwise; --only runs the workloads\n"
		"with PART in their name; --rounds is at least 51 for a result worth showing.\n");
	return 2;
}

static bool is_family(const std::string &name) {
	for (const std::string &known : bench::family_names())
		if (known == name)
			return true;
	return false;
}

/* count.py can count only the main thread of one process. */
static bool is_counted(const bench::workload &w) {
	return w.threads == 1 && !w.all_cpus && !w.alone;
}

static int list(const std::string &family) {
	for (const bench::workload &w : bench::family_workloads(family))
		for (const bench::subject &s : is_counted(w) ? w.subjects : std::vector<bench::subject>())
			std::printf("%s %s %.17g\n", w.name.c_str(), s.name.c_str(), w.ops);
	return 0;
}

/* Callgrind collects in this function only. */
extern "C" __attribute__((noinline)) uint64_t tenure_bench_counted(
	bench::contestant *it, size_t repeats) {
	return it->run(repeats);
}

static int count(const std::string &workload, const std::string &subject, size_t repeats) {
	for (const std::string &family : bench::family_names())
		for (const bench::workload &w : bench::family_workloads(family))
			for (const bench::subject &s : w.subjects)
				if (w.name == workload && s.name == subject && is_counted(w)) {
					if (w.setup)
						w.setup();
					std::unique_ptr<bench::contestant> it = s.make();
					it->run(repeats);
					tenure_bench_counted(it.get(), repeats);
					return 0;
				}
	return usage();
}

static int run(const std::string &family, const bench::run_options &options, const std::string &out) {
	std::vector<bench::row> rows;
	int failed = 0;
	for (const bench::workload &w : bench::family_workloads(family)) {
		if (w.name.find(options.only) == std::string::npos)
			continue;
		std::vector<bench::row> more = bench::run_workload(w, options);
		failed |= more.empty();
		rows.insert(rows.end(), more.begin(), more.end());
	}
	bench::print_table(rows);
	bench::write_json(rows, out);
	std::printf("\n%s\n", out.c_str());
	return failed;
}

int main(int argc, char **argv) {
	bench::reserve_static_tls(argv);
	bench::require_plain_malloc();
	if (argc == 3 && std::strcmp(argv[1], "--list") == 0 && is_family(argv[2]))
		return list(argv[2]);
	if (argc == 5 && std::strcmp(argv[1], "--count") == 0)
		return count(argv[2], argv[3], std::strtoull(argv[4], nullptr, 10));
	if (argc < 2 || argc % 2 != 0 || !is_family(argv[1]))
		return usage();
	bench::run_options options;
	std::string out = std::string("build/bench/") + argv[1] + ".json";
	for (int i = 2; i < argc; i += 2) {
		if (std::strcmp(argv[i], "--rounds") == 0)
			options.rounds = std::strtoull(argv[i + 1], nullptr, 10);
		else if (std::strcmp(argv[i], "--out") == 0)
			out = argv[i + 1];
		else if (std::strcmp(argv[i], "--only") == 0)
			options.only = argv[i + 1];
		else
			return usage();
	}
	if (options.rounds == 0)
		return usage();
	bench::pin();
	return run(argv[1], options, out);
}
