/* The live view, for the listing. */
#ifndef TENURE_LIVE_H
#define TENURE_LIVE_H

/* Starts the live view when TENURE_LIVE is "1" in the environment, unless the process has more rights
 * than its caller. To be called without a lock; errno stays. */
void tn_live_begin_if_asked(void);

#endif
