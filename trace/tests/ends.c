/*
 * Ends in the way that argument 1 names, after 100000 allocations, so that a trace of it shows what
 * of them was kept.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void *volatile kept;

static void allocate(int times) {
	for (int i = 0; i < times; i++)
		kept = malloc(24), free(kept);
}

static void in_handler(int number) {
	(void)number;
	kept = malloc(33);
	free(kept);
}

static void at_exit(void) {
	allocate(1000);
}

/* Not more than `depth` frames, so that walks are deep. */
static __attribute__((noinline)) int deep(int depth) {
	char room[64];
	memset(room, depth, sizeof room);
	if (depth == 0) {
		allocate(1000);
		return room[0];
	}
	return deep(depth - 1) + room[depth % 64];
}

static int other(const char *how, char **arguments) {
	if (strcmp(how, "exec") == 0) {
		char *again[] = {arguments[0], "exit", NULL};
		execv("/proc/self/exe", again);
	} else if (strcmp(how, "fork") == 0) {
		pid_t child = fork();
		if (child == 0) {
			allocate(5000);
			_exit(0);
		}
		int status;
		waitpid(child, &status, 0);
		return status;
	} else if (strcmp(how, "vfork") == 0) {
		pid_t child = vfork();
		if (child == 0)
			_exit(0);
		waitpid(child, NULL, 0);
		allocate(1000);
	} else if (strcmp(how, "deep") == 0)
		return deep(2000) & 0;
	else if (strcmp(how, "signals") == 0) {
		signal(SIGUSR1, in_handler);
		for (int i = 0; i < 1000; i++)
			raise(SIGUSR1);
	} else if (strcmp(how, "closefrom") == 0) {
		closefrom(0);
		allocate(100000);
	} else if (strcmp(how, "full") == 0) {
		struct rlimit limit = {0, 0};
		setrlimit(RLIMIT_FSIZE, &limit);
		allocate(1000);
	} else
		return strcmp(how, "exit") == 0 ? 0 : 99;
	return 0;
}

int main(int count, char **arguments) {
	const char *how = count > 1 ? arguments[1] : "exit";
	allocate(100000);
	if (strcmp(how, "kill") == 0)
		kill(getpid(), SIGKILL);
	if (strcmp(how, "abort") == 0)
		abort();
	if (strcmp(how, "fault") == 0) {
		signal(SIGSEGV, SIG_DFL);
		kill(getpid(), SIGSEGV);
	}
	if (strcmp(how, "atexit") == 0)
		atexit(at_exit);
	return other(how, arguments);
}
