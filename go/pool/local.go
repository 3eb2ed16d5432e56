package pool

import "runtime"

const (
	localLength = 32
	localShare  = 16 // a Local holds at most this part of the bound
)

// Local is a pool's front for one goroutine at a time: Get and Put of a few items without atomics.
// Its idle items come beside the pool's bound: at most 32, and at most a sixteenth of the bound,
// but one. Items that two windows did not need are destroyed when the Local is used next. Flush a
// Local before it rests for long; one that is forgotten is flushed after a garbage collection.
type Local[T any] struct {
	_        noCopy
	p        *Pool[T]
	items    []T
	window   uint32
	low      int // fewest items in this window
	lastLow  int // and in the one before
	hits     int64
	itemSize int64 // the most bytes of an item, where sizes differ
}

// Local returns a new front of the pool.
func (p *Pool[T]) Local() *Local[T] {
	most := p.most
	if p.sizeOf == nil && p.size > 0 {
		most = int(min(int64(most), p.reserve.most/p.size))
	}
	length := 0
	if most > 0 {
		length = max(1, min(most/localShare, localLength))
	}
	l := &Local[T]{p: p, items: make([]T, 0, length), window: p.window.Load()}
	if p.sizeOf != nil {
		l.itemSize = p.cfg.MaxBytes / localShare / int64(max(1, length))
	}
	p.mu.Lock()
	p.locals++
	p.arm()
	p.mu.Unlock()
	runtime.SetFinalizer(l, (*Local[T]).end)
	return l
}

// Get returns the item that was put last, otherwise one of the pool.
func (l *Local[T]) Get() T {
	if l.window != l.p.window.Load() {
		l.age()
	}
	top := len(l.items) - 1
	if top < 0 {
		return l.p.Get()
	}
	var zero T
	item := l.items[top]
	l.items[top] = zero
	l.items = l.items[:top]
	l.low = min(l.low, top)
	l.hits++
	if checked {
		l.p.check.get(item)
	}
	return item
}

// Put gives an item back; see Pool.Put.
func (l *Local[T]) Put(item T) {
	p := l.p
	if l.window != p.window.Load() {
		l.age()
	}
	if !l.fits(item) {
		p.Put(item)
		return
	}
	if checked {
		p.check.put(p.cfg.Name, item)
	}
	if p.cfg.Reset != nil {
		p.cfg.Reset(item)
	}
	if len(l.items) == cap(l.items) {
		l.spill()
	}
	l.items = append(l.items, item)
}

// Tells whether the Local may keep an item.
func (l *Local[T]) fits(item T) bool {
	if cap(l.items) == 0 || l.p.isNil(item) {
		return false
	}
	return l.p.sizeOf == nil || l.p.sizeOf(item) <= l.itemSize
}

// Flush gives the idle items to the pool, for other goroutines.
func (l *Local[T]) Flush() {
	l.give(len(l.items))
	l.low, l.lastLow = 0, 0
	l.p.localHits.Add(l.hits)
	l.hits = 0
}

// Makes room by giving the older half to the pool.
func (l *Local[T]) spill() {
	l.give((len(l.items) + 1) / 2)
	l.low = min(l.low, len(l.items))
}

// Gives the oldest items to the pool, and destroys those that it has no room for.
func (l *Local[T]) give(count int) {
	for _, item := range l.items[:count] {
		if !l.p.keep(item) {
			l.p.refused.Add(1)
			l.p.destroy(item)
		}
	}
	l.forget(count)
}

func (l *Local[T]) forget(count int) {
	left := copy(l.items, l.items[count:])
	clear(l.items[left:])
	l.items = l.items[:left]
}

// Begins a window: destroys the items that two whole windows did not need; in a closed pool, all.
func (l *Local[T]) age() {
	p := l.p
	p.mu.Lock()
	window, closed := p.window.Load(), p.closed
	p.mu.Unlock()
	old := min(l.low, l.lastLow)
	if closed || window-l.window >= 3 {
		old = len(l.items)
	}
	items := append([]T(nil), l.items[:old]...)
	l.forget(old)
	p.mu.Lock()
	p.evicted += int64(old)
	p.mu.Unlock()
	p.destroyAll(items)
	l.lastLow, l.low = max(0, l.low-old), len(l.items)
	l.window = window
	p.localHits.Add(l.hits)
	l.hits = 0
}

// The finalizer.
func (l *Local[T]) end() {
	l.Flush()
	l.p.mu.Lock()
	l.p.locals--
	l.p.mu.Unlock()
}
