package arena

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/tenure-alloc/tenure/go/internal/account"
	"github.com/tenure-alloc/tenure/go/internal/pages"
)

// An Arena holds objects that are forgotten together, by Reset, Rewind or Free. It takes no memory
// before its first object. A nil *Arena stands for the heap: New is new, MakeSlice is make, Append is
// append, the copies are copies, and Free, Reset and Rewind do nothing.
//
// An Arena is for one goroutine at a time, and must not be copied. Its children, made by Child, may be
// used on other goroutines.
type Arena struct {
	_    noCopy
	body *body // ended once the arena is freed
	// The type whose New needed memory last, and where its objects come from. This spares New the
	// search for the slot, in loops over one type.
	word  unsafe.Pointer
	bump  *bump
	rec   *record
	busy  atomic.Bool // an operation is under way; in guard mode only
	watch runtime.Cleanup
}

// ended is the body of every freed arena: no type has a slot there, so that the slow path is taken.
var ended = newBody()

type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// An Option of NewArena and Child is a Name, ChunkSize, Limit, Mode or LeakPolicy.
type Option interface{ set(*record) }

// Name is shown in figures and messages.
type Name string

// ChunkSize is the size in bytes of chunks for objects without pointers, 64 KiB by default, rounded up
// to a multiple of that. The system provides a chunk's memory as it is touched. Objects larger than
// half a chunk have memory of their own.
type ChunkSize int

// Limit is the most bytes of chunks that the arena and its children may hold; 0 is no limit. A call
// that would need more panics with a *LimitError and changes nothing.
type Limit int64

// Mode says what use after Free does.
type Mode uint8

const (
	// DefaultMode is Guarded in tests and where the environment has TENURE_GUARD=1, and otherwise, or
	// with TENURE_GUARD=0, Fast.
	DefaultMode Mode = iota
	// Fast memory is used again at once. A stale pointer sees zeros or a newer object of the arena or
	// of another one; it never crashes. A stale *T with pointers sees only objects of type T.
	Fast
	// Guarded memory faults when it is used after Free, Reset or Rewind, and goroutines that use the
	// arena at the same time panic.
	Guarded
	// Checked memory is like Fast; the arena notes where it was freed, for the panic of Ref.Get.
	Checked
)

// LeakPolicy says what becomes of the memory without pointers of an arena that was forgotten without
// Free.
type LeakPolicy uint8

const (
	// KeepForgotten counts it as limbo and keeps it, because the garbage collector does not know
	// whether pointers to it are left. It is the default.
	KeepForgotten LeakPolicy = iota
	// FreeForgotten frees it. The program must then keep the *Arena alive, see runtime.KeepAlive, as
	// long as it uses the memory.
	FreeForgotten
)

func (n Name) set(r *record)       { r.name = string(n) }
func (m Mode) set(r *record)       { r.mode = m }
func (l LeakPolicy) set(r *record) { r.leak = l }
func (l Limit) set(r *record)      { r.account.SetLimit(max(0, int64(l))) }
func (s ChunkSize) set(r *record) {
	size := uintptr(min(max(int(s), pages.Unit), largestRequest))
	r.chunkSize = (size + pages.Unit - 1) &^ (pages.Unit - 1)
}

// In makes an arena's chunks count against an account. It is for package scope.
func In(above *account.Account) Option { return inAccount{above} }

type inAccount struct{ above *account.Account }

func (in inAccount) set(r *record) { r.account.Init(in.above) }

// largestRequest keeps a nonsensical ChunkSize from overflowing.
const largestRequest = 1 << 30

// A LimitError is the panic of a call that needs more than a Limit allows.
type LimitError struct {
	Name   string // of the arena
	ID     uint64
	Limit  int64 // the limit that was reached, of the arena or of one above it
	Held   int64 // bytes that count against it
	Wanted int64 // bytes that the call needs
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("arena %q (#%d): limit of %d bytes: %d are held, %d more are needed",
		e.Name, e.ID, e.Limit, e.Held, e.Wanted)
}

// A MemoryError is the panic of a call that the system has no memory for, or that no system has memory
// for.
type MemoryError = pages.MemoryError

var errTooLarge = errors.New("larger than memory can be")

// NewArena returns an empty arena. Free ends it; the garbage collector does not.
//
// It costs as much as some ten allocations, because arenas are counted and listed.
func NewArena(options ...Option) *Arena { return newArena(nil, options) }

func newArena(parent *record, options []Option) *Arena {
	r := &record{id: lastID.Add(1), parent: parent, created: callers(), chunkSize: pages.Unit}
	if parent != nil {
		r.mode, r.chunkSize, r.leak = parent.mode, parent.chunkSize, parent.leak
		r.account.Init(&parent.account)
	}
	for _, o := range options {
		o.set(r)
	}
	if r.mode == DefaultMode {
		r.mode = defaultMode()
	}
	if r.mode == Guarded {
		r.body = newBody()
	} else {
		r.body = bodies.Get().(*body)
	}
	r.body.owner = r
	a := &Arena{body: r.body, rec: r}
	a.watch = runtime.AddCleanup(a, forgotten, r)
	list(r)
	return a
}

var lastID atomic.Uint64

var defaultMode = sync.OnceValue(func() Mode {
	switch set := os.Getenv("TENURE_GUARD"); {
	case set == "1", set == "" && testing.Testing():
		return Guarded
	}
	return Fast
})

// Child returns an arena that ends with a, at the latest: Free and Reset of a free it. Its chunks count
// against the Limit of a, too. Mode, ChunkSize and LeakPolicy are those of a unless options say
// otherwise. The child may be used on another goroutine than a. A child of nil is an arena of its own.
func (a *Arena) Child(options ...Option) *Arena {
	if a == nil {
		return newArena(nil, options)
	}
	a.enter()
	child := newArena(a.rec, options)
	r := a.rec
	r.childrenMu.Lock()
	child.rec.older = r.newestChild
	if r.newestChild != nil {
		r.newestChild.rec.newer = child
	}
	r.newestChild = child
	r.childrenMu.Unlock()
	a.leave()
	return child
}

// New returns a new zeroed *T in the arena.
//
// It takes a few nanoseconds, and allocates nothing on the heap once the arena is warm.
func New[T any](a *Arena) *T {
	if a == nil {
		return new(T)
	}
	word, b := wordOf[T](), a.bump
	if a.word != word {
		s := a.body.slot(word)
		if s.word != word {
			return newSlow[T](a)
		}
		b = s.bump
	}
	off := roundUp(b.off, alignOf[T]())
	if end := off + sizeOf[T](); end <= b.end {
		b.off = end
		return (*T)(unsafe.Add(b.base, off))
	}
	return newSlow[T](a)
}

//go:noinline
func newSlow[T any](a *Arena) *T {
	a.enter()
	if sizeOf[T]() == 0 {
		a.leave()
		return new(T)
	}
	c := classOf[T](a)
	p := (*T)(a.take(c, c.typ.size))
	a.word, a.bump = c.typ.word, c.bump
	a.leave()
	return p
}

// classOf finds T's class by its slot, or makes it.
func classOf[T any](a *Arena) *class {
	word := wordOf[T]()
	if s := a.body.slot(word); s.word == word {
		return s.class
	}
	return a.body.class(infoOf[T]())
}

// NewOf returns a *T in the arena, as an any, for the type T that is known at run time only.
func NewOf(a *Arena, t reflect.Type) any {
	if a == nil || t.Size() == 0 {
		return reflect.New(t).Interface()
	}
	a.enter()
	info := infoOfType(t)
	p := a.take(a.body.class(info), info.size)
	a.leave()
	return reflect.NewAt(t, p).Interface()
}

// A Class allocates objects of one type: New without the search for the type. It is for the goroutine
// of its arena, stays valid over Reset, and ends with the arena. The zero Class allocates on the heap.
type Class[T any] struct {
	a    *Arena
	bump *bump
	body *body
}

// ClassOf returns the Class of T in the arena.
func ClassOf[T any](a *Arena) Class[T] {
	if a == nil || sizeOf[T]() == 0 {
		return Class[T]{}
	}
	a.enter()
	k := Class[T]{a, classOf[T](a).bump, a.body}
	a.leave()
	return k
}

// New returns a new zeroed *T.
func (k Class[T]) New() *T {
	if k.a == nil {
		return new(T)
	}
	// A body whose arena was freed belongs to another one, or to none.
	if b := k.bump; k.body.owner == k.a.rec {
		off := roundUp(b.off, alignOf[T]())
		if end := off + sizeOf[T](); end <= b.end {
			b.off = end
			return (*T)(unsafe.Add(b.base, off))
		}
	}
	return newSlow[T](k.a)
}

// Free ends the arena and its children, newest first. Their memory is usable for other arenas at once,
// without waiting for a garbage collection. No object of the arena may be used afterwards; Mode says
// what happens otherwise. A second Free panics with a *FreedError.
func (a *Arena) Free() {
	if a == nil {
		return
	}
	if a.body == ended {
		panic(a.rec.freedError("second Free"))
	}
	a.enter()
	a.freeChildren()
	a.leave()
	r, b := a.rec, a.body
	a.watch.Stop()
	a.body, r.body, b.owner = ended, nil, nil
	a.word, a.bump = nil, nil
	b.free(a, a.end("freed"))
	if r.parent != nil {
		r.parent.dropChild(r)
	}
	unlist(r, 1)
	if r.mode != Guarded && len(b.classes) <= warmClasses {
		bodies.Put(b)
	}
}

// dropChild unlinks a child that ends.
func (r *record) dropChild(child *record) {
	r.childrenMu.Lock()
	if child.newer != nil {
		child.newer.rec.older = child.older
	} else {
		r.newestChild = child.older
	}
	if child.older != nil {
		child.older.rec.newer = child.newer
	}
	child.older, child.newer = nil, nil
	r.childrenMu.Unlock()
}

// Reset forgets all objects of the arena and frees its children. It keeps the chunks that this round or
// the one before it needed, and gives back the others and the memory of large objects.
//
// It takes about as long as to clear the objects with pointers.
func (a *Arena) Reset() {
	if a == nil {
		return
	}
	a.enter()
	a.freeChildren()
	a.body.reset(a, a.end("reset"))
	a.rec.resets.Add(1)
	a.rec.used.Store(0)
	a.leave()
}

func (a *Arena) freeChildren() {
	for {
		a.rec.childrenMu.Lock()
		child := a.rec.newestChild
		a.rec.childrenMu.Unlock()
		if child == nil {
			return
		}
		child.Free()
	}
}

// MakeSlice returns a zeroed slice in the arena. It panics if length is negative or larger than
// capacity, with a *MemoryError if no memory can be as large, and with a *LimitError beyond the Limit.
//
// append beyond its capacity moves the elements to the heap; Append keeps them in the arena.
func MakeSlice[T any](a *Arena, length, capacity int) []T {
	if length < 0 || capacity < length {
		panic(fmt.Errorf("arena: MakeSlice: length %d, capacity %d", length, capacity))
	}
	size := sizeOf[T]()
	if a == nil {
		return make([]T, length, capacity)
	}
	a.enter()
	if size == 0 || capacity == 0 {
		a.leave()
		return make([]T, length, capacity)
	}
	if uintptr(capacity) > largestSize/size {
		a.leave()
		panic(&MemoryError{Size: uintptr(capacity), Err: errTooLarge})
	}
	p := a.take(classOf[T](a), size*uintptr(capacity))
	a.leave()
	return unsafe.Slice((*T)(p), capacity)[:length]
}

// Append is append with the memory of the arena. The slice that was made last in the arena grows in
// place, if its chunk has room; others are copied, and the old place stays until the arena forgets it.
func Append[T any](a *Arena, s []T, values ...T) []T {
	needed := len(s) + len(values)
	if a == nil || needed <= cap(s) {
		return append(s, values...)
	}
	wanted := max(needed, 2*cap(s), 4)
	if grown := growLast(a, s, wanted); cap(grown) >= needed {
		return append(grown, values...)
	}
	if grown := growLast(a, s, needed); cap(grown) >= needed {
		return append(grown, values...)
	}
	moved := MakeSlice[T](a, len(s), wanted)
	copy(moved, s)
	return append(moved, values...)
}

// growLast returns s with more capacity if it ends where the next object would begin.
func growLast[T any](a *Arena, s []T, capacity int) []T {
	a.enter()
	defer a.leave()
	size := sizeOf[T]()
	if size == 0 || cap(s) == 0 || uintptr(capacity) > largestSize/size {
		return s
	}
	b := classOf[T](a).bump
	start := uintptr(unsafe.Pointer(unsafe.SliceData(s))) - uintptr(b.base)
	if start > b.off || start+uintptr(cap(s))*size != b.off || start+uintptr(capacity)*size > b.limit {
		return s
	}
	b.off = start + uintptr(capacity)*size
	return unsafe.Slice((*T)(unsafe.Add(b.base, start)), capacity)[:len(s)]
}

// CopyBytes returns a copy of b in the arena, with no capacity beyond its length.
func CopyBytes(a *Arena, b []byte) []byte {
	copied := MakeSlice[byte](a, len(b), len(b))
	copy(copied, b)
	return copied
}

// CopyString returns a copy of s in the arena.
func CopyString(a *Arena, s string) string {
	b := MakeSlice[byte](a, len(s), len(s))
	copy(b, s)
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// Owns tells whether p points into a live object of the arena, or into the gaps between them. It is
// false for objects of children. It takes time in proportion to the number of chunks.
func (a *Arena) Owns(p unsafe.Pointer) bool {
	if a == nil || p == nil {
		return false
	}
	a.enter()
	defer a.leave()
	return a.body.owns(p)
}

// enter begins an operation: it panics if the arena is freed, and in guard mode if another operation is
// under way. Every way out, a panic too, goes over leave.
func (a *Arena) enter() {
	if a.body == ended {
		panic(a.rec.freedError("use after Free"))
	}
	if a.rec.mode == Guarded && !a.busy.CompareAndSwap(false, true) {
		panic(fmt.Errorf("arena %q (#%d): used by two goroutines at once; created at %s",
			a.rec.name, a.rec.id, a.rec.created))
	}
}

func (a *Arena) leave() {
	if a.rec.mode == Guarded {
		a.busy.Store(false)
	}
}
