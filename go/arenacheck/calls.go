package arenacheck

import (
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

const module = "github.com/tenure-alloc/tenure/go/"

// An ending is a call that ends arenas.
type ending struct {
	in       ssa.Instruction
	fn       *ssa.Function // at whose end, or in which, the arenas end
	deferred bool
	arenas   set
	mark     ssa.Value // of a Rewind: objects before it stay
}

// A storing is an instruction that puts values into targets, or lets them leave the function.
type storing struct {
	in     ssa.Instruction
	values set
	target set
	how    string
}

// apiOf returns the name of a function of the packages that make and end arenas, as "arena.New" or
// "scope.Scope.End", and "" of any other.
func apiOf(fn *ssa.Function) string {
	if fn.Origin() != nil {
		fn = fn.Origin()
	}
	object, _ := fn.Object().(*types.Func)
	if object == nil || object.Pkg() == nil {
		return ""
	}
	name := ""
	switch path := object.Pkg().Path(); path {
	case "arena", module + "arena", module + "arena/switched":
		name = "arena."
	case module + "scope":
		name = "scope."
	case module + "pool":
		name = "pool."
	case "sync":
		name = "sync."
	case "sync/atomic":
		name = "atomic."
	default:
		return ""
	}
	if receiver := object.Type().(*types.Signature).Recv(); receiver != nil {
		t := receiver.Type()
		if p, ok := t.(*types.Pointer); ok {
			t = p.Elem()
		}
		if named, ok := t.(*types.Named); ok {
			name += named.Obj().Name() + "."
		}
	}
	return name + object.Name()
}

// call visits a call, a deferred call or a go statement.
func (u *unit) call(in ssa.CallInstruction) {
	common := in.Common()
	arguments := slices.Clone(common.Args)
	if _, ok := in.(*ssa.Go); ok {
		for _, v := range append(arguments, common.Value) {
			u.stores = append(u.stores, storing{in: in, values: u.of(v), how: "used by a goroutine"})
		}
	}
	if builtin, ok := common.Value.(*ssa.Builtin); ok {
		u.builtin(in, builtin.Name(), arguments)
		return
	}
	fn := common.StaticCallee()
	if common.IsInvoke() {
		u.unknown(in)
		return
	}
	if fn == nil {
		known := false
		for e := range u.of(common.Value) {
			if e.o.closure != nil {
				all := append(bound(e.o.closure, e.o.site), arguments...)
				known = u.callOf(in, e.o.closure, all) || known
			}
		}
		if !known {
			u.unknown(in)
		}
		return
	}
	made, _ := common.Value.(ssa.Instruction)
	if !u.callOf(in, fn, append(bound(fn, made), arguments...)) {
		u.unknown(in)
	}
}

// bound returns the receiver of a method value.
func bound(fn *ssa.Function, made ssa.Instruction) []ssa.Value {
	if closure, ok := made.(*ssa.MakeClosure); ok && fn.Parent() == nil {
		return slices.Clone(closure.Bindings)
	}
	return nil
}

// callOf visits a call of a function; false if nothing is known of it.
func (u *unit) callOf(in ssa.CallInstruction, fn *ssa.Function, arguments []ssa.Value) bool {
	if name := apiOf(fn); name != "" && u.api(in, name, arguments) {
		return true
	}
	if u.isInner(fn) {
		for i, v := range arguments {
			if i < len(fn.Params) {
				u.add(fn.Params[i], u.of(v))
			}
		}
		for _, b := range fn.Blocks {
			if r, ok := b.Instrs[len(b.Instrs)-1].(*ssa.Return); ok {
				for i, v := range r.Results {
					u.addResult(in, i, u.of(v))
				}
			}
		}
		return true
	}
	origin := fn
	if fn.Origin() != nil {
		origin = fn.Origin()
	}
	u.callees[origin] = true
	e := u.find(origin)
	if e == nil {
		return false
	}
	u.apply(in, e, arguments)
	return true
}

func (u *unit) isInner(fn *ssa.Function) bool {
	for ; fn.Parent() != nil; fn = fn.Parent() {
		if fn.Parent() == u.fn {
			return true
		}
	}
	return false
}

// unknown gives each result an object of its own.
func (u *unit) unknown(in ssa.CallInstruction) {
	for i := range in.Common().Signature().Results().Len() {
		u.addResult(in, i, one(u.opaqueOf(in, i)))
	}
}

func (u *unit) addResult(in ssa.CallInstruction, index int, values set) {
	v := in.Value()
	if v == nil {
		return
	}
	if in.Common().Signature().Results().Len() == 1 {
		u.add(v, values)
	} else {
		u.addTuple(v, index, values)
	}
}

// apply does at a call what a function's effects say.
func (u *unit) apply(in ssa.CallInstruction, e *effects, arguments []ssa.Value) {
	u.unknown(in)
	at := func(p place, path string) set {
		switch {
		case p.Root == global:
			return one(u.object("global", nil, object{kind: static, opaque: true}))
		case p.Root == result && in.Value() == nil:
			return nil
		case p.Root == result:
			return u.locate(one(u.opaqueOf(in, p.Index)), path)
		case p.Index < len(arguments):
			return u.locate(u.of(arguments[p.Index]), path)
		}
		return nil
	}
	for _, f := range e.Flows {
		values := at(f.From, f.From.Path)
		if f.From.Memory {
			values = u.memoriesOf(values, in)
		}
		if f.To.Root == result && f.To.Path == "" {
			u.addResult(in, f.To.Index, values)
			continue
		}
		above, field := "", f.To.Path
		if cut := strings.LastIndex(field, separator); cut >= 0 {
			above, field = field[:cut], field[cut+1:]
		}
		if field == "*" {
			field = ""
		}
		target := set{}
		for to := range at(f.To, above) {
			if field != "" {
				to.at = field
			}
			target[to] = struct{}{}
			u.store(to.o, to.at, values)
		}
		if f.To.Root != result {
			u.stores = append(u.stores, storing{in: in, values: values, target: target})
		}
	}
	for _, p := range e.Ends {
		u.end(in, at(p, p.Path), nil)
	}
}

func (u *unit) memoriesOf(arenas set, site ssa.Instruction) set {
	all := set{}
	for e := range arenas {
		if e.o.kind != memory {
			all[elem{"", u.memoryOf(e.o, site), ""}] = struct{}{}
		}
	}
	return all
}

// api visits a call of a function whose meaning for arenas is known; false if it has none.
func (u *unit) api(in ssa.CallInstruction, name string, arguments []ssa.Value) bool {
	first := set{}
	if len(arguments) > 0 {
		first = u.of(arguments[0])
	}
	switch name {
	case "arena.NewArena", "scope.New":
		u.addResult(in, 0, one(u.object(in, nil, object{fn: in.Parent(), kind: arena, site: in})))
	case "arena.Arena.Child", "scope.Scope.Child":
		child := u.object(in, nil, object{fn: in.Parent(), kind: arena, site: in, parents: set{}})
		for e := range first {
			child.parents[e] = struct{}{}
		}
		u.addResult(in, 0, one(child))
	case "arena.New", "arena.MakeSlice", "arena.CopyBytes", "arena.CopyString", "arena.NewOf",
		"arena.Class.New":
		u.addResult(in, 0, u.memoriesOf(first, in))
	case "arena.Append":
		u.appended(in, u.memoriesOf(first, in), u.of(arguments[1]), u.of(arguments[2]))
	case "arena.NewRef", "arena.RefTo":
		o := u.object(in, nil, object{fn: in.Parent(), kind: safe, site: in})
		u.store(o, "", u.memoriesOf(first, in))
		if name == "arena.RefTo" {
			u.store(o, "", u.of(arguments[1]))
		}
		u.addResult(in, 0, one(o))
	case "arena.Ref.Get":
		u.addResult(in, 0, u.loadAll(first, nil))
	case "arena.ClassOf", "scope.Scope.Arena":
		u.addResult(in, 0, first)
	case "arena.Clone":
		o := u.object(in, nil, object{fn: in.Parent(), site: in})
		for e := range first {
			u.store(o, "", u.loadStruct(e.o))
		}
		u.addResult(in, 0, one(o))
	case "arena.Arena.Free", "arena.Arena.Reset", "scope.Scope.End", "scope.Scope.Reset":
		u.end(in, first, nil)
	case "arena.Arena.Rewind":
		u.end(in, first, arguments[1])
	case "scope.NewContext":
		o := u.object(in, nil, object{fn: in.Parent(), site: in})
		u.store(o, "scope", u.of(arguments[1]))
		u.addResult(in, 0, one(o))
	case "scope.From":
		for e := range first {
			u.addResult(in, 0, u.load(e.o, "scope"))
		}
	case "sync.Map.Store", "sync.Map.Swap", "sync.Map.LoadOrStore", "atomic.Pointer.Store",
		"atomic.Pointer.Swap", "atomic.Pointer.CompareAndSwap",
		"atomic.Value.Store", "atomic.Value.Swap":
		u.unknown(in)
		for _, v := range arguments[1:] {
			u.put(in, first, v, "")
		}
	case "sync.Map.Load", "atomic.Pointer.Load", "atomic.Value.Load":
		u.addResult(in, 0, u.loadAll(first, nil))
	case "pool.Pool.Put", "pool.Local.Put", "sync.Pool.Put":
		return u.putArena(in, arguments[1])
	default:
		return strings.HasPrefix(name, "scope.") && in.Value() == nil
	}
	return true
}

// putArena ends an arena that is put into a pool; false for other items.
func (u *unit) putArena(in ssa.CallInstruction, item ssa.Value) bool {
	if made, ok := item.(*ssa.MakeInterface); ok {
		item = made.X
	}
	p, ok := item.Type().Underlying().(*types.Pointer)
	if !ok {
		return false
	}
	named, ok := p.Elem().(*types.Named)
	if !ok || named.Obj().Name() != "Arena" && named.Obj().Name() != "Scope" {
		return false
	}
	u.end(in, u.of(item), nil)
	return true
}

func (u *unit) builtin(in ssa.CallInstruction, name string, arguments []ssa.Value) {
	switch name {
	case "append":
		grown := one(u.object(in, nil, object{fn: in.Parent(), site: in}))
		u.appended(in, grown, u.of(arguments[0]), u.of(arguments[1]))
	case "copy":
		loaded := u.loadStructs(u.of(arguments[1]))
		for e := range u.of(arguments[0]) {
			u.store(e.o, e.at, loaded)
		}
		u.stores = append(u.stores, storing{in: in, values: loaded, target: u.of(arguments[0])})
	case "min", "max", "ssa:wrapnilchk":
		for _, v := range arguments {
			u.addResult(in, 0, u.of(v))
		}
	}
}

// appended is the slice, or one that grew with the elements of both.
func (u *unit) appended(in ssa.CallInstruction, grown, slice, values set) {
	more := u.loadStructs(values)
	for _, to := range []set{grown, slice} {
		for e := range to {
			u.store(e.o, e.at, more)
		}
	}
	for e := range grown {
		u.store(e.o, "", u.loadStructs(slice))
	}
	u.stores = append(u.stores, storing{in: in, values: more, target: slice})
	u.addResult(in, 0, grown)
	u.addResult(in, 0, slice)
}

// loadStructs returns all that elements hold.
func (u *unit) loadStructs(from set) set {
	all := set{}
	for e := range from {
		for loaded := range u.loadStruct(e.o) {
			if !(e.o.opaque && loaded.o == e.o) {
				all[loaded] = struct{}{}
			}
		}
		if e.o.opaque {
			for loaded := range u.load(e.o, e.at) {
				all[loaded] = struct{}{}
			}
		}
	}
	return all
}

// end notes the end of arenas and of their children. One that only some ways through a deferred
// function lead to is not noted.
func (u *unit) end(in ssa.CallInstruction, arenas set, mark ssa.Value) {
	e := ending{in: in, fn: in.Parent(), arenas: arenas, mark: mark}
	_, e.deferred = in.(*ssa.Defer)
	for e.fn != u.fn && !e.deferred {
		site := deferOf(e.fn)
		if site == nil || in.Block() != e.fn.Blocks[0] {
			break
		}
		e.in, e.fn, e.deferred = site, site.Parent(), true
	}
	u.ends = append(u.ends, e)
}

// deferOf returns the statement that defers a function literal, if that is its only use.
func deferOf(fn *ssa.Function) ssa.Instruction {
	for _, b := range fn.Parent().Blocks {
		for _, in := range b.Instrs {
			d, ok := in.(*ssa.Defer)
			if ok && d.Common().StaticCallee() == fn {
				return d
			}
		}
	}
	return nil
}
