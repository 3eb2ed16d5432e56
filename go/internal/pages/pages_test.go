package pages

import (
	"math"
	"runtime/debug"
	"sync"
	"testing"
	"unsafe"
)

func get(t *testing.T, n uintptr) Run {
	t.Helper()
	r, err := Get(n)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func bytesIn(r Run) []byte { return unsafe.Slice((*byte)(r.Base), r.Size) }

func TestRunsAreZeroedRoundedAndApart(t *testing.T) {
	a, b := get(t, 1), get(t, Unit+1)
	if a.Size != Unit || b.Size != 2*Unit {
		t.Errorf("sizes are %d and %d", a.Size, b.Size)
	}
	if a.Contains(b.Base) || b.Contains(a.Base) || !a.Contains(unsafe.Add(a.Base, Unit-1)) {
		t.Error("runs overlap")
	}
	for _, r := range []Run{a, b} {
		for i, c := range bytesIn(r)[r.Dirty:] {
			if c != 0 {
				t.Fatalf("byte %d is %d", i, c)
			}
		}
	}
	Put(a)
	Put(b)
}

func TestPutForgetsContents(t *testing.T) {
	r := get(t, 4*Unit)
	for i := range bytesIn(r) {
		bytesIn(r)[i] = 1
	}
	Put(r)
	again := get(t, 4*Unit)
	for i, c := range bytesIn(again) {
		if c != 0 {
			t.Fatalf("byte %d is %d", i, c)
		}
	}
	Put(again)
	if third := get(t, 4*Unit); !OnHeap && third.Base != again.Base {
		t.Errorf("the run at %p was not used again, but that at %p", again.Base, third.Base)
	}
}

func TestImpossibleSizesAreRefused(t *testing.T) {
	before := ReadStats()
	for _, n := range []uintptr{math.MaxUint, math.MaxUint - Unit, math.MaxUint >> 1} {
		if r, err := Get(n); err == nil {
			t.Errorf("a run of %d bytes at %p", n, r.Base)
		}
	}
	if after := ReadStats(); after != before {
		t.Errorf("the figures were %+v and are %+v", before, after)
	}
}

func TestRetiredRunsFault(t *testing.T) {
	if OnHeap {
		t.Skip("memory of the heap cannot fault")
	}
	r := get(t, 3*Unit)
	bytesIn(r)[2*Unit] = 1
	Retire(r, "me")
	for _, offset := range []uintptr{0, Unit, r.Size - 1} {
		p := unsafe.Add(r.Base, offset)
		if fault := faultOf(func() { *(*byte)(p) = 2 }); fault != uintptr(p) {
			t.Errorf("writing to %p faults at %#x", p, fault)
		}
		if RetiredBy(uintptr(p)) != "me" {
			t.Errorf("no owner of %p", p)
		}
	}
	if !Contains(r.Base) || Contains(unsafe.Pointer(&offsetOfNothing)) {
		t.Error("Contains is wrong")
	}
}

var offsetOfNothing int

func TestPoisonFaults(t *testing.T) {
	for _, n := range []uint64{0, 1, 77, PoisonCount - 1, PoisonCount + 5} {
		address := Poison(n)
		p := *(*unsafe.Pointer)(unsafe.Pointer(&address))
		if fault := faultOf(func() { *(*byte)(p) = 1 }); fault != address {
			t.Errorf("poison %d: faults at %#x, not %#x", n, fault, address)
		}
		if got, modulus := PoisonOwner(address + 100); modulus == 0 || got != n%modulus {
			t.Errorf("poison %d belongs to %d", n, got)
		}
	}
	if _, modulus := PoisonOwner(12345); modulus != 0 {
		t.Error("12345 is poison")
	}
}

// faultOf returns the address at which f faults, or 0.
func faultOf(f func()) (address uintptr) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if e, ok := recover().(interface{ Addr() uintptr }); ok {
			address = e.Addr()
		}
	}()
	f()
	return 0
}

func TestManyGoroutines(t *testing.T) {
	before := ReadStats()
	var group sync.WaitGroup
	for g := range 8 {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := range 500 {
				r, err := Get(uintptr(1+(g*i)%5) * Unit)
				if err != nil {
					t.Error(err)
					return
				}
				word := (*int)(unsafe.Add(r.Base, r.Size-8))
				if *word != 0 && r.Dirty < r.Size {
					t.Errorf("a fresh run has %d", *word)
				}
				*word = i
				r.Dirty = r.Size
				Put(r)
			}
		}()
	}
	group.Wait()
	if after := ReadStats(); after.Out != before.Out {
		t.Errorf("%d bytes were out and are %d", before.Out, after.Out)
	}
}
