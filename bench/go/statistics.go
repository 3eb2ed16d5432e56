package main

import (
	"math"
	"math/bits"
	"slices"
	"sync"
	"time"
)

// A median and its 95 % interval.
type interval struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

func median(values []float64) float64 {
	return middle(slices.Sorted(slices.Values(values)))
}

func middle(sorted []float64) float64 {
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Returns the interval of a sign test (order statistics), which assumes nothing about the
// distribution.
func medianInterval(values []float64) interval {
	sorted := slices.Sorted(slices.Values(values))
	cut := max(tail(len(sorted))-1, 0)
	return interval{middle(sorted), sorted[cut], sorted[len(sorted)-1-cut]}
}

// The number of values to cut at each end so that the rest covers the median with 95 %: the largest
// k with P(Binomial(n, 1/2) < k) <= 2.5 %.
func tail(n int) int {
	p := math.Pow(0.5, float64(n))
	sum := 0.0
	for k := range n {
		sum += p
		if sum > 0.025 {
			return k
		}
		p *= float64(n-k) / float64(k+1)
	}
	return 0
}

// The median and interval of the quotients of two subjects' values in the same rounds.
func ratio(a, b []float64) interval {
	var logs []float64
	for i := range a {
		logs = append(logs, math.Log(a[i]/b[i]))
	}
	q := medianInterval(logs)
	return interval{math.Exp(q.Median), math.Exp(q.Low), math.Exp(q.High)}
}

// A log-linear histogram of durations in nanoseconds: 32 buckets an octave, so within 3 %.
type histogram struct {
	counts [60 << histogramBits]uint64
	total  uint64
	most   uint64
}

const histogramBits = 5

func (h *histogram) record(ns int64) {
	value := uint64(max(ns, 0))
	h.counts[bucket(value)]++
	h.total++
	h.most = max(h.most, value)
}

var recording sync.Mutex

// Records durations on any goroutine.
func recordAll(h *histogram, took []time.Duration) {
	recording.Lock()
	defer recording.Unlock()
	for _, t := range took {
		h.record(int64(t))
	}
}

func bucket(value uint64) int {
	if value < 1<<histogramBits {
		return int(value)
	}
	shift := bits.Len64(value) - 1 - histogramBits
	return shift<<histogramBits + int(value>>shift)
}

// The largest value of a bucket.
func bucketEnd(i int) uint64 {
	if i < 2<<histogramBits {
		return uint64(i)
	}
	shift := i>>histogramBits - 1
	return (uint64(i)&(1<<histogramBits-1)+1<<histogramBits+1)<<shift - 1
}

// The upper end of the bucket that holds this share of the values, at most the largest value.
func (h *histogram) percentile(share float64) float64 {
	seen := uint64(0)
	for i, count := range h.counts {
		seen += count
		if seen != 0 && float64(seen) >= share*float64(h.total) {
			return float64(min(bucketEnd(i), h.most))
		}
	}
	return float64(h.most)
}

func (h *histogram) describe(r *row) {
	if h.total == 0 {
		return
	}
	r.fields["p50_ns"] = h.percentile(0.5)
	r.fields["p99_ns"] = h.percentile(0.99)
	r.fields["p999_ns"] = h.percentile(0.999)
	r.fields["max_ns"] = float64(h.most)
}
