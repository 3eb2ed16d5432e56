#include <tenure/stats.h>
