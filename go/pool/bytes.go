package pool

import (
	"fmt"
	"io"
	"math"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/tenure-alloc/tenure/go/internal/registry"
)

const (
	leastClassShift = 6 // 64 bytes
	defaultMaxSize  = 1 << 20
	leastRead       = 512
)

// BytesConfig describes a pool of buffers. The zero value of a field takes its default.
type BytesConfig struct {
	// Name is shown in statistics and panics, cut to 31 bytes. ReadStats lists a named pool.
	Name string
	// MaxSize is the capacity in bytes of the largest buffers that are kept; it is rounded up to a
	// class. Default: 1 MiB.
	MaxSize int
	// MaxBytes is the most bytes of idle buffers; negative: none. Default: 64 MiB.
	MaxBytes int64
	// IdleDecay is as in Config.
	IdleDecay time.Duration
	// Zero clears a buffer, up to its capacity, when it is put.
	Zero bool
}

// Bytes is a pool of byte buffers in classes of sizes, four to each doubling. All methods may be
// called by any goroutine at any time. A buffer counts against the bound with the size of its
// class.
type Bytes struct {
	_            noCopy
	cfg          BytesConfig
	classes      []*Pool[*Buf]
	large        atomic.Int64 // built without a class
	largeRefused atomic.Int64
}

// Buf is a buffer of a Bytes pool. B is the caller's to use, also with append: Put goes by the
// capacity that B has then. A Buf is for one goroutine at a time.
type Buf struct {
	B []byte

	class *Pool[*Buf] // of node
	node  *node[*Buf]
}

// NewBytes makes a pool with no buffer in it. It panics if MaxSize is negative, and as New does.
func NewBytes(cfg BytesConfig) *Bytes {
	if cfg.MaxSize < 0 {
		panic("pool: negative MaxSize")
	}
	if cfg.MaxSize == 0 {
		cfg.MaxSize = defaultMaxSize
	}
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = defaultMaxBytes
	}
	cfg.Name = cfg.Name[:min(len(cfg.Name), nameLength)]
	p := &Bytes{cfg: cfg}
	room := newReserve(cfg.MaxBytes)
	for class := range classOf(min(cfg.MaxSize, math.MaxInt/4)) + 1 {
		size := classSize(class)
		one := newPool(Config[*Buf]{
			Name:      cfg.Name,
			New:       func() *Buf { return &Buf{B: make([]byte, size)} },
			MaxBytes:  cfg.MaxBytes,
			IdleDecay: cfg.IdleDecay,
		})
		one.reserve, one.size, one.most, one.homed = room, int64(size), math.MaxInt, true
		p.classes = append(p.classes, one)
	}
	if cfg.Name != "" {
		registry.Add(&named, p, (*Bytes).Stats)
	}
	return p
}

// The smallest class of at least n bytes. Class 0 has 64 bytes; then four classes lead to each
// doubling.
func classOf(n int) int {
	if n <= 1<<leastClassShift {
		return 0
	}
	shift := bits.Len(uint(n-1)) - 3
	quarter := (n-1)>>shift - 4
	return (shift-(leastClassShift-2))*4 + quarter + 1
}

func classSize(class int) int {
	if class == 0 {
		return 1 << leastClassShift
	}
	return ((class-1)%4 + 5) << ((class-1)/4 + leastClassShift - 2)
}

// GetN returns a buffer with len(B) == n, whose bytes are arbitrary unless the pool has Zero. Above
// MaxSize it comes from the heap. It panics for a negative n and after Close. A hit allocates
// nothing.
func (p *Bytes) GetN(n int) *Buf {
	if n < 0 {
		panic(fmt.Sprintf("pool %q: GetN(%d): negative size", p.cfg.Name, n))
	}
	class := classOf(n)
	if class >= len(p.classes) {
		p.large.Add(1)
		return &Buf{B: make([]byte, n)}
	}
	b := p.classes[class].Get()
	b.B = b.B[:n]
	return b
}

// Get returns an empty buffer of the smallest class, to be grown by append or Write.
func (p *Bytes) Get() *Buf {
	return p.GetN(0)
}

// Put gives a buffer back; the caller must use neither it nor its B any more. It goes to the
// largest class that its capacity has room for. nil is ignored. Double Puts are found as in
// Pool.Put.
func (p *Bytes) Put(b *Buf) {
	if b == nil {
		return
	}
	capacity := cap(b.B)
	class := classOf(capacity)
	if classSize(class) > capacity {
		class--
	}
	if class < 0 || class >= len(p.classes) {
		p.largeRefused.Add(1)
		return
	}
	if p.cfg.Zero {
		clear(b.B[:capacity])
	}
	one := p.classes[class]
	if checked {
		one.check.put(p.cfg.Name, b)
	}
	if b.class != one {
		b.class, b.node = one, nil
	}
	if !one.keepHomed(b, &b.node) {
		one.refused.Add(1)
		one.destroy(b)
	}
}

// Drain lets every idle buffer go and returns their number.
func (p *Bytes) Drain() (count int) {
	for _, one := range p.classes {
		count += one.Drain()
	}
	return count
}

// Close is Pool.Close.
func (p *Bytes) Close() {
	for _, one := range p.classes {
		one.Close()
	}
	registry.Remove(&named, p)
}

// Stats returns the sums over all classes; buffers above MaxSize are in Misses, Refused and InUse.
func (p *Bytes) Stats() Stats {
	large, refused := p.large.Load(), p.largeRefused.Load()
	sum := Stats{Name: p.cfg.Name, Misses: large, Refused: refused, InUse: large - refused}
	for _, one := range p.classes {
		s := one.Stats()
		sum.Idle += s.Idle
		sum.IdleBytes += s.IdleBytes
		sum.InUse += s.InUse
		sum.Hits += s.Hits
		sum.Misses += s.Misses
		sum.Refused += s.Refused
		sum.Evicted += s.Evicted
	}
	return sum
}

// Len returns len(B).
func (b *Buf) Len() int { return len(b.B) }

// Reset empties the buffer and keeps its capacity.
func (b *Buf) Reset() { b.B = b.B[:0] }

// String returns a copy of B as a string.
func (b *Buf) String() string { return string(b.B) }

// Write appends bytes; it never fails.
func (b *Buf) Write(bytes []byte) (int, error) {
	b.B = append(b.B, bytes...)
	return len(bytes), nil
}

// WriteString appends a string; it never fails.
func (b *Buf) WriteString(s string) (int, error) {
	b.B = append(b.B, s...)
	return len(s), nil
}

// WriteByte appends a byte; it never fails.
func (b *Buf) WriteByte(c byte) error {
	b.B = append(b.B, c)
	return nil
}

// ReadFrom appends all that r has left.
func (b *Buf) ReadFrom(r io.Reader) (count int64, err error) {
	for {
		if cap(b.B)-len(b.B) < leastRead {
			b.B = append(b.B, make([]byte, leastRead)...)[:len(b.B)]
		}
		n, err := r.Read(b.B[len(b.B):cap(b.B)])
		b.B = b.B[:len(b.B)+n]
		count += int64(n)
		if err == io.EOF {
			return count, nil
		}
		if err != nil {
			return count, err
		}
	}
}

// WriteTo writes B to w.
func (b *Buf) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(b.B)
	return int64(n), err
}
