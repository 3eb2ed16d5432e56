package arena

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tenure-alloc/tenure/go/internal/pages"
)

// collectUntil runs the garbage collector until done holds, for half a minute at most.
func collectUntil(t *testing.T, done func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !done(); {
		if time.Now().After(end) {
			t.Fatalf("not after half a minute: %+v", ReadStats().Forgotten)
		}
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
}

func forget(count int, options ...Option) {
	for range count {
		a := NewArena(options...)
		New[point](a).x = 1
		New[node](a).value = 1
	}
}

func TestForgottenArenasAreCountedAndReportedOnce(t *testing.T) {
	count := int64(scaled(10_000))
	for _, policy := range []LeakPolicy{KeepForgotten, FreeForgotten} {
		var leaks []Leak
		reports := make(chan Leak, count)
		OnLeak(func(l Leak) { reports <- l })
		runtime.GC()
		before := ReadStats()
		forget(int(count), Fast, policy, Name("forgotten"))
		collectUntil(t, func() bool { return ReadStats().Forgotten == before.Forgotten+count })
		after := ReadStats()
		wantLimbo := int64(0)
		if policy == KeepForgotten && !pages.OnHeap {
			wantLimbo = count * pages.Unit
		}
		if after.Limbo-before.Limbo != wantLimbo {
			t.Errorf("policy %d: %d bytes are in limbo, not %d", policy, after.Limbo-before.Limbo,
				wantLimbo)
		}
		if after.OffHeap-before.OffHeap != wantLimbo {
			t.Errorf("policy %d: %d bytes more are in use", policy, after.OffHeap-before.OffHeap)
		}
		if len(after.Arenas) != len(before.Arenas) || after.Freed != before.Freed {
			t.Errorf("policy %d: %d arenas are listed, %d freed", policy, len(after.Arenas),
				after.Freed)
		}
		for len(reports) > 0 {
			leaks = append(leaks, <-reports)
		}
		OnLeak(nil)
		// Both policies forget at one place.
		if policy == KeepForgotten && (len(leaks) != 1 || leaks[0].Name != "forgotten" ||
			!strings.Contains(leaks[0].String(), "leak_test.go:")) {
			t.Errorf("%d reports: %v", len(leaks), leaks)
		}
		if policy == FreeForgotten && len(leaks) != 0 {
			t.Errorf("%d reports: %v", len(leaks), leaks)
		}
	}
}

// The objects of a forgotten arena stay as they were, by the default policy.
func TestForgottenObjectsStay(t *testing.T) {
	OnLeak(nil)
	before := ReadStats().Forgotten
	var points []*point
	var nodes []*node
	for i := range 100 {
		a := NewArena(Fast)
		p, n := New[point](a), New[node](a)
		p.x, n.value = i, i
		points, nodes = append(points, p), append(nodes, n)
	}
	collectUntil(t, func() bool { return ReadStats().Forgotten == before+100 })
	forget(100, Fast)
	collectUntil(t, func() bool { return ReadStats().Forgotten == before+200 })
	for i := range points {
		if points[i].x != i || nodes[i].value != i {
			t.Fatalf("object %d was changed", i)
		}
	}
}

// A freed arena is no leak, and neither is a child that its parent freed.
func TestFreedArenasAreNotForgotten(t *testing.T) {
	before := ReadStats().Forgotten
	for range 1000 {
		a := NewArena(Fast)
		New[point](a.Child())
		New[node](a)
		a.Free()
	}
	for range 3 {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	if after := ReadStats().Forgotten; after != before {
		t.Errorf("%d arenas were forgotten", after-before)
	}
}
