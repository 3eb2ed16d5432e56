/* A server to watch while it runs: `live 60 & tenure-top $!`. The argument is the number of seconds to
 * serve; without one it serves every client once. */
#include <stdio.h>
#include <stdlib.h>
#include <tenure/tenure.h>
#include <time.h>

enum { CLIENTS = 3, USERS = 8000 };

typedef struct session {
	char user[40];
	uint64_t seen;
} session;

/* The page ends with the request. The connection remembers some requests: its live memory grows. */
static bool serve(tn_scope *connection, unsigned number) {
	char url[TN_IDENT_BYTES + 1];
	snprintf(url, sizeof url, "GET /orders/%u", number);
	tn_scope *request = tn_scope_create(connection, "request", &(tn_scope_options){.ident = url});
	if (request == NULL)
		return false;
	char *page = tn_scope_alloc(request, 20000 + number % 7 * 3000, 0);
	if (page != NULL)
		for (unsigned i = 0; i < 20000; i++)
			page[i] = (char)(i * number);
	bool remembered = number % 50 != 0 || tn_scope_printf(connection, "%s", url) != NULL;
	tn_scope_destroy(request);
	return page != NULL && remembered;
}

/* A user comes, or leaves if they are here. */
static bool come_or_leave(tn_slab *sessions, unsigned number) {
	static session *here[USERS];
	session **s = &here[number * 2654435761u % USERS];
	if (*s != NULL) {
		tn_slab_free(sessions, *s);
		*s = NULL;
		return true;
	}
	*s = tn_slab_alloc(sessions);
	if (*s != NULL)
		snprintf((*s)->user, sizeof(*s)->user, "user %u", number);
	return *s != NULL;
}

static bool run(tn_scope *server, tn_slab *sessions, int seconds) {
	static const char *const addresses[CLIENTS] = {"192.0.2.1", "192.0.2.7", "198.51.100.4"};
	tn_scope *clients[CLIENTS];
	time_t end = time(NULL) + seconds;
	unsigned served = 0;
	for (int i = 0; i < CLIENTS; i++) {
		tn_scope_options options = {.ident = addresses[i]};
		clients[i] = tn_scope_create(server, "connection", &options);
		if (clients[i] == NULL)
			return false;
	}
	do {
		for (int i = 0; i < CLIENTS; i++)
			if (!serve(clients[i], served) || !come_or_leave(sessions, served++))
				return false;
	} while (time(NULL) < end);
	if (seconds == 0)
		printf("%u requests served\n", served);
	return true;
}

int main(int count, char **words) {
	if (!tn_live_start())
		perror("no live view");
	tn_arena *templates = tn_arena_create(&(tn_arena_options){.name = "templates"});
	tn_slab *sessions = tn_slab_create(sizeof(session), 0, &(tn_slab_options){.name = "sessions"});
	tn_scope *server = tn_scope_create(NULL, "server", NULL);
	bool done = templates != NULL && sessions != NULL && server != NULL &&
	            tn_arena_alloc(templates, 90000, 0) != NULL &&
	            run(server, sessions, count > 1 ? atoi(words[1]) : 0);
	tn_scope_destroy(server);
	tn_slab_destroy(sessions);
	tn_arena_destroy(templates);
	return done ? EXIT_SUCCESS : EXIT_FAILURE;
}
