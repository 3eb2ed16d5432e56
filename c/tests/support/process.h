/* The process seen from outside, and work done in a child of it. */
#ifndef TENURE_TESTS_PROCESS_H
#define TENURE_TESTS_PROCESS_H

#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <functional>
#include <string_view>

#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

constexpr std::string_view sanitizers = TENURE_SANITIZE;
constexpr bool thread_sanitized = sanitizers.find("thread") != sanitizers.npos;
/* A sanitizer changes address space and resident memory. */
constexpr bool sanitized = thread_sanitized || sanitizers.find("address") != sanitizers.npos;

/* Resident bytes of the process. */
inline size_t resident_bytes() {
	unsigned long total = 0, resident = 0;
	FILE *f = std::fopen("/proc/self/statm", "r");
	if (f == nullptr)
		return 0;
	if (std::fscanf(f, "%lu %lu", &total, &resident) != 2)
		resident = 0;
	std::fclose(f);
	return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

inline void expect_resident_below(size_t bytes) {
	if (!sanitized) {
		EXPECT_LT(resident_bytes(), bytes);
	}
}

/* Bytes of address space. */
inline size_t address_space_bytes() {
	unsigned long total = 0;
	FILE *f = std::fopen("/proc/self/statm", "r");
	if (f == nullptr)
		return 0;
	if (std::fscanf(f, "%lu", &total) != 1)
		total = 0;
	std::fclose(f);
	return total * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

/* Waits for `child`; returns its wait status, or -1 when it had to be killed after `seconds`. */
inline int wait_for(pid_t child, int seconds) {
	const timespec pause = {0, 1000000};
	for (int tick = 0; tick < seconds * 1000; tick++) {
		int status = 0;
		if (waitpid(child, &status, WNOHANG) == child)
			return status;
		nanosleep(&pause, nullptr);
	}
	kill(child, SIGKILL);
	waitpid(child, nullptr, 0);
	return -1;
}

/* Runs `work` in a child, which exits with its result; returns like wait_for. */
inline int in_child(const std::function<int()> &work, int seconds) {
	pid_t child = fork();
	if (child == 0)
		_exit(work());
	return wait_for(child, seconds);
}

inline bool exited_with(int status, int code) {
	return status != -1 && WIFEXITED(status) && WEXITSTATUS(status) == code;
}

#endif
