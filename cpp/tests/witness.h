/* Objects that are counted, record their end, and throw on request. */
#ifndef TENURE_TESTS_WITNESS_H
#define TENURE_TESTS_WITNESS_H

#include "allocators.h"

#include <atomic>
#include <utility>
#include <vector>

/* Thrown by a constructor. */
struct out_of_clay {
	size_t number;
};

struct witness {
	static inline std::atomic<size_t> alive{0}, built{0};
	/* The constructor with this number (from 1) throws. */
	static inline std::atomic<size_t> throws_at{SIZE_MAX};

	explicit witness(int i = 0) : id(i) {
		size_t number = ++built;
		if (number == throws_at)
			throw out_of_clay{number};
		alive++;
	}
	witness(const witness &) = delete;
	witness &operator=(const witness &) = delete;
	~witness() {
		alive--;
	}

	int id;
};

/* The objects that ended, in that order; for one thread. */
struct noted : witness {
	static inline std::vector<int> ended;

	explicit noted(int i = static_cast<int>(built) + 1) : witness(i) {
	}
	~noted() {
		ended.push_back(id);
	}
};

/* Begins without a live object and expects none at the end. */
class witnessed : public testing::Test {
protected:
	void SetUp() override {
		witness::alive = witness::built = 0;
		witness::throws_at = SIZE_MAX;
		noted::ended.clear();
	}
	void TearDown() override {
		EXPECT_EQ(witness::alive, 0u) << "destructors that did not run, or ran twice";
	}
};

/* The constructor number `count` from now, which begins at 1, throws. */
inline void throw_in(size_t count) {
	witness::throws_at = witness::built + count;
}

using ids = std::vector<int>;

/* The objects that ended since the last call. */
inline ids ended() {
	return std::exchange(noted::ended, {});
}

/* Figures that a failed call must not change. */
inline std::string lasting(tn_stats s) {
	/* A program cannot lose cached memory or a peak. */
	s.cached_bytes = s.peak_bytes = s.reserved_bytes = 0;
	s.refills = 0;
	return to_text(s);
}

#endif
