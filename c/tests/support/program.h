/* Random programs: their seed, their length, and the proof that they reached their targets. */
#ifndef TENURE_TESTS_PROGRAM_H
#define TENURE_TESTS_PROGRAM_H

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>

inline uint64_t number_from_environment(const char *name, uint64_t otherwise) {
	const char *text = std::getenv(name);
	return text == nullptr || *text == '\0' ? otherwise : std::strtoull(text, nullptr, 0);
}

inline uint64_t program_seed() {
	return number_from_environment("TENURE_SEED", 20240607);
}

/* Random operations of a program: so many every day, and TENURE_MODEL_FACTOR times as many in the long
 * form. */
inline uint64_t program_ops(uint64_t every_day) {
	return every_day * number_from_environment("TENURE_MODEL_FACTOR", 1);
}

/* splitmix64 (Steele, Lea, Flood 2014): the same numbers on every platform. */
class dice {
public:
	explicit dice(uint64_t seed) : state_(seed) {
	}
	uint64_t next() {
		uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
		z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
		return z ^ (z >> 31);
	}
	size_t below(size_t n) {
		return static_cast<size_t>(next() % n);
	}
	size_t between(size_t low, size_t high) {
		return low + below(high - low + 1);
	}
	bool one_in(size_t n) {
		return below(n) == 0;
	}

private:
	uint64_t state_;
};

/* Counts the events of a program. A program that never grew has tested nothing. */
class reach {
public:
	uint64_t seed() const {
		return seed_;
	}
	void hit(const char *what) {
		hits_[what]++;
	}
	void expect(const char *what, uint64_t at_least) const {
		auto found = hits_.find(what);
		uint64_t count = found == hits_.end() ? 0 : found->second;
		EXPECT_GE(count, at_least) << "the program reached '" << what
								   << "' too rarely, TENURE_SEED=" << seed_;
	}

private:
	uint64_t seed_ = program_seed();
	std::map<std::string, uint64_t> hits_;
};

/* Runs programs of `length` random operations until there were `ops`; returns whether none failed. */
template <class Program> bool run_programs(uint64_t ops, uint64_t length, reach &r) {
	SCOPED_TRACE("TENURE_SEED=" + std::to_string(r.seed()));
	for (uint64_t done = 0; done < ops; done += length) {
		SCOPED_TRACE("program " + std::to_string(done / length));
		Program program(r.seed() + done, r);
		program.run(length);
		if (::testing::Test::HasFailure())
			return false;
	}
	return true;
}

#endif
