/* A snapshot for programs. */
#ifndef TENURE_TOP_REPORT_H
#define TENURE_TOP_REPORT_H

#include "reader.h"
#include "text.h"

/* One JSON document (RFC 8259). If it is nested, each allocator has an array of those below it. */
void report_json(text *t, const view *v, bool nested);

/* A line for each process, or one JSON document. */
void report_processes(text *t, const view *views, size_t count, bool json);

/* A label that the user wants on every sample. */
typedef struct label {
	const char *name, *value;
} label;

/* The text exposition format of Prometheus, version 0.0.4. Each sample has the name and number of its
 * process. Allocators of one kind and name are added up. After 200 names, the rest of a kind is added
 * up as "other". */
void report_prometheus(
	text *t, const view *views, size_t count, const label *labels, size_t label_count);

#endif
