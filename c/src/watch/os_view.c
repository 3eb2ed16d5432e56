#define _GNU_SOURCE
#include "os_view.h"

#include <errno.h>
#if defined(__linux__) && !defined(TN_OS_NONE)
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

#ifdef __GLIBC__
#if __GLIBC_PREREQ(2, 33)
#define HAVE_MALLINFO2
#endif
#endif

#ifdef MFD_ALLOW_SEALING
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

/* Sealed after it is mapped: this mapping stays writable, and is the only one that is. A system
 * that does not know the seal would let others write. */
static bool os_map_shown(tn_os_shown *shown) {
	struct stat is;
	struct rlimit most;
	int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;
	/* Beyond this limit fallocate ends the process by SIGXFSZ. */
	if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur < shown->size)
		return errno = ENOMEM, false;
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
	if (os_map_shown(shown))
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

/* The module that has a function, or NULL. */
static const void *os_module_of(const void *at) {
	Dl_info is;
	return at != NULL && dladdr(at, &is) != 0 ? is.dli_fbase : NULL;
}

/* The module that has the program's malloc. In a program without position-independent code its address
 * may be that of a jump in the program itself; then the rest of the family shows the module. */
static const void *os_module_of_malloc(void) {
	const void *at = dlsym(RTLD_DEFAULT, "malloc");
#ifdef __GLIBC__
	Dl_info is;
	const ElfW(Sym) *symbol = NULL;
	if (at != NULL && dladdr1(at, &is, (void **)&symbol, RTLD_DL_SYMENT) != 0 && symbol != NULL &&
		symbol->st_shndx == SHN_UNDEF)
		at = dlsym(RTLD_DEFAULT, "posix_memalign");
#endif
	return os_module_of(at);
}

/* A function of the module that has the program's malloc: a library may have one of its own. */
static void *os_find_in_malloc(const char *name) {
	void *at = dlsym(RTLD_DEFAULT, name);
	return at != NULL && os_module_of(at) == os_module_of_malloc() ? at : NULL;
}

void tn_os_find_malloc(void) {
	void *mallctl = os_find_in_malloc("mallctl"), *info = os_find_in_malloc("mi_process_info");
	memcpy(&malloc_found.mallctl, &mallctl, sizeof mallctl);
	memcpy(&malloc_found.mi_process_info, &info, sizeof info);
	malloc_found.name = mallctl != NULL                          ? "jemalloc"
	                    : info != NULL                           ? "mimalloc"
	                    : os_find_in_malloc("mallinfo2") != NULL ? "glibc"
	                                                             : "";
}

static uint64_t os_read_jemalloc(const char *name) {
	size_t value = 0, size = sizeof value;
	return malloc_found.mallctl(name, &value, &size, NULL, 0) == 0 ? value : UINT64_MAX;
}

static void os_read_malloc(tn_live_state *state) {
	state->malloc_allocated_bytes = state->malloc_active_bytes = state->malloc_held_bytes =
		TN_LIVE_UNKNOWN;
	strcpy(state->malloc_name, malloc_found.name);
	if (malloc_found.mallctl != NULL) {
		/* Its figures are those of the last time that the epoch was advanced. */
		uint64_t epoch = 1;
		size_t size = sizeof epoch;
		malloc_found.mallctl("epoch", &epoch, &size, &epoch, size);
		state->malloc_allocated_bytes = os_read_jemalloc("stats.allocated");
		state->malloc_active_bytes = os_read_jemalloc("stats.active");
		state->malloc_held_bytes = os_read_jemalloc("stats.resident");
	} else if (malloc_found.mi_process_info != NULL) {
		size_t unused, committed;
		malloc_found.mi_process_info(
			&unused, &unused, &unused, &unused, &unused, &committed, &unused, &unused);
		state->malloc_held_bytes = committed;
#ifdef HAVE_MALLINFO2
	} else if (malloc_found.name[0] != '\0') {
		struct mallinfo2 is = mallinfo2();
		state->malloc_allocated_bytes = is.uordblks + is.hblkhd;
		state->malloc_held_bytes = is.arena + is.hblkhd;
#endif
	}
}

bool tn_os_read_text(const char *path, char *text, size_t size) {
	int file = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = file < 0 ? -1 : read(file, text, size - 1);
	if (file >= 0)
		close(file);
	text[length < 0 ? 0 : length] = '\0';
	return length >= 0;
}

bool tn_os_find_cgroup(char *path, size_t size) {
	char text[4096];
	struct stat is;
	tn_os_read_text("/proc/self/cgroup", text, sizeof text);
	/* The line of version 2, where others may stand before it. */
	const char *at = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
	if (at == NULL)
		return false;
	at += at == text ? 3 : 4;
	int length = snprintf(path, size, "/sys/fs/cgroup%.*s", (int)strcspn(at, "\n"), at);
	return length > 0 && (size_t)length < size && stat(path, &is) == 0;
}

int tn_os_open_trigger(const char *path, const char *text) {
	int file = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (file < 0 || write(file, text, strlen(text) + 1) >= 0)
		return file;
	close(file);
	return -1;
}

bool tn_os_has_event(int trigger) {
	struct pollfd wait = {.fd = trigger, .events = POLLPRI};
	return poll(&wait, 1, 0) == 1 && (wait.revents & POLLPRI) != 0;
}

void tn_os_close_trigger(int trigger) {
	if (trigger >= 0)
		close(trigger);
}

static uint64_t os_read_resident(void) {
	char text[128];
	tn_os_read_text("/proc/self/statm", text, sizeof text);
	const char *second = strchr(text, ' ');
	return second == NULL ? 0 : strtoull(second, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

void tn_os_read_process(tn_live_state *state) {
	os_read_malloc(state);
	state->resident_bytes = os_read_resident();
}
#else
bool tn_os_show(tn_os_shown *shown, const char *name, size_t size) {
	(void)name, (void)size;
	*shown = (tn_os_shown){.file = -1};
	return errno = ENOTSUP, false;
}

bool tn_os_is_shown(const tn_os_shown *shown) {
	(void)shown;
	return false;
}

void tn_os_hide(const tn_os_shown *shown) {
	(void)shown;
}

void tn_os_hide_in_child(const tn_os_shown *shown) {
	(void)shown;
}

void tn_os_find_malloc(void) {
}

void tn_os_read_process(tn_live_state *state) {
	(void)state;
}

bool tn_os_read_text(const char *path, char *text, size_t size) {
	(void)path, (void)size;
	text[0] = '\0';
	return false;
}

bool tn_os_find_cgroup(char *path, size_t size) {
	(void)path, (void)size;
	return false;
}

int tn_os_open_trigger(const char *path, const char *text) {
	(void)path, (void)text;
	return -1;
}

bool tn_os_has_event(int trigger) {
	(void)trigger;
	return false;
}

void tn_os_close_trigger(int trigger) {
	(void)trigger;
}
#endif
