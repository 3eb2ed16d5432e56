/* A text that grows, in lines that are cut to a width. What comes from another process is made harmless
 * before it gets to a terminal. */
#ifndef TENURE_TOP_TEXT_H
#define TENURE_TOP_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct text {
	char *p;
	size_t size, room;
	unsigned column;         /* of the line that is being written */
	unsigned width;          /* columns beyond this are dropped; 0: none are */
	bool styled;             /* whether styles are written */
	const char *end_of_line; /* what ends a line */
} text;

void text_free(text *t);
/* Bytes as they are, which take no column. */
void text_raw(text *t, const char *bytes, size_t size);
/* ASCII of the program's own. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void text_add(text *t, const char *format, ...);
/* What another process wrote, in at most `most` columns: all that the terminal might take for more than
 * a character in one or two columns is written as \xNN. */
void text_safe(text *t, const char *s, unsigned most);
/* Blanks up to a column. */
void text_pad(text *t, unsigned column);
/* A style of ECMA-48, such as "1;7"; "" ends it. */
void text_style(text *t, const char *style);
void text_end_line(text *t);
/* Writes it to a file, and whether that was possible. */
bool text_write(const text *t, int file);

/* Whether the terminal takes UTF-8. */
bool text_is_unicode(void);
/* The bytes of the character at `s`; 0 when that is no valid UTF-8, or a control character. */
size_t text_character(const char *s);

enum { SHORT = 16 };
/* 1023, 1.5K, 12.3M; 9999999, 12.3M; 59s, 3m05s, 2h13m, 5d03h. */
void short_bytes(char out[SHORT], uint64_t bytes);
void short_count(char out[SHORT], uint64_t count);
void short_time(char out[SHORT], uint64_t milliseconds);

/* Ends the program, which has no memory; what was registered with atexit is called. */
void *need(void *p);

#endif
