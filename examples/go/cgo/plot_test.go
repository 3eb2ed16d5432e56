package plot

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/tenure-alloc/tenure/go/arena"
	"github.com/tenure-alloc/tenure/go/scope"
)

func Example() {
	s := scope.New("drawing")
	p := Open(s, Points(s, 11), "speed")
	title, _ := p.Title()
	fmt.Println(title, p.Area(), Consume("label"))
	s.End()
	fmt.Println("titles:", titles.Stats().Live)
	// Output:
	// speed 20 5
	// titles: 0
}

// C reads the points after collections, also where they are on the Go heap.
func TestPointsStayWhileCHasThem(t *testing.T) {
	for range 20 {
		s := scope.New("drawing")
		p := Open(s, Points(s, 1001), "t")
		for range 3 {
			runtime.GC()
			garbage = make([]byte, 1<<20)
		}
		if area := p.Area(); area != 2000 {
			t.Errorf("area %v", area)
		}
		s.End()
	}
}

var garbage []byte

// C's memory counts against the limit of the scope, and a refusal leaves nothing behind.
func TestMemoryOfCCounts(t *testing.T) {
	s := scope.New("drawing")
	points := Points(s, 10)
	if err := s.SetLimit(s.Stats().Held); err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() {
			var refused *arena.LimitError
			if err, _ := recover().(error); !errors.As(err, &refused) {
				t.Errorf("%v", err)
			}
		}()
		Open(s, points, "t")
	}()
	if s.End(); titles.Stats().Live != 0 {
		t.Errorf("%d titles are left", titles.Stats().Live)
	}
}
