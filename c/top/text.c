#define _GNU_SOURCE
#include "text.h"

#include <errno.h>
#include <langinfo.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "base/text.h"

void *need(void *p) {
	if (p != NULL)
		return p;
	fputs("tenure-top: out of memory\n", stderr);
	exit(1);
}

void text_free(text *t) {
	free(t->p);
	t->p = NULL;
	t->size = t->room = 0;
}

void text_raw(text *t, const char *bytes, size_t size) {
	if (t->room - t->size < size) {
		t->room = 2 * t->room + size + 1024;
		t->p = need(realloc(t->p, t->room));
	}
	memcpy(t->p + t->size, bytes, size);
	t->size += size;
}

/* Adds one character, if the line has room for it. */
static void add_character(text *t, const char *bytes, size_t size, unsigned columns) {
	if (t->width == 0 || t->column + columns <= t->width)
		text_raw(t, bytes, size);
	t->column += columns;
}

void text_add(text *t, const char *format, ...) {
	char line[512];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(line, sizeof line, format, arguments);
	va_end(arguments);
	for (const char *c = line; *c != '\0'; c++)
		add_character(t, c, 1, 1);
}

void text_safe(text *t, const char *s, unsigned most) {
	mbstate_t state = {0};
	for (unsigned column = 0; *s != '\0';) {
		wchar_t wide;
		size_t size = mbrtowc(&wide, s, strlen(s), &state);
		bool shows = size > 0 && size <= strlen(s) && tn_text_character(s) == size;
		int width = shows ? wcwidth(wide) : 0;
		unsigned columns = width > 0 ? (unsigned)width : 4;
		if (column + columns > most)
			return;
		if (width > 0) {
			add_character(t, s, size, columns);
		} else {
			text_add(t, "\\x%02x", (unsigned char)*s);
			state = (mbstate_t){0};
			size = 1;
		}
		column += columns;
		s += size;
	}
}

void text_pad(text *t, unsigned column) {
	while (t->column < column)
		add_character(t, " ", 1, 1);
}

void text_style(text *t, const char *style) {
	if (!t->styled)
		return;
	text_raw(t, "\033[", 2);
	text_raw(t, style, strlen(style));
	text_raw(t, "m", 1);
}

void text_end_line(text *t) {
	text_raw(t, t->end_of_line, strlen(t->end_of_line));
	t->column = 0;
}

bool text_write(const text *t, int file) {
	for (size_t done = 0; done < t->size;) {
		ssize_t written = write(file, t->p + done, t->size - done);
		if (written < 0 && errno == EAGAIN)
			poll(&(struct pollfd){.fd = file, .events = POLLOUT}, 1, -1);
		else if (written < 0 && errno != EINTR)
			return false;
		done += written > 0 ? (size_t)written : 0;
	}
	return true;
}

bool text_is_unicode(void) {
	return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

/* One decimal place below 100, none above; no unit below `plain`. */
static void short_number(char out[SHORT], uint64_t n, uint64_t plain, double step, const char *units) {
	double value = (double)n;
	if (n < plain) {
		snprintf(out, SHORT, "%llu", (unsigned long long)n);
		return;
	}
	for (value /= step; value >= step && units[1] != '\0'; units++)
		value /= step;
	snprintf(out, SHORT, value < 99.95 ? "%.1f%c" : "%.0f%c", value, *units);
}

void short_bytes(char out[SHORT], uint64_t bytes) {
	short_number(out, bytes, 1024, 1024, "KMGTPE");
}

void short_change(char out[SHORT], int64_t bytes) {
	char size[SHORT];
	short_bytes(size, bytes < 0 ? 0 - (uint64_t)bytes : (uint64_t)bytes);
	snprintf(out, SHORT, "%s%.*s", bytes < 0 ? "-" : bytes > 0 ? "+" : "", SHORT - 2, size);
}

void short_count(char out[SHORT], uint64_t count) {
	short_number(out, count, 10000000, 1000, "kMGTPE");
}

void short_time(char out[SHORT], uint64_t milliseconds) {
	unsigned long long s = milliseconds / 1000;
	if (s < 60)
		snprintf(out, SHORT, "%llus", s);
	else if (s < 3600)
		snprintf(out, SHORT, "%llum%02llus", s / 60, s % 60);
	else if (s < 86400)
		snprintf(out, SHORT, "%lluh%02llum", s / 3600, s / 60 % 60);
	else if (s / 86400 < 100000)
		snprintf(out, SHORT, "%llud%02lluh", s / 86400, s / 3600 % 24);
	else
		snprintf(out, SHORT, "?");
}
