/* A source that, once told to, lets a second thread make a call before it returns: then two calls on
 * one allocator overlap on every run, not by chance. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>

#include "misuse.h"

static const char *overlap_op;
static void (*overlap_call)(const char *op);

static void *overlap_thread(void *unused) {
	overlap_call(overlap_op);
	return unused;
}

static void *overlap_acquire(void *ctx, size_t size, size_t align) {
	pthread_t thread;
	void *p = NULL;
	if (overlap_call != NULL) {
		pthread_create(&thread, NULL, overlap_thread, NULL);
		pthread_join(thread, NULL);
		exit(3); /* the call went through */
	}
	return posix_memalign(&p, align < sizeof p ? sizeof p : align, size) == 0 ? p : NULL;
}

static void overlap_release(void *ctx, void *p, size_t size) {
	free(p);
}

static const tn_source overlap_source = {overlap_acquire, overlap_release, NULL};

static void overlap_from_here(const char *op, void (*call)(const char *op)) {
	tell_word("op", op);
	overlap_op = op;
	overlap_call = call;
}
