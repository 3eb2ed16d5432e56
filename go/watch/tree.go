package watch

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tenure-alloc/tenure/go/arena"
	"github.com/tenure-alloc/tenure/go/scope"
)

// WriteTree writes a snapshot for people to read: what the collector costs, what is outside its
// sight, the arenas below their parents, the pools, the slabs, and the scopes.
func WriteTree(w io.Writer, s Snapshot) error {
	out := bufio.NewWriter(w)
	r := s.Runtime
	share := 0.0
	if r.AllSeconds > 0 {
		share = 100 * r.CPUSeconds / r.AllSeconds
	}
	fmt.Fprintf(out, "heap: %s; %d collections, %.2f %% of the CPU; pauses %v, 99 %% %v, longest %v\n",
		size(int64(r.HeapBytes)), r.Cycles, share, seconds(r.PauseMedian), seconds(r.Pause99),
		seconds(r.Longest))
	p := s.Arenas
	fmt.Fprintf(out, "outside the heap: %s in use, %s warm, %s in limbo, %s retired\n",
		size(p.OffHeap), size(p.Warm), size(p.Limbo), size(p.Retired))
	fmt.Fprintf(out, "arenas: %d live, %d made, %d freed, %d forgotten\n",
		len(p.Arenas), p.Created, p.Freed, p.Forgotten)
	children := map[uint64][]arena.Stats{}
	known := map[uint64]bool{}
	for _, a := range p.Arenas {
		known[a.ID] = true
	}
	for _, a := range p.Arenas {
		parent := a.Parent
		if !known[parent] { // ended while the figures were read
			parent = 0
		}
		children[parent] = append(children[parent], a)
	}
	writeArenas(out, children, 0, 1)
	fmt.Fprintf(out, "pools: %d\n", len(s.Pools))
	for _, p := range s.Pools {
		fmt.Fprintf(out, "    %q  %d idle (%s), %d in use, ",
			p.Name, p.Idle, size(p.IdleBytes), p.InUse)
		fmt.Fprintf(out, "%d hits, %d misses, %d refused, %d evicted\n",
			p.Hits, p.Misses, p.Refused, p.Evicted)
	}
	fmt.Fprintf(out, "slabs: %d\n", len(s.Slabs))
	for _, s := range s.Slabs {
		fmt.Fprintf(out, "    %q  %d live, %s in %d chunks; %d allocs, %d resets\n",
			s.Name, s.Live, size(s.Bytes), s.Chunks, s.Allocs, s.Resets)
	}
	fmt.Fprintf(out, "scopes: %d roots\n", len(s.Scopes))
	writeScopes(out, s.Scopes, 1)
	return out.Flush()
}

func writeScopes(out io.Writer, scopes []scope.Tree, depth int) {
	for _, s := range scopes {
		limit := ""
		if s.Limit > 0 {
			limit = " of " + size(s.Limit)
		}
		fmt.Fprintf(out, "%s%q  %s held%s, own %s, at most %s\n",
			strings.Repeat("    ", depth), s.Name, size(s.Held), limit, size(s.Own), size(s.Peak))
		writeScopes(out, s.Below, depth+1)
	}
}

func writeArenas(out io.Writer, children map[uint64][]arena.Stats, parent uint64, depth int) {
	for _, a := range children[parent] {
		limit := ""
		if a.Limit > 0 {
			limit = fmt.Sprintf(" of %s, %d refusals", size(a.Limit), a.LimitHits)
		}
		indent := strings.Repeat("    ", depth)
		fmt.Fprintf(out, "%s%q #%d  %s used, %s held%s, ",
			indent, a.Name, a.ID, size(a.Used), size(a.Held), limit)
		fmt.Fprintf(out, "at most %s; %d resets; made at %s\n", size(a.Peak), a.Resets, a.Created)
		writeArenas(out, children, a.ID, depth+1)
	}
}

func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(time.Microsecond)
}

func size(bytes int64) string {
	value, units := float64(bytes), []string{"B", "KiB", "MiB", "GiB", "TiB"}
	for value >= 1024 && len(units) > 1 {
		value /= 1024
		units = units[1:]
	}
	if units[0] == "B" {
		return fmt.Sprintf("%d B", bytes)
	}
	return fmt.Sprintf("%.1f %s", value, units[0])
}
