/* tenure-top: shows the live view of another process. */
#include <errno.h>
#include <getopt.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "reader.h"
#include "report.h"
#include "screen.h"
#include "table.h"

enum { DONE = 0, FAILED = 1, USAGE = 2 };

enum output { SCREEN, ONCE, JSON, PROMETHEUS };

typedef struct arguments {
	enum output output;
	table_options table;
	double seconds;
	pid_t pid;
} arguments;

static const char help[] =
	"tenure-top - the allocators of a running process, live\n"
	"\n"
	"usage: tenure-top [options] PID\n"
	"\n"
	"Shows the memory of every named allocator of process PID, as a table or as the tree of\n"
	"scopes, refreshed once a second. The process must have a live view: start it with\n"
	"TENURE_LIVE=1 in its environment, or call tn_live_start() in it. It must belong to the\n"
	"same user.\n"
	"\n"
	"  -d SECONDS       time between two snapshots (0.1 to 3600; default 1)\n"
	"  -s KEY           sort by name, active, total, live, cached or committed (default)\n"
	"  -t, --tree       show the tree in place of the table\n"
	"      --once       print once and exit; the default without a terminal\n"
	"      --json       print one JSON document and exit\n"
	"      --prometheus print metrics in Prometheus's text format and exit\n"
	"      --help       print this and exit\n"
	"      --version    print the version and exit\n"
	"\n"
	"Keys: n a o l h c sort by name, active, total, live, cached (\"held\"), committed;\n"
	"t changes between table and tree; arrows, Page Up and Down, Home and End move; q quits.\n"
	"\n"
	"Columns:\n"
	"  ACTIVE, TOTAL    objects handed out, and objects that fit; USE is their ratio\n"
	"  OBJSIZE          bytes of an object's slot; OBJ/SLAB slots of a slab (a chunk)\n"
	"  SLABS            chunks; ACTIVE-SLABS with live objects, PARTIAL with live and free ones\n"
	"  IN-THREADS       part of CACHED in the magazines of threads\n"
	"  LIVE, CACHED     bytes handed out, and bytes kept for the next call\n"
	"  COMMITTED        bytes taken from the system; WITH-BELOW adds everything below in the tree\n"
	"  PEAK             the most live bytes seen\n"
	"  EXTERNAL         bytes of other libraries that a scope was told of\n"
	"  AGE              time since the first chunk or the last reset\n"
	"A dash marks a figure that allocators of that kind do not have.\n"
	"\n"
	"Exit status: 0 done; 1 the process cannot be shown, or has ended; 2 wrong usage.\n"
	"Environment: TERM, LC_ALL, LC_CTYPE, LANG; NO_COLOR (with --once; no styles).\n";

static int fail_usage(const char *what, const char *argument) {
	fprintf(stderr, "tenure-top: %s%s%s\n", what, argument != NULL ? ": " : "",
		argument != NULL ? argument : "");
	fprintf(stderr,
		"usage: tenure-top [-t] [-d SECONDS] [-s KEY] [--once | --json | --prometheus] PID\n"
		"       tenure-top --help\n");
	return USAGE;
}

static bool parse_seconds(const char *s, double *seconds) {
	char *end;
	*seconds = strtod(s, &end);
	return end != s && *end == '\0' && *seconds >= 0.1 && *seconds <= 3600;
}

static bool parse_sort(const char *s, sort_key *sort) {
	for (int i = 0; i < SORT_COUNT; i++)
		if (strcmp(s, sort_names[i]) == 0)
			return *sort = (sort_key)i, true;
	return false;
}

static bool parse_pid(const char *s, pid_t *pid) {
	char *end;
	errno = 0;
	long number = strtol(s, &end, 10);
	*pid = (pid_t)number;
	return *s >= '1' && *s <= '9' && *end == '\0' && errno == 0 && number <= INT32_MAX;
}

/* Tells whether to go on; if not, sets the exit status. */
static bool parse(int count, char **words, arguments *a, int *status) {
	static const struct option options[] = {{"tree", no_argument, NULL, 't'},
		{"once", no_argument, NULL, 'o'}, {"json", no_argument, NULL, 'j'},
		{"prometheus", no_argument, NULL, 'p'}, {"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'v'}, {NULL, 0, NULL, 0}};
	*status = USAGE;
	for (int option; (option = getopt_long(count, words, "d:s:t", options, NULL)) != -1;) {
		*status = DONE;
		if (option == 'h')
			return fputs(help, stdout), false;
		if (option == 'v')
			return puts("tenure-top " TENURE_VERSION), false;
		if (option == 't')
			a->table.tree = true;
		else if (option == 'd' && !parse_seconds(optarg, &a->seconds))
			return *status = fail_usage("not a number of seconds from 0.1 to 3600", optarg), false;
		else if (option == 's' && !parse_sort(optarg, &a->table.sort))
			return *status = fail_usage("not a key to sort by", optarg), false;
		else if (option == '?')
			return *status = fail_usage("wrong option", NULL), false;
		else if (strchr("ojp", option) != NULL)
			a->output = option == 'o' ? ONCE : option == 'j' ? JSON : PROMETHEUS;
	}
	if (optind + 1 != count)
		return *status = fail_usage(
				   optind == count ? "no process given" : "more than one process given", NULL),
		       false;
	if (!parse_pid(words[optind], &a->pid))
		return *status = fail_usage("not a process's number", words[optind]), false;
	return true;
}

static bool print(view *v, const arguments *a) {
	struct winsize size;
	text t = {.end_of_line = "\n", .styled = isatty(STDOUT_FILENO) && getenv("NO_COLOR") == NULL};
	if (a->output == JSON)
		report_json(&t, v);
	else if (a->output == PROMETHEUS)
		report_prometheus(&t, v);
	else {
		/* On a terminal, only the columns that fit. */
		t.width = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
		table_header(&t, v);
		text_end_line(&t);
		table_rows(&t, v, &a->table);
	}
	bool done = text_write(&t, STDOUT_FILENO);
	if (!done)
		snprintf(v->message, sizeof v->message, "cannot write: %s", strerror(errno));
	text_free(&t);
	return done;
}

int main(int count, char **words) {
	arguments a = {.table = {.sort = SORT_COMMITTED}, .seconds = 1};
	int status;
	view v;
	setlocale(LC_CTYPE, "");
	if (!parse(count, words, &a, &status))
		return fflush(stdout) == 0 ? status : FAILED;
	bool done = view_open(&v, a.pid) && view_read(&v);
	if (done && a.output == SCREEN && screen_is_possible())
		done = screen_run(&v, a.table, a.seconds);
	else
		done = done && print(&v, &a);
	if (!done)
		fprintf(stderr, "tenure-top: %s\n", v.message);
	view_close(&v);
	return done ? DONE : FAILED;
}
