/*
 * Uses memory for two seconds in the way that argument 1 names: healthy, leaking, hoarding,
 * fragmented.
 */
#define _GNU_SOURCE
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BLOCKS = 200000, SIZE = 200, STEPS = 40 };
static void *blocks[BLOCKS];
static void *volatile kept;

static __attribute__((noinline)) void *filled(size_t size) {
	void *p = malloc(size);
	if (p != NULL)
		memset(p, 1, size);
	return p;
}

static void pause_ms(long ms) {
	struct timespec t = {0, ms * 1000000};
	nanosleep(&t, NULL);
}

static __attribute__((noinline)) void leak(void) {
	for (int i = 0; i < 5000; i++)
		kept = filled(SIZE);
}

/* All live at first; then all but each `left`th are freed. */
static void free_most(int left) {
	for (int i = 0; i < BLOCKS; i++)
		blocks[i] = filled(SIZE);
	for (int i = 0; i < BLOCKS; i++)
		if (left == 0 || i % left != 0)
			free(blocks[i]);
}

int main(int count, char **arguments) {
	const char *how = count > 1 ? arguments[1] : "healthy";
	/* The memory of many small blocks is kept by default only below the trim threshold. */
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	mallopt(M_TOP_PAD, 1 << 20);
	if (strcmp(how, "hoarding") == 0)
		free_most(0);
	else if (strcmp(how, "fragmented") == 0)
		free_most(15); /* a survivor or two on each page */
	else if (strcmp(how, "healthy") == 0)
		for (int i = 0; i < BLOCKS; i++)
			blocks[i] = filled(SIZE);
	for (int step = 0; step < STEPS; step++) {
		if (strcmp(how, "leaking") == 0)
			leak();
		free(filled(100));
		pause_ms(50);
	}
	return 0;
}
