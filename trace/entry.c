/*
 * The entry points that are recorded. Each calls the function that the program would have called
 * without the recorder. A call from inside another entry point, as operator new's of malloc, is not
 * an event.
 */
#define _GNU_SOURCE
#include "recorder.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define EXPORT __attribute__((visibility("default"), noinline))
#define HERE __builtin_frame_address(0)

typedef void *one(size_t);
typedef void *two(size_t, size_t);
typedef void *again(void *, size_t);
typedef void *again_array(void *, size_t, size_t);
typedef void *nothrow(size_t, const void *);
typedef void *nothrow_aligned(size_t, size_t, const void *);
typedef void drop(void *);
typedef void drop_two(void *, size_t);
typedef void drop_three(void *, size_t, size_t);

static void find(void **place, const char *name);

/* dlsym may allocate before malloc is known. These blocks are few, and never freed. */
static _Alignas(16) uint8_t early[65536];
static _Atomic size_t early_used;

static void *early_alloc(size_t size) {
	size_t bytes = (size + 31) & ~(size_t)15;
	if (size > sizeof early)
		return NULL;
	size_t at = atomic_fetch_add(&early_used, bytes);
	if (at > sizeof early - bytes)
		return NULL;
	memcpy(early + at, &size, sizeof size);
	return early + at + 16;
}

static bool is_early(const void *p) {
	return (uintptr_t)p - (uintptr_t)early < sizeof early;
}

/* The size of an early block is kept before it. */
static size_t early_size(const void *p) {
	size_t size;
	memcpy(&size, (const uint8_t *)p - 16, sizeof size);
	return size;
}

static one *real_malloc;
static two *real_calloc;
static again *real_realloc;
static drop *real_free;
static _Atomic int resolved;

void entry_resolve(void) {
	if (atomic_load(&resolved))
		return;
	find((void **)&real_calloc, "calloc");
	find((void **)&real_realloc, "realloc");
	find((void **)&real_free, "free");
	one *found;
	find((void **)&found, "malloc");
	__atomic_store_n(&real_malloc, found, __ATOMIC_RELEASE);
	atomic_store(&resolved, 1);
}

/* The next definition in the order of the linker; for C++, of a library that only a module has
 * opened. */
static void find(void **place, const char *name) {
	void *found = dlsym(RTLD_NEXT, name);
	if (found == NULL && name[0] == '_') {
		void *library = dlopen("libstdc++.so.6", RTLD_NOLOAD | RTLD_LAZY);
		if (library == NULL)
			library = dlopen("libc++.so.1", RTLD_NOLOAD | RTLD_LAZY);
		found = library ? dlsym(library, name) : NULL;
	}
	*place = found;
}

static __attribute__((noinline)) void *look_up(void **place, const char *name) {
	thread *t = &recorder_thread;
	enum busy before = t->busy;
	t->busy = INSIDE;
	find(place, name);
	t->busy = before;
	return *place;
}

/* The real function of an entry point that is looked up at its first call. */
#define REAL(type, name)                                                                               \
	static type *real;                                                                                 \
	if (__builtin_expect(real == NULL, 0) && look_up((void **)&real, name) == NULL)

/* An exception may leave operator new. */
static inline void left(thread **t) {
	if (*t != NULL && (*t)->busy != IDLE)
		recorder_leave(*t);
}
#define ENTER __attribute__((cleanup(left))) thread *t = recorder_enter(HERE)

static inline void begin(thread *t) {
	if (t != NULL)
		recorder_time(t);
}

static inline void *done(thread *t, unsigned op, void *p, size_t size, size_t align) {
	if (__builtin_expect(t != NULL, 1))
		recorder_alloc(t, op, p, size, align);
	else if (__builtin_expect(recorder_thread.busy == WRITING, 0))
		recorder_note(op, 0, p, size);
	return p;
}

static inline void freeing(thread *t, unsigned op, void *p) {
	if (p == NULL)
		return;
	if (__builtin_expect(t != NULL, 1)) {
		recorder_time(t);
		recorder_free(t, op, p);
	} else if (__builtin_expect(recorder_thread.busy == WRITING, 0))
		recorder_note(op, 0, p, 0);
}

static inline void freed(thread *t, void *p) {
	if (__builtin_expect(t != NULL && p != NULL, 1))
		recorder_free_done(t);
}

static size_t times(size_t count, size_t size) {
	size_t bytes;
	return __builtin_mul_overflow(count, size, &bytes) ? SIZE_MAX : bytes;
}

/* ---- malloc ---- */

EXPORT void *malloc(size_t size) {
	ENTER;
	if (__builtin_expect(real_malloc == NULL, 0))
		return early_alloc(size);
	begin(t);
	return done(t, TRACE_MALLOC, real_malloc(size), size, 0);
}

EXPORT void *calloc(size_t count, size_t size) {
	ENTER;
	if (__builtin_expect(real_malloc == NULL, 0))
		return early_alloc(times(count, size));
	begin(t);
	return done(t, TRACE_CALLOC, real_calloc(count, size), times(count, size), 0);
}

static void *early_again(void *old, size_t size) {
	void *p = malloc(size);
	if (p != NULL && old != NULL)
		memcpy(p, old, early_size(old) < size ? early_size(old) : size);
	return p;
}

/* Two stamps, so that another thread that gets the old block comes after this call has begun. */
static inline void *done_again(thread *t, unsigned op, void *old, void *p, size_t size) {
	if (__builtin_expect(t != NULL, 1))
		recorder_realloc(t, op, old, p, size);
	else if (__builtin_expect(recorder_thread.busy == WRITING, 0))
		recorder_note(op, (uint64_t)old, p, size);
	return p;
}

static inline void begin_again(thread *t) {
	if (t == NULL)
		return;
	recorder_time(t);
	if (!t->timed)
		t->begun = RECORDER_TICKS();
}

EXPORT void *realloc(void *old, size_t size) {
	ENTER;
	if (__builtin_expect(real_malloc == NULL || is_early(old), 0)) {
		left(&t);
		return early_again(old, size);
	}
	begin_again(t);
	return done_again(t, TRACE_REALLOC, old, real_realloc(old, size), size);
}

EXPORT void *reallocarray(void *old, size_t count, size_t size) {
	ENTER;
	REAL(again_array, "reallocarray")
	return NULL;
	begin_again(t);
	return done_again(t, TRACE_REALLOCARRAY, old, real(old, count, size), times(count, size));
}

EXPORT void free(void *p) {
	ENTER;
	if (__builtin_expect(real_free == NULL || is_early(p), 0))
		return;
	freeing(t, TRACE_FREE, p);
	real_free(p);
	freed(t, p);
}

#define ALIGNED(function, op)                                                                          \
	EXPORT void *function(size_t align, size_t size) {                                                 \
		ENTER;                                                                                         \
		REAL(two, #function)                                                                           \
		return errno = ENOMEM, NULL;                                                                   \
		begin(t);                                                                                      \
		return done(t, op, real(align, size), size, align);                                            \
	}
ALIGNED(aligned_alloc, TRACE_ALIGNED_ALLOC)
ALIGNED(memalign, TRACE_MEMALIGN)

EXPORT int posix_memalign(void **place, size_t align, size_t size) {
	ENTER;
	typedef int function(void **, size_t, size_t);
	REAL(function, "posix_memalign")
	return ENOMEM;
	begin(t);
	int failed = real(place, align, size);
	done(t, TRACE_POSIX_MEMALIGN, failed ? NULL : *place, size, align);
	return failed;
}

#define PAGED(function, op)                                                                            \
	EXPORT void *function(size_t size) {                                                               \
		ENTER;                                                                                         \
		REAL(one, #function)                                                                           \
		return errno = ENOMEM, NULL;                                                                   \
		begin(t);                                                                                      \
		return done(t, op, real(size), size, 4096);                                                    \
	}
PAGED(valloc, TRACE_VALLOC)
PAGED(pvalloc, TRACE_PVALLOC)

/* Where the C library has none of C23's, they are free. */
EXPORT void free_sized(void *p, size_t size) {
	ENTER;
	REAL(drop_two, "free_sized")
	real = NULL;
	freeing(t, TRACE_FREE_SIZED, p);
	real ? real(p, size) : real_free(p);
	freed(t, p);
}

EXPORT void free_aligned_sized(void *p, size_t align, size_t size) {
	ENTER;
	REAL(drop_three, "free_aligned_sized")
	real = NULL;
	freeing(t, TRACE_FREE_ALIGNED_SIZED, p);
	real ? real(p, align, size) : real_free(p);
	freed(t, p);
}

/* ---- C++ ---- */

/* A program without a C++ library lacks these. They are called all the same where it opens a module
 * with such a library inside: the names here come first. Then malloc's functions serve. */
static void *take_without(size_t size, size_t align) {
	REAL(two, "aligned_alloc") return NULL;
	return align == 0 ? real_malloc(size) : real(align, size);
}

#define NEW(symbol, op, type, parameters, arguments, align)                                            \
	EXPORT void *symbol parameters {                                                                   \
		ENTER;                                                                                         \
		REAL(type, #symbol) return take_without(size, align);                                          \
		begin(t);                                                                                      \
		return done(t, op, real arguments, size, align);                                               \
	}
#define N size_t size
#define A size_t align
#define X const void *none
NEW(_Znwm, TRACE_NEW, one, (N), (size), 0)
NEW(_Znam, TRACE_NEW_ARRAY, one, (N), (size), 0)
NEW(_ZnwmRKSt9nothrow_t, TRACE_NEW_NOTHROW, nothrow, (N, X), (size, none), 0)
NEW(_ZnamRKSt9nothrow_t, TRACE_NEW_ARRAY_NOTHROW, nothrow, (N, X), (size, none), 0)
NEW(_ZnwmSt11align_val_t, TRACE_NEW_ALIGNED, two, (N, A), (size, align), align)
NEW(_ZnamSt11align_val_t, TRACE_NEW_ARRAY_ALIGNED, two, (N, A), (size, align), align)
NEW(_ZnwmSt11align_val_tRKSt9nothrow_t, TRACE_NEW_ALIGNED_NOTHROW, nothrow_aligned, (N, A, X),
	(size, align, none), align)
NEW(_ZnamSt11align_val_tRKSt9nothrow_t, TRACE_NEW_ARRAY_ALIGNED_NOTHROW, nothrow_aligned, (N, A, X),
	(size, align, none), align)

#define DELETE(symbol, op, type, parameters, arguments)                                                \
	EXPORT void symbol parameters {                                                                    \
		ENTER;                                                                                         \
		REAL(type, #symbol) return real_free(p);                                                       \
		freeing(t, op, p);                                                                             \
		real arguments;                                                                                \
		freed(t, p);                                                                                   \
	}
#define P void *p
typedef void drop_nothrow(void *, const void *);
typedef void drop_aligned_nothrow(void *, size_t, const void *);
DELETE(_ZdlPv, TRACE_DELETE, drop, (P), (p))
DELETE(_ZdaPv, TRACE_DELETE_ARRAY, drop, (P), (p))
DELETE(_ZdlPvm, TRACE_DELETE_SIZED, drop_two, (P, N), (p, size))
DELETE(_ZdaPvm, TRACE_DELETE_ARRAY_SIZED, drop_two, (P, N), (p, size))
DELETE(_ZdlPvSt11align_val_t, TRACE_DELETE_ALIGNED, drop_two, (P, A), (p, align))
DELETE(_ZdaPvSt11align_val_t, TRACE_DELETE_ARRAY_ALIGNED, drop_two, (P, A), (p, align))
DELETE(_ZdlPvmSt11align_val_t, TRACE_DELETE_SIZED_ALIGNED, drop_three, (P, N, A), (p, size, align))
DELETE(
	_ZdaPvmSt11align_val_t, TRACE_DELETE_ARRAY_SIZED_ALIGNED, drop_three, (P, N, A), (p, size, align))
DELETE(_ZdlPvRKSt9nothrow_t, TRACE_DELETE_NOTHROW, drop_nothrow, (P, X), (p, none))
DELETE(_ZdaPvRKSt9nothrow_t, TRACE_DELETE_ARRAY_NOTHROW, drop_nothrow, (P, X), (p, none))
DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t, TRACE_DELETE_ALIGNED_NOTHROW, drop_aligned_nothrow,
	(P, A, X), (p, align, none))
DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t, TRACE_DELETE_ARRAY_ALIGNED_NOTHROW, drop_aligned_nothrow,
	(P, A, X), (p, align, none))

/* ---- allocators with names of their own, where they are exported ---- */

#define OTHER_ONE(name, op)                                                                            \
	EXPORT void *name(size_t size) {                                                                   \
		ENTER;                                                                                         \
		REAL(one, #name)                                                                               \
		return NULL;                                                                                   \
		begin(t);                                                                                      \
		return done(t, op, real(size), size, 0);                                                       \
	}
#define OTHER_TWO(name, op)                                                                            \
	EXPORT void *name(size_t count, size_t size) {                                                     \
		ENTER;                                                                                         \
		REAL(two, #name)                                                                               \
		return NULL;                                                                                   \
		begin(t);                                                                                      \
		return done(t, op, real(count, size), times(count, size), 0);                                  \
	}
#define OTHER_AGAIN(name, op)                                                                          \
	EXPORT void *name(void *old, size_t size) {                                                        \
		ENTER;                                                                                         \
		REAL(again, #name)                                                                             \
		return NULL;                                                                                   \
		begin_again(t);                                                                                \
		return done_again(t, op, old, real(old, size), size);                                          \
	}
#define OTHER_FREE(name, op)                                                                           \
	EXPORT void name(void *p) {                                                                        \
		ENTER;                                                                                         \
		REAL(drop, #name)                                                                              \
		return;                                                                                        \
		freeing(t, op, p);                                                                             \
		real(p);                                                                                       \
		freed(t, p);                                                                                   \
	}
OTHER_ONE(mi_malloc, TRACE_MI_MALLOC)
OTHER_ONE(mi_zalloc, TRACE_MI_ZALLOC)
OTHER_TWO(mi_calloc, TRACE_MI_CALLOC)
OTHER_AGAIN(mi_realloc, TRACE_MI_REALLOC)
OTHER_FREE(mi_free, TRACE_MI_FREE)
OTHER_ONE(je_malloc, TRACE_JE_MALLOC)
OTHER_TWO(je_calloc, TRACE_JE_CALLOC)
OTHER_AGAIN(je_realloc, TRACE_JE_REALLOC)
OTHER_FREE(je_free, TRACE_JE_FREE)

EXPORT void *mi_malloc_aligned(size_t size, size_t align) {
	ENTER;
	REAL(two, "mi_malloc_aligned")
	return NULL;
	begin(t);
	return done(t, TRACE_MI_MALLOC_ALIGNED, real(size, align), size, align);
}

/* ---- mappings, code, marks ---- */

enum { MAPPING_LEAST = 128 << 10 };

#define MAP(name)                                                                                      \
	EXPORT void *name(void *at, size_t size, int protection, int flags, int fd, off_t offset) {        \
		typedef void *function(void *, size_t, int, int, int, off_t);                                  \
		REAL(function, #name)                                                                          \
		return errno = ENOSYS, MAP_FAILED;                                                             \
		if (size < MAPPING_LEAST || !(flags & MAP_ANONYMOUS))                                          \
			return real(at, size, protection, flags, fd, offset);                                      \
		ENTER;                                                                                         \
		begin(t);                                                                                      \
		void *p = real(at, size, protection, flags, fd, offset);                                       \
		if (p != MAP_FAILED)                                                                           \
			done(t, TRACE_MMAP, p, size, 0);                                                           \
		return p;                                                                                      \
	}
MAP(mmap)
MAP(mmap64)

EXPORT int munmap(void *at, size_t size) {
	typedef int function(void *, size_t);
	REAL(function, "munmap")
	return errno = ENOSYS, -1;
	if (size < MAPPING_LEAST)
		return real(at, size);
	ENTER;
	if (t != NULL)
		recorder_unmap(t, at, size);
	return real(at, size);
}

EXPORT int dlclose(void *library) {
	typedef int function(void *);
	REAL(function, "dlclose")
	return -1;
	int result = real(library);
	ENTER;
	if (t != NULL) {
		t->busy = WRITING;
		recorder_unloaded(t);
	}
	return result;
}

EXPORT void tenure_mark(const char *name);
EXPORT void tenure_mark(const char *name) {
	ENTER;
	if (t != NULL && name != NULL)
		recorder_mark(t, name);
}
