//go:build goexperiment.arenas

package main

import "arena"

func init() {
	experimentNew8 = func() work {
		return eachArena(func(a *arena.Arena) {
			for i := range uint64(objectsInCycle) {
				p := arena.New[plain8](a)
				p.a = i
				sink8 = p
			}
			sink8 = nil
		})
	}
	experimentNew48 = func() work {
		return eachArena(func(a *arena.Arena) {
			for i := range uint64(objectsInCycle) {
				p := arena.New[plain48](a)
				p.a = i
				sink48 = p
			}
			sink48 = nil
		})
	}
	experimentPointers = func() work {
		return eachArena(func(a *arena.Arena) {
			var head *node
			for i := range uint64(objectsInCycle) {
				n := arena.New[node](a)
				n.next, n.a = head, i
				head = n
			}
			sinkNode = head
			sinkNode = nil
		})
	}
	experimentBig = func() work {
		objects := make([]*megabyte, bigObjects())
		return eachArena(func(a *arena.Arena) {
			for i := range objects {
				objects[i] = arena.New[megabyte](a)
				objects[i][i] = 1
			}
			clear(objects)
		})
	}
	experimentMixedBig = func() work {
		return eachArena(func(a *arena.Arena) {
			for _, size := range mixedSizes {
				b := arena.MakeSlice[byte](a, size, size)
				b[size-1] = 1
			}
		})
	}
}

// These arenas have no Reset.
func eachArena(use func(a *arena.Arena)) work {
	return func(repeats int, _ *histogram) {
		for range repeats {
			a := arena.NewArena()
			use(a)
			a.Free()
		}
	}
}
