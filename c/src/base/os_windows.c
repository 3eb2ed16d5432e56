/* os.h for Windows. */
#include "os.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <errno.h>
#include <stdlib.h>

/* VirtualFree releases only what VirtualAlloc returned, so an aligned range cannot be cut from a larger
 * one: reserve the larger one, note its place, release it, and reserve the aligned part at once.
 * Another thread may take the place in between; then try again. */
void *tn_os_reserve(size_t size, size_t align) {
	enum { TRIES = 64 };
	if (size > SIZE_MAX - align)
		return errno = ENOMEM, NULL;
	for (int i = 0; i < TRIES; i++) {
		char *p = VirtualAlloc(NULL, size + align, MEM_RESERVE, PAGE_NOACCESS);
		if (p == NULL)
			break;
		VirtualFree(p, 0, MEM_RELEASE);
		char *aligned = (char *)(((uintptr_t)p + align - 1) & ~(uintptr_t)(align - 1));
		p = VirtualAlloc(aligned, size, MEM_RESERVE, PAGE_NOACCESS);
		if (p != NULL)
			return p;
	}
	return errno = ENOMEM, NULL;
}

void tn_os_release(void *p, size_t size) {
	(void)size;
	VirtualFree(p, 0, MEM_RELEASE);
}

bool tn_os_commit(void *p, size_t size) {
	return VirtualAlloc(p, size, MEM_COMMIT, PAGE_READWRITE) != NULL || (errno = ENOMEM, false);
}

/* Commits the pages again at once: the page layer needs them to stay usable. */
bool tn_os_decommit(void *p, size_t size) {
	return VirtualFree(p, size, MEM_DECOMMIT) &&
	       VirtualAlloc(p, size, MEM_COMMIT, PAGE_READWRITE) != NULL;
}

bool tn_os_protect(void *p, size_t size) {
	DWORD before;
	return VirtualProtect(p, size, PAGE_NOACCESS, &before) != 0;
}

bool tn_os_unprotect(void *p, size_t size) {
	DWORD before;
	return VirtualProtect(p, size, PAGE_READWRITE, &before) != 0;
}

/* Large pages need a privilege, and are requested when memory is reserved. */
void tn_os_huge(void *p, size_t size) {
	(void)p, (void)size;
}

static SRWLOCK lock = SRWLOCK_INIT;

void tn_os_lock(void) {
	AcquireSRWLockExclusive(&lock);
}

void tn_os_unlock(void) {
	ReleaseSRWLockExclusive(&lock);
}

static INIT_ONCE exit_once = INIT_ONCE_STATIC_INIT;
static DWORD exit_indexes[TN_EXIT_COUNT];

static void WINAPI os_call_at_exit(void *at_exit) {
	if (at_exit != NULL)
		((void (*)(void))at_exit)();
}

static BOOL CALLBACK os_make_exit_indexes(INIT_ONCE *once, void *parameter, void **context) {
	(void)once, (void)parameter, (void)context;
	for (int i = 0; i < TN_EXIT_COUNT; i++)
		exit_indexes[i] = FlsAlloc(os_call_at_exit);
	return TRUE;
}

bool tn_os_on_thread_exit(enum tn_os_exit which, void (*at_exit)(void)) {
	InitOnceExecuteOnce(&exit_once, os_make_exit_indexes, NULL, NULL);
	return exit_indexes[which] != FLS_OUT_OF_INDEXES &&
	       FlsSetValue(exit_indexes[which], (void *)at_exit);
}

/* There is no fork. */
void tn_os_on_fork(
	enum tn_os_fork which, void (*before)(void), void (*in_parent)(void), void (*in_child)(void)) {
	(void)which, (void)before, (void)in_parent, (void)in_child;
}

/* WaitOnAddress would be one more library to link. */
void tn_os_wait(const void *word, uint32_t value) {
	(void)word, (void)value;
	Sleep(0);
}

void tn_os_wait_for(const void *word, uint32_t value, unsigned milliseconds) {
	(void)word, (void)value;
	Sleep(milliseconds < 10 ? milliseconds : 10);
}

void tn_os_wake(const void *word) {
	(void)word;
}

void tn_os_yield(void) {
	SwitchToThread();
}

TN_ATOMIC(uint64_t) tn_os_skipped_ms;

uint64_t tn_os_milliseconds(void) {
	return GetTickCount64() + tn_get(&tn_os_skipped_ms, TN_RELAXED);
}

uint64_t tn_os_coarse_milliseconds(void) {
	return tn_os_milliseconds();
}

uintptr_t tn_os_thread(void) {
	return GetCurrentThreadId();
}

/* Neither the watch nor the live view is there yet. */
bool tn_os_start(void (*run)(void)) {
	(void)run;
	return errno = ENOTSUP, false;
}

void tn_os_join(void) {
}

bool tn_os_is_last_thread(void) {
	return false;
}

int tn_os_hold_cancel(void) {
	return 0;
}

void tn_os_let_cancel(int held) {
	(void)held;
}

size_t tn_os_processors(void) {
	SYSTEM_INFO system;
	GetSystemInfo(&system);
	return system.dwNumberOfProcessors;
}

size_t tn_os_nodes(void) {
	return 1;
}

size_t tn_os_node(void) {
	return 0;
}

void tn_os_set_nodes(size_t count, size_t (*node)(void)) {
	(void)count, (void)node;
}

uint64_t tn_os_process(void) {
	return GetCurrentProcessId();
}

const char *tn_os_variable(const char *name) {
	return getenv(name);
}

const char *tn_os_module(const void *code, uintptr_t *base) {
	static _Thread_local char path[MAX_PATH];
	HMODULE module;
	DWORD flags = GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
	*base = 0;
	path[0] = '\0';
	if (GetModuleHandleExA(flags, (const char *)code, &module)) {
		*base = (uintptr_t)module;
		GetModuleFileNameA(module, path, MAX_PATH);
	}
	return path;
}

void tn_os_write(const char *text, size_t size) {
	DWORD written;
	WriteFile(GetStdHandle(STD_ERROR_HANDLE), text, (DWORD)size, &written, NULL);
}
