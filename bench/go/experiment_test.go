//go:build goexperiment.arenas

package main

import (
	"arena"
	"testing"
)

// docs/claims.md: the experiment's Clone copies one object. A link in the copy still leads into the
// arena.
func TestCloneOfTheExperimentKeepsLinks(t *testing.T) {
	a := arena.NewArena()
	first, second := arena.New[node](a), arena.New[node](a)
	first.next = second
	clone := arena.Clone(first)
	if clone == first || clone.next != second {
		t.Errorf("%p leads to %p, its clone %p to %p", first, second, clone, clone.next)
	}
	a.Free()
}
