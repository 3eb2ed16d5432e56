//go:build tenure_heap

package arena

// Backend names what the functions below stand for.
const Backend = "heap"

// An Arena stands for the heap.
type Arena struct{ _ byte }

// NewArena returns an arena, which is different from all others.
func NewArena() *Arena { return new(Arena) }

// Free does nothing: the garbage collector frees.
func (*Arena) Free() {}

// New is new.
func New[T any](*Arena) *T { return new(T) }

// MakeSlice is make.
func MakeSlice[T any](_ *Arena, length, capacity int) []T { return make([]T, length, capacity) }

// Clone returns v.
func Clone[T any](v T) T { return v }
