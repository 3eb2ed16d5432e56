/* Not API. What the build modes add to the inline paths, and nowhere else. */
#ifndef TENURE_DETAIL_HOOKS_H
#define TENURE_DETAIL_HOOKS_H

#include "../base.h"

/* Whether every call must go through the library, where hardened and debug keep their checks. A
 * constant, so that in release the test is gone. */
TN_INLINE bool tn_hook_checked(void) {
	return TN_MODE != TN_MODE_RELEASE;
}

#endif
