#include <tenure/heap.h>
