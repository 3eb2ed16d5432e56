/* bench/harness/statistics.cpp: medians and intervals that assume nothing about the distribution. */
#include <algorithm>
#include <cmath>

#include "harness/harness.h"

namespace bench {

static double middle(const std::vector<double> &sorted) {
	size_t n = sorted.size();
	return n % 2 == 1 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

double median(std::vector<double> values) {
	if (values.empty())
		return 0;
	std::sort(values.begin(), values.end());
	return middle(values);
}

/* The number of values to cut at each end so that the rest covers the median with 95 %: the largest k
 * with P(Binomial(n, 1/2) < k) <= 2.5 %. */
static size_t tail(size_t n) {
	double p = std::pow(0.5, static_cast<double>(n));
	double sum = 0;
	for (size_t k = 0; k < n; k++) {
		sum += p;
		if (sum > 0.025)
			return k;
		p *= static_cast<double>(n - k) / static_cast<double>(k + 1);
	}
	return 0;
}

interval median_interval(std::vector<double> values) {
	if (values.empty())
		return {};
	std::sort(values.begin(), values.end());
	size_t cut = tail(values.size());
	cut = cut == 0 ? 0 : cut - 1;
	return {middle(values), values[cut], values[values.size() - 1 - cut]};
}

void describe_percentiles(const histogram &h, row &r) {
	auto ns = [](uint64_t t) { return static_cast<double>(t) * ns_per_tick(); };
	r.fields["p50_ns"] = ns(h.percentile(0.5));
	r.fields["p99_ns"] = ns(h.percentile(0.99));
	r.fields["p999_ns"] = ns(h.percentile(0.999));
	r.fields["max_ns"] = ns(h.max());
}

}
