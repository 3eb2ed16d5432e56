/* Not API. The linker's side of the three modes: the symbol of every public function carries the mode
 * and the ABI number, and every translation unit refers to the marker of its mode. So objects compiled
 * for one mode do not link with the library of another. */
#ifndef TENURE_DETAIL_SYMBOL_H
#define TENURE_DETAIL_SYMBOL_H

#define TN_ABI v0

#if TN_MODE == TN_MODE_RELEASE
#define TN_MODE_NAME release
#elif TN_MODE == TN_MODE_HARDENED
#define TN_MODE_NAME hardened
#elif TN_MODE == TN_MODE_DEBUG
#define TN_MODE_NAME debug
#else
#error "TN_MODE must be 0 (release), 1 (hardened) or 2 (debug)"
#endif

#define TN_TEXT_(x) #x
#define TN_TEXT(x) TN_TEXT_(x)

#if defined(__GNUC__)
#define TN_SYMBOL(name)                                                                                \
	__asm__(TN_TEXT(__USER_LABEL_PREFIX__) #name "_" TN_TEXT(TN_ABI) "_" TN_TEXT(TN_MODE_NAME))
#define TN_API __attribute__((visibility("default")))
#define TN_LIKELY(x) __builtin_expect(!!(x), 1)
#define TN_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define TN_COLD __attribute__((noinline, cold))
#define TN_INLINE static inline __attribute__((always_inline))
#define TN_USED __attribute__((used))
#define TN_THREAD __thread
/* A word that one thread writes and others read for figures, in no order. */
#define TN_LOAD(from) __atomic_load_n(from, __ATOMIC_RELAXED)
#define TN_STORE(to, value) __atomic_store_n(to, value, __ATOMIC_RELAXED)
#if defined(__MINGW32__) && !defined(__clang__)
#define TN_PRINTF(text, first) __attribute__((format(gnu_printf, text, first)))
#else
#define TN_PRINTF(text, first) __attribute__((format(printf, text, first)))
#endif
#else
#define TN_SYMBOL(name)
#define TN_API
#define TN_LIKELY(x) (x)
#define TN_UNLIKELY(x) (x)
#define TN_COLD
#define TN_INLINE static inline
#define TN_USED
#define TN_PRINTF(text, first)
#define TN_LOAD(from) (*(from))
#define TN_STORE(to, value) (*(to) = (value))
#ifdef __cplusplus
#define TN_THREAD thread_local
#else
#define TN_THREAD _Thread_local
#endif
#endif

/* MinGW emulates thread-local variables and cannot rename them. */
#if defined(__MINGW32__)
#define TN_THREAD_SYMBOL(name)
#else
#define TN_THREAD_SYMBOL(name) TN_SYMBOL(name)
#endif

/* One load instead of a call, even in a library opened at run time: Tenure's data per thread fits the
 * room that glibc's loader reserves for this. Other loaders refuse. */
#if defined(__GLIBC__) && defined(__GNUC__)
#define TN_THREAD_NEAR __attribute__((tls_model("initial-exec")))
#else
#define TN_THREAD_NEAR
#endif

/* Tells gcc that `function` takes back, as argument `position`, the result of the function declared in
 * the rest; gcc then warns of a mismatch. gcc must know `function` first, so this declares again. */
#if defined(__GNUC__) && !defined(__clang__)
#define TN_RELEASED_BY(function, position, ...)                                                        \
	_Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wredundant-decls\"")             \
		__attribute__((malloc(function, position))) __VA_ARGS__;                                       \
	_Pragma("GCC diagnostic pop")
#else
#define TN_RELEASED_BY(function, position, ...)
#endif

#ifdef __cplusplus
extern "C" {
#endif
TN_API extern const char tn_mode_marker TN_SYMBOL(tn_mode_marker);
#ifdef __cplusplus
}
#endif
static const char *const tn_mode_reference TN_USED = &tn_mode_marker;

#endif
