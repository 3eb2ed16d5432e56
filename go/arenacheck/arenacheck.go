// Package arenacheck is an analyzer that finds values of an arena which are stored where they outlive
// it.
//
// An arena ends where Free, Reset or Rewind is called, where a scope ends, and where the arena is put
// back into a pool. A value outlives it when the function of that call returns it, or stores it in a
// global variable, in memory of its caller, in a channel or map from outside, or leaves it to a
// goroutine that it does not wait for. Clone makes a copy for that.
//
// It follows values through variables, fields, slices, maps, closures and calls of functions whose
// source it has, over packages. It does not follow values through interfaces' methods, reflection and
// unsafe pointers, and it does not report the use of a value after the end of its arena in the same
// function: guard mode finds these.
package arenacheck

import (
	"fmt"
	"reflect"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/buildssa"
	"golang.org/x/tools/go/ssa"
)

// Analyzer is for go vet -vettool and for drivers of golang.org/x/tools/go/analysis.
var Analyzer = &analysis.Analyzer{
	Name:      "arenacheck",
	Doc:       "report values of an arena that are stored where they outlive it",
	Run:       run,
	Requires:  []*analysis.Analyzer{buildssa.Analyzer},
	FactTypes: []analysis.Fact{new(effects)},
}

const (
	mostRounds       = 6      // in which the functions of a package learn of each other
	mostInstructions = 20_000 // of a function; a larger one is taken for one without effects
	mostFlows        = 64     // of a function
	mostObjects      = 64     // that a value points to
	mostVisits       = 30     // of a function, until its values have nothing new
)

// The packages of the standard library whose functions keep or return what they are given, and that
// programs give their data to. Others are taken for ones without effects.
var standardPackages = map[string]bool{
	"bufio": true, "bytes": true, "container/heap": true, "container/list": true,
	"container/ring": true, "context": true, "errors": true, "iter": true, "maps": true,
	"slices": true, "sort": true, "strings": true,
}

// The effects of a function, as its callers see it.
type effects struct {
	Flows []flow
	Ends  []place // arenas
}

// A flow leads a value from one place to another.
type flow struct{ From, To place }

// A place is a parameter, a result, or all global variables, and then a path of fields.
type place struct {
	Root   root
	Index  int
	Path   string
	Memory bool // not the arena at the place, but memory of it
}

type root uint8

const (
	parameter root = iota
	result
	global
)

func (*effects) AFact() {}

func (e *effects) String() string { return fmt.Sprint(*e) }

func run(pass *analysis.Pass) (any, error) {
	first, _, _ := strings.Cut(pass.Pkg.Path(), "/")
	standard := !strings.Contains(first, ".")
	if standard && !standardPackages[pass.Pkg.Path()] {
		return nil, nil
	}
	known := map[*ssa.Function]*effects{}
	find := func(fn *ssa.Function) *effects {
		if fn.Origin() != nil {
			fn = fn.Origin()
		}
		if e, ok := known[fn]; ok {
			return e
		}
		var fact effects
		if fn.Object() != nil && pass.ImportObjectFact(fn.Object(), &fact) {
			return &fact
		}
		return nil
	}
	var units []*unit
	for _, fn := range pass.ResultOf[buildssa.Analyzer].(*buildssa.SSA).SrcFuncs {
		if fn.Parent() == nil && instructions(fn) <= mostInstructions {
			units = append(units, newUnit(fn, find))
		}
	}
	changed := map[*ssa.Function]bool{}
	for round := range mostRounds {
		next := map[*ssa.Function]bool{}
		for _, u := range units {
			if round > 0 && !u.calls(changed) {
				continue
			}
			u.solve()
			e := u.effects(standard)
			if !reflect.DeepEqual(e, known[u.fn]) {
				known[u.fn] = e
				next[u.fn] = true
			}
		}
		if changed = next; len(changed) == 0 {
			break
		}
	}
	for _, u := range units {
		if e := known[u.fn]; u.fn.Object() != nil && len(e.Flows)+len(e.Ends) > 0 {
			pass.ExportObjectFact(u.fn.Object(), e)
		}
		u.report(pass)
	}
	return nil, nil
}

func instructions(fn *ssa.Function) (count int) {
	for _, b := range fn.Blocks {
		count += len(b.Instrs)
	}
	for _, inner := range fn.AnonFuncs {
		count += instructions(inner)
	}
	return count
}
