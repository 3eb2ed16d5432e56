/* tenure-top: shows the live view of another process. */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "reader.h"
#include "report.h"
#include "screen.h"
#include "table.h"

enum { DONE = 0, FAILED = 1, USAGE = 2 };

enum output { SCREEN, ONCE, JSON, PROMETHEUS };
enum { LABELS_MOST = 32, PROCESSES_MOST = 1024, LABEL_MOST = 128 };

typedef struct arguments {
	enum output output;
	table_options table;
	double seconds; /* 0: not given */
	label labels[LABELS_MOST];
	size_t label_count;
	pid_t processes[PROCESSES_MOST];
	size_t process_count;
} arguments;

static const char help[] =
	"tenure-top - the allocators of a running process, live\n"
	"\n"
	"usage: tenure-top [options] [PID]\n"
	"\n"
	"Shows the memory of every named allocator of process PID, as a table or as the tree of\n"
	"scopes, refreshed once a second. Without PID it lists the processes that can be shown.\n"
	"The process must have a live view: start it with TENURE_LIVE=1 in its environment, or\n"
	"call tn_live_start() in it. It must belong to the same user.\n"
	"\n"
	"  -d SECONDS       time between two looks (0.1 to 3600; default 1); with --once, it looks\n"
	"                   twice and shows the growth in between\n"
	"  -s KEY           sort by name, active, total, live, cached, committed (default), growth\n"
	"  -t, --tree       show the tree in place of the table; --json nests it\n"
	"      --once       print once and exit; the default without a terminal\n"
	"      --json       print one JSON document and exit\n"
	"      --prometheus print metrics in Prometheus's text format and exit; of several processes\n"
	"                   if several are given, of all if none is\n"
	"      --label NAME=VALUE  a further label of all these metrics\n"
	"      --help       print this and exit\n"
	"      --version    print the version and exit\n"
	"\n";

static const char help_end[] =
	"\n"
	"Exit status: 0 done; 1 the process cannot be shown, or has ended; 2 wrong usage.\n"
	"Environment: TERM, LC_ALL, LC_CTYPE, LANG; NO_COLOR (with --once; no styles).\n";

static int fail_usage(const char *what, const char *argument) {
	fprintf(stderr, "tenure-top: %s%s%s\n", what, argument != NULL ? ": " : "",
		argument != NULL ? argument : "");
	fprintf(stderr, "usage: tenure-top [-t] [-d SECONDS] [-s KEY] [--once | --json] [PID]\n"
					"       tenure-top --prometheus [--label NAME=VALUE]... [PID...]\n"
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

/* A label's name in Prometheus, other than those that the metrics have. */
static bool is_label_name(const char *s, size_t size) {
	static const char *const taken[] = {"process", "pid", "kind", "name", "allocator", "thread"};
	const char *const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
	for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
		if (strlen(taken[i]) == size && strncmp(s, taken[i], size) == 0)
			return false;
	return size > 0 && size <= LABEL_MOST && strspn(s, letters) == size && !(*s >= '0' && *s <= '9') &&
	       strncmp(s, "__", 2) != 0;
}

/* Cuts NAME=VALUE in two. */
static bool parse_label(char *s, arguments *a) {
	size_t size = strcspn(s, "=");
	if (s[size] == '\0' || !is_label_name(s, size) || a->label_count == LABELS_MOST)
		return false;
	s[size] = '\0';
	for (size_t i = 0; i < a->label_count; i++)
		if (strcmp(a->labels[i].name, s) == 0)
			return s[size] = '=', false;
	a->labels[a->label_count++] = (label){s, s + size + 1};
	return true;
}

/* Returns DONE, or USAGE after a message. */
static int parse_processes(int count, char **words, arguments *a) {
	for (int i = 0; i < count; i++) {
		if (a->process_count == PROCESSES_MOST || (i > 0 && a->output != PROMETHEUS))
			return fail_usage("more than one process given", NULL);
		if (!parse_pid(words[i], &a->processes[a->process_count++]))
			return fail_usage("not a process's number", words[i]);
		/* Two series of one process would be the same. */
		for (size_t k = 0; k + 1 < a->process_count; k++)
			if (a->processes[k] == a->processes[a->process_count - 1])
				return fail_usage("a process is given twice", words[i]);
	}
	return DONE;
}

/* Handles one option; tells whether to go on. If not, sets the exit status. */
static bool parse_option(int option, arguments *a, int *status) {
	switch (option) {
	case 'h':
		return *status = DONE, printf("%s%s%s", help, screen_help, help_end), false;
	case 'v':
		return *status = DONE, puts("tenure-top " TENURE_VERSION), false;
	case 't':
		return a->table.tree = true;
	case 'o':
		return a->output = ONCE, true;
	case 'j':
		return a->output = JSON, true;
	case 'p':
		return a->output = PROMETHEUS, true;
	case 'd':
		return parse_seconds(optarg, &a->seconds) ||
		       (*status = fail_usage("not a number of seconds from 0.1 to 3600", optarg), false);
	case 's':
		return parse_sort(optarg, &a->table.sort) ||
		       (*status = fail_usage("not a key to sort by", optarg), false);
	case 'l':
		return parse_label(optarg, a) ||
		       (*status = fail_usage("not a label that can be added", optarg), false);
	default:
		return *status = fail_usage("wrong option", NULL), false;
	}
}

/* Tells whether to go on; if not, sets the exit status. */
static bool parse(int count, char **words, arguments *a, int *status) {
	static const struct option options[] = {{"tree", no_argument, NULL, 't'},
		{"once", no_argument, NULL, 'o'}, {"json", no_argument, NULL, 'j'},
		{"prometheus", no_argument, NULL, 'p'}, {"label", required_argument, NULL, 'l'},
		{"help", no_argument, NULL, 'h'}, {"version", no_argument, NULL, 'v'}, {NULL, 0, NULL, 0}};
	for (int option; (option = getopt_long(count, words, "d:s:t", options, NULL)) != -1;)
		if (!parse_option(option, a, status))
			return false;
	if (a->label_count != 0 && a->output != PROMETHEUS)
		return *status = fail_usage("--label is for --prometheus", NULL), false;
	*status = parse_processes(count - optind, words + optind, a);
	return *status == DONE;
}

static bool fail(const char *message) {
	fprintf(stderr, "tenure-top: %s\n", message);
	return false;
}

static bool write_out(text *t) {
	bool done = text_write(t, STDOUT_FILENO);
	if (!done)
		fprintf(stderr, "tenure-top: cannot write: %s\n", strerror(errno));
	text_free(t);
	return done;
}

static bool print(view *v, const arguments *a) {
	struct winsize size;
	text t = {.end_of_line = "\n", .styled = isatty(STDOUT_FILENO) && getenv("NO_COLOR") == NULL};
	if (a->output == JSON) {
		report_json(&t, v, a->table.tree);
	} else {
		/* On a terminal, only the columns that fit. */
		t.width = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
		table_header(&t, v);
		text_end_line(&t);
		table_rows(&t, v, &a->table);
	}
	return write_out(&t);
}

/* Looks a second time, if the growth is wanted of what is printed once. */
static bool look_again(view *v, const arguments *a) {
	double seconds = a->seconds != 0 ? a->seconds : a->table.sort == SORT_GROWTH ? 1 : 0;
	if (a->output == JSON || seconds == 0)
		return true;
	struct timespec pause = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
	nanosleep(&pause, NULL);
	return view_read(v);
}

static bool show_process(const arguments *a) {
	view v;
	bool read = view_open(&v, a->processes[0]) && view_read(&v), done = false;
	if (read && a->output == SCREEN && screen_is_possible())
		done = read = screen_run(&v, a->table, a->seconds != 0 ? a->seconds : 1);
	else if (read && (read = look_again(&v, a)))
		done = print(&v, a);
	if (!read)
		fail(v.message);
	view_close(&v);
	return done;
}

static bool report(const arguments *a, const view *views, size_t count) {
	text t = {.end_of_line = "\n"};
	if (a->output == PROMETHEUS)
		report_prometheus(&t, views, count, a->labels, a->label_count);
	else
		report_processes(&t, views, count, a->output == JSON);
	return write_out(&t);
}

/* All processes, or with --prometheus those that are given. */
static bool show_processes(const arguments *a) {
	view *views;
	size_t count = a->process_count;
	bool done = true;
	if (count == 0) {
		count = view_find_all(&views);
		done = count != 0 ||
		       fail("no process has a live view: start one with TENURE_LIVE=1 or call tn_live_start()");
	} else {
		views = need(calloc(count, sizeof *views));
		for (size_t i = 0; i < count; i++) {
			views[i].process = -1;
			if (done && !(view_open(&views[i], a->processes[i]) && view_read(&views[i])))
				done = fail(views[i].message);
		}
	}
	done = done && report(a, views, count);
	for (size_t i = 0; i < count; i++)
		view_close(&views[i]);
	free(views);
	return done;
}

int main(int count, char **words) {
	static arguments a = {.table = {.sort = SORT_COMMITTED}};
	int status;
	setlocale(LC_CTYPE, "");
	if (!parse(count, words, &a, &status))
		return fflush(stdout) == 0 ? status : FAILED;
	bool one = a.process_count == 1 && a.output != PROMETHEUS;
	return (one ? show_process(&a) : show_processes(&a)) ? DONE : FAILED;
}
