/* os.h for POSIX systems. */
#define _GNU_SOURCE
#include "os.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/futex.h>
#endif

#ifndef MAP_NORESERVE
#define MAP_NORESERVE 0
#endif

void *tn_os_reserve(size_t size, size_t align) {
	/* One reservation large enough to hold an aligned one, then cut at both ends. */
	size_t whole = align > TN_OS_PAGE ? size + align : size;
	if (whole < size)
		return errno = ENOMEM, NULL;
	char *p = mmap(NULL, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return errno = ENOMEM, NULL;
	if (whole == size)
		return p;
	size_t head = (size_t)(-(uintptr_t)p & (align - 1));
	size_t tail = whole - head - size;
	if (head != 0)
		munmap(p, head);
	if (tail != 0)
		munmap(p + head + size, tail);
	return p + head;
}

void tn_os_release(void *p, size_t size) {
	munmap(p, size);
}

bool tn_os_commit(void *p, size_t size) {
	return mprotect(p, size, PROT_READ | PROT_WRITE) == 0 || (errno = ENOMEM, false);
}

void tn_os_decommit(void *p, size_t size) {
	madvise(p, size, MADV_DONTNEED);
}

bool tn_os_protect(void *p, size_t size) {
	return mprotect(p, size, PROT_NONE) == 0;
}

bool tn_os_unprotect(void *p, size_t size) {
	return mprotect(p, size, PROT_READ | PROT_WRITE) == 0;
}

void tn_os_huge(void *p, size_t size) {
#ifdef MADV_HUGEPAGE
	madvise(p, size, MADV_HUGEPAGE);
#else
	(void)p, (void)size;
#endif
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

typedef struct fork_hook {
	void (*before)(void), (*in_parent)(void), (*in_child)(void);
} fork_hook;
static fork_hook hook_set, hook_run; /* under the lock; set once; the one whose `before` ran */
static void (*child_call)(void);	 /* under the lock */

static _Thread_local uintptr_t thread_number;

static void lock_raw(void) {
	pthread_mutex_lock(&lock);
}

/* The hook's locks come before this one. A hook that is set meanwhile has locks of its own to take. */
static void before_fork(void) {
	fork_hook hook = {NULL, NULL, NULL};
	lock_raw();
	while (hook.before != hook_set.before) {
		hook = hook_set;
		tn_os_unlock();
		hook.before();
		lock_raw();
	}
	hook_run = hook;
}

static void after_fork_in_parent(void) {
	fork_hook hook = hook_run;
	tn_os_unlock();
	if (hook.in_parent != NULL)
		hook.in_parent();
}

static void after_fork_in_child(void) {
	thread_number = 0;
	pthread_mutex_init(&lock, NULL);
	if (hook_run.in_child != NULL)
		hook_run.in_child();
	if (child_call != NULL)
		child_call();
}

static void register_fork(void) {
	pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

void tn_os_on_fork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void)) {
	tn_os_lock();
	hook_set = (fork_hook){before, in_parent, in_child};
	tn_os_unlock();
}

void tn_os_in_child(void (*call)(void)) {
	tn_os_lock();
	child_call = call;
	tn_os_unlock();
}

void tn_os_lock(void) {
	pthread_once(&fork_once, register_fork);
	lock_raw();
}

void tn_os_unlock(void) {
	pthread_mutex_unlock(&lock);
}

static pthread_key_t exit_keys[TN_EXIT_COUNT];
static pthread_once_t exit_once = PTHREAD_ONCE_INIT;
static atomic_bool exit_keys_made = true;

static void call_at_exit(void *at_exit) {
	((void (*)(void))at_exit)();
}

static void make_exit_keys(void) {
	for (size_t i = 0; i < TN_EXIT_COUNT; i++)
		if (pthread_key_create(&exit_keys[i], call_at_exit) != 0)
			exit_keys_made = false;
}

/* When the module that holds this copy of Tenure is closed: threads that end later must not call into
 * it. At exit this comes after the program's own destructors, which may still join threads. */
__attribute__((destructor(101))) static void delete_exit_keys(void) {
	pthread_once(&exit_once, make_exit_keys);
	if (!atomic_exchange(&exit_keys_made, false))
		return;
	for (size_t i = 0; i < TN_EXIT_COUNT; i++)
		pthread_key_delete(exit_keys[i]);
}

bool tn_os_on_thread_exit(enum tn_os_exit which, void (*at_exit)(void)) {
	pthread_once(&exit_once, make_exit_keys);
	return exit_keys_made && pthread_setspecific(exit_keys[which], (void *)at_exit) == 0;
}

#ifdef __linux__
void tn_os_wait(const void *word, uint32_t value) {
	int before = errno;
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
	errno = before;
}

void tn_os_wake(const void *word) {
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
#else
void tn_os_wait(const void *word, uint32_t value) {
	(void)word, (void)value;
	sched_yield();
}

void tn_os_wake(const void *word) {
	(void)word;
}
#endif

void tn_os_yield(void) {
	sched_yield();
}

uint64_t tn_os_milliseconds(void) {
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

uintptr_t tn_os_thread(void) {
	if (thread_number == 0)
		thread_number = (uintptr_t)syscall(SYS_gettid);
	return thread_number;
}

const char *tn_os_module(const void *code, uintptr_t *base) {
	Dl_info info;
	if (dladdr(code, &info) == 0 || info.dli_fname == NULL)
		return *base = 0, "";
	*base = (uintptr_t)info.dli_fbase;
	return info.dli_fname;
}

void tn_os_write(const char *text, size_t size) {
	while (size > 0) {
		ssize_t written = write(STDERR_FILENO, text, size);
		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return;
		text += written;
		size -= (size_t)written;
	}
}
