package pool

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// An item that knows whether it is out.
type item struct {
	id     int
	resets int
	out    atomic.Bool
}

// Counts the callbacks of a pool.
type counts struct {
	built, reset, destroyed atomic.Int64
}

// A configuration whose windows only tick by hand.
func (c *counts) config() Config[*item] {
	return Config[*item]{
		New:       func() *item { return &item{id: int(c.built.Add(1))} },
		Reset:     func(i *item) { c.reset.Add(1); i.resets++ },
		Destroy:   func(i *item) { c.destroyed.Add(1) },
		IdleDecay: -1,
	}
}

// The length of a test: ten times as long in make check.
func repeats(count int) int {
	if os.Getenv("TENURE_LONG") != "" {
		return count * 10
	}
	return count
}

func get[T any](p *Pool[T], count int) (items []T) {
	for range count {
		items = append(items, p.Get())
	}
	return items
}

func put[T any](p *Pool[T], items []T) {
	for _, i := range items {
		p.Put(i)
	}
}

func expectPanic(t *testing.T, words string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if text := fmt.Sprint(recover()); !strings.Contains(text, words) {
			t.Errorf("panic %q, want %q in it", text, words)
		}
	}()
	f()
}

// B43, B44, B45: an idle item comes before a new one, as Reset left it.
func TestIdleItemsComeFirst(t *testing.T) {
	var c counts
	p := New(c.config())
	items := get(p, 100)
	put(p, items)
	seen := map[*item]bool{}
	for _, i := range get(p, 100) {
		if i.resets != 1 || seen[i] {
			t.Fatalf("item %d: %d resets, seen %v", i.id, i.resets, seen[i])
		}
		seen[i] = true
	}
	if c.built.Load() != 100 || c.reset.Load() != 100 {
		t.Errorf("%d built, %d reset", c.built.Load(), c.reset.Load())
	}
	if i := p.Get(); i.id != 101 || i.resets != 0 {
		t.Errorf("the pool was empty, and Get returned item %d", i.id)
	}
}

// B43: without New and Reset, an item is the zero value first and then as it was put.
func TestWithoutCallbacks(t *testing.T) {
	p := New(Config[int]{IdleDecay: -1})
	if v := p.Get(); v != 0 {
		t.Errorf("new item %d", v)
	}
	p.Put(7)
	if v, ok := p.TryGet(); v != 7 || !ok {
		t.Errorf("TryGet: %d %v", v, ok)
	}
	if _, ok := p.TryGet(); ok {
		t.Error("TryGet found an item in an empty pool")
	}
}

// B12: a nil pointer is ignored.
func TestPutNil(t *testing.T) {
	var c counts
	p := New(c.config())
	p.Put(nil)
	p.Local().Put(nil)
	if s := p.Stats(); s.Idle != 0 || c.reset.Load() != 0 {
		t.Errorf("%+v, %d resets", s, c.reset.Load())
	}
}

// B7, B46: a New that panics changes nothing.
func TestNewPanics(t *testing.T) {
	fail := true
	p := New(Config[*int]{New: func() *int {
		if fail {
			panic("no item")
		}
		return new(int)
	}})
	before := p.Stats()
	expectPanic(t, "no item", func() { p.Get() })
	if after := p.Stats(); after != before {
		t.Errorf("%+v became %+v", before, after)
	}
	fail = false
	p.Put(p.Get())
	if s := p.Stats(); s.Idle != 1 {
		t.Errorf("%+v", s)
	}
}

// B47: each item that was built is destroyed once, also those that are out at Close.
func TestEachItemIsDestroyedOnce(t *testing.T) {
	var c counts
	p := New(c.config())
	items := get(p, 50)
	put(p, items[:30])
	p.Close()
	p.Close()
	if c.destroyed.Load() != 30 {
		t.Errorf("%d destroyed in Close", c.destroyed.Load())
	}
	put(p, items[30:])
	if c.destroyed.Load() != 50 {
		t.Errorf("%d destroyed, 50 built", c.destroyed.Load())
	}
	expectPanic(t, "Get after Close", func() { p.Get() })
	expectPanic(t, "Get after Close", func() { p.TryGet() })
	if s := p.Stats(); s.InUse != 0 || s.Idle != 0 {
		t.Errorf("%+v", s)
	}
}

// B48: the number of idle items has a bound.
func TestMaxItems(t *testing.T) {
	for _, most := range []int{-1, 1, 100} {
		var c counts
		cfg := c.config()
		cfg.MaxItems = most
		p := New(cfg)
		put(p, get(p, 300))
		s := p.Stats()
		refused := int64(300 - s.Idle)
		if s.Idle != max(0, most) || s.Refused != refused || c.destroyed.Load() != refused {
			t.Errorf("MaxItems %d: %+v, %d destroyed", most, s, c.destroyed.Load())
		}
		// A place whose item is out serves another item, also after its hint is gone.
		items := get(p, s.Idle)
		runtime.GC()
		runtime.GC()
		put(p, items)
		if s := p.Stats(); s.Idle != max(0, most) {
			t.Errorf("MaxItems %d, after a collection: %+v", most, s)
		}
	}
}

// B48: so have their bytes, for items of one size and of many.
func TestMaxBytes(t *testing.T) {
	type kilobyte [1016]byte // and its pointer
	p := New(Config[*kilobyte]{New: func() *kilobyte { return new(kilobyte) }, MaxBytes: 10 * 1024})
	put(p, get(p, 100))
	if s := p.Stats(); s.Idle != 10 || s.IdleBytes != 10*1024 {
		t.Errorf("one size: %+v", s)
	}
	b := New(Config[[]byte]{MaxBytes: 100 * 1024})
	for i := range 100 {
		b.Put(make([]byte, 0, 1000+i*100))
		if s := b.Stats(); s.IdleBytes > 100*1024 {
			t.Fatalf("many sizes: %+v", s)
		}
	}
	held := b.Stats().IdleBytes
	if held < 90*1024 {
		t.Errorf("%d bytes held of %d", held, 100*1024)
	}
	b.Drain()
	if s := b.Stats(); s.Idle != 0 || s.IdleBytes != 0 {
		t.Errorf("after Drain: %+v", s)
	}
}

// B49, B76: a burst is given back while one item at a time stays in use, and the working set stays.
func TestBurstDecaysInTraffic(t *testing.T) {
	for _, working := range []int{1, 10} {
		var c counts
		p := New(c.config())
		put(p, get(p, 1024))
		for window := range 4 {
			put(p, get(p, working))
			if s := p.Stats(); window < 3 && s.Idle != 1024 {
				t.Errorf("window %d: %d idle, too early", window, s.Idle)
			}
			p.tick()
			put(p, get(p, working))
		}
		// The race detector drops hints at random, so that more items are in use by turns.
		most := working
		if checked {
			most = 10 * working
		}
		s := p.Stats()
		if s.Idle < working || s.Idle > most || c.destroyed.Load() != int64(1024-s.Idle) {
			t.Errorf("%d at a time: %+v", working, s)
		}
		for range 10 {
			runtime.GC()
			put(p, get(p, working))
			p.tick()
		}
		if s := p.Stats(); s.Misses != 1024 || s.Idle < working || s.Idle > most {
			t.Errorf("%d at a time, later: %+v", working, s)
		}
	}
}

// B49, B76: a burst is given back while one goroutine gets items and another one, on another
// processor, puts them, with collections or without. Each item would come out by turns if the oldest
// came first.
func TestBurstDecaysInHandOver(t *testing.T) {
	for _, working := range []int{1, 20, 40} {
		for _, collect := range []bool{false, true} {
			var c counts
			p := New(c.config())
			put(p, get(p, 1024))
			passed, done := make(chan *item, working), make(chan bool)
			go func() {
				for i := range passed {
					p.Put(i)
				}
				close(done)
			}()
			for range 5 {
				for round := range 10_000 {
					passed <- p.Get()
					if collect && round%1000 == 0 {
						runtime.GC()
					}
				}
				p.tick()
			}
			close(passed)
			<-done
			s := p.Stats()
			most := working + fewItems + 4*runtime.GOMAXPROCS(0)
			if checked { // The race detector drops hints at random.
				most = searchLength
			}
			if s.Idle > most || !checked && c.built.Load() > 1024 {
				t.Errorf("%d at a time, collections: %v: %+v", working, collect, s)
			}
		}
	}
}

// A window begins while nodes are shelved, taken and given back. No item is lost, and none is built
// that an idle one could stand for.
func TestShelf(t *testing.T) {
	var c counts
	p := New(c.config())
	items := get(p, 100)
	put(p, items[:60])
	p.tick()
	if p.shelved != 60 {
		t.Fatalf("%d are shelved", p.shelved)
	}
	items = append(items[60:], get(p, 10)...)
	put(p, items[:20])
	if p.shelved != 50 || p.Drain() != 70 || p.shelved != 0 {
		t.Errorf("%d are shelved after a Drain", p.shelved)
	}
	put(p, items[20:])
	p.tick()
	put(p, get(p, 30))
	if s := p.Stats(); c.built.Load() != 100 || s.Idle != 30 || s.InUse != 0 {
		t.Errorf("%d built, %+v", c.built.Load(), s)
	}
}

// B49: without any traffic, every idle item goes, and the timer rests.
func TestBurstDecaysWithoutTraffic(t *testing.T) {
	var c counts
	cfg := c.config()
	cfg.IdleDecay = 5 * time.Millisecond
	p := New(cfg)
	put(p, get(p, 1024))
	for deadline := time.Now().Add(20 * time.Second); ; {
		p.mu.Lock()
		ticking, nodes := p.ticking, len(p.nodes)
		p.mu.Unlock()
		if !ticking && nodes == 0 && c.destroyed.Load() == 1024 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%+v, ticking %v", p.Stats(), ticking)
		}
		time.Sleep(time.Millisecond)
	}
	p.Put(p.Get())
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ticking {
		t.Error("the timer did not start again")
	}
}

// The working set survives collections, also without traffic between them.
func TestCollectionsKeepIdleItems(t *testing.T) {
	var c counts
	p := New(c.config())
	put(p, get(p, 1000))
	for range 4 {
		runtime.GC()
	}
	put(p, get(p, 1000))
	if s := p.Stats(); s.Misses != 1000 || s.Hits != 1000 || s.Idle != 1000 {
		t.Errorf("%+v", s)
	}
}

// B17, B50: Drain destroys every idle item and none that is out, and finds nothing when called again.
func TestDrain(t *testing.T) {
	var c counts
	p := New(c.config())
	items := get(p, 20)
	put(p, items[:15])
	if n := p.Drain(); n != 15 || c.destroyed.Load() != 15 {
		t.Errorf("Drain: %d, %d destroyed", n, c.destroyed.Load())
	}
	if n := p.Drain(); n != 0 {
		t.Errorf("second Drain: %d", n)
	}
	put(p, items[15:])
	if s := p.Stats(); s.Idle != 5 || s.InUse != 0 {
		t.Errorf("%+v", s)
	}
}

func TestPrefill(t *testing.T) {
	var c counts
	cfg := c.config()
	cfg.MaxItems = 8
	p := New(cfg)
	if n := p.Prefill(5); n != 5 || p.Prefill(-1) != 0 {
		t.Errorf("Prefill(5): %d", n)
	}
	if n := p.Prefill(5); n != 3 || c.built.Load() != c.destroyed.Load()+8 {
		t.Errorf("Prefill beyond the bound: %d, %d built", n, c.built.Load())
	}
	put(p, get(p, 8))
	if s := p.Stats(); s.Misses != 0 || s.Hits != 8 || s.InUse != 0 || c.reset.Load() != 8 {
		t.Errorf("%+v, %d resets", s, c.reset.Load())
	}
}

// B16: a steady repetition builds nothing and allocates nothing.
func TestSteadyUseAllocatesNothing(t *testing.T) {
	if checked {
		t.Skip("the checks of double Puts allocate, and the race detector drops hints")
	}
	p := New(Config[*[4096]byte]{New: func() *[4096]byte { return new([4096]byte) }})
	l := p.Local()
	b := NewBytes(BytesConfig{})
	for name, cycle := range map[string]func(){
		"Pool":  func() { p.Put(p.Get()) },
		"Local": func() { l.Put(l.Get()) },
		"Bytes": func() { b.Put(b.GetN(4096)) },
	} {
		cycle()
		if n := testing.AllocsPerRun(1000, cycle); n != 0 {
			t.Errorf("%s: %v allocations in a cycle", name, n)
		}
	}
}

// B35, B70: a named pool is listed until it is closed or forgotten; its name is cut.
func TestNamedPoolsAreListed(t *testing.T) {
	name := strings.Repeat("n", 40)
	find := func() (found []Stats) {
		for _, s := range ReadStats() {
			if s.Name == name[:31] {
				found = append(found, s)
			}
		}
		return found
	}
	p := New(Config[int]{Name: name})
	b := NewBytes(BytesConfig{Name: name})
	p.Put(1)
	if s := find(); len(s) != 2 || s[0].Idle != 1 || s[1].Idle != 0 {
		t.Errorf("listed: %+v", s)
	}
	p.Close()
	if s := find(); len(s) != 1 {
		t.Errorf("listed after Close: %+v", s)
	}
	runtime.KeepAlive(b)
	b = nil
	for range 100 {
		if runtime.GC(); len(find()) == 0 {
			return
		}
	}
	t.Errorf("a forgotten pool stays listed")
}

// B11: a window that is too short is refused.
func TestBadOptions(t *testing.T) {
	expectPanic(t, "below a millisecond", func() { New(Config[int]{IdleDecay: 1}) })
	expectPanic(t, "negative MaxSize", func() { NewBytes(BytesConfig{MaxSize: -1}) })
}

func TestDoublePut(t *testing.T) {
	if !checked {
		t.Skip("needs the race detector or -tags tenurecheck")
	}
	p := New(Config[*item]{Name: "twice", New: func() *item { return new(item) }})
	i := p.Get()
	p.Put(i)
	for _, put := range []func(*item){p.Put, p.Local().Put} {
		expectPanic(t, `pool "twice": double Put at `, func() { put(i) })
		expectPanic(t, "pool_test.go:", func() { put(i) })
	}
	if got := p.Get(); got != i {
		t.Error("the item is not idle after the refusal")
	}
	p.Put(i)
	b := NewBytes(BytesConfig{Name: "buffers"})
	buf := b.GetN(100)
	b.Put(buf)
	expectPanic(t, `pool "buffers": double Put`, func() { b.Put(buf) })

	empty := New(Config[*struct{}]{})
	empty.Put(&struct{}{})
	empty.Put(&struct{}{}) // of no size: may have the same address
}

// B44: a Local hands out what was put last; B48: it holds few items; B38, B41: the others are the
// pool's.
func TestLocal(t *testing.T) {
	var c counts
	p := New(c.config())
	l := p.Local()
	a, b := l.Get(), l.Get()
	l.Put(a)
	l.Put(b)
	if l.Get() != b || l.Get() != a {
		t.Error("not the last first")
	}
	l.Put(a)
	l.Put(b)
	items := get(p, 1000)
	for _, i := range items {
		l.Put(i)
	}
	if s := p.Stats(); s.Idle+len(l.items) != 1002 || len(l.items) > localLength {
		t.Errorf("%d in the Local, %+v", len(l.items), s)
	}
	l.Flush()
	if s := p.Stats(); s.Idle != 1002 || s.InUse != 0 || s.Hits != 2 || len(l.items) != 0 {
		t.Errorf("after Flush: %d in the Local, %+v", len(l.items), s)
	}
	if c.reset.Load() != 2+2+1000 {
		t.Errorf("%d resets", c.reset.Load())
	}
	small := New(Config[*item]{MaxItems: 16})
	if l := small.Local(); cap(l.items) != 1 {
		t.Errorf("a Local of a pool of 16 holds %d", cap(l.items))
	}
	none := New(Config[*item]{MaxItems: -1}).Local()
	none.Put(new(item))
	if len(none.items) != 0 {
		t.Error("a Local of a pool of none holds an item")
	}
}

// B49 in a Local, used one at a time or not at all.
func TestLocalDecays(t *testing.T) {
	var c counts
	p := New(c.config())
	l := p.Local()
	for _, i := range get(p, 20) {
		l.Put(i)
	}
	for range 4 {
		l.Put(l.Get())
		p.tick()
	}
	if l.Put(l.Get()); len(l.items) != 1 || c.destroyed.Load() != 19 {
		t.Errorf("one at a time: %d left, %d destroyed", len(l.items), c.destroyed.Load())
	}
	for range 3 {
		p.tick()
	}
	if l.Get(); c.built.Load() != 21 || c.destroyed.Load() != 20 {
		t.Errorf("after a rest: %d built, %d destroyed", c.built.Load(), c.destroyed.Load())
	}
}

// B40: a Local of a closed pool destroys what it has and panics.
func TestLocalAfterClose(t *testing.T) {
	var c counts
	p := New(c.config())
	l := p.Local()
	a, b := l.Get(), l.Get()
	l.Put(a)
	p.Close()
	expectPanic(t, "Get after Close", func() { l.Get() })
	l.Put(b)
	if l.Flush(); c.destroyed.Load() != 2 {
		t.Errorf("%d destroyed", c.destroyed.Load())
	}
}

// B38: the items of a forgotten Local come back to the pool.
func TestForgottenLocal(t *testing.T) {
	var c counts
	p := New(c.config())
	func() {
		l := p.Local()
		l.Put(l.Get())
	}()
	for range 100 {
		runtime.GC()
		time.Sleep(time.Millisecond)
		if p.Stats().Idle == 1 {
			return
		}
	}
	t.Error("the item did not come back")
}

// B34, B36, B37, B41, B47, B48: many goroutines, with items that pass between them, ticks, drains and
// collections. No item has two users, and in the end all are accounted for.
func TestManyGoroutines(t *testing.T) {
	rounds := repeats(3000)
	var c counts
	cfg := c.config()
	cfg.MaxItems = 40
	p := New(cfg)
	passed := make(chan *item, 64)
	take := func(i *item) *item {
		if !i.out.CompareAndSwap(false, true) {
			t.Error("an item has two users")
		}
		return i
	}
	give := func(put func(*item), i *item) {
		i.out.Store(false)
		put(i)
	}
	var users, helpers sync.WaitGroup
	for user := range 6 {
		users.Add(1)
		go func() {
			defer users.Done()
			l := p.Local()
			for round := range rounds {
				g, put := p.Get, p.Put
				if user%2 == 1 {
					g, put = l.Get, l.Put
				}
				a := take(g())
				if b, ok := p.TryGet(); ok {
					give(put, take(b))
				}
				select {
				case passed <- a:
				case other := <-passed:
					give(put, other)
					give(put, a)
				}
				if round%1000 == 0 {
					runtime.Gosched()
				}
			}
			l.Flush()
		}()
	}
	stop := make(chan struct{})
	for _, help := range []func(){p.tick, func() { p.Drain() }, func() { p.Stats() }, runtime.GC} {
		helpers.Add(1)
		go func() {
			defer helpers.Done()
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
					help()
					if s := p.Stats(); s.Idle > 40 {
						t.Errorf("%d idle", s.Idle)
					}
				}
			}
		}()
	}
	users.Wait()
	close(stop)
	helpers.Wait()
	s := p.Stats()
	if s.InUse != int64(len(passed)) || s.Misses != c.built.Load() {
		t.Errorf("%d out: %+v, %d built", len(passed), s, c.built.Load())
	}
	for len(passed) > 0 {
		give(p.Put, <-passed)
	}
	p.Close()
	if s := p.Stats(); s.InUse != 0 || s.Idle != 0 || c.built.Load() != c.destroyed.Load() {
		t.Errorf("%+v, %d built, %d destroyed", s, c.built.Load(), c.destroyed.Load())
	}
}

// Close while others get and put: each item is destroyed once.
func TestCloseDuringUse(t *testing.T) {
	for range repeats(50) {
		var c counts
		p := New(c.config())
		var users sync.WaitGroup
		for range 4 {
			users.Add(1)
			go func() {
				defer users.Done()
				defer func() { _ = recover() }() // Get after Close
				for range 1000 {
					a, b := p.Get(), p.Get()
					p.Put(a)
					p.Put(b)
				}
			}()
		}
		runtime.Gosched()
		p.Close()
		users.Wait()
		// An item whose user's second Get panicked is out.
		if s := p.Stats(); s.InUse != c.built.Load()-c.destroyed.Load() || s.InUse > 4 || s.Idle != 0 {
			t.Fatalf("%+v, %d built, %d destroyed", s, c.built.Load(), c.destroyed.Load())
		}
	}
}
