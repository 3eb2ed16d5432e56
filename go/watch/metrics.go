package watch

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tenure-alloc/tenure/go/pool"
	"github.com/tenure-alloc/tenure/go/scope"
	"github.com/tenure-alloc/tenure/go/slab"
)

// WriteMetrics writes a snapshot in the text format of Prometheus. Those of the same kind and
// name are added up, so that programs decide by their names how many series there are.
func WriteMetrics(w io.Writer, s Snapshot) error {
	m := metricsWriter{bufio.NewWriter(w)}
	m.arenas(s)
	m.pools(s)
	m.slabs(s)
	m.scopes(s)
	m.runtime(s.Runtime)
	return m.Flush()
}

type metricsWriter struct{ *bufio.Writer }

func (m metricsWriter) head(name, kind, help string) {
	fmt.Fprintf(m, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

// A metric without labels.
func (m metricsWriter) one(name, kind, help string, value float64) {
	m.head(name, kind, help)
	fmt.Fprintf(m, "%s %s\n", name, number(value))
}

// A metric with a value for each name.
func (m metricsWriter) named(name, kind, help string, values map[string]float64) {
	m.head(name, kind, help)
	for _, label := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(m, "%s{name=\"%s\"} %s\n", name, escape(label), number(values[label]))
	}
}

func number(value float64) string {
	return strconv.FormatFloat(value, 'g', -1, 64)
}

var escapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func escape(label string) string {
	return escapes.Replace(label)
}

func (m metricsWriter) arenas(s Snapshot) {
	live, used, held := map[string]float64{}, map[string]float64{}, map[string]float64{}
	for _, a := range s.Arenas.Arenas {
		name := strings.ToValidUTF8(a.Name, "\uFFFD")
		live[name]++
		used[name] += float64(a.Used)
		if a.Parent == 0 {
			held[name] += float64(a.Held)
		}
	}
	p := s.Arenas
	m.named("tenure_arenas", "gauge", "Live arenas.", live)
	m.named("tenure_arena_used_bytes", "gauge", "Bytes of live objects in arenas.", used)
	m.named("tenure_arena_held_bytes", "gauge", "Bytes of chunks of root arenas and below.", held)
	m.one("tenure_arenas_created_total", "counter", "Arenas made.", float64(p.Created))
	m.one("tenure_arenas_freed_total", "counter", "Arenas freed.", float64(p.Freed))
	m.one("tenure_arenas_forgotten_total", "counter", "Arenas collected without Free.",
		float64(p.Forgotten))
	m.one("tenure_limbo_bytes", "gauge", "Memory of forgotten arenas that is kept.", float64(p.Limbo))
	m.one("tenure_off_heap_bytes", "gauge", "Memory in use that GOGC and GOMEMLIMIT do not see.",
		float64(p.OffHeap))
	m.one("tenure_warm_bytes", "gauge", "Memory outside the heap that waits for the next arena.",
		float64(p.Warm))
	m.one("tenure_retired_bytes", "gauge", "Addresses that fault, in guard mode.", float64(p.Retired))
}

func (m metricsWriter) pools(s Snapshot) {
	for _, metric := range []struct {
		name, kind, help string
		value            func(pool.Stats) float64
	}{
		{"idle_items", "gauge", "Items that wait for a user.",
			func(s pool.Stats) float64 { return float64(s.Idle) }},
		{"idle_bytes", "gauge", "Their bytes.",
			func(s pool.Stats) float64 { return float64(s.IdleBytes) }},
		{"in_use_items", "gauge", "Items that are out.",
			func(s pool.Stats) float64 { return float64(s.InUse) }},
		{"hits_total", "counter", "Gets that found an idle item.",
			func(s pool.Stats) float64 { return float64(s.Hits) }},
		{"misses_total", "counter", "Gets that built an item.",
			func(s pool.Stats) float64 { return float64(s.Misses) }},
		{"refused_total", "counter", "Items destroyed when they were put, for want of room.",
			func(s pool.Stats) float64 { return float64(s.Refused) }},
		{"evicted_total", "counter", "Idle items destroyed.",
			func(s pool.Stats) float64 { return float64(s.Evicted) }},
	} {
		values := map[string]float64{}
		for _, p := range s.Pools {
			values[strings.ToValidUTF8(p.Name, "\uFFFD")] += metric.value(p)
		}
		m.named("tenure_pool_"+metric.name, metric.kind, metric.help, values)
	}
}

func (m metricsWriter) slabs(s Snapshot) {
	for _, metric := range []struct {
		name, kind, help string
		value            func(slab.Stats) float64
	}{
		{"live_objects", "gauge", "Objects that were not freed.",
			func(s slab.Stats) float64 { return float64(s.Live) }},
		{"bytes", "gauge", "Bytes of all chunks.",
			func(s slab.Stats) float64 { return float64(s.Bytes) }},
		{"allocs_total", "counter", "Objects made.",
			func(s slab.Stats) float64 { return float64(s.Allocs) }},
		{"resets_total", "counter", "Resets.",
			func(s slab.Stats) float64 { return float64(s.Resets) }},
	} {
		values := map[string]float64{}
		for _, one := range s.Slabs {
			values[strings.ToValidUTF8(one.Name, "\uFFFD")] += metric.value(one)
		}
		m.named("tenure_slab_"+metric.name, metric.kind, metric.help, values)
	}
}

func (m metricsWriter) scopes(s Snapshot) {
	live, own := map[string]float64{}, map[string]float64{}
	var add func([]scope.Tree)
	add = func(scopes []scope.Tree) {
		for _, s := range scopes {
			name := strings.ToValidUTF8(s.Name, "\uFFFD")
			live[name]++
			own[name] += float64(s.Own)
			add(s.Below)
		}
	}
	add(s.Scopes)
	m.named("tenure_scopes", "gauge", "Live scopes.", live)
	m.named("tenure_scope_own_bytes", "gauge",
		"Chunks of their arenas, and external memory, without that of scopes below.", own)
}

func (m metricsWriter) runtime(r Runtime) {
	m.one("tenure_go_heap_bytes", "gauge", "Objects on the Go heap.", float64(r.HeapBytes))
	m.one("tenure_go_gc_cycles_total", "counter", "Cycles of the collector.", float64(r.Cycles))
	m.one("tenure_go_gc_cpu_seconds_total", "counter", "CPU time of the collector.", r.CPUSeconds)
	m.one("tenure_go_cpu_seconds_total", "counter", "CPU time that the program had.", r.AllSeconds)
	name := "tenure_go_gc_pause_seconds"
	m.head(name, "gauge", "Stops of the program for the collector, since its start.")
	for _, q := range []struct {
		share string
		value float64
	}{{"0.5", r.PauseMedian}, {"0.99", r.Pause99}, {"1", r.Longest}} {
		fmt.Fprintf(m, "%s{share=\"%s\"} %s\n", name, q.share, number(q.value))
	}
}
