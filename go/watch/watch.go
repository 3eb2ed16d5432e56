// Package watch shows what a program's arenas, pools, slabs and scopes hold, beside what the garbage
// collector costs it: as a tree to read, in the text format of Prometheus, and through expvar.
//
// Importing it imports net/http and expvar, which adds /debug/vars to http.DefaultServeMux.
package watch

import (
	"expvar"
	"math"
	"net/http"
	"runtime/metrics"
	"strings"
	"sync"

	"github.com/tenure-alloc/tenure/go/arena"
	"github.com/tenure-alloc/tenure/go/pool"
	"github.com/tenure-alloc/tenure/go/scope"
	"github.com/tenure-alloc/tenure/go/slab"
)

// Snapshot is what Read found. The figures of different allocators are not of the same moment.
type Snapshot struct {
	Arenas  arena.Process
	Pools   []pool.Stats // named ones
	Slabs   []slab.Stats // named ones
	Scopes  []scope.Tree // roots
	Runtime Runtime
}

// Runtime is what the garbage collector costs, from runtime/metrics. Its CPU figures are renewed
// when a cycle ends.
type Runtime struct {
	HeapBytes  uint64  // live objects and dead ones that were not swept
	Cycles     uint64  // of the collector
	CPUSeconds float64 // of the collector
	AllSeconds float64 // GOMAXPROCS integrated over time
	// Stops of the program for the collector, in seconds, to the resolution of the runtime's
	// histogram.
	PauseCount                    uint64
	PauseMedian, Pause99, Longest float64
}

// Read collects the figures. It may be called by any goroutine at any time; it looks at each live
// arena and scope, and at each idle item of a named pool.
func Read() Snapshot {
	return Snapshot{
		arena.ReadStats(), pool.ReadStats(), slab.ReadStats(), scope.ReadStats(), readRuntime(),
	}
}

func readRuntime() (r Runtime) {
	s := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/gc/cycles/total:gc-cycles"},
		{Name: "/cpu/classes/gc/total:cpu-seconds"},
		{Name: "/cpu/classes/total:cpu-seconds"},
		{Name: "/sched/pauses/total/gc:seconds"},
	}
	metrics.Read(s)
	r.HeapBytes, r.Cycles = s[0].Value.Uint64(), s[1].Value.Uint64()
	r.CPUSeconds, r.AllSeconds = s[2].Value.Float64(), s[3].Value.Float64()
	pauses := s[4].Value.Float64Histogram()
	for _, count := range pauses.Counts {
		r.PauseCount += count
	}
	r.PauseMedian = percentile(pauses, r.PauseCount, 0.5)
	r.Pause99 = percentile(pauses, r.PauseCount, 0.99)
	r.Longest = percentile(pauses, r.PauseCount, 1)
	return r
}

// The upper end of the bucket that holds this share of the values; the lower end of one without an
// upper.
func percentile(h *metrics.Float64Histogram, total uint64, share float64) float64 {
	seen := uint64(0)
	for i, count := range h.Counts {
		seen += count
		if seen > 0 && float64(seen) >= share*float64(total) {
			if math.IsInf(h.Buckets[i+1], 1) {
				return h.Buckets[i]
			}
			return h.Buckets[i+1]
		}
	}
	return 0
}

var publish sync.Once

// Publish adds the Snapshot to expvar as "tenure". Calling it again does nothing.
func Publish() {
	publish.Do(func() { expvar.Publish("tenure", expvar.Func(func() any { return Read() })) })
}

// Handler answers requests whose path ends with /metrics in the text format of Prometheus, and
// others with the tree.
func Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/metrics") {
			w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
			WriteMetrics(w, Read())
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		WriteTree(w, Read())
	})
}
