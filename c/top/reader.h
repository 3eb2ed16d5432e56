/* Finds another process's live view and copies snapshots out of it. Whatever stands in it is that
 * process's word: counts are checked before they are used, and text is not yet harmless. */
#ifndef TENURE_TOP_READER_H
#define TENURE_TOP_READER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "watch/live_format.h"

typedef struct view {
	pid_t pid;
	int process;   /* the directory below /proc: of this process, whoever has its number later */
	char file[32]; /* which of its open files, below that directory */
	dev_t device;
	ino_t inode;
	const tn_live_file *shown;

	/* Of the last snapshot. Names and idents end with 0. */
	tn_live_header header;
	tn_live_state state;
	tn_live_row *rows;
	uint64_t sequence;
	char name[64]; /* of the process */

	bool ended;        /* why a call failed: the process has ended */
	char message[256]; /* why a call failed, one line */
} view;

bool view_open(view *v, pid_t pid);
/* Copies the newest snapshot, when there is one within half a second. A view that the process has
 * replaced is opened again. */
bool view_read(view *v);
void view_close(view *v);

#endif
