package arena

import (
	"unsafe"

	"github.com/tenure-alloc/tenure/go/internal/pages"
)

// A position in a byteSpace or class: the current chunk, the offset in it, the number of large blocks.
// Everything behind it is newer.
type position struct {
	chunk int
	off   uintptr
	large int
}

// start is the position before all objects.
var start = position{chunk: -1}

// A Mark is a point in the life of an arena: Rewind forgets all objects that are newer.
type Mark struct {
	rec     *record
	resets  int64
	full    int64
	bytes   position
	classes int // so many there were, with these positions
	few     [4]position
	more    []position
}

// Mark returns the point of now.
func (a *Arena) Mark() Mark {
	if a == nil {
		return Mark{}
	}
	a.enter()
	b := a.body
	m := Mark{
		rec:     a.rec,
		resets:  a.rec.resets.Load(),
		full:    b.full,
		bytes:   position{b.bytes.cur, b.bytes.off, len(b.bytes.large)},
		classes: len(b.classes),
	}
	for i, c := range b.classes {
		at := position{c.cur, c.own.off, len(c.large)}
		if i < len(m.few) {
			m.few[i] = at
		} else {
			m.more = append(m.more, at)
		}
	}
	a.leave()
	return m
}

// Rewind forgets the objects that are newer than the mark and keeps the older ones. Marks nest: one
// that is newer than m ends. Children live on. It panics if the mark is another arena's, or older than
// the last Reset, or newer than the point to which the arena was rewound.
func (a *Arena) Rewind(m Mark) {
	if a == nil {
		return
	}
	a.enter()
	b := a.body
	if m.rec != a.rec || m.resets != a.rec.resets.Load() || m.classes > len(b.classes) ||
		!m.bytes.within(b.bytes.cur, b.bytes.off) {
		a.leave()
		panic(a.rec.misuse("Rewind to a mark of another arena, or of objects that are gone"))
	}
	e := a.end("rewound")
	b.bytes.rewind(a, m.bytes, e)
	for i, c := range b.classes {
		c.rewind(a, m.position(i), e)
	}
	b.full = m.full
	a.rec.used.Store(b.used())
	a.leave()
}

func (m *Mark) position(class int) position {
	switch {
	case class >= m.classes:
		return start
	case class < len(m.few):
		return m.few[class]
	}
	return m.more[class-len(m.few)]
}

func (p position) within(chunk int, off uintptr) bool {
	return p.chunk < chunk || p.chunk == chunk && p.off <= off
}

// reset forgets every object and keeps the chunks that this round or the one before it needed.
func (b *body) reset(a *Arena, e *ending) {
	s := &b.bytes
	used := s.cur + 1
	s.rewind(a, start, e)
	if keep := max(used, s.lately); keep < len(s.chunks) {
		a.putRuns(s.chunks[keep:])
		s.chunks = s.chunks[:keep]
	}
	s.lately = used
	for _, c := range b.classes {
		used := c.cur + 1
		c.rewind(a, start, e)
		a.keepChunks(c, max(used, c.lately))
		c.lately = used
	}
	b.full = 0
}

// free forgets every object, and leaves only chunks of types with pointers, for a later arena.
func (b *body) free(a *Arena, e *ending) {
	s := &b.bytes
	if a.rec.mode == Guarded {
		s.rewind(a, start, e)
	} else if s.cur >= 0 {
		s.chunks[s.cur].Dirty = s.off
	}
	a.putRuns(s.large)
	a.putRuns(s.chunks)
	*s = byteSpace{cur: -1, chunks: s.chunks[:0], large: s.large[:0]}
	for _, c := range b.classes {
		c.rewind(a, start, e)
		keep, size := 0, uintptr(0)
		for keep < len(c.chunks) && size+c.chunks[keep].size <= warmBytes {
			size += c.chunks[keep].size
			keep++
		}
		a.keepChunks(c, keep)
		for i := range c.charged {
			a.rec.account.Discharge(int64(c.chunks[i].size))
		}
		c.own, c.cur, c.charged, c.lately = bump{}, -1, 0, 0
	}
	b.full = 0
}

// rewind forgets everything behind the position. In guard mode the memory faults from then on, and the
// next object begins a new chunk.
func (s *byteSpace) rewind(a *Arena, to position, e *ending) {
	guarded := a.rec.mode == Guarded
	if forgotten := s.large[to.large:]; guarded {
		a.retireRuns(forgotten, e)
	} else {
		a.putRuns(forgotten)
	}
	s.large = s.large[:to.large]
	if s.cur < 0 {
		return
	}
	s.chunks[s.cur].Dirty = s.off
	first := max(to.chunk, 0)
	run := &s.chunks[first]
	if !guarded {
		clear(unsafe.Slice((*byte)(run.Base), run.Dirty)[to.off:])
		run.Dirty = to.off
		s.cur = first
		s.set(run.Base, run.Size, false)
		s.off = to.off
		return
	}
	if to.off == 0 {
		a.retireRuns(s.chunks, e)
		*s = byteSpace{cur: -1, chunks: s.chunks[:0], large: s.large}
		return
	}
	a.retireRuns(s.chunks[first+1:], e)
	s.chunks = s.chunks[:first+1]
	kept := roundUp(to.off, pageSize)
	if kept > to.off {
		pages.Wipe(unsafe.Add(run.Base, to.off), kept-to.off)
	}
	if kept < run.Size {
		a.retireRuns([]pages.Run{{Base: unsafe.Add(run.Base, kept), Size: run.Size - kept}}, e)
		run.Size = kept
	}
	s.cur = first
	s.set(run.Base, to.off, true)
	s.off = to.off
}

// rewind forgets everything behind the position. In guard mode the objects are overwritten with traps,
// and left to the garbage collector; the next object begins a new chunk.
func (c *class) rewind(a *Arena, to position, e *ending) {
	guarded := a.rec.mode == Guarded
	for i := to.large; i < len(c.large); i++ {
		chunk := &c.large[i]
		if guarded {
			c.typ.spring(chunk.base, chunk.size/c.typ.size, e.poison())
		}
		a.rec.account.Discharge(int64(chunk.size))
		*chunk = heapChunk{}
	}
	c.large = c.large[:to.large]
	if c.cur < 0 {
		return
	}
	c.chunks[c.cur].used = c.own.off
	first, off := max(to.chunk, 0), to.off
	for i := first; i <= c.cur; i++ {
		chunk := &c.chunks[i]
		if count := (chunk.used - off) / c.typ.size; count > 0 && guarded {
			c.typ.spring(unsafe.Add(chunk.base, off), count, e.poison())
		} else if count > 0 {
			c.typ.clear(unsafe.Add(chunk.base, off), count)
		}
		off = 0
	}
	c.cur = first
	c.own.set(c.chunks[first].base, c.chunks[first].size, guarded)
	c.own.off = to.off
	if guarded {
		c.own.limit = to.off
		a.keepChunks(c, first+1)
		if to.off == 0 {
			a.keepChunks(c, first)
			c.own, c.cur = bump{}, -1
		}
	}
}

// putRuns gives runs back; neighbours go together.
func (a *Arena) putRuns(runs []pages.Run) {
	a.joined(runs, pages.Put)
}

// retireRuns makes runs fault.
func (a *Arena) retireRuns(runs []pages.Run, e *ending) {
	a.joined(runs, func(run pages.Run) { pages.Retire(run, e) })
}

// joined calls f for each run, or once for runs that lie one behind the other. Chunks of one Unit are
// not joined to be put back, because pages keeps these warm.
func (a *Arena) joined(runs []pages.Run, f func(pages.Run)) {
	for len(runs) > 0 {
		run, count := runs[0], 1
		for count < len(runs) && !pages.OnHeap && runs[count].Base == unsafe.Add(run.Base, run.Size) &&
			(a.rec.mode == Guarded || runs[count].Size > pages.Unit) {
			run.Size += runs[count].Size
			count++
		}
		a.rec.account.Discharge(int64(run.Size))
		f(run)
		clear(runs[:count])
		runs = runs[count:]
	}
}

func (b *body) owns(p unsafe.Pointer) bool {
	inside := func(base unsafe.Pointer, used uintptr) bool { return uintptr(p)-uintptr(base) < used }
	s := &b.bytes
	if inside(s.base, s.off) {
		return true
	}
	for i := range s.cur {
		if inside(s.chunks[i].Base, s.chunks[i].Dirty) {
			return true
		}
	}
	for _, run := range s.large {
		if run.Contains(p) {
			return true
		}
	}
	for _, c := range b.classes {
		if inside(c.own.base, c.own.off) {
			return true
		}
		for i := range c.cur {
			if inside(c.chunks[i].base, c.chunks[i].used) {
				return true
			}
		}
		for _, chunk := range c.large {
			if inside(chunk.base, chunk.size) {
				return true
			}
		}
	}
	return false
}
