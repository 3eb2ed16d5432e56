/* A machine with pages of TEST_PAGE_BYTES, for LD_PRELOAD. sysconf says so, memory is mapped in them,
 * and a range that does not begin at one is refused, as the kernel of such a machine does. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static size_t page_bytes(void) {
	const char *text = getenv("TEST_PAGE_BYTES");
	return text == NULL ? 65536 : strtoul(text, NULL, 10);
}

static size_t round_to_page(size_t size) {
	return (size + page_bytes() - 1) & ~(page_bytes() - 1);
}

static int has_page(const void *p) {
	return ((uintptr_t)p & (page_bytes() - 1)) == 0 || (errno = EINVAL, 0);
}

long sysconf(int name) {
	static long (*real)(int name);
	if (real == NULL)
		*(void **)&real = dlsym(RTLD_NEXT, "sysconf");
	return name == _SC_PAGESIZE ? (long)page_bytes() : real(name);
}

static void *map(void *at, size_t size, int access, int flags, int file, off_t offset) {
	return (void *)syscall(SYS_mmap, at, size, access, flags, file, offset);
}

/* A mapping at the start of a page, cut from a larger one. */
void *mmap(void *at, size_t size, int access, int flags, int file, off_t offset) {
	size = round_to_page(size);
	if ((flags & MAP_ANONYMOUS) == 0 || (flags & MAP_FIXED) != 0 || size == 0)
		return map(at, size, access, flags, file, offset);
	char *p = map(NULL, size + page_bytes(), access, flags, file, offset);
	if (p == MAP_FAILED)
		return p;
	size_t head = -(uintptr_t)p & (page_bytes() - 1);
	if (head != 0)
		syscall(SYS_munmap, p, head);
	syscall(SYS_munmap, p + head + size, page_bytes() - head);
	return p + head;
}

int munmap(void *p, size_t size) {
	return has_page(p) ? (int)syscall(SYS_munmap, p, round_to_page(size)) : -1;
}

int mprotect(void *p, size_t size, int access) {
	return has_page(p) ? (int)syscall(SYS_mprotect, p, round_to_page(size), access) : -1;
}

int madvise(void *p, size_t size, int advice) {
	return has_page(p) ? (int)syscall(SYS_madvise, p, round_to_page(size), advice) : -1;
}
