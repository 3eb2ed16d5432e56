package arena

import (
	"math"
	"sync"
	"unsafe"

	"github.com/tenure-alloc/tenure/go/internal/pages"
)

const (
	wordSize = unsafe.Sizeof(uintptr(0))

	// The largest chunk of objects with pointers. Behind a header of 8 bytes it is the largest size
	// that the runtime still takes from a cache without a lock.
	largestChunk = 32760
	// A slice with pointers that is longer gets memory of its own.
	largestInChunk = largestChunk / 4
	// The first chunk of a type has so many objects; each further one has twice as many.
	firstCount = 8

	// A freed arena leaves so many bytes of each type's chunks to the next arena.
	warmBytes = 256 << 10
	// A freed arena with more types leaves nothing.
	warmClasses = 128

	// No size exceeds this, so that offsets never overflow and make does not panic.
	largestSize = min(math.MaxInt>>1, 1<<46)

	hashFactor = 0x9e3779b97f4a7c15 & math.MaxUint
	hashShift  = 20
	firstSlots = 16
	mostSlots  = 1024
)

// A bump hands out memory by moving an offset. The fast path may go up to end, which is 0 in guard
// mode, so that every call is a slow one there; the memory ends at limit.
type bump struct {
	base       unsafe.Pointer
	off        uintptr
	end, limit uintptr
}

// A slot remembers where a type's objects come from. Its type is the pointer to the type descriptor of
// *T, the first word of an interface that holds a *T.
type slot struct {
	word  unsafe.Pointer
	bump  *bump
	class *class
	_     uintptr // a power of two in all, for the address of a slot
}

const slotSize = unsafe.Sizeof(slot{})

// A body is all of an arena that a later arena can go on with: the table of types, and their chunks.
type body struct {
	slots unsafe.Pointer // an array of slots
	mask  uintptr        // of byte offsets in it
	owner *record        // the arena that uses this body, or nil

	bytes   byteSpace
	classes []*class
	byWord  map[unsafe.Pointer]*class
	full    int64 // bytes used in chunks that are left, and in large blocks
}

// A byteSpace has the objects without pointers, of every type.
type byteSpace struct {
	bump
	chunks []pages.Run // of equal size; Dirty is what was used, except of the current one
	cur    int         // -1 before the first
	large  []pages.Run
	lately int // chunks used before the last reset
}

// A class has the objects of one type.
type class struct {
	typ  *typeInfo
	bump *bump // the class's own, or the byteSpace's for a type without pointers

	own     bump
	chunks  []heapChunk
	cur     int // -1 before the first
	charged int // so many chunks count for the current arena; the others are left by earlier ones
	large   []heapChunk
	lately  int
}

// A heapChunk is an array of one type on the Go heap. The garbage collector keeps it as long as any
// pointer into it, and follows the pointers in it.
type heapChunk struct {
	base unsafe.Pointer
	size uintptr
	used uintptr // not of the current chunk
}

var bodies = sync.Pool{New: func() any { return newBody() }}

func newBody() *body {
	b := &body{}
	b.setSlots(firstSlots)
	b.bytes.cur = -1
	return b
}

func (b *body) setSlots(count int) {
	b.slots = unsafe.Pointer(unsafe.SliceData(make([]slot, count)))
	b.mask = uintptr(count-1) * slotSize
}

// slot returns the only place in the table where the type can be.
func (b *body) slot(word unsafe.Pointer) *slot {
	return (*slot)(unsafe.Add(b.slots, uintptr(word)*hashFactor>>hashShift&b.mask))
}

// class returns the class of a type, which it makes when the type is new here.
func (b *body) class(t *typeInfo) *class {
	c := b.byWord[t.word]
	if c == nil {
		c = &class{typ: t, cur: -1}
		c.bump = &c.own
		if !t.pointers {
			c.bump = &b.bytes.bump
		}
		if b.byWord == nil {
			b.byWord = make(map[unsafe.Pointer]*class)
		}
		b.byWord[t.word] = c
		b.classes = append(b.classes, c)
	}
	b.remember(c)
	return c
}

// remember puts a class into its slot. The table grows until types have slots of their own.
func (b *body) remember(c *class) {
	s := b.slot(c.typ.word)
	if count := int(b.mask/slotSize) + 1; s.word != nil && count < mostSlots {
		b.setSlots(2 * count)
		for _, c := range b.classes {
			if s := b.slot(c.typ.word); s.word == nil {
				*s = slot{word: c.typ.word, bump: c.bump, class: c}
			}
		}
		s = b.slot(c.typ.word)
	}
	*s = slot{word: c.typ.word, bump: c.bump, class: c}
}

// used returns the bytes of live objects, with what lies between them.
func (b *body) used() int64 {
	used := b.full + int64(b.bytes.off)
	for _, c := range b.classes {
		used += int64(c.own.off)
	}
	return used
}

func (b *bump) set(base unsafe.Pointer, size uintptr, guarded bool) {
	b.base, b.off, b.limit, b.end = base, 0, size, size
	if guarded {
		b.end = 0
	}
}

// take returns zeroed memory for size bytes of a class, size being at most largestSize.
func (a *Arena) take(c *class, size uintptr) unsafe.Pointer {
	b := c.bump
	off := roundUp(b.off, c.typ.align)
	if off+size <= b.limit {
		b.off = off + size
		return unsafe.Add(b.base, off)
	}
	var p unsafe.Pointer
	if c.typ.pointers {
		p = a.takeTyped(c, size)
	} else {
		p = a.takeBytes(size)
	}
	a.rec.used.Store(a.body.used())
	return p
}

func (a *Arena) takeBytes(size uintptr) unsafe.Pointer {
	s := &a.body.bytes
	if size > a.rec.chunkSize/2 {
		run := a.getRun(size)
		clear(unsafe.Slice((*byte)(run.Base), run.Dirty))
		run.Dirty = run.Size
		s.large = append(s.large, run)
		a.body.full += int64(size)
		return run.Base
	}
	if s.cur+1 == len(s.chunks) {
		s.chunks = append(s.chunks, a.getRun(a.rec.chunkSize))
	}
	if s.cur >= 0 {
		s.chunks[s.cur].Dirty = s.off
		a.body.full += int64(s.off)
	}
	s.enter(s.cur+1, a.rec.mode == Guarded)
	s.off = size
	return s.base
}

// enter goes on in the chunk, zeroed as far as it was used before.
func (s *byteSpace) enter(chunk int, guarded bool) {
	s.cur = chunk
	run := &s.chunks[chunk]
	clear(unsafe.Slice((*byte)(run.Base), run.Dirty))
	run.Dirty = 0
	s.set(run.Base, run.Size, guarded)
}

func (a *Arena) getRun(size uintptr) pages.Run {
	size = roundUp(size, pages.Unit)
	a.charge(size)
	run, err := pages.Get(size)
	if err != nil {
		a.rec.account.Discharge(int64(size))
		a.leave()
		panic(err)
	}
	if pages.OnHeap {
		heapRanges.add(run.Base, run.Size)
	}
	return run
}

func (a *Arena) takeTyped(c *class, size uintptr) unsafe.Pointer {
	t := c.typ
	if size > largestInChunk {
		a.charge(size)
		chunk := heapChunk{base: t.make(size / t.size), size: size, used: size}
		heapRanges.add(chunk.base, size)
		c.large = append(c.large, chunk)
		a.body.full += int64(size)
		return chunk.base
	}
	next := c.cur + 1
	if next == len(c.chunks) || c.chunks[next].size < size {
		a.addChunk(c, size)
	} else if next >= c.charged {
		a.charge(c.chunks[next].size)
		c.charged = next + 1
	}
	if c.cur >= 0 {
		c.chunks[c.cur].used = c.own.off
		a.body.full += int64(c.own.off)
	}
	c.cur = next
	c.own.set(c.chunks[next].base, c.chunks[next].size, a.rec.mode == Guarded)
	c.own.off = size
	return c.own.base
}

// addChunk puts a new chunk with room for size bytes behind the current one, in place of those that
// are too short.
func (a *Arena) addChunk(c *class, size uintptr) {
	t := c.typ
	count := uintptr(firstCount)
	if c.cur >= 0 {
		count = 2 * c.chunks[c.cur].size / t.size
	}
	count = max(min(count, largestChunk/t.size), size/t.size)
	a.charge(count * t.size)
	a.keepChunks(c, c.cur+1)
	chunk := heapChunk{base: t.make(count), size: count * t.size}
	heapRanges.add(chunk.base, chunk.size)
	c.chunks = append(c.chunks, chunk)
	c.charged = len(c.chunks)
}

// keepChunks leaves the first keep chunks of a class; the garbage collector has the others.
func (a *Arena) keepChunks(c *class, keep int) {
	for i := keep; i < len(c.chunks); i++ {
		if i < c.charged {
			a.rec.account.Discharge(int64(c.chunks[i].size))
		}
		c.chunks[i] = heapChunk{}
	}
	if keep < len(c.chunks) {
		c.chunks = c.chunks[:keep]
	}
	c.charged = min(c.charged, keep)
}

// charge counts bytes against the limits of the arena and those above it, or panics.
func (a *Arena) charge(size uintptr) {
	if size > largestSize {
		a.leave()
		panic(&pages.MemoryError{Size: size, Err: errTooLarge})
	}
	if by := a.rec.account.Charge(int64(size)); by != nil {
		a.rec.limitHits.Add(1)
		a.leave()
		panic(&LimitError{
			Name: a.rec.name, ID: a.rec.id,
			Limit: by.Limit(), Held: by.Held(), Wanted: int64(size),
		})
	}
}
