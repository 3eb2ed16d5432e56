/* The other half of c/src/base/atomics.h (TN_ATOMICS names this file): the library's words for
 * hand-overs between threads, translated for Relacy. Included before any of the library's sources,
 * it also makes these C++, gives every thread of a scenario its own thread-local variables, and
 * replaces the operating system's waiting. */
#ifndef TENURE_RELACY_ATOMICS_H
#define TENURE_RELACY_ATOMICS_H

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <type_traits>

#include "engine.h"

/* ---- C in C++ ---- */

#define _Atomic(type) type
#define _Noreturn __attribute__((noreturn))
#define _Alignas(size) __attribute__((aligned(size)))
#define _Alignof(type) alignof(type)
#define _Static_assert static_assert

/* ---- atomics ---- */

template <typename type> uint64_t bits_of(type value) {
	uint64_t bits = 0;
	memcpy(&bits, &value, sizeof value);
	return bits;
}

template <typename type> type value_of(uint64_t bits) {
	type value;
	memcpy(&value, &bits, sizeof value);
	return value;
}

template <typename type> type relacy_get(const type *at, int how, const engine::place &where) {
	return value_of<type>(engine::load(at, sizeof *at, (engine::order)how, where));
}

template <typename type, typename given>
void relacy_set(type *at, given value, int how, const engine::place &where) {
	engine::store(at, sizeof *at, bits_of((type)value), (engine::order)how, where);
}

template <typename type, typename given>
type relacy_swap(type *at, given value, int how, const engine::place &where) {
	uint64_t bits = bits_of((type)value);
	return value_of<type>(engine::exchange(at, sizeof *at, bits, (engine::order)how, where));
}

template <typename type, typename given>
type relacy_add(type *at, given value, int how, const engine::place &where) {
	return value_of<type>(engine::add(at, sizeof *at, bits_of((type)value), (engine::order)how, where));
}

template <typename type, typename given>
bool relacy_replace(type *at, type *seen, given value, int how, const engine::place &where) {
	uint64_t bits = bits_of(*seen);
	bool done = engine::replace(at, sizeof *at, &bits, bits_of((type)value), (engine::order)how, where);
	*seen = value_of<type>(bits);
	return done;
}

#define TN_ATOMIC(type) type
#define TN_RELAXED engine::RELAXED
#define TN_ACQUIRE engine::ACQUIRE
#define TN_RELEASE engine::RELEASE
#define TN_ACQ_REL engine::ACQ_REL
#define tn_get(at, order) relacy_get(at, order, HERE)
#define tn_set(at, value, order) relacy_set(at, value, order, HERE)
#define tn_swap(at, value, order) relacy_swap(at, value, order, HERE)
#define tn_add(at, value, order) relacy_add(at, value, order, HERE)
#define tn_replace(at, seen, value, order) relacy_replace(at, seen, value, order, HERE)

/* The inlined paths of the public headers have the compiler's names for them. */
#define __atomic_load_n(at, order) tn_get(at, order)
#define __atomic_store_n(at, value, order) tn_set(at, value, order)
#define __atomic_exchange_n(at, value, order) tn_swap(at, value, order)

/* ---- data protected by a lock or a hand-over ---- */

template <typename type> struct guarded {
	type plain;

	guarded() = default;
	/* Exactly this type, or a conditional expression would be ambiguous. */
	template <typename given, typename = std::enable_if_t<std::is_same<given, type>::value>>
	guarded(given value) : plain(value) {
	}
	guarded(const guarded &other) : plain(other.read(HERE)) {
	}
	type read(const engine::place &where) const {
		engine::note_load(this, bits_of(plain), where);
		return plain;
	}
	void write(type value, const engine::place &where) {
		engine::note_store(this, bits_of(value), where);
		plain = value;
	}
	operator type() const {
		return read(HERE);
	}
	type operator->() const {
		return read(HERE);
	}
	guarded &operator=(type value) {
		return write(value, HERE), *this;
	}
	guarded &operator=(const guarded &other) {
		return write(other.read(HERE), HERE), *this;
	}
	guarded &operator+=(type value) {
		return write(read(HERE) + value, HERE), *this;
	}
	guarded &operator-=(type value) {
		return write(read(HERE) - value, HERE), *this;
	}
	void operator++(int) {
		*this += 1;
	}
	void operator--(int) {
		*this -= 1;
	}
};

/* An access with its place in the source. */
template <typename type> struct access {
	guarded<type> *to;
	engine::place where;

	operator type() const {
		return to->read(where);
	}
	type operator->() const {
		return to->read(where);
	}
	access &operator=(type value) {
		return to->write(value, where), *this;
	}
	access &operator=(const access &other) {
		return to->write(other, where), *this;
	}
};

template <typename type>
access<type> access_to(const guarded<type> &variable, const engine::place &where) {
	return access<type>{const_cast<guarded<type> *>(&variable), where};
}

#define TN_GUARDED(type) guarded<type>
#define TN_AT(variable) (access_to(variable, HERE))

/* ---- threads ---- */

/* A thread-local variable is an array with one for each thread: its declaration, which must be
 * constant, gives the bound, its use the thread's own. */
#include <tenure/base.h>
const char tn_mode_marker = 0;
#undef TN_THREAD
#undef TN_THREAD_NEAR
#undef TN_THREAD_SYMBOL
#define TN_THREAD
#define TN_THREAD_NEAR
#define TN_THREAD_SYMBOL(name)
#define _Thread_local
#define OF_THREAD [__builtin_is_constant_evaluated() ? engine::THREADS : engine::thread()]
#define tn_cache_locals tn_cache_locals_of OF_THREAD
#define tn_near_slab tn_near_slab_of OF_THREAD
#define tn_near_pool tn_near_pool_of OF_THREAD

#ifndef ENGINE_OF_MANY_CORES
#define TN_LOCK_LOOKS 2
#endif
#define tn_os_relax tn_os_relax_of_the_processor
#include "base/os.h"
#undef tn_os_relax
static inline void tn_os_relax(void) {
	engine::yield(HERE);
}
static inline void relacy_wait(const void *word, uint32_t value, const engine::place &where) {
	engine::wait(word, value, where);
}
static inline void relacy_wake(const void *word, const engine::place &where) {
	engine::wake(word, where);
}
#define tn_os_wait(word, value) relacy_wait(word, value, HERE)
#define tn_os_wake(word) relacy_wake(word, HERE)
#define tn_os_yield() engine::yield(HERE)
#define tn_os_wait_for(word, value, milliseconds) engine::yield(HERE)

#endif
