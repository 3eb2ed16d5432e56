/* Debug tells AddressSanitizer and Valgrind, where they are present, which memory must not be touched.
 * Under either of them every use of a freed object is caught, however small the quarantine is. */
#ifndef TENURE_CHECKERS_H
#define TENURE_CHECKERS_H

#include <stddef.h>

#include <tenure/base.h>

#if defined(__ELF__)
/* Present only in a program that is built with AddressSanitizer. */
extern void __asan_poison_memory_region(const volatile void *p, size_t size) __attribute__((weak));
extern void __asan_unpoison_memory_region(const volatile void *p, size_t size) __attribute__((weak));
#define TN_ASAN_POISON __asan_poison_memory_region
#define TN_ASAN_UNPOISON __asan_unpoison_memory_region
#else
typedef void tn_asan_call(const volatile void *p, size_t size);
#define TN_ASAN_POISON ((tn_asan_call *)NULL)
#define TN_ASAN_UNPOISON ((tn_asan_call *)NULL)
#endif

#if defined(__has_include)
#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#endif
#endif
#if !defined(VALGRIND_MAKE_MEM_NOACCESS)
#define VALGRIND_MAKE_MEM_NOACCESS(p, size) ((void)(p), (void)(size))
#define VALGRIND_MAKE_MEM_DEFINED(p, size) ((void)(p), (void)(size))
#define VALGRIND_MAKE_MEM_UNDEFINED(p, size) ((void)(p), (void)(size))
#endif

/* From now on every access to the bytes is an error. */
static inline void tn_forbid(void *p, size_t size) {
	if (TN_MODE != TN_MODE_DEBUG)
		return;
	if (TN_ASAN_POISON != NULL)
		TN_ASAN_POISON(p, size);
	VALGRIND_MAKE_MEM_NOACCESS(p, size);
}

/* The bytes may be used again; they keep their values. */
static inline void tn_permit(void *p, size_t size) {
	if (TN_MODE != TN_MODE_DEBUG)
		return;
	if (TN_ASAN_UNPOISON != NULL)
		TN_ASAN_UNPOISON(p, size);
	VALGRIND_MAKE_MEM_DEFINED(p, size);
}

/* Says that a block must be written before it is read. */
static inline void tn_hand_out(void *p, size_t size) {
	if (TN_MODE == TN_MODE_DEBUG)
		VALGRIND_MAKE_MEM_UNDEFINED(p, size);
}

#endif
