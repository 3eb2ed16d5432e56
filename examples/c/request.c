/* A request handler: everything that one request allocates is dropped by one reset. */
#include <stdio.h>
#include <tenure/tenure.h>

typedef struct header {
	struct header *next;
	const char *name;
	const char *value;
} header;

static header *add_header(tn_arena *a, header *list, const char *name, int value) {
	header *h = TN_NEW(a, header);
	if (h == NULL)
		return list;
	h->next = list;
	h->name = name;
	h->value = tn_arena_printf(a, "%d", value);
	return h;
}

static void handle(tn_arena *a, int request) {
	header *headers = NULL;
	headers = add_header(a, headers, "request-id", request);
	headers = add_header(a, headers, "content-length", 100 * request);
	for (const header *h = headers; h != NULL; h = h->next)
		printf("%s: %s\n", h->name, h->value);
}

int main(void) {
	tn_arena *a = tn_arena_create(&(tn_arena_options){.name = "request"});
	if (a == NULL)
		return 1;
	void *first = tn_arena_alloc(a, 1, 0);
	for (int request = 1; request <= 3; request++) {
		tn_arena_reset(a);
		handle(a, request);
	}
	tn_stats stats;
	tn_arena_stats(a, &stats);
	printf("arena \"%s\": %d resets\n", stats.name, (int)stats.resets);
	tn_arena_reset(a);
	printf("warm memory again: %s\n",
		TN_MODE == TN_MODE_DEBUG || tn_arena_alloc(a, 1, 0) == first ? "yes" : "no");
	tn_arena_destroy(a);
	return 0;
}
