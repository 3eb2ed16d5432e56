/* bench/harness/process.cpp: clock, memory and CPU of the measuring process. */
#include <dlfcn.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "harness/harness.h"

namespace bench {

static double calibrate() {
	using namespace std::chrono;
	auto from = steady_clock::now();
	uint64_t first = ticks();
	while (steady_clock::now() - from < milliseconds(50)) {
	}
	double ns = static_cast<double>(duration_cast<nanoseconds>(steady_clock::now() - from).count());
	return ns / static_cast<double>(ticks() - first);
}

double ns_per_tick() {
	static const double ns = calibrate();
	return ns;
}

process_figures read_process() {
	rusage u;
	getrusage(RUSAGE_SELF, &u);
	return {static_cast<uint64_t>(u.ru_minflt), static_cast<uint64_t>(u.ru_majflt),
		static_cast<uint64_t>(u.ru_nivcsw)};
}

static size_t bytes_in(const char *file, const std::string &field) {
	std::ifstream figures(file);
	for (std::string line; std::getline(figures, line);)
		if (line.compare(0, field.size(), field) == 0)
			return std::strtoull(line.c_str() + field.size(), nullptr, 10) * 1024;
	return 0;
}

size_t resident_bytes() {
	return bytes_in("/proc/self/status", "VmRSS:");
}

size_t resident_bytes_exact() {
	size_t bytes = bytes_in("/proc/self/smaps_rollup", "Rss:");
	return bytes != 0 ? bytes : resident_bytes();
}

size_t anonymous_bytes_exact() {
	size_t bytes = bytes_in("/proc/self/smaps_rollup", "Anonymous:");
	return bytes != 0 ? bytes : bytes_in("/proc/self/status", "RssAnon:");
}

size_t peak_resident_bytes() {
	return bytes_in("/proc/self/status", "VmHWM:");
}

void reset_peak() {
	std::ofstream("/proc/self/clear_refs") << "5";
}

static unsigned cpu_count() {
	long n = sysconf(_SC_NPROCESSORS_ONLN);
	return n < 1 ? 1 : static_cast<unsigned>(n);
}

void pin(unsigned member) {
	if (cpu_count() < 2)
		return;
	unsigned cpu = (member + 1) % cpu_count();
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof one, &one) != 0)
		std::fprintf(stderr, "tenure-bench: cannot pin to CPU %u; expect noise\n", cpu);
}

void use_all_cpus() {
	cpu_set_t all;
	CPU_ZERO(&all);
	for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
		CPU_SET(cpu, &all);
	if (sched_setaffinity(0, sizeof all, &all) != 0)
		std::perror("tenure-bench: cannot use all CPUs");
}

void reserve_static_tls(char **argv) {
	if (getenv("GLIBC_TUNABLES") != nullptr)
		return;
	setenv("GLIBC_TUNABLES", "glibc.rtld.optional_static_tls=16384", 1);
	execv("/proc/self/exe", argv);
	std::perror("tenure-bench: cannot start again");
}

void require_plain_malloc() {
	for (const char *name : {"malloc", "calloc", "free"}) {
		void *f = dlsym(RTLD_DEFAULT, name);
		Dl_info info;
		bool found = f != nullptr && dladdr(f, &info) != 0 && info.dli_fname != nullptr;
		if (found && std::strstr(info.dli_fname, "libc.so") != nullptr)
			continue;
		std::fprintf(stderr, "tenure-bench: %s comes from %s, not from the C library\n", name,
			found ? info.dli_fname : "nowhere");
		std::exit(2);
	}
}

}
