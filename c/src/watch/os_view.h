/* The operating system for the live view: a file of memory, and the figures of the process and of its
 * malloc. os_view.c implements it for Linux; elsewhere there is no such file. */
#ifndef TENURE_OS_VIEW_H
#define TENURE_OS_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "live_format.h"

/* A file of memory that other processes of the same user find among the process's open files, by its
 * name, and can read, but neither write nor cut. */
typedef struct tn_os_shown {
	void *p; /* `size` bytes, all backed by memory; not there in the child of a fork */
	size_t size;
	int file;
	uint64_t device, inode; /* of the file when it was opened */
} tn_os_shown;
/* Fails with ENOMEM; with ENOTSUP where the system has no such file. */
bool tn_os_show(tn_os_shown *shown, const char *name, size_t size);
/* Whether `file` is still open: a program may close all files that it finds open. */
bool tn_os_is_shown(const tn_os_shown *shown);
void tn_os_hide(const tn_os_shown *shown);
/* As tn_os_hide, in the child of a fork: calls only functions that a signal handler may call. */
void tn_os_hide_in_child(const tn_os_shown *shown);

/* Finds out which malloc the process has; not while a library is being opened that waits for this. */
void tn_os_find_malloc(void);
/* Reads the figures of malloc, which may take its locks, and the resident bytes into `state`. */
void tn_os_read_process(tn_live_state *state);

/* ---- what the system tells of memory ---- */

/* Reads a small file, as a string; false where there is none. */
bool tn_os_read_text(const char *path, char *text, size_t size);
/* The folder of the process's cgroup (version 2); false where there is none. */
bool tn_os_find_cgroup(char *path, size_t size);
/* Asks a file of PSI to tell of events; -1 where the system refuses. */
int tn_os_open_trigger(const char *path, const char *text);
/* Whether there was an event since the last call. */
bool tn_os_has_event(int trigger);
/* -1 is a no-op. */
void tn_os_close_trigger(int trigger);

#endif
