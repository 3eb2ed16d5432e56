#define _GNU_SOURCE
#include "screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum { HEADER_LINES = 5, FOOTER_LINES = 1 };

const char screen_help[] =
	"Keys:\n"
	"  n a o l h c g    sort by name, active, total, live, cached (\"held\"), committed\n"
	"                   or growth\n"
	"  t                table or tree\n"
	"  arrows, Page Up and Down, Home, End    move\n"
	"  ?  this help;  q  quit\n"
	"\n"
	"Columns:\n"
	"  ACTIVE, TOTAL    objects handed out, and objects that fit; USE is their ratio\n"
	"  OBJSIZE          bytes of an object's slot; OBJ/SLAB slots of a slab (a chunk)\n"
	"  SLABS            chunks; ACTIVE-SLABS with live objects, PARTIAL not full\n"
	"  IN-THREADS       part of CACHED in the magazines of threads\n"
	"  LIVE, CACHED     bytes handed out, and bytes kept for the next call\n"
	"  WASTE            part of LIVE that rounding adds, of heaps and slabs\n"
	"  GROWTH/S         change of LIVE in a second, over the last 5 to 10 seconds\n"
	"  COMMITTED        bytes taken from the system; WITH-BELOW adds the tree below\n"
	"  PEAK             the most live bytes seen\n"
	"  EXTERNAL         bytes of other libraries that a scope was told of\n"
	"  AGE              time since the first chunk or the last reset\n"
	"A dash marks a figure that allocators of that kind do not have.\n"
	"A narrow terminal shows fewer columns, and leaves out those with dashes first.\n";

static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};
static volatile sig_atomic_t received; /* the last one of these, except SIGWINCH */
static struct termios terminal_before;
static bool entered;

bool screen_is_possible(void) {
	const char *terminal = getenv("TERM");
	return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && terminal != NULL && *terminal != '\0' &&
	       strcmp(terminal, "dumb") != 0;
}

static void say(const char *control) {
	text_write(&(text){.p = (char *)(uintptr_t)control, .size = strlen(control)}, STDOUT_FILENO);
}

/* Switches to the alternate screen, without a cursor; keys arrive at once and are not echoed. */
static void enter(void) {
	struct termios terminal = terminal_before;
	terminal.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	terminal.c_cc[VMIN] = 1;
	terminal.c_cc[VTIME] = 0;
	tcsetattr(STDIN_FILENO, TCSAFLUSH, &terminal);
	say("\033[?1049h\033[?25l");
	entered = true;
}

static void leave(void) {
	if (!entered)
		return;
	entered = false;
	tcsetattr(STDIN_FILENO, TCSAFLUSH, &terminal_before);
	say("\033[?25h\033[?1049l");
}

static void on_signal(int number) {
	if (number != SIGWINCH)
		received = number;
}

/* Lets signals in only while the screen waits, so that no work is left half done. */
static sigset_t catch_signals(void) {
	sigset_t caught, before;
	sigemptyset(&caught);
	for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
		sigaddset(&caught, signals[i]);
		sigaction(signals[i], &(struct sigaction){.sa_handler = on_signal}, NULL);
	}
	sigprocmask(SIG_BLOCK, &caught, &before);
	return before;
}

/* Applies the default action of the signal; returns when the program continues after a stop. */
static void obey(int number, const sigset_t *open) {
	sigset_t now;
	leave();
	signal(number, SIG_DFL);
	raise(number);
	sigprocmask(SIG_SETMASK, open, &now);
	sigprocmask(SIG_SETMASK, &now, NULL);
	sigaction(number, &(struct sigaction){.sa_handler = on_signal}, NULL);
	enter();
}

/* ---- output ---- */

/* Tells which rows are visible, unless all are. */
static void add_position(text *t, const table_options *o, size_t rows) {
	if (o->height < rows)
		text_add(t, "rows %zu to %zu of %zu", o->first + 1, o->first + o->height, rows);
	text_end_line(t);
}

static void add_footer(text *t, const table_options *o) {
	text_style(t, "7");
	text_add(t, " q quit  ? help  t %s  sort:", o->tree ? "table" : "tree");
	for (int i = 0; i < SORT_COUNT; i++) {
		const char *name = sort_names[i];
		text_add(t, " ");
		text_style(t, (int)o->sort == i ? "1" : "22");
		text_add(t, "%c", sort_letters[i]);
		text_style(t, "22");
		text_add(t, " %s%s", name, (int)o->sort == i ? "*" : " ");
	}
	text_pad(t, t->width);
	text_style(t, "");
}

static void add_help(text *t, unsigned rows) {
	const char *line = screen_help;
	for (unsigned i = 1; i < rows && *line != '\0'; i++) {
		size_t size = strcspn(line, "\n");
		text_add(t, "%.*s", (int)size, line);
		text_end_line(t);
		line += size + (line[size] == '\n');
	}
}

/* Writes everything at once, each line over the old one. The old line is erased first: after a line as
 * wide as the terminal, the cursor is on its last character. */
static bool show(const view *v, table_options *o, bool help) {
	struct winsize size = {.ws_row = 24, .ws_col = 80};
	ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	unsigned rows = size.ws_row > 0 ? size.ws_row : 24, width = size.ws_col > 0 ? size.ws_col : 80;
	size_t lines = rows > HEADER_LINES + FOOTER_LINES ? rows - HEADER_LINES - FOOTER_LINES : 1;
	size_t most = v->state.row_count > lines ? v->state.row_count - lines : 0;
	text t = {.width = width, .styled = true, .end_of_line = "\r\n\033[K"};
	o->height = lines;
	o->first = o->first < most ? o->first : most;
	text_raw(&t, "\033[H\033[K", 6);
	if (help) {
		add_help(&t, rows);
	} else {
		table_header(&t, v);
		add_position(&t, o, v->state.row_count);
		table_rows(&t, v, o);
	}
	text_raw(&t, "\033[J", 3);
	char last[32];
	snprintf(last, sizeof last, "\033[%u;1H", rows);
	text_raw(&t, last, strlen(last));
	add_footer(&t, o);
	bool done = text_write(&t, STDOUT_FILENO);
	text_free(&t);
	return done;
}

/* ---- keys ---- */

static size_t less(size_t from, size_t by) {
	return from > by ? from - by : 0;
}

/* Handles one key at the front of `keys`, which ends with 0; returns the rest. */
static const char *press(const char *keys, table_options *o, bool *help, bool *quit) {
	static const struct {
		const char *keys;
		int pages, lines;
	} moves[] = {{"\033[A", 0, -1}, {"\033[B", 0, 1}, {"\033OA", 0, -1}, {"\033OB", 0, 1},
		{"\033[5~", -1, 0}, {"\033[6~", 1, 0}, {"\033[H", -TN_LIVE_ROWS, 0},
		{"\033[F", TN_LIVE_ROWS, 0}};
	/* The key that leaves the help does nothing else, except q. */
	bool helped = *help;
	*help = !helped && *keys == '?';
	for (size_t i = 0; i < sizeof moves / sizeof moves[0]; i++) {
		size_t size = strlen(moves[i].keys);
		if (strncmp(keys, moves[i].keys, size) != 0)
			continue;
		if (helped)
			return keys + size;
		long by = moves[i].pages * (long)o->height + moves[i].lines;
		o->first = by < 0 ? less(o->first, (size_t)-by) : o->first + (size_t)by;
		return keys + size;
	}
	for (int i = 0; i < SORT_COUNT; i++)
		if (!helped && *keys == sort_letters[i])
			o->sort = (sort_key)i;
	if (!helped && *keys == 't') {
		o->tree = !o->tree;
		o->first = 0;
	}
	*quit = *quit || *keys == 'q';
	return keys + 1;
}

static uint64_t milliseconds_now(void) {
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Waits for a key, a signal or the time of the next snapshot; tells whether to go on. */
static bool wait_for_keys(table_options *o, bool *help, uint64_t next_ms, const sigset_t *open) {
	uint64_t now = milliseconds_now(), left = next_ms > now ? next_ms - now : 0;
	struct timespec most = {(time_t)(left / 1000), (long)(left % 1000 * 1000000)};
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	int ready = ppoll(&input, 1, &most, open);
	if (received != 0) {
		int number = received;
		received = 0;
		obey(number, open);
		return true;
	}
	if (ready <= 0)
		return ready == 0 || errno == EINTR;
	char keys[65];
	ssize_t size = read(STDIN_FILENO, keys, sizeof keys - 1);
	if (size <= 0)
		return size < 0 && (errno == EINTR || errno == EAGAIN);
	keys[size] = '\0';
	bool quit = false;
	for (const char *key = keys; *key != '\0' && !quit;)
		key = press(key, o, help, &quit);
	return !quit;
}

bool screen_run(view *v, table_options options, double seconds) {
	uint64_t interval_ms = (uint64_t)(seconds * 1000), next_ms = milliseconds_now() + interval_ms;
	tcgetattr(STDIN_FILENO, &terminal_before);
	sigset_t open = catch_signals();
	atexit(leave);
	enter();
	bool readable = true, help = false;
	while (readable && show(v, &options, help) && wait_for_keys(&options, &help, next_ms, &open)) {
		if (milliseconds_now() < next_ms)
			continue;
		readable = view_read(v);
		next_ms = milliseconds_now() + interval_ms;
	}
	leave();
	return readable;
}
