// Package right has functions that are right. The comment `right, reported` is on a line that the
// analyzer reports nevertheless: a false alarm.
package right

import (
	"bytes"
	"cmp"
	"container/list"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"example.com/corpus/keep"
	"github.com/tenure-alloc/tenure/go/arena"
	"github.com/tenure-alloc/tenure/go/pool"
	"github.com/tenure-alloc/tenure/go/scope"
)

type node struct {
	next  *node
	name  string
	value int
}

type server struct {
	a, long *arena.Arena
	last    *node
	byName  map[string]*node
	counts  map[string]int
	all     []*node
	queue   chan int
	mu      sync.Mutex
}

var (
	global    *node
	counts    = map[string]int{}
	total     int
	arenas    = sync.Pool{New: func() any { return arena.NewArena() }}
	ownArenas = pool.New(pool.Config[*arena.Arena]{New: func() *arena.Arena {
		return arena.NewArena()
	}})
	errEmpty = errors.New("empty")
)

func number() int {
	a := arena.NewArena()
	defer a.Free()
	n := arena.New[node](a)
	n.value = 5
	return n.value
}

func cloned() *node {
	a := arena.NewArena()
	defer a.Free()
	n := arena.New[node](a)
	n.value = 5
	return arena.Clone(n)
}

func clonedString(b []byte) string {
	a := arena.NewArena()
	defer a.Free()
	return arena.Clone(arena.CopyString(a, string(b)))
}

func clonedByStrings(b []byte) string {
	a := arena.NewArena()
	defer a.Free()
	return strings.Clone(arena.CopyString(a, string(b)))
}

func converted(b []byte) []byte {
	a := arena.NewArena()
	defer a.Free()
	return []byte(arena.CopyString(a, string(b)))
}

func formatted() string {
	a := arena.NewArena()
	defer a.Free()
	n := arena.New[node](a)
	return fmt.Sprint(n.name, n.value)
}

// The string was on the heap before.
func heapString(name string) string {
	a := arena.NewArena()
	defer a.Free()
	n := arena.New[node](a)
	n.name = name
	return n.name
}

func build(a *arena.Arena, depth int) *node {
	n := arena.New[node](a)
	if depth > 0 {
		n.next = build(a, depth-1)
	}
	return n
}

func constructor(name string) (*arena.Arena, *node) {
	a := arena.NewArena(arena.Name(name))
	return a, build(a, 3)
}

func constructorThatFails(name string) (a *arena.Arena, n *node, err error) {
	a = arena.NewArena()
	if name == "" {
		a.Free()
		return nil, nil, errEmpty
	}
	return a, build(a, 3), nil
}

func constructorThatFailsLate(name string) (n *node, err error) {
	a := arena.NewArena()
	done := false
	defer func() {
		if !done {
			a.Free()
		}
	}()
	if name == "" {
		return nil, errEmpty
	}
	done = true
	return build(a, 3), nil
}

func parameter(a *arena.Arena, out *node) {
	out.next = arena.New[node](a)
	out.name = arena.CopyString(a, "x")
}

func callerOfParameter() int {
	a := arena.NewArena()
	defer a.Free()
	var out node
	parameter(a, &out)
	return out.next.value
}

type session struct {
	a    *arena.Arena
	root *node
	all  []*node
}

func open() *session {
	s := &session{a: arena.NewArena()}
	s.root = arena.New[node](s.a)
	return s
}

func (s *session) close() { s.a.Free() }

func (s *session) add(name string) *node {
	n := arena.New[node](s.a)
	n.name, n.next = arena.CopyString(s.a, name), s.root
	s.root = n
	s.all = append(s.all, n)
	return n
}

// A new round forgets the last one first.
func (s *session) begin() *node {
	s.a.Reset()
	s.root = arena.New[node](s.a)
	s.all = s.all[:0]
	return s.root
}

func usesSession() int {
	s := open()
	defer s.close()
	s.add("x")
	return s.begin().value + len(s.all)
}

func returnsSession() *session {
	s := open()
	s.add("x")
	return s
}

func (s *server) eachRound(texts []string) (last *node) {
	for _, text := range texts {
		s.a.Reset()
		last = build(s.a, len(text))
	}
	return last
}

func (s *server) lastOfEachRound(texts []string) {
	for _, text := range texts {
		s.a.Reset()
		s.last = build(s.a, len(text))
	}
}

func (s *server) clearedBeforeReset(texts []string) {
	for _, text := range texts {
		s.last = build(s.a, len(text))
		total += s.last.value
		s.last = nil
		s.a.Reset()
	}
}

func (s *server) clearedInTheEnd() {
	a := arena.NewArena()
	defer a.Free()
	defer func() { s.last = nil }()
	s.last = build(a, 2)
	s.count()
}

func (s *server) clearedFromMap() {
	a := arena.NewArena()
	defer a.Free()
	s.byName["x"] = build(a, 2) // right, reported
	s.count()
	delete(s.byName, "x")
}

func (s *server) count() { total += s.last.value }

func (s *server) counted() {
	a := arena.NewArena()
	defer a.Free()
	n := build(a, 3)
	s.counts["x"] = n.value
	counts["y"] += n.value
	s.queue <- n.value
	total += n.value
}

func (s *server) copied() {
	a := arena.NewArena()
	defer a.Free()
	n := build(a, 3)
	s.byName["x"] = &node{name: strings.Clone(n.name), value: n.value}
	s.all = append(s.all, arena.Clone(arena.New[node](a)))
}

// The other arena of the server lives longer.
func (s *server) inLongArena() {
	defer s.a.Reset()
	scratch := build(s.a, 3)
	s.last = arena.New[node](s.long)
	s.last.value = scratch.value
}

func (s *server) handle(w http.ResponseWriter, r *http.Request) {
	a := arenas.Get().(*arena.Arena)
	defer func() {
		a.Reset()
		arenas.Put(a)
	}()
	n := build(a, 3)
	n.name = r.URL.Path
	w.Header().Set("Name", strings.Clone(n.name))
	fmt.Fprintln(w, n.name, n.value)
	w.Write(arena.CopyBytes(a, []byte("text")))
}

func (s *server) handleByPool(w http.ResponseWriter, r *http.Request) {
	a := ownArenas.Get()
	defer ownArenas.Put(a)
	var head *node
	for range 10 {
		n := arena.New[node](a)
		n.next = head
		head = n
	}
	json.NewEncoder(w).Encode(head.value)
}

func inHandler() http.Handler {
	requests := 0
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := arena.NewArena()
		defer a.Free()
		n := build(a, 3)
		requests += n.value
		fmt.Fprintln(w, requests)
	})
}

func decoded(text string) (int, error) {
	a := arena.NewArena()
	defer a.Free()
	n := arena.New[node](a)
	if err := json.Unmarshal([]byte(text), n); err != nil {
		return 0, err
	}
	return n.value, nil
}

func wrapped(text string) error {
	a := arena.NewArena()
	defer a.Free()
	name := arena.CopyString(a, text)
	if name == "" {
		return fmt.Errorf("no name in %q", name)
	}
	return nil
}

func rewound(a *arena.Arena) *node {
	kept := arena.New[node](a)
	m := a.Mark()
	for i := range arena.MakeSlice[int](a, 100, 100) {
		kept.value += i
	}
	a.Rewind(m)
	return kept
}

func rewoundInTheEnd(a *arena.Arena, out *node) {
	out.next = arena.New[node](a)
	defer a.Rewind(a.Mark())
	scratch := arena.MakeSlice[int](a, 10, 10)
	out.value = len(scratch)
}

func waitsForGoroutines() int {
	a := arena.NewArena()
	defer a.Free()
	nodes := arena.MakeSlice[node](a, 10, 10)
	var group sync.WaitGroup
	for i := range nodes {
		group.Add(1)
		go func() {
			defer group.Done()
			nodes[i].value = i
		}()
	}
	group.Wait()
	return nodes[9].value
}

func waitsForChannel() int {
	a := arena.NewArena()
	defer a.Free()
	n := arena.New[node](a)
	done := make(chan bool)
	go func() { n.value++; close(done) }()
	<-done
	return n.value
}

func localChannel() (sum int) {
	a := arena.NewArena()
	defer a.Free()
	queue := make(chan *node, 10)
	for range 10 {
		queue <- arena.New[node](a)
	}
	close(queue)
	for n := range queue {
		sum += n.value
	}
	return sum
}

func localMap(words []string) int {
	a := arena.NewArena()
	defer a.Free()
	seen := map[string]*node{}
	for _, w := range words {
		seen[arena.CopyString(a, w)] = arena.New[node](a)
	}
	return len(seen)
}

func localList() int {
	a := arena.NewArena()
	defer a.Free()
	l := list.New()
	l.PushBack(arena.New[node](a))
	return l.Len()
}

func localClosure() int {
	a := arena.NewArena()
	defer a.Free()
	n := arena.New[node](a)
	add := func(i int) { n.value += i }
	add(5)
	return n.value
}

func sorted() int {
	a := arena.NewArena()
	defer a.Free()
	nodes := arena.MakeSlice[*node](a, 10, 10)
	for i := range nodes {
		nodes[i] = arena.New[node](a)
	}
	slices.SortFunc(nodes, func(x, y *node) int { return cmp.Compare(x.value, y.value) })
	return nodes[0].value
}

func buffered() string {
	a := arena.NewArena()
	defer a.Free()
	b := bytes.NewBuffer(arena.MakeSlice[byte](a, 0, 100))
	b.WriteString("text")
	return b.String()
}

func writtenTo(out *bytes.Buffer) {
	a := arena.NewArena()
	defer a.Free()
	out.Write(arena.CopyBytes(a, []byte("text")))
	out.WriteString(arena.CopyString(a, "text"))
}

func otherPackage(c *keep.Cache, b []byte) int {
	a := arena.NewArena()
	defer a.Free()
	s := arena.CopyString(a, string(b))
	c.AddCopy(s, s)
	keep.Register(strings.Clone(s))
	return keep.Count(s)
}

func optional(a *arena.Arena) int {
	if a == nil {
		a = arena.NewArena()
		defer a.Free()
	}
	return build(a, 2).value
}

// The arena ends only if it is the function's own, and then the copy is returned.
func optionalCopy(a *arena.Arena) *node {
	if a != nil {
		return build(a, 0)
	}
	own := arena.NewArena()
	defer own.Free()
	return arena.Clone(build(own, 0)) // right, reported
}

func copiesArray(out []int) {
	a := arena.NewArena()
	defer a.Free()
	copy(out, arena.MakeSlice[int](a, 10, 10))
}

func references() int {
	a := arena.NewArena()
	defer a.Free()
	r := arena.NewRef[node](a)
	return r.Get().value
}

type handle struct{ ref arena.Ref[node] }

// A Ref knows that its object is gone.
func (h *handle) keptRef() {
	a := arena.NewArena()
	defer a.Free()
	h.ref = arena.NewRef[node](a)
}

func ofScope(ctx context.Context) int {
	s := scope.From(ctx).Child("query")
	defer s.End()
	n := arena.New[node](s.Arena())
	s.Defer(func() { total += n.value })
	return n.value
}

func ofOuterScope(ctx context.Context) *node {
	outer := scope.From(ctx)
	s := outer.Child("scratch")
	defer s.End()
	scratch := arena.MakeSlice[int](s.Arena(), 10, 10)
	n := arena.New[node](outer.Arena())
	n.value = len(scratch)
	return n
}

func nested() int {
	outer := arena.NewArena()
	defer outer.Free()
	head := arena.New[node](outer)
	for i := range 3 {
		inner := outer.Child()
		n := arena.New[node](inner)
		n.next, n.value = head, i
		head.value += n.value
		inner.Free()
	}
	return head.value
}

func linksToLonger(long *arena.Arena) int {
	kept := arena.New[node](long)
	short := arena.NewArena()
	defer short.Free()
	n := arena.New[node](short)
	n.next = kept
	return n.next.value
}

func oneArenaForAll() func() *node {
	a := arena.NewArena()
	return func() *node { return arena.New[node](a) }
}

var immortal = arena.NewArena()

func ofImmortal() { global = arena.New[node](immortal) }

func ofHeap() *node {
	var a *arena.Arena
	defer a.Free()
	return arena.New[node](a)
}

func cleanedUp(register func(func())) *node {
	a := arena.NewArena()
	register(a.Free)
	return arena.New[node](a)
}

func guarded(f func(*node)) {
	a := arena.NewArena()
	defer a.Free()
	f(arena.New[node](a))
}

func each(visit func(*node) bool) {
	a := arena.NewArena()
	defer a.Free()
	for n := build(a, 5); n != nil; n = n.next {
		if !visit(n) {
			return
		}
	}
}

func swapped() int {
	a, b := arena.NewArena(arena.Name("a")), arena.NewArena(arena.Name("b"))
	defer a.Free()
	defer b.Free()
	sum := 0
	for i := range 4 {
		a, b = b, a
		a.Reset()
		n := arena.New[node](a)
		n.value = i
		sum += n.value
	}
	return sum
}
