/* Panics. The line is built in a buffer on the stack and written by one write. */
#include "panic.h"

#include <tenure/detail/front.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "atomics.h"
#include "bits.h"
#include "os.h"
#include "text.h"

const char tn_mode_marker = TN_MODE;

/* The same symbol in every mode: two modes in one program are a duplicate definition. The marker beside
 * it is referred to by every user, so the linker never leaves this object out. */
extern const char tn_one_mode_per_program;
const char tn_one_mode_per_program = TN_MODE;

static TN_ATOMIC(tn_panic_hook) panic_hook;

tn_panic_hook tn_on_panic(tn_panic_hook next) {
	return tn_swap(&panic_hook, next, TN_ACQ_REL);
}

enum { LINE_BYTES = 512 };

static size_t panic_print(
	char *line, const char *kind, const char *name, const char *format, va_list rest) {
	int head = name == NULL ? snprintf(line, LINE_BYTES, "tenure: %s: ", kind)
	                        : snprintf(line, LINE_BYTES, "tenure: %s \"%s\": ", kind, name);
	size_t size = head < 0 ? 0 : (size_t)head;
	int tail = vsnprintf(line + size, LINE_BYTES - size, format, rest);
	size = tn_min(size + (tail < 0 ? 0 : (size_t)tail), LINE_BYTES - 2);
	line[size] = '\0';
	/* The names in it are texts that others wrote. */
	tn_text_clean(line);
	return size;
}

static void panic_write(char *line, size_t size) {
	line[size] = '\n';
	tn_os_write(line, size + 1);
}

void tn_report(const char *kind, const char *name, const char *format, ...) {
	char line[LINE_BYTES];
	va_list rest;
	va_start(rest, format);
	panic_write(line, panic_print(line, kind, name, format, rest));
	va_end(rest);
}

void tn_panic(const char *kind, const char *name, const char *format, ...) {
	char line[LINE_BYTES];
	va_list rest;
	va_start(rest, format);
	size_t size = panic_print(line, kind, name, format, rest);
	va_end(rest);
	line[size] = '\0';
	tn_panic_hook now = tn_get(&panic_hook, TN_ACQUIRE);
	if (now != NULL)
		now(line);
	else
		panic_write(line, size);
	abort();
}

tn_site_text tn_site(const void *code) {
	tn_site_text site;
	uintptr_t base = 0;
	const char *path = tn_os_module(code, &base);
	const char *slash = strrchr(path, '/');
	snprintf(site.text, sizeof site.text, "%.60s+0x%zx", slash == NULL ? path : slash + 1,
		(size_t)((uintptr_t)code - base));
	return site;
}

void tn_busy_panic(const char *kind, const char *name, const char *operation, uintptr_t other) {
	if (TN_MODE == TN_MODE_DEBUG)
		tn_panic(kind, name, "%s: thread %zu overlaps a call of thread %zu", operation,
			(size_t)tn_os_thread(), (size_t)other);
	tn_panic(kind, name, "%s: overlaps another call", operation);
}

void tn_front_panic(const char *kind, const char *operation, const void *p, const char *what) {
	tn_panic(kind, NULL, "%s: %p %s", operation, p, what);
}
