/* bench/demo.cpp: tenure-demo [FILE.json]: what does an arena per document do for a JSON parser? */
#include <cjson/cJSON.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>

#include "cjson.h"

using bench::interval;
using bench::row;

static constexpr size_t largest_document = 16u << 20;
static const char *const results = "build/demo/demo.json";

static const char *const peers[] = {"glibc", "mimalloc", "jemalloc", "floor"};

enum { exit_usage = 2, exit_damaged = 3 };

static int refuse(int code, const std::string &file, const std::string &why) {
	std::fprintf(stderr, "tenure-demo: %s: %s\n", file.c_str(), why.c_str());
	return code;
}

/* ---- the documents ---- */

struct input {
	bench::document document;
	bench::parse_figures figures;
};

static std::string base_name(const std::string &path) {
	return path.substr(path.find_last_of('/') + 1);
}

static std::string label_of(const std::string &path) {
	std::string label = base_name(path).substr(0, 40);
	for (char &c : label)
		if (std::strchr("._-", c) == nullptr && !std::isalnum(static_cast<unsigned char>(c)))
			c = '_';
	return label;
}

static std::string error_text(const bench::document &d, size_t at) {
	const std::string &text = d.text;
	auto begin = text.begin(), end = begin + static_cast<ptrdiff_t>(std::min(at, text.size()));
	size_t line = 1 + static_cast<size_t>(std::count(begin, end, '\n'));
	size_t start = text.rfind('\n', at == 0 ? 0 : at - 1);
	size_t column = at == 0 ? 1 : start == std::string::npos ? at + 1 : at - start;
	std::string where = "byte " + std::to_string(at) + " (line " + std::to_string(line) + ", column " +
		std::to_string(column) + ")";
	if (at >= text.size())
		return "not a complete JSON document: it ends at " + where;
	return "not a JSON document that libcjson accepts: it stops at " + where;
}

/* Reads and checks one file; 0, or the exit code after the reason has been printed. */
static int load(const std::string &path, input &in) {
	struct stat s;
	if (stat(path.c_str(), &s) != 0)
		return refuse(exit_usage, path, std::strerror(errno));
	if (S_ISDIR(s.st_mode))
		return refuse(exit_usage, path, "is a directory, not a JSON document");
	if (static_cast<size_t>(s.st_size) > largest_document)
		return refuse(exit_usage, path, std::to_string(s.st_size) + " bytes; the demo takes at most " +
			std::to_string(largest_document) + ", to end within a minute");
	errno = 0;
	in.document = {label_of(path), bench::read_file(path)};
	if (errno != 0)
		return refuse(exit_usage, path, std::strerror(errno));
	if (in.document.text.empty())
		return refuse(exit_damaged, path, "is empty: byte 0 should begin a JSON document");
	in.figures = bench::inspect(in.document);
	if (!in.figures.parsed)
		return refuse(exit_damaged, path, error_text(in.document, in.figures.error_at));
	return 0;
}

/* ---- the table ---- */

/* A time with a unit that suits the document: microseconds, or milliseconds from 1 ms. */
struct unit {
	const char *name;
	double ns;
};

static unit unit_for(double ns) {
	return ns < 1e3 ? unit{"ns", 1} : ns < 1e6 ? unit{"us", 1e3} : unit{"ms", 1e6};
}

static void print_time(const row &r, const char *field, const unit &u) {
	auto value = r.fields.find(field);
	if (value == r.fields.end())
		std::printf(" %8s", "-");
	else
		std::printf(" %8.2f", value->second / u.ns);
}

static void print_ratio(const row &r) {
	auto q = r.ratio.find("glibc");
	if (q == r.ratio.end())
		std::printf("  %-20s", "1");
	else
		std::printf("  %5.3f [%5.3f, %5.3f]", q->second.median, q->second.low, q->second.high);
}

/* The part of a subject's time that the floor does not need. */
static void print_share(const row &r) {
	auto q = r.ratio.find("floor");
	if (q == r.ratio.end())
		std::printf(" %8s", "-");
	else
		std::printf(" %6.0f %%", 100 * (1 - 1 / q->second.median));
}

static void print_memory(const row &r) {
	std::printf(" %9.2f", r.fields.at("page_faults"));
	auto peak = r.fields.find("peak_rss_bytes");
	if (peak == r.fields.end())
		std::printf(" %9s", "-");
	else
		std::printf(" %6.0f KB", peak->second / 1024);
}

static void print_row(const row &r, const unit &u) {
	std::printf("  %-13s %8.2f", r.subject.c_str(), r.ns_per_op / u.ns);
	print_ratio(r);
	print_share(r);
	for (const char *field : {"p50_ns", "p99_ns", "p999_ns", "max_ns"})
		print_time(r, field, u);
	print_memory(r);
	std::printf("\n");
}

static void print_workload(const char *heap, const std::vector<row> &rows) {
	unit u = unit_for(rows[0].ns_per_op);
	std::printf("\n  %-13s %5s/doc  %-20s %8s %8s %8s %8s %8s %9s %9s\n", heap, u.name,
		"of glibc [95 %]", "alloc.", "p50", "p99", "p99.9", "max", "faults", "peak RSS");
	for (const row &r : rows)
		print_row(r, u);
}

static void print_document(const input &in) {
	const bench::parse_figures &f = in.figures;
	std::printf("\n%s: %zu bytes of JSON; one parse makes %zu items with %zu allocations of %.0f bytes "
		"on average, %.0f KB in all\n", in.document.label.c_str(), in.document.text.size(), f.items, f.blocks,
		static_cast<double>(f.bytes) / static_cast<double>(f.blocks), static_cast<double>(f.bytes) / 1024);
}

static void print_legend() {
	std::printf(
		"\n"
		"  us/doc     time to parse one document and drop it, the median of all rounds; the five take turns\n"
		"  of glibc   the quotient of two times of one round: its median over the rounds and 95 %% interval\n"
		"  alloc.     the allocator's share: the part of the time that the floor does not need. The floor is\n"
		"             a cursor that moves, unchecked, and drops a document by moving back\n"
		"  p50...max  of single documents; p99.9 from 1000 documents on\n"
		"  faults     page faults per document, after the first ones\n"
		"  peak RSS   what one document adds to the memory of a process of its own (KB are 1024 bytes); in an\n"
		"             aged heap it may lie in holes that the process pays for already\n"
		"  aged       600,000 blocks of 16 to 512 bytes, 60 %% of them freed in random order, in each of the\n"
		"             heaps\n");
}

/* ---- the conclusion ---- */

using workload_rows = std::vector<row>;

static const row *find(const workload_rows &rows, const std::string &subject) {
	for (const row &r : rows)
		if (r.subject == subject)
			return &r;
	return nullptr;
}

static void print_arena_ratio(const row &arena, const char *peer) {
	auto q = arena.ratio.find(peer);
	if (q == arena.ratio.end())
		std::printf("  %-20s", "not installed");
	else
		std::printf("  %5.3f [%5.3f, %5.3f]", q->second.median, q->second.low, q->second.high);
}

static void print_arena_ratios(const std::vector<workload_rows> &all) {
	std::printf("\n%-26s", "the arena's time, of that of");
	for (const char *peer : peers)
		std::printf("  %-20s", peer);
	std::printf("\n");
	for (const workload_rows &rows : all) {
		std::printf("  %-26s", rows[0].workload.c_str());
		for (const char *peer : peers)
			print_arena_ratio(*find(rows, "tenure-arena"), peer);
		std::printf("\n");
	}
}

/* The faster of the allocators that a program can have by preloading them, or nothing. */
static const row *best_preload(const workload_rows &rows) {
	const row *best = nullptr;
	for (const char *name : {"mimalloc", "jemalloc"}) {
		const row *r = find(rows, name);
		if (r != nullptr && (best == nullptr || r->ns_per_op < best->ns_per_op))
			best = r;
	}
	return best;
}

/* The least and the most of a percentage over all workloads. */
struct range {
	double least = 1e9, most = -1e9;

	void add(double percent) {
		least = std::min(least, percent);
		most = std::max(most, percent);
	}

	std::string text() const {
		std::string low = whole(least), high = whole(most);
		return (low == high ? low : low + " to " + high) + " %";
	}

private:
	static std::string whole(double percent) {
		return std::to_string(std::lround(percent));
	}
};

/* What each saves, in per cent of the other's time, and where the arena does not. */
struct verdict {
	range of_glibc, of_preload, preload_of_glibc, above_floor;
	bool has_preload = false;
	std::string losses;
};

static void add_losses(verdict &v, const workload_rows &rows, const row &arena) {
	for (const auto &[peer, q] : arena.ratio)
		if (peer != "floor" && q.low > 1) {
			char text[128];
			std::snprintf(text, sizeof text, "%s%.1f %% slower than %s at %s", v.losses.empty() ? "" : ", ",
				100 * (q.median - 1), peer.c_str(), rows[0].workload.c_str());
			v.losses += text;
		}
}

static verdict judge(const std::vector<workload_rows> &all) {
	verdict v;
	for (const workload_rows &rows : all) {
		const row &arena = *find(rows, "tenure-arena");
		const row *preload = best_preload(rows);
		v.of_glibc.add(100 * (1 - arena.ratio.at("glibc").median));
		v.above_floor.add(100 * (arena.ratio.at("floor").median - 1));
		if (preload != nullptr) {
			v.has_preload = true;
			v.of_preload.add(100 * (1 - arena.ratio.at(preload->subject).median));
			v.preload_of_glibc.add(100 * (1 - preload->ratio.at("glibc").median));
		}
		add_losses(v, rows, arena);
	}
	return v;
}

/* Below 5 % a change of the program is not worth its review; that line is drawn by hand. */
static const char *advice(const verdict &v) {
	if (!v.has_preload)
		return "an arena pays here, but without mimalloc or jemalloc beside it this run cannot say how much "
		       "of that preloading would have given for nothing";
	if (v.of_preload.most < 5)
		return "preload the better of the two and leave the program as it is";
	if (v.of_preload.least < 5)
		return "preload first, and change the program only where your case is like the better end";
	return "an arena is worth two hooks and a thread-local pointer where documents die whole";
}

static void print_conclusion(const verdict &v) {
	std::printf("\nConclusion: an arena per document saves %s of glibc's time", v.of_glibc.text().c_str());
	if (v.has_preload)
		std::printf(", and %s of the time of the better of mimalloc and jemalloc, which by itself saves %s "
			"of glibc's without any change to the program",
			v.of_preload.text().c_str(), v.preload_of_glibc.text().c_str());
	std::printf("; the floor is %s below it; so %s. ", v.above_floor.text().c_str(), advice(v));
	std::printf("It loses in time: %s.\n", v.losses.empty() ? "nowhere in this run" : v.losses.c_str());
}

/* ---- the run ---- */

/* Four workloads in less than a minute: so many rounds as fit 8 seconds, at most 301. */
static size_t rounds_for(const bench::parse_figures &f) {
	double round = 5 * std::max(0.002, 1.5 * f.seconds);
	return static_cast<size_t>(std::clamp(8 / round, 9.0, 301.0));
}

static std::vector<workload_rows> measure(const std::vector<input> &inputs) {
	std::vector<workload_rows> all;
	for (const input &in : inputs) {
		print_document(in);
		for (const bench::workload &w : bench::cjson_workloads(in.document, in.figures)) {
			std::fprintf(stderr, "tenure-demo: %zu of %zu: %s ...\n", all.size() + 1, 2 * inputs.size(),
				w.name.c_str());
			all.push_back(bench::run_workload(w, {rounds_for(in.figures), ""}));
			if (all.back().empty())
				std::exit(1);
			print_workload(all.size() % 2 == 1 ? "fresh heap" : "aged heap", all.back());
			std::fflush(stdout);
		}
	}
	return all;
}

static int run(const std::vector<std::string> &paths) {
	std::vector<input> inputs(paths.size());
	for (size_t i = 0; i < paths.size(); i++)
		if (int code = load(paths[i], inputs[i]))
			return code;
	std::printf("libcjson %s, unmodified, through cJSON_InitHooks, on %s\n", cJSON_Version(),
		bench::allocator_versions().c_str());
	std::vector<workload_rows> all = measure(inputs);
	print_legend();
	print_arena_ratios(all);
	print_conclusion(judge(all));
	std::vector<row> rows;
	for (const workload_rows &more : all)
		rows.insert(rows.end(), more.begin(), more.end());
	bench::write_json(rows, results);
	std::printf("\nAll figures: %s\n", results);
	return 0;
}

int main(int argc, char **argv) {
	bench::require_plain_malloc();
	if (argc > 2 || (argc == 2 && (argv[1][0] == '-' || argv[1][0] == '\0'))) {
		std::fprintf(stderr, "usage: tenure-demo [FILE.json]\n");
		return exit_usage;
	}
	try {
		bench::pin();
		return run(argc == 2 ? std::vector<std::string>{argv[1]}
		                     : std::vector<std::string>{bench::small_document, bench::large_document});
	} catch (const std::exception &e) {
		std::fprintf(stderr, "tenure-demo: %s\n", e.what());
		return 1;
	}
}
