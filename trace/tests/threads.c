/*
 * Threads hand blocks to each other, start and end all the time, fork, open and close modules, and are
 * cancelled. Argument 1: threads; argument 2: rounds. Prints how many blocks were allocated.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SLOTS = 512 };
static _Atomic(void *) slots[SLOTS];
static _Atomic long allocated;

static void exchange(unsigned *random, int times) {
	for (int i = 0; i < times; i++) {
		*random = *random * 1664525 + 1013904223;
		size_t size = (*random >> 8) % 2000;
		atomic_fetch_add(&allocated, 1);
		free(atomic_exchange(&slots[*random >> 23], malloc(size)));
	}
}

static void *work(void *argument) {
	unsigned random = (unsigned)(size_t)argument;
	exchange(&random, 500);
	switch (random >> 16 & 7) {
	case 0: {
		void *library = dlopen("libm.so.6", RTLD_NOW);
		exchange(&random, 50);
		if (library != NULL)
			dlclose(library);
		break;
	}
	case 1: {
		pid_t child = fork();
		if (child == 0) {
			exchange(&random, 100);
			_exit(0);
		}
		if (child > 0)
			waitpid(child, NULL, 0);
		break;
	}
	case 2:
		pthread_exit(NULL);
	case 3:
		pthread_cancel(pthread_self());
		pthread_testcancel();
		break;
	default:
		exchange(&random, 500);
	}
	return NULL;
}

int main(int count, char **arguments) {
	int threads = count > 1 ? atoi(arguments[1]) : 8, rounds = count > 2 ? atoi(arguments[2]) : 4;
	if (threads > 64)
		threads = 64;
	for (int round = 0; round < rounds; round++) {
		pthread_t all[64];
		for (int i = 0; i < threads; i++)
			if (pthread_create(&all[i], NULL, work, (void *)(size_t)(round * threads + i)) != 0)
				return 1;
		for (int i = 0; i < threads; i++)
			pthread_join(all[i], NULL);
	}
	for (int i = 0; i < SLOTS; i++)
		free(atomic_exchange(&slots[i], NULL));
	printf("%ld\n", allocated);
	return 0;
}
