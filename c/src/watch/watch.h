/* What the rest of the library asks of the watch. */
#ifndef TENURE_WATCH_H
#define TENURE_WATCH_H

/* In the child of a fork, which is not watched. Stores only. */
void tn_watch_in_child(void);

#endif
