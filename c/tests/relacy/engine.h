/* The tests' view of Relacy, so that only engine.cpp is compiled with its templates.
 *
 * Relacy runs the threads of a scenario one at a time, switches between them at every atomic
 * operation, and lets a load see any store that C11 allows it to see. Here variables are known by
 * their addresses and keep the size and the place that they have in C: the sources of the library
 * are compiled unchanged. Freed memory is never reused within a schedule, and an access to it is an
 * error. */
#ifndef TENURE_RELACY_ENGINE_H
#define TENURE_RELACY_ENGINE_H

#include <stddef.h>
#include <stdint.h>

namespace engine {

struct place {
	const char *function, *file;
	unsigned line;
};

/* Relacy's memory orders have the numbers of the compiler's. */
enum order { RELAXED, CONSUME, ACQUIRE, RELEASE, ACQ_REL, SEQ_CST };

/* Atomic variables of up to eight bytes. */
uint64_t load(const void *at, size_t size, order how, const place &where);
void store(void *at, size_t size, uint64_t value, order how, const place &where);
uint64_t exchange(void *at, size_t size, uint64_t value, order how, const place &where);
uint64_t add(void *at, size_t size, uint64_t value, order how, const place &where);
bool replace(void *at, size_t size, uint64_t *seen, uint64_t value, order how, const place &where);

/* Variables that something else protects: two unordered accesses, one of them a store, are an error. */
void note_load(const void *at, uint64_t value, const place &where);
void note_store(const void *at, uint64_t value, const place &where);

/* The futex: sleeps while the newest value is `value`, until it is woken or, sometimes, is not. All
 * threads asleep is an error. */
void wait(const void *at, uint32_t value, const place &where);
void wake(const void *at, const place &where);
void yield(const place &where);

/* Memory of this schedule, filled with garbage. Memory that is not given back by its end is an
 * error, unless it was taken to be kept. */
void *take(size_t size, size_t align, bool kept = false);
void give(void *p, size_t size);
/* From now on an access to these variables is one to freed memory. */
void forget(const void *p, size_t size);

/* Ends the schedule, and the program, with this message. */
void fail(const char *message, const place &where);
/* The running thread, and whether one runs; before() and after() run in any of them. */
unsigned thread();
/* A number below `limit`, another one in every schedule. */
unsigned choose(unsigned limit);

/* The model of many cores (bench/model) is another engine behind this interface. */
#ifdef ENGINE_OF_MANY_CORES
enum { THREADS = 128 };
#else
enum { THREADS = 3 };
#endif

struct scenario {
	const char *name;
	unsigned threads; /* 2 or 3 threads */
	virtual void before() = 0;
	virtual void thread(unsigned number) = 0;
	virtual void after() = 0;
	scenario(const char *name, unsigned threads) : name(name), threads(threads) {
	}
};

/* Runs the arguments of a program: [SCHEDULES] random ones of each scenario, or `bound SWITCHES`, every
 * schedule with at most so many switches of a thread that could have gone on. Returns what main does.
 */
int explore(int argc, char **argv, scenario *const *scenarios, size_t count);

} /* namespace engine */

#define HERE (engine::place{__FUNCTION__, __FILE__, __LINE__})
#define REQUIRE(condition)                                                                             \
	do {                                                                                               \
		if (!(condition))                                                                              \
			engine::fail("not so: " #condition, HERE);                                                 \
	} while (0)

#endif
