/* A second thread calls a scope while the first ends or resets the tree that it is in: the top itself,
 * a scope whose turn has not come, or the one whose deferred call runs.
 *
 * args      destroy reset x top beside below x alloc create defer external trim destroy
 * release   undefined
 * hardened  ABRT tenure: scope "{which}": {op}: overlaps another call
 * debug     ABRT tenure: scope "{which}": {op}: thread N overlaps a call of thread M
 */
#include <pthread.h>

#include "misuse.h"

static tn_scope *s;
static const char *op;

static void do_nothing(void *arg) {
}

static void *call(void *arg) {
	if (strcmp(op, "alloc") == 0)
		tn_scope_alloc(s, 64, 0);
	else if (strcmp(op, "create") == 0)
		tn_scope_create(s, NULL, NULL);
	else if (strcmp(op, "defer") == 0)
		tn_scope_defer(s, do_nothing, NULL);
	else if (strcmp(op, "external") == 0)
		tn_scope_external(s, 1);
	else if (strcmp(op, "trim") == 0)
		tn_scope_trim(s);
	else
		tn_scope_destroy(s);
	return arg;
}

static void call_on_another_thread(void *arg) {
	pthread_t thread;
	pthread_create(&thread, NULL, call, NULL);
	pthread_join(thread, NULL);
	exit(3); /* the call went through */
}

int main(int argc, char **argv) {
	tn_scope *top = tn_scope_create(NULL, "top", NULL);
	tn_scope *beside = tn_scope_create(top, "beside", NULL);
	tn_scope *below = tn_scope_create(top, "below", NULL);
	tn_scope_defer(below, call_on_another_thread, NULL);
	s = strcmp(argv[2], "top") == 0 ? top : strcmp(argv[2], "beside") == 0 ? beside : below;
	op = argv[3];
	tell_word("which", argv[2]);
	tell_word("op", op);
	if (IS("destroy"))
		tn_scope_destroy(top);
	else
		tn_scope_reset(top);
	return 0;
}
