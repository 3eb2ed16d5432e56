package main

import (
	"runtime"
	"sync"
	"time"

	"github.com/tenure-alloc/tenure/go/arena"
	"github.com/tenure-alloc/tenure/go/pool"
)

const (
	bufferSize   = 4096
	pairs        = 1000 // Gets and Puts in one repeat
	goroutines   = 64   // that share a pool
	burst        = 64   // buffers that are out together
	burstsPerGC  = 16
	buffersOfOne = 16 // buffers of an arena between Resets
)

type buffer [bufferSize]byte

func bufferWorkloads() []workload {
	pooled := []subject{
		{"tenure", bytesPairs}, {"tenure-pool", poolPairs}, {"tenure-local", localPairs},
		{"syncpool", boxedPairs}, {"syncpool-pointer", pointerPairs},
	}
	return []workload{
		{name: "go-fixed-4k", ops: pairs, subjects: append(pooled,
			subject{"new", heapBuffers}, subject{"tenure-arena", arenaBuffers})},
		{name: "go-pool-4k", ops: pairs, subjects: pooled},
		{name: "go-pool-4k-shared", ops: goroutines * pairs, subjects: []subject{
			{"tenure", func() work { return shared(bytesPairs()) }},
			{"tenure-pool", func() work { return shared(poolPairs()) }},
			{"syncpool", func() work { return shared(boxedPairs()) }},
			{"syncpool-pointer", func() work { return shared(pointerPairs()) }}}},
		{name: "go-pool-4k-collected", ops: burstsPerGC * burst, subjects: []subject{
			{"tenure", func() work { return bytesBursts(burstsPerGC, burst) }},
			{"syncpool", func() work { return boxedBursts(burstsPerGC, burst) }}}},
		// One use between collections: sync.Pool builds each time, and holds nothing meanwhile.
		{name: "go-pool-4k-rare", ops: 1, subjects: []subject{
			{"tenure", func() work { return bytesBursts(1, 1) }},
			{"syncpool", func() work { return boxedBursts(1, 1) }}}},
	}
}

func newBytes() *pool.Bytes {
	return pool.NewBytes(pool.BytesConfig{})
}

func newBuffers() *pool.Pool[*buffer] {
	return pool.New(pool.Config[*buffer]{New: func() *buffer { return new(buffer) }})
}

func newBoxed() *sync.Pool {
	return &sync.Pool{New: func() any { return make([]byte, bufferSize) }}
}

func bytesPairs() work {
	p := newBytes()
	return func(repeats int, _ *histogram) {
		for range repeats * pairs {
			b := p.GetN(bufferSize)
			b.B[0] = 1
			p.Put(b)
		}
	}
}

func poolPairs() work {
	p := newBuffers()
	return func(repeats int, _ *histogram) {
		for range repeats * pairs {
			b := p.Get()
			b[0] = 1
			p.Put(b)
		}
	}
}

func localPairs() work {
	p := newBuffers().Local()
	return func(repeats int, _ *histogram) {
		for range repeats * pairs {
			b := p.Get()
			b[0] = 1
			p.Put(b)
		}
	}
}

// A slice in an interface is a small object of its own, in each Put.
func boxedPairs() work {
	p := newBoxed()
	return func(repeats int, _ *histogram) {
		for range repeats * pairs {
			b := p.Get().([]byte)
			b[0] = 1
			p.Put(b)
		}
	}
}

func pointerPairs() work {
	p := sync.Pool{New: func() any { return new(buffer) }}
	return func(repeats int, _ *histogram) {
		for range repeats * pairs {
			b := p.Get().(*buffer)
			b[0] = 1
			p.Put(b)
		}
	}
}

var sinkBuffer *buffer

func heapBuffers() work {
	return func(repeats int, _ *histogram) {
		for range repeats * pairs {
			b := new(buffer)
			b[0] = 1
			sinkBuffer = b
		}
		sinkBuffer = nil
	}
}

func arenaBuffers() work {
	a := arena.NewArena(arena.Fast)
	return func(repeats int, _ *histogram) {
		for i := range repeats * pairs {
			b := arena.New[buffer](a)
			b[0] = 1
			if i%buffersOfOne == buffersOfOne-1 {
				a.Reset()
			}
		}
	}
}

// The work of one goroutine, done by many at once on all processors.
func shared(one work) work {
	return func(repeats int, _ *histogram) {
		var working sync.WaitGroup
		for range goroutines {
			working.Add(1)
			go func() {
				defer working.Done()
				one(repeats, nil)
			}()
		}
		working.Wait()
	}
}

// Bursts of buffers, after two collections that empty sync.Pool. Each burst is timed by itself.
func bursts(count, size int, get func(i int), put func(i int)) work {
	return func(repeats int, h *histogram) {
		for range repeats {
			runtime.GC()
			runtime.GC()
			for range count {
				start := time.Now()
				for i := range size {
					get(i)
				}
				for i := range size {
					put(i)
				}
				if h != nil {
					h.record(int64(time.Since(start)))
				}
			}
		}
	}
}

func bytesBursts(count, size int) work {
	p := newBytes()
	out := make([]*pool.Buf, size)
	return bursts(count, size,
		func(i int) { out[i] = p.GetN(bufferSize); out[i].B[0] = 1 },
		func(i int) { p.Put(out[i]) })
}

func boxedBursts(count, size int) work {
	p := newBoxed()
	out := make([][]byte, size)
	return bursts(count, size,
		func(i int) { out[i] = p.Get().([]byte); out[i][0] = 1 },
		func(i int) { p.Put(out[i]); out[i] = nil })
}
