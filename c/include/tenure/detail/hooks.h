/* Not API. The one place where build modes change the inline paths. */
#ifndef TENURE_DETAIL_HOOKS_H
#define TENURE_DETAIL_HOOKS_H

#include "../base.h"

/* Tells whether every call must go through the library, which holds the checks of hardened and debug. A
 * constant: the test vanishes in release. */
TN_INLINE bool tn_hook_checked(void) {
	return TN_MODE != TN_MODE_RELEASE;
}

#endif
