/* Finds another process's live view and copies snapshots out of it. The contents are not trusted:
 * counts are checked before use, and text is not yet safe for a terminal. */
#ifndef TENURE_TOP_READER_H
#define TENURE_TOP_READER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "watch/live_format.h"

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
	uint64_t sequence;
	char name[64]; /* of the process */

	bool ended;        /* a call failed because the process has ended */
	char message[256]; /* the reason that a call failed, one line */
} view;

bool view_open(view *v, pid_t pid);
/* Copies the newest snapshot; waits up to half a second for one. Opens the view again if the process
 * has replaced it. */
bool view_read(view *v);
void view_close(view *v);

#endif
