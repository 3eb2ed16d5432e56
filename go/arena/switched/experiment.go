//go:build tenure_experiment && goexperiment.arenas

package arena

import "arena"

// Backend names what the functions below stand for.
const Backend = "goexperiment"

// An Arena is the experiment's.
type Arena = arena.Arena

// NewArena is the experiment's.
func NewArena() *Arena { return arena.NewArena() }

// New is the experiment's.
func New[T any](a *Arena) *T { return arena.New[T](a) }

// MakeSlice is the experiment's.
func MakeSlice[T any](a *Arena, length, capacity int) []T {
	return arena.MakeSlice[T](a, length, capacity)
}

// Clone is the experiment's.
func Clone[T any](v T) T { return arena.Clone(v) }
