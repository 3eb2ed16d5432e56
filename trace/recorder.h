/*
 * The recorder's inside, for its entry points: a call is recorded between recorder_enter and one of the
 * functions that write an event.
 */
#ifndef TRACE_RECORDER_H
#define TRACE_RECORDER_H

#include "buffers.h"
#include "unwind.h"

enum { FRAMES_MOST = 256, NOTES_MOST = 64 };

enum busy { IDLE, CALLING, WRITING, INSIDE };

typedef struct node {
	uint64_t address;
	uint32_t parent, id;
} node;

/* Events of one thread at a time, and the stacks that they name. A thread that ends leaves it to the
 * next one. */
typedef struct stream {
	struct stream *next_free;
	uint32_t id, nodes, room, generation;
	node *table;
	uint64_t last_address;
} stream;

/* What a signal handler did while an event was being written. */
typedef struct note {
	uint8_t op;
	uint64_t stamp, old, pointer, size;
} note;

typedef struct thread {
	uint64_t epoch;
	enum busy busy;
	uint32_t countdown, random;
	uintptr_t frame; /* of the entry point that is in progress */
	stream *stream;
	buffer *buffer;
	uint32_t slot;
	uint8_t *at, *end;
	uint64_t last_stamp, last_pointer, begun;
	uint32_t last_stack;
	uint32_t known; /* frames of the last walk, from the outermost */
	uint32_t notes_count;
	pid_t tid;
	bool timed;
	uint8_t *cost; /* where a free that is timed gets its cost */
	unwind_range stack, other, walked;
	uint32_t ids[FRAMES_MOST];
	uintptr_t cfa[FRAMES_MOST], pc[FRAMES_MOST], bp[FRAMES_MOST];
	note notes[NOTES_MOST];
} thread;

typedef struct state {
	_Atomic uint64_t epoch; /* 0: this process is not recorded */
	uint64_t start;
	shared *shared;
	_Atomic uint32_t started;
	_Atomic uint32_t streams_count, free_lock, modules_lock;
	stream *free_streams;
	uint32_t modules_count;
	_Alignas(4096) uint8_t alone[]; /* the pages hold nothing else */
} state;

/*
 * The counter would be read while the call before it, or the exchange that handed a block over, still
 * waits for another CPU; the fence costs nothing to programs of one thread.
 */
#define RECORDER_TICKS()                                                                               \
	(__builtin_expect(                                                                                 \
		 atomic_load_explicit(&recorder_state.streams_count, memory_order_relaxed) > 1, 0)             \
			? (__builtin_ia32_lfence(), ticks())                                                       \
			: ticks())

extern _Thread_local thread recorder_thread __attribute__((tls_model("initial-exec")));
extern state recorder_state;

thread *recorder_enter_slow(uintptr_t frame);
void recorder_note(unsigned op, uint64_t old, void *pointer, uint64_t size);
void recorder_alloc(thread *t, unsigned op, void *pointer, size_t size, size_t align);
void recorder_free(thread *t, unsigned op, void *pointer);
void recorder_free_done(thread *t);
void recorder_realloc(thread *t, unsigned op, void *old, void *pointer, size_t size);
void recorder_unmap(thread *t, void *pointer, size_t size);
void recorder_mark(thread *t, const char *name);
/* Code was unloaded. */
void recorder_unloaded(thread *t);
void recorder_start(void);
/* Finds the functions of the real allocator; see entry.c. */
void entry_resolve(void);

/* NULL where the call is not to be recorded. */
static inline thread *recorder_enter(void *frame) {
	thread *t = &recorder_thread;
	uint64_t epoch = atomic_load_explicit(&recorder_state.epoch, memory_order_relaxed);
	if (__builtin_expect(epoch != 0 && t->epoch == epoch && t->busy == IDLE, 1)) {
		t->busy = CALLING;
		t->frame = (uintptr_t)frame;
		return t;
	}
	return recorder_enter_slow((uintptr_t)frame);
}

static inline void recorder_leave(thread *t) {
	t->busy = IDLE;
}

/* One call in 64 is timed, at random. */
static inline void recorder_time(thread *t) {
	t->timed = --t->countdown == 0;
	if (__builtin_expect(t->timed, 0)) {
		t->random = t->random * 1664525 + 1013904223;
		t->countdown = 33 + (t->random >> 26);
		t->begun = ticks();
	}
}

#endif
