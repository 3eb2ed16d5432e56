/* Functions that the module exports. */
#ifndef TENURE_TESTS_MODULE_H
#define TENURE_TESTS_MODULE_H

#include <stdbool.h>
#include <stddef.h>

#define MODULE_API __attribute__((visibility("default")))

MODULE_API bool module_begin(void);
/* Called by any thread; returns whether all checks passed. */
MODULE_API bool module_use(unsigned char seed);
/* Starts the live view, which is never ended. */
MODULE_API bool module_show(void);
MODULE_API size_t module_in_use(void);
MODULE_API bool module_end(void);

#endif
