// Package scope has lifetimes that nest: a connection and its requests, a transaction and its queries.
// A scope has an arena, calls to make at its end, limits for the memory of everything below it, and
// children, which end with it. A context.Context carries one.
//
//	s := scope.New("server")
//	defer s.End()
//	request := s.Child("request")
//	defer request.End()
//	p := arena.New[Point](request.Arena())
package scope

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tenure-alloc/tenure/go/arena"
	"github.com/tenure-alloc/tenure/go/internal/account"
	"github.com/tenure-alloc/tenure/go/internal/registry"
)

// A Scope is a node in a tree of lifetimes. It is for one goroutine at a time; its children are for
// other goroutines if need be, where they may also end while s goes on. A nil *Scope has the nil arena,
// which is the heap, and ends nothing.
type Scope struct {
	name     string
	parent   *Scope
	options  []arena.Option
	account  account.Account
	arena    *arena.Arena
	deferred []func()
	external atomic.Int64
	state    atomic.Int32

	mu       sync.Mutex // of all that follows, in s; for older and newer that of the parent
	newest   *Scope
	children int
	older    *Scope
	newer    *Scope
}

const (
	stateLive = iota
	stateEnding
	stateEnded
)

// New returns a root. The options are those of its arena and, without the Name, of those below. An
// arena.Limit among them limits each arena for itself; SetLimit limits the scope.
func New(name string, options ...arena.Option) *Scope {
	s := &Scope{name: name, options: options}
	registry.Add(&roots, s, (*Scope).tree)
	return s
}

// Child returns a new scope that ends with s at the latest. It panics if s is ending. A child of nil is
// a root.
func (s *Scope) Child(name string) *Scope {
	if s == nil {
		return New(name)
	}
	s.mustBeLive("Child")
	child := &Scope{name: name, parent: s, options: s.options}
	child.account.Init(&s.account)
	s.mu.Lock()
	defer s.mu.Unlock()
	child.older = s.newest
	if s.newest != nil {
		s.newest.newer = child
	}
	s.newest = child
	s.children++
	return child
}

// Arena returns the scope's arena, which begins with the first call. Its objects end with the scope.
// The program must not Free it. It panics once s has ended; deferred calls may still use it.
func (s *Scope) Arena() *arena.Arena {
	if s == nil {
		return nil
	}
	if s.state.Load() == stateEnded {
		panic(s.misuse("Arena"))
	}
	if s.arena == nil {
		options := append(s.options[:len(s.options):len(s.options)], arena.Name(s.name),
			arena.In(&s.account))
		s.arena = arena.NewArena(options...)
	}
	return s.arena
}

// Defer adds a call to make at the end of s, or at its next Reset: after the end of all children, last
// added, first made, before the arena ends. All of them are made even if one panics. A call may use the
// arena of s, and begin and end other scopes. Defer panics if s is ending, or is nil.
func (s *Scope) Defer(call func()) {
	s.mustBeLive("Defer")
	s.deferred = append(s.deferred, call)
}

// End ends all children, newest first, makes the deferred calls and frees the arena. A second End does
// nothing. End does not wait for a child that another goroutine has begun to end.
func (s *Scope) End() {
	if s == nil || !s.state.CompareAndSwap(stateLive, stateEnding) {
		return
	}
	defer s.finish()
	s.endInner()
}

func (s *Scope) finish() {
	if s.arena != nil {
		s.arena.Free()
	}
	s.account.Discharge(s.external.Swap(0))
	s.state.Store(stateEnded)
	p := s.parent
	if p == nil {
		registry.Remove(&roots, s)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.newer != nil {
		s.newer.older = s.older
	} else {
		p.newest = s.older
	}
	if s.older != nil {
		s.older.newer = s.newer
	}
	p.children--
}

// Reset ends all that End would end, and keeps s with its name, its place, its limits and the warm
// memory of its arena. Objects of the arena are forgotten.
func (s *Scope) Reset() {
	if s == nil {
		return
	}
	if !s.state.CompareAndSwap(stateLive, stateEnding) {
		panic(s.misuse("Reset"))
	}
	defer func() {
		if s.arena != nil {
			s.arena.Reset()
		}
		s.account.Discharge(s.external.Swap(0))
		s.state.Store(stateLive)
	}()
	s.endInner()
}

func (s *Scope) endInner() {
	defer s.makeDeferred()
	s.endChildren()
}

// endChildren goes on with the others when a deferred call of a child panics. It leaves out children
// that are ending already: on another goroutine, or because a deferred call of theirs ends s.
func (s *Scope) endChildren() {
	done := false
	defer func() {
		if !done {
			s.endChildren()
		}
	}()
	for {
		s.mu.Lock()
		child := s.newest
		for child != nil && child.state.Load() != stateLive {
			child = child.older
		}
		s.mu.Unlock()
		if child == nil {
			done = true
			return
		}
		child.End()
	}
}

func (s *Scope) makeDeferred() {
	defer func() {
		if len(s.deferred) > 0 {
			s.makeDeferred()
		}
	}()
	for len(s.deferred) > 0 {
		last := len(s.deferred) - 1
		call := s.deferred[last]
		s.deferred[last] = nil
		s.deferred = s.deferred[:last]
		call()
	}
}

// SetLimit sets the most bytes that s and everything below it may hold, in chunks of arenas and in
// external memory; 0 is none. If more is held already, it changes nothing and returns an
// *arena.LimitError. An allocation beyond the limit panics with one, and changes nothing.
func (s *Scope) SetLimit(bytes int64) error {
	if held := s.account.Held(); !s.account.SetLimit(max(0, bytes)) {
		return &arena.LimitError{Name: s.name, Limit: bytes, Held: held}
	}
	return nil
}

// SetSoftLimit makes s call report once the bytes held, counted as by SetLimit, reach a number: once,
// and again only after they have been below it. The call is made on the goroutine that allocates, and
// gets the bytes held. SetSoftLimit comes before the use of s and of its children on other goroutines.
func (s *Scope) SetSoftLimit(bytes int64, report func(held int64)) { s.account.SetSoft(bytes, report) }

// External counts memory of other kinds against the limits: change bytes more, or less if negative. It
// returns an *arena.LimitError and changes nothing if that exceeds a limit. The end of s takes back
// what is left. External may be called on any goroutine.
func (s *Scope) External(change int64) error {
	if change >= 0 {
		if by := s.account.Charge(change); by != nil {
			return &arena.LimitError{Name: s.name, Limit: by.Limit(), Held: by.Held(), Wanted: change}
		}
	} else {
		s.account.Discharge(-change)
	}
	s.external.Add(change)
	return nil
}

// Stats are the figures of one scope.
type Stats struct {
	Name     string
	Own      int64 // bytes of chunks of its arena, and external ones
	Held     int64 // Own, and that of everything below
	Peak     int64 // the most that was held
	Limit    int64 // 0 is none
	Children int
}

// Stats returns the figures of s. Those of a scope that another goroutine uses are as of about now.
func (s *Scope) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := s.account.Held()
	own := held
	for c := s.newest; c != nil; c = c.older {
		own -= c.account.Held()
	}
	return Stats{s.name, own, held, s.account.Peak(), s.account.Limit(), s.children}
}

// A Tree has the figures of a scope and of those below it, oldest first.
type Tree struct {
	Stats
	Below []Tree
}

var roots registry.Registry[Tree]

// ReadStats returns the figures of all roots that have not ended, oldest first. It may be called on any
// goroutine.
func ReadStats() []Tree { return roots.Read() }

func (s *Scope) tree() Tree {
	t := Tree{Stats: s.Stats()}
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := s.oldest(); c != nil; c = c.newer {
		t.Below = append(t.Below, c.tree())
	}
	return t
}

// oldest returns the oldest child, under mu.
func (s *Scope) oldest() *Scope {
	c := s.newest
	for c != nil && c.older != nil {
		c = c.older
	}
	return c
}

// WriteTree writes a line for s and for everything below it, oldest first.
func (s *Scope) WriteTree(w io.Writer) error { return s.tree().write(w, 0) }

func (t Tree) write(w io.Writer, depth int) error {
	_, err := fmt.Fprintf(w, "%s%s: %d bytes, own %d, peak %d\n",
		strings.Repeat("  ", depth), t.Name, t.Held, t.Own, t.Peak)
	for _, below := range t.Below {
		if err == nil {
			err = below.write(w, depth+1)
		}
	}
	return err
}

type key struct{}

// NewContext returns a context that carries s.
func NewContext(ctx context.Context, s *Scope) context.Context {
	return context.WithValue(ctx, key{}, s)
}

// From returns the innermost scope that the context carries, or nil.
func From(ctx context.Context) *Scope {
	s, _ := ctx.Value(key{}).(*Scope)
	return s
}

func (s *Scope) mustBeLive(what string) {
	if s.state.Load() != stateLive {
		panic(s.misuse(what))
	}
}

func (s *Scope) misuse(what string) error {
	return fmt.Errorf("scope %q: %s of a scope that is ending or has ended", s.name, what)
}
