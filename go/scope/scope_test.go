package scope

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tenure-alloc/tenure/go/arena"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type point struct{ x, y int }

type node struct{ next *node }

func panicOf(f func()) (value any) {
	defer func() { value = recover() }()
	f()
	return nil
}

func TestEndOrder(t *testing.T) {
	// B57, B58, B59
	var order []string
	note := func(s *Scope, name string) {
		s.Defer(func() {
			arena.New[point](s.Arena()).x = 1
			inner := s.parent.Child("inner")
			if s.parent.state.Load() == stateLive {
				inner.End()
			}
			order = append(order, name)
		})
	}
	root := New("root")
	defer root.End()
	s := root.Child("s")
	arena.New[point](s.Arena())
	note(s, "s first")
	first, second := s.Child("first"), s.Child("second")
	for _, c := range []*Scope{first, second} {
		c.Defer(func() { order = append(order, c.name) })
	}
	third := first.Child("third")
	third.Defer(func() { order = append(order, "third") })
	note(s, "s last")
	s.End()
	if want := []string{"second", "third", "first", "s last", "s first"}; !slices.Equal(order, want) {
		t.Errorf("%v", order)
	}
	s.End()
	if len(order) != 5 || root.Stats().Held != 0 || root.Stats().Children != 0 {
		t.Errorf("%v, %+v", order, root.Stats())
	}
}

func TestNothingIsAddedToAnEndingScope(t *testing.T) {
	// B61
	s := New("s")
	caught := 0
	s.Defer(func() {
		for _, add := range []func(){func() { s.Child("c") }, func() { s.Defer(func() {}) }, s.Reset} {
			if err, ok := panicOf(add).(error); ok && strings.Contains(err.Error(), `scope "s":`) {
				caught++
			}
		}
		s.End()
	})
	s.End()
	if panicOf(func() { s.Arena() }) == nil || panicOf(func() { s.Child("c") }) == nil || caught != 3 {
		t.Errorf("%d were caught", caught)
	}
}

func TestADeferredCallEndsTheParent(t *testing.T) {
	// B59
	calls := 0
	root := New("root")
	c := root.Child("c")
	c.Defer(func() { root.End(); calls++ })
	root.Defer(func() { calls++ })
	arena.New[point](root.Child("sibling").Arena())
	c.End()
	if calls != 2 || root.account.Held() != 0 || root.Stats().Children != 0 {
		t.Errorf("%d calls, %+v", calls, root.Stats())
	}
}

func TestAllEndsAreMadeWhenOnePanics(t *testing.T) {
	made := 0
	s := New("s")
	for i := range 10 {
		c := s.Child("c")
		arena.New[point](c.Arena())
		c.Defer(func() { made++; panic(i) })
		s.Defer(func() { made++; panic("s") })
	}
	if value := panicOf(s.End); value == nil || made != 20 || s.account.Held() != 0 {
		t.Errorf("%v, %d calls, %d bytes", value, made, s.account.Held())
	}
}

func TestReset(t *testing.T) {
	// B60
	root := New("root")
	s := root.Child("s")
	calls := 0
	for round := range 3 {
		n := arena.New[node](s.Arena())
		if n.next != nil {
			t.Error("not zero")
		}
		n.next = n
		s.Defer(func() { calls++ })
		arena.New[point](s.Child("c").Arena())
		if err := s.External(1000); err != nil {
			t.Error(err)
		}
		s.Reset()
		if f := s.Stats(); calls != round+1 || f.Children != 0 || f.Name != "s" ||
			s.external.Load() != 0 {
			t.Errorf("%d calls, %+v", calls, f)
		}
	}
	if root.End(); root.account.Held() != 0 {
		t.Errorf("%d bytes are held", root.account.Held())
	}
}

func TestHardLimit(t *testing.T) {
	// B64, B66
	root := New("root")
	defer root.End()
	if err := root.SetLimit(1 << 20); err != nil {
		t.Fatal(err)
	}
	s := root.Child("s")
	kept := arena.New[point](s.Arena())
	kept.x = 7
	var refused *arena.LimitError
	for what, use := range map[string]func(){
		"objects":  func() { arena.MakeSlice[byte](s.Child("c").Arena(), 0, 1<<20) },
		"pointers": func() { arena.MakeSlice[string](s.Arena(), 0, 1<<16) },
	} {
		if err, _ := panicOf(use).(error); !errors.As(err, &refused) || refused.Limit != 1<<20 {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := s.External(1 << 20); !errors.As(err, &refused) {
		t.Error(err)
	}
	held := root.Stats().Held
	if err := root.SetLimit(held - 1); !errors.As(err, &refused) || root.Stats().Limit != 1<<20 {
		t.Error(err)
	}
	if err := root.SetLimit(held); err != nil || kept.x != 7 {
		t.Error(err)
	}
	if s.End(); root.Stats().Held != 0 {
		t.Errorf("%d bytes are held", root.Stats().Held)
	}
}

func TestSoftLimit(t *testing.T) {
	// B65
	var reports []int64
	s := New("s")
	defer s.End()
	s.SetSoftLimit(1000, func(held int64) { reports = append(reports, held) })
	for _, change := range []int64{999, 1, 500, -200, -301, 1, 0, 1, -1} {
		if err := s.Child("c").External(change); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(reports, []int64{1000, 1000}) {
		t.Errorf("%v", reports)
	}
}

func TestFiguresAreSums(t *testing.T) {
	// B68
	root := New("root")
	defer root.End()
	random := rand.New(rand.NewPCG(1, 2))
	all := []*Scope{root}
	for range 200 {
		s := all[random.IntN(len(all))].Child(fmt.Sprint("scope ", len(all)))
		arena.MakeSlice[byte](s.Arena(), 0, random.IntN(200_000))
		arena.MakeSlice[string](s.Arena(), 0, random.IntN(2_000))
		if err := s.External(int64(random.IntN(1000))); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	sum := int64(0)
	for _, s := range all {
		f := s.Stats()
		sum += f.Own
		if f.Own < 0 || f.Held < f.Own || f.Peak < f.Held {
			t.Errorf("%+v", f)
		}
	}
	if f := root.Stats(); f.Held != sum {
		t.Errorf("%d bytes are held, the sum is %d", f.Held, sum)
	}
	var tree strings.Builder
	if err := root.WriteTree(&tree); err != nil || strings.Count(tree.String(), "\n") != len(all) {
		t.Errorf("%v: %s", err, tree.String())
	}
}

func TestChildrenOnManyGoroutines(t *testing.T) {
	// B69
	root := New("root")
	var group sync.WaitGroup
	for range 8 {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := range 300 {
				s := root.Child("s")
				s.Defer(func() {})
				arena.New[point](s.Arena()).x = i
				arena.New[node](s.Child("inner").Arena())
				if err := s.External(10); err != nil {
					t.Error(err)
				}
				if i%3 != 0 {
					s.End()
				}
				root.Stats()
			}
		}()
	}
	group.Wait()
	if f := root.Stats(); f.Children != 8*100 {
		t.Errorf("%+v", f)
	}
	if root.End(); root.account.Held() != 0 {
		t.Errorf("%d bytes are held", root.account.Held())
	}
}

func TestContext(t *testing.T) {
	s := New("s")
	defer s.End()
	ctx := NewContext(context.Background(), s)
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	if From(inner) != s || From(context.Background()) != nil {
		t.Error("another scope")
	}
	if child := s.Child("c"); From(NewContext(inner, child)) != child {
		t.Error("not the innermost")
	}
	var none *Scope
	arena.New[point](From(context.Background()).Arena()).x = 1
	none.Reset()
	none.End()
	none.Child("root").End()
}
