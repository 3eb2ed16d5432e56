/* tenure/toy.h: an allocator that add_toy.py adds to a copy of the library. It hands out blocks of one
 * chunk, one after the other, and takes them back all at once. */
#ifndef TENURE_TOY_H
#define TENURE_TOY_H

#include "stats.h"

typedef struct tn_toy tn_toy;

/* Creates a toy with one chunk of 1 MiB, listed if it has a name.
 *
 * returns  the toy
 * fails    NULL with ENOMEM
 * threads  any */
TN_API tn_toy *tn_toy_create(const char *name) TN_SYMBOL(tn_toy_create);

/* NULL is a no-op. */
TN_API void tn_toy_destroy(tn_toy *t) TN_SYMBOL(tn_toy_destroy);

/* Hands out `size` bytes, aligned to 16.
 *
 * fails    NULL with ENOMEM when the chunk is full
 * threads  one at a time */
TN_API void *tn_toy_alloc(tn_toy *t, size_t size) TN_SYMBOL(tn_toy_alloc);

TN_API void tn_toy_reset(tn_toy *t) TN_SYMBOL(tn_toy_reset);
TN_API void tn_toy_stats(const tn_toy *t, tn_stats *stats) TN_SYMBOL(tn_toy_stats);

#endif
