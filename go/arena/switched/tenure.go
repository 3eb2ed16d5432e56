//go:build !tenure_heap && !tenure_experiment

package arena

import "github.com/tenure-alloc/tenure/go/arena"

// Backend names what the functions below stand for.
const Backend = "tenure"

// An Arena is Tenure's.
type Arena = arena.Arena

// NewArena is arena.NewArena.
func NewArena() *Arena { return arena.NewArena() }

// New is arena.New.
func New[T any](a *Arena) *T { return arena.New[T](a) }

// MakeSlice is arena.MakeSlice.
func MakeSlice[T any](a *Arena, length, capacity int) []T {
	return arena.MakeSlice[T](a, length, capacity)
}

// Clone is arena.Clone.
func Clone[T any](v T) T { return arena.Clone(v) }
