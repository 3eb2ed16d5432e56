/* os.h for systems with neither mmap nor VirtualAlloc: memory comes from malloc, the process has one
 * thread, and no memory can be protected or given back in part. tenure.c takes this file on any system
 * when TN_OS_NONE is defined. */
#include "os.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* malloc's own pointer stands in the word before the aligned block. */
void *tn_os_reserve(size_t size, size_t align) {
	if (size > SIZE_MAX - align - sizeof(void *))
		return errno = ENOMEM, NULL;
	char *p = calloc(1, size + align + sizeof(void *));
	if (p == NULL)
		return errno = ENOMEM, NULL;
	char *aligned = (char *)(((uintptr_t)p + sizeof(void *) + align - 1) & ~(uintptr_t)(align - 1));
	((void **)(void *)aligned)[-1] = p;
	return aligned;
}

void tn_os_release(void *p, size_t size) {
	(void)size;
	free(((void **)p)[-1]);
}

bool tn_os_commit(void *p, size_t size) {
	(void)p, (void)size;
	return true;
}

bool tn_os_decommit(void *p, size_t size) {
	(void)p, (void)size;
	return false;
}

bool tn_os_protect(void *p, size_t size) {
	(void)p, (void)size;
	return false;
}

bool tn_os_unprotect(void *p, size_t size) {
	(void)p, (void)size;
	return true;
}

void tn_os_huge(void *p, size_t size) {
	(void)p, (void)size;
}

void tn_os_lock(void) {
}

void tn_os_unlock(void) {
}

bool tn_os_on_thread_exit(enum tn_os_exit which, void (*at_exit)(void)) {
	(void)which, (void)at_exit;
	return true;
}

void tn_os_on_fork(
	enum tn_os_fork which, void (*before)(void), void (*in_parent)(void), void (*in_child)(void)) {
	(void)which, (void)before, (void)in_parent, (void)in_child;
}

void tn_os_wait(const void *word, uint32_t value) {
	(void)word, (void)value;
}

void tn_os_wait_for(const void *word, uint32_t value, unsigned milliseconds) {
	(void)word, (void)value, (void)milliseconds;
}

void tn_os_wake(const void *word) {
	(void)word;
}

void tn_os_yield(void) {
}

TN_ATOMIC(uint64_t) tn_os_skipped_ms;

uint64_t tn_os_milliseconds(void) {
	return (uint64_t)time(NULL) * 1000 + tn_get(&tn_os_skipped_ms, TN_RELAXED);
}

uint64_t tn_os_coarse_milliseconds(void) {
	return tn_os_milliseconds();
}

uintptr_t tn_os_thread(void) {
	return 1;
}

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
	return 1;
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
	return 1;
}

const char *tn_os_variable(const char *name) {
	return getenv(name);
}

const char *tn_os_module(const void *code, uintptr_t *base) {
	(void)code;
	*base = 0;
	return "";
}

void tn_os_write(const char *text, size_t size) {
	fwrite(text, 1, size, stderr);
}
