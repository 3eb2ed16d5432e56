package main

import (
	"syscall"
	"time"
	"unsafe"

	"github.com/tenure-alloc/tenure/go/arena"
)

// Three regimes of memory, each on many objects that live long and on few that live briefly.
func regimeWorkloads() []workload {
	return []workload{
		{name: "go-regimes-200000x64", ops: 200_000, subjects: []subject{
			{"tenure", func() work { return arenaRegime[[64]byte](200_000) }},
			{"manual", func() work { return manualRegime[[64]byte](200_000) }},
			{"new", func() work { return heapRegime[[64]byte](200_000) }}}},
		{name: "go-regimes-80x96", ops: 80, subjects: []subject{
			{"tenure", func() work { return arenaRegime[[96]byte](80) }},
			{"manual", func() work { return manualRegime[[96]byte](80) }},
			{"new", func() work { return heapRegime[[96]byte](80) }}}},
	}
}

// Each repeat takes `count` objects, writes to them and gives them back. Steps of at most 1,000
// objects are timed by themselves, the last one with the end of all.
func regime[T any](count int, take func() *T, end func(all []*T)) work {
	all := make([]*T, count)
	step := min(count, 1000)
	return func(repeats int, h *histogram) {
		for range repeats {
			for at := 0; at < count; at += step {
				start := time.Now()
				for i := range step {
					p := take()
					*(*byte)(unsafe.Pointer(p)) = 1
					all[at+i] = p
				}
				if at+step == count {
					end(all)
				}
				if h != nil {
					h.record(int64(time.Since(start)))
				}
			}
		}
	}
}

func arenaRegime[T any](count int) work {
	a := arena.NewArena(arena.Fast)
	class := arena.ClassOf[T](a)
	return regime(count, class.New, func(all []*T) { clear(all); a.Reset() })
}

func heapRegime[T any](count int) work {
	return regime(count, func() *T { return new(T) }, func(all []*T) { clear(all) })
}

// A list of free objects in memory that the collector does not see, as C has it. A free object holds
// the link to the next.
func manualRegime[T any](count int) work {
	memory, err := syscall.Mmap(-1, 0, count*int(unsafe.Sizeof(*new(T))),
		syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		panic(err)
	}
	slots := unsafe.Slice((*T)(unsafe.Pointer(&memory[0])), count)
	var free *T
	push := func(p *T) { *(**T)(unsafe.Pointer(p)) = free; free = p }
	for i := range slots {
		push(&slots[i])
	}
	take := func() *T {
		p := free
		free = *(**T)(unsafe.Pointer(p))
		var zero T
		*p = zero
		return p
	}
	return regime(count, take, func(all []*T) {
		for _, p := range all {
			push(p)
		}
	})
}
