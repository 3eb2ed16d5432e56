package arena

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tenure-alloc/tenure/go/internal/account"
	"github.com/tenure-alloc/tenure/go/internal/observe"
	"github.com/tenure-alloc/tenure/go/internal/pages"
)

// A record is what other goroutines and messages know of an arena. It does not keep the arena alive.
type record struct {
	id        uint64
	name      string
	created   site
	mode      Mode
	leak      LeakPolicy
	chunkSize uintptr
	account   account.Account
	parent    *record

	used      atomic.Int64 // as of the last time that a chunk was taken
	resets    atomic.Int64
	limitHits atomic.Int64

	// For the arena's goroutine, and once the arena is unreachable for its cleanup.
	body  *body
	round uint64 // ends of objects so far
	last  *ending

	childrenMu   sync.Mutex
	newestChild  *Arena
	older, newer *Arena // siblings, under the parent's childrenMu

	next, prev *record // under listMu
}

// Stats are the figures of one arena.
type Stats struct {
	ID        uint64
	Parent    uint64 // the ID of the arena that it is a child of, or 0
	Name      string
	Mode      Mode
	Created   string // file:line
	Used      int64  // bytes of live objects and of gaps between them, without children
	Held      int64  // bytes of chunks, with children; that counts against the Limit
	Peak      int64  // the most that was held
	Limit     int64  // in bytes; 0 is none
	LimitHits int64  // calls refused by a Limit
	Resets    int64
}

// Stats returns the figures of the arena, on its goroutine. Those of nil are zero.
func (a *Arena) Stats() Stats {
	if a == nil {
		return Stats{}
	}
	a.enter()
	a.rec.used.Store(a.body.used())
	s := a.rec.stats()
	a.leave()
	return s
}

func (r *record) stats() Stats {
	s := Stats{
		ID: r.id, Name: r.name, Mode: r.mode, Created: r.created.String(),
		Used: r.used.Load(), Held: r.account.Held(), Peak: r.account.Peak(), Limit: r.account.Limit(),
		LimitHits: r.limitHits.Load(), Resets: r.resets.Load(),
	}
	if r.parent != nil {
		s.Parent = r.parent.id
	}
	return s
}

// Process are the figures of all arenas.
type Process struct {
	Arenas    []Stats // live ones, oldest first; Used is as of the last chunk that each took
	Created   int64
	Freed     int64
	Forgotten int64 // collected without Free
	Limbo     int64 // bytes without pointers of forgotten arenas, which are kept
	OffHeap   int64 // bytes outside the Go heap in use: GOMEMLIMIT and GOGC do not see these
	Warm      int64 // bytes outside the Go heap that wait for the next arena
	Retired   int64 // addresses that fault, in guard mode
}

// ReadStats returns the figures of all arenas, on any goroutine.
func ReadStats() Process {
	memory := pages.ReadStats()
	p := Process{
		Created: int64(lastID.Load()), Forgotten: forgottenArenas.Load(), Limbo: limbo.Load(),
		OffHeap: memory.Out, Warm: memory.Warm, Retired: memory.Retired,
	}
	listMu.Lock()
	for r := newest; r != nil; r = r.prev {
		p.Arenas = append(p.Arenas, r.stats())
	}
	p.Freed = freed
	listMu.Unlock()
	slices.Reverse(p.Arenas)
	return p
}

var (
	listMu sync.Mutex
	newest *record
	freed  int64

	forgottenArenas atomic.Int64
	limbo           atomic.Int64
)

func list(r *record) {
	listMu.Lock()
	r.prev = newest
	if newest != nil {
		newest.next = r
	}
	newest = r
	listMu.Unlock()
	observe.Made(r)
}

func unlist(r *record, ends int64) {
	listMu.Lock()
	if r.next != nil {
		r.next.prev = r.prev
	} else {
		newest = r.prev
	}
	if r.prev != nil {
		r.prev.next = r.next
	}
	r.next, r.prev = nil, nil
	freed += ends
	listMu.Unlock()
	observe.Ended(r)
}

// A Leak is an arena that was collected without Free.
type Leak struct {
	Name    string
	ID      uint64
	Created string // file:line
	Limbo   int64  // bytes that are kept
}

func (l Leak) String() string {
	return fmt.Sprintf("arena %q (#%d): forgotten without Free; created at %s; %d bytes are kept",
		l.Name, l.ID, l.Created, l.Limbo)
}

var (
	leakMu     sync.Mutex
	leakSites  = map[string]bool{}
	leakReport = func(l Leak) { fmt.Fprintln(os.Stderr, l) }
)

// OnLeak sets the function that is called once for each place that created an arena which was
// forgotten. It runs on a goroutine of the runtime and must not block. By default the leak is written
// to standard error; nil is silence. ReadStats counts every forgotten arena.
func OnLeak(report func(Leak)) {
	leakMu.Lock()
	leakReport = report
	leakMu.Unlock()
}

// forgotten runs once an arena is unreachable that was not freed. Chunks with pointers are the garbage
// collector's.
func forgotten(r *record) {
	s := &r.body.bytes
	var kept int64
	for _, run := range slices.Concat(s.chunks, s.large) {
		switch {
		case pages.OnHeap:
			pages.Put(run)
		case r.leak == KeepForgotten:
			kept += int64(run.Size)
		case r.mode == Guarded:
			pages.Retire(run, &ending{r.name, r.id, r.created, "collected", site{}})
		default:
			run.Dirty = run.Size
			pages.Put(run)
		}
	}
	r.account.Discharge(r.account.Held())
	forgottenArenas.Add(1)
	limbo.Add(kept)
	unlist(r, 0)

	leakMu.Lock()
	place, report := r.created.String(), leakReport
	first := !leakSites[place]
	leakSites[place] = true
	leakMu.Unlock()
	if first && report != nil {
		report(Leak{r.name, r.id, place, kept})
	}
}
