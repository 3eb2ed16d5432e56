#define _GNU_SOURCE
#include "reader.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "text.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

enum { TRIES = 500 /* a millisecond each */, STATUS_BYTES = 16384, GROWTH_MS = 5000 };
static const double GROWTH_MOST = 1e18;

__attribute__((format(printf, 2, 3))) static bool fail(view *v, const char *format, ...) {
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(v->message, sizeof v->message, format, arguments);
	va_end(arguments);
	return false;
}

/* Reads a small file of the process as a string; false when it cannot. */
static bool read_text(const view *v, const char *path, char *out, size_t room) {
	int file = openat(v->process, path, O_RDONLY | O_CLOEXEC);
	ssize_t size = file < 0 ? -1 : read(file, out, room - 1);
	if (file >= 0)
		close(file);
	out[size < 0 ? 0 : size] = '\0';
	return size > 0;
}

/* Finds the text behind "\nkey:" in the status of a process; "" when there is no such line. */
static const char *field(const char *status, const char *key) {
	const char *found = strstr(status, key);
	return found == NULL ? "" : found + strlen(key);
}

static bool has_ended(const view *v) {
	char status[STATUS_BYTES];
	if (!read_text(v, "status", status, sizeof status))
		return true;
	char state = field(status, "\nState:\t")[0];
	return state == 'Z' || state == 'X';
}

static bool fail_ended(view *v) {
	v->ended = true;
	return fail(v, "process %d has ended", (int)v->pid);
}

static bool fail_missing(view *v) {
	return fail(v, "process %d has no live view: start it with TENURE_LIVE=1 or call tn_live_start()",
		(int)v->pid);
}

static bool fail_damaged(view *v, const char *what) {
	return fail(v, "the live view of process %d is damaged: %s", (int)v->pid, what);
}

/* Fails with the reason that the files of the process are hidden. */
static bool fail_refused(view *v) {
	char status[STATUS_BYTES];
	if (!read_text(v, "status", status, sizeof status))
		return fail_ended(v);
	unsigned long uid = strtoul(field(status, "\nUid:\t"), NULL, 10);
	if (uid != geteuid())
		return fail(v, "process %d belongs to another user (uid %lu): run tenure-top as that user",
			(int)v->pid, uid);
	return fail(v, "process %d hides its files (it is not dumpable, or has more rights)", (int)v->pid);
}

/* The number of the process in its own PID namespace, the innermost, which comes last. */
static uint64_t own_number(const view *v) {
	char status[STATUS_BYTES];
	read_text(v, "status", status, sizeof status);
	const char *numbers = field(status, "\nNStgid:");
	uint64_t number = (uint64_t)v->pid;
	while (*numbers == '\t') {
		char *end;
		number = strtoull(numbers, &end, 10);
		numbers = end;
	}
	return number;
}

static bool check_header(view *v, size_t size) {
	const tn_live_header *h = &v->header;
	if (memcmp(h->magic, TN_LIVE_MAGIC, sizeof h->magic) != 0)
		return fail_damaged(v, "no magic number");
	if (h->version != TN_LIVE_VERSION)
		return fail(v,
			"the live view of process %d has version %u, and this tenure-top reads version %d",
			(int)v->pid, h->version, TN_LIVE_VERSION);
	if (h->header_bytes != offsetof(tn_live_file, rows) || h->row_bytes != sizeof(tn_live_row) ||
		h->row_max != TN_LIVE_ROWS || size < sizeof(tn_live_file))
		return fail_damaged(v, "sizes that do not fit");
	/* A child has not closed its parent's file yet. */
	if (h->process != own_number(v))
		return fail_missing(v);
	return true;
}

/* A file that could shrink while it is mapped would kill its reader. */
static bool map_view(view *v, int file) {
	struct stat is;
	int seals = fcntl(file, F_GET_SEALS), needed = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE;
	if (seals < 0 || (seals & needed) != needed)
		return fail_damaged(v, "it is not sealed");
	if (fstat(file, &is) != 0 || is.st_size < (off_t)sizeof(tn_live_header))
		return fail_damaged(v, "it is too short");
	size_t size = (size_t)is.st_size < sizeof(tn_live_file) ? (size_t)is.st_size : sizeof(tn_live_file);
	void *p = mmap(NULL, size, PROT_READ, MAP_SHARED, file, 0);
	if (p == MAP_FAILED)
		return fail(v, "cannot map the live view: %s", strerror(errno));
	memcpy(&v->header, p, sizeof v->header);
	if (!check_header(v, size)) {
		munmap(p, size);
		return false;
	}
	v->shown = p;
	v->device = is.st_dev;
	v->inode = is.st_ino;
	return true;
}

static bool open_file(view *v, const char *number) {
	char link[64] = "";
	snprintf(v->file, sizeof v->file, "fd/%.20s", number);
	ssize_t size = readlinkat(v->process, v->file, link, sizeof link - 1);
	if (size < 0 || strcmp(link, "/memfd:" TN_LIVE_NAME " (deleted)") != 0)
		return false;
	int file = openat(v->process, v->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (file < 0)
		return fail(v, "cannot open the live view of process %d: %s", (int)v->pid, strerror(errno));
	bool done = map_view(v, file);
	close(file);
	return done;
}

static bool find_file(view *v) {
	int directory = openat(v->process, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *files = directory < 0 ? NULL : fdopendir(directory);
	if (files == NULL) {
		int error = errno;
		if (directory >= 0)
			close(directory);
		return error == EACCES || error == EPERM ? fail_refused(v) : fail_ended(v);
	}
	fail_missing(v);
	bool found = false;
	for (struct dirent *entry; !found && (entry = readdir(files)) != NULL;)
		found = entry->d_name[0] != '.' && open_file(v, entry->d_name);
	closedir(files);
	if (!found && has_ended(v))
		return fail_ended(v);
	return found;
}

bool view_open(view *v, pid_t pid) {
	char path[32];
	*v = (view){.pid = pid};
	snprintf(path, sizeof path, "/proc/%d", (int)pid);
	v->process = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (v->process < 0)
		return fail(
			v, errno == ENOENT ? "there is no process %d" : "cannot look at process %d", (int)pid);
	if (!find_file(v))
		return false;
	v->rows = need(malloc(sizeof v->shown->rows));
	v->totals = need(malloc(sizeof v->shown->totals));
	return true;
}

static void unmap_view(view *v) {
	if (v->shown != NULL)
		munmap((void *)(uintptr_t)v->shown, sizeof *v->shown);
	v->shown = NULL;
}

void view_close(view *v) {
	unmap_view(v);
	free(v->rows);
	free(v->totals);
	free(v->growth);
	free(v->past[0].rows);
	free(v->past[1].rows);
	v->rows = NULL;
	v->totals = NULL;
	v->growth = NULL;
	v->past[0] = v->past[1] = (view_past){0};
	if (v->process >= 0)
		close(v->process);
	v->process = -1;
}

/* Tells whether the mapped file is current; if not, maps the current one. */
static bool follow_view(view *v) {
	struct stat is;
	if (fstatat(v->process, v->file, &is, 0) == 0 && is.st_dev == v->device && is.st_ino == v->inode)
		return !has_ended(v) || fail_ended(v);
	unmap_view(v);
	if (find_file(v))
		return true;
	return v->ended ? false : fail(v, "process %d has ended its live view", (int)v->pid);
}

/* Tries once; false when a snapshot was written meanwhile. Only then may a count be wrong. */
static bool copy_snapshot(view *v) {
	uint64_t before = tn_live_sequence(v->shown);
	if (before == 0 || before % 2 != 0)
		return false;
	tn_live_load(&v->state, &v->shown->state, sizeof v->state);
	if (v->state.row_count <= TN_LIVE_ROWS)
		tn_live_load(v->rows, v->shown->rows, v->state.row_count * sizeof v->rows[0]);
	if (v->state.total_count <= TN_LIVE_TOTALS)
		tn_live_load(v->totals, v->shown->totals, v->state.total_count * sizeof v->totals[0]);
	v->sequence = before / 2;
	return tn_live_sequence(v->shown) == before;
}

/* ---- growth ---- */

static int by_id(const void *a, const void *b) {
	const struct view_past_row *one = a, *other = b;
	return one->id < other->id ? -1 : one->id > other->id;
}

static void keep_past(view_past *past, const view *v) {
	past->taken_ms = v->state.taken_ms;
	past->count = v->state.row_count;
	past->rows = need(realloc(past->rows, (past->count + 1) * sizeof *past->rows));
	for (size_t i = 0; i < past->count; i++)
		past->rows[i] = (struct view_past_row){v->rows[i].id, v->rows[i].live_bytes};
	qsort(past->rows, past->count, sizeof *past->rows, by_id);
}

/* An allocator that was not there had no live bytes. */
static void measure_growth(view *v) {
	const view_past *past = &v->past[v->past[0].taken_ms == 0];
	v->growth = need(realloc(v->growth, (v->state.row_count + 1) * sizeof *v->growth));
	v->growth_ms = past->taken_ms == 0 || v->state.taken_ms < past->taken_ms
	                   ? 0
	                   : v->state.taken_ms - past->taken_ms;
	for (size_t i = 0; i < v->state.row_count; i++) {
		struct view_past_row key = {v->rows[i].id, 0}, *found = NULL;
		if (past->taken_ms != 0)
			found = bsearch(&key, past->rows, past->count, sizeof key, by_id);
		double change = (double)v->rows[i].live_bytes - (found != NULL ? (double)found->live_bytes : 0);
		double rate = v->growth_ms == 0 ? 0 : change * 1000 / (double)v->growth_ms;
		/* A damaged view may have any figures. */
		v->growth[i] = (int64_t)(rate > GROWTH_MOST    ? GROWTH_MOST
								 : rate < -GROWTH_MOST ? -GROWTH_MOST
													   : rate);
	}
}

static void note_growth(view *v) {
	measure_growth(v);
	if (v->past[1].taken_ms != 0 && v->state.taken_ms - v->past[1].taken_ms < GROWTH_MS)
		return;
	view_past oldest = v->past[0];
	v->past[0] = v->past[1];
	v->past[1] = oldest;
	keep_past(&v->past[1], v);
}

static bool fail_to_copy(view *v) {
	if (has_ended(v))
		return fail_ended(v);
	uint64_t sequence = tn_live_sequence(v->shown);
	if (sequence == 0)
		return fail(v, "process %d has not written a snapshot yet", (int)v->pid);
	return fail(v, "process %d is stopped in the middle of a snapshot", (int)v->pid);
}

bool view_read(view *v) {
	const struct timespec pause = {0, 1000000};
	if (!follow_view(v))
		return false;
	for (int tries = 0; !copy_snapshot(v); tries++) {
		if (tries == TRIES)
			return fail_to_copy(v);
		nanosleep(&pause, NULL);
	}
	if (v->state.row_count > TN_LIVE_ROWS || v->state.total_count > TN_LIVE_TOTALS)
		return fail_damaged(v, "its counts are out of range");
	for (size_t i = 0; i < v->state.row_count; i++) {
		v->rows[i].name[sizeof v->rows[i].name - 1] = '\0';
		v->rows[i].ident[sizeof v->rows[i].ident - 1] = '\0';
	}
	for (size_t i = 0; i < v->state.total_count; i++)
		v->totals[i].name[sizeof v->totals[i].name - 1] = '\0';
	v->state.malloc_name[sizeof v->state.malloc_name - 1] = '\0';
	if (read_text(v, "comm", v->name, sizeof v->name))
		v->name[strcspn(v->name, "\n")] = '\0';
	note_growth(v);
	return true;
}

/* ---- all processes ---- */

static int by_number(const void *a, const void *b) {
	pid_t one = *(const pid_t *)a, other = *(const pid_t *)b;
	return (one > other) - (one < other);
}

static size_t find_processes(pid_t **processes) {
	DIR *directory = opendir("/proc");
	size_t count = 0, room = 0;
	*processes = NULL;
	for (struct dirent *entry; directory != NULL && (entry = readdir(directory)) != NULL;) {
		char *end;
		long number = strtol(entry->d_name, &end, 10);
		if (number <= 0 || number > INT32_MAX || *end != '\0')
			continue;
		if (count == room)
			*processes = need(realloc(*processes, (room = 2 * room + 64) * sizeof **processes));
		(*processes)[count++] = (pid_t)number;
	}
	if (directory != NULL)
		closedir(directory);
	if (count != 0)
		qsort(*processes, count, sizeof **processes, by_number);
	return count;
}

size_t view_find_all(view **views) {
	pid_t *processes;
	size_t count = find_processes(&processes), found = 0;
	*views = NULL;
	for (size_t i = 0; i < count; i++) {
		view v;
		if (!view_open(&v, processes[i]) || !view_read(&v)) {
			view_close(&v);
			continue;
		}
		*views = need(realloc(*views, (found + 1) * sizeof **views));
		(*views)[found++] = v;
	}
	free(processes);
	return found;
}
