/* The heap for those who wrap one. */
#ifndef TENURE_WRAPPED_HEAP_H
#define TENURE_WRAPPED_HEAP_H

#include <tenure/heap.h>

/* As tn_heap_create; panics name `kind`. */
tn_heap *tn_heap_make(const char *kind, const tn_heap_options *options);

#endif
