/*
 * Stacks of the calling thread, from the call frame information of the code (.eh_frame).
 */
#ifndef TRACE_UNWIND_H
#define TRACE_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

typedef struct unwind_frame {
	uintptr_t pc, sp, bp;
} unwind_frame;

/* The part of the address space that holds the stack on which a walk goes. */
typedef struct unwind_range {
	uintptr_t low, high;
} unwind_range;

/* Called for code of a module that no walk has met before, with its object of the dynamic linker. */
struct dl_find_object;
typedef void unwind_meet(void *context, const struct dl_find_object *module);

enum unwind_step { UNWIND_OK, UNWIND_END, UNWIND_OTHER_STACK };

/* One frame up. UNWIND_OTHER_STACK means that `frame` is now on another stack: it left a signal
 * handler. `exact` tells that frame->pc is an instruction that was interrupted, not the return
 * address of a call. */
enum unwind_step unwind_up(
	unwind_frame *frame, unwind_range stack, bool *exact, unwind_meet *meet, void *context);

/* Forgets what is known about code, because some of it was unloaded. */
void unwind_forget(void);

/* The stack that holds `sp`, or an empty range. Reads /proc/self/maps. */
unwind_range unwind_find_stack(uintptr_t sp);

#endif
