package arena

import (
	"bytes"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"unsafe"
)

// An object of the model: what was written to it, and how to see that it is still there.
type object struct {
	node  *node // or nil
	value int
	live  bool
	intact,
	owned func() bool
}

type marked struct {
	mark    Mark
	objects int
}

type modelArena struct {
	a       *Arena
	objects []*object
	marks   []marked
	parent  *modelArena
	dead    bool
}

// A model plays operations that a source of bytes chooses on a few arenas, and knows what each object
// has to contain. Nodes point to nodes of any arena and to the heap.
type model struct {
	t      *testing.T
	mode   Mode
	next   func() byte
	arenas []*modelArena
	nodes  []*object
	count  int
}

const (
	modelArenas  = 4
	modelObjects = 2000
)

func (m *model) number() int { return int(m.next())<<8 | int(m.next()) }

func (m *model) arena() *modelArena {
	i := int(m.next()) % modelArenas
	if i >= len(m.arenas) {
		m.arenas = append(m.arenas, &modelArena{a: NewArena(m.mode, Limit(1<<30))})
		i = len(m.arenas) - 1
	}
	return m.arenas[i]
}

func (m *model) add(at *modelArena, o *object) {
	o.live = true
	at.objects = append(at.objects, o)
	if o.node != nil {
		m.nodes = append(m.nodes, o)
	}
	if !o.owned() {
		m.t.Fatalf("operation %d: a new object is not owned", m.count)
	}
	if len(at.objects) > modelObjects {
		m.end(at, at.a.Reset)
	}
}

func (m *model) addNode(at *modelArena, n *node) {
	if *n != (node{}) {
		m.t.Fatalf("operation %d: a new node is %v", m.count, *n)
	}
	value, name := m.count, strings.Repeat("x", int(m.next())%50)
	*n = node{nil, name, value}
	var target *object
	if len(m.nodes) > 0 {
		target = m.nodes[m.number()%len(m.nodes)]
		n.next = target.node
	}
	m.add(at, &object{
		node: n, value: value,
		intact: func() bool {
			followed := target == nil || n.next == target.node && (!target.live ||
				n.next.value == target.value)
			return n.value == value && n.name == name && followed
		},
		owned: func() bool { return at.a.Owns(unsafe.Pointer(n)) },
	})
}

func (m *model) addBytes(at *modelArena, b []byte) {
	fill := byte(m.count)
	for i := range b {
		b[i] = fill
	}
	want := bytes.Repeat([]byte{fill}, len(b))
	m.add(at, &object{
		intact: func() bool { return bytes.Equal(b, want) },
		owned:  func() bool { return len(b) == 0 || at.a.Owns(unsafe.Pointer(&b[len(b)-1])) },
	})
}

func (m *model) zeroed(b []byte) []byte {
	if len(bytes.Trim(b, "\x00")) != 0 {
		m.t.Fatalf("operation %d: new bytes are not zero", m.count)
	}
	return b
}

// verify looks at every live object of an arena.
func (m *model) verify(at *modelArena) {
	for i, o := range at.objects {
		if !o.intact() || !o.owned() {
			m.t.Fatalf("operation %d: object %d of %d was changed", m.count, i, len(at.objects))
		}
	}
}

// forget ends the objects from number first on.
func (m *model) forget(at *modelArena, first int) {
	for _, o := range at.objects[first:] {
		o.live = false
	}
	at.objects = at.objects[:first]
	live := m.nodes[:0]
	for _, o := range m.nodes {
		if o.live {
			live = append(live, o)
		}
	}
	clear(m.nodes[len(live):])
	m.nodes = live
}

// end forgets an arena's objects and its children by f, which is Reset or Free.
func (m *model) end(at *modelArena, f func()) {
	m.verify(at)
	f()
	m.forget(at, 0)
	at.marks = nil
	for _, other := range m.arenas {
		for up := other.parent; up != nil && !other.dead; up = up.parent {
			if up == at {
				m.forget(other, 0)
				other.dead = true
			}
		}
	}
	m.bury()
}

func (m *model) bury() {
	live := m.arenas[:0]
	for _, at := range m.arenas {
		if !at.dead {
			live = append(live, at)
		}
	}
	m.arenas = live
}

func (m *model) step() {
	m.count++
	at := m.arena()
	a := at.a
	switch op := m.next() % 32; op {
	default:
		m.addNode(at, New[node](a))
	case 0, 1, 2, 3:
		p := New[[24]byte](a)
		m.addBytes(at, m.zeroed(p[:]))
	case 4, 5, 6:
		m.addBytes(at, m.zeroed(MakeSlice[byte](a, m.number()%300, 300)))
	case 7:
		length := m.number()
		m.addBytes(at, m.zeroed(MakeSlice[byte](a, length, length)))
	case 8:
		nodes := MakeSlice[node](a, m.number()%400+1, 401)
		for i := 0; i < len(nodes); i += 100 {
			m.addNode(at, &nodes[i])
		}
	case 9, 10:
		m.addNode(at, ClassOf[node](a).New())
	case 11:
		m.addNode(at, NewOf(a, reflect.TypeFor[node]()).(*node))
	case 12, 13:
		var grown []byte
		for range m.next() % 40 {
			grown = Append(a, grown, 1, 2, 3)
		}
		m.addBytes(at, grown)
	case 14:
		m.addBytes(at, []byte(nil))
		m.addBytes(at, CopyBytes(a, make([]byte, m.next())))
	case 15, 16:
		at.marks = append(at.marks, marked{a.Mark(), len(at.objects)})
	case 17:
		if count := len(at.marks); count > 0 {
			i := int(m.next()) % count
			to := at.marks[i]
			at.marks = at.marks[:i+1]
			m.verify(at)
			a.Rewind(to.mark)
			m.forget(at, to.objects)
			m.verify(at)
		}
	case 18:
		if m.next()%8 == 0 {
			m.end(at, a.Reset)
		}
	case 19:
		if m.next()%16 == 0 {
			at.dead = true
			m.end(at, a.Free)
		}
	case 20:
		if len(m.arenas) < modelArenas {
			m.arenas = append(m.arenas, &modelArena{a: a.Child(), parent: at})
		}
	case 21:
		if m.next()%64 == 0 {
			runtime.GC()
		}
	case 22:
		if len(at.objects) > 0 {
			if o := at.objects[m.number()%len(at.objects)]; !o.intact() {
				m.t.Fatalf("operation %d: an object was changed", m.count)
			}
		}
	}
}

func (m *model) finish() {
	for _, at := range m.arenas {
		m.verify(at)
	}
	for len(m.arenas) > 0 {
		at := m.arenas[0]
		at.dead = true
		m.end(at, at.a.Free)
	}
}

// 10^7 operations in each mode in make check.
func TestModel(t *testing.T) {
	operations := scaled(20_000)
	if os.Getenv("TENURE_LONG") != "" && !testing.Short() {
		operations = 10_000_000
	}
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			random := rand.New(rand.NewPCG(seed, 1))
			m := &model{t: t, mode: mode, next: func() byte { return byte(random.Uint32()) }}
			for range operations {
				m.step()
			}
			m.finish()
		})
	}
}

func FuzzModel(f *testing.F) {
	f.Add([]byte("operations"), byte(0))
	f.Add(bytes.Repeat([]byte{0, 40, 15, 8, 17, 0, 18, 0}, 50), byte(1))
	f.Fuzz(func(t *testing.T, operations []byte, mode byte) {
		operations = operations[:min(len(operations), 4096)]
		m := &model{t: t, mode: Mode(mode%3) + Fast}
		m.next = func() byte {
			if len(operations) == 0 {
				return 0
			}
			b := operations[0]
			operations = operations[1:]
			return b
		}
		for len(operations) > 0 {
			m.step()
		}
		m.finish()
	})
}

func FuzzSlices(f *testing.F) {
	f.Add(3, 5, byte(0))
	f.Add(-1, math.MaxInt, byte(1))
	f.Fuzz(func(t *testing.T, length, capacity int, mode byte) {
		a := NewArena(Mode(mode%3)+Fast, Limit(1<<24))
		defer a.Free()
		for range 2 {
			var s []uint32
			refused := panicOf(func() { s = MakeSlice[uint32](a, length, capacity) })
			possible := 0 <= length && length <= capacity && capacity <= 1<<20
			if possible && (refused != nil || len(s) != length || cap(s) != capacity) {
				t.Fatalf("%v: length %d, capacity %d", refused, len(s), cap(s))
			}
			if _, isError := refused.(error); s == nil && !isError {
				t.Fatalf("neither a slice nor an error: %v", refused)
			}
			for i := range s {
				if s[i] != 0 {
					t.Fatal("not zero")
				}
				s[i] = 1
			}
			a.Reset()
		}
	})
}
