// Package arena allocates Go objects that are forgotten together.
//
// It has the functions of Go's arena experiment with the same meaning, NewArena, New, MakeSlice, Clone
// and Free, without GOEXPERIMENT: a program switches by changing the import. Objects may have pointers,
// to the arena and to the heap.
//
//	a := arena.NewArena(arena.Name("request"))
//	defer a.Free()
//	p := arena.New[Point](a)
//	all := arena.MakeSlice[Point](a, 0, 100)
//	all = arena.Append(a, all, *p)
//
// # Where memory comes from
//
// Objects without pointers, of all types, lie one behind the other in memory outside the Go heap. The
// garbage collector neither scans nor counts it, so that GOGC and GOMEMLIMIT do not see it: ReadStats
// does. Under the race detector, and where the system has no mmap, it is on the Go heap.
//
// Objects with pointers lie in arrays of their type on the Go heap, of at most 32,760 bytes. The
// garbage collector follows their pointers as those of any other object. Such memory is used again for
// objects of the same type only.
//
// # What is safe, and what is not
//
// In fast mode, the default outside tests, use of an object after Free, Reset or Rewind does not crash.
// It sees zeros, or an object that got the memory later: of the same type if it has pointers, and
// otherwise possibly of another one. It never breaks the garbage collector's or Go's memory safety, but
// the data is wrong. Tests run in guard mode, which crashes on such a use: see Mode and Guard. In guard
// mode numbers in a forgotten object with pointers do not crash when they are read, because that memory
// is the garbage collector's: they read as 0xdbdb...; its pointers, slices, strings, maps, interfaces
// and functions crash when they are used.
//
// These are not safe in any mode:
//
//   - An arena, or its Class or Ref, is used by two goroutines at once. Guard mode catches most of it.
//   - A pointer to memory outside the Go heap is given to runtime.SetFinalizer, runtime.AddCleanup,
//     weak.Make or unique.Make: the runtime ends the program.
//   - An object outlives its arena, because a map, a channel, a closure or a global variable has a
//     pointer to it. Clone such objects.
//
// A forgotten Free is counted and reported once for each place: see OnLeak and LeakPolicy.
package arena
