package arena_test

import (
	"os"
	"testing"

	arena "github.com/tenure-alloc/tenure/go/arena/switched"
)

type node struct {
	next  *node
	value int
}

// The same program runs with each backend; the environment may say which one is expected.
func TestProgram(t *testing.T) {
	if want := os.Getenv("TENURE_BACKEND"); want != "" && want != arena.Backend {
		t.Errorf("the backend is %s, not %s", arena.Backend, want)
	}
	a := arena.NewArena()
	var head *node
	for i := range 1000 {
		n := arena.New[node](a)
		*n = node{head, i}
		head = n
	}
	numbers := arena.MakeSlice[int](a, 1, 10)
	numbers[0] = 7
	kept, keptNumbers := arena.Clone(head), arena.Clone(numbers)
	sum := 0
	for n := head; n != nil; n = n.next {
		sum += n.value
	}
	a.Free()
	if sum != 999*1000/2 || kept.value != 999 || keptNumbers[0] != 7 {
		t.Errorf("%d, %v, %v", sum, kept.value, keptNumbers)
	}
}
