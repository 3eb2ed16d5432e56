/* What the module gives to whoever opens it. */
#ifndef TENURE_TESTS_MODULE_H
#define TENURE_TESTS_MODULE_H

#include <stdbool.h>
#include <stddef.h>

#define MODULE_API __attribute__((visibility("default")))

MODULE_API bool module_begin(void);
/* By any thread; whether all was well. */
MODULE_API bool module_use(unsigned char seed);
/* Starts the live view, which nobody ends. */
MODULE_API bool module_show(void);
MODULE_API size_t module_in_use(void);
MODULE_API bool module_end(void);

#endif
