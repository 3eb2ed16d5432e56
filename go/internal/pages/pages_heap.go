//go:build race || !(linux || darwin)

package pages

import (
	"errors"
	"sync/atomic"
	"unsafe"
)

// OnHeap tells whether runs are objects on the Go heap.
const OnHeap = true

// largest keeps make from running out of memory, which no caller can recover from.
const largest = ^uintptr(0) >> 2

var out atomic.Int64

// Get returns a run of at least n bytes.
func Get(n uintptr) (Run, error) {
	size := roundUp(n)
	if size < n || size > largest {
		return Run{}, &MemoryError{n, errors.New("larger than memory can be")}
	}
	out.Add(int64(size))
	words := make([]uint64, max(size, Unit)/8)
	return Run{Base: unsafe.Pointer(unsafe.SliceData(words)), Size: size}, nil
}

// Put gives a run back, to the garbage collector.
func Put(r Run) { out.Add(-int64(r.Size)) }

// Retire wipes a run, which no one gets again while a pointer to it is left.
func Retire(r Run, owner any) {
	Wipe(r.Base, r.Size)
	out.Add(-int64(r.Size))
}

// RetiredBy returns nil: no address faults.
func RetiredBy(address uintptr) any { return nil }

// Contains returns false: runs are not in a range of their own.
func Contains(p unsafe.Pointer) bool { return false }

// ReadStats returns the figures of now.
func ReadStats() Stats { return Stats{Out: out.Load()} }
