/* Not API. The parts of the library that front ends of other languages use beside its allocators. */
#ifndef TENURE_DETAIL_FRONT_H
#define TENURE_DETAIL_FRONT_H

#include "../base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The page layer's lock, for a few instructions that call nothing. A fork holds it, so the child finds
 * the protected data in order. */
TN_API void tn_front_lock(void) TN_SYMBOL(tn_front_lock);
TN_API void tn_front_unlock(void) TN_SYMBOL(tn_front_unlock);

/* Bytes behind the private struct of a slab or shared slab up to, and with, the mark of a live one; and
 * its alignment. */
#define TN_STAND_IN_BYTES 1024
#define TN_STAND_IN_ALIGN 128

/* Panics with the line `tenure: KIND: OPERATION: P WHAT`. */
TN_API void tn_front_panic(const char *kind, const char *operation, const void *p, const char *what)
	TN_SYMBOL(tn_front_panic);

#ifdef __cplusplus
}
#endif
#endif
