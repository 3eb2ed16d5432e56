/* Arithmetic of sizes, and of sets of bits in words. Callers have checked that nothing wraps. */
#ifndef TENURE_BITS_H
#define TENURE_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TN_WORD_BITS = 64 };

static inline size_t tn_min(size_t a, size_t b) {
	return a < b ? a : b;
}

static inline size_t tn_max(size_t a, size_t b) {
	return a > b ? a : b;
}

static inline bool tn_is_power_of_two(size_t n) {
	return n != 0 && (n & (n - 1)) == 0;
}

/* The least power of two that is `n` or more. */
static inline size_t tn_power_of_two(size_t n) {
	size_t power = 1;
	while (power < n)
		power *= 2;
	return power;
}

/* The next multiple of `to`, a power of two. */
static inline size_t tn_round_up(size_t size, size_t to) {
	return (size + to - 1) & ~(to - 1);
}

static inline bool tn_test_bit(const uint64_t *bits, size_t number) {
	return (bits[number / TN_WORD_BITS] >> (number % TN_WORD_BITS) & 1) != 0;
}

static inline void tn_flip_bit(uint64_t *bits, size_t number) {
	bits[number / TN_WORD_BITS] ^= (uint64_t)1 << (number % TN_WORD_BITS);
}

#endif
