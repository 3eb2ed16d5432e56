// Package slab keeps objects of one type that are freed one by one, and finds them by handles.
//
// A Handle is 8 bytes without a pointer. It may be copied, compared, kept in maps and in memory
// that the garbage collector does not scan. A handle of an object that was freed is recognised,
// always: Get panics and Lookup returns false, even when another object has the same place by now.
// A *T of a freed object is not recognised; it points to zeros or to a newer object of type T.
//
// Objects lie in chunks on the Go heap, so T may hold pointers. A slab of a million objects is a few
// hundred chunks for the garbage collector, and those of a T without pointers are not scanned.
package slab

import (
	"fmt"
	"iter"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/tenure-alloc/tenure/go/internal/registry"
)

// The most objects in a chunk.
const mostInChunk = 4096

// Chunks have at most so many bytes: behind a header of 8 bytes the largest size that the runtime
// allocates from its caches.
const largestChunk = 32760

// The longest name in bytes; a longer one is cut.
const nameLength = 31

// Config describes a slab. The zero value of a field takes its default.
type Config struct {
	// Name is shown in statistics and panics, cut to 31 bytes. ReadStats lists a named slab.
	Name string
	// MaxObjects is the most live objects. Default: as many as memory allows, at most 4,294,967,295.
	MaxObjects int
}

// Handle names an object of a slab. The zero Handle names none.
type Handle[T any] struct {
	place      uint32 // counts from 1
	generation uint32
}

// IsZero tells whether the handle names no object.
func (h Handle[T]) IsZero() bool {
	return h.place == 0
}

// Slab holds objects of type T. Make one with New; a Slab must not be copied.
//
// All methods may be called by any goroutine at any time. An object is used by one goroutine at a
// time, or under a lock of the program, and must not be freed meanwhile.
type Slab[T any] struct {
	_ noCopy

	name   string
	most   int
	shift  uint                        // objects in a chunk, as a power of two
	chunks atomic.Pointer[[]*chunk[T]] // only grows

	mu    sync.Mutex
	free  []uint32 // places, the last one freed at the end
	fresh uint32   // places that have been in use
	stats Stats
}

type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

type chunk[T any] struct {
	objects []T
	// Odd while the object is live; each Alloc and each Free adds one.
	generations []atomic.Uint32
}

// Stats are the figures of a slab; they are exact.
type Stats struct {
	Name   string
	Live   int   // objects
	Bytes  int64 // of all chunks
	Chunks int
	Allocs int64
	Resets int64
}

// New makes a slab with no object in it. It panics if MaxObjects is negative.
func New[T any](cfg Config) *Slab[T] {
	if cfg.MaxObjects < 0 {
		panic("slab: negative MaxObjects")
	}
	s := &Slab[T]{name: cfg.Name[:min(len(cfg.Name), nameLength)], most: cfg.MaxObjects}
	if s.most == 0 {
		s.most = math.MaxInt
	}
	count := max(1, min(mostInChunk, largestChunk/max(1, int(unsafe.Sizeof(*new(T))))))
	s.shift = uint(bits.Len(uint(count))) - 1
	s.stats.Name = s.name
	s.chunks.Store(new([]*chunk[T]))
	if s.name != "" {
		registry.Add(&named, s, (*Slab[T]).Stats)
	}
	return s
}

// Alloc makes a zeroed object. The place that was freed last comes first. It panics when MaxObjects
// objects are live; the slab stays as it was.
func (s *Slab[T]) Alloc() (Handle[T], *T) {
	h, p, ok := s.TryAlloc()
	if !ok {
		panic(fmt.Sprintf("slab %q: the limit of %d objects is reached", s.name, s.most))
	}
	return h, p
}

// TryAlloc is Alloc that returns false at the limit.
func (s *Slab[T]) TryAlloc() (h Handle[T], p *T, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stats.Live >= s.most || len(s.free) == 0 && s.fresh == math.MaxUint32 {
		return h, nil, false
	}
	if last := len(s.free) - 1; last >= 0 {
		h.place = s.free[last]
		s.free = s.free[:last]
	} else {
		if int(s.fresh>>s.shift) == s.stats.Chunks {
			s.grow()
		}
		s.fresh++
		h.place = s.fresh
	}
	p, generation := s.at(h.place)
	h.generation = generation.Add(1)
	s.stats.Live++
	s.stats.Allocs++
	return h, p, true
}

func (s *Slab[T]) grow() {
	count := 1 << s.shift
	old := *s.chunks.Load()
	all := append(old[:len(old):len(old)], &chunk[T]{make([]T, count), make([]atomic.Uint32, count)})
	s.chunks.Store(&all)
	s.stats.Chunks++
	s.stats.Bytes += int64(count) * int64(unsafe.Sizeof(*new(T))+unsafe.Sizeof(atomic.Uint32{}))
}

// Returns the object of a place that has been in use, and its generation.
func (s *Slab[T]) at(place uint32) (*T, *atomic.Uint32) {
	c := (*s.chunks.Load())[(place-1)>>s.shift]
	i := (place - 1) & (1<<s.shift - 1)
	return &c.objects[i], &c.generations[i]
}

// Lookup returns the object of a handle; false for the zero Handle and after its Free.
// It takes no lock. A handle of another slab may find an object of this one.
func (s *Slab[T]) Lookup(h Handle[T]) (*T, bool) {
	if h.place == 0 || int((h.place-1)>>s.shift) >= len(*s.chunks.Load()) {
		return nil, false
	}
	p, generation := s.at(h.place)
	if generation.Load() != h.generation {
		return nil, false
	}
	return p, true
}

// Get is Lookup that panics where there is no object.
func (s *Slab[T]) Get(h Handle[T]) *T {
	p, ok := s.Lookup(h)
	if !ok {
		s.misuse("Get", h)
	}
	return p
}

// Free ends an object and zeroes its memory. The zero Handle is ignored; a handle whose object was
// freed panics and changes nothing.
func (s *Slab[T]) Free(h Handle[T]) {
	if h.IsZero() {
		return
	}
	p, ok := s.Lookup(h)
	if !ok {
		s.misuse("Free", h)
	}
	_, generation := s.at(h.place)
	// Of two goroutines that free one object, one goes on.
	if !generation.CompareAndSwap(h.generation, h.generation+1) {
		s.misuse("Free", h)
	}
	clear(unsafe.Slice(p, 1))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recycle(h.place, h.generation+1)
}

// Makes a place free. One whose generations are used up is given up, lest an old handle finds an
// object.
func (s *Slab[T]) recycle(place, generation uint32) {
	s.stats.Live--
	if generation != 0 {
		s.free = append(s.free, place)
	}
}

func (s *Slab[T]) misuse(call string, h Handle[T]) {
	what := "its object was freed"
	if h.IsZero() {
		what = "it is the zero Handle"
	} else if int((h.place-1)>>s.shift) >= len(*s.chunks.Load()) {
		what = "it is of another slab"
	}
	panic(fmt.Sprintf("slab %q: %s of handle %d.%d: %s", s.name, call, h.place, h.generation, what))
}

// Reset frees all objects and keeps their memory for others. No other call may be under way.
func (s *Slab[T]) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Resets++
	for place := s.fresh; place > 0; place-- { // the first place will be on top
		if p, generation := s.at(place); generation.Load()%2 == 1 {
			clear(unsafe.Slice(p, 1))
			s.recycle(place, generation.Add(1))
		}
	}
}

// All visits the live objects, each once. The loop may free any object and allocate; it may or may not
// see objects that are made meanwhile.
func (s *Slab[T]) All() iter.Seq2[Handle[T], *T] {
	return func(yield func(Handle[T], *T) bool) {
		for c, one := range *s.chunks.Load() {
			for i := range one.generations {
				generation := one.generations[i].Load()
				if generation%2 == 0 {
					continue
				}
				if !yield(Handle[T]{uint32(c<<s.shift+i) + 1, generation}, &one.objects[i]) {
					return
				}
			}
		}
	}
}

// Owns tells whether p is the object of a handle of this slab that was not freed. It looks at each
// chunk.
func (s *Slab[T]) Owns(p *T) bool {
	size := unsafe.Sizeof(*p)
	for _, c := range *s.chunks.Load() {
		offset := uintptr(unsafe.Pointer(p)) - uintptr(unsafe.Pointer(&c.objects[0]))
		if p != nil && size > 0 && offset < size<<s.shift {
			return offset%size == 0 && c.generations[offset/size].Load()%2 == 1
		}
	}
	return false
}

// Stats returns the figures.
func (s *Slab[T]) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

var named registry.Registry[Stats]

// ReadStats returns the figures of all named slabs that the garbage collector has not freed, the oldest
// first.
func ReadStats() []Stats { return named.Read() }
