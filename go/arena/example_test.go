package arena_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/tenure-alloc/tenure/go/arena"
)

type Point struct{ X, Y int }

// The program that presents Go's arena experiment, with another import.
func Example() {
	a := arena.NewArena()
	defer a.Free()

	p := arena.New[Point](a)
	p.X, p.Y = 3, 4

	points := arena.MakeSlice[Point](a, 0, 2)
	points = append(points, *p, Point{5, 6})

	kept := arena.Clone(p) // on the heap: it may outlive the arena
	fmt.Println(*p, points, *kept)
	// Output: {3 4} [{3 4} {5 6}] {3 4}
}

// A handler with an arena for each request.
func Example_http() {
	type order struct {
		id   int
		next *order
	}
	handler := func(w http.ResponseWriter, r *http.Request) {
		a := arena.NewArena(arena.Name("request"), arena.Limit(10<<20))
		defer a.Free()
		var newest *order
		for id := range 3 {
			o := arena.New[order](a)
			o.id, o.next = id, newest
			newest = o
		}
		for o := newest; o != nil; o = o.next {
			fmt.Fprintln(w, "order", o.id)
		}
	}
	w := httptest.NewRecorder()
	handler(w, httptest.NewRequest("GET", "/", nil))
	text, _ := io.ReadAll(w.Result().Body)
	fmt.Print(string(text))
	// Output:
	// order 2
	// order 1
	// order 0
}

// A document is decoded into structs of an arena, one element at a time. The strings that encoding/json
// makes are on the heap, and the arena's structs keep them alive.
func Example_json() {
	type city struct {
		Name   string
		People int
	}
	document := `[{"Name":"Oslo","People":700000},{"Name":"Bergen","People":290000}]`

	a := arena.NewArena()
	defer a.Free()
	cities := arena.MakeSlice[*city](a, 0, 16)
	decoder := json.NewDecoder(strings.NewReader(document))
	decoder.Token() // [
	for decoder.More() {
		c := arena.New[city](a)
		if err := decoder.Decode(c); err != nil {
			fmt.Println(err)
			return
		}
		cities = arena.Append(a, cities, c)
	}
	for _, c := range cities {
		fmt.Println(c.Name, c.People)
	}
	// Output:
	// Oslo 700000
	// Bergen 290000
}

// An expr is a node of a syntax tree: a number, or an operation on two others.
type expr struct {
	op          byte
	value       int
	left, right *expr
}

func (e *expr) eval() int {
	switch e.op {
	case '+':
		return e.left.eval() + e.right.eval()
	case '*':
		return e.left.eval() * e.right.eval()
	}
	return e.value
}

// parse reads an expression in reverse Polish notation.
func parse(nodes arena.Class[expr], text string) *expr {
	var stack []*expr
	for _, word := range strings.Fields(text) {
		e := nodes.New()
		if word == "+" || word == "*" {
			last := len(stack) - 1
			e.op, e.left, e.right = word[0], stack[last-1], stack[last]
			stack = stack[:last-1]
		} else {
			fmt.Sscan(word, &e.value)
		}
		stack = append(stack, e)
	}
	return stack[0]
}

// A syntax tree is made, used and forgotten as a whole; the next one has the same memory.
func ExampleClassOf() {
	a := arena.NewArena()
	defer a.Free()
	nodes := arena.ClassOf[expr](a)
	for _, text := range []string{"1 2 + 3 *", "2 3 4 * +"} {
		fmt.Println(text, "=", parse(nodes, text).eval())
		a.Reset()
	}
	// Output:
	// 1 2 + 3 * = 9
	// 2 3 4 * + = 14
}

// Scratch memory is forgotten by a Rewind, results stay.
func ExampleArena_Rewind() {
	a := arena.NewArena()
	defer a.Free()
	result := arena.New[int](a)
	m := a.Mark()
	for i := range arena.MakeSlice[int](a, 1000, 1000) {
		*result += i
	}
	a.Rewind(m)
	fmt.Println(*result, a.Stats().Used, "bytes are used")
	// Output: 499500 8 bytes are used
}

// In guard mode, the default in tests, a use after Free is found and named.
func ExampleGuard() {
	type item struct{ name string }
	a := arena.NewArena(arena.Name("request"), arena.Guarded)
	p := arena.New[item](a)
	p.name = "first"
	a.Free()
	defer func() {
		err := recover().(*arena.FreedError)
		fmt.Println(err.Name+":", err.What, "which was", err.How)
	}()
	arena.Guard(func() { fmt.Println(p.name) })
	// Output: request: use of an object after its end which was freed
}
