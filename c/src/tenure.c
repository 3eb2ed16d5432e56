/* The whole library as one translation unit: `cc -Ic/include -c c/src/tenure.c` builds it. File-local
 * names are unique in this folder so that it can. */
#if defined(_WIN32)
#include "os_windows.c"
#elif defined(__unix__) || defined(__APPLE__)
#include "os_posix.c"
#else
#include "os_none.c"
#endif

#include "panic.c"

#include "pages.c"

#include "listing.c"

#include "arena.c"

#include "slab.c"

#include "magazines.c"

#include "shared_slab.c"

#include "shared_slab_debug.c"

#include "pool.c"

#include "runs.c"

#include "heap.c"

#include "heap_debug.c"

#include "scope.c"

#include "observer.c"

#include "watch.c"

#include "live.c"
