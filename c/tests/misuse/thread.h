/* Runs work in another thread, which has ended when the call returns. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>

#include "misuse.h"

typedef struct thread_job {
	void (*work)(void *p);
	void *p;
} thread_job;

static void *run_job(void *job) {
	thread_job *j = job;
	j->work(j->p);
	return NULL;
}

static void in_thread(void (*work)(void *p), void *p) {
	pthread_t thread;
	thread_job job = {work, p};
	if (pthread_create(&thread, NULL, run_job, &job) != 0)
		exit(3);
	pthread_join(thread, NULL);
}
