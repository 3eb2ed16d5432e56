package main

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"
	"time"
)

func TestMedianInterval(t *testing.T) {
	values := make([]float64, 61)
	for i := range values {
		values[i] = float64(len(values) - i)
	}
	// For 61 values the sign test cuts 22 at each end.
	if q := medianInterval(values); q != (interval{31, 23, 39}) {
		t.Error(q)
	}
	if q := ratio([]float64{2, 6, 4}, []float64{1, 2, 4}); math.Abs(q.Median-2) > 1e-9 {
		t.Error(q)
	}
}

func TestHistogram(t *testing.T) {
	var h histogram
	for i := range 100_000 {
		h.record(int64(i))
	}
	for _, share := range []float64{0.001, 0.5, 0.99, 0.999} {
		if got := h.percentile(share) / (share * 100_000); got < 0.99 || got > 1.04 {
			t.Errorf("%v: %v of the value", share, got)
		}
	}
	if h.percentile(1) != 99_999 {
		t.Errorf("largest: %v", h.percentile(1))
	}
	h.record(math.MaxInt64)
	if h.percentile(1) != math.MaxInt64 {
		t.Errorf("the largest of all: %v", h.percentile(1))
	}
}

// Each subject has its turn in each round, and none is always the first.
func TestTurns(t *testing.T) {
	first := map[int]bool{}
	for round := range 6 {
		seen := map[int]bool{}
		for i := range 3 {
			seen[turn(round, i, 3)] = true
		}
		if len(seen) != 3 {
			t.Errorf("round %d: %v", round, seen)
		}
		first[turn(round, 0, 3)] = true
	}
	if len(first) != 3 {
		t.Errorf("only %v come first", first)
	}
}

func TestRowsAreTheSameInJSON(t *testing.T) {
	r := row{"w", "s", 1.5, map[string]float64{"p50_ns": 3}, map[string]interval{"new": {1, 2, 3}}}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back row
	if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(r, back) {
		t.Errorf("%s became %+v, %v", text, back, err)
	}
}

// Every subject does its work.
func TestEverySubjectRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("some have a gigabyte")
	}
	names := map[string]bool{}
	for _, w := range workloads() {
		for _, s := range w.subjects {
			if names[w.name+s.name] {
				t.Errorf("%s has two %s", w.name, s.name)
			}
			names[w.name+s.name] = true
			h := new(histogram)
			start := time.Now()
			s.make()(1, h)
			t.Logf("%s %s: %v, %d steps timed", w.name, s.name, time.Since(start), h.total)
		}
	}
}
