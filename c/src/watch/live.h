/* What the rest of the library asks of the live view. */
#ifndef TENURE_LIVE_H
#define TENURE_LIVE_H

/* Starts the live view when TENURE_LIVE is "1" in the environment of a process that has no more rights
 * than who started it. Holding no lock; errno stays. */
void tn_live_if_asked(void);

#endif
