/* bench/harness/harness.cpp: the registry and the rounds. */
#include "harness/harness.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace bench {

struct entry {
	std::string family;
	std::vector<workload> (*workloads)();
};

static std::vector<entry> &registry() {
	static std::vector<entry> entries;
	return entries;
}

registration::registration(const char *family, std::vector<workload> (*workloads)()) {
	registry().push_back({family, workloads});
}

std::vector<std::string> family_names() {
	std::vector<std::string> names;
	for (const entry &e : registry())
		if (std::find(names.begin(), names.end(), e.family) == names.end())
			names.push_back(e.family);
	return names;
}

std::vector<workload> family_workloads(const std::string &family) {
	std::vector<workload> all;
	for (const entry &e : registry())
		if (e.family == family)
			for (workload &w : e.workloads())
				all.push_back(std::move(w));
	return all;
}

/* A subject in the rounds of one workload. */
struct player {
	std::string name;
	std::unique_ptr<contestant> it;
	size_t repeats;
	std::vector<double> ns_per_op;
};

static constexpr size_t warm_up_rounds = 3;
static constexpr int attempts = 20;
/* A longer run is interrupted on any machine in use; it counts as it is. */
static constexpr double longest_repeated_ns = 20e6;

static double fastest_of_five(contestant &it, size_t repeats) {
	uint64_t fastest = UINT64_MAX;
	for (int i = 0; i < 5; i++) {
		uint64_t from = ticks();
		it.run(repeats);
		fastest = std::min(fastest, ticks() - from);
	}
	return static_cast<double>(fastest) * ns_per_tick();
}

/* Grows in steps, so that one-time costs (first touch of pages, cold caches, new threads) do not
 * decide: a subject with too few repeats would be measured cold. */
static size_t calibrate(contestant &it, double round_ns) {
	for (double repeats = 1;;) {
		double ns = fastest_of_five(it, static_cast<size_t>(repeats));
		double wanted = std::max(1.0, repeats * round_ns / ns);
		if (wanted < repeats * 1.5)
			return static_cast<size_t>(wanted);
		repeats = std::ceil(std::min(wanted, repeats * 16));
	}
}

/* Repeats the run until no other process interrupts it; returns the number of spoilt runs. */
static size_t sample(player &p, const workload &w) {
	if (w.unmeasured != 0)
		p.it->run(w.unmeasured);
	for (size_t spoilt = 0;; spoilt++) {
		uint64_t switches = read_process().involuntary_switches;
		uint64_t took = p.it->run(p.repeats);
		double ns = static_cast<double>(took) * ns_per_tick();
		bool repeatable = spoilt < attempts && ns < longest_repeated_ns;
		bool interrupted =
			w.all_cpus ? p.it->interrupted() : read_process().involuntary_switches != switches;
		if (repeatable && interrupted)
			continue;
		p.it->accept();
		p.ns_per_op.push_back(
			static_cast<double>(took) * ns_per_tick() / (static_cast<double>(p.repeats) * w.ops));
		return spoilt;
	}
}

/* The i-th of `n` subjects in a round: rotated, and reversed in every other round. */
static size_t turn(size_t round, size_t i, size_t n) {
	size_t at = (round / 2 + i) % n;
	return round % 2 == 0 ? at : n - 1 - at;
}

static size_t play_rounds(std::vector<player> &players, const workload &w, size_t rounds) {
	size_t spoilt = 0;
	for (size_t round = 0; round < rounds; round++)
		for (size_t i = 0; i < players.size(); i++)
			spoilt += sample(players[turn(round, i, players.size())], w);
	return spoilt;
}

static interval ratio(const player &a, const player &b) {
	std::vector<double> logs;
	for (size_t i = 0; i < a.ns_per_op.size(); i++)
		logs.push_back(std::log(a.ns_per_op[i] / b.ns_per_op[i]));
	interval q = median_interval(std::move(logs));
	return {std::exp(q.median), std::exp(q.low), std::exp(q.high)};
}

static std::vector<row> summarise(const workload &w, std::vector<player> &players) {
	std::vector<row> rows;
	for (player &p : players) {
		row r;
		r.workload = w.name;
		r.subject = p.name;
		r.threads = w.threads;
		r.ops = w.ops;
		r.ns_per_op = median(p.ns_per_op);
		for (player &peer : players)
			if (&peer != &p)
				r.ratio[peer.name] = ratio(p, peer);
		if (p.it != nullptr)
			p.it->describe(r);
		rows.push_back(std::move(r));
	}
	return rows;
}

static void send_rows(FILE *out, const std::vector<row> &rows) {
	for (const row &r : rows) {
		std::fprintf(
			out, "row %s %s %u %.17g\n", r.workload.c_str(), r.subject.c_str(), r.threads, r.ns_per_op);
		for (const auto &[name, value] : r.fields)
			std::fprintf(out, "field %s %.17g\n", name.c_str(), value);
		for (const auto &[peer, q] : r.ratio)
			std::fprintf(out, "ratio %s %.17g %.17g %.17g\n", peer.c_str(), q.median, q.low, q.high);
	}
}

static std::vector<row> receive_rows(const std::string &text) {
	std::vector<row> rows;
	std::istringstream in(text);
	for (std::string word, name; in >> word;) {
		if (word == "row") {
			row r;
			in >> r.workload >> r.subject >> r.threads >> r.ns_per_op;
			rows.push_back(std::move(r));
		} else if (word == "field") {
			in >> name >> rows.back().fields[name];
		} else {
			in >> name;
			interval &q = rows.back().ratio[name];
			in >> q.median >> q.low >> q.high;
		}
	}
	return rows;
}

/* Runs `work` in a fork of this process and returns its output; empty when it fails. */
static std::string in_child(const std::function<void(FILE *)> &work) {
	int ends[2];
	if (pipe(ends) != 0)
		return {};
	std::fflush(nullptr);
	pid_t child = fork();
	if (child == 0) {
		close(ends[0]);
		FILE *out = fdopen(ends[1], "w");
		work(out);
		std::fflush(nullptr);
		_exit(0);
	}
	close(ends[1]);
	std::string text;
	char buffer[4096];
	for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;)
		text.append(buffer, static_cast<size_t>(n));
	close(ends[0]);
	int status = 1;
	if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0)
		return {};
	return text;
}

/* Growth of resident memory by one repeat, in a process that does nothing else. */
static double resident_growth(const subject &s) {
	std::string text = in_child([&](FILE *out) {
		reset_peak();
		size_t before = resident_bytes();
		s.make()->run(1);
		size_t peak = peak_resident_bytes();
		std::fprintf(out, "%zu\n", peak > before ? peak - before : 0);
	});
	return std::strtod(text.c_str(), nullptr);
}

static std::vector<double> measure_memory(const workload &w) {
	std::vector<double> growth;
	for (const subject &s : w.subjects)
		growth.push_back(w.objects > 0 ? resident_growth(s) : 0);
	return growth;
}

static void describe_memory(
	const workload &w, const std::vector<double> &growth, std::vector<row> &rows) {
	for (size_t i = 0; i < rows.size(); i++)
		if (growth[i] > 0) {
			rows[i].fields["peak_rss_bytes"] = growth[i];
			rows[i].fields["bytes_per_object"] = growth[i] / w.objects;
		}
}

static std::vector<row> play(const workload &w, size_t rounds) {
	if (w.setup)
		w.setup();
	std::vector<double> growth = measure_memory(w);
	std::vector<player> players;
	for (const subject &s : w.subjects) {
		players.push_back({s.name, s.make(), 1, {}});
		players.back().repeats =
			w.total_repeats != 0 ? (w.total_repeats + rounds - 1) / rounds
								 : std::max(w.least_repeats, calibrate(*players.back().it, w.round_ns));
	}
	for (size_t round = 0; round < warm_up_rounds; round++)
		for (player &p : players)
			p.it->run(p.repeats);
	size_t spoilt = play_rounds(players, w, rounds);
	std::vector<row> rows = summarise(w, players);
	describe_memory(w, growth, rows);
	std::fprintf(stderr, "%-24s %zu subjects, %zu rounds, %zu runs repeated after an interruption\n",
		w.name.c_str(), players.size(), rounds, spoilt);
	return rows;
}

/* One repeat of one subject in a process of its own. */
static std::vector<row> run_alone(const workload &w, const subject &s) {
	return receive_rows(in_child([&](FILE *out) {
		if (w.setup)
			w.setup();
		std::unique_ptr<contestant> it = s.make();
		row r;
		r.workload = w.name;
		r.subject = s.name;
		r.ops = w.ops;
		r.ns_per_op = static_cast<double>(it->run(1)) * ns_per_tick() / w.ops;
		it->describe(r);
		send_rows(out, {r});
	}));
}

/* Sets each field to its median. */
static void describe_alone(const std::vector<row> &told, row &r) {
	std::map<std::string, std::vector<double>> values;
	for (const row &one : told)
		for (const auto &[name, value] : one.fields)
			values[name].push_back(value);
	for (auto &[name, all] : values)
		r.fields[name] = median(std::move(all));
}

static std::vector<row> play_alone(const workload &w, size_t rounds) {
	size_t n = w.subjects.size();
	std::vector<player> players(n);
	std::vector<std::vector<row>> told(n);
	for (size_t round = 0; round < rounds; round++)
		for (size_t i = 0; i < n; i++) {
			size_t at = turn(round, i, n);
			std::vector<row> one = run_alone(w, w.subjects[at]);
			if (one.empty())
				return {};
			players[at].name = w.subjects[at].name;
			players[at].ns_per_op.push_back(one[0].ns_per_op);
			told[at].push_back(std::move(one[0]));
		}
	std::vector<row> rows = summarise(w, players);
	for (size_t i = 0; i < n; i++)
		describe_alone(told[i], rows[i]);
	std::fprintf(
		stderr, "%-24s %zu subjects, %zu rounds, a process for every run\n", w.name.c_str(), n, rounds);
	return rows;
}

std::vector<row> run_workload(const workload &w, const run_options &options) {
	ns_per_tick();
	size_t rounds = w.rounds == 0 ? options.rounds : std::min(w.rounds, options.rounds);
	std::vector<row> rows = receive_rows(in_child([&](FILE *out) {
		if (w.all_cpus)
			use_all_cpus();
		send_rows(out, w.alone ? play_alone(w, rounds) : play(w, rounds));
	}));
	if (rows.empty())
		std::fprintf(stderr, "tenure-bench: %s failed\n", w.name.c_str());
	return rows;
}

}
