//go:build (linux || darwin) && !race

package pages

import (
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// OnHeap tells whether runs are objects on the Go heap.
const OnHeap = false

const (
	// A region is reserved as large as the system grants, between these sizes.
	largestRegion  = 1 << (28 + 10*wide)
	smallestRegion = 1 << 26
	// Memory becomes usable in such steps, so that neighbours are one mapping of the kernel.
	step = 4 << 20

	// Up to so many bytes of runs of one Unit keep their memory for the next Get.
	warmBytes = 16 << 20
	// Retired addresses are used again when more than this waits.
	retiredBytes = 1 << (26 + 8*wide)

	// The hint for the first region: just above the poison, so that a fault looks like one of ours.
	regionHint = 0x5affe << (28 * wide) * wide
)

type region struct{ base, size, ready, used uintptr }

type span struct{ base, size uintptr }

type retiredSpan struct {
	span
	owner any
}

var (
	mu      sync.Mutex
	regions atomic.Pointer[[]*region] // newest last; ready and used only under mu
	free    []span                    // by address, never adjacent, zero when touched
	warm    []Run                     // of Unit bytes, with memory
	retired []retiredSpan             // oldest first
	stats   Stats
)

// Get returns a run of at least n bytes.
func Get(n uintptr) (Run, error) {
	size := roundUp(n)
	if size < n {
		return Run{}, &MemoryError{n, unix.ENOMEM}
	}
	mu.Lock()
	defer mu.Unlock()
	if last := len(warm) - 1; size == Unit && last >= 0 {
		run := warm[last]
		warm = warm[:last]
		stats.Warm -= Unit
		stats.Out += Unit
		return run, nil
	}
	base, ok := takeFree(size)
	if !ok {
		var err error
		if base, err = extend(size); err != nil {
			return Run{}, &MemoryError{n, err}
		}
	}
	stats.Out += int64(size)
	return Run{Base: pointer(base), Size: size}, nil
}

// Put gives a run back. A small one may keep its memory, the contents of others go at once.
func Put(r Run) {
	if r.Size == 0 {
		return
	}
	mu.Lock()
	defer mu.Unlock()
	stats.Out -= int64(r.Size)
	if r.Size == Unit && stats.Warm < warmBytes {
		warm = append(warm, r)
		stats.Warm += Unit
		return
	}
	drop(r.Base, r.Size)
	addFree(span{uintptr(r.Base), r.Size})
}

// Retire makes every access to the run fault from now on. Its addresses are used again only after many
// others; until then RetiredBy finds owner.
func Retire(r Run, owner any) {
	if r.Size == 0 {
		return
	}
	mu.Lock()
	defer mu.Unlock()
	drop(r.Base, r.Size)
	if err := unix.Mprotect(bytesOf(r.Base, r.Size), unix.PROT_NONE); err != nil {
		// Without the fault there is no guard; the limit is vm.max_map_count.
		panic("tenure: the system refuses to protect freed memory: " + err.Error())
	}
	stats.Out -= int64(r.Size)
	stats.Retired += int64(r.Size)
	retired = append(retired, retiredSpan{span{uintptr(r.Base), r.Size}, owner})
	for stats.Retired > retiredBytes {
		oldest := retired[0]
		retired[0] = retiredSpan{}
		retired = retired[1:]
		stats.Retired -= int64(oldest.size)
		memory := bytesOf(pointer(oldest.base), oldest.size)
		if unix.Mprotect(memory, unix.PROT_READ|unix.PROT_WRITE) == nil {
			addFree(oldest.span)
		}
	}
}

// RetiredBy returns the owner of the retired run with the address, or nil.
func RetiredBy(address uintptr) any {
	mu.Lock()
	defer mu.Unlock()
	for _, r := range retired {
		if address-r.base < r.size {
			return r.owner
		}
	}
	return nil
}

// Contains tells whether p points into a run, handed out or not.
func Contains(p unsafe.Pointer) bool {
	all := regions.Load()
	if all == nil {
		return false
	}
	for _, r := range *all {
		if uintptr(p)-r.base < r.size {
			return true
		}
	}
	return false
}

// ReadStats returns the figures of now.
func ReadStats() Stats {
	mu.Lock()
	defer mu.Unlock()
	return stats
}

// takeFree takes the first free span that is long enough.
func takeFree(size uintptr) (uintptr, bool) {
	for i := range free {
		f := &free[i]
		if f.size < size {
			continue
		}
		base := f.base
		f.base += size
		f.size -= size
		if f.size == 0 {
			free = slices.Delete(free, i, i+1)
		}
		return base, true
	}
	return 0, false
}

// addFree joins s with its neighbours.
func addFree(s span) {
	i, _ := slices.BinarySearchFunc(free, s.base, func(f span, base uintptr) int {
		if f.base < base {
			return -1
		}
		return 1
	})
	if i < len(free) && s.base+s.size == free[i].base {
		s.size += free[i].size
		free = slices.Delete(free, i, i+1)
	}
	if i > 0 && free[i-1].base+free[i-1].size == s.base {
		free[i-1].size += s.size
		return
	}
	free = slices.Insert(free, i, s)
}

// extend takes size bytes that were never used from the newest region, or from a new one.
func extend(size uintptr) (uintptr, error) {
	var r *region
	if all := regions.Load(); all != nil {
		r = (*all)[len(*all)-1]
	}
	if r == nil || size > r.size-r.used {
		var err error
		if r, err = reserve(size); err != nil {
			return 0, err
		}
	}
	if end := r.used + size; end > r.ready {
		ready := min((end+step-1)&^(step-1), r.size)
		more := bytesOf(pointer(r.base+r.ready), ready-r.ready)
		if err := unix.Mprotect(more, unix.PROT_READ|unix.PROT_WRITE); err != nil {
			return 0, err
		}
		r.ready = ready
	}
	base := r.base + r.used
	r.used += size
	return base, nil
}

// reserve adds a region of at least size bytes. Ready memory that the one before has left becomes free.
func reserve(size uintptr) (*region, error) {
	if size > ^uintptr(0)>>2 {
		return nil, unix.ENOMEM
	}
	length := max(uintptr(largestRegion), size)
	p, err := mapped(regionHint, length+Unit)
	for err != nil && length/2 >= max(size, smallestRegion) {
		length /= 2
		p, err = mapped(regionHint, length+Unit)
	}
	if err != nil {
		return nil, err
	}
	base := roundUp(uintptr(p))
	r := &region{base: base, size: length &^ (Unit - 1)}
	var all []*region
	if old := regions.Load(); old != nil {
		all = append(all, *old...)
		last := all[len(all)-1]
		if last.ready > last.used {
			addFree(span{last.base + last.used, last.ready - last.used})
			last.used = last.ready
		}
	}
	all = append(all, r)
	regions.Store(&all)
	return r, nil
}

// pointer converts an address of mapped memory, which the garbage collector neither moves nor frees.
func pointer(address uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }

func bytesOf(p unsafe.Pointer, size uintptr) []byte { return unsafe.Slice((*byte)(p), size) }
