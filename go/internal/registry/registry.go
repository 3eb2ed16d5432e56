// Package registry lists allocators for those who watch a program, without keeping them alive.
package registry

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"weak"
)

// A Registry lists things that have figures of type S. The zero Registry is empty.
type Registry[S any] struct {
	mu   sync.Mutex
	last uint64
	all  map[any]listed[S] // by weak.Pointer
}

type listed[S any] struct {
	number uint64
	stats  func() (S, bool) // false when the thing is gone
}

// Add lists p until Remove, or until the garbage collector has it.
func Add[S, P any](r *Registry[S], p *P, stats func(*P) S) {
	key := weak.Make(p)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[any]listed[S]{}
	}
	r.last++
	r.all[key] = listed[S]{r.last, func() (s S, ok bool) {
		if p := key.Value(); p != nil {
			return stats(p), true
		}
		return s, false
	}}
}

// Remove takes p off the list; it may be off already.
func Remove[S, P any](r *Registry[S], p *P) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, any(weak.Make(p)))
}

// Read returns the figures of all that are listed, the oldest first.
func (r *Registry[S]) Read() (all []S) {
	r.mu.Lock()
	defer r.mu.Unlock()
	keys := slices.SortedFunc(maps.Keys(r.all), func(a, b any) int {
		return cmp.Compare(r.all[a].number, r.all[b].number)
	})
	for _, key := range keys {
		if s, ok := r.all[key].stats(); ok {
			all = append(all, s)
		} else {
			delete(r.all, key)
		}
	}
	return all
}
