/* The screen that refreshes itself, on a terminal. */
#ifndef TENURE_TOP_SCREEN_H
#define TENURE_TOP_SCREEN_H

#include "reader.h"
#include "table.h"

/* Tells whether standard input and output are a terminal that can show it. */
bool screen_is_possible(void);

/* Keys and columns, in lines of at most 80 columns. */
extern const char screen_help[];

/* Shows the view until the user or the process ends it; true if it was the user. Restores the terminal,
 * also when a signal ends the program. */
bool screen_run(view *v, table_options options, double seconds);

#endif
