/* The heap for other files of the library. */
#ifndef TENURE_SRC_HEAP_H
#define TENURE_SRC_HEAP_H

#include <tenure/heap.h>

#include "../listing/listing.h"
#include "../pages/pages.h"

/* As create, listed below `parent` (NULL: as a root, if it has a name). Chunks come from `source`,
 * not from the one in the options. */
tn_heap *tn_heap_make_below(tn_node *parent, const tn_chunk_source *source, const tn_heap_options *o);

#endif
