package watch

import (
	"encoding/json"
	"expvar"
	"io"
	"math"
	"net/http/httptest"
	"runtime"
	"runtime/metrics"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/tenure-alloc/tenure/go/arena"
	"github.com/tenure-alloc/tenure/go/pool"
	"github.com/tenure-alloc/tenure/go/scope"
	"github.com/tenure-alloc/tenure/go/slab"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const awkward = "a \"quoted\\\" name\nof \xff"

func ask(t *testing.T, path string) string {
	t.Helper()
	answer := httptest.NewRecorder()
	Handler().ServeHTTP(answer, httptest.NewRequest("GET", path, nil))
	text, err := io.ReadAll(answer.Result().Body)
	if err != nil || answer.Code != 200 {
		t.Fatal(answer.Code, err)
	}
	return string(text)
}

func value(t *testing.T, families map[string]*dto.MetricFamily, name, label string) float64 {
	t.Helper()
	if families[name] == nil {
		t.Fatalf("no metric %s", name)
	}
	for _, m := range families[name].Metric {
		if len(m.Label) == 0 || m.Label[0].GetValue() == label {
			return m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	t.Fatalf("no %s of %q", name, label)
	return 0
}

// B34, B70: the figures are those of the allocators, and Prometheus's own parser reads them.
func TestMetrics(t *testing.T) {
	a := arena.NewArena(arena.Name("requests"), arena.Fast)
	defer a.Free()
	b := arena.NewArena(arena.Name("requests"), arena.Fast)
	defer b.Free()
	strange := arena.NewArena(arena.Name(awkward), arena.Fast)
	defer strange.Free()
	arena.New[[1000]byte](a)
	arena.New[[3000]byte](b)
	used := a.Stats().Used + b.Stats().Used
	p := pool.NewBytes(pool.BytesConfig{Name: "buffers"})
	defer p.Close()
	twin := pool.New(pool.Config[int]{Name: "buffers"})
	defer twin.Close()
	p.Put(p.GetN(1024))
	p.GetN(1024)
	p.GetN(1024)
	twin.Put(1)
	jobs := slab.New[[64]byte](slab.Config{Name: "jobs"})
	jobs.Alloc()
	h, _ := jobs.Alloc()
	jobs.Free(h)
	server := scope.New("server")
	defer server.End()
	for range 3 {
		if err := server.Child("query").External(1000); err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()

	var parser expfmt.TextParser
	families, err := parser.TextToMetricFamilies(strings.NewReader(ask(t, "/debug/tenure/metrics")))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		name, label string
		value       float64
	}{
		{"tenure_arenas", "requests", 2},
		{"tenure_arena_used_bytes", "requests", float64(used)},
		{"tenure_arena_held_bytes", "requests", float64(a.Stats().Held + b.Stats().Held)},
		{"tenure_arenas", "a \"quoted\\\" name\nof \uFFFD", 1},
		{"tenure_arenas_created_total", "", float64(arena.ReadStats().Created)},
		{"tenure_pool_idle_items", "buffers", 1},
		{"tenure_pool_in_use_items", "buffers", 1}, // two out, and one that was put without a Get
		{"tenure_pool_hits_total", "buffers", 1},
		{"tenure_pool_misses_total", "buffers", 2},
		{"tenure_slab_live_objects", "jobs", 1},
		{"tenure_slab_allocs_total", "jobs", 2},
		{"tenure_slab_bytes", "jobs", float64(jobs.Stats().Bytes)},
		{"tenure_slab_resets_total", "jobs", 0},
		{"tenure_scopes", "query", 3},
		{"tenure_scopes", "server", 1},
		{"tenure_scope_own_bytes", "query", 3000},
		{"tenure_scope_own_bytes", "server", 0},
	} {
		if got := value(t, families, want.name, want.label); got != want.value {
			t.Errorf("%s of %q: %v, want %v", want.name, want.label, got, want.value)
		}
	}
	for _, name := range []string{"tenure_go_heap_bytes", "tenure_go_gc_cycles_total",
		"tenure_go_gc_cpu_seconds_total", "tenure_go_cpu_seconds_total"} {
		if value(t, families, name, "") <= 0 {
			t.Errorf("%s is not above 0", name)
		}
	}
	if value(t, families, "tenure_go_gc_pause_seconds", "1") <= 0 {
		t.Error("no longest pause")
	}
}

func TestTree(t *testing.T) {
	a := arena.NewArena(arena.Name("above"), arena.Fast, arena.Limit(1<<20))
	defer a.Free()
	a.Child(arena.Name("below"))
	p := pool.New(pool.Config[int]{Name: "numbers"})
	defer p.Close()
	jobs := slab.New[int](slab.Config{Name: "jobs of the tree"})
	jobs.Alloc()
	scope.New("ended").End()
	server := scope.New("server of the tree")
	defer server.End()
	if err := server.SetLimit(1 << 20); err != nil {
		t.Fatal(err)
	}
	if err := server.Child("query").External(512); err != nil {
		t.Fatal(err)
	}
	text := ask(t, "/debug/tenure/")
	if strings.Contains(text, "\"ended\"") {
		t.Error("a scope that has ended is shown")
	}
	above := strings.Index(text, "\n    \"above\" #")
	below := strings.Index(text, "\n        \"below\" #")
	if above < 0 || below < above || !strings.Contains(text[above:below], "of 1.0 MiB, 0 refusals") {
		t.Errorf("the arenas are missing or not in order:\n%s", text)
	}
	for _, words := range []string{"heap: ", " collections, ", "outside the heap: ", "watch_test.go:",
		"\n    \"numbers\"  0 idle (0 B), 0 in use", "\n    \"jobs of the tree\"  1 live, ",
		"\n    \"server of the tree\"  512 B held of 1.0 MiB, own 0 B, at most 512 B\n" +
			"        \"query\"  512 B held, own 512 B, at most 512 B\n"} {
		if !strings.Contains(text, words) {
			t.Errorf("%q is missing in\n%s", words, text)
		}
	}
	runtime.KeepAlive(jobs)
}

func TestExpvar(t *testing.T) {
	Publish()
	Publish()
	jobs := slab.New[int](slab.Config{Name: "published jobs"})
	root := scope.New("published root")
	defer root.End()
	p := pool.New(pool.Config[int]{Name: "published"})
	defer p.Close()
	p.Put(1)
	var s Snapshot
	if err := json.Unmarshal([]byte(expvar.Get("tenure").String()), &s); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(s.Pools, func(p pool.Stats) bool {
		return p.Name == "published" && p.Idle == 1
	}) {
		t.Errorf("%+v", s.Pools)
	}
	if !slices.ContainsFunc(s.Slabs, func(s slab.Stats) bool { return s.Name == "published jobs" }) {
		t.Errorf("%+v", s.Slabs)
	}
	if !slices.ContainsFunc(s.Scopes, func(s scope.Tree) bool { return s.Name == "published root" }) {
		t.Errorf("%+v", s.Scopes)
	}
	runtime.KeepAlive(jobs)
}

func madeHere(t *testing.T) *arena.Arena {
	t.Helper()
	return arena.NewArena(arena.Fast)
}

// The profile has the live arenas that were made while it was on, by their makers.
func TestProfile(t *testing.T) {
	text := func() string {
		var b strings.Builder
		if err := pprof.Lookup("tenure_arena").WriteTo(&b, 1); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	before := madeHere(t)
	Profile(true)
	defer Profile(false)
	a, b := madeHere(t), madeHere(t).Child()
	profile := text()
	if !strings.HasPrefix(profile, "tenure_arena profile: total 3\n") {
		t.Error(profile)
	}
	// Each stack begins with the caller of the arena's package.
	if strings.Contains(profile, "tenure/go/arena.") || strings.Count(profile, "watch.madeHere") != 2 {
		t.Error(profile)
	}
	before.Free()
	a.Free()
	b.Free()
	if profile := text(); !strings.HasPrefix(profile, "tenure_arena profile: total 1\n") {
		t.Error(profile)
	}
}

func TestPercentile(t *testing.T) {
	h := &metrics.Float64Histogram{
		Counts:  []uint64{1, 8, 0, 1},
		Buckets: []float64{math.Inf(-1), 1, 2, 3, math.Inf(1)},
	}
	for share, want := range map[float64]float64{0.1: 1, 0.5: 2, 0.9: 2, 0.99: 3, 1: 3} {
		if got := percentile(h, 10, share); got != want {
			t.Errorf("%v: %v, want %v", share, got, want)
		}
	}
	if got := percentile(&metrics.Float64Histogram{}, 0, 1); got != 0 {
		t.Errorf("of nothing: %v", got)
	}
}

func TestSize(t *testing.T) {
	sizes := map[int64]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 1 << 31: "2.0 GiB"}
	for bytes, want := range sizes {
		if got := size(bytes); got != want {
			t.Errorf("%d: %s, want %s", bytes, got, want)
		}
	}
}
