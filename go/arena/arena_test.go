package arena

import (
	"errors"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/tenure-alloc/tenure/go/internal/pages"
)

type node struct {
	next  *node
	name  string
	value int
}

type point struct{ x, y int }

var modes = map[string]Mode{"fast": Fast, "guarded": Guarded, "checked": Checked}

// inEachMode runs a test with a new arena of each mode.
func inEachMode(t *testing.T, test func(t *testing.T, a *Arena)) {
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			a := NewArena(mode, Name(t.Name()))
			test(t, a)
			if a.body != ended {
				a.Free()
			}
		})
	}
}

// scaled returns n, or less of it in short tests.
func scaled(n int) int {
	if testing.Short() {
		return n/10 + 1
	}
	return n
}

// panicOf returns what f panics with, or nil.
func panicOf(f func()) (value any) {
	defer func() { value = recover() }()
	f()
	return nil
}

// messageOf returns the message of the error that f panics with, or "".
func messageOf(f func()) string {
	if err, ok := panicOf(f).(error); ok {
		return err.Error()
	}
	return ""
}

func TestObjectsAreZeroedAlignedAndApart(t *testing.T) {
	// B1, B3, B6
	inEachMode(t, func(t *testing.T, a *Arena) {
		for range 3 {
			seen := map[uintptr]bool{}
			var bytes []*byte
			var points []*point
			var nodes []*node
			for i := range 3000 {
				b, p, n := New[byte](a), New[point](a), New[node](a)
				if *b != 0 || *p != (point{}) || *n != (node{}) {
					t.Fatalf("not zero: %v %v %v", *b, *p, *n)
				}
				for _, address := range []uintptr{uintptr(unsafe.Pointer(p)),
					uintptr(unsafe.Pointer(n))} {
					if address%8 != 0 || seen[address] {
						t.Fatalf("object %d is at %#x", i, address)
					}
					seen[address] = true
				}
				*b, *p, *n = byte(i), point{i, -i}, node{n, "x", i}
				bytes, points, nodes = append(bytes, b), append(points, p), append(nodes, n)
			}
			for i := range bytes {
				if *bytes[i] != byte(i) || *points[i] != (point{i, -i}) ||
					*nodes[i] != (node{nodes[i], "x", i}) {
					t.Fatalf("object %d was changed", i)
				}
			}
			a.Reset()
		}
	})
}

func TestNilArenaIsTheHeap(t *testing.T) {
	// B12
	var a *Arena
	New[point](a).x = 1
	if s := MakeSlice[int](a, 2, 5); len(s) != 2 || cap(s) != 5 {
		t.Errorf("length %d, capacity %d", len(s), cap(s))
	}
	if s := Append(a, []int{1}, 2, 3); !reflect.DeepEqual(s, []int{1, 2, 3}) {
		t.Error(s)
	}
	if CopyString(a, "abc") != "abc" || string(CopyBytes(a, []byte("abc"))) != "abc" {
		t.Error("copies differ")
	}
	*NewOf(a, reflect.TypeFor[int]()).(*int) = 1
	ClassOf[node](a).New().value = 1
	NewRef[node](a).Get().value = 1
	m := a.Mark()
	a.Rewind(m)
	a.Reset()
	a.Free()
	if a.Owns(unsafe.Pointer(&m)) || a.Stats() != (Stats{}) {
		t.Error("the heap owns and counts nothing")
	}
	child := a.Child(Name("child of nil"))
	New[point](child).x = 1
	child.Free()
}

func TestExperimentsSmokeTests(t *testing.T) {
	a := NewArena()
	defer a.Free()
	type T1 struct{ n int }
	New[T1](a).n = 1
	s := MakeSlice[T1](a, 99, 100)
	if len(s) != 99 || cap(s) != 100 {
		t.Errorf("length %d, capacity %d", len(s), cap(s))
	}
	s[1].n = 42
	for range scaled(10 * 64) {
		_ = New[[1 << 20]byte](a)
	}
}

func TestSlices(t *testing.T) {
	inEachMode(t, func(t *testing.T, a *Arena) {
		for _, length := range []int{0, 1, 7, 100, 10_000, 200_000} {
			numbers := MakeSlice[uint16](a, length/2, length)
			names := MakeSlice[string](a, length/2, length)
			if len(numbers) != length/2 || cap(numbers) != length || len(names) != length/2 ||
				cap(names) != length {
				t.Fatalf("%d, %d, %d, %d", len(numbers), cap(numbers), len(names), cap(names))
			}
			for i := range length {
				if numbers[:length][i] != 0 || names[:length][i] != "" {
					t.Fatalf("element %d is not zero", i)
				}
				numbers[:length][i], names[:length][i] = uint16(i), "x"
			}
		}
	})
}

func TestBadLengthsPanicAndChangeNothing(t *testing.T) {
	// B5, B7
	inEachMode(t, func(t *testing.T, a *Arena) {
		kept := New[point](a)
		kept.x = 7
		before := a.Stats()
		for _, bad := range []struct{ length, capacity int }{
			{-1, 1}, {1, 0}, {math.MinInt, math.MaxInt}, {0, -1}, {5, -5},
		} {
			want := "arena: MakeSlice: length"
			if got := messageOf(func() {
				MakeSlice[point](a, bad.length,
					bad.capacity)
			}); !strings.HasPrefix(got, want) {
				t.Errorf("%v: %q", bad, got)
			}
		}
		for _, capacity := range []int{math.MaxInt, math.MaxInt / 2, math.MaxInt / 16} {
			var tooLarge *MemoryError
			if err, _ := panicOf(func() { MakeSlice[point](a, 0, capacity) }).(error); !errors.As(err,
				&tooLarge) {
				t.Errorf("capacity %d: %v", capacity, err)
			}
		}
		if after := a.Stats(); after.Used != before.Used || after.Held != before.Held {
			t.Errorf("%+v became %+v", before, after)
		}
		if New[point](a).x = 1; kept.x != 7 {
			t.Error("a kept object changed")
		}
	})
}

func TestLimit(t *testing.T) {
	// B7, B9
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			a := NewArena(mode, Name("limited"), Limit(3*pages.Unit))
			defer a.Free()
			kept := New[point](a)
			kept.x = 7
			for round := range 3 {
				var refused *LimitError
				err, _ := panicOf(func() {
					for {
						New[[1000]byte](a)
					}
				}).(error)
				if !errors.As(err, &refused) || refused.Name != "limited" ||
					refused.Limit != 3*pages.Unit {
					t.Fatalf("round %d: %v", round, err)
				}
				if s := a.Stats(); s.Held > s.Limit || s.LimitHits != int64(2*round+1) {
					t.Errorf("%+v", s)
				}
				if kept.x != 7 {
					t.Error("a kept object changed")
				}
				New[byte](a)
				err, _ = panicOf(func() { MakeSlice[string](a, 0, 1_000_000) }).(error)
				if !errors.As(err, &refused) {
					t.Fatalf("round %d: %v", round, err)
				}
				a.Reset()
				kept = New[point](a)
				kept.x = 7
			}
			child := a.Child()
			if err, _ := panicOf(func() {
				MakeSlice[byte](child, 0,
					2*pages.Unit+1)
			}).(error); err == nil {
				t.Error("a child exceeded its parent's limit")
			}
			child.Free()
			New[byte](a)
		})
	}
}

func TestNewOf(t *testing.T) {
	inEachMode(t, func(t *testing.T, a *Arena) {
		type local struct {
			p *int
			n int
		}
		first := NewOf(a, reflect.TypeFor[local]()).(*local)
		second := New[local](a)
		third := NewOf(a, reflect.TypeFor[local]()).(*local)
		first.n, second.n, third.n = 1, 2, 3
		if first.n != 1 || second.n != 2 || third.n != 3 ||
			infoOfType(reflect.TypeFor[local]()) != infoOf[local]() {
			t.Error(first, second, third)
		}
		made := reflect.StructOf([]reflect.StructField{{Name: "P", Type: reflect.TypeFor[*int]()}})
		for range 100 {
			v := reflect.ValueOf(NewOf(a, made))
			if v.Type() != reflect.PointerTo(made) || !v.Elem().IsZero() {
				t.Fatal(v)
			}
			v.Elem().Field(0).Set(reflect.ValueOf(new(int)))
		}
		*NewOf(a, reflect.TypeFor[int]()).(*int) = 1
	})
}

func TestManyTypesKeepApart(t *testing.T) {
	inEachMode(t, func(t *testing.T, a *Arena) {
		for round := range 3 {
			var all []reflect.Value
			for n := range 300 {
				typ := reflect.ArrayOf(n%60+1, reflect.TypeFor[*int]())
				if n%2 == 0 {
					typ = reflect.ArrayOf(n%60+1, reflect.TypeFor[uint32]())
				}
				v := reflect.ValueOf(NewOf(a, typ)).Elem()
				if !v.IsZero() {
					t.Fatalf("round %d: %v is not zero", round, typ)
				}
				all = append(all, v)
			}
			for n, v := range all {
				if v.Index(0).Kind() == reflect.Uint32 {
					v.Index(v.Len() - 1).SetUint(uint64(n))
				} else {
					v.Index(v.Len() - 1).Set(reflect.ValueOf(&numbers[n]))
				}
			}
			for n, v := range all {
				last := v.Index(v.Len() - 1)
				if last.Kind() == reflect.Uint32 && last.Uint() != uint64(n) ||
					last.Kind() == reflect.Pointer && last.Interface() != &numbers[n] {
					t.Fatalf("object %d was changed", n)
				}
			}
			a.Reset()
		}
	})
}

var numbers [300]int

func TestAppend(t *testing.T) {
	// B19, B20, B21
	inEachMode(t, func(t *testing.T, a *Arena) {
		var s []int
		for i := range 5000 {
			s = Append(a, s, i)
		}
		for i, v := range s {
			if v != i {
				t.Fatalf("element %d is %d", i, v)
			}
		}
		if !a.Owns(unsafe.Pointer(unsafe.SliceData(s))) {
			t.Error("the elements are not in the arena")
		}
		last := MakeSlice[string](a, 1, 1)
		last[0] = "first"
		if grown := Append(a, last, "second", "third"); &grown[0] != &last[0] {
			t.Error("the last slice was moved")
		}
		New[string](a)
		moved := Append(a, last, "second")
		moved[0] = "changed"
		if &moved[0] == &last[0] || last[0] != "first" || moved[1] != "second" {
			t.Error(last, moved)
		}
		if s := Append(a, []byte("heap"), []byte(" and arena")...); string(s) != "heap and arena" {
			t.Errorf("%s", s)
		}
		if s := Append(a, []struct{}{{}}, struct{}{}); len(s) != 2 {
			t.Error(len(s))
		}
	})
}

func TestAppendBeyondCapacityOfAnArenaSliceGoesToTheHeap(t *testing.T) {
	inEachMode(t, func(t *testing.T, a *Arena) {
		s := MakeSlice[int](a, 2, 2)
		if s = append(s, 1); a.Owns(unsafe.Pointer(unsafe.SliceData(s))) {
			t.Error("append stayed in the arena")
		}
		a.Free()
		if s[2] != 1 {
			t.Error(s)
		}
	})
}

func TestCopies(t *testing.T) {
	// B26
	inEachMode(t, func(t *testing.T, a *Arena) {
		text := strings.Repeat("text", 1000)
		b, s := CopyBytes(a, []byte(text)), CopyString(a, text)
		if string(b) != text || s != text || cap(b) != len(b) {
			t.Error("copies differ")
		}
		if !a.Owns(unsafe.Pointer(unsafe.StringData(s))) || !a.Owns(unsafe.Pointer(&b[len(b)-1])) {
			t.Error("copies are not in the arena")
		}
		if CopyString(a, "") != "" || len(CopyBytes(a, nil)) != 0 {
			t.Error("empty copies are not empty")
		}
	})
}

func TestMarkAndRewind(t *testing.T) {
	// B22, B23
	inEachMode(t, func(t *testing.T, a *Arena) {
		var kept []*node
		var marks []Mark
		for i := range 200 {
			n := New[node](a)
			*n = node{name: CopyString(a, strings.Repeat("n", i*100)), value: i}
			kept = append(kept, n)
			marks = append(marks, a.Mark())
		}
		grown := MakeSlice[int](a, 1, 1)
		grown[0] = 5
		m := a.Mark()
		used := a.Stats().Used
		Append(a, grown, 6, 7)
		MakeSlice[byte](a, 1_000_000, 1_000_000)
		New[[20000]string](a)
		a.Rewind(m)
		if a.Stats().Used != used || grown[0] != 5 {
			t.Errorf("%d bytes are used, not %d; %v", a.Stats().Used, used, grown)
		}
		for i := len(kept) - 1; i >= 0; i -= 7 {
			a.Rewind(marks[i])
			for j, n := range kept[:i+1] {
				if n.value != j || len(n.name) != 100*j || strings.Trim(n.name, "n") != "" {
					t.Fatalf("object %d was changed after the rewind to %d", j, i)
				}
			}
			if n := New[node](a); *n != (node{}) {
				t.Fatalf("not zero: %v", n)
			}
			for _, b := range MakeSlice[byte](a, 3000, 3000) {
				if b != 0 {
					t.Fatal("not zero")
				}
			}
		}
		old := marks[0]
		a.Reset()
		if got := messageOf(func() { a.Rewind(old) }); !strings.Contains(got,
			"Rewind to a mark of another arena") {
			t.Errorf("%q", got)
		}
		other := NewArena()
		defer other.Free()
		if got := messageOf(func() { a.Rewind(other.Mark()) }); !strings.Contains(got,
			"Rewind to a mark of another arena") {
			t.Errorf("%q", got)
		}
		New[point](a).x = 1
	})
}

func TestResetKeepsWarmMemory(t *testing.T) {
	// B14, B15, B16
	a := NewArena(Fast)
	defer a.Free()
	var firstPoint *point
	var firstNode *node
	for round := range 5 {
		p, n := New[point](a), New[node](a)
		for range 20_000 {
			New[point](a)
			New[node](a)
		}
		if round > 0 && (p != firstPoint || n != firstNode) {
			t.Error("another first address")
		}
		firstPoint, firstNode = p, n
		a.Reset()
		if s := a.Stats(); s.Resets != int64(round+1) || s.Used != 0 || s.Held != s.Peak {
			t.Errorf("%+v", s)
		}
	}
	if allocated := testing.AllocsPerRun(10, func() {
		for range 20_000 {
			New[point](a)
			New[node](a)
		}
		a.Reset()
	}); allocated != 0 {
		t.Errorf("%v heap allocations in a round", allocated)
	}
}

func TestResetGivesABurstBack(t *testing.T) {
	// B24
	a := NewArena(Fast)
	defer a.Free()
	small := func() int64 {
		for range 1000 {
			New[point](a)
			New[node](a)
		}
		a.Reset()
		return a.Stats().Held
	}
	before := small()
	for range 100_000 {
		New[point](a)
		New[node](a)
	}
	MakeSlice[byte](a, 0, 10_000_000)
	MakeSlice[string](a, 0, 100_000)
	if a.Reset(); a.Stats().Held > 100_000*64 {
		t.Errorf("%d bytes are held after the burst", a.Stats().Held)
	}
	small()
	if after := small(); after != before {
		t.Errorf("%d bytes are held, before the burst %d", after, before)
	}
}

func TestOwns(t *testing.T) {
	// B33
	inEachMode(t, func(t *testing.T, a *Arena) {
		other := NewArena()
		defer other.Free()
		numbers, names := MakeSlice[int](a, 5000, 5000), MakeSlice[string](a, 50, 50)
		large, largeNames := MakeSlice[int](a, 200_000, 200_000), MakeSlice[string](a, 50_000, 50_000)
		all := []unsafe.Pointer{
			unsafe.Pointer(&numbers[0]), unsafe.Pointer(&numbers[4999]), unsafe.Pointer(&names[49]),
			unsafe.Pointer(&large[199_999]), unsafe.Pointer(&largeNames[49_999]),
			unsafe.Add(unsafe.Pointer(&largeNames[49_999]), 15), unsafe.Pointer(New[node](a)),
		}
		foreign := []unsafe.Pointer{
			nil, unsafe.Pointer(&all[0]), unsafe.Pointer(New[node](other)),
			unsafe.Pointer(New[point](other)),
		}
		for i, p := range all {
			if !a.Owns(p) || other.Owns(p) {
				t.Errorf("object %d: %v, %v", i, a.Owns(p), other.Owns(p))
			}
		}
		for i, p := range foreign {
			if a.Owns(p) {
				t.Errorf("foreign object %d is owned", i)
			}
		}
		if a.Reset(); a.Owns(all[0]) {
			t.Error("a forgotten object is owned")
		}
	})
}

func TestClone(t *testing.T) {
	inEachMode(t, func(t *testing.T, a *Arena) {
		type list []int
		inner := New[node](a)
		inner.value = 1
		n := New[node](a)
		*n = node{next: inner, name: CopyString(a, "arena"), value: 2}
		numbers := list(MakeSlice[int](a, 3, 10))
		numbers[2] = 9
		copied, copiedNumbers, copiedName := Clone(n), Clone(numbers), Clone(n.name)
		if copied == n || copied.value != 2 || &copiedNumbers[0] == &numbers[0] ||
			copiedNumbers[2] != 9 {
			t.Error(copied, copiedNumbers)
		}
		if a.Owns(unsafe.Pointer(copied)) || a.Owns(unsafe.Pointer(unsafe.StringData(copiedName))) {
			t.Error("a copy is in the arena")
		}
		if copied.next != inner {
			t.Error("Clone is not shallow")
		}
		heapNode, heapNumbers, heapName := &node{}, list{1}, strings.Clone("heap")
		if Clone(heapNode) != heapNode || &Clone(heapNumbers)[0] != &heapNumbers[0] ||
			unsafe.StringData(Clone(heapName)) != unsafe.StringData(heapName) {
			t.Error("Clone copied a value of the heap")
		}
		if Clone[*node](nil) != nil || Clone[[]int](nil) != nil || Clone("") != "" {
			t.Error("Clone of nothing")
		}
		for _, bad := range []func(){
			func() { Clone(1) }, func() { Clone(node{}) }, func() { Clone(map[int]int{}) },
			func() { Clone[any](nil) }, func() { Clone(func() {}) }, func() { Clone([1]int{}) },
		} {
			if got := messageOf(bad); !strings.HasSuffix(got, "only pointers, slices and strings") {
				t.Errorf("%q", got)
			}
		}
		if a.Free(); copiedName != "arena" || copiedNumbers[2] != 9 {
			t.Error("a copy ended with its arena")
		}
	})
}

func TestChildren(t *testing.T) {
	// B57, B13
	inEachMode(t, func(t *testing.T, a *Arena) {
		children := []*Arena{a.Child(Name("first")), a.Child(), a.Child(), a.Child()}
		grandchild := children[3].Child()
		for i, c := range append(children, grandchild) {
			New[node](c).value = i
			New[point](c).x = i
		}
		if got := children[0].Stats(); got.Parent != a.rec.id || got.Name != "first" ||
			got.Mode != a.rec.mode {
			t.Errorf("%+v", got)
		}
		children[1].Free()
		children[0].Free()
		a.Reset()
		for i, c := range append(children, grandchild) {
			if c.body != ended {
				t.Errorf("child %d lives on", i)
			}
		}
		last := a.Child()
		New[node](last)
		a.Free()
		if last.body != ended || a.rec.account.Held() != 0 {
			t.Errorf("a child lives on, or %d bytes are held", a.rec.account.Held())
		}
	})
}

func TestUseAfterFreeOfTheHandlePanics(t *testing.T) {
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			a := NewArena(mode, Name("req"))
			k, m, r := ClassOf[node](a), a.Mark(), NewRef[node](a)
			k.New()
			a.Free()
			next := NewArena(mode)
			defer next.Free()
			for what, use := range map[string]func(){
				"New": func() { New[node](a) }, "New int": func() { New[int](a) },
				"empty": func() { New[struct{}](a) }, "Class": func() { k.New() },
				"MakeSlice": func() { MakeSlice[int](a, 1, 1) }, "Append": func() { Append(a, nil, 1) },
				"NewOf": func() { NewOf(a, reflect.TypeFor[int]()) }, "Reset": a.Reset, "Free": a.Free,
				"Rewind": func() { a.Rewind(m) }, "Mark": func() { a.Mark() },
				"Stats": func() { a.Stats() },
				"Child": func() { a.Child() }, "Owns": func() { a.Owns(unsafe.Pointer(a)) },
				"Ref": func() { r.Get() }, "ClassOf": func() { ClassOf[node](a) },
				"RefTo": func() { RefTo(a, &node{}) }, "CopyString": func() { CopyString(a, "x") },
			} {
				err, ok := panicOf(use).(*FreedError)
				if !ok || err.Name != "req" || !strings.Contains(err.Created, "arena_test.go:") ||
					err.How != "freed" {
					t.Errorf("%s: %v", what, err)
				}
				if mode != Fast && !strings.Contains(err.Ended, "arena_test.go:") {
					t.Errorf("%s: freed at %s", what, err.Ended)
				}
			}
		})
	}
}

func TestRefs(t *testing.T) {
	inEachMode(t, func(t *testing.T, a *Arena) {
		r, other := NewRef[node](a), RefTo(a, New[point](a))
		r.Get().value, other.Get().x = 1, 2
		if !r.Valid() || !other.Valid() || r.Get().value != 1 {
			t.Error("a live object is not valid")
		}
		a.Reset()
		if r.Valid() || other.Valid() {
			t.Error("a forgotten object is valid")
		}
		if err, ok := panicOf(func() { r.Get() }).(*FreedError); !ok || (a.rec.mode != Fast &&
			err.How != "reset") {
			t.Errorf("%v", err)
		}
	})
}

func TestUseOnTwoGoroutinesIsCaught(t *testing.T) {
	a := NewArena(Guarded, Name("shared"))
	defer a.Free()
	a.enter()
	if got := messageOf(func() { New[point](a) }); !strings.Contains(got, `arena "shared"`) ||
		!strings.Contains(got, "used by two goroutines at once; created at") {
		t.Errorf("%q", got)
	}
	a.leave()
	New[point](a).x = 1
}

func TestDefaultModeInTestsIsGuarded(t *testing.T) {
	a := NewArena()
	defer a.Free()
	if got := a.Stats().Mode; got != Guarded {
		t.Errorf("mode %d", got)
	}
}

func TestReadStats(t *testing.T) {
	// B34, B70
	before := ReadStats()
	a := NewArena(Name("B70 parent"))
	b := a.Child(Name("B70 child"))
	MakeSlice[byte](b, 0, 1_000_000)
	p := ReadStats()
	if p.Created != before.Created+2 || len(p.Arenas) != len(before.Arenas)+2 {
		t.Fatalf("%+v", p)
	}
	last := p.Arenas[len(p.Arenas)-2:]
	if last[0].Name != "B70 parent" || last[1].Name != "B70 child" || last[1].Parent != last[0].ID ||
		last[0].Held != last[1].Held || last[1].Used != 1_000_000 || last[1].Held < 1_000_000 ||
		!strings.Contains(last[1].Created, "arena_test.go:") {
		t.Errorf("%+v", last)
	}
	if grown := p.OffHeap - before.OffHeap; grown != last[0].Held {
		t.Errorf("%d bytes more are in use, and %d held", grown, last[0].Held)
	}
	a.Free()
	if after := ReadStats(); after.Freed != before.Freed+2 || after.OffHeap != before.OffHeap ||
		len(after.Arenas) != len(before.Arenas) {
		t.Errorf("%+v became %+v", before, after)
	}
}

func TestFreedMemoryIsUsedAtOnce(t *testing.T) {
	// B10
	round := func() {
		a := NewArena(Fast)
		for range 40 {
			New[[1 << 20]byte](a)[5] = 1
		}
		a.Free()
	}
	round()
	var before, after runtime.MemStats
	held := ReadStats().OffHeap
	runtime.ReadMemStats(&before)
	for range scaled(50) {
		round()
	}
	runtime.ReadMemStats(&after)
	if now := ReadStats().OffHeap; now != held {
		t.Errorf("%d bytes are in use, before %d", now, held)
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); !pages.OnHeap && (grown > 1<<20 ||
		after.NumGC != before.NumGC) {
		t.Errorf("the heap grew by %d bytes, with %d collections", grown, after.NumGC-before.NumGC)
	}
}
