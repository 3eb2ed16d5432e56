/* Lifetimes that nest: process > connection > request. A connection serves several requests. One line
 * ends everything that a request allocated, opened and forgot. */
#include <stdio.h>
#include <string.h>
#include <tenure/tenure.h>

static int open_files;

static void close_file(void *file) {
	fclose(file);
	open_files--;
}

/* A file that is closed when the scope ends, however it ends. */
static FILE *open_file(tn_scope *s) {
	FILE *file = tmpfile();
	if (file == NULL)
		return NULL;
	open_files++;
	if (tn_scope_defer(s, close_file, file))
		return file;
	close_file(file);
	return NULL;
}

static bool print_scope(const tn_listed *listed, void *ctx) {
	(void)ctx;
	if (listed->kind == TN_KIND_SCOPE)
		printf("%*s%s%s%s\n", 2 * (int)listed->depth + 2, "", listed->stats.name,
			listed->ident[0] == '\0' ? "" : " ", listed->ident);
	return true;
}

/* May return at any point: the caller ends the scope. */
static int answer(tn_scope *request, const char *url) {
	if (strchr(url, ' ') != NULL)
		return 400;
	char *path = tn_scope_printf(request, "htdocs%s", url);
	FILE *log = open_file(request);
	if (path == NULL || log == NULL)
		return 500;
	fprintf(log, "%s\n", path);
	if (strcmp(url, "/tree") == 0)
		tn_stats_snapshot(print_scope, NULL);
	return strcmp(url, "/") == 0 || strcmp(url, "/tree") == 0 ? 200 : 404;
}

static void serve(tn_scope *connection, const char *url) {
	tn_scope *request = tn_scope_create(connection, "request", &(tn_scope_options){.ident = url});
	int status = request == NULL ? 503 : answer(request, url);
	printf("%s: %d, %d open\n", url, status, open_files);
	tn_scope_destroy(request);
}

int main(void) {
	tn_scope *process = tn_scope_create(NULL, "process", NULL);
	tn_scope *connection =
		tn_scope_create(process, "connection", &(tn_scope_options){.ident = "192.0.2.7:5123"});
	if (connection == NULL)
		return 1;
	const char *urls[] = {"/", "/no such thing", "/nothing", "/tree"};
	for (size_t i = 0; i < sizeof urls / sizeof *urls; i++)
		serve(connection, urls[i]);
	printf("after all requests: %d open\n", open_files);
	/* Ending the process ends the connection, too, and a request that is still under way. */
	tn_scope *unfinished = tn_scope_create(connection, "request", NULL);
	if (unfinished == NULL || open_file(unfinished) == NULL)
		return 1;
	printf("a request under way: %d open\n", open_files);
	tn_scope_destroy(process);
	printf("after the process: %d open\n", open_files);
	return 0;
}
