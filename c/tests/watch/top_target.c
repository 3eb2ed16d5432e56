/* The process that test_top.py looks at: allocators of all kinds, with known figures and malicious
 * names. One argument: the number of further names. Ends with its standard input. */
#include <tenure/tenure.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HARM "evil\033[2J\"\\\n{}\xff\xc2\x9b"

static void must(bool done) {
	if (!done)
		abort();
}

static tn_arena *arena(const char *name, size_t bytes) {
	tn_arena *a = tn_arena_create(&(tn_arena_options){.name = name});
	must(a != NULL && tn_arena_alloc(a, bytes, 16) != NULL);
	return a;
}

static void make_objects(void) {
	tn_slab *nodes = tn_slab_create(64, 0, &(tn_slab_options){.name = "nodes"});
	void *slots[1000];
	must(nodes != NULL && tn_slab_alloc_batch(nodes, slots, 1000));
	tn_slab_free_batch(nodes, slots, 400);
	tn_shared_slab *sessions =
		tn_shared_slab_create(128, 0, &(tn_shared_slab_options){.name = "sessions"});
	must(sessions != NULL && tn_shared_slab_alloc_batch(sessions, slots, 200));
	tn_pool *buffers = tn_pool_create(256, 0, &(tn_pool_options){.name = "buffers"});
	must(buffers != NULL && tn_pool_get(buffers) != NULL);
	tn_heap *documents = tn_heap_create(&(tn_heap_options){.name = "documents"});
	must(documents != NULL && tn_heap_alloc(documents, 5000, 16) != NULL);
}

static void make_scopes(void) {
	tn_scope *server = tn_scope_create(NULL, "server", NULL);
	must(server != NULL);
	for (int i = 0; i < 2; i++) {
		tn_scope *connection = tn_scope_create(server, "connection",
			&(tn_scope_options){.ident = i == 0 ? "192.0.2.1:4711" : "192.0.2.2:4712"});
		must(connection != NULL);
		tn_scope *request = tn_scope_create(
			connection, "request", &(tn_scope_options){.ident = "GET /\033]0;title\007"});
		must(request != NULL && tn_scope_alloc(request, 3000, 16) != NULL);
	}
	must(tn_scope_external(server, 123456));
}

int main(int count, char **words) {
	make_objects();
	make_scopes();
	arena("requests", 100000);
	arena("twin", 1000);
	arena("twin", 2000);
	arena("gr\xc3\xb6\xc3\x9f"
		  "e",
		16);
	arena(HARM, 16);
	for (int i = count > 1 ? atoi(words[1]) : 0; i > 0; i--) {
		char name[32];
		snprintf(name, sizeof name, "many-%d", i);
		arena(name, 16);
	}
	must(write(STDOUT_FILENO, "ready\n", 6) == 6);
	char ignored[16];
	while (read(STDIN_FILENO, ignored, sizeof ignored) > 0)
		continue;
	return 0;
}
