package slab_test

import (
	"fmt"
	"sync"

	"github.com/tenure-alloc/tenure/go/slab"
)

// A producer makes jobs, a consumer on another goroutine frees them. The channel carries handles.
func Example() {
	type job struct{ n, square int }
	jobs := slab.New[job](slab.Config{Name: "jobs"})
	todo := make(chan slab.Handle[job], 4)

	var consumer sync.WaitGroup
	consumer.Add(1)
	sum := 0
	go func() {
		defer consumer.Done()
		for h := range todo {
			j := jobs.Get(h)
			j.square = j.n * j.n
			sum += j.square
			jobs.Free(h)
		}
	}()
	for n := range 10 {
		h, j := jobs.Alloc()
		j.n = n
		todo <- h
	}
	close(todo)
	consumer.Wait()
	fmt.Println("sum:", sum, "live:", jobs.Stats().Live)
	// Output: sum: 285 live: 0
}

// A handle knows that its object was freed, also when another one has its place.
func ExampleSlab_Lookup() {
	names := slab.New[string](slab.Config{})
	h, name := names.Alloc()
	*name = "first"
	names.Free(h)
	_, other := names.Alloc()
	*other = "second"
	_, ok := names.Lookup(h)
	fmt.Println(ok)
	// Output: false
}
