package pool

import (
	"bytes"
	"io"
	"math/rand"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"
)

func TestClasses(t *testing.T) {
	for class := range 100 {
		size := classSize(class)
		if classOf(size) != class || classOf(size+1) != class+1 {
			t.Fatalf("class %d of %d bytes: %d, %d", class, size, classOf(size), classOf(size+1))
		}
		if class > 0 && size*4 > classSize(class-1)*5 {
			t.Errorf("class %d of %d bytes is more than a quarter above the one before", class, size)
		}
	}
	if classSize(0) != 64 || classOf(0) != 0 || classOf(64) != 0 || classSize(classOf(4096)) != 4096 {
		t.Error("wrong ends")
	}
}

// B3, B44: a buffer has the length asked for, can be written and comes back.
func TestGetN(t *testing.T) {
	p := NewBytes(BytesConfig{IdleDecay: -1})
	const rounds = 2000
	random := rand.New(rand.NewSource(1))
	for range rounds {
		n := random.Intn(100_000)
		b := p.GetN(n)
		if len(b.B) != n {
			t.Fatalf("GetN(%d): %d bytes", n, len(b.B))
		}
		if n > 0 {
			b.B[0], b.B[n-1] = 1, 1
		}
		p.Put(b)
	}
	s := p.Stats()
	if s.Hits+s.Misses != rounds || s.Misses > int64(classOf(100_000)+1) {
		t.Errorf("%+v", s)
	}
	if int64(s.Idle) != s.Misses || s.InUse != 0 {
		t.Errorf("%+v", s)
	}
	if n := p.Drain(); n != s.Idle || p.Stats().IdleBytes != 0 {
		t.Errorf("Drain: %d, then %+v", n, p.Stats())
	}
}

// B12 and bad input.
func TestBytesBadInput(t *testing.T) {
	p := NewBytes(BytesConfig{Name: "b", MaxSize: 1000})
	p.Put(nil)
	expectPanic(t, `pool "b": GetN(-1): negative size`, func() { p.GetN(-1) })
	p.Put(&Buf{}) // too small for any class
	large := p.GetN(5000)
	if s := p.Stats(); s.InUse != 0 || len(large.B) != 5000 { // one foreign, one large
		t.Errorf("%+v, %d bytes", s, len(large.B))
	}
	p.Put(large)
	if s := p.Stats(); s.Idle != 0 || s.Refused != 2 {
		t.Errorf("%+v", s)
	}
	if b := p.GetN(0); b == nil || len(b.B) != 0 || cap(b.B) == 0 {
		t.Error("GetN(0) has no buffer")
	}
	p.Close()
	expectPanic(t, `pool "b": Get after Close`, func() { p.GetN(10) })
}

// A buffer goes by the capacity that it has when it is put.
func TestGrownBuffer(t *testing.T) {
	p := NewBytes(BytesConfig{IdleDecay: -1})
	b := p.Get()
	for range 1000 {
		b.B = append(b.B, "0123456789"...)
	}
	p.Put(b)
	class := classOf(cap(b.B))
	if classSize(class) > cap(b.B) {
		class--
	}
	if again := p.GetN(classSize(class)); again != b {
		t.Error("the grown buffer does not come back")
	}
}

// B48: the bound is one for all classes.
func TestBytesBound(t *testing.T) {
	const most = 100_000
	p := NewBytes(BytesConfig{MaxBytes: most, IdleDecay: -1})
	for round := range 10 {
		var out []*Buf
		for i := range 100 {
			out = append(out, p.GetN(100+(i*37+round*500)%5000))
		}
		for i, b := range out {
			p.Put(b)
			if i%10 != 0 {
				continue
			}
			if s := p.Stats(); s.IdleBytes > most {
				t.Fatalf("%d bytes idle", s.IdleBytes)
			}
		}
	}
	if s := p.Stats(); s.IdleBytes < most*9/10 || s.InUse != 0 {
		t.Errorf("%+v", s)
	}
	none := NewBytes(BytesConfig{MaxBytes: -1})
	none.Put(none.GetN(100))
	if s := none.Stats(); s.Idle != 0 || s.Refused != 1 {
		t.Errorf("%+v", s)
	}
}

// B37, B41, B48: many goroutines with buffers that pass between them, ticks, drains and
// collections, within a bound that is often reached. No buffer has two users.
func TestBytesWithManyGoroutines(t *testing.T) {
	const most = 20_000
	p := NewBytes(BytesConfig{MaxBytes: most, IdleDecay: -1})
	var out sync.Map
	passed := make(chan *Buf, 16)
	put := func(b *Buf) {
		out.Delete(b)
		p.Put(b)
	}
	var users, helpers sync.WaitGroup
	for user := range 6 {
		users.Add(1)
		go func() {
			defer users.Done()
			for round := range repeats(3000) {
				b := p.GetN((user*131 + round*17) % 2000)
				if _, twice := out.LoadOrStore(b, true); twice {
					t.Error("a buffer has two users")
				}
				if round%5 == 0 {
					b.B = append(b.B, make([]byte, round%3000)...)
				}
				select {
				case passed <- b:
				case other := <-passed:
					put(other)
					put(b)
				}
			}
		}()
	}
	stop := make(chan struct{})
	helpers.Add(1)
	go func() {
		defer helpers.Done()
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
				for _, one := range p.classes {
					one.tick()
				}
				p.Drain()
				runtime.GC()
				if s := p.Stats(); s.IdleBytes > most {
					t.Errorf("%d bytes idle", s.IdleBytes)
				}
			}
		}
	}()
	users.Wait()
	close(stop)
	helpers.Wait()
	if s := p.Stats(); s.InUse != int64(len(passed)) {
		t.Errorf("%d out: %+v", len(passed), s)
	}
	for len(passed) > 0 {
		put(<-passed)
	}
	p.Close()
	if s := p.Stats(); s.InUse != 0 || s.Idle != 0 || p.classes[0].reserve.used() != 0 {
		t.Errorf("%+v, %d bytes reserved", s, p.classes[0].reserve.used())
	}
}

// B18: with Zero, no one can read what a buffer held.
func TestZero(t *testing.T) {
	p := NewBytes(BytesConfig{Zero: true, IdleDecay: -1})
	b := p.GetN(100)
	copy(b.B, strings.Repeat("secret", 10))
	b.B = b.B[:3]
	p.Put(b)
	b = p.GetN(128 - 16)
	if whole := b.B[:cap(b.B)]; !bytes.Equal(whole, make([]byte, cap(b.B))) {
		t.Errorf("%q", whole)
	}
}

func TestBufIsAWriterAndAReader(t *testing.T) {
	p := NewBytes(BytesConfig{})
	b := p.Get()
	text := strings.Repeat("0123456789", 500)
	if n, err := b.ReadFrom(iotest.OneByteReader(strings.NewReader(text))); n != 5000 || err != nil {
		t.Errorf("ReadFrom: %d %v", n, err)
	}
	if _, err := b.ReadFrom(iotest.ErrReader(io.ErrUnexpectedEOF)); err != io.ErrUnexpectedEOF {
		t.Errorf("ReadFrom: %v", err)
	}
	b.Write([]byte("a"))
	b.WriteString("b")
	b.WriteByte('c')
	var to strings.Builder
	n, err := b.WriteTo(&to)
	if n != 5003 || err != nil || to.String() != text+"abc" || b.String() != to.String() {
		t.Errorf("WriteTo: %d %v", n, err)
	}
	if b.Reset(); b.Len() != 0 {
		t.Error("not empty after Reset")
	}
}
