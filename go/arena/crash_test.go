package arena

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/tenure-alloc/tenure/go/internal/pages"
	"go.uber.org/goleak"
)

var (
	sink     any
	staleInt *int
	stale    *node
	table    *withAll
)

type withAll struct {
	pointer   *int
	text      string
	slice     []int
	table     map[string]int
	anything  any
	method    fmt.Stringer
	function  func() int
	channel   chan int
	array     [3]*int
	structure struct{ inner *int }
}

// A misuse does what must end the program. Its output has the text.
type misuse struct {
	text string
	do   func()
}

const fault = "unexpected fault address 0x5af"

func guardedPoint() (*Arena, *point) {
	a := NewArena(Guarded, Name("req"))
	p := New[point](a)
	p.x = 1
	return a, p
}

func guardedAll() *withAll {
	a := NewArena(Guarded, Name("req"))
	all := New[withAll](a)
	*all = withAll{
		new(int), "text", []int{1}, map[string]int{"a": 1}, 5, Leak{}, func() int { return 1 },
		make(chan int, 1), [3]*int{}, struct{ inner *int }{new(int)},
	}
	a.Free()
	return all
}

var misuses = map[string]misuse{
	"read after Free":  {fault, func() { a, p := guardedPoint(); a.Free(); sink = p.x }},
	"write after Free": {fault, func() { a, p := guardedPoint(); a.Free(); p.y = 1 }},
	"read after Reset": {fault, func() { a, p := guardedPoint(); a.Reset(); sink = p.x }},
	"read after Reset and other objects": {fault, func() {
		a, p := guardedPoint()
		a.Reset()
		New[point](a).x = 2
		sink = p.x
	}},
	"read after Free and another arena": {fault, func() {
		a, p := guardedPoint()
		a.Free()
		_, other := guardedPoint()
		sink = p.x + other.x
	}},
	"read of a full chunk": {fault, func() {
		a, p := guardedPoint()
		for range 100_000 {
			New[point](a)
		}
		a.Free()
		sink = p.x
	}},
	"read of a large object": {fault, func() {
		a := NewArena(Guarded)
		big := MakeSlice[byte](a, 10_000_000, 10_000_000)
		a.Free()
		sink = big[9_999_999]
	}},
	"read after Rewind of a later page": {fault, func() {
		a, _ := guardedPoint()
		m := a.Mark()
		p := New[[20_000]byte](a)
		a.Rewind(m)
		sink = p[19_000]
	}},
	"read of a freed child's object": {fault, func() {
		a, _ := guardedPoint()
		p := New[point](a.Child())
		a.Free()
		sink = p.x
	}},
	"text of a copy": {fault, func() {
		a := NewArena(Guarded)
		s := CopyString(a, "text")
		a.Free()
		sink = s == "test"
	}},
	"pointer":             {fault, func() { sink = *guardedAll().pointer }},
	"write by a pointer":  {fault, func() { *guardedAll().pointer = 1 }},
	"string":              {fault, func() { sink = guardedAll().text[0] }},
	"slice":               {fault, func() { sink = guardedAll().slice[0] }},
	"map":                 {fault, func() { sink = guardedAll().table["a"] }},
	"interface":           {fault, func() { sink = fmt.Sprint(guardedAll().anything) }},
	"method":              {fault, func() { sink = guardedAll().method.String() }},
	"function":            {fault, func() { sink = guardedAll().function() }},
	"channel":             {fault, func() { guardedAll().channel <- 1 }},
	"pointer in an array": {fault, func() { sink = *guardedAll().array[2] }},
	"pointer in a struct": {fault, func() { sink = *guardedAll().structure.inner }},
	"link after Reset": {fault, func() {
		a := NewArena(Guarded)
		n := New[node](a)
		n.next = New[node](a)
		a.Reset()
		New[node](a)
		sink = n.next.value
	}},
	"link of a large slice": {fault, func() {
		a := NewArena(Guarded)
		nodes := MakeSlice[node](a, 10_000, 10_000)
		a.Free()
		sink = nodes[9_999].next.value
	}},
	"link after Rewind": {fault, func() {
		a := NewArena(Guarded)
		New[node](a)
		m := a.Mark()
		n := New[node](a)
		a.Rewind(m)
		sink = n.next.value
	}},
	"Guard": {`panic: arena "req" (#1): use of an object after its end; created at `, func() {
		Guard(func() { sink = guardedAll().text[0] })
	}},
	"second Free": {`panic: arena "req" (#1): second Free; created at `, func() {
		a, _ := guardedPoint()
		a.Free()
		a.Free()
	}},
	"New after Free": {`panic: arena "req" (#1): use after Free; created at `, func() {
		a, _ := guardedPoint()
		a.Free()
		New[point](a)
	}},
	"two goroutines": {`panic: arena "req" (#1): used by two goroutines at once; created at `, func() {
		a, _ := guardedPoint()
		var group sync.WaitGroup
		for range 2 {
			group.Add(1)
			go func() {
				defer group.Done()
				for range 1_000_000_000 {
					New[point](a)
				}
			}()
		}
		group.Wait()
	}},
}

// TestMain is the program of each misuse when it is started as one.
func TestMain(m *testing.M) {
	if name := os.Getenv("TENURE_MISUSE"); name != "" {
		misuses[name].do()
		fmt.Println("not caught")
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// crashOf runs a misuse and returns the end of its output and whether it ended as a crash does.
func crashOf(name string) (output string, crashed bool) {
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), "TENURE_MISUSE="+name)
	out, err := command.CombinedOutput()
	exit, ok := err.(*exec.ExitError)
	return string(out), ok && exit.ExitCode() == 2
}

// Every misuse ends the program with its message, every time.
func TestMisuseCrashes(t *testing.T) {
	// B18
	runs := 1
	if os.Getenv("TENURE_LONG") != "" {
		runs = 1000
	}
	for name, misuse := range misuses {
		if pages.OnHeap && misuse.text == fault && outsideHeap(name) {
			continue
		}
		if pages.OnHeap && name == "two goroutines" {
			continue // The race detector reports it before.
		}
		t.Run(name, func(t *testing.T) {
			for range runs {
				if output, crashed := crashOf(name); !crashed ||
					!strings.Contains(output, misuse.text) {
					t.Fatalf("no %q, but: %s", misuse.text, output)
				}
			}
		})
	}
}

// outsideHeap tells whether a misuse is one of memory that cannot fault when it is on the Go heap.
func outsideHeap(name string) bool {
	return strings.HasPrefix(name, "read") || strings.HasPrefix(name, "write after") ||
		strings.HasPrefix(name, "text")
}

func TestGuardNamesBothPlaces(t *testing.T) {
	a := NewArena(Guarded, Name("guarded"))
	n := New[node](a)
	a.Free()
	err, ok := panicOf(func() { Guard(func() { sink = n.name[0] }) }).(*FreedError)
	if !ok || err.Name != "guarded" || err.How != "freed" || err.Address == 0 ||
		!strings.Contains(err.Created, "crash_test.go:") ||
		!strings.Contains(err.Ended, "crash_test.go:") {
		t.Fatalf("%v", err)
	}
	var nothing *node
	for want, f := range map[string]func(){
		"other":                     func() { panic(fmt.Errorf("other")) },
		"runtime error: invalid me": func() { sink = nothing.value },
		"runtime error: index out ": func() { sink = make([]int, 1)[len(t.Name())] },
	} {
		if got := messageOf(func() { Guard(f) }); !strings.HasPrefix(got, want) {
			t.Errorf("%q, not %q", got, want)
		}
	}
	if Guard(func() { want = 1 }); want != 1 {
		t.Error("Guard did not call")
	}
}

var want int

func TestForgottenNumbersAreWiped(t *testing.T) {
	// B18
	a := NewArena(Guarded)
	defer a.Free()
	n := New[node](a)
	n.value = 77
	if a.Reset(); uint64(n.value) != 0xdbdbdbdbdbdbdbdb {
		t.Errorf("%#x", n.value)
	}
	m := a.Mark()
	first := New[byte](a)
	m = a.Mark()
	last := New[int](a)
	*last = 77
	if a.Rewind(m); *last == 77 || *first != 0 {
		t.Errorf("%d %d", *last, *first)
	}
}

func TestGuardKnowsThePoisonOfEveryPart(t *testing.T) {
	for i := range 100 {
		all := guardedAll()
		for _, use := range []func(){
			func() { sink = fmt.Sprint(all.text, i) }, func() { sink = fmt.Sprint(all.slice) },
			func() { sink = fmt.Sprint(all.table) },
			func() { all.pointer = all.array[1]; *all.pointer = 1 },
		} {
			if err, ok := panicOf(func() { Guard(use) }).(*FreedError); !ok || err.Name != "req" {
				t.Fatalf("%v", err)
			}
		}
	}
}
