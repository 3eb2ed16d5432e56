/*
 * Blocks of 64 bytes taken and freed, `rounds` times on each of `threads` threads, eight frames below
 * the thread's first. Prints ns of wall time for an event.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long rounds;
static void *volatile kept[4];

static __attribute__((noinline)) long loop(int depth, int thread) {
	if (depth > 0)
		return loop(depth - 1, thread) + 1;
	for (long i = 0; i < rounds; i++) {
		kept[thread] = malloc(64);
		free(kept[thread]);
	}
	return 0;
}

static void *work(void *argument) {
	return (void *)loop(6, (int)(long)argument);
}

int main(int count, char **arguments) {
	int threads = count > 1 ? atoi(arguments[1]) : 1;
	rounds = count > 2 ? atol(arguments[2]) : 1000000;
	pthread_t all[4];
	struct timespec begin, end;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (long i = 0; i < threads && i < 4; i++)
		pthread_create(&all[i], NULL, work, (void *)i);
	for (int i = 0; i < threads && i < 4; i++)
		pthread_join(all[i], NULL);
	clock_gettime(CLOCK_MONOTONIC, &end);
	double ns = (double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec);
	printf("%f\n", ns / (2.0 * (double)rounds * threads));
	return 0;
}
