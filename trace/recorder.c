/*
 * Writes events. Each thread has a buffer that it shares with the packer and a stream, which keeps the
 * stacks that it has met as a tree of (parent, return address). A walk stops at the first frame
 * that the thread's last walk had, if the return addresses of all frames outside it are still in
 * their places; then only the new frames are looked up in the tree.
 */
#define _GNU_SOURCE
#include "recorder.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

enum { EVENT_MOST = 96, NODE_MOST = 20, MODULES_MOST = 4096, PATH_MOST = 1024, TABLE_FIRST = 4096 };
enum { DEAD_AFTER_MS = 10000 };

extern void *__libc_stack_end;
extern char **environ;

_Thread_local thread recorder_thread __attribute__((tls_model("initial-exec")));
/* Pages of its own: a child of fork finds them zero. */
_Alignas(4096) state recorder_state;

typedef struct module {
	uintptr_t start, end;
	struct link_map *map;
} module;

static module modules[MODULES_MOST];
static _Atomic uint32_t generation;
static pthread_key_t thread_key;
static bool key_made, following;
static uint32_t depth = 64, timing_cost;
static char trace_path[4096], pid_variable[48];
static packing packing_of_process;

static void lock(_Atomic uint32_t *l) {
	while (atomic_exchange_explicit(l, 1, memory_order_acquire))
		syscall(SYS_sched_yield);
}

static void unlock(_Atomic uint32_t *l) {
	atomic_store_explicit(l, 0, memory_order_release);
}

static void *map_pages(size_t bytes) {
	long at = syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return at == -1 ? NULL : (void *)at;
}

static uint64_t stamp_of(uint64_t at) {
	return (at - recorder_state.start) >> TRACE_TICK_SHIFT;
}

/* ---- writing ---- */

static inline uint8_t *put_varint(uint8_t *p, uint64_t value) {
	while (value >= 0x80) {
		*p++ = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	*p++ = (uint8_t)value;
	return p;
}

static inline uint64_t zigzag(uint64_t difference) {
	return difference << 1 ^ (uint64_t)((int64_t)difference >> 63);
}

static void publish(thread *t) {
	if (t->buffer == NULL)
		return;
	t->buffer->last = t->last_stamp;
	__atomic_store_n(&t->buffer->used, (uint32_t)(t->at - t->buffer->events), __ATOMIC_RELEASE);
}

/* A free buffer of the lowest number, or none. */
static uint32_t take_buffer(shared *s) {
	for (uint32_t word = 0; word < s->count / 32; word++) {
		uint32_t bits = atomic_load_explicit(&s->free_low[word], memory_order_relaxed);
		while (bits) {
			uint32_t bit = bits & -bits;
			if (atomic_compare_exchange_weak_explicit(
					&s->free_low[word], &bits, bits & ~bit, memory_order_acquire, memory_order_relaxed))
				return word * 32 + (uint32_t)__builtin_ctz(bit);
		}
	}
	return UINT32_MAX;
}

/* The process is not recorded from here on. */
static void give_up(void) {
	atomic_store(&recorder_state.epoch, 0);
}

/* Waits for the packer, unless it shows no life. */
static uint32_t wait_for_buffer(shared *s) {
	uint64_t begun = ticks();
	uint32_t beat = atomic_load(&s->beat), at, silent = 0;
	atomic_fetch_add(&s->waits, 1);
	for (;;) {
		uint32_t freed = atomic_load(&s->freed);
		if ((at = take_buffer(s)) != UINT32_MAX)
			break;
		struct timespec wait = {0, 100000000};
		syscall(SYS_futex, &s->freed, FUTEX_WAIT, freed, &wait, NULL, 0);
		uint32_t now = atomic_load(&s->beat);
		silent = now == beat ? silent + 100 : 0;
		beat = now;
		if (silent >= DEAD_AFTER_MS || atomic_load(&s->stopped)) {
			give_up();
			break;
		}
	}
	atomic_fetch_add(&s->wait_ticks, ticks() - begun);
	return at;
}

static bool begin_buffer(thread *t) {
	shared *s = recorder_state.shared;
	uint32_t at = take_buffer(s);
	if (at == UINT32_MAX)
		at = wait_for_buffer(s);
	if (at == UINT32_MAX)
		return false;
	buffer *b = &s->buffers[at];
	b->stream = t->stream->id;
	b->used = 0;
	b->ticket = atomic_fetch_add(&s->ticket, 1);
	t->buffer = b;
	t->slot = at;
	t->at = b->events;
	t->end = b->events + sizeof b->events;
	t->last_pointer = 0;
	t->last_stack = 0;
	t->stream->last_address = 0;
	b->first = b->last = t->last_stamp;
	/* Each buffer begins with its thread and stamp, and with the number of its first node. */
	*t->at++ = TRACE_THREAD;
	t->at = put_varint(t->at, (uint64_t)t->tid);
	t->at = put_varint(t->at, t->last_stamp);
	t->at = put_varint(t->at, t->stream->nodes);
	publish(t);
	atomic_store_explicit(&s->state[at], BUFFER_OWNED, memory_order_release);
	return true;
}

static void submit(thread *t) {
	shared *s = recorder_state.shared;
	publish(t);
	t->buffer->ticket = atomic_fetch_add(&s->ticket, 1);
	atomic_store_explicit(&s->state[t->slot], BUFFER_FULL, memory_order_release);
	t->buffer = NULL;
	if (atomic_exchange(&s->sleeping, 0))
		syscall(SYS_futex, &s->sleeping, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* After a failure the event under way finds no room, and writes nothing. */
static __attribute__((noinline)) bool next_buffer(thread *t) {
	if (t->buffer == NULL)
		return false;
	submit(t);
	if (!atomic_load_explicit(&recorder_state.shared->stopped, memory_order_relaxed) && begin_buffer(t))
		return true;
	give_up();
	t->epoch = 0;
	t->end = t->at;
	return false;
}

static inline bool room(thread *t, size_t bytes) {
	return __builtin_expect((size_t)(t->end - t->at) >= bytes, 1) || next_buffer(t);
}

/* The stamp is put as a difference; counters of two CPUs may differ by less than they show. */
static inline uint8_t *put_stamp(thread *t, uint8_t *p, uint64_t stamp) {
	uint64_t difference = stamp > t->last_stamp ? stamp - t->last_stamp : 0;
	t->last_stamp += difference;
	return put_varint(p, difference);
}

static inline uint8_t *put_pointer(thread *t, uint8_t *p, uint64_t pointer, unsigned op, uint8_t *tag) {
	uint64_t difference = pointer - t->last_pointer;
	t->last_pointer = pointer;
	*tag = (uint8_t)op;
	if (__builtin_expect(difference & 15, 0)) {
		*tag |= TRACE_ODD;
		return put_varint(p, zigzag(difference));
	}
	return put_varint(p, zigzag((uint64_t)((int64_t)difference >> 4)));
}

static inline uint8_t *put_cost(thread *t, uint8_t *p, uint8_t *tag, uint64_t end) {
	if (__builtin_expect(!t->timed, 1))
		return p;
	*tag |= TRACE_TIMED;
	uint64_t took = end - t->begun;
	return put_varint(p, took > timing_cost ? took - timing_cost : 0);
}

/* ---- modules ---- */

static const char *path_of(const struct link_map *map, char *room_for_main) {
	if (map->l_name != NULL && map->l_name[0] != 0)
		return map->l_name;
	long length = syscall(SYS_readlink, "/proc/self/exe", room_for_main, PATH_MOST - 1);
	room_for_main[length > 0 ? length : 0] = 0;
	return room_for_main;
}

/* The build-id, from the notes of the mapped file. Returns its length. */
static size_t build_id(uintptr_t start, uintptr_t bias, const uint8_t **id) {
	const ElfW(Ehdr) *header = (const void *)start;
	if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
		return 0;
	const ElfW(Phdr) *segments = (const void *)(start + header->e_phoff);
	for (int i = 0; i < header->e_phnum; i++) {
		if (segments[i].p_type != PT_NOTE)
			continue;
		const uint8_t *at = (const void *)(bias + segments[i].p_vaddr), *end = at + segments[i].p_memsz;
		while (at + 12 <= end) {
			const ElfW(Nhdr) *n = (const void *)at;
			const uint8_t *name = at + 12, *text = name + ((n->n_namesz + 3u) & ~3u);
			if (n->n_type == NT_GNU_BUILD_ID && n->n_namesz == 4 && memcmp(name, "GNU", 4) == 0) {
				*id = text;
				return n->n_descsz < 64 ? n->n_descsz : 64;
			}
			at = text + ((n->n_descsz + 3u) & ~3u);
		}
	}
	return 0;
}

static void put_module(thread *t, const module *m) {
	char own[PATH_MOST];
	const char *path = path_of(m->map, own);
	const uint8_t *id = NULL;
	size_t length = strnlen(path, PATH_MOST), id_length = build_id(m->start, m->map->l_addr, &id);
	if (!room(t, EVENT_MOST + 64 + PATH_MOST))
		return;
	uint8_t *p = t->at;
	*p++ = TRACE_MODULE;
	p = put_stamp(t, p, stamp_of(ticks()));
	p = put_varint(p, m->start);
	p = put_varint(p, m->end - m->start);
	p = put_varint(p, m->map->l_addr);
	p = put_varint(p, id_length);
	if (id_length)
		memcpy(p, id, id_length);
	p = put_varint(p + id_length, length);
	memcpy(p, path, length);
	t->at = p + length;
	publish(t);
}

/* Called on the way of a walk for code that was not met before. */
static void meet_module(void *context, const struct dl_find_object *found) {
	uintptr_t start = (uintptr_t)found->dlfo_map_start;
	lock(&recorder_state.modules_lock);
	uint32_t count = recorder_state.modules_count, i = 0;
	while (i < count && modules[i].start != start)
		i++;
	bool added = i == count && count < MODULES_MOST;
	if (added) {
		modules[count] = (module){start, (uintptr_t)found->dlfo_map_end, found->dlfo_link_map};
		recorder_state.modules_count++;
	}
	module copy = modules[i < MODULES_MOST ? i : 0];
	unlock(&recorder_state.modules_lock);
	if (added)
		put_module(context, &copy);
}

void recorder_unloaded(thread *t) {
	lock(&recorder_state.modules_lock);
	for (uint32_t i = 0; i < recorder_state.modules_count;) {
		struct dl_find_object now;
		if (_dl_find_object((void *)modules[i].start, &now) == 0 &&
			now.dlfo_link_map == modules[i].map) {
			i++;
			continue;
		}
		uintptr_t start = modules[i].start;
		modules[i] = modules[--recorder_state.modules_count];
		if (!room(t, EVENT_MOST))
			break;
		*t->at++ = TRACE_UNLOAD;
		t->at = put_stamp(t, t->at, stamp_of(ticks()));
		t->at = put_varint(t->at, start);
		publish(t);
	}
	unlock(&recorder_state.modules_lock);
	unwind_forget();
	atomic_fetch_add(&generation, 1);
}

/* ---- stacks ---- */

static size_t hash_of(uint32_t parent, uint64_t address) {
	uint64_t h = (address ^ (uint64_t)parent << 40 ^ (uint64_t)parent >> 8) * 0x9e3779b97f4a7c15u;
	return (size_t)(h >> 20);
}

static bool grow_table(stream *s) {
	uint32_t size = s->room ? 2 * s->room : TABLE_FIRST;
	node *larger = map_pages(size * sizeof *larger);
	if (larger == NULL)
		return false;
	for (uint32_t i = 0; i < s->room; i++) {
		if (s->table[i].id == 0)
			continue;
		size_t at = hash_of(s->table[i].parent, s->table[i].address) & (size - 1);
		while (larger[at].id != 0)
			at = (at + 1) & (size - 1);
		larger[at] = s->table[i];
	}
	if (s->table != NULL)
		syscall(SYS_munmap, s->table, s->room * sizeof *s->table);
	s->table = larger;
	s->room = size;
	return true;
}

/* Node 0 is the root of whole stacks and of those that were cut. */
static __attribute__((noinline)) uint32_t new_node(thread *t, uint32_t parent, uint64_t address) {
	stream *s = t->stream;
	if ((s->nodes + 1) * 2 > s->room && !grow_table(s))
		return parent;
	if (!room(t, NODE_MOST))
		return parent;
	size_t at = hash_of(parent, address) & (s->room - 1);
	while (s->table[at].id != 0)
		at = (at + 1) & (s->room - 1);
	s->table[at] = (node){address, parent, ++s->nodes};
	uint8_t *p = t->at;
	*p++ = TRACE_NODE;
	p = put_varint(p, s->nodes - parent);
	p = put_varint(p, zigzag(address - s->last_address));
	s->last_address = address;
	t->at = p;
	publish(t);
	return s->nodes;
}

static inline uint32_t node_of(thread *t, uint32_t parent, uint64_t address) {
	const stream *s = t->stream;
	for (size_t at = hash_of(parent, address);; at++) {
		const node *n = &s->table[at & (s->room - 1)];
		if (n->id == 0)
			return new_node(t, parent, address);
		if (n->address == address && n->parent == parent)
			return n->id;
	}
}

/* The stack on which `sp` is; the thread's own is known, another one is looked for once. */
static unwind_range stack_of(thread *t, uintptr_t sp) {
	if (sp >= t->stack.low && sp < t->stack.high)
		return t->stack;
	if (sp < t->other.low || sp >= t->other.high)
		t->other = unwind_find_stack(sp);
	return t->other;
}

/* The frames of the last walk up to `at`, counted from the outermost, are where they were. */
static inline bool still_there(const thread *t, uint32_t at) {
	for (uint32_t i = 0; i < at; i++)
		if (*(const uintptr_t *)(t->cfa[i] - 8) != t->pc[i])
			return false;
	return true;
}

static inline bool same_frame(const thread *t, uint32_t i, const unwind_frame *f) {
	return t->cfa[i] == f->sp && t->pc[i] == f->pc && t->bp[i] == f->bp;
}

/* The code that was loaded has changed: no node stands for an address that may now mean another
 * thing. */
static void forget_nodes(thread *t, uint32_t now) {
	stream *s = t->stream;
	s->generation = now;
	t->known = 0;
	memset(s->table, 0, s->room * sizeof *s->table);
}

/* A stack that is deeper than a thread keeps loses its outer frames: `keep` of those known stay. */
static __attribute__((noinline)) uint32_t cut(thread *t, uint32_t known, uint32_t keep) {
	keep = keep < known ? keep : known;
	uint32_t from = known - keep, id = 0;
	for (uint32_t i = 0; i < keep; i++) {
		t->cfa[i] = t->cfa[from + i];
		t->pc[i] = t->pc[from + i];
		t->bp[i] = t->bp[from + i];
		t->ids[i] = id = node_of(t, id, t->pc[i]);
	}
	return keep;
}

/* The walk begins in the caller of the entry point, whose frame is kept by a frame pointer. The
 * frames that are new are then put on those that are known. */
static uint32_t walk(thread *t) {
	uint32_t now = atomic_load_explicit(&generation, memory_order_relaxed);
	if (__builtin_expect(now != t->stream->generation, 0))
		forget_nodes(t, now);
	const uintptr_t *own = (const uintptr_t *)t->frame;
	unwind_frame f = {own[1], t->frame + 16, own[0]};
	unwind_range stack = stack_of(t, f.sp);
	unwind_frame fresh[FRAMES_MOST];
	uint32_t count = 0,
			 known = stack.low == t->walked.low && stack.high == t->walked.high ? t->known : 0;
	t->walked = stack;
	bool exact = false, joined = false, other = false;
	while (count < depth) {
		while (known > 0 && t->cfa[known - 1] < f.sp && !other)
			known--;
		if (known > 0 && same_frame(t, known - 1, &f) && still_there(t, known)) {
			joined = true;
			break;
		}
		fresh[count++] = f;
		enum unwind_step step = unwind_up(&f, stack, &exact, meet_module, t);
		if (step == UNWIND_END)
			break;
		if (step == UNWIND_OTHER_STACK) {
			other = true;
			stack = stack_of(t, f.sp);
		}
	}
	if (!joined)
		known = 0;
	if (__builtin_expect(known + count > FRAMES_MOST, 0))
		known = cut(t, known, count < depth ? depth - count : 0);
	uint32_t id = known ? t->ids[known - 1] : 0;
	while (count > 0) {
		const unwind_frame *g = &fresh[--count];
		id = node_of(t, id, g->pc);
		t->cfa[known] = g->sp;
		t->pc[known] = g->pc;
		t->bp[known] = g->bp;
		t->ids[known++] = id;
	}
	/* Frames of two stacks have no order by which the next walk could find where it joins. */
	t->known = other || exact ? 0 : known;
	return id;
}

static inline uint8_t *put_stack(thread *t, uint8_t *p, uint32_t id) {
	uint64_t difference = zigzag((uint64_t)(int64_t)(int32_t)(id - t->last_stack));
	t->last_stack = id;
	return put_varint(p, difference);
}

/* ---- events ---- */

static void put_notes(thread *t) {
	uint32_t count = t->notes_count;
	for (uint32_t i = 0; i < count && room(t, EVENT_MOST); i++) {
		const note *n = &t->notes[i];
		uint8_t *tag = t->at, *p = put_stamp(t, tag + 1, n->stamp);
		bool alloc = n->op < TRACE_FREE || n->op == TRACE_MMAP;
		p = put_pointer(t, p, n->pointer, n->op, tag);
		if (alloc) {
			p = put_varint(p, n->size);
			p = put_stack(t, p, 0);
		}
		t->at = p;
		publish(t);
	}
	t->notes_count = 0;
}

/* More than some microseconds is another program's turn on the CPU. */
static void add_recording(uint64_t took) {
	atomic_fetch_add(&recorder_state.shared->recording, took < 8192 ? took : 8192);
}

static inline void written(thread *t, uint8_t *p, uint64_t end) {
	t->at = p;
	publish(t);
	if (__builtin_expect(t->notes_count, 0))
		put_notes(t);
	if (__builtin_expect(t->timed, 0))
		add_recording(ticks() - end);
	t->busy = IDLE;
}

static inline bool has_align(unsigned op) {
	return (op >= TRACE_ALIGNED_ALLOC && op <= TRACE_PVALLOC) ||
	       (op >= TRACE_NEW_ALIGNED && op <= TRACE_NEW_ARRAY_ALIGNED_NOTHROW) ||
	       op == TRACE_MI_MALLOC_ALIGNED;
}

void recorder_alloc(thread *t, unsigned op, void *pointer, size_t size, size_t align) {
	uint64_t end = RECORDER_TICKS();
	t->busy = WRITING;
	uint32_t id = walk(t);
	if (!room(t, EVENT_MOST)) {
		t->busy = IDLE;
		return;
	}
	uint8_t *tag = t->at, *p = put_stamp(t, tag + 1, stamp_of(end));
	p = put_pointer(t, p, (uint64_t)pointer, op, tag);
	p = put_varint(p, size);
	p = put_stack(t, p, id);
	if (has_align(op))
		*p++ = align ? (uint8_t)__builtin_ctzll(align) : 0;
	written(t, put_cost(t, p, tag, end), end);
}

/* The event is written before the real call. One that is timed gets its cost after it, in a place
 * that is kept for it. */
void recorder_free(thread *t, unsigned op, void *pointer) {
	uint64_t begun = RECORDER_TICKS();
	t->busy = WRITING;
	if (!room(t, EVENT_MOST)) {
		t->timed = false;
		return;
	}
	uint8_t *tag = t->at, *p = put_stamp(t, tag + 1, stamp_of(begun));
	p = put_pointer(t, p, (uint64_t)pointer, op, tag);
	if (__builtin_expect(t->timed, 0)) {
		*tag |= TRACE_TIMED;
		t->cost = p;
		memset(p, 0x80, 4);
		p[4] = 0;
		p += 5;
	}
	t->at = p;
	publish(t);
	t->busy = CALLING;
	if (t->timed) {
		t->begun = ticks();
		add_recording(t->begun - begun);
	}
}

void recorder_free_done(thread *t) {
	if (__builtin_expect(t->timed, 0)) {
		uint64_t took = ticks() - t->begun;
		took = took > timing_cost ? took - timing_cost : 0;
		took = took < 1u << 31 ? took : 1u << 31;
		for (int i = 0; i < 4; i++, took >>= 7)
			t->cost[i] = (uint8_t)(took | 0x80);
		t->cost[4] = (uint8_t)took;
	}
	if (__builtin_expect(t->notes_count, 0)) {
		t->busy = WRITING;
		put_notes(t);
	}
	t->busy = IDLE;
}

/* Two stamps: the old block may be another thread's as soon as the call has begun. */
void recorder_realloc(thread *t, unsigned op, void *old, void *pointer, size_t size) {
	uint64_t end = RECORDER_TICKS(), begun = t->begun;
	t->busy = WRITING;
	uint32_t id = walk(t);
	if (!room(t, EVENT_MOST)) {
		t->busy = IDLE;
		return;
	}
	uint8_t *tag = t->at, *p = put_stamp(t, tag + 1, stamp_of(begun));
	p = put_stamp(t, p, stamp_of(end));
	unsigned shift = ((uint64_t)old | (uint64_t)pointer | t->last_pointer) & 15 ? 0 : 4;
	*tag = (uint8_t)(op | (shift ? 0 : TRACE_ODD));
	p = put_varint(p, zigzag((uint64_t)((int64_t)((uint64_t)old - t->last_pointer) >> shift)));
	p = put_varint(p, zigzag((uint64_t)((int64_t)((uint64_t)pointer - (uint64_t)old) >> shift)));
	t->last_pointer = (uint64_t)pointer;
	p = put_varint(p, size);
	p = put_stack(t, p, id);
	written(t, put_cost(t, p, tag, end), end);
}

void recorder_unmap(thread *t, void *pointer, size_t size) {
	uint64_t begun = RECORDER_TICKS();
	t->busy = WRITING;
	if (room(t, EVENT_MOST)) {
		uint8_t *tag = t->at, *p = put_stamp(t, tag + 1, stamp_of(begun));
		p = put_pointer(t, p, (uint64_t)pointer, TRACE_MUNMAP, tag);
		t->at = put_varint(p, size);
		publish(t);
	}
	t->busy = CALLING;
}

void recorder_mark(thread *t, const char *name) {
	uint64_t now = ticks();
	t->busy = WRITING;
	size_t length = strnlen(name, 255);
	if (room(t, EVENT_MOST + 255)) {
		uint8_t *p = t->at;
		*p++ = TRACE_MARK;
		p = put_stamp(t, p, stamp_of(now));
		p = put_varint(p, length);
		memcpy(p, name, length);
		t->timed = false;
		written(t, p + length, now);
	}
	t->busy = IDLE;
}

void recorder_note(unsigned op, uint64_t old, void *pointer, uint64_t size) {
	thread *t = &recorder_thread;
	if (t->busy != WRITING || atomic_load(&recorder_state.epoch) == 0)
		return;
	if (t->notes_count == NOTES_MOST) {
		atomic_fetch_add(&recorder_state.shared->missed, 1);
		return;
	}
	bool realloc_of_block = old != 0;
	if (realloc_of_block)
		t->notes[t->notes_count++] = (note){TRACE_FREE, stamp_of(ticks()), 0, old, 0};
	if (t->notes_count < NOTES_MOST)
		t->notes[t->notes_count++] =
			(note){realloc_of_block || (op < TRACE_FREE && has_align(op)) ? TRACE_MALLOC : (uint8_t)op,
				stamp_of(ticks()), 0, (uint64_t)pointer, size};
}

/* ---- threads ---- */

static void leave_thread(void *context) {
	(void)context;
	thread *t = &recorder_thread;
	if (t->epoch == 0 || t->epoch != atomic_load(&recorder_state.epoch) || t->busy != IDLE)
		return;
	t->busy = INSIDE;
	if (room(t, EVENT_MOST)) {
		*t->at++ = TRACE_THREAD_END;
		t->at = put_stamp(t, t->at, stamp_of(ticks()));
		submit(t);
	}
	lock(&recorder_state.free_lock);
	t->stream->next_free = recorder_state.free_streams;
	recorder_state.free_streams = t->stream;
	unlock(&recorder_state.free_lock);
	t->epoch = 0;
	t->stream = NULL;
	t->busy = IDLE;
}

static stream *take_stream(void) {
	lock(&recorder_state.free_lock);
	stream *s = recorder_state.free_streams;
	if (s != NULL)
		recorder_state.free_streams = s->next_free;
	unlock(&recorder_state.free_lock);
	if (s != NULL)
		return s;
	s = map_pages(4096);
	if (s == NULL || !grow_table(s))
		return NULL;
	s->id = atomic_fetch_add(&recorder_state.streams_count, 1) + 1;
	s->generation = atomic_load(&generation);
	return s;
}

static unwind_range own_stack(pid_t tid) {
	if (tid == getpid()) {
		struct rlimit limit;
		uintptr_t high = (uintptr_t)__libc_stack_end + 4096, bytes = (uintptr_t)1 << 30;
		if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
			bytes = limit.rlim_cur;
		return (unwind_range){high - bytes, high & ~(uintptr_t)4095};
	}
	pthread_attr_t attributes;
	void *low;
	size_t size;
	unwind_range range = {0, 0};
	if (pthread_getattr_np(pthread_self(), &attributes) != 0)
		return range;
	if (pthread_attr_getstack(&attributes, &low, &size) == 0)
		range = (unwind_range){(uintptr_t)low, (uintptr_t)low + size};
	pthread_attr_destroy(&attributes);
	return range;
}

static bool attach(thread *t, uint64_t epoch) {
	int kept = errno;
	t->busy = INSIDE;
	t->tid = (pid_t)syscall(SYS_gettid);
	t->stack = own_stack(t->tid);
	t->other = (unwind_range){0, 0};
	t->known = 0;
	t->notes_count = 0;
	t->last_stamp = stamp_of(ticks());
	t->random = (uint32_t)t->tid * 2654435761u;
	t->countdown = 64;
	t->timed = false;
	t->stream = take_stream();
	bool done = t->stream != NULL && begin_buffer(t);
	if (done) {
		t->epoch = epoch;
		if (key_made)
			pthread_setspecific(thread_key, t);
	} else if (recorder_state.shared != NULL)
		atomic_fetch_add(&recorder_state.shared->missed, 1);
	t->busy = IDLE;
	errno = kept;
	return done;
}

thread *recorder_enter_slow(uintptr_t frame) {
	thread *t = &recorder_thread;
	if (!atomic_load_explicit(&recorder_state.started, memory_order_acquire)) {
		if (t->busy != IDLE && t->busy != INSIDE && t->epoch != 0)
			t->busy = IDLE; /* a child of fork, made while its parent's thread was in a call */
		if (t->busy != IDLE)
			return NULL;
		recorder_start();
	}
	uint64_t epoch = atomic_load(&recorder_state.epoch);
	if (epoch == 0)
		return NULL;
	if (t->epoch != epoch && t->busy == IDLE && !attach(t, epoch))
		return NULL;
	/* A handler that jumped out of an entry point has left it for good. */
	if (t->busy != IDLE && t->busy != INSIDE && frame > t->frame && frame < t->stack.high &&
		t->frame >= t->stack.low)
		t->busy = IDLE;
	if (t->busy != IDLE)
		return NULL;
	t->busy = CALLING;
	t->frame = frame;
	return t;
}

/* ---- the beginning ---- */

static char early_environment[65536];

/* Before the C library is ready there is no `environ`, but the kernel has kept it. */
static const char *variable(const char *name) {
	size_t length = strlen(name);
	if (environ != NULL) {
		for (char **e = environ; *e != NULL; e++)
			if (strncmp(*e, name, length) == 0 && (*e)[length] == '=')
				return *e + length + 1;
		return NULL;
	}
	if (early_environment[0] == 0) {
		long fd = syscall(SYS_open, "/proc/self/environ", O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return NULL;
		long got, have = 0;
		while ((got = syscall(SYS_read, fd, early_environment + have,
					sizeof early_environment - 2 - (size_t)have)) > 0)
			have += got;
		syscall(SYS_close, fd);
	}
	for (const char *e = early_environment; *e; e += strlen(e) + 1)
		if (strncmp(e, name, length) == 0 && e[length] == '=')
			return e + length + 1;
	return NULL;
}

static unsigned long number(const char *text, unsigned long otherwise) {
	unsigned long value = 0;
	if (text == NULL || *text < '0' || *text > '9')
		return otherwise;
	for (; *text >= '0' && *text <= '9'; text++)
		value = value * 10 + (unsigned long)(*text - '0');
	return value;
}

static char *decimal(char *at, unsigned long value) {
	char digits[24];
	int count = 0;
	do
		digits[count++] = (char)('0' + value % 10);
	while (value /= 10);
	while (count)
		*at++ = digits[--count];
	*at = 0;
	return at;
}

static char *append(char *at, const char *end, const char *text) {
	while (*text && at + 1 < end)
		*at++ = *text++;
	*at = 0;
	return at;
}

static char *line(char *at, const char *end, const char *key, const char *value) {
	at = append(append(at, end, key), end, "=");
	for (; *value && at + 4 < end; value++) {
		/* A line of text a key; a line end or a backslash in a value is escaped. */
		if (*value == '\n' || *value == '\\')
			*at++ = '\\';
		*at++ = *value == '\n' ? 'n' : *value;
	}
	return append(at, end, "\n");
}

static char *number_line(char *at, const char *end, const char *key, unsigned long value) {
	char digits[24];
	decimal(digits, value);
	return line(at, end, key, digits);
}

static size_t describe(char *text, size_t size) {
	char *at = text, *end = text + size;
	char buffer[4096] = "";
	struct timespec wall;
	struct utsname machine;
	clock_gettime(CLOCK_REALTIME, &wall);
	at = number_line(at, end, "pid", (unsigned long)getpid());
	at = number_line(at, end, "parent", (unsigned long)getppid());
	at = number_line(
		at, end, "wall_ns", (unsigned long)wall.tv_sec * 1000000000 + (unsigned long)wall.tv_nsec);
	at = number_line(at, end, "tick_shift", TRACE_TICK_SHIFT);
	at = number_line(at, end, "page_bytes", (unsigned long)getpagesize());
	at = number_line(at, end, "cpus", (unsigned long)sysconf(_SC_NPROCESSORS_ONLN));
	at = number_line(at, end, "depth", depth);
	at = number_line(at, end, "timed_one_in", 64);
	at = number_line(at, end, "timing_cost", timing_cost);
	at = line(at, end, "unwinder", "call frame information, joined with the last walk");
	if (uname(&machine) == 0) {
		at = line(at, end, "host", machine.nodename);
		at = line(at, end, "system", machine.release);
		at = line(at, end, "machine", machine.machine);
	}
	long got = syscall(SYS_readlink, "/proc/self/exe", buffer, sizeof buffer - 1);
	buffer[got > 0 ? got : 0] = 0;
	at = line(at, end, "program", buffer);
	long fd = syscall(SYS_open, "/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	got = fd < 0 ? 0 : syscall(SYS_read, fd, buffer, sizeof buffer - 1);
	if (fd >= 0)
		syscall(SYS_close, fd);
	buffer[got > 0 ? got : 0] = 0;
	for (const char *a = buffer; a < buffer + got; a += strlen(a) + 1)
		at = line(at, end, "argument", a);
	return (size_t)(at - text);
}

/* A file that is there is kept: F becomes F.1, or F.2 where that exists. */
static int open_trace(const char *path) {
	int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
	long fd = syscall(SYS_open, path, flags, 0600);
	for (unsigned long i = 1; fd < 0 && errno == EEXIST && i < 10000; i++) {
		char other[sizeof trace_path + 24];
		char *at = append(other, other + sizeof trace_path, path);
		*at++ = '.';
		decimal(at, i);
		struct stat s;
		if (lstat(other, &s) == 0 || syscall(SYS_rename, path, other) != 0)
			continue;
		fd = syscall(SYS_open, path, flags, 0600);
	}
	return (int)fd;
}

static void measure_timing(void) {
	uint64_t least = UINT64_MAX;
	for (int i = 0; i < 200; i++) {
		uint64_t begun = ticks(), took = ticks() - begun;
		least = took < least ? took : least;
	}
	timing_cost = (uint32_t)least;
}

static shared *make_shared(void) {
	for (uint32_t count = BUFFERS_MOST; count >= 64; count /= 4) {
		size_t bytes = sizeof(shared) + count * sizeof(buffer);
		long at = syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (at == -1)
			continue;
		shared *s = (shared *)at;
		s->count = count;
		for (uint32_t i = 0; i < count / 32; i++)
			s->free_low[i] = ~0u;
		return s;
	}
	return NULL;
}

static void say(const char *what, const char *path) {
	const char *parts[] = {"tenure: not recorded: ", what, path, "\n"};
	for (int i = 0; i < 4; i++)
		syscall(SYS_write, 2, parts[i], strlen(parts[i]));
}

static bool choose_path(void) {
	const char *path = variable("TENURE_TRACE"), *root = variable("TENURE_RECORD_PID");
	if (path == NULL || *path == 0)
		return false;
	unsigned long pid = (unsigned long)getpid();
	bool child = root != NULL && number(root, 0) != pid;
	following = variable("TENURE_RECORD_FOLLOW") != NULL;
	if (child && !following)
		return false;
	char *end = trace_path + sizeof trace_path - 24;
	char *at = append(trace_path, end, path);
	if (child) {
		*at++ = '.';
		decimal(at, pid);
	}
	if (root == NULL)
		decimal(append(pid_variable, pid_variable + 24, "TENURE_RECORD_PID="), pid);
	return true;
}

static void begin_recording(void) {
	if (!choose_path())
		return;
	depth = (uint32_t)number(variable("TENURE_RECORD_DEPTH"), 64);
	depth = depth < 1 ? 1 : depth > FRAMES_MOST ? FRAMES_MOST : depth;
	measure_timing();
	/* The words that tell whether this process is recorded must not reach a child. */
	if (syscall(SYS_madvise, &recorder_state, sizeof recorder_state, MADV_WIPEONFORK) != 0) {
		say("the kernel has no MADV_WIPEONFORK: ", trace_path);
		return;
	}
	int fd = open_trace(trace_path);
	if (fd < 0) {
		say("the file cannot be made: ", trace_path);
		return;
	}
	flock(fd, LOCK_EX | LOCK_NB);
	shared *s = make_shared();
	recorder_state.shared = s;
	recorder_state.start = ticks();
	packing *p = &packing_of_process;
	*p = (packing){s, fd, -1, getpid(), trace_path, recorder_state.start, {0}, 0};
	p->process = (int)syscall(SYS_pidfd_open, p->pid, 0);
	p->run_bytes = describe(p->run, sizeof p->run);
	bool packed = s != NULL && packer_start(p);
	syscall(SYS_close, fd);
	if (p->process >= 0)
		syscall(SYS_close, p->process);
	if (!packed) {
		say("no memory, or no process for the packer: ", trace_path);
		return;
	}
	size_t bytes = sizeof(shared) + s->count * sizeof(buffer);
	syscall(SYS_madvise, s, bytes, MADV_DONTFORK);
	syscall(SYS_madvise, s, bytes, MADV_DONTDUMP);
	if (!key_made)
		key_made = pthread_key_create(&thread_key, leave_thread) == 0;
	atomic_store(&recorder_state.epoch, (uint64_t)p->pid << 32 | (uint32_t)(recorder_state.start | 1));
}

void recorder_start(void) {
	thread *t = &recorder_thread;
	int kept = errno;
	t->busy = INSIDE;
	uint32_t idle = 0;
	entry_resolve();
	if (atomic_compare_exchange_strong(&recorder_state.started, &idle, 1)) {
		begin_recording();
		atomic_store(&recorder_state.started, 2);
	} else
		while (atomic_load(&recorder_state.started) == 1)
			syscall(SYS_sched_yield);
	t->busy = IDLE;
	errno = kept;
}

/* The recorder starts with the first call; a program that makes none gets a trace all the same. */
__attribute__((constructor)) static void loaded(void) {
	if (!atomic_load(&recorder_state.started))
		recorder_start();
	if (pid_variable[0] != 0 && atomic_load(&recorder_state.epoch) != 0) {
		recorder_thread.busy = INSIDE;
		putenv(pid_variable);
		recorder_thread.busy = IDLE;
	}
}

__attribute__((destructor)) static void ending(void) {
	if (atomic_load(&recorder_state.epoch) != 0) {
		struct timespec cpu;
		if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu) == 0)
			atomic_store(
				&recorder_state.shared->cpu, (uint64_t)cpu.tv_sec * 1000000000 + (uint64_t)cpu.tv_nsec);
		atomic_store(&recorder_state.shared->ending, 1);
	}
}
