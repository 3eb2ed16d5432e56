/*
 * What the recorded process and its packer share: buffers of events, and a few words.
 */
#ifndef TRACE_BUFFERS_H
#define TRACE_BUFFERS_H

#include "format.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { BUFFERS_MOST = 4096, BUFFER_BYTES = 65536, BUFFER_HEAD = 32 };

enum buffer_state { BUFFER_FREE, BUFFER_OWNED, BUFFER_FULL };

typedef struct buffer {
	uint32_t stream, used; /* used: bytes of events, stored after each event */
	uint64_t first, last;  /* stamps */
	uint64_t ticket;       /* order of submission */
	uint8_t events[BUFFER_BYTES - BUFFER_HEAD];
} buffer;

typedef struct shared {
	_Atomic uint32_t sleeping; /* futex of the packer */
	_Atomic uint32_t freed;    /* futex of threads that wait for a buffer */
	_Atomic uint32_t beat;     /* the packer lives */
	_Atomic uint32_t stopped;  /* the disk is full: nothing more is wanted */
	_Atomic uint32_t ending;   /* the process has said that it ends */
	_Atomic uint64_t ticket;
	_Atomic uint64_t waits, wait_ticks;           /* backpressure */
	_Atomic uint64_t missed;                      /* events that could not be recorded */
	_Atomic uint64_t cpu;                         /* ns that the process had used when it ended */
	_Atomic uint64_t recording;                   /* ticks that the timed events took to write */
	uint32_t count;                               /* buffers */
	_Atomic uint32_t free_low[BUFFERS_MOST / 32]; /* a bit for each free buffer */
	_Atomic uint8_t state[BUFFERS_MOST];
	_Alignas(4096) buffer buffers[];
} shared;

/* What the packer is started with. */
typedef struct packing {
	shared *shared;
	int file, process; /* process: a pidfd of the recorded one, or -1 */
	pid_t pid;
	const char *path;
	uint64_t start;  /* ticks */
	char run[16384]; /* text of the first block */
	size_t run_bytes;
} packing;

/* Starts the packer, a process of its own that outlives this one. Returns false if it cannot be. */
bool packer_start(packing *p);

/* Not in order with what is around it. */
static inline uint64_t ticks(void) {
	return __builtin_ia32_rdtsc();
}

#endif
