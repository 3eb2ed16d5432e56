// Package pages hands out runs of memory that the garbage collector does not look at.
//
// The runs come from one reserved range of addresses, where the system has mmap, and are never given
// back as addresses: a stale pointer into a run reads zeros, other data or faults, but never another
// mapping of the process. Without mmap, and under the race detector, which is blind to mapped memory,
// a run is an object on the Go heap.
//
// All functions are safe for use by multiple goroutines.
package pages

import (
	"fmt"
	"unsafe"
)

// Unit is the granularity of runs in bytes: a multiple of every system's page size.
const Unit = 64 << 10

const wide = ^uintptr(0) >> 63 // 1 where addresses have 64 bits

// A Run is a piece of memory, used by one owner at a time.
type Run struct {
	Base  unsafe.Pointer
	Size  uintptr // bytes, a multiple of Unit
	Dirty uintptr // leading bytes that need not be zero; the rest is
}

// Contains tells whether p points into the run.
func (r Run) Contains(p unsafe.Pointer) bool { return uintptr(p)-uintptr(r.Base) < r.Size }

// Stats are figures of the whole process, in bytes.
type Stats struct {
	Out     int64 // in runs handed out and not put back
	Warm    int64 // in runs put back that kept their memory
	Retired int64 // addresses that fault and wait to be used again
}

// A MemoryError says that the system refused to map memory.
type MemoryError struct {
	Size uintptr // bytes asked for
	Err  error
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("tenure: no memory for a run of %d bytes: %v", e.Size, e.Err)
}

func (e *MemoryError) Unwrap() error { return e.Err }

// roundUp returns the size of a run for n bytes, or 0 if there is no such size.
func roundUp(n uintptr) uintptr { return (n + Unit - 1) &^ (Unit - 1) }
