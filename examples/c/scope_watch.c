/* Growth that no leak checker sees: requests allocate from the scope of their long-lived connection,
 * which frees everything in the end. A watch names the connection long before. */
#include <stdatomic.h>
#include <stdio.h>
#include <tenure/tenure.h>
#include <threads.h>

static atomic_bool found;

/* On the watching thread. The message, for a log, has the figures. */
static void report(tn_finding finding, const tn_listed *listed, const char *message, void *ctx) {
	(void)ctx;
	fprintf(stderr, "%s\n", message);
	if (finding != TN_FOUND_GROWING)
		return;
	printf("%s \"%s\" of %s grows and is never reset\n", tn_kind_name(listed->kind), listed->stats.name,
		listed->ident);
	atomic_store(&found, true);
}

static bool serve(tn_scope *from) {
	return tn_scope_alloc(from, 2000, 0) != NULL;
}

int main(void) {
	/* A server would take minutes. */
	tn_watch_options options = {.interval_ms = 20, .growing_ms = 200};
	if (!tn_watch(&options, report))
		return 1;
	tn_scope *process = tn_scope_create(NULL, "process", NULL);
	tn_scope *tidy = tn_scope_create(process, "connection", &(tn_scope_options){.ident = "192.0.2.1"});
	tn_scope *leaky = tn_scope_create(process, "connection", &(tn_scope_options){.ident = "192.0.2.2"});
	if (tidy == NULL || leaky == NULL)
		return 1;
	for (int tick = 0; tick < 5000 && !atomic_load(&found); tick++) {
		tn_scope *request = tn_scope_create(tidy, "request", NULL);
		if (request == NULL || !serve(request) || !serve(leaky))
			return 1;
		tn_scope_destroy(request);
		thrd_sleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	tn_watch(NULL, NULL);
	/* Ages and bytes, to find the cause. */
	tn_scope_print(process, stderr);
	tn_scope_destroy(process);
	return 0;
}
