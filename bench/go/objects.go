package main

import "github.com/tenure-alloc/tenure/go/arena"

const objectsInCycle = 100_000

// Objects without pointers.
type (
	plain8  struct{ a uint64 }
	plain48 struct{ a, b, c, d, e, f uint64 }
)

// An object of a linked list.
type node struct {
	next       *node
	a, b, c, d uint64
	e          uint64
}

// The compiler must assume that the objects are used elsewhere.
var (
	sink8    *plain8
	sink48   *plain48
	sinkNode *node
)

// Go's own arenas, where the program is built with them.
var experimentNew8, experimentNew48, experimentPointers, experimentBig, experimentMixedBig func() work

// The subjects without those that this build does not have.
func present(all ...subject) (some []subject) {
	for _, s := range all {
		if s.make != nil {
			some = append(some, s)
		}
	}
	return some
}

func objectWorkloads() []workload {
	return []workload{
		{name: "go-new-8", ops: objectsInCycle, subjects: present(
			subject{"tenure", func() work { return arenaOf8(arena.Fast) }},
			subject{"new", heapOf8},
			subject{"goexperiment", experimentNew8})},
		{name: "go-new-48", ops: objectsInCycle, subjects: present(
			subject{"tenure", func() work { return arenaOf48(arena.Fast) }},
			subject{"tenure-class", classOf48},
			subject{"new", heapOf48},
			subject{"goexperiment", experimentNew48})},
		{name: "go-guard-48", ops: objectsInCycle, subjects: present(
			subject{"tenure", func() work { return arenaOf48(arena.Guarded) }},
			subject{"new", heapOf48})},
		{name: "go-new-pointers", ops: objectsInCycle, subjects: present(
			subject{"tenure", arenaOfNodes},
			subject{"tenure-class", classOfNodes},
			subject{"new", heapOfNodes},
			subject{"goexperiment", experimentPointers})},
	}
}

func arenaOf8(mode arena.Mode) work {
	a := arena.NewArena(mode)
	return func(repeats int, _ *histogram) {
		for range repeats {
			for i := range uint64(objectsInCycle) {
				p := arena.New[plain8](a)
				p.a = i
				sink8 = p
			}
			sink8 = nil
			a.Reset()
		}
	}
}

func heapOf8() work {
	return func(repeats int, _ *histogram) {
		for range repeats {
			for i := range uint64(objectsInCycle) {
				p := new(plain8)
				p.a = i
				sink8 = p
			}
			sink8 = nil
		}
	}
}

func arenaOf48(mode arena.Mode) work {
	a := arena.NewArena(mode)
	return func(repeats int, _ *histogram) {
		for range repeats {
			for i := range uint64(objectsInCycle) {
				p := arena.New[plain48](a)
				p.a = i
				sink48 = p
			}
			sink48 = nil
			a.Reset()
		}
	}
}

func classOf48() work {
	a := arena.NewArena(arena.Fast)
	class := arena.ClassOf[plain48](a)
	return func(repeats int, _ *histogram) {
		for range repeats {
			for i := range uint64(objectsInCycle) {
				p := class.New()
				p.a = i
				sink48 = p
			}
			sink48 = nil
			a.Reset()
		}
	}
}

func heapOf48() work {
	return func(repeats int, _ *histogram) {
		for range repeats {
			for i := range uint64(objectsInCycle) {
				p := new(plain48)
				p.a = i
				sink48 = p
			}
			sink48 = nil
		}
	}
}

func arenaOfNodes() work {
	a := arena.NewArena(arena.Fast)
	return func(repeats int, _ *histogram) {
		for range repeats {
			var head *node
			for i := range uint64(objectsInCycle) {
				n := arena.New[node](a)
				n.next, n.a = head, i
				head = n
			}
			sinkNode = head
			sinkNode = nil
			a.Reset()
		}
	}
}

func classOfNodes() work {
	a := arena.NewArena(arena.Fast)
	class := arena.ClassOf[node](a)
	return func(repeats int, _ *histogram) {
		for range repeats {
			var head *node
			for i := range uint64(objectsInCycle) {
				n := class.New()
				n.next, n.a = head, i
				head = n
			}
			sinkNode = head
			sinkNode = nil
			a.Reset()
		}
	}
}

func heapOfNodes() work {
	return func(repeats int, _ *histogram) {
		for range repeats {
			var head *node
			for i := range uint64(objectsInCycle) {
				n := new(node)
				n.next, n.a = head, i
				head = n
			}
			sinkNode = head
			sinkNode = nil
		}
	}
}
