/* bench/model/main.cpp: tenure-model. */
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "harness/harness.h"
#include "model/workloads.h"

namespace model {
namespace {

const char usage[] =
	"usage: tenure-model [--costs FILE] [--set COST=NS]... [--threads N,N,...] [--only WORKLOAD]\n"
	"                    [--subject NAME] [--warm-microseconds N] [--microseconds N] [--seed N]\n"
	"                    [--json FILE]\n";

struct arguments {
	costs machine;
	std::vector<unsigned> threads{1, 2, 4, 8, 16, 32, 64, 128};
	std::string only, subject, json = "build/bench/model.json";
	double warm_us = 60, measured_us = 500; /* the warm-up for each thread, as they grow in turn */
	uint64_t seed = 1;
};

[[noreturn]] void refuse() {
	std::fputs(usage, stderr);
	std::exit(2);
}

double number_of(const char *text) {
	char *end;
	double value = std::strtod(text, &end);
	if (end == text || *end != '\0' || !(value >= 0 && value < 1e9))
		refuse();
	return value;
}

std::vector<unsigned> threads_of(const char *text) {
	std::vector<unsigned> all;
	for (std::string rest = text; !rest.empty();) {
		size_t comma = rest.find(',');
		double count = number_of(rest.substr(0, comma).c_str());
		if (count < 1 || count > most_cores)
			refuse();
		all.push_back(static_cast<unsigned>(count));
		rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
	}
	return all;
}

void set_cost(costs &c, const std::string &text) {
	size_t equals = text.find('=');
	double *cost = equals == std::string::npos ? nullptr : find_cost(c, text.substr(0, equals));
	if (cost == nullptr)
		refuse();
	*cost = number_of(text.substr(equals + 1).c_str());
}

arguments read_arguments(int argc, char **argv) {
	arguments a;
	if (argc % 2 == 0)
		refuse();
	for (int i = 1; i < argc; i += 2) {
		std::string option = argv[i];
		const char *value = argv[i + 1];
		if (option == "--costs")
			read_costs(a.machine, value);
		else if (option == "--set")
			set_cost(a.machine, value);
		else if (option == "--threads")
			a.threads = threads_of(value);
		else if (option == "--only")
			a.only = value;
		else if (option == "--subject")
			a.subject = value;
		else if (option == "--microseconds")
			a.measured_us = number_of(value);
		else if (option == "--warm-microseconds")
			a.warm_us = number_of(value);
		else if (option == "--seed")
			a.seed = static_cast<uint64_t>(number_of(value));
		else if (option == "--json")
			a.json = value;
		else
			refuse();
	}
	return a;
}

bench::row run_one(const arguments &a, const std::string &workload, const std::string &name,
	unsigned threads, subject &s) {
	outcome o = measure(
		workload, s, a.machine, {threads, a.warm_us * 1000 * threads, a.measured_us * 1000, a.seed});
	bench::row r;
	r.workload = workload;
	r.subject = name;
	r.threads = threads;
	r.ns_per_op = o.cpu_ns;
	r.fields = {{"ops_per_us", o.ops_per_us}, {"fetches", o.fetches}, {"exchanges", o.exchanges},
		{"foreign", o.foreign}, {"waits", o.waits}};
	return r;
}

void print(const bench::row &r) {
	std::printf("%-16s %-22s %3u  %9.2f ns  %9.1f ops/us  %7.3f lines  %8.0f exchanges  %8.0f foreign"
				"  %8.0f waits\n",
		r.workload.c_str(), r.subject.c_str(), r.threads, r.ns_per_op, r.fields.at("ops_per_us"),
		r.fields.at("fetches"), r.fields.at("exchanges"), r.fields.at("foreign"), r.fields.at("waits"));
	std::fflush(stdout);
}

/* The costs are rows too, so that figures and costs stay together. */
void add_costs(std::vector<bench::row> &rows, const costs &c) {
	for (const auto &[name, ns] : list_costs(c)) {
		bench::row r;
		r.workload = "costs";
		r.subject = name;
		r.threads = 1;
		r.ns_per_op = ns;
		rows.push_back(r);
		std::printf("%-16s %-22s      %9.2f ns\n", "costs", name.c_str(), ns);
	}
}

int run_all(const arguments &a) {
	std::vector<bench::row> rows;
	for (const std::string &workload : workload_names())
		for (const std::string &name : subject_names())
			for (unsigned threads : a.threads) {
				bool asked =
					(a.only.empty() || a.only == workload) && (a.subject.empty() || a.subject == name);
				if (!asked || !can_run(workload, threads))
					continue;
				reset_memory();
				std::unique_ptr<subject> s = make_subject(name, a.machine, threads);
				if (s == nullptr)
					continue;
				rows.push_back(run_one(a, workload, name, threads, *s));
				print(rows.back());
			}
	if (rows.empty())
		refuse();
	add_costs(rows, a.machine);
	bench::write_json(rows, a.json);
	return 0;
}

} /* namespace */
} /* namespace model */

int main(int argc, char **argv) {
	return model::run_all(model::read_arguments(argc, argv));
}
