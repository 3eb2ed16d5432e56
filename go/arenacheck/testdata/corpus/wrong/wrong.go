// Package wrong has functions that let memory outlive its arena. The comment `wrong` is on the line
// that has to be reported, and `wrong, not found` on one that the analyzer does not find.
package wrong

import (
	"bytes"
	"container/list"
	"context"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"

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
	a      *arena.Arena
	last   *node
	byName map[string]*node
	all    []*node
	queue  chan *node
	mu     sync.Mutex
}

var (
	global     *node
	globalMap  = map[string]*node{}
	globalList []*node
	shared     sync.Map
	current    atomic.Pointer[node]
	arenas     = sync.Pool{New: func() any { return arena.NewArena() }}
	ownArenas  = pool.New(pool.Config[*arena.Arena]{New: func() *arena.Arena {
		return arena.NewArena()
	}})
)

func returned() *node {
	a := arena.NewArena()
	defer a.Free()
	return arena.New[node](a) // wrong
}

func returnedAfterFree() *node {
	a := arena.NewArena()
	n := arena.New[node](a)
	a.Free()
	return n // wrong
}

func returnedString(b []byte) string {
	a := arena.NewArena()
	defer a.Free()
	return arena.CopyString(a, string(b)) // wrong
}

func returnedPart(b []byte) string {
	a := arena.NewArena()
	defer a.Free()
	return strings.TrimSpace(arena.CopyString(a, string(b))) // wrong
}

// strings.Join returns the only string of a slice itself.
func returnedJoined(words []string) string {
	a := arena.NewArena()
	defer a.Free()
	all := arena.MakeSlice[string](a, 0, len(words))
	for _, w := range words {
		all = arena.Append(a, all, arena.CopyString(a, w))
	}
	return strings.Join(all, " ") // wrong
}

func returnedField() string {
	a := arena.NewArena()
	defer a.Free()
	n := arena.New[node](a)
	n.name = arena.CopyString(a, "x")
	return n.name // wrong
}

func returnedInStruct() (r struct{ n *node }) {
	a := arena.NewArena()
	defer a.Free()
	r.n = arena.New[node](a)
	return r // wrong
}

func returnedInSlice() []*node {
	a := arena.NewArena()
	defer a.Free()
	var all []*node
	for range 10 {
		all = append(all, arena.New[node](a))
	}
	return all // wrong
}

func returnedAppended() []int {
	a := arena.NewArena()
	defer a.Free()
	var all []int
	for i := range 10 {
		all = arena.Append(a, all, i)
	}
	return all // wrong
}

func returnedInterface() any {
	a := arena.NewArena()
	defer a.Free()
	return arena.NewOf(a, reflect.TypeFor[node]()) // wrong
}

func returnedClosure() func() int {
	a := arena.NewArena()
	defer a.Free()
	n := arena.New[node](a)
	return func() int { return n.value } // wrong
}

// Clone is shallow: the copy still links into the arena.
func returnedShallowClone() *node {
	a := arena.NewArena()
	defer a.Free()
	n := arena.New[node](a)
	n.next = arena.New[node](a)
	return arena.Clone(n) // wrong
}

func returnedOfClass() *node {
	a := arena.NewArena()
	defer a.Free()
	nodes := arena.ClassOf[node](a)
	return nodes.New() // wrong
}

func build(a *arena.Arena, depth int) *node {
	n := arena.New[node](a)
	if depth > 0 {
		n.next = build(a, depth-1)
	}
	return n
}

func returnedByHelper() *node {
	a := arena.NewArena()
	defer a.Free()
	return build(a, 10) // wrong
}

func returnedAfterDeferredLiteral() *node {
	a := arena.NewArena()
	defer func() { a.Free() }()
	return build(a, 1) // wrong
}

func returnedAfterRewind(a *arena.Arena) *node {
	m := a.Mark()
	defer a.Rewind(m)
	return arena.New[node](a) // wrong
}

func returnedOfChild(parent *arena.Arena) *node {
	a := parent.Child()
	defer a.Free()
	return arena.New[node](a) // wrong
}

func returnedOfChildOfFreed() *node {
	parent := arena.NewArena()
	defer parent.Free()
	return arena.New[node](parent.Child()) // wrong
}

func returnedOfPooledArena() *node {
	a := arenas.Get().(*arena.Arena)
	defer arenas.Put(a)
	return arena.New[node](a) // wrong
}

func returnedOfOwnPool() *node {
	a := ownArenas.Get()
	n := arena.New[node](a)
	ownArenas.Put(a)
	return n // wrong
}

func returnedOfScope() *node {
	s := scope.New("query")
	defer s.End()
	return arena.New[node](s.Arena()) // wrong
}

func returnedOfScopeOfContext(ctx context.Context) *node {
	s := scope.From(ctx).Child("query")
	defer s.End()
	return build(s.Arena(), 3) // wrong
}

func inGlobal() {
	a := arena.NewArena()
	defer a.Free()
	global = arena.New[node](a) // wrong
}

func inGlobalMap(name string) {
	a := arena.NewArena()
	defer a.Free()
	globalMap[name] = arena.New[node](a) // wrong
}

func keyOfGlobalMap(name []byte) {
	a := arena.NewArena()
	defer a.Free()
	globalMap[arena.CopyString(a, string(name))] = nil // wrong
}

func inGlobalList() {
	a := arena.NewArena()
	defer a.Free()
	n := arena.New[node](a)
	globalList = append(globalList, n) // wrong
}

func inSyncMap() {
	a := arena.NewArena()
	defer a.Free()
	shared.Store("key", arena.New[node](a)) // wrong
}

func inAtomic() {
	a := arena.NewArena()
	defer a.Free()
	current.Store(arena.New[node](a)) // wrong
}

func (s *server) inReceiver() {
	a := arena.NewArena()
	defer a.Free()
	s.last = arena.New[node](a) // wrong
}

func (s *server) inMapOfReceiver() {
	a := arena.NewArena()
	defer a.Free()
	n := arena.New[node](a)
	s.mu.Lock()
	s.byName["x"] = n // wrong
	s.mu.Unlock()
}

func (s *server) inSliceOfReceiver() {
	a := arena.NewArena()
	defer a.Free()
	s.all = append(s.all, arena.New[node](a)) // wrong
}

func (s *server) afterReset() *node {
	n := arena.New[node](s.a)
	s.a.Reset()
	return n // wrong
}

func (s *server) keptOverResets(names []string) {
	for _, name := range names {
		n := arena.New[node](s.a)
		n.name = name
		s.byName[name] = n // wrong
		s.a.Reset()
	}
}

func (s *server) sent() {
	a := arena.NewArena()
	defer a.Free()
	s.queue <- arena.New[node](a) // wrong
}

func sentBySelect(queue chan *node, stop chan bool) {
	a := arena.NewArena()
	defer a.Free()
	select { // wrong
	case queue <- arena.New[node](a):
	case <-stop:
	}
}

func inParameter(out *node) {
	a := arena.NewArena()
	defer a.Free()
	out.next = build(a, 1) // wrong
}

func inStructOfParameter(out *keep.Node) {
	a := arena.NewArena()
	defer a.Free()
	*out = keep.Node{Name: arena.CopyString(a, "x")} // wrong
}

func inList(l *list.List) {
	a := arena.NewArena()
	defer a.Free()
	l.PushBack(arena.New[node](a)) // wrong
}

func keptByOtherPackage(c *keep.Cache, b []byte) {
	a := arena.NewArena()
	defer a.Free()
	c.Add(arena.CopyString(a, string(b)), "value") // wrong
}

func registered(b []byte) {
	a := arena.NewArena()
	defer a.Free()
	keep.Register(arena.CopyString(a, string(b))) // wrong
}

func linkedByOtherPackage(out *keep.Node) {
	a := arena.NewArena()
	defer a.Free()
	out.Link(arena.New[keep.Node](a)) // wrong
}

func usedByGoroutine() {
	a := arena.NewArena()
	defer a.Free()
	n := arena.New[node](a)
	go func() { n.value++ }() // wrong
}

func increment(n *node) { n.value++ }

func passedToGoroutine() {
	a := arena.NewArena()
	n := arena.New[node](a)
	go increment(n) // wrong
	a.Free()
}

func inHandler() http.Handler {
	var last *node
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if last != nil {
			w.Write([]byte(last.name))
		}
		a := arena.NewArena()
		defer a.Free()
		last = arena.New[node](a) // wrong
	})
}

func inOtherArena(long *arena.Arena) *node {
	kept := arena.New[node](long)
	short := arena.NewArena()
	defer short.Free()
	kept.next = arena.New[node](short) // wrong
	return kept                        // wrong
}

func inOuterArena(parts []string) int {
	outer, inner := arena.NewArena(), arena.NewArena()
	defer outer.Free()
	defer inner.Free()
	head := arena.New[node](outer)
	for _, part := range parts {
		head.name = arena.CopyString(inner, part) // wrong
		inner.Reset()
	}
	return len(head.name)
}

type session struct {
	a    *arena.Arena
	root *node
}

func open() *session {
	s := &session{a: arena.NewArena()}
	s.root = arena.New[node](s.a)
	return s
}

func (s *session) close() { s.a.Free() }

func (s *session) add(name string) *node {
	n := arena.New[node](s.a)
	n.name, n.next = name, s.root
	return n
}

func returnedOfSession() *node {
	s := open()
	defer s.close()
	return s.add("x") // wrong
}

func returnedRootOfSession() *node {
	s := open()
	defer s.close()
	return s.root // wrong
}

func process(a *arena.Arena, text string) *node {
	defer a.Reset()
	return parse(a, text) // wrong
}

func parse(a *arena.Arena, text string) *node {
	var newest *node
	for _, word := range strings.Fields(text) {
		n := arena.New[node](a)
		*n = node{newest, arena.CopyString(a, word), len(word)}
		newest = n
	}
	return newest
}

func namedResult(text string) (n *node, err error) {
	a := arena.NewArena()
	defer a.Free()
	n = parse(a, text)
	return n, nil // wrong
}

func byCallback(visit func(func(*node))) *node {
	a := arena.NewArena()
	defer a.Free()
	var found *node
	visit(func(n *node) { found = build(a, n.value) })
	return found // wrong
}

// A method of an interface may keep its argument.
func keptByInterface(k keep.Keeper) {
	a := arena.NewArena()
	defer a.Free()
	k.Keep(arena.New[keep.Node](a)) // wrong, not found
}

func storedByReflection(out *node) {
	a := arena.NewArena()
	defer a.Free()
	reflect.ValueOf(out).Elem().Field(0).Set(reflect.ValueOf(build(a, 1))) // wrong, not found
}

// The use of a value after its arena in one function is left to guard mode.
func usedAfterFree() int {
	a := arena.NewArena()
	n := arena.New[node](a)
	a.Free()
	return n.value // wrong, not found
}

func bufferOfArena(out *bytes.Buffer) {
	a := arena.NewArena()
	defer a.Free()
	*out = *bytes.NewBuffer(arena.MakeSlice[byte](a, 0, 100)) // wrong
}
