/* The part of the operating system that Tenure needs: memory, threads, clocks. Each platform has one
 * file: os_posix.c, os_windows.c, os_none.c. Only os_none.c allocates from malloc. */
#ifndef TENURE_OS_H
#define TENURE_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "atomics.h"

/* The unit in which memory is divided, whatever the system's page is. If that is larger (16 or 64 KiB
 * on arm64), a range is reserved and committed out to whole pages of the system, and decommitted and
 * protected in them. */
#define TN_OS_PAGE ((size_t)4096)

/* Bytes within which the stores of one thread slow down the loads of another: two cache lines, because
 * they are fetched in pairs. */
#define TN_OS_LINE 128

/* Reserves address space without memory, aligned to `align` (a power of two of pages). NULL: ENOMEM. */
void *tn_os_reserve(size_t size, size_t align);
/* Gives address space back that tn_os_reserve returned. */
void tn_os_release(void *p, size_t size);
/* Makes pages of a reserved range usable, zeroed when first touched. Fails with ENOMEM for more than
 * the machine has with its swap: the kernel would serve it, and end the process when it is used. */
bool tn_os_commit(void *p, size_t size);
/* Gives the memory of pages back; they stay usable. Returns whether it went: then they read as zero. */
bool tn_os_decommit(void *p, size_t size);
/* Makes every access to pages fault, and undoes it. False when the system has no more mappings; then
 * pages keep the access that they had. Once one of them was refused, nothing is protected any more. */
bool tn_os_protect(void *p, size_t size);
bool tn_os_unprotect(void *p, size_t size);
/* Advises huge pages for a range. */
void tn_os_huge(void *p, size_t size);

/* One process-wide lock, for the page layer. A fork holds it, so that the child finds it free. */
void tn_os_lock(void);
void tn_os_unlock(void);

/* Subsystems with a callback for the end of a thread, one each. */
enum tn_os_exit { TN_EXIT_PAGES, TN_EXIT_LOCALS, TN_EXIT_RUNS, TN_EXIT_SCOPES, TN_EXIT_COUNT };
/* Calls `at_exit` when the calling thread ends; false when that cannot be arranged. */
bool tn_os_on_thread_exit(enum tn_os_exit which, void (*at_exit)(void));
/* Subsystems with hooks for fork, one set each. `before` is called in this order, the others in the
 * opposite one. */
enum tn_os_fork {
	TN_FORK_RUNS,
	TN_FORK_CACHES,
	TN_FORK_WATCH,
	TN_FORK_LIVE,
	TN_FORK_OBSERVER,
	TN_FORK_MAINTAIN,
	TN_FORK_PRESSURE,
	TN_FORK_LISTING,
	TN_FORK_COUNT
};
/* Sets the hooks of a subsystem; setting the same ones again changes nothing. Around a fork `before`
 * takes the subsystem's locks, `in_parent` and `in_child` give them back. None of these locks is ever
 * taken before the first call, or held during one. A subsystem without such locks has only `in_child`,
 * and NULL for the others. */
void tn_os_on_fork(
	enum tn_os_fork which, void (*before)(void), void (*in_parent)(void), void (*in_child)(void));

/* Sleeps while `*word` is `value`, at most until it is woken; the caller looks again. errno stays. */
void tn_os_wait(const void *word, uint32_t value);
/* Wakes one thread that sleeps on `word`. errno stays. */
void tn_os_wake(const void *word);
/* As tn_os_wait, but no longer than `milliseconds`. */
void tn_os_wait_for(const void *word, uint32_t value, unsigned milliseconds);
/* Lets another thread run. */
void tn_os_yield(void);
/* Tells the processor that a loop is waiting. */
static inline void tn_os_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb" ::: "memory");
#endif
}
/* Added to both clocks: tests let time pass by it. */
extern TN_ATOMIC(uint64_t) tn_os_skipped_ms;
/* A clock that never goes back. */
uint64_t tn_os_milliseconds(void);
/* The same, some milliseconds late, but read in a few nanoseconds. */
uint64_t tn_os_coarse_milliseconds(void);
/* The calling thread's number, as the system's tools show it; never 0. */
uintptr_t tn_os_thread(void);
/* Starts a thread that takes no signals, one at a time. Fails with ENOMEM or ENOTSUP. */
bool tn_os_start(void (*run)(void));
/* Waits for the end of that thread. No thread is cancelled inside. */
void tn_os_join(void);
/* Whether the calling thread is the last one of a process whose main thread has ended by
 * pthread_exit. */
bool tn_os_is_last_thread(void);
/* Around a call that holds a lock: a deferred cancellation of the thread waits until after it. */
int tn_os_hold_cancel(void);
void tn_os_let_cancel(int held);

/* Processors that the calling thread may run on. */
size_t tn_os_processors(void);

/* Memory nodes (NUMA) that Tenure tells apart; of a machine with more, those of higher numbers count as
 * lower ones. */
enum { TN_OS_NODES = 8 };
/* Nodes with processors, at most TN_OS_NODES; 1 where the system does not say. */
size_t tn_os_nodes(void);
/* The node of the processor that the calling thread runs on. */
size_t tn_os_node(void);
/* For tests: so many nodes from now on, and a function in the place of the system's. To be called
 * before the library is used. */
void tn_os_set_nodes(size_t count, size_t (*node)(void));

/* The process's number, as the process itself sees it. */
uint64_t tn_os_process(void);
/* A variable of the environment. NULL when it is not set, or when the process has more rights than its
 * caller. */
const char *tn_os_variable(const char *name);

/* The module that contains a code address, and its base, for messages. The name may be "". */
const char *tn_os_module(const void *code, uintptr_t *base);
/* Writes to standard error, without buffering. */
void tn_os_write(const char *text, size_t size);

#endif
