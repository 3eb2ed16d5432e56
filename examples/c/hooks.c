/* Allocator hooks without a context, such as cJSON_InitHooks: a thread-local variable holds the arena
 * of the thread's current document, and the hook for free does nothing. */
#include <stdio.h>
#include <string.h>
#include <tenure/tenure.h>

/* A typical library: two global function pointers. */
static void *(*library_malloc)(size_t size);
static void (*library_free)(void *p);

static char *library_join(const char *a, const char *b) {
	size_t size = strlen(a) + strlen(b) + 1;
	char *scratch = library_malloc(size);
	char *joined = library_malloc(size);
	if (scratch == NULL || joined == NULL)
		return NULL;
	strcat(strcpy(scratch, a), b);
	strcpy(joined, scratch);
	library_free(scratch);
	return joined;
}

static _Thread_local tn_arena *document;

static void *document_malloc(size_t size) {
	return tn_arena_alloc(document, size, 0);
}

static void document_free(void *p) {
	(void)p;
}

int main(void) {
	library_malloc = document_malloc;
	library_free = document_free;
	document = tn_arena_create(&(tn_arena_options){.name = "document"});
	if (document == NULL)
		return 1;
	const char *names[] = {"first", "second"};
	for (int i = 0; i < 2; i++) {
		const char *joined = library_join(names[i], " document");
		printf("%s\n", joined == NULL ? "out of memory" : joined);
		tn_arena_reset(document);
	}
	tn_arena_destroy(document);
	return 0;
}
