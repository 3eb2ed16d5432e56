/* bench/harness/report.cpp: the rows as JSON for programs and as a table for people. */
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "harness/harness.h"

namespace bench {

static void write_row(FILE *f, const row &r) {
	std::fprintf(f, "{\"workload\": \"%s\", \"subject\": \"%s\", \"threads\": %u, \"ns_per_op\": %.9g",
		r.workload.c_str(), r.subject.c_str(), r.threads, r.ns_per_op);
	for (const auto &[name, value] : r.fields)
		std::fprintf(f, ", \"%s\": %.9g", name.c_str(), value);
	std::fprintf(f, ", \"ratio\": {");
	const char *separator = "";
	for (const auto &[peer, q] : r.ratio) {
		std::fprintf(f, "%s\"%s\": {\"median\": %.5g, \"low\": %.5g, \"high\": %.5g}", separator,
			peer.c_str(), q.median, q.low, q.high);
		separator = ", ";
	}
	std::fprintf(f, "}}");
}

void write_json(const std::vector<row> &rows, const std::string &path) {
	std::filesystem::path to(path);
	if (to.has_parent_path())
		std::filesystem::create_directories(to.parent_path());
	FILE *f = std::fopen(path.c_str(), "w");
	if (f == nullptr) {
		std::perror(path.c_str());
		std::exit(2);
	}
	for (size_t i = 0; i < rows.size(); i++) {
		std::fputs(i == 0 ? "[\n" : ",\n", f);
		write_row(f, rows[i]);
	}
	std::fputs("\n]\n", f);
	std::fclose(f);
}

static bool is_ours(const std::string &subject) {
	return subject.compare(0, 6, "tenure") == 0;
}

static std::string title(const row &r) {
	return r.threads == 1 ? r.workload : r.workload + " @" + std::to_string(r.threads);
}

static void print_ratio(const row &r, const char *peer) {
	auto q = r.ratio.find(peer);
	if (q == r.ratio.end())
		std::printf("  %24s", "");
	else
		std::printf("  %7.4f [%6.4f, %6.4f]", q->second.median, q->second.low, q->second.high);
}

static void print_row(const row &r) {
	std::printf("  %-22s %10.3f", r.subject.c_str(), r.ns_per_op);
	print_ratio(r, "glibc");
	print_ratio(r, "floor");
	auto bytes = r.fields.find("bytes_per_object");
	if (bytes != r.fields.end())
		std::printf("  %5.0f B/object", bytes->second);
	auto tail = r.fields.find("p999_ns");
	if (tail != r.fields.end())
		std::printf("  p50 %.0f  p99 %.0f  p99.9 %.0f  max %.0f ns", r.fields.at("p50_ns"),
			r.fields.at("p99_ns"), tail->second, r.fields.at("max_ns"));
	for (const char *share : {"overhead_ratio", "committed_share"})
		if (auto found = r.fields.find(share); found != r.fields.end())
			std::printf("  %s %.4f", share, found->second);
	std::printf("\n");
}

/* Peers faster than the subject: the whole interval above 1, the median by more than 2 %. */
static std::string losses(const row &r) {
	std::string text;
	for (const auto &[peer, q] : r.ratio) {
		if (peer == "floor" || is_ours(peer) || q.low <= 1 || q.median <= 1.02)
			continue;
		char one[80];
		std::snprintf(one, sizeof one, "%s%s %.3g", text.empty() ? "" : ", ", peer.c_str(), q.median);
		text += one;
	}
	return text;
}

static void print_losses(const std::vector<row> &rows) {
	std::printf("\nwhere Tenure is slower, and how many times (the whole interval above 1, by more\n"
				"than 2 %%):\n");
	bool any = false;
	for (const row &r : rows) {
		std::string text = is_ours(r.subject) ? losses(r) : "";
		if (text.empty())
			continue;
		std::printf("  %-24s %-22s %s\n", title(r).c_str(), r.subject.c_str(), text.c_str());
		any = true;
	}
	if (!any)
		std::printf("  nowhere in this run\n");
}

void print_table(const std::vector<row> &rows) {
	std::string workload;
	for (const row &r : rows) {
		if (title(r) != workload)
			std::printf("\n%-24s %10s  %-24s  %s\n", title(r).c_str(), "ns/op",
				"of glibc's time [95 %]", "of the floor's");
		workload = title(r);
		print_row(r);
	}
	print_losses(rows);
}

}
