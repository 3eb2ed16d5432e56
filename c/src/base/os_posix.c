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
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/futex.h>
#include <malloc.h>
#endif

#include "atomics.h"

#ifdef __GLIBC__
#if __GLIBC_PREREQ(2, 33)
#define HAVE_MALLINFO2
#endif
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
static fork_hook hooks_set[TN_FORK_COUNT]; /* under the lock; each set once */
static fork_hook hooks_run[TN_FORK_COUNT]; /* under the lock; those whose `before` ran */
static void (*child_call)(void);           /* under the lock */

static _Thread_local uintptr_t thread_number;

static void lock_raw(void) {
	pthread_mutex_lock(&lock);
}

/* Runs in_parent of those from the end down to `first`. */
static void undo_hooks(fork_hook hooks[TN_FORK_COUNT], size_t first) {
	for (size_t i = TN_FORK_COUNT; i > first; i--) {
		if (hooks[i - 1].in_parent != NULL)
			hooks[i - 1].in_parent();
		hooks[i - 1] = (fork_hook){NULL, NULL, NULL};
	}
}

/* The hooks' locks come before this one. A hook that is set meanwhile has locks of its own to take, and
 * they come before those of the hooks after it. */
static void before_fork(void) {
	fork_hook hooks[TN_FORK_COUNT] = {{NULL, NULL, NULL}};
	lock_raw();
	for (size_t i = 0; i < TN_FORK_COUNT; i++) {
		if (hooks[i].before == hooks_set[i].before)
			continue;
		fork_hook hook = hooks_set[i];
		tn_os_unlock();
		undo_hooks(hooks, i + 1);
		hook.before();
		hooks[i] = hook;
		lock_raw();
		i = (size_t)-1; /* from the first again */
	}
	for (size_t i = 0; i < TN_FORK_COUNT; i++)
		hooks_run[i] = hooks[i];
}

static void after_fork_in_parent(void) {
	fork_hook hooks[TN_FORK_COUNT];
	for (size_t i = 0; i < TN_FORK_COUNT; i++)
		hooks[i] = hooks_run[i];
	tn_os_unlock();
	undo_hooks(hooks, 0);
}

static void after_fork_in_child(void) {
	thread_number = 0;
	pthread_mutex_init(&lock, NULL);
	for (size_t i = TN_FORK_COUNT; i > 0; i--)
		if (hooks_run[i - 1].in_child != NULL)
			hooks_run[i - 1].in_child();
	if (child_call != NULL)
		child_call();
}

static void register_fork(void) {
	pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

void tn_os_on_fork(
	enum tn_os_fork which, void (*before)(void), void (*in_parent)(void), void (*in_child)(void)) {
	tn_os_lock();
	hooks_set[which] = (fork_hook){before, in_parent, in_child};
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
static TN_ATOMIC(bool) exit_keys_made = true;

static void call_at_exit(void *at_exit) {
	((void (*)(void))at_exit)();
}

static void make_exit_keys(void) {
	for (size_t i = 0; i < TN_EXIT_COUNT; i++)
		if (pthread_key_create(&exit_keys[i], call_at_exit) != 0)
			tn_set(&exit_keys_made, false, TN_RELAXED);
}

/* When the module that holds this copy of Tenure is closed: threads that end later must not call into
 * it. At exit this comes after the program's own destructors, which may still join threads. */
__attribute__((destructor(101))) static void delete_exit_keys(void) {
	pthread_once(&exit_once, make_exit_keys);
	if (!tn_swap(&exit_keys_made, false, TN_RELAXED))
		return;
	for (size_t i = 0; i < TN_EXIT_COUNT; i++)
		pthread_key_delete(exit_keys[i]);
}

bool tn_os_on_thread_exit(enum tn_os_exit which, void (*at_exit)(void)) {
	pthread_once(&exit_once, make_exit_keys);
	return tn_get(&exit_keys_made, TN_RELAXED) &&
	       pthread_setspecific(exit_keys[which], (void *)at_exit) == 0;
}

#ifdef __linux__
void tn_os_wait(const void *word, uint32_t value) {
	int before = errno;
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
	errno = before;
}

void tn_os_wait_for(const void *word, uint32_t value, unsigned milliseconds) {
	struct timespec most = {milliseconds / 1000, milliseconds % 1000 * 1000000};
	int before = errno;
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &most, NULL, 0);
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

/* A little at a time: nothing wakes it. */
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

uint64_t tn_os_milliseconds(void) {
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

uint64_t tn_os_coarse_milliseconds(void) {
#ifdef CLOCK_MONOTONIC_COARSE
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
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

static void *call_started(void *run) {
#ifdef __linux__
	pthread_setname_np(pthread_self(), "tenure");
#endif
	((void (*)(void))run)();
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
	bool done = pthread_create(&started, &attributes, call_started, (void *)run) == 0 ||
	            pthread_create(&started, NULL, call_started, (void *)run) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return done || (errno = ENOMEM, false);
}

void tn_os_join(void) {
	pthread_join(started, NULL);
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

#if defined(__linux__) && defined(MFD_ALLOW_SEALING)
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

/* Sealed after it is mapped: the mapping goes on to be writable, and is the only one. A system that
 * does not know the seal would let others write. */
static bool map_shown(tn_os_shown *shown) {
	struct stat is;
	int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;
	if (fallocate(shown->file, 0, 0, (off_t)shown->size) != 0 || fstat(shown->file, &is) != 0)
		return errno = ENOMEM, false;
	shown->device = is.st_dev;
	shown->inode = is.st_ino;
	shown->p = mmap(NULL, shown->size, PROT_READ | PROT_WRITE, MAP_SHARED, shown->file, 0);
	if (shown->p == MAP_FAILED)
		return errno = ENOMEM, false;
	if (madvise(shown->p, shown->size, MADV_DONTFORK) == 0 &&
		fcntl(shown->file, F_ADD_SEALS, seals) == 0)
		return true;
	munmap(shown->p, shown->size);
	return errno = ENOTSUP, false;
}

bool tn_os_show(tn_os_shown *shown, const char *name, size_t size) {
	shown->size = size;
	shown->file = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
	/* Linux before 6.3 does not know the last one. */
	if (shown->file < 0 && errno == EINVAL)
		shown->file = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (shown->file < 0)
		return errno = errno == ENOSYS ? ENOTSUP : ENOMEM, false;
	if (map_shown(shown))
		return true;
	int error = errno;
	close(shown->file);
	return errno = error, false;
}

bool tn_os_is_shown(const tn_os_shown *shown) {
	struct stat is;
	return fstat(shown->file, &is) == 0 && is.st_dev == shown->device && is.st_ino == shown->inode;
}

void tn_os_hide(const tn_os_shown *shown) {
	munmap(shown->p, shown->size);
	tn_os_hide_in_child(shown);
}

void tn_os_hide_in_child(const tn_os_shown *shown) {
	if (tn_os_is_shown(shown))
		close(shown->file);
}
static struct {
	const char *name;
	int (*mallctl)(const char *name, void *old, size_t *old_size, void *new, size_t new_size);
	void (*mi_process_info)(
		size_t *, size_t *, size_t *, size_t *, size_t *, size_t *, size_t *, size_t *);
} malloc_found;

/* A function of the module that the program's malloc is of: not of a library that has an allocator for
 * itself. */
static void *beside_malloc(const char *name) {
	void *malloc_at = dlsym(RTLD_DEFAULT, "malloc"), *at = dlsym(RTLD_DEFAULT, name);
	Dl_info one, other;
	if (malloc_at == NULL || at == NULL || dladdr(malloc_at, &one) == 0 || dladdr(at, &other) == 0)
		return NULL;
	return one.dli_fbase == other.dli_fbase ? at : NULL;
}

void tn_os_find_malloc(void) {
	void *mallctl = beside_malloc("mallctl"), *info = beside_malloc("mi_process_info");
	memcpy(&malloc_found.mallctl, &mallctl, sizeof mallctl);
	memcpy(&malloc_found.mi_process_info, &info, sizeof info);
	malloc_found.name = mallctl != NULL                      ? "jemalloc"
	                    : info != NULL                       ? "mimalloc"
	                    : beside_malloc("mallinfo2") != NULL ? "glibc"
	                                                         : "";
}

static uint64_t ask_jemalloc(const char *name) {
	size_t value = 0, size = sizeof value;
	return malloc_found.mallctl(name, &value, &size, NULL, 0) == 0 ? value : UINT64_MAX;
}

void tn_os_ask_malloc(tn_os_malloc *figures) {
	*figures = (tn_os_malloc){"", UINT64_MAX, UINT64_MAX, UINT64_MAX};
	strcpy(figures->name, malloc_found.name);
	if (malloc_found.mallctl != NULL) {
		/* Its figures are those of the last time that this was advanced. */
		uint64_t epoch = 1;
		size_t size = sizeof epoch;
		malloc_found.mallctl("epoch", &epoch, &size, &epoch, size);
		figures->allocated_bytes = ask_jemalloc("stats.allocated");
		figures->active_bytes = ask_jemalloc("stats.active");
		figures->held_bytes = ask_jemalloc("stats.resident");
	} else if (malloc_found.mi_process_info != NULL) {
		size_t unused, committed;
		malloc_found.mi_process_info(
			&unused, &unused, &unused, &unused, &unused, &committed, &unused, &unused);
		figures->held_bytes = committed;
#ifdef HAVE_MALLINFO2
	} else if (malloc_found.name[0] != '\0') {
		struct mallinfo2 is = mallinfo2();
		figures->allocated_bytes = is.uordblks + is.hblkhd;
		figures->held_bytes = is.arena + is.hblkhd;
#endif
	}
}

uint64_t tn_os_resident_bytes(void) {
	char text[128];
	int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	ssize_t size = file < 0 ? -1 : read(file, text, sizeof text - 1);
	if (file >= 0)
		close(file);
	text[size < 0 ? 0 : size] = '\0';
	const char *second = strchr(text, ' ');
	return second == NULL ? 0 : strtoull(second, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}
#else
#include "os_unseen.h"
#endif

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
