/* A snapshot for programs. */
#ifndef TENURE_TOP_REPORT_H
#define TENURE_TOP_REPORT_H

#include "reader.h"
#include "text.h"

/* One JSON document (RFC 8259). */
void report_json(text *t, const view *v);

/* The text exposition format of Prometheus, version 0.0.4. Allocators of one kind and name are added
 * up. After 200 names, the rest of a kind is added up as "other". */
void report_prometheus(text *t, const view *v);

#endif
