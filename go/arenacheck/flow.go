package arenacheck

import (
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"
)

// A unit is a function with the functions that are written in it. Its values are followed without
// regard to the order of instructions; the order comes in where the end of an arena is judged.
type unit struct {
	fn   *ssa.Function
	find func(*ssa.Function) *effects

	points  map[ssa.Value]set
	tuples  map[objectKey]set // of calls with several results
	cells   map[cell]set
	fields  map[*object]map[string]bool
	objects map[objectKey]*object
	changed bool

	callees map[*ssa.Function]bool
	ends    []ending
	stores  []storing
}

func newUnit(fn *ssa.Function, find func(*ssa.Function) *effects) *unit {
	u := &unit{
		fn: fn, find: find, callees: map[*ssa.Function]bool{},
		points: map[ssa.Value]set{}, tuples: map[objectKey]set{}, cells: map[cell]set{},
		fields: map[*object]map[string]bool{}, objects: map[objectKey]*object{},
	}
	return u
}

// calls tells whether the unit calls one of the functions.
func (u *unit) calls(some map[*ssa.Function]bool) bool {
	for fn := range some {
		if u.callees[fn] {
			return true
		}
	}
	return false
}

// solve visits the instructions until they have nothing new.
func (u *unit) solve() {
	u.changed = true
	for visits := 0; u.changed && visits < mostVisits; visits++ {
		u.changed = false
		u.ends, u.stores = nil, nil
		u.visit(u.fn)
	}
}

func (u *unit) visit(fn *ssa.Function) {
	for i, p := range fn.Params {
		made := object{fn: fn, kind: outside, opaque: true, index: i}
		if fn != u.fn {
			made.kind = local
		}
		u.add(p, one(u.object(p, nil, made)))
	}
	for _, b := range fn.Blocks {
		for _, in := range b.Instrs {
			u.instruction(in)
		}
	}
	for _, inner := range fn.AnonFuncs {
		u.visit(inner)
	}
}

// of returns what a value points to.
func (u *unit) of(v ssa.Value) set {
	switch v := v.(type) {
	case *ssa.Global:
		return one(u.object(v, nil, object{kind: static, opaque: true}))
	case *ssa.Function:
		return one(u.object(v, nil, object{closure: v, fn: u.fn}))
	}
	return u.points[v]
}

func (u *unit) instruction(in ssa.Instruction) {
	switch in := in.(type) {
	case *ssa.Alloc:
		u.add(in, one(u.object(in, nil, object{fn: in.Parent(), site: in})))
	case *ssa.MakeMap, *ssa.MakeSlice, *ssa.MakeChan:
		u.add(in.(ssa.Value), one(u.object(in, nil, object{fn: in.Parent(), site: in})))
	case *ssa.MakeClosure:
		u.closure(in)
	case *ssa.Phi:
		for _, edge := range in.Edges {
			u.add(in, u.of(edge))
		}
	case *ssa.FieldAddr:
		name := fieldName(in.X.Type().Underlying().(*types.Pointer).Elem(), in.Field)
		for e := range u.of(in.X) {
			u.add(in, set{elem{"", e.o, name}: {}})
		}
	case *ssa.Field:
		name := fieldName(in.X.Type(), in.Field)
		for e := range u.of(in.X) {
			switch {
			case e.in == name:
				u.add(in, set{elem{"", e.o, e.at}: {}})
			case e.in == "" && e.o.opaque:
				u.add(in, u.load(e.o, name))
			case e.in == "":
				u.add(in, set{e: {}})
			}
		}
	case *ssa.IndexAddr:
		u.add(in, u.of(in.X))
	case *ssa.Index:
		u.add(in, u.of(in.X))
	case *ssa.Slice:
		u.add(in, u.of(in.X))
	case *ssa.ChangeType:
		u.add(in, u.of(in.X))
	case *ssa.ChangeInterface:
		u.add(in, u.of(in.X))
	case *ssa.MakeInterface:
		u.add(in, u.of(in.X))
	case *ssa.SliceToArrayPointer:
		u.add(in, u.of(in.X))
	case *ssa.MultiConvert:
		u.add(in, u.of(in.X))
	case *ssa.Convert:
		u.convert(in)
	case *ssa.TypeAssert:
		if in.CommaOk {
			u.addTuple(in, 0, u.of(in.X))
		} else {
			u.add(in, u.of(in.X))
		}
	case *ssa.Extract:
		u.add(in, u.tuples[objectKey{in.Tuple, in.Index}])
	default:
		u.effect(in)
	}
}

// effect visits the instructions that load, store and call.
func (u *unit) effect(in ssa.Instruction) {
	switch in := in.(type) {
	case *ssa.UnOp:
		switch {
		case in.Op == token.ARROW && in.CommaOk:
			u.addTuple(in, 0, u.loadAll(u.of(in.X), elemType(in.X.Type())))
		case in.Op == token.ARROW || in.Op == token.MUL:
			u.add(in, u.loadAll(u.of(in.X), in.Type()))
		}
	case *ssa.Lookup:
		loaded := u.loadAll(u.of(in.X), elemType(in.X.Type()))
		if in.CommaOk {
			u.addTuple(in, 0, loaded)
		} else {
			u.add(in, loaded)
		}
	case *ssa.Range:
		u.add(in, u.of(in.X))
	case *ssa.Next:
		if !in.IsString {
			loaded := u.loadAll(u.of(in.Iter), nil)
			u.addTuple(in, 1, loaded)
			u.addTuple(in, 2, loaded)
		}
	case *ssa.Select:
		at := 2
		for _, s := range in.States {
			if s.Dir == types.SendOnly {
				u.put(in, u.of(s.Chan), s.Send, "sent on a channel")
				continue
			}
			u.addTuple(in, at, u.loadAll(u.of(s.Chan), elemType(s.Chan.Type())))
			at++
		}
	case *ssa.Store:
		u.put(in, u.of(in.Addr), in.Val, "")
	case *ssa.MapUpdate:
		u.put(in, u.of(in.Map), in.Key, "")
		u.put(in, u.of(in.Map), in.Value, "")
	case *ssa.Send:
		u.put(in, u.of(in.Chan), in.X, "sent on a channel")
	case *ssa.Return:
		if in.Block() == in.Parent().Recover {
			return // what the other returns have stored
		}
		for _, v := range in.Results {
			u.stores = append(u.stores, storing{in: in, values: u.resultOf(v, in), how: "returned"})
		}
	case ssa.CallInstruction:
		u.call(in)
	}
}

// resultOf returns what a result points to. In a function with deferred calls it is stored in a
// variable before these are made.
func (u *unit) resultOf(v ssa.Value, at *ssa.Return) set {
	load, ok := v.(*ssa.UnOp)
	if !ok || load.Op != token.MUL {
		return u.of(v)
	}
	variable, ok := load.X.(*ssa.Alloc)
	if !ok || variable.Heap {
		return u.of(v)
	}
	for _, in := range slices.Backward(at.Block().Instrs) {
		if s, ok := in.(*ssa.Store); ok && s.Addr == variable {
			return u.of(s.Val)
		}
	}
	return u.of(v)
}

// put stores a value where the target points, and notes it for the report.
func (u *unit) put(in ssa.Instruction, target set, v ssa.Value, how string) {
	values := u.of(v)
	if len(values) == 0 || !hasPointers(v.Type(), nil) {
		return
	}
	for e := range target {
		u.store(e.o, e.at, values)
	}
	u.stores = append(u.stores, storing{in: in, values: values, target: target, how: how})
}

func (u *unit) addTuple(v ssa.Value, index int, values set) {
	key := objectKey{v, index}
	if u.tuples[key] == nil {
		u.tuples[key] = set{}
	}
	for e := range values {
		if _, has := u.tuples[key][e]; !has && len(u.tuples[key]) < mostObjects {
			u.tuples[key][e] = struct{}{}
			u.changed = true
		}
	}
}

// loadAll loads a value of the type; a nil type is any.
func (u *unit) loadAll(from set, t types.Type) set {
	all := set{}
	if t != nil && !hasPointers(t, nil) {
		return all
	}
	_, isStruct := under(t).(*types.Struct)
	for e := range from {
		var loaded set
		if isStruct || t == nil {
			loaded = u.loadStruct(e.o)
		} else {
			loaded = u.load(e.o, e.at)
		}
		for e := range loaded {
			if !isStruct {
				e.in = ""
			}
			all[e] = struct{}{}
		}
	}
	return all
}

func under(t types.Type) types.Type {
	if t == nil {
		return nil
	}
	return t.Underlying()
}

// A conversion between strings and slices copies.
func (u *unit) convert(in *ssa.Convert) {
	_, fromString := in.X.Type().Underlying().(*types.Basic)
	_, toString := in.Type().Underlying().(*types.Basic)
	if fromString == toString {
		u.add(in, u.of(in.X))
	}
}

func (u *unit) closure(in *ssa.MakeClosure) {
	fn := in.Fn.(*ssa.Function)
	o := u.object(in, nil, object{fn: in.Parent(), closure: fn, site: in})
	for i, v := range in.Bindings {
		if hasPointers(v.Type(), nil) {
			u.store(o, "", u.of(v))
		}
		if fn.Parent() != nil {
			u.add(fn.FreeVars[i], u.of(v))
		}
	}
	u.add(in, one(o))
}

func fieldName(t types.Type, index int) string {
	return t.Underlying().(*types.Struct).Field(index).Name()
}

func elemType(t types.Type) types.Type {
	switch t := t.Underlying().(type) {
	case *types.Chan:
		return t.Elem()
	case *types.Map:
		return t.Elem()
	}
	return types.Typ[types.Int] // of a string
}
