package pool

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/tenure-alloc/tenure/go/internal/registry"
)

const (
	defaultMaxBytes  = 64 << 20
	defaultIdleDecay = time.Second
	nameLength       = 31
)

// Config describes a pool. The zero value of a field takes its default.
type Config[T any] struct {
	// Name is shown in statistics and panics, cut to 31 bytes. ReadStats lists a named pool.
	Name string
	// New builds an item when Get finds no idle one. Default: the zero value of T.
	// It may panic: the pool stays as it was.
	New func() T
	// Reset makes a used item fit for its next user; it runs once in each Put. Default: nothing.
	Reset func(T)
	// Destroy takes an item apart that leaves the pool. It runs without a lock, in the call that
	// lets the item go or, when the item was idle for too long, on a goroutine of the runtime's
	// timers.
	Destroy func(T)
	// MaxItems is the most idle items; negative: none. Default: as many as MaxBytes allows.
	MaxItems int
	// MaxBytes is the most bytes of idle items; negative: none. Default: 64 MiB.
	MaxBytes int64
	// SizeOf returns the bytes that an item holds. Default: the size of T; for a pointer, of its
	// element too; for a slice, of its capacity too.
	SizeOf func(T) int64
	// IdleDecay is the length of one window. An item that was idle for two whole windows in a row is
	// destroyed. Default: a second; negative: idle items stay until Drain.
	IdleDecay time.Duration
}

// Pool keeps used items for their next users. Make one with New; a Pool must not be copied.
//
// All methods may be called by any goroutine at any time, except those of a Local.
type Pool[T any] struct {
	_ noCopy

	// Nodes on their way: full ones hold an idle item, empty ones are permits for the next. Both
	// are only hints that keep a node near the processor that used it last: the runtime may drop
	// them, because nodes has every node.
	full  atomic.Pointer[sync.Pool]
	empty sync.Pool

	window atomic.Uint32 // counts the ticks of the timer
	cfg    Config[T]
	sizeOf func(T) int64 // nil: every item has `size` bytes
	size   int64
	most   int // nodes
	isPtr  bool
	homed  bool // items know their nodes, which never are in `empty`

	// Each idle item takes its bytes from here, or each node if all items have one size.
	reserve *reserve

	misses, prefilled, refused atomic.Int64
	localHits                  atomic.Int64
	check                      checker

	mu sync.Mutex
	// The first `shelved` ones hold items that no Get has needed since the window began, the oldest
	// first. `full` has no hints to them.
	nodes   []*node[T]
	shelved int
	cursor  int   // among the others
	evicted int64 // idle items that were destroyed
	hits    int64 // of nodes that are gone
	locals  int
	timer   *time.Timer
	ticking bool
	closed  bool
}

type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// A node is a place for one idle item. Its state says who may touch the item: with nodeEmpty the
// only goroutine that has the node from Pool.empty or the item that knows it, otherwise the
// goroutine whose CompareAndSwap ended nodeFull.
type node[T any] struct {
	state atomic.Uint64 // kind, 2 bits; window of the last change, 16 bits; hits, 46 bits
	size  int64
	item  T
}

const (
	nodeEmpty = 0
	nodeFull  = 1
	nodeDead  = 2
	kindMask  = 3

	windowShift = 2
	windowMask  = 0xffff
	hitShift    = 18
	oneHit      = 1 << hitShift
)

// The number of nodes that a miss looks at before it builds an item, or gives one up for want of
// room. The runtime drops hints only when it collects garbage, so a miss that finds nothing here is
// most often a true one.
const searchLength = 256

// A pool with so few idle items is left as it is when a window begins.
const fewItems = 16

// A reserve is bytes that idle items may hold.
type reserve struct {
	most int64
	left atomic.Int64
}

func newReserve(most int64) *reserve {
	r := &reserve{most: max(0, most)}
	r.left.Store(r.most)
	return r
}

func (r *reserve) take(bytes int64) bool {
	if r.left.Add(-bytes) >= 0 {
		return true
	}
	r.left.Add(bytes)
	return false
}

func (r *reserve) give(bytes int64) {
	r.left.Add(bytes)
}

func (r *reserve) used() int64 {
	return r.most - r.left.Load()
}

// New makes a pool with no item in it. It panics if IdleDecay is positive but below a millisecond.
func New[T any](cfg Config[T]) *Pool[T] {
	p := newPool(cfg)
	if p.cfg.Name != "" {
		registry.Add(&named, p, (*Pool[T]).Stats)
	}
	return p
}

// Makes a pool that is in no list.
func newPool[T any](cfg Config[T]) *Pool[T] {
	if cfg.IdleDecay > 0 && cfg.IdleDecay < time.Millisecond {
		panic("pool: IdleDecay is below a millisecond")
	}
	if cfg.IdleDecay == 0 {
		cfg.IdleDecay = defaultIdleDecay
	}
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = defaultMaxBytes
	}
	cfg.Name = cfg.Name[:min(len(cfg.Name), nameLength)]
	p := &Pool[T]{cfg: cfg, most: cfg.MaxItems, reserve: newReserve(cfg.MaxBytes)}
	if p.most == 0 {
		p.most = math.MaxInt
	}
	p.full.Store(new(sync.Pool))
	p.measure()
	return p
}

// Sets size, sizeOf and isPtr.
func (p *Pool[T]) measure() {
	t := reflect.TypeFor[T]()
	p.size = int64(t.Size())
	switch t.Kind() {
	case reflect.Pointer:
		p.isPtr = true
		p.size += int64(t.Elem().Size())
	case reflect.Slice:
		head, each := int64(t.Size()), int64(t.Elem().Size())
		p.sizeOf = func(item T) int64 {
			return head + each*int64(reflect.ValueOf(&item).Elem().Cap())
		}
	}
	if p.cfg.SizeOf != nil {
		p.sizeOf = p.cfg.SizeOf
	}
}

// Get returns an idle item, or a new one where there is none. The caller owns it until Put. It panics
// after Close. A hit allocates nothing.
func (p *Pool[T]) Get() T {
	item, ok := p.TryGet()
	if !ok {
		item = p.build()
	}
	return item
}

// TryGet returns an idle item, and false where there is none. It builds nothing. It panics after
// Close.
func (p *Pool[T]) TryGet() (item T, ok bool) {
	for {
		n, _ := p.full.Load().Get().(*node[T])
		if n == nil {
			return p.search()
		}
		if item, ok = p.take(n); ok {
			return item, true
		}
	}
}

// Put gives an item back for its next user; the caller must not use it any more. An item that the
// bound leaves no room for is destroyed, as is every item after Close. A nil pointer is ignored. An
// item that Get did not return is welcome.
//
// With the race detector or the build tag tenurecheck, Put panics when the item is idle already; the
// message names the places of both Puts.
func (p *Pool[T]) Put(item T) {
	if p.isNil(item) {
		return
	}
	if checked {
		p.check.put(p.cfg.Name, item)
	}
	if p.cfg.Reset != nil {
		p.cfg.Reset(item)
	}
	if !p.keep(item) {
		p.refused.Add(1)
		p.destroy(item)
	}
}

func (p *Pool[T]) isNil(item T) bool {
	return p.isPtr && *(*unsafe.Pointer)(unsafe.Pointer(&item)) == nil
}

// Takes the item of a node that seems to be full, and makes the node a permit.
func (p *Pool[T]) take(n *node[T]) (item T, ok bool) {
	if item, ok = p.claim(n, nodeEmpty); ok && !p.homed {
		p.empty.Put(n)
	}
	return item, ok
}

// Takes the item of a full node, which then is of another kind; false when another goroutine was
// faster.
func (p *Pool[T]) claim(n *node[T], kind uint64) (item T, ok bool) {
	old := n.state.Load()
	if old&kindMask != nodeFull {
		return item, false
	}
	hits := old >> hitShift << hitShift
	if kind == nodeEmpty {
		hits += oneHit
	}
	if !n.state.CompareAndSwap(old, hits|p.now()|kind) {
		return item, false
	}
	item = n.item
	if !p.homed || kind == nodeDead {
		var zero T
		n.item = zero
	}
	if p.sizeOf != nil {
		p.reserve.give(n.size)
	}
	if checked {
		p.check.get(item)
	}
	return item, true
}

// Fills a node that the caller has from Pool.empty; false when it is dead.
func (p *Pool[T]) fill(n *node[T], item T, size int64) bool {
	old := n.state.Load()
	if old&kindMask != nodeEmpty {
		return false
	}
	n.item, n.size = item, size
	if !n.state.CompareAndSwap(old, old>>hitShift<<hitShift|p.now()|nodeFull) {
		var zero T
		n.item = zero
		return false
	}
	p.full.Load().Put(n)
	return true
}

func (p *Pool[T]) now() uint64 {
	return uint64(p.window.Load()&windowMask) << windowShift
}

// Makes an item idle; false when there is no room.
func (p *Pool[T]) keep(item T) bool {
	size := int64(0)
	if p.sizeOf != nil {
		size = max(0, p.sizeOf(item))
		if !p.reserve.take(size) {
			return false
		}
	}
	for {
		n, _ := p.empty.Get().(*node[T])
		if n == nil {
			break
		}
		if p.fill(n, item, size) {
			return true
		}
	}
	if n := p.permit(); n != nil && p.fill(n, item, size) {
		return true
	}
	p.reserve.give(size)
	return false
}

// Makes an item idle that keeps its node while it is out; false when there is no room. Other items may
// have taken the node's permit meanwhile.
func (p *Pool[T]) keepHomed(item T, home **node[T]) bool {
	if n := *home; n != nil && p.fill(n, item, 0) {
		return true
	}
	*home = p.permit()
	return *home != nil && p.fill(*home, item, 0)
}

// Returns a new empty node that only the caller knows; nil when the bound is reached or the pool is
// closed.
func (p *Pool[T]) permit() *node[T] {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.most <= 0 {
		return nil
	}
	n := new(node[T])
	n.state.Store(p.now() | nodeEmpty)
	if len(p.nodes) < p.most && (p.sizeOf != nil || p.reserve.take(p.size)) {
		p.nodes = append(p.nodes, n)
		p.arm()
		return n
	}
	// The runtime may have dropped the hint to an empty node, so this one takes the place of any.
	for range min(len(p.nodes)-p.shelved, searchLength) {
		if i := p.next(); p.kill(p.nodes[i]) {
			p.nodes[i] = n
			return n
		}
	}
	return nil
}

// Moves the cursor to the next node that is not shelved.
func (p *Pool[T]) next() int {
	p.cursor++
	if p.cursor < p.shelved || p.cursor >= len(p.nodes) {
		p.cursor = p.shelved
	}
	return p.cursor
}

// Ends an empty node; its hint, if there is one, leads to a dead node.
func (p *Pool[T]) kill(n *node[T]) bool {
	old := n.state.Load()
	if old&kindMask != nodeEmpty || !n.state.CompareAndSwap(old, old&^kindMask|nodeDead) {
		return false
	}
	p.hits += int64(old >> hitShift)
	return true
}

// Looks for an idle item whose hint the runtime dropped, or another processor has; then on the shelf.
func (p *Pool[T]) search() (item T, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		panic(fmt.Sprintf("pool %q: Get after Close", p.cfg.Name))
	}
	for range min(len(p.nodes)-p.shelved, searchLength) {
		if item, ok = p.take(p.nodes[p.next()]); ok {
			return item, true
		}
	}
	for p.shelved > 0 {
		p.shelved--
		if item, ok = p.take(p.nodes[p.shelved]); ok {
			return item, true
		}
	}
	return item, false
}

func (p *Pool[T]) build() (item T) {
	if p.cfg.New != nil {
		item = p.cfg.New()
	}
	p.misses.Add(1)
	return item
}

func (p *Pool[T]) destroy(item T) {
	if checked {
		p.check.get(item)
	}
	if p.cfg.Destroy != nil {
		p.cfg.Destroy(item)
	}
}

// Prefill builds n idle items ahead of their use, as many as the bound leaves room for, and returns
// their number. Like others, they are destroyed when two windows in a row do not need them.
func (p *Pool[T]) Prefill(n int) int {
	for i := range n {
		var item T
		if p.cfg.New != nil {
			item = p.cfg.New()
		}
		if checked {
			p.check.put(p.cfg.Name, item)
		}
		if !p.keep(item) {
			p.destroy(item)
			return i
		}
		p.prefilled.Add(1)
	}
	return max(n, 0)
}

// Drain destroys every idle item, except those in a Local, and returns their number.
func (p *Pool[T]) Drain() int {
	p.mu.Lock()
	items := p.evict(0, false)
	p.mu.Unlock()
	return p.destroyAll(items)
}

// Close destroys every idle item. Items that are out are destroyed when they are put; Get and
// TryGet panic from now on. Closing again does nothing.
func (p *Pool[T]) Close() {
	p.mu.Lock()
	p.closed = true
	p.window.Add(1) // each Local notices
	var items []T
	for len(p.nodes) > 0 { // other goroutines may take and fill nodes meanwhile
		items = append(items, p.evict(0, true)...)
	}
	if p.timer != nil {
		p.timer.Stop()
	}
	p.mu.Unlock()
	p.destroyAll(items)
	if p.cfg.Name != "" {
		registry.Remove(&named, p)
	}
}

func (p *Pool[T]) destroyAll(items []T) int {
	for _, item := range items {
		p.destroy(item)
	}
	return len(items)
}

// Takes the idle items that were put at least `age` windows ago; with `empties`, also ends the
// nodes that have been empty as long.
func (p *Pool[T]) evict(age uint32, empties bool) (items []T) {
	left, shelved := p.nodes[:0], 0
	for i, n := range p.nodes {
		if i == p.shelved {
			shelved = len(left)
		}
		state := n.state.Load()
		if p.age(state) < age {
			left = append(left, n)
		} else if item, ok := p.claim(n, nodeDead); ok {
			items = append(items, item)
			p.hits += int64(state >> hitShift)
		} else if !empties || !p.kill(n) {
			left = append(left, n)
		}
	}
	if p.sizeOf == nil {
		p.reserve.give(p.size * int64(len(p.nodes)-len(left)))
	}
	if p.shelved == len(p.nodes) {
		shelved = len(left)
	}
	clear(p.nodes[len(left):])
	p.nodes, p.shelved = left, shelved
	p.evicted += int64(len(items))
	return items
}

// Returns the number of windows that began since the last change of a node.
func (p *Pool[T]) age(state uint64) uint32 {
	return (p.window.Load() - uint32(state>>windowShift)) & windowMask
}

// Shelves every idle item, so that a Get takes those first that Gets of the same window have used.
// Without this, items that one processor gets and another one puts come out by turns, and all of a
// burst seems to be in use.
func (p *Pool[T]) shelve() {
	var idle [3][]*node[T] // by age
	var others []*node[T]
	for _, n := range p.nodes {
		state := n.state.Load()
		if state&kindMask != nodeFull {
			others = append(others, n)
			continue
		}
		age := min(p.age(state), 2)
		idle[age] = append(idle[age], n)
	}
	p.shelved = len(p.nodes) - len(others)
	if p.shelved <= fewItems {
		p.shelved = 0
		return
	}
	p.nodes = slices.Concat(idle[2], idle[1], idle[0], others)
	p.full.Store(new(sync.Pool))
}

// Starts the timer where something can become too old.
func (p *Pool[T]) arm() {
	if p.ticking || p.cfg.IdleDecay < 0 || p.closed {
		return
	}
	p.ticking = true
	if p.timer == nil {
		p.timer = time.AfterFunc(p.cfg.IdleDecay, p.tick)
	} else {
		p.timer.Reset(p.cfg.IdleDecay)
	}
}

// Ends a window. An item that was put in window w was idle throughout w+1 and w+2 when w+3 begins.
// Without nodes the timer rests, so that a pool without traffic costs nothing.
func (p *Pool[T]) tick() {
	p.mu.Lock()
	p.ticking = false
	p.window.Add(1)
	items := p.evict(3, true)
	p.shelve()
	if len(p.nodes) > 0 || p.locals > 0 {
		p.arm()
	}
	p.mu.Unlock()
	p.destroyAll(items)
}
