/* Panics, which misuse ends in: one line, then abort. Nothing here allocates. */
#ifndef TENURE_PANIC_H
#define TENURE_PANIC_H

#include <tenure/base.h>

/* Reports `tenure: KIND "NAME": ` and the formatted rest through the panic hook, then aborts. */
TN_PRINTF(3, 4)
_Noreturn void tn_panic(const char *kind, const char *name, const char *format, ...);

/* Writes the same line without the abort: for the table of leaks, which is no misuse. */
TN_PRINTF(3, 4)
void tn_report(const char *kind, const char *name, const char *format, ...);

/* A code address as MODULE+0xOFFSET, in a buffer that holds it. */
typedef struct tn_site_text {
	char text[96];
} tn_site_text;
tn_site_text tn_site(const void *code);

/* Panics about a call that overlaps another one; debug names the `other` thread. */
void tn_busy_panic(const char *kind, const char *name, const char *operation, uintptr_t other);

#endif
