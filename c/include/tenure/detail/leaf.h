/* Not API. The page layer's lock, for what the front ends share: a few instructions that call nothing.
 * A fork holds it, so that the child finds what it protects in order. */
#ifndef TENURE_DETAIL_LEAF_H
#define TENURE_DETAIL_LEAF_H

#include "../base.h"

#ifdef __cplusplus
extern "C" {
#endif

TN_API void tn_leaf_lock(void) TN_SYMBOL(tn_leaf_lock);
TN_API void tn_leaf_unlock(void) TN_SYMBOL(tn_leaf_unlock);

#ifdef __cplusplus
}
#endif
#endif
