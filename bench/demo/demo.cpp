/* bench/demo/demo.cpp: tenure-demo [FILE.json]: the gain of an arena per document for a JSON parser. */
#include <cjson/cJSON.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <sstream>

#include "demo/cjson.h"
#include "harness/file.h"

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

/* Reads and checks one file; returns 0, or the exit code after printing the reason. */
static int load(const std::string &path, input &in) {
	struct stat s;
	if (stat(path.c_str(), &s) != 0)
		return refuse(exit_usage, path, std::strerror(errno));
	if (S_ISDIR(s.st_mode))
		return refuse(exit_usage, path, "is a directory, not a JSON document");
	errno = 0;
	in.document = {label_of(path), bench::read_file(path, largest_document)};
	if (errno != 0)
		return refuse(exit_usage, path, std::strerror(errno));
	if (in.document.text.size() > largest_document)
		return refuse(exit_usage, path,
			"has more than " + std::to_string(largest_document) +
				" bytes, the most that the demo takes, to end within a minute");
	if (in.document.text.empty())
		return refuse(exit_damaged, path, "is empty: byte 0 should begin a JSON document");
	in.figures = bench::inspect(in.document);
	if (!in.figures.parsed)
		return refuse(exit_damaged, path, error_text(in.document, in.figures.error_at));
	return 0;
}

/* ---- the table ---- */

/* A time with a unit that suits the document. */
struct unit {
	const char *name;
	double ns;
};

static unit unit_for(double ns) {
	return ns < 1e3 ? unit{"ns", 1} : ns < 1e6 ? unit{"us", 1e3} : unit{"ms", 1e6};
}

static int decimals(double value) {
	return value < 10 ? 2 : value < 100 ? 1 : 0;
}

static void print_time(const row &r, const char *field, const unit &u) {
	auto value = r.fields.find(field);
	if (value == r.fields.end())
		std::printf(" %6s", "-");
	else
		std::printf(" %6.*f", decimals(value->second / u.ns), value->second / u.ns);
}

static void print_ratio(const row &r, const char *peer) {
	auto q = r.ratio.find(peer);
	if (q == r.ratio.end())
		std::printf("  %-20s", "1");
	else
		std::printf("  %5.3f [%5.3f, %5.3f]", q->second.median, q->second.low, q->second.high);
}

/* The part of a subject's time that the floor does not need. */
static void print_share(const row &r) {
	auto q = r.ratio.find("floor");
	if (q == r.ratio.end())
		std::printf(" %6s", "-");
	else
		std::printf(" %4.0f %%", 100 * (1 - 1 / q->second.median));
}

static void print_row(const row &r, const unit &u) {
	std::printf("  %-12s %6.*f", r.subject.c_str(), decimals(r.ns_per_op / u.ns), r.ns_per_op / u.ns);
	print_ratio(r, "glibc");
	print_share(r);
	for (const char *field : {"p50_ns", "p99_ns", "p999_ns", "max_ns"})
		print_time(r, field, u);
	std::printf(" %6.0f %6.2f %7.2f\n", r.fields.at("first_page_faults"), r.fields.at("page_faults"),
		r.fields.at("peak_rss_bytes") / (1 << 20));
}

static void print_workload(const char *heap, const std::vector<row> &rows) {
	unit u = unit_for(rows[0].ns_per_op);
	std::printf("\n  %-12s %6s  %-20s %6s %27s %13s %7s\n", "", "time", "of glibc's", "alloc.",
		"---- of single documents ---", "page faults", "peak");
	std::printf("  %-12s %6s  %-20s %6s %6s %6s %6s %6s %6s %6s %7s\n", heap, u.name, "time [95 %]",
		"share", "p50", "p99", "p99.9", "max", "first", "later", "MiB");
	for (const row &r : rows)
		print_row(r, u);
}

static void print_document(const input &in) {
	const bench::parse_figures &f = in.figures;
	double bytes = static_cast<double>(f.bytes);
	std::printf("\n%s, %zu B: a parse makes %zu item%s with %zu allocations of %.0f B on average, ",
		in.document.label.c_str(), in.document.text.size(), f.items, f.items == 1 ? "" : "s", f.blocks,
		bytes / static_cast<double>(f.blocks));
	std::printf("%.1f KiB in all\n", bytes / 1024);
}

static void print_legend() {
	std::printf("\n%s",
		"time          to parse one document and drop it: the median of all rounds, in which the five\n"
		"              take turns (each warms the caches with a document that does not count)\n"
		"of glibc's    the quotient of two times of the same round: its median and 95 % interval\n"
		"alloc. share  the part of the time that the floor does not need; the floor moves a cursor,\n"
		"              unchecked, and drops a document by moving it back. What a colder cache costs\n"
		"              the parser is part of the share\n"
		"p99.9         from 1000 documents on\n"
		"page faults   of the first document of a process, and of each one after the warm-up\n"
		"peak          resident memory of a process that does only this, the aged heap included\n"
		"fresh heap    nothing was allocated before the documents, which age it themselves\n"
		"aged heap     600,000 blocks of 16 to 512 bytes were allocated from each of the three heaps\n"
		"              and 60 % of them freed in random order: harsher than most programs are, so\n"
		"              yours is in between\n");
}

/* ---- the conclusion ---- */

using workload_rows = std::vector<row>;

static const row *find(const workload_rows &rows, const std::string &subject) {
	for (const row &r : rows)
		if (r.subject == subject)
			return &r;
	return nullptr;
}

static void print_arena_ratios(const std::vector<workload_rows> &all) {
	std::printf("\n%-26s", "the arena's time, of that of");
	for (const char *peer : peers)
		std::printf("  %-20s", peer);
	std::printf("\n");
	for (const workload_rows &rows : all) {
		std::printf("  %-26s", rows[0].workload.c_str());
		for (const char *peer : peers)
			print_ratio(*find(rows, "tenure-arena"), peer);
		std::printf("\n");
	}
}

/* The faster of the two allocators that a program can preload. */
static const row &best_preload(const workload_rows &rows) {
	const row &a = *find(rows, "mimalloc"), &b = *find(rows, "jemalloc");
	return a.ns_per_op <= b.ns_per_op ? a : b;
}

/* The least and the greatest of a percentage over some workloads. */
struct range {
	double least = 1e9, most = -1e9;

	void add(double percent) {
		least = std::min(least, percent);
		most = std::max(most, percent);
	}

	std::string text() const {
		std::string low = std::to_string(std::lround(least)), high = std::to_string(std::lround(most));
		return (low == high ? low : low + " to " + high) + " %";
	}
};

/* Time saved on one kind of heap, in per cent of the other's time. */
struct savings {
	range of_glibc, of_preload, preload_of_glibc, above_floor;
	bool sure = true; /* no interval of of_preload reaches 0 */
};

static savings compare(const std::vector<workload_rows> &all, size_t first) {
	savings s;
	for (size_t i = first; i < all.size(); i += 2) {
		const row &arena = *find(all[i], "tenure-arena"), &preload = best_preload(all[i]);
		const interval &q = arena.ratio.at(preload.subject);
		s.of_glibc.add(100 * (1 - arena.ratio.at("glibc").median));
		s.of_preload.add(100 * (1 - q.median));
		s.sure = s.sure && (q.low > 1 || q.high < 1);
		s.preload_of_glibc.add(100 * (1 - preload.ratio.at("glibc").median));
		s.above_floor.add(100 * (arena.ratio.at("floor").median - 1));
	}
	return s;
}

static void add_loss(std::string &losses, const char *format, double amount, const std::string &peer,
	const std::string &workload) {
	char text[160];
	std::snprintf(text, sizeof text, format, amount, peer.c_str(), workload.c_str());
	losses += (losses.empty() ? "" : ", ") + std::string(text);
}

/* Lists where the arena is slower than an allocator by the whole interval, or needs more memory. */
static std::string losses_of(const std::vector<workload_rows> &all) {
	std::string losses;
	for (const workload_rows &rows : all) {
		const std::string &name = rows[0].workload;
		const row &arena = *find(rows, "tenure-arena");
		double peak = arena.fields.at("peak_rss_bytes");
		for (const auto &[peer, q] : arena.ratio) {
			double more = peak - find(rows, peer)->fields.at("peak_rss_bytes");
			if (peer != "floor" && q.low > 1)
				add_loss(losses, "%.1f %% slower than %s (%s)", 100 * (q.median - 1), peer, name);
			if (peer != "floor" && more > 0.02 * peak)
				add_loss(losses, "%.1f MiB more than %s (%s)", more / (1 << 20), peer, name);
		}
	}
	return losses;
}

/* Below 5 % a change of the program is not worth its review; the limit is a judgement. */
static const char *advice(const savings &fresh, const savings &aged) {
	if (!fresh.sure || !aged.sure)
		return "measure again on a quiet machine before changing the program";
	if (std::max(fresh.of_preload.most, aged.of_preload.most) < 5)
		return "preload the better of the two and leave the program as it is";
	if (std::min(fresh.of_preload.least, aged.of_preload.least) < 5)
		return "preload first, and change the program only where your case is like the better end";
	return "an arena is worth two hooks and a thread-local pointer where documents are dropped whole";
}

static void print_wrapped(const std::string &text) {
	size_t column = 0;
	std::istringstream words(text);
	for (std::string word; words >> word;) {
		if (column != 0 && word[0] != '%' && column + 1 + word.size() > 100) {
			std::printf("\n");
			column = 0;
		}
		std::printf("%s%s", column == 0 ? "" : " ", word.c_str());
		column += word.size() + (column == 0 ? 0 : 1);
	}
	std::printf("\n");
}

static std::string over_preload(const savings &s) {
	return s.of_preload.text() + (s.sure ? "" : " (within the noise of this run)");
}

static void print_conclusion(const std::vector<workload_rows> &all) {
	savings fresh = compare(all, 0), aged = compare(all, 1);
	range floor = fresh.above_floor;
	floor.add(aged.above_floor.least);
	floor.add(aged.above_floor.most);
	std::string losses = losses_of(all);
	std::printf("\n");
	print_wrapped(
		"Conclusion: " + std::string(advice(fresh, aged)) + ": an arena for each saves " +
		fresh.of_glibc.text() + " of glibc's time on a fresh heap and " + aged.of_glibc.text() +
		" on an aged one, but the better of mimalloc and jemalloc, which is had by preloading it and "
		"changes nothing in the program, already saves " +
		fresh.preload_of_glibc.text() + " and " + aged.preload_of_glibc.text() +
		", and over that one the arena saves " + over_preload(fresh) + " and " + over_preload(aged) +
		". The arena takes " + floor.text() + " more than the floor. " +
		"It loses: " + (losses.empty() ? "nowhere in this run" : losses) + ".");
}

/* ---- the run ---- */

/* Four workloads take half a minute; an interval needs at least 12 rounds. */
static size_t rounds_for(const bench::parse_figures &f) {
	return static_cast<size_t>(std::clamp(0.4 / f.seconds, 12.0, 200.0));
}

static workload_rows measure(const input &in, const bench::workload &w, bool aged) {
	workload_rows rows = bench::run_workload(w, {rounds_for(in.figures), ""});
	if (rows.empty())
		std::exit(1);
	for (row &r : rows) {
		bench::footprint f = bench::cjson_footprint(in.document, in.figures, r.subject, aged);
		r.fields["peak_rss_bytes"] = static_cast<double>(f.peak_rss_bytes);
		r.fields["first_page_faults"] = static_cast<double>(f.first_faults);
	}
	print_workload(aged ? "aged heap" : "fresh heap", rows);
	return rows;
}

/* For each document the rows on a fresh heap, then the rows on an aged one. */
static std::vector<workload_rows> measure_all(const std::vector<input> &inputs) {
	std::vector<workload_rows> all;
	for (const input &in : inputs) {
		print_document(in);
		for (const bench::workload &w : bench::cjson_workloads(in.document, in.figures)) {
			std::fflush(stdout);
			std::fprintf(stderr, "tenure-demo: %zu of %zu: %s ...\n", all.size() + 1, 2 * inputs.size(),
				w.name.c_str());
			all.push_back(measure(in, w, all.size() % 2 == 1));
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
	std::vector<workload_rows> all = measure_all(inputs);
	print_legend();
	print_arena_ratios(all);
	print_conclusion(all);
	std::vector<row> rows;
	for (const workload_rows &more : all)
		rows.insert(rows.end(), more.begin(), more.end());
	bench::write_json(rows, results);
	std::printf("\nAll figures: %s\n", results);
	return 0;
}

int main(int argc, char **argv) {
	bench::reserve_static_tls(argv);
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
