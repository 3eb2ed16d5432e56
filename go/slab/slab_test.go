package slab

import (
	"fmt"
	"math/rand"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type object struct {
	text *string
	id   int
}

func expectPanic(t *testing.T, words string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if text := fmt.Sprint(recover()); !strings.Contains(text, words) {
			t.Errorf("panic %q, want %q in it", text, words)
		}
	}()
	f()
}

// Ten times as long in make check.
func repeats(count int) int {
	if os.Getenv("TENURE_LONG") != "" {
		return count * 10
	}
	return count
}

// B3, B6, B18, B28, B33, B34, B36: random calls against a map, with pointers into the heap.
func TestModel(t *testing.T) {
	s := New[object](Config{})
	model := map[Handle[object]]*object{}
	var handles, stale []Handle[object]
	random := rand.New(rand.NewSource(1))
	allocs, resets := 0, 0
	for step := range repeats(200_000) {
		switch n := random.Intn(10_000); {
		case n < 5_200:
			h, p := s.Alloc()
			if *p != (object{}) || h.IsZero() || model[h] != nil {
				t.Fatalf("step %d: %v %+v", step, h, *p)
			}
			text := fmt.Sprint(step)
			p.text, p.id = &text, step
			model[h] = p
			handles = append(handles, h)
			allocs++
		case n < 9_990 && len(handles) > 0:
			i := random.Intn(len(handles))
			h := handles[i]
			p := s.Get(h)
			if p != model[h] || *p.text != fmt.Sprint(p.id) || !s.Owns(p) {
				t.Fatalf("step %d: %+v", step, *p)
			}
			handles[i] = handles[len(handles)-1]
			handles = handles[:len(handles)-1]
			s.Free(h)
			delete(model, h)
			stale = append(stale, h)
			if *p != (object{}) || s.Owns(p) {
				t.Fatalf("step %d: the freed object has %+v", step, *p)
			}
		case n == 9_999:
			s.Reset()
			resets++
			stale = append(stale, handles...)
			clear(model)
			handles = handles[:0]
		}
		if len(stale) > 0 {
			if p, ok := s.Lookup(stale[random.Intn(len(stale))]); ok || p != nil {
				t.Fatalf("step %d: a stale handle finds %v", step, p)
			}
		}
		if step%20_000 == 0 {
			runtime.GC()
		}
	}
	st := s.Stats()
	if st.Live != len(model) || st.Allocs != int64(allocs) || st.Resets != int64(resets) {
		t.Errorf("%+v, %d live", st, len(model))
	}
}

// B28: the place freed last is used next.
func TestLastFreedFirst(t *testing.T) {
	s := New[object](Config{})
	var handles []Handle[object]
	var objects []*object
	for range 100 {
		h, p := s.Alloc()
		handles, objects = append(handles, h), append(objects, p)
	}
	for i, h := range handles {
		s.Free(h)
		if i%2 == 0 {
			again, p := s.Alloc()
			if p != objects[i] || again == h {
				t.Fatalf("place %d: %v, then %v", i, h, again)
			}
		}
	}
}

// B12: freeing nothing does nothing; B7: misuse panics and changes nothing.
func TestMisuse(t *testing.T) {
	s := New[object](Config{Name: "orders"})
	s.Free(Handle[object]{})
	h, _ := s.Alloc()
	s.Free(h)
	other, _ := s.Alloc()
	before := s.Stats()
	expectPanic(t, `slab "orders": Free of handle 1.1: its object was freed`, func() { s.Free(h) })
	expectPanic(t, `slab "orders": Get of handle 1.1: its object was freed`, func() { s.Get(h) })
	expectPanic(t, `Get of handle 0.0: it is the zero Handle`, func() { s.Get(Handle[object]{}) })
	foreign := Handle[object]{99999, 1}
	expectPanic(t, `Free of handle 99999.1: it is of another slab`, func() { s.Free(foreign) })
	expectPanic(t, "negative MaxObjects", func() { New[int](Config{MaxObjects: -1}) })
	if after := s.Stats(); after != before || s.Get(other) == nil {
		t.Errorf("%+v became %+v", before, after)
	}
}

// B7: at the limit a call is refused and changes nothing.
func TestLimit(t *testing.T) {
	s := New[int](Config{Name: "few", MaxObjects: 3})
	h, _ := s.Alloc()
	s.Alloc()
	s.Alloc()
	before := s.Stats()
	if _, p, ok := s.TryAlloc(); ok || p != nil {
		t.Error("a fourth object")
	}
	expectPanic(t, `slab "few": the limit of 3 objects is reached`, func() { s.Alloc() })
	if after := s.Stats(); after != before {
		t.Errorf("%+v became %+v", before, after)
	}
	s.Free(h)
	s.Alloc()
}

// A place whose generations are used up is given up, so that no handle comes back.
func TestGenerationsEnd(t *testing.T) {
	s := New[int](Config{})
	first, p := s.Alloc()
	s.Free(first)
	_, generation := s.at(1)
	generation.Store(1<<32 - 2)
	last, again := s.Alloc()
	if again != p {
		t.Fatal("another place")
	}
	s.Free(last)
	h, other := s.Alloc()
	if other == p || h.place == last.place {
		t.Error("the place is in use again")
	}
	if _, ok := s.Lookup(last); ok {
		t.Error("the last handle is alive")
	}
}

// B31: each live object once; B14: Reset forgets every object and counts itself; B16: and takes no
// memory.
func TestAllAndReset(t *testing.T) {
	s := New[object](Config{})
	for round := range 3 {
		live := map[Handle[object]]bool{}
		for i := range 5000 {
			h, p := s.Alloc()
			p.id = i
			live[h] = true
			if i%3 == 0 {
				s.Free(h)
				delete(live, h)
			}
		}
		count := 0
		for h, p := range s.All() {
			if !live[h] || s.Get(h) != p {
				t.Fatalf("%v is not live", h)
			}
			count++
		}
		if count != len(live) {
			t.Errorf("%d visited, %d live", count, len(live))
		}
		bytes := s.Stats().Bytes
		for h := range s.All() {
			s.Free(h)
			break
		}
		s.Reset()
		for range s.All() {
			t.Fatal("an object after Reset")
		}
		st := s.Stats()
		if st.Live != 0 || st.Bytes != bytes || st.Resets != int64(round+1) || st.Chunks == 0 {
			t.Errorf("%+v", st)
		}
	}
	if n := testing.AllocsPerRun(100, func() { h, _ := s.Alloc(); s.Free(h) }); n != 0 {
		t.Errorf("%v allocations in a cycle", n)
	}
}

// The pointers of a freed object are forgotten, so that the collector frees what they led to.
func TestFreedObjectsHoldNothing(t *testing.T) {
	s := New[object](Config{})
	gone := make(chan bool, 1)
	func() {
		h, p := s.Alloc()
		p.text = new(string)
		runtime.SetFinalizer(p.text, func(*string) { gone <- true })
		s.Free(h)
	}()
	for range 100 {
		runtime.GC()
		select {
		case <-gone:
			return
		case <-time.After(time.Millisecond):
		}
	}
	t.Error("the freed object still holds its string")
}

// B35, B27: names are cut; objects of any size fit.
func TestSizes(t *testing.T) {
	if st := New[int](Config{Name: strings.Repeat("n", 40)}).Stats(); len(st.Name) != 31 {
		t.Errorf("%q", st.Name)
	}
	empty := New[struct{}](Config{})
	h, _ := empty.Alloc()
	empty.Free(h)
	expectPanic(t, "was freed", func() { empty.Free(h) })
	big := New[[100_000]byte](Config{})
	_, a := big.Alloc()
	_, b := big.Alloc()
	a[99_999], b[0] = 1, 1
	if big.Stats().Chunks != 2 || !big.Owns(a) || big.Owns(nil) || big.Owns(new([100_000]byte)) {
		t.Errorf("%+v", big.Stats())
	}
}

// B37, B41: any goroutine frees what another one made; of two that free one object, one panics.
func TestManyGoroutines(t *testing.T) {
	s := New[object](Config{})
	const producers = 4
	passed := make(chan Handle[object], 100)
	var working, freeing sync.WaitGroup
	for range producers {
		working.Add(1)
		go func() {
			defer working.Done()
			for i := range repeats(3000) {
				h, p := s.Alloc()
				p.id = i
				passed <- h
			}
		}()
	}
	for range 2 {
		freeing.Add(1)
		go func() {
			defer freeing.Done()
			for h := range passed {
				if s.Get(h).id < 0 {
					t.Error("a freed object")
				}
				var twice sync.WaitGroup
				var panics [2]bool
				for i := range panics {
					twice.Add(1)
					go func() {
						defer twice.Done()
						defer func() { panics[i] = recover() != nil }()
						s.Free(h)
					}()
				}
				twice.Wait()
				if panics[0] == panics[1] {
					t.Error("freed twice, or not at all")
				}
			}
		}()
	}
	working.Wait()
	close(passed)
	freeing.Wait()
	if st := s.Stats(); st.Live != 0 || st.Allocs != int64(producers*repeats(3000)) {
		t.Errorf("%+v", st)
	}
}
