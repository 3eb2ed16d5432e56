/* Text that others wrote, such as the name of an allocator, before it goes to a log or a terminal. Such
 * a name is often the URL or the query of a stranger. */
#ifndef TENURE_TEXT_H
#define TENURE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads the character of UTF-8 (RFC 3629) at `s`, a string, into `*code`. Returns its bytes; 0 where
 * there is no valid one. */
static inline size_t tn_text_read(const char *s, uint32_t *code) {
	const unsigned char *c = (const unsigned char *)s;
	size_t size = c[0] < 0x80 ? 1 : c[0] >= 0xf0 ? 4 : c[0] >= 0xe0 ? 3 : 2;
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	*code = size == 1 ? c[0] : c[0] & (0xffu >> (size + 1));
	if (c[0] == 0 || (c[0] >= 0x80 && c[0] < 0xc0) || c[0] >= 0xf8)
		return 0;
	for (size_t i = 1; i < size; i++) {
		if ((c[i] & 0xc0) != 0x80)
			return 0;
		*code = *code << 6 | (c[i] & 0x3fu);
	}
	bool surrogate = *code >= 0xd800 && *code < 0xe000;
	return *code < least[size] || *code > 0x10ffff || surrogate ? 0 : size;
}

/* Whether a character shows itself as one character in the order in which it stands: no control
 * character, no end of a line, none that turns the direction of text or that takes no room (those that
 * Unicode calls default ignorable, and the interlinear annotations). */
static inline bool tn_text_shows(uint32_t code) {
	static const uint32_t hidden[][2] = {{0, 0x1f}, {0x7f, 0x9f}, {0xad, 0xad}, {0x34f, 0x34f},
		{0x61c, 0x61c}, {0x115f, 0x1160}, {0x17b4, 0x17b5}, {0x180b, 0x180f}, {0x200b, 0x200f},
		{0x2028, 0x202e}, {0x2060, 0x206f}, {0x3164, 0x3164}, {0xfe00, 0xfe0f}, {0xfeff, 0xfeff},
		{0xffa0, 0xffa0}, {0xfff0, 0xfffb}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff}};
	for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++)
		if (code >= hidden[i][0] && code <= hidden[i][1])
			return false;
	return true;
}

/* Counts the bytes of the character at `s` if a log and a terminal may have it as it is, else 0. */
static inline size_t tn_text_character(const char *s) {
	uint32_t code;
	size_t size = tn_text_read(s, &code);
	return size != 0 && tn_text_shows(code) ? size : 0;
}

/* Puts '?' in the place of every byte of `s` that belongs to no such character. */
static inline void tn_text_clean(char *s) {
	while (*s != '\0') {
		size_t size = tn_text_character(s);
		if (size == 0)
			*s++ = '?';
		else
			s += size;
	}
}

#endif
