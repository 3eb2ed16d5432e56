/* bench/model/machine.cpp: see machine.h. A simulated thread is a stack of its own on the one real
 * thread; it goes on until its clock has passed that of another one. */
#include "model/machine.h"

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <memory>
#include <unordered_map>
#include <vector>

#include <sys/mman.h>
#include <ucontext.h>

#include "engine.h"

namespace model {
namespace {

/* Picoseconds: sums of doubles would depend on their order. */
typedef uint64_t duration;
constexpr duration never = UINT64_MAX;

duration of_ns(double ns) {
	return static_cast<duration>(ns * 1000 + 0.5);
}

struct line {
	uint64_t readers[most_cores / 64]; /* cores that have it */
	unsigned writer;                   /* 1 + the only one that may write it; 0: none */
	duration fetched;                  /* the last fetch ends then */
	duration shared;                   /* the last fetch of a reader ends then */
};

struct core {
	duration clock = 0, slept = 0;
	bool done = false;
	jmp_buf at;
	std::unique_ptr<char[]> stack;
};

struct span {
	const char *from, *to;
};

constexpr size_t stack_bytes = 256 << 10;
constexpr size_t memory_bytes = size_t{4} << 30;

/* Memory of the simulated program, and the lines of it. Pages that are never touched cost nothing. */
char *memory;
line *memory_lines;
size_t memory_used;
std::unordered_map<uintptr_t, line> other_lines;
std::map<size_t, std::vector<void *>> given_back; /* by size */
std::vector<span> privates;

duration hit, transfer, stream, atomic_extra, pause_cost, call, wake_delay;
std::vector<core> cores;
duration ready_at[most_cores]; /* their clocks as they were left; never: asleep or done */
unsigned current;
bool running;
duration horizon;   /* the clock of the core that comes next */
duration warm, end; /* what is between them is measured */
std::unordered_map<const void *, std::deque<unsigned>> sleepers;
figures result;
jmp_buf scheduler;
const std::function<void(unsigned)> *thread_work;

void *map(size_t bytes) {
	void *p = mmap(
		nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED) {
		std::perror("tenure-model: mmap");
		std::exit(2);
	}
	return p;
}

/* Aligned more than anything in it. */
void map_memory() {
	constexpr size_t align = size_t{64} << 20;
	uintptr_t from = reinterpret_cast<uintptr_t>(map(memory_bytes + align));
	memory = reinterpret_cast<char *>((from + align - 1) / align * align);
	memory_lines = static_cast<line *>(map(memory_bytes / line_bytes * sizeof(line)));
}

line &line_at(const void *at) {
	size_t offset = static_cast<size_t>(static_cast<const char *>(at) - memory);
	if (offset < memory_bytes)
		return memory_lines[offset / line_bytes];
	return other_lines[reinterpret_cast<uintptr_t>(at) / line_bytes];
}

bool is_private(const void *at) {
	for (const span &s : privates)
		if (at >= s.from && at < s.to)
			return true;
	return false;
}

void go_to_scheduler(core &c, duration ready) {
	ready_at[current] = ready;
	if (_setjmp(c.at) == 0)
		_longjmp(scheduler, 1);
}

/* Other cores come first until none has an earlier clock. */
void keep_order() {
	core &c = cores[current];
	while (c.clock > horizon)
		go_to_scheduler(c, c.clock);
}

bool has(const line &l, bool write) {
	if (l.writer != 0)
		return l.writer == current + 1;
	return !write && (l.readers[current / 64] >> current % 64 & 1) != 0;
}

/* Whether another core has it: memory that is new to all costs no more than a hit. */
bool is_elsewhere(const line &l) {
	uint64_t all = 0;
	for (unsigned i = 0; i < most_cores / 64; i++)
		all |= l.readers[i] & ~(i == current / 64 ? uint64_t{1} << current % 64 : 0);
	return all != 0;
}

void note_access(line &l, bool write) {
	if (has(l, write))
		return;
	if (write)
		std::memset(l.readers, 0, sizeof l.readers);
	l.readers[current / 64] |= uint64_t{1} << current % 64;
	l.writer = write ? current + 1 : 0;
}

/* The end of a fetch that begins now. Fetches of a line wait for each other, but a reader shares the
 * fetch of another one. */
duration reserve_fetch(line &l, bool write) {
	duration now = cores[current].clock;
	if (!write && (l.writer == 0 || l.shared > now))
		return std::max(now + transfer, l.shared);
	l.fetched = std::max(now, l.fetched) + transfer;
	if (!write)
		l.shared = l.fetched;
	return l.fetched;
}

bool is_missing(const line &l, bool write) {
	return !has(l, write) && is_elsewhere(l);
}

void note_fetch() {
	duration now = cores[current].clock;
	result.fetches += now >= warm && now < end;
}

/* One marked access of the library. Until a line that it fetches has arrived, the core that has the
 * line goes on using it. Accesses are free before the threads start and after they have ended. */
void access(const void *at, bool write, duration more) {
	if (!running || is_private(at))
		return;
	core &c = cores[current];
	c.clock += more;
	keep_order();
	line &l = line_at(at);
	if (is_missing(l, write)) {
		c.clock = reserve_fetch(l, write);
		keep_order();
		note_fetch();
	} else {
		c.clock += hit;
	}
	note_access(l, write);
}

void begin_thread() {
	(*thread_work)(current);
	cores[current].done = true;
	ready_at[current] = never;
	_longjmp(scheduler, 1);
}

/* ucontext enters a stack for the first time only: its switches are system calls. */
void start(core &c) {
	ucontext_t context;
	getcontext(&context);
	c.stack.reset(new char[stack_bytes]);
	context.uc_stack.ss_sp = c.stack.get();
	context.uc_stack.ss_size = stack_bytes;
	context.uc_link = nullptr;
	makecontext(&context, begin_thread, 0);
	setcontext(&context);
}

/* The core with the earliest clock, and the clock of the next one; of two equal ones the first. */
bool choose_core() {
	duration first = never;
	horizon = never;
	for (unsigned i = 0; i < cores.size(); i++) {
		duration at = ready_at[i];
		if (at < first) {
			horizon = first;
			first = at;
			current = i;
		} else if (at < horizon) {
			horizon = at;
		}
	}
	return first != never;
}

void run_threads() {
	_setjmp(scheduler);
	if (!choose_core())
		return;
	core &c = cores[current];
	if (c.stack == nullptr)
		start(c);
	_longjmp(c.at, 1);
}

void require_all_done() {
	for (const core &c : cores)
		if (!c.done) {
			std::fprintf(stderr, "tenure-model: a thread sleeps for ever\n");
			std::exit(1);
		}
}

void set_costs(const costs &c) {
	hit = of_ns(c.hit);
	transfer = of_ns(c.transfer);
	stream = of_ns(c.stream);
	atomic_extra = of_ns(c.atomic) > hit ? of_ns(c.atomic) - hit : 0;
	pause_cost = of_ns(c.pause);
	call = of_ns(c.call);
	wake_delay = of_ns(c.wake);
}

duration measured_part(duration from, duration to) {
	from = std::max(from, warm);
	to = std::min(to, end);
	return to > from ? to - from : 0;
}

uint64_t load_bits(const void *at, size_t size) {
	uint64_t value = 0;
	std::memcpy(&value, at, size);
	return value;
}

} /* namespace */

std::map<std::string, double *> name_costs(costs &c) {
	return {{"hit", &c.hit}, {"transfer", &c.transfer}, {"stream", &c.stream}, {"atomic", &c.atomic},
		{"pause", &c.pause}, {"call", &c.call}, {"wake", &c.wake}, {"pair", &c.pair},
		{"exchanged", &c.exchanged}};
}

double *find_cost(costs &c, const std::string &name) {
	auto named = name_costs(c);
	auto found = named.find(name);
	return found == named.end() ? nullptr : found->second;
}

std::map<std::string, double> list_costs(const costs &c) {
	costs copy = c;
	std::map<std::string, double> all;
	for (auto &[name, value] : name_costs(copy))
		all[name] = *value;
	return all;
}

void read_costs(costs &c, const char *path) {
	std::ifstream file(path);
	std::string name;
	double value;
	while (file >> name >> value) {
		double *cost = find_cost(c, name);
		if (cost == nullptr)
			break;
		*cost = value;
	}
	if (!file.eof()) {
		std::fprintf(stderr, "tenure-model: %s: not a list of costs\n", path);
		std::exit(2);
	}
}

figures run(const costs &c, unsigned count, double warm_ns, double end_ns,
	const std::function<void(unsigned)> &work) {
	set_costs(c);
	result = {};
	warm = of_ns(warm_ns);
	end = of_ns(end_ns);
	cores.clear();
	cores.resize(count);
	std::fill_n(ready_at, count, duration{0});
	thread_work = &work;
	running = true;
	run_threads();
	running = false;
	require_all_done();
	for (const core &each : cores)
		result.busy_ns += static_cast<double>(measured_part(0, each.clock) - each.slept) / 1000;
	return result;
}

double now_ns() {
	return static_cast<double>(cores[current].clock) / 1000;
}

void spend(double ns) {
	cores[current].clock += of_ns(ns);
}

/* Pays no regard to the order: such a line belongs to one thread at a time, and goes to another one
 * with an exchange, which keeps the order. */
void touch(const void *at, bool write) {
	line &l = line_at(at);
	if (is_missing(l, write)) {
		cores[current].clock += stream;
		note_fetch();
	}
	note_access(l, write);
}

void reset_memory() {
	if (memory == nullptr)
		map_memory();
	madvise(memory, memory_bytes, MADV_DONTNEED);
	madvise(memory_lines, memory_bytes / line_bytes * sizeof(line), MADV_DONTNEED);
	memory_used = 0;
	given_back.clear();
	other_lines.clear();
	sleepers.clear();
	privates.clear();
}

void keep_private(const void *from, size_t bytes) {
	const char *at = static_cast<const char *>(from);
	privates.push_back({at, at + bytes});
}

} /* namespace model */

namespace engine {

using namespace model;

uint64_t load(const void *at, size_t size, order, const place &) {
	access(at, false, 0);
	return load_bits(at, size);
}

void store(void *at, size_t size, uint64_t value, order, const place &) {
	access(at, true, 0);
	std::memcpy(at, &value, size);
}

uint64_t exchange(void *at, size_t size, uint64_t value, order, const place &) {
	access(at, true, atomic_extra);
	uint64_t before = load_bits(at, size);
	std::memcpy(at, &value, size);
	return before;
}

uint64_t add(void *at, size_t size, uint64_t value, order, const place &) {
	access(at, true, atomic_extra);
	uint64_t before = load_bits(at, size), after = before + value;
	std::memcpy(at, &after, size);
	return before;
}

/* Takes the line to write it also where it fails, as the processor does. */
bool replace(void *at, size_t size, uint64_t *seen, uint64_t value, order, const place &) {
	access(at, true, atomic_extra);
	uint64_t found = load_bits(at, size);
	bool same = found == *seen;
	*seen = found;
	if (same)
		std::memcpy(at, &value, size);
	return same;
}

void note_load(const void *at, uint64_t, const place &) {
	access(at, false, 0);
}

void note_store(const void *at, uint64_t, const place &) {
	access(at, true, 0);
}

void wait(const void *at, uint32_t value, const place &) {
	core &c = cores[current];
	c.clock += call;
	access(at, false, 0);
	if (load_bits(at, sizeof value) != value)
		return;
	duration from = c.clock;
	sleepers[at].push_back(current);
	go_to_scheduler(c, never);
	c.slept += measured_part(from, c.clock);
}

void wake(const void *at, const place &) {
	core &c = cores[current];
	c.clock += call;
	keep_order();
	auto found = sleepers.find(at);
	if (found == sleepers.end() || found->second.empty())
		return;
	unsigned number = found->second.front();
	core &woken = cores[number];
	found->second.pop_front();
	woken.clock = ready_at[number] = c.clock + wake_delay;
	horizon = std::min(horizon, woken.clock);
}

void yield(const place &) {
	cores[current].clock += pause_cost;
}

/* Blocks of one size have one alignment. */
void *take(size_t size, size_t align, bool) {
	std::vector<void *> &ready = given_back[size];
	if (!ready.empty()) {
		void *p = ready.back();
		ready.pop_back();
		return p;
	}
	memory_used = (memory_used + align - 1) / align * align;
	void *p = memory + memory_used;
	memory_used += size;
	if (memory_used > memory_bytes)
		fail("the machine has too little memory", HERE);
	return p;
}

void give(void *p, size_t size) {
	given_back[size].push_back(p);
}

void forget(const void *, size_t) {
}

void fail(const char *message, const place &where) {
	std::fprintf(stderr, "tenure-model: %s:%u: %s\n", where.file, where.line, message);
	std::exit(1);
}

unsigned thread() {
	return current;
}

} /* namespace engine */
