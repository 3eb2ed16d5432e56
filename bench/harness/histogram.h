/* bench/harness/histogram.h: log-linear histogram of durations: 32 buckets an octave, so within 3 %. */
#ifndef BENCH_HARNESS_HISTOGRAM_H
#define BENCH_HARNESS_HISTOGRAM_H

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace bench {

class histogram {
public:
	void record(uint64_t value) {
		counts_[index(value)]++;
		total_++;
		max_ = std::max(max_, value);
	}

	void merge(const histogram &other) {
		for (size_t i = 0; i < counts_.size(); i++)
			counts_[i] += other.counts_[i];
		total_ += other.total_;
		max_ = std::max(max_, other.max_);
	}

	void clear() {
		*this = histogram();
	}

	uint64_t max() const {
		return max_;
	}

	/* The upper end of the bucket that holds this share of the values, at most the largest value. */
	uint64_t percentile(double share) const {
		double rank = share * static_cast<double>(total_);
		uint64_t seen = 0;
		for (size_t i = 0; i < counts_.size(); i++) {
			seen += counts_[i];
			if (seen != 0 && static_cast<double>(seen) >= rank)
				return std::min(upper(i), max_);
		}
		return max_;
	}

private:
	static constexpr unsigned bits = 5;
	static constexpr uint64_t per_octave = 1u << bits;

	static size_t index(uint64_t value) {
		if (value < per_octave)
			return value;
		unsigned shift = 63u - static_cast<unsigned>(__builtin_clzll(value)) - bits;
		return (shift << bits) + (value >> shift);
	}

	static uint64_t upper(size_t i) {
		if (i < 2 * per_octave)
			return i;
		size_t shift = (i >> bits) - 1;
		return (((i & (per_octave - 1)) + per_octave + 1) << shift) - 1;
	}

	std::array<uint64_t, (64 - bits + 1) * per_octave> counts_{};
	uint64_t total_ = 0;
	uint64_t max_ = 0;
};

}
#endif
