package arena

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"

	"github.com/tenure-alloc/tenure/go/internal/pages"
)

var pageSize = uintptr(os.Getpagesize())

// A site is a place in the program: the nearest caller outside this package
// and package scope, found when it is printed.
type site [8]uintptr

// callers returns the place where the caller's caller was called.
func callers() (s site) {
	runtime.Callers(3, s[:])
	return s
}

func (s site) String() string {
	frames := runtime.CallersFrames(s[:])
	for s[0] != 0 {
		frame, more := frames.Next()
		if !more || !isInside(frame) {
			return fmt.Sprintf("%s:%d", frame.File, frame.Line)
		}
	}
	return "a place not noted"
}

func isInside(frame runtime.Frame) bool {
	const module = "github.com/tenure-alloc/tenure/go/"
	inside := strings.HasPrefix(frame.Function, module+"arena.") ||
		strings.HasPrefix(frame.Function, module+"scope.")
	return inside && !strings.HasSuffix(frame.File, "_test.go")
}

// An ending is what is known of objects that are gone: it outlives its arena.
type ending struct {
	name    string
	id      uint64
	created site
	how     string // freed, reset or rewound
	at      site
}

// end notes that objects of the arena end now. In fast mode the place is not noted.
func (a *Arena) end(how string) *ending {
	r := a.rec
	r.round++
	if r.mode == Fast {
		return nil
	}
	e := &ending{r.name, r.id, r.created, how, callers()}
	r.last = e
	if r.mode == Guarded {
		endings[r.id%uint64(len(endings))].Store(e)
	}
	return e
}

// endings has the last ending of each arena, by the number of its poison. A newer arena of the same
// number takes the place.
var endings [pages.PoisonCount]atomic.Pointer[ending]

func (e *ending) poison() uintptr { return pages.Poison(e.id) }

// A FreedError is the panic of the use of an arena or of its objects after their end.
type FreedError struct {
	Name    string // of the arena
	ID      uint64
	What    string  // was done
	Created string  // where the arena was made: file:line
	How     string  // the objects ended: freed, reset or rewound
	Ended   string  // where: file:line; in fast mode this is not noted
	Address uintptr // of the fault, or 0
}

func (e *FreedError) Error() string {
	return fmt.Sprintf("arena %q (#%d): %s; created at %s, %s at %s",
		e.Name, e.ID, e.What, e.Created, e.How, e.Ended)
}

func (r *record) freedError(what string) *FreedError {
	e := r.last
	if e == nil {
		e = &ending{name: r.name, id: r.id, created: r.created, how: "freed"}
	}
	return e.freedError(what, 0)
}

func (e *ending) freedError(what string, address uintptr) *FreedError {
	return &FreedError{e.name, e.id, what, e.created.String(), e.how, e.at.String(), address}
}

func (r *record) misuse(what string) error {
	return fmt.Errorf("arena %q (#%d): %s; created at %s", r.name, r.id, what, r.created)
}

// Guard calls f. If f uses an object of a Guarded arena after its end, and the fault is in this
// goroutine, Guard panics with a *FreedError, which names the arena and the places where it was created
// and where the object ended. Without Guard such a fault ends the program with the runtime's message,
// unexpected fault address, and an address that begins with 0x5afe or 0x5aff. Other panics pass as they
// are.
func Guard(f func()) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch p := recover().(type) {
		case nil:
		case interface{ Addr() uintptr }:
			if e := endingAt(p.Addr()); e != nil {
				panic(e.freedError("use of an object after its end", p.Addr()))
			}
			panic(p)
		default:
			panic(p)
		}
	}()
	f()
}

// endingAt returns the ending of the objects whose memory or poison has the address, or nil.
func endingAt(address uintptr) *ending {
	if e, ok := pages.RetiredBy(address).(*ending); ok {
		return e
	}
	n, modulus := pages.PoisonOwner(address)
	if modulus == 0 {
		return nil
	}
	return endings[n].Load()
}

// A Ref is a pointer into an arena that knows whether its object is still there, in every mode. Reset
// and Free of the arena end it, and so does Rewind, also for objects older than the mark. It is for the
// goroutine of its arena.
type Ref[T any] struct {
	p     *T
	rec   *record
	round uint64
}

// NewRef is New with a Ref as the result.
func NewRef[T any](a *Arena) Ref[T] {
	if a == nil {
		return Ref[T]{p: new(T)}
	}
	return Ref[T]{New[T](a), a.rec, a.rec.round}
}

// RefTo returns a Ref to the object at p, which must be one of the arena.
func RefTo[T any](a *Arena, p *T) Ref[T] {
	if a == nil {
		return Ref[T]{p: p}
	}
	a.enter()
	a.leave()
	return Ref[T]{p, a.rec, a.rec.round}
}

// Get returns the pointer. It panics with a *FreedError if the object's end has come; in Checked and
// Guarded mode that says where.
func (r Ref[T]) Get() *T {
	if r.rec != nil && r.rec.round != r.round {
		r.stale()
	}
	return r.p
}

func (r Ref[T]) stale() { panic(r.rec.freedError("Ref.Get after the object's end")) }

// Valid tells whether Get would return.
func (r Ref[T]) Valid() bool { return r.rec == nil || r.rec.round == r.round }
