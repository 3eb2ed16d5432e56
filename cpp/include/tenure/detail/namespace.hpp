/* Not API. The name of the inline namespace around everything. */
#ifndef TENURE_DETAIL_NAMESPACE_HPP
#define TENURE_DETAIL_NAMESPACE_HPP

#include <tenure/base.h>

#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
#define TN_EXCEPTIONS 1
#else
#define TN_EXCEPTIONS 0
#endif

/* The ABI, the mode, and throwing or aborting are part of every name: a function that is compiled in
 * two ways is two functions. */
#define TN_JOINED_(a, b, c) a##_##b##_##c
#define TN_JOINED(a, b, c) TN_JOINED_(a, b, c)
#if TN_EXCEPTIONS
#define TN_INLINE_NAMESPACE TN_JOINED(TN_ABI, TN_MODE_NAME, throws)
#else
#define TN_INLINE_NAMESPACE TN_JOINED(TN_ABI, TN_MODE_NAME, aborts)
#endif

#endif
