/* Not API: the place that an allocator's chunks come from. */
#ifndef TENURE_DETAIL_CHUNK_SOURCE_H
#define TENURE_DETAIL_CHUNK_SOURCE_H

#include "../base.h"

typedef struct tn_chunk_source {
	tn_source from;             /* its `acquire` is NULL for the page layer */
	struct tn_account *account; /* the account that chunks are charged to, or NULL */
} tn_chunk_source;

#endif
