/*
 * Calls each entry point a number of times that differs from the others', so that a trace shows
 * which were recorded.
 */
#define _GNU_SOURCE
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* The compiler must not pair them away. */
static void *volatile kept;

static void keep(void *p) {
	kept = p;
}

extern void tenure_mark(const char *) __attribute__((weak));

int main(void) {
	void *p;
	for (int i = 0; i < 101; i++)
		keep(malloc(100)), free(kept);
	for (int i = 0; i < 102; i++)
		keep(calloc(3, 40)), free(kept);
	for (int i = 0; i < 103; i++) {
		keep(realloc(NULL, 50));
		keep(realloc(kept, 5000));
		free(kept);
	}
	for (int i = 0; i < 104; i++)
		keep(reallocarray(NULL, 5, 20)), free(kept);
	for (int i = 0; i < 105; i++)
		keep(aligned_alloc(64, 128)), free(kept);
	for (int i = 0; i < 106; i++)
		if (posix_memalign(&p, 256, 128) == 0)
			keep(p), free(kept);
	for (int i = 0; i < 107; i++)
		keep(memalign(512, 128)), free(kept);
	for (int i = 0; i < 108; i++)
		keep(valloc(10)), free(kept);
	for (int i = 0; i < 109; i++)
		keep(pvalloc(10)), free(kept);
	for (int i = 0; i < 110; i++) {
		keep(mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
		munmap(kept, 1 << 20);
	}
	if (tenure_mark)
		tenure_mark("request\x1b[31m");
	keep(strdup("left behind"));
	return 7;
}
