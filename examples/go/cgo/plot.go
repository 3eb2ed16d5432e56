// Package plot shows who owns memory that Go and C share: docs/go.md has the rules.
package plot

/*
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct { double x, y; } point;

// A library that keeps the caller's points until plot_close.
typedef struct { const point *points; size_t count; uint64_t user; } plot;

static plot *plot_open(const point *points, size_t count, uint64_t user)
{
	plot *p = malloc(sizeof *p);

	if (p)
		*p = (plot){ points, count, user };
	return p;
}

static double plot_area(const plot *p)
{
	double sum = 0;

	for (size_t i = 1; i < p->count; i++)
		sum += (p->points[i].x - p->points[i - 1].x) * p->points[i].y;
	return sum;
}

static uint64_t plot_user(const plot *p) { return p->user; }

static void plot_close(plot *p) { free(p); }

// A function that frees its argument.
static size_t label_consume(char *label)
{
	size_t length = strlen(label);

	free(label);
	return length;
}
*/
import "C"

import (
	"runtime"
	"unsafe"

	"github.com/tenure-alloc/tenure/go/arena"
	"github.com/tenure-alloc/tenure/go/scope"
	"github.com/tenure-alloc/tenure/go/slab"
)

// Point is a C point. It has no pointers, so that C may see it.
type Point = C.point

// Points makes points in the arena of a scope.
func Points(s *scope.Scope, count int) []Point {
	points := arena.MakeSlice[Point](s.Arena(), count, count)
	for i := range points {
		points[i].x, points[i].y = C.double(i), 2
	}
	return points
}

// A Title is what a plot of C knows by a handle: C must not have its pointer, because it has pointers.
type Title struct{ Text string }

var titles = slab.New[Title](slab.Config{Name: "titles"})

// A Plot is an object of C that keeps points of Go.
type Plot struct{ c *C.plot }

// Open lends points of the scope's arena to C until the end of the scope, and gives C the handle of a
// title. The order of the deferred calls matters: C forgets the points, then they are no longer pinned,
// then the arena ends.
func Open(s *scope.Scope, points []Point, title string) Plot {
	var pinner runtime.Pinner
	// The points are on the Go heap under -race and where mmap is missing.
	pinner.Pin(unsafe.SliceData(points))
	s.Defer(pinner.Unpin)

	h, t := titles.Alloc()
	t.Text = title
	s.Defer(func() { titles.Free(h) })

	user := *(*C.uint64_t)(unsafe.Pointer(&h))
	c := C.plot_open(unsafe.SliceData(points), C.size_t(len(points)), user)
	if c == nil {
		panic("plot: no memory")
	}
	if err := s.External(int64(unsafe.Sizeof(*c))); err != nil {
		C.plot_close(c)
		panic(err)
	}
	s.Defer(func() { C.plot_close(c) })
	return Plot{c}
}

// Area calls C, which reads the points.
func (p Plot) Area() float64 { return float64(C.plot_area(p.c)) }

// Title finds the title by the handle that C has kept; false once it was freed.
func (p Plot) Title() (string, bool) {
	user := C.plot_user(p.c)
	t, ok := titles.Lookup(*(*slab.Handle[Title])(unsafe.Pointer(&user)))
	if !ok {
		return "", false
	}
	return t.Text, true
}

// Consume gives a text to a function of C that frees it: such memory must be of C's malloc, never of an
// arena.
func Consume(text string) int { return int(C.label_consume(C.CString(text))) }
