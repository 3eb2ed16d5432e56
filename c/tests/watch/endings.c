/* The observer's thread in processes and threads that do not end by a return from main. Each case runs
 * in a child, which must end by itself, with status 0. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <tenure/tenure.h>

static void ignore(tn_finding finding, const tn_listed *listed, const char *message, void *ctx) {
	(void)finding, (void)listed, (void)message, (void)ctx;
}

static int end_main_while_live(void) {
	if (!tn_live_start())
		return 1;
	pthread_exit(NULL);
}

/* The next look is an hour away. */
static int end_main_while_watched(void) {
	tn_watch_options options = {.interval_ms = 3600 * 1000};
	if (!tn_watch(&options, ignore))
		return 1;
	pthread_exit(NULL);
}

static void *pause_shortly(void *unused) {
	const struct timespec pause = {0, 300 * 1000 * 1000};
	nanosleep(&pause, NULL);
	return unused;
}

/* The process goes on while it has another thread. */
static void *begin_late(void *unused) {
	pause_shortly(NULL);
	if (!tn_live_start())
		_exit(1);
	pause_shortly(NULL);
	return unused;
}

static int end_main_before_the_view(void) {
	pthread_t thread;
	if (pthread_create(&thread, NULL, begin_late, NULL) != 0)
		return 1;
	pthread_exit(NULL);
}

static bool was_live;

static void *start_with_a_cancel_pending(void *unused) {
	pthread_cancel(pthread_self());
	was_live = tn_live_start();
	pthread_testcancel();
	return unused;
}

static void *create_with_a_cancel_pending(void *unused) {
	pthread_cancel(pthread_self());
	tn_arena_options options = {.name = "first"};
	tn_arena_destroy(tn_arena_create(&options));
	was_live = true;
	pthread_testcancel();
	return unused;
}

static void *stop_with_a_cancel_pending(void *unused) {
	pthread_cancel(pthread_self());
	tn_live_stop();
	was_live = true;
	pthread_testcancel();
	return unused;
}

/* Runs a thread that is cancelled, but not inside Tenure, which goes on after it. */
static int cancel(void *(*run)(void *)) {
	pthread_t thread;
	void *result = NULL;
	if (pthread_create(&thread, NULL, run, NULL) != 0 || pthread_join(thread, &result) != 0)
		return 1;
	if (result != PTHREAD_CANCELED || !was_live)
		return 2;
	tn_live_stop();
	return tn_live_start() ? 0 : 3;
}

static int cancel_a_start(void) {
	return cancel(start_with_a_cancel_pending);
}

static int cancel_a_create(void) {
	setenv("TENURE_LIVE", "1", 1);
	return cancel(create_with_a_cancel_pending);
}

static int cancel_a_stop(void) {
	return tn_live_start() ? cancel(stop_with_a_cancel_pending) : 4;
}

/* ENOMEM, not SIGXFSZ. */
static int refuse_a_small_limit(void) {
	struct rlimit limit;
	if (getrlimit(RLIMIT_FSIZE, &limit) != 0)
		return 1;
	limit.rlim_cur = 1 << 20;
	if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
		return 2;
	errno = 0;
	if (tn_live_start() || errno != ENOMEM)
		return 3;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_FSIZE, &limit);
	return tn_live_start() ? 0 : 4;
}

/* Returns the wait status of `child`, which is killed after 20 s. */
static int wait_for(pid_t child) {
	const struct timespec pause = {0, 5 * 1000 * 1000};
	int status = 0;
	for (int i = 0; i < 4000; i++) {
		if (waitpid(child, &status, WNOHANG) == child)
			return status;
		nanosleep(&pause, NULL);
	}
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	return status;
}

int main(void) {
	static const struct {
		const char *name;
		int (*run)(void);
	} cases[] = {{"main ends, live", end_main_while_live}, {"main ends, watch", end_main_while_watched},
		{"main ends, another thread goes on", end_main_before_the_view},
		{"cancelled start", cancel_a_start}, {"cancelled create", cancel_a_create},
		{"cancelled stop", cancel_a_stop}, {"RLIMIT_FSIZE", refuse_a_small_limit}};
	int failed = 0;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		pid_t child = fork();
		if (child == 0)
			exit(cases[i].run());
		int status = wait_for(child);
		if (status != 0) {
			printf("%s: wait status 0x%x\n", cases[i].name, (unsigned)status);
			failed = 1;
		}
	}
	return failed;
}
