/* A growing text of lines that are cut to a width. Text from another process is made safe before it
 * reaches a terminal. */
#ifndef TENURE_TOP_TEXT_H
#define TENURE_TOP_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct text {
	char *p;
	size_t size, room;
	unsigned column;         /* position in the current line */
	unsigned width;          /* columns beyond this are dropped; 0: no limit */
	bool styled;             /* styles are written */
	const char *end_of_line; /* the bytes that end a line */
} text;

void text_free(text *t);
/* Adds bytes unchanged; they take no column. */
void text_raw(text *t, const char *bytes, size_t size);
/* Adds ASCII text of this program. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void text_add(text *t, const char *format, ...);
/* Adds text of another process, in at most `most` columns. Bytes that a terminal might take for
 * anything but a character of one or two columns become \xNN. */
void text_safe(text *t, const char *s, unsigned most);
/* Adds blanks up to a column. */
void text_pad(text *t, unsigned column);
/* Begins a style of ECMA-48, such as "1;7"; "" ends it. */
void text_style(text *t, const char *style);
void text_end_line(text *t);
/* Writes the text to a file; false when that fails. */
bool text_write(const text *t, int file);

/* Tells whether the terminal takes UTF-8. */
bool text_is_unicode(void);

enum { SHORT = 16 };
/* Examples: 1023, 1.5K, 12.3M; 9999999, 12.3M; 59s, 3m05s, 2h13m, 5d03h. */
void short_bytes(char out[SHORT], uint64_t bytes);
void short_count(char out[SHORT], uint64_t count);
/* Examples: +1.5K, -12.3M, 0. */
void short_change(char out[SHORT], int64_t bytes);
void short_time(char out[SHORT], uint64_t milliseconds);

/* Returns p, or ends the program for lack of memory if p is NULL; atexit handlers run. */
void *need(void *p);

#endif
