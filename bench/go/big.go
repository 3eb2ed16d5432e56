package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/tenure-alloc/tenure/go/arena"
)

type megabyte [1 << 20]byte

// 10,000 where the machine has memory for all of them, otherwise 1,000.
func bigObjects() int {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 1000
	}
	_, rest, _ := strings.Cut(string(text), "MemAvailable:")
	kilobytes := 0
	if fmt.Sscan(rest, &kilobytes); kilobytes < 24<<20 {
		return 1000
	}
	return 10_000
}

// Sizes from 1 KiB to 256 KiB that look random and are the same for every subject.
var mixedSizes = func() (sizes [100]int) {
	x := uint32(1)
	for i := range sizes {
		x = x*1664525 + 1013904223
		sizes[i] = 1024 + int(x>>12)%(255*1024)
	}
	return sizes
}()

func bigWorkloads() []workload {
	return []workload{
		{name: "go-big", ops: float64(bigObjects()), repeats: 1, rounds: 21, subjects: present(
			subject{"tenure", arenaOfBig},
			subject{"new", heapOfBig},
			subject{"goexperiment", experimentBig})},
		{name: "go-mixed-big", ops: float64(len(mixedSizes)), subjects: present(
			subject{"tenure", arenaOfMixedBig},
			subject{"new", heapOfMixedBig},
			subject{"goexperiment", experimentMixedBig})},
	}
}

func arenaOfBig() work {
	a := arena.NewArena(arena.Fast)
	objects := make([]*megabyte, bigObjects())
	return func(repeats int, _ *histogram) {
		for range repeats {
			for i := range objects {
				objects[i] = arena.New[megabyte](a)
				objects[i][i] = 1
			}
			clear(objects)
			a.Reset()
		}
	}
}

func heapOfBig() work {
	objects := make([]*megabyte, bigObjects())
	return func(repeats int, _ *histogram) {
		for range repeats {
			for i := range objects {
				objects[i] = new(megabyte)
				objects[i][i] = 1
			}
			clear(objects)
		}
	}
}

func arenaOfMixedBig() work {
	a := arena.NewArena(arena.Fast)
	return func(repeats int, _ *histogram) {
		for range repeats {
			for _, size := range mixedSizes {
				b := arena.MakeSlice[byte](a, size, size)
				b[size-1] = 1
			}
			a.Reset()
		}
	}
}

func heapOfMixedBig() work {
	var kept [len(mixedSizes)][]byte
	return func(repeats int, _ *histogram) {
		for range repeats {
			for i, size := range mixedSizes {
				kept[i] = make([]byte, size)
				kept[i][size-1] = 1
			}
			clear(kept[:])
		}
	}
}
