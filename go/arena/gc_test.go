package arena

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// Objects with pointers to the heap, to the arena and to other arenas survive collections, which run
// all the time here; forgotten ones keep nothing alive.
func TestCollectorFollowsPointers(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(1))
	inEachMode(t, func(t *testing.T, a *Arena) {
		other := NewArena(a.rec.mode)
		defer other.Free()
		for round := range scaled(5) {
			var head *node
			for i := range 1000 {
				n := New[node](a)
				if i%3 == 0 {
					n = New[node](other)
				}
				*n = node{head, fmt.Sprint("heap string ", round, " ", i), i}
				head = n
				if i%100 == 0 {
					runtime.GC()
				}
			}
			for i := 999; i >= 0; i-- {
				if want := fmt.Sprint("heap string ", round, " ", i); head.name != want ||
					head.value != i {
					t.Fatalf("object %d is %q, %d", i, head.name, head.value)
				}
				head = head.next
			}
			a.Reset()
		}
	})
}

// Reset and Free let go of the heap objects that arena objects point to.
func TestForgottenObjectsKeepNothingAlive(t *testing.T) {
	inEachMode(t, func(t *testing.T, a *Arena) {
		for _, end := range []func(){a.Reset, a.Free} {
			collected := make(chan bool, 1)
			func() {
				p := new([100]int)
				runtime.AddCleanup(p, func(c chan bool) { c <- true }, collected)
				MakeSlice[*[100]int](a, 10, 10)[5] = p
			}()
			end()
			collectUntil(t, func() bool { return len(collected) > 0 })
		}
	})
}

// A collection takes no longer for a lot of memory without pointers.
func TestCollectionDoesNotScanPointerFreeMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("needs memory outside the Go heap")
	}
	fastest := func() time.Duration {
		best := time.Hour
		for range 5 {
			began := time.Now()
			runtime.GC()
			best = min(best, time.Since(began))
		}
		return best
	}
	before := fastest()
	a := NewArena(Fast)
	defer a.Free()
	var objects [][]uint64
	for range 64 {
		s := MakeSlice[uint64](a, 0, 1<<21) // 16 MiB
		for i := 0; i < 1<<21; i += 512 {
			s[:i+1][i] = 0xc000000000 + uint64(i)
		}
		objects = append(objects, s)
	}
	after := fastest()
	if after > 3*before+20*time.Millisecond {
		t.Errorf("a collection took %v, and takes %v with 1 GiB in the arena", before, after)
	}
	runtime.KeepAlive(objects)
}

// More chunks of one type than a table of types has slots for, and more heap chunks than the pool
// keeps.
func TestChunksOfFreedArenasServeLaterOnes(t *testing.T) {
	for range scaled(50) {
		a := NewArena(Fast)
		nodes := make([]*node, 5000)
		for i := range nodes {
			nodes[i] = New[node](a)
			if *nodes[i] != (node{}) {
				t.Fatal("not zero")
			}
			*nodes[i] = node{nodes[i], "x", i}
		}
		for i, n := range nodes {
			if *n != (node{n, "x", i}) {
				t.Fatalf("object %d was changed", i)
			}
		}
		a.Free()
	}
}
