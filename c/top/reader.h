/* Finds another process's live view and copies snapshots out of it. The contents are not trusted:
 * counts are checked before use, and text is not yet safe for a terminal. */
#ifndef TENURE_TOP_READER_H
#define TENURE_TOP_READER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "watch/live_format.h"

/* An earlier snapshot: live bytes, sorted by id. */
typedef struct view_past {
	uint64_t taken_ms; /* 0: none yet */
	size_t count;
	struct view_past_row {
		uint64_t id, live_bytes;
	} *rows;
} view_past;

typedef struct view {
	pid_t pid;
	int process;   /* its directory below /proc, also if another process gets its number later */
	char file[32]; /* its open file, below that directory */
	dev_t device;
	ino_t inode;
	const tn_live_file *shown;

	/* The last snapshot. Names and idents end with 0. */
	tn_live_header header;
	tn_live_state state;
	tn_live_row *rows;
	tn_live_total *totals;
	uint64_t sequence;
	char name[64]; /* of the process */
	/* Change of the live bytes of each row, in a second: over the last 5 to 10 seconds, or as long as
	 * the view has been read. */
	int64_t *growth;
	uint64_t growth_ms; /* over which it was measured; 0: not known yet */
	view_past past[2];  /* the older one first */

	bool ended;        /* a call failed because the process has ended */
	char message[256]; /* the reason that a call failed, one line */
} view;

bool view_open(view *v, pid_t pid);
/* Copies the newest snapshot; waits up to half a second for one. Opens the view again if the process
 * has replaced it. */
bool view_read(view *v);
void view_close(view *v);

/* Opens and reads the views of all processes that can be watched, in the order of their numbers.
 * `views` receives an array, which belongs to the caller as the views do; returns their number. */
size_t view_find_all(view **views);

#endif
