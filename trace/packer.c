/*
 * The packer: a process of its own, so that a program which closes all descriptors, enters a chroot
 * or a sandbox, or is killed takes nothing with it. It sees the buffers through shared memory,
 * packs full ones, reads the process's resident memory ten times a second, and writes the rest when
 * the process is gone. It calls nothing that allocates.
 */
#define _GNU_SOURCE
#define ZSTD_STATIC_LINKING_ONLY
#include "buffers.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>

enum { LEVEL = 1, WAIT_MS = 10, SAMPLE_MS = 100, WORKSPACE = 2 << 20 };

typedef struct entry {
	uint64_t offset, first, last;
	uint32_t stream, kind;
} entry;

typedef struct packer {
	packing *from;
	ZSTD_CCtx *zstd;
	uint8_t *out; /* header and packed bytes of one block */
	entry *index; /* one a block */
	size_t blocks, index_room;
	uint64_t offset;
	uint64_t end_reason, cpu;
	int64_t next_sample; /* ms */
	int rollup, error_output;
	bool full, gone;
} packer;

static uint32_t crc_table[256];

static uint32_t crc_plain(uint32_t crc, const uint8_t *at, size_t size) {
	for (; size; size--)
		crc = crc >> 8 ^ crc_table[(crc ^ *at++) & 0xff];
	return crc;
}

__attribute__((target("sse4.2"))) static uint32_t crc_fast(
	uint32_t crc, const uint8_t *at, size_t size) {
	uint64_t sum = crc;
	for (; size >= 8; size -= 8, at += 8) {
		uint64_t word;
		memcpy(&word, at, 8);
		sum = __builtin_ia32_crc32di(sum, word);
	}
	for (; size; size--)
		sum = __builtin_ia32_crc32qi((uint32_t)sum, *at++);
	return (uint32_t)sum;
}

static uint32_t crc32c(uint32_t crc, const uint8_t *at, size_t size) {
	return ~(__builtin_cpu_supports("sse4.2") ? crc_fast : crc_plain)(~crc, at, size);
}

static void make_crc_table(void) {
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t crc = i;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
		crc_table[i] = crc;
	}
}

static void *map_pages(size_t bytes) {
	/* Raw, because mmap is an entry point of the recorder. */
	long at = syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return at == -1 ? NULL : (void *)at;
}

static int64_t now_ns(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool write_all(int fd, const uint8_t *at, size_t size) {
	while (size) {
		ssize_t done = write(fd, at, size);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return false;
		at += done;
		size -= (size_t)done;
	}
	return true;
}

static void put32(uint8_t *at, uint32_t value) {
	memcpy(at, &value, 4);
}

static void put64(uint8_t *at, uint64_t value) {
	memcpy(at, &value, 8);
}

static void complain(packer *p, const char *what) {
	const char *parts[] = {"tenure: recording of ", p->from->path, " ends: ", what, "\n"};
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		write_all(p->error_output, (const uint8_t *)parts[i], strlen(parts[i]));
}

/* Packs one block behind its header into p->out; returns the size of both. */
static size_t frame(packer *p, uint32_t kind, uint32_t stream, const uint8_t *raw, size_t size) {
	uint8_t *body = p->out + TRACE_BLOCK_HEADER;
	size_t room = ZSTD_compressBound(TRACE_BLOCK_BYTES) + (1 << 16);
	size_t packed = size > 256 && size <= TRACE_BLOCK_BYTES
	                    ? ZSTD_compressCCtx(p->zstd, body, room, raw, size, LEVEL)
	                    : size;
	uint32_t codec = TRACE_ZSTD;
	if (ZSTD_isError(packed) || packed >= size) {
		packed = size;
		codec = TRACE_PLAIN;
		memcpy(body, raw, size);
	}
	uint8_t *head = p->out;
	put32(head, TRACE_BLOCK_MAGIC);
	put32(head + 4, (uint32_t)packed);
	put32(head + 8, (uint32_t)size);
	put32(head + 12, stream);
	put64(head + 16, p->blocks);
	put32(head + 24, kind | codec << 8);
	put32(head + 28, 0);
	put32(head + 32, 0);
	uint32_t crc = crc32c(0, head, TRACE_BLOCK_HEADER - 4);
	put32(head + 36, crc32c(crc, body, packed));
	return TRACE_BLOCK_HEADER + packed;
}

static void grow_index(packer *p) {
	size_t room = p->index_room ? 2 * p->index_room : 4096;
	entry *larger = map_pages(room * sizeof *larger);
	if (larger == NULL)
		return;
	if (p->index != NULL) {
		memcpy(larger, p->index, p->blocks * sizeof *larger);
		syscall(SYS_munmap, p->index, p->index_room * sizeof *larger);
	}
	p->index = larger;
	p->index_room = room;
}

/* Cuts whole blocks off the end, until the end block has room where they were. */
static void disk_full(packer *p) {
	p->full = true;
	p->end_reason = TRACE_DISK_FULL;
	atomic_store(&p->from->shared->stopped, 1);
	complain(p, "the disk is full or the file may not grow; what is on it can be read");
	uint64_t wanted = (p->blocks + 64) * 40, from = p->offset;
	while (p->blocks > 1 && from - p->offset < wanted)
		p->offset = p->index[--p->blocks].offset;
	if (ftruncate(p->from->file, (off_t)p->offset) == 0)
		lseek(p->from->file, (off_t)p->offset, SEEK_SET);
}

static void put_block(packer *p, entry e, const uint8_t *raw, size_t size) {
	if (p->full)
		return;
	if (p->blocks == p->index_room)
		grow_index(p);
	if (p->blocks == p->index_room)
		return;
	size_t bytes = frame(p, e.kind, e.stream, raw, size);
	if (!write_all(p->from->file, p->out, bytes)) {
		disk_full(p);
		return;
	}
	e.offset = p->offset;
	p->index[p->blocks++] = e;
	p->offset += bytes;
}

static void release(shared *s, uint32_t at) {
	atomic_store_explicit(&s->state[at], BUFFER_FREE, memory_order_relaxed);
	atomic_fetch_or_explicit(&s->free_low[at / 32], 1u << at % 32, memory_order_release);
	atomic_fetch_add(&s->freed, 1);
	syscall(SYS_futex, &s->freed, FUTEX_WAKE, 1 << 30, NULL, NULL, 0);
}

static void put_buffer(packer *p, buffer *b) {
	size_t used = b->used;
	if (used == 0 || used > sizeof b->events)
		return;
	put_block(p, (entry){0, b->first, b->last, b->stream, TRACE_EVENTS}, b->events, used);
}

/* Packs what has been submitted, oldest first; also what is half full, once the process is gone. */
static bool drain(packer *p) {
	shared *s = p->from->shared;
	bool any = false;
	for (;;) {
		uint32_t found = UINT32_MAX;
		for (uint32_t i = 0; i < s->count; i++) {
			uint8_t state = atomic_load_explicit(&s->state[i], memory_order_acquire);
			if ((state == BUFFER_FULL || (p->gone && state == BUFFER_OWNED)) &&
				(found == UINT32_MAX || s->buffers[i].ticket < s->buffers[found].ticket))
				found = i;
		}
		if (found == UINT32_MAX)
			return any;
		put_buffer(p, &s->buffers[found]);
		release(s, found);
		atomic_fetch_add(&s->beat, 1);
		any = true;
	}
}

static uint64_t figure(const char *text, const char *name) {
	const char *at = strstr(text, name);
	uint64_t value = 0;
	if (at == NULL)
		return 0;
	for (at += strlen(name); *at == ' '; at++)
		;
	for (; *at >= '0' && *at <= '9'; at++)
		value = value * 10 + (uint64_t)(*at - '0');
	return value;
}

/* A sample: stamp, ns, then KiB of smaps_rollup. False once the process has another image or is
 * gone. */
static bool sample(packer *p) {
	char text[4096];
	uint64_t words[12] = {(ticks() - p->from->start) >> TRACE_TICK_SHIFT, (uint64_t)now_ns()};
	ssize_t got = p->rollup < 0 ? 0 : pread(p->rollup, text, sizeof text - 1, 0);
	if (got < 0 && errno == ESRCH)
		return false;
	text[got > 0 ? got : 0] = 0;
	static const char *names[] = {
		"\nRss:", "\nPss:", "\nAnonymous:", "\nShared_Clean:", "\nPrivate_Clean:", "\nSwap:"};
	for (size_t i = 0; i < 6; i++)
		words[2 + i] = figure(text, names[i]);
	words[8] = atomic_load(&p->from->shared->waits);
	words[9] = atomic_load(&p->from->shared->wait_ticks);
	/* The clock of another process's CPU time; its last value is the process's own. */
	struct timespec cpu;
	if (clock_gettime((~(clockid_t)p->from->pid * 8) | 2, &cpu) == 0)
		p->cpu = (uint64_t)cpu.tv_sec * 1000000000 + (uint64_t)cpu.tv_nsec;
	uint64_t own = atomic_load(&p->from->shared->cpu);
	words[10] = own > p->cpu ? own : p->cpu;
	words[11] = atomic_load(&p->from->shared->recording);
	put_block(p, (entry){0, words[0], words[0], 0, TRACE_SAMPLE}, (const uint8_t *)words, sizeof words);
	return true;
}

/* The end block: reason, waits and missed events, the index; then where this block begins. */
static void finish(packer *p) {
	shared *s = p->from->shared;
	size_t size = 40 + p->blocks * sizeof(entry);
	uint8_t *raw = map_pages(size);
	if (raw == NULL)
		return;
	put64(raw, p->end_reason);
	put64(raw + 8, atomic_load(&s->waits));
	put64(raw + 16, atomic_load(&s->wait_ticks));
	put64(raw + 24, atomic_load(&s->missed));
	put64(raw + 32, p->blocks);
	if (p->blocks)
		memcpy(raw + 40, p->index, p->blocks * sizeof(entry));
	uint8_t *out = map_pages(size + TRACE_BLOCK_HEADER + 4096);
	if (out == NULL)
		return;
	p->out = out;
	size_t bytes = frame(p, TRACE_END, 0, raw, size);
	put64(out + bytes, p->offset);
	memcpy(out + bytes + 8, TRACE_MAGIC, 8);
	write_all(p->from->file, out, bytes + 16);
}

/* The file was renamed by a later image of the same process. */
static bool superseded(const packer *p) {
	struct stat mine, named;
	return fstat(p->from->file, &mine) == 0 && stat(p->from->path, &named) == 0 &&
	       (mine.st_ino != named.st_ino || mine.st_dev != named.st_dev);
}

static bool process_ended(const packer *p, int wait_ms) {
	if (p->from->process < 0)
		return kill(p->from->pid, 0) != 0 && errno == ESRCH;
	struct pollfd one = {p->from->process, POLLIN, 0};
	return poll(&one, 1, wait_ms) > 0;
}

/*
 * The process has lost its memory: soon it is seen to end, or it runs another program. If that one is
 * recorded, too, the file has been renamed.
 */
static bool was_replaced(const packer *p) {
	for (int i = 0; i < 20; i++) {
		if (superseded(p))
			return true;
		if (process_ended(p, 10))
			return superseded(p);
	}
	return true;
}

static void sleep_until_work(packer *p) {
	shared *s = p->from->shared;
	if (atomic_load(&s->ending)) {
		process_ended(p, 2);
		return;
	}
	struct timespec wait = {0, WAIT_MS * 1000000};
	atomic_store(&s->sleeping, 1);
	syscall(SYS_futex, &s->sleeping, FUTEX_WAIT, 1, &wait, NULL, 0);
	atomic_store(&s->sleeping, 0);
}

static void pack(packer *p) {
	while (!p->gone) {
		atomic_fetch_add(&p->from->shared->beat, 1);
		if (!drain(p))
			sleep_until_work(p);
		int64_t now = now_ns() / 1000000;
		if (now >= p->next_sample) {
			p->next_sample = now + SAMPLE_MS;
			p->gone = !sample(p) || superseded(p);
		}
		bool replaced = p->gone && was_replaced(p);
		if (process_ended(p, 0)) {
			p->gone = true;
			replaced |= superseded(p);
		}
		if (!p->full)
			p->end_reason = replaced ? TRACE_REPLACED : TRACE_EXITED;
	}
	drain(p);
	sample(p);
}

static int keep_descriptor(int fd, int at) {
	return fd < 0 ? -1 : dup3(fd, at, O_CLOEXEC);
}

/* Its descriptors are put above those that are closed, in the order of their numbers. */
static void become_packer(packing *from) {
	packer p = {.from = from};
	char path[] = "/proc/..........\0/smaps_rollup";
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	setsid();
	struct rlimit files;
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	prctl(PR_SET_NAME, "tenure-record");
	char digits[16];
	int length = 0;
	for (pid_t pid = from->pid; pid; pid /= 10)
		digits[length++] = (char)('0' + pid % 10);
	char *at = path + 6;
	while (length)
		*at++ = digits[--length];
	memcpy(at, "/smaps_rollup", 14);
	p.rollup = open(path, O_RDONLY | O_CLOEXEC);
	p.error_output = fcntl(2, F_DUPFD_CLOEXEC, 64);
	from->file = fcntl(from->file, F_DUPFD_CLOEXEC, 64);
	p.rollup = p.rollup < 0 ? -1 : fcntl(p.rollup, F_DUPFD_CLOEXEC, 64);
	from->process = from->process < 0 ? -1 : fcntl(from->process, F_DUPFD_CLOEXEC, 64);
	int keep[] = {p.error_output, from->file, p.rollup, from->process};
	for (int i = 0; i < 4; i++)
		if (keep[i] >= 0)
			keep_descriptor(keep[i], 200 + i);
	p.error_output = p.error_output < 0 ? -1 : 200;
	from->file = 201;
	p.rollup = p.rollup < 0 ? -1 : 202;
	from->process = from->process < 0 ? -1 : 203;
	syscall(SYS_close_range, 0, 199, 0);
	syscall(SYS_close_range, 204, ~0u, 0);
	make_crc_table();
	void *workspace = map_pages(WORKSPACE);
	p.zstd = workspace ? ZSTD_initStaticCCtx(workspace, WORKSPACE) : NULL;
	p.out = map_pages(ZSTD_compressBound(TRACE_BLOCK_BYTES) + (1 << 17));
	uint8_t head[16] = TRACE_MAGIC;
	put32(head + 8, TRACE_VERSION);
	put32(head + 12, crc32c(0, head, 12));
	if (p.zstd == NULL || p.out == NULL || !write_all(from->file, head, sizeof head)) {
		complain(&p, "no memory, or the file cannot be written");
		atomic_store(&from->shared->stopped, 1);
		_exit(1);
	}
	p.offset = sizeof head;
	put_block(&p, (entry){0, 0, 0, 0, TRACE_RUN}, (const uint8_t *)from->run, from->run_bytes);
	pack(&p);
	finish(&p);
	_exit(0);
}

bool packer_start(packing *p) {
	/* Twice, so that the program has no child that it does not know; by the raw call, so that
	 * handlers of fork do not run. */
	__builtin_cpu_init();
	long child = syscall(SYS_clone, 0, NULL, NULL, NULL, 0);
	if (child == 0) {
		if (syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0) == 0)
			become_packer(p);
		_exit(0);
	}
	if (child < 0)
		return false;
	while (syscall(SYS_wait4, child, NULL, __WALL, NULL) < 0 && errno == EINTR)
		;
	return true;
}
