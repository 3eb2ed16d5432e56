package arena

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/tenure-alloc/tenure/go/internal/pages"
)

// Clone returns a shallow copy on the heap of a pointer's, slice's or string's target, if that is in an
// arena, and v itself if it is not. Pointers in the copy still lead to where they led: into the arena,
// if its objects had links to each other. Clone panics on every other kind of value.
func Clone[T any](v T) T {
	value := reflect.ValueOf(v)
	switch value.Kind() {
	case reflect.Pointer:
		if !inArena(value.UnsafePointer()) {
			return v
		}
		copied := reflect.New(value.Type().Elem())
		copied.Elem().Set(value.Elem())
		return copied.Convert(value.Type()).Interface().(T)
	case reflect.Slice:
		if !inArena(value.UnsafePointer()) {
			return v
		}
		copied := reflect.MakeSlice(value.Type(), value.Len(), value.Len())
		reflect.Copy(copied, value)
		return copied.Interface().(T)
	case reflect.String:
		s := value.String()
		if !inArena(unsafe.Pointer(unsafe.StringData(s))) {
			return v
		}
		return reflect.ValueOf(strings.Clone(s)).Convert(value.Type()).Interface().(T)
	}
	panic(fmt.Errorf("arena: Clone of a %T: only pointers, slices and strings", v))
}

// inArena tells whether p points into memory of any arena.
func inArena(p unsafe.Pointer) bool { return pages.Contains(p) || heapRanges.contains(p) }

// heapRanges knows the chunks on the Go heap until the garbage collector frees them.
var heapRanges = ranges{granules: map[uintptr][]addresses{}}

// Addresses of heap chunks, by granules of the size of a chunk: most chunks lie in one or two.
type ranges struct {
	mu       sync.RWMutex
	granules map[uintptr][]addresses
}

type addresses struct{ first, end uintptr }

const granule = 32 << 10

func (r *ranges) add(base unsafe.Pointer, size uintptr) {
	chunk := addresses{uintptr(base), uintptr(base) + size}
	r.mu.Lock()
	for g := chunk.first / granule; g <= (chunk.end-1)/granule; g++ {
		r.granules[g] = append(r.granules[g], chunk)
	}
	r.mu.Unlock()
	runtime.AddCleanup((*byte)(base), r.remove, chunk)
}

func (r *ranges) remove(chunk addresses) {
	r.mu.Lock()
	for g := chunk.first / granule; g <= (chunk.end-1)/granule; g++ {
		left := slices.DeleteFunc(r.granules[g], func(known addresses) bool { return known == chunk })
		if len(left) == 0 {
			delete(r.granules, g)
		} else {
			r.granules[g] = left
		}
	}
	r.mu.Unlock()
}

func (r *ranges) contains(p unsafe.Pointer) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, chunk := range r.granules[uintptr(p)/granule] {
		if uintptr(p) >= chunk.first && uintptr(p) < chunk.end {
			return true
		}
	}
	return false
}
