/* The whole library as one translation unit: `cc -Ic/include -c c/src/tenure.c` builds it. File-local
 * names are unique in this folder so that it can. */
#if defined(TN_OS_NONE)
#include "base/os_none.c"
#elif defined(_WIN32)
#include "base/os_windows.c"
#elif defined(__unix__) || defined(__APPLE__)
#include "base/os_posix.c"
#else
#include "base/os_none.c"
#endif

#include "base/panic.c"

#include "pages/pages.c"

#include "listing/listing.c"

#include "arena/arena.c"

#include "slab/stock.c"

#include "slab/slab.c"

#include "shared/thread_cache.c"

#include "shared/shared_slab.c"

#include "shared/shared_slab_debug.c"

#include "shared/pool.c"

#include "shared/runs.c"

#include "heap/heap.c"

#include "heap/heap_debug.c"

#include "scope/scope.c"

#include "watch/observer.c"

#include "watch/maintain.c"

#include "watch/pressure.c"

#include "watch/watch.c"

#include "watch/live.c"

#include "watch/os_view.c"

#include "watch/totals.c"
