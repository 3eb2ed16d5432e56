/* os.h for POSIX systems. */
#define _GNU_SOURCE
#include "os.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#ifdef __linux__
#include <sys/sysinfo.h>
#endif
#include <time.h>
#include <unistd.h>

#include <tenure/base.h>

#include "atomics.h"
#include "bits.h"

#ifndef MAP_NORESERVE
#define MAP_NORESERVE 0
#endif

/* ---- memory ---- */

static size_t os_page_bytes(void) {
	static TN_ATOMIC(size_t) known;
	size_t bytes = tn_get(&known, TN_RELAXED);
	if (bytes == 0) {
		bytes = (size_t)sysconf(_SC_PAGESIZE);
		tn_set(&known, bytes, TN_RELAXED);
	}
	return bytes;
}

/* Bytes of memory and swap that the machine has; SIZE_MAX when they are not known. */
static size_t os_machine_bytes(void) {
	static TN_ATOMIC(size_t) known;
	size_t bytes = tn_get(&known, TN_RELAXED);
	if (bytes != 0)
		return bytes;
	bytes = SIZE_MAX;
#ifdef __linux__
	struct sysinfo has;
	if (sysinfo(&has) == 0 && has.mem_unit > 0 &&
		(has.totalram + has.totalswap) <= SIZE_MAX / has.mem_unit)
		bytes = (size_t)(has.totalram + has.totalswap) * has.mem_unit;
#elif defined(_SC_PHYS_PAGES)
	long pages = sysconf(_SC_PHYS_PAGES);
	if (pages > 0 && (size_t)pages <= SIZE_MAX / os_page_bytes())
		bytes = (size_t)pages * os_page_bytes();
#endif
	tn_set(&known, bytes, TN_RELAXED);
	return bytes;
}

typedef struct os_range {
	char *p;
	size_t size;
} os_range;

/* The pages of the system that a range touches. */
static os_range os_pages_around(void *p, size_t size) {
	size_t before = (uintptr_t)p & (os_page_bytes() - 1);
	return (os_range){(char *)p - before, tn_round_up(size + before, os_page_bytes())};
}

/* The pages of the system that lie in a range. */
static os_range os_pages_within(void *p, size_t size) {
	size_t skipped = -(uintptr_t)p & (os_page_bytes() - 1);
	size_t left = size < skipped ? 0 : size - skipped;
	return (os_range){(char *)p + skipped, left & ~(os_page_bytes() - 1)};
}

void *tn_os_reserve(size_t size, size_t align) {
	/* One reservation that is large enough for an aligned one, then cut at both ends. */
	const size_t page = os_page_bytes();
	if (size > PTRDIFF_MAX - align - page)
		return errno = ENOMEM, NULL;
	size = tn_round_up(size, page);
	size_t whole = align > page ? size + align : size;
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
	munmap(p, tn_round_up(size, os_page_bytes()));
}

bool tn_os_commit(void *p, size_t size) {
	/* MAP_NORESERVE and mprotect pass by the check that malloc's mmap meets. */
	if (size > os_machine_bytes())
		return errno = ENOMEM, false;
	os_range r = os_pages_around(p, size);
	return mprotect(r.p, r.size, PROT_READ | PROT_WRITE) == 0 || (errno = ENOMEM, false);
}

/* Locked pages (mlockall) go by an advice of their own, which Linux has since 5.18. */
bool tn_os_decommit(void *p, size_t size) {
	os_range r = os_pages_within(p, size);
	if (r.size == 0)
		return false;
	if (madvise(r.p, r.size, MADV_DONTNEED) == 0)
		return true;
#ifdef __linux__
	enum { DONTNEED_LOCKED = 24 };
	return madvise(r.p, r.size, DONTNEED_LOCKED) == 0;
#else
	return false;
#endif
}

/* Debug protects single slots. Protecting a part of a mapping divides it, and the system bounds the
 * number of mappings. To undo it may take one more for a moment. So some are held in reserve, to be
 * given up when there are no others. */
enum { OS_SPARE_MAPPINGS = 64 };
static TN_ATOMIC(char *) os_spare;
static TN_ATOMIC(bool) os_is_exhausted;

static void os_make_spare(void) {
	if (TN_MODE != TN_MODE_DEBUG || tn_get(&os_spare, TN_RELAXED) != NULL)
		return;
	const size_t page = os_page_bytes();
	char *p = mmap(NULL, OS_SPARE_MAPPINGS * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return;
	for (size_t i = 0; i < OS_SPARE_MAPPINGS; i += 2)
		mprotect(p + i * page, page, PROT_READ);
	char *none = NULL;
	if (!tn_replace(&os_spare, &none, p, TN_RELAXED))
		munmap(p, OS_SPARE_MAPPINGS * page);
}

static void os_give_spare(void) {
	char *p = tn_get(&os_spare, TN_RELAXED);
	if (p != NULL && !tn_swap(&os_is_exhausted, true, TN_RELAXED))
		munmap(p, OS_SPARE_MAPPINGS * os_page_bytes());
}

bool tn_os_protect(void *p, size_t size) {
	os_make_spare();
	os_range r = os_pages_within(p, size);
	if (r.size == 0 || tn_get(&os_is_exhausted, TN_RELAXED))
		return false;
	if (mprotect(r.p, r.size, PROT_NONE) == 0)
		return true;
	os_give_spare();
	return false;
}

bool tn_os_unprotect(void *p, size_t size) {
	os_range r = os_pages_around(p, size);
	if (mprotect(r.p, r.size, PROT_READ | PROT_WRITE) == 0)
		return true;
	os_give_spare();
	return mprotect(r.p, r.size, PROT_READ | PROT_WRITE) == 0;
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

typedef struct fork_hooks {
	void (*before)(void), (*in_parent)(void), (*in_child)(void);
} fork_hooks;
static fork_hooks fork_set[TN_FORK_COUNT]; /* under the lock; each set once */

static _Thread_local uintptr_t thread_number;

static void os_lock(void) {
	pthread_mutex_lock(&lock);
}

/* Calls in_parent of the hooks from the end down to `first`. */
static void os_undo_hooks(fork_hooks hooks[TN_FORK_COUNT], size_t first) {
	for (size_t i = TN_FORK_COUNT; i > first; i--) {
		if (hooks[i - 1].in_parent != NULL)
			hooks[i - 1].in_parent();
		hooks[i - 1] = (fork_hooks){NULL, NULL, NULL};
	}
}

/* The hooks' locks come before the process-wide one. That is held until after the fork, so that the
 * hooks set then are those that were called. A hook that is set meanwhile takes its locks before those
 * of the hooks after it. */
static void os_before_fork(void) {
	fork_hooks hooks[TN_FORK_COUNT] = {{NULL, NULL, NULL}};
	os_lock();
	for (size_t i = 0; i < TN_FORK_COUNT; i++) {
		if (hooks[i].before == fork_set[i].before)
			continue;
		fork_hooks hook = fork_set[i];
		tn_os_unlock();
		os_undo_hooks(hooks, i + 1);
		hook.before();
		hooks[i] = hook;
		os_lock();
		i = (size_t)-1; /* from the first again */
	}
}

static void os_after_fork_in_parent(void) {
	fork_hooks hooks[TN_FORK_COUNT];
	memcpy(hooks, fork_set, sizeof hooks);
	tn_os_unlock();
	os_undo_hooks(hooks, 0);
}

static void os_after_fork_in_child(void) {
	thread_number = 0;
	pthread_mutex_init(&lock, NULL);
	for (size_t i = TN_FORK_COUNT; i > 0; i--)
		if (fork_set[i - 1].in_child != NULL)
			fork_set[i - 1].in_child();
}

static void os_register_fork(void) {
	pthread_atfork(os_before_fork, os_after_fork_in_parent, os_after_fork_in_child);
}

void tn_os_on_fork(
	enum tn_os_fork which, void (*before)(void), void (*in_parent)(void), void (*in_child)(void)) {
	tn_os_lock();
	fork_set[which] = (fork_hooks){before, in_parent, in_child};
	tn_os_unlock();
}

void tn_os_lock(void) {
	pthread_once(&fork_once, os_register_fork);
	os_lock();
}

void tn_os_unlock(void) {
	pthread_mutex_unlock(&lock);
}

static pthread_key_t exit_keys[TN_EXIT_COUNT];
static pthread_once_t exit_once = PTHREAD_ONCE_INIT;
static TN_ATOMIC(bool) exit_keys_made = true;

/* ISO C has no conversion between pointers to functions and to objects; uintptr_t takes both. */
static void os_call_at_exit(void *at_exit) {
	((void (*)(void))(uintptr_t)at_exit)();
}

static void os_make_exit_keys(void) {
	for (size_t i = 0; i < TN_EXIT_COUNT; i++)
		if (pthread_key_create(&exit_keys[i], os_call_at_exit) != 0)
			tn_set(&exit_keys_made, false, TN_RELAXED);
}

/* When the module that holds this copy of Tenure is closed: threads that end later must not call into
 * it. At exit this comes after the program's own destructors, which may still join threads. */
__attribute__((destructor(101))) static void os_drop_exit_keys(void) {
	pthread_once(&exit_once, os_make_exit_keys);
	if (!tn_swap(&exit_keys_made, false, TN_RELAXED))
		return;
	for (size_t i = 0; i < TN_EXIT_COUNT; i++)
		pthread_key_delete(exit_keys[i]);
}

bool tn_os_on_thread_exit(enum tn_os_exit which, void (*at_exit)(void)) {
	pthread_once(&exit_once, os_make_exit_keys);
	return tn_get(&exit_keys_made, TN_RELAXED) &&
	       pthread_setspecific(exit_keys[which], (void *)(uintptr_t)at_exit) == 0;
}

#ifdef __linux__
/* The kernel's FUTEX_WAIT_PRIVATE and FUTEX_WAKE_PRIVATE: musl comes without linux/futex.h. */
enum { WAIT_PRIVATE = 128, WAKE_PRIVATE = 129 };

void tn_os_wait(const void *word, uint32_t value) {
	int before = errno;
	syscall(SYS_futex, word, WAIT_PRIVATE, value, NULL, NULL, 0);
	errno = before;
}

void tn_os_wait_for(const void *word, uint32_t value, unsigned milliseconds) {
	struct timespec most = {milliseconds / 1000, milliseconds % 1000 * 1000000};
	int before = errno;
	syscall(SYS_futex, word, WAIT_PRIVATE, value, &most, NULL, 0);
	errno = before;
}

void tn_os_wake(const void *word) {
	syscall(SYS_futex, word, WAKE_PRIVATE, 1, NULL, NULL, 0);
}
#else
void tn_os_wait(const void *word, uint32_t value) {
	(void)word, (void)value;
	sched_yield();
}

/* Sleeps a little at a time: nothing wakes it. */
void tn_os_wait_for(const void *word, uint32_t value, unsigned milliseconds) {
	struct timespec most = {0, (milliseconds < 10 ? milliseconds : 10) * 1000000};
	(void)word, (void)value;
	nanosleep(&most, NULL);
}

void tn_os_wake(const void *word) {
	(void)word;
}
#endif

void tn_os_yield(void) {
	sched_yield();
}

TN_ATOMIC(uint64_t) tn_os_skipped_ms;

static uint64_t os_milliseconds_of(const struct timespec *now) {
	return (uint64_t)now->tv_sec * 1000 + (uint64_t)now->tv_nsec / 1000000 +
	       tn_get(&tn_os_skipped_ms, TN_RELAXED);
}

uint64_t tn_os_milliseconds(void) {
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return os_milliseconds_of(&now);
}

uint64_t tn_os_coarse_milliseconds(void) {
#ifdef CLOCK_MONOTONIC_COARSE
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return os_milliseconds_of(&now);
#else
	return tn_os_milliseconds();
#endif
}

uintptr_t tn_os_thread(void) {
	if (thread_number == 0)
		thread_number = (uintptr_t)syscall(SYS_gettid);
	return thread_number;
}

static pthread_t started; /* between tn_os_start and tn_os_join */

static void *os_call_started(void *run) {
#ifdef __linux__
	pthread_setname_np(pthread_self(), "tenure");
#endif
	((void (*)(void))(uintptr_t)run)();
	return NULL;
}

/* The stack is for a watch's callback, which may print. A program with large thread-local variables
 * needs more; the default then. */
bool tn_os_start(void (*run)(void)) {
	enum { STACK_BYTES = 256 << 10 };
	pthread_attr_t attributes;
	sigset_t all, before;
	if (pthread_attr_init(&attributes) != 0)
		return errno = ENOMEM, false;
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	bool done = pthread_create(&started, &attributes, os_call_started, (void *)(uintptr_t)run) == 0 ||
	            pthread_create(&started, NULL, os_call_started, (void *)(uintptr_t)run) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return done || (errno = ENOMEM, false);
}

/* A cancelled thread would leave its locks for ever. Android has no cancellation. */
int tn_os_hold_cancel(void) {
	int held = 0;
#ifdef PTHREAD_CANCEL_DISABLE
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &held);
#endif
	return held;
}

void tn_os_let_cancel(int held) {
#ifdef PTHREAD_CANCEL_DISABLE
	pthread_setcancelstate(held, &held);
#else
	(void)held;
#endif
}

void tn_os_join(void) {
	int held = tn_os_hold_cancel();
	pthread_join(started, NULL);
	tn_os_let_cancel(held);
}

/* The main thread stays a zombie until the process ends; it and the caller are two. The name in the
 * second field of the line may contain anything, the fields behind it nothing of the kind. */
bool tn_os_is_last_thread(void) {
#ifdef __linux__
	char line[512];
	int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	ssize_t size = file < 0 ? -1 : read(file, line, sizeof line - 1);
	if (file >= 0)
		close(file);
	line[size < 0 ? 0 : size] = '\0';
	const char *rest = strrchr(line, ')');
	char state = 0;
	long threads = 0;
	if (rest == NULL ||
		sscanf(rest + 1, " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %ld",
			&state, &threads) != 2)
		return false;
	return state == 'Z' && threads == 2;
#else
	return false;
#endif
}

size_t tn_os_processors(void) {
#ifdef __linux__
	cpu_set_t allowed;
	if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
		return (size_t)CPU_COUNT(&allowed);
#endif
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	return online < 1 ? 1 : (size_t)online;
}

/* The highest number in a list such as "0-1" or "0,8", and 1. */
static size_t os_count_nodes(void) {
	char list[256];
	int held = tn_os_hold_cancel();
	int before = errno, file = open("/sys/devices/system/node/has_cpu", O_RDONLY | O_CLOEXEC);
	ssize_t size = file < 0 ? 0 : read(file, list, sizeof list);
	size_t last = 0;
	for (ssize_t i = 0; i < size && list[i] != '\n'; i++)
		last = list[i] < '0' || list[i] > '9' ? 0 : last * 10 + (size_t)(list[i] - '0');
	if (file >= 0)
		close(file);
	errno = before;
	tn_os_let_cancel(held);
	return last < TN_OS_NODES ? last + 1 : TN_OS_NODES;
}

static size_t os_ask_node(void) {
	unsigned node = 0;
#ifdef __linux__
	syscall(SYS_getcpu, NULL, &node, NULL);
#endif
	return node;
}

static TN_ATOMIC(size_t) node_count; /* 0: not known yet */
static size_t (*node_now)(void) = os_ask_node;

size_t tn_os_nodes(void) {
	if (tn_get(&node_count, TN_RELAXED) == 0)
		tn_set(&node_count, os_count_nodes(), TN_RELAXED);
	return tn_get(&node_count, TN_RELAXED);
}

size_t tn_os_node(void) {
	size_t count = tn_os_nodes();
	return count == 1 ? 0 : node_now() % count;
}

void tn_os_set_nodes(size_t count, size_t (*node)(void)) {
	node_now = node;
	tn_set(&node_count, count, TN_RELAXED);
}

uint64_t tn_os_process(void) {
	return (uint64_t)getpid();
}

const char *tn_os_variable(const char *name) {
#ifdef __linux__
	return secure_getenv(name);
#else
	return getuid() == geteuid() && getgid() == getegid() ? getenv(name) : NULL;
#endif
}

const char *tn_os_module(const void *code, uintptr_t *base) {
	Dl_info info;
	if (dladdr(code, &info) == 0 || info.dli_fname == NULL)
		return *base = 0, "";
	*base = (uintptr_t)info.dli_fbase;
	return info.dli_fname;
}

void tn_os_write(const char *text, size_t size) {
	int held = tn_os_hold_cancel();
	while (size > 0) {
		ssize_t written = write(STDERR_FILENO, text, size);
		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			break;
		text += written;
		size -= (size_t)written;
	}
	tn_os_let_cancel(held);
}
