package arenacheck

import (
	"go/constant"
	"go/token"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"
)

// effects sums up what callers have to know. Flows of the standard library into global
// variables are left out: caches and pools there forget it again.
func (u *unit) effects(standard bool) *effects {
	e := &effects{}
	results := u.results()
	places := u.places(results)
	add := func(from *object, to place) {
		var f flow
		if p, ok := places[from]; ok {
			f = flow{p, to}
		} else if p, ok := places[from.owner]; ok && from.kind == memory {
			f = flow{p, to}
			f.From.Memory = true
		} else {
			return
		}
		same := f.From.Root == to.Root && f.From.Index == to.Index && !f.From.Memory
		if !same && !slices.Contains(e.Flows, f) && len(e.Flows) < mostFlows {
			e.Flows = append(e.Flows, f)
		}
	}
	for i, values := range results {
		u.reach(values, func(o *object, path string) {
			add(o, place{Root: result, Index: i, Path: path})
		})
	}
	for o, fields := range u.fields {
		to, ok := places[o]
		if o.kind == static {
			to, ok = place{Root: global}, !standard
		}
		if !ok || to.Root == result {
			continue
		}
		for at := range fields {
			u.reach(u.cells[cell{o, at}], func(from *object, path string) {
				to := to
				if to.Root == parameter {
					to.Path = join(to.Path, at)
				}
				add(from, to)
			})
		}
	}
	for _, end := range u.ends {
		for o := range end.arenas {
			if p, ok := places[o.o]; ok && end.fn == u.fn && end.mark == nil && p.Root == parameter {
				if !slices.Contains(e.Ends, p) {
					e.Ends = append(e.Ends, p)
				}
			}
		}
	}
	sortFlows(e)
	return e
}

func sortFlows(e *effects) {
	compare := func(a, b place) int {
		if c := int(a.Root) - int(b.Root); c != 0 {
			return c
		}
		if c := a.Index - b.Index; c != 0 {
			return c
		}
		if a.Memory != b.Memory {
			if a.Memory {
				return 1
			}
			return -1
		}
		return strings.Compare(a.Path, b.Path)
	}
	slices.SortFunc(e.Flows, func(a, b flow) int {
		if c := compare(a.From, b.From); c != 0 {
			return c
		}
		return compare(a.To, b.To)
	})
	slices.SortFunc(e.Ends, compare)
}

// results returns what each result points to.
func (u *unit) results() (all []set) {
	all = make([]set, u.fn.Signature.Results().Len())
	for i := range all {
		all[i] = set{}
	}
	for _, s := range u.stores {
		r, ok := s.in.(*ssa.Return)
		if !ok || r.Parent() != u.fn {
			continue
		}
		for i, v := range r.Results {
			for e := range u.resultOf(v, r) {
				if hasPointers(v.Type(), nil) {
					all[i][e] = struct{}{}
				}
			}
		}
	}
	return all
}

// places tells where callers find objects: parameters and what they lead to, and arenas in results.
func (u *unit) places(results []set) map[*object]place {
	places := map[*object]place{}
	for _, o := range u.objects {
		if o.kind == outside {
			places[o] = place{Root: parameter, Index: o.index, Path: o.path}
		}
	}
	for i, values := range results {
		u.reach(values, func(o *object, path string) {
			if o.kind == arena {
				places[o] = place{Root: result, Index: i, Path: path}
			}
		})
	}
	return places
}

// report says which values outlive their arenas, once for each line.
func (u *unit) report(pass *analysis.Pass) {
	reported := map[int]bool{}
	for _, s := range u.stores {
		at := pass.Fset.Position(position(s.in)).Line
		if reported[at] {
			continue
		}
		if end, how := u.outlived(s); end != nil {
			reported[at] = true
			pass.Reportf(position(s.in), "memory of an arena is %s and outlives the arena, which ends "+
				"in line %d: Clone it", how, pass.Fset.Position(position(end)).Line)
		}
	}
}

func position(in ssa.Instruction) token.Pos {
	if in.Pos().IsValid() {
		return in.Pos()
	}
	if s, ok := in.(*ssa.Store); ok {
		for _, v := range []ssa.Value{s.Addr, s.Val} {
			if v.Pos().IsValid() {
				return v.Pos()
			}
		}
	}
	return in.Parent().Pos()
}

// outlived returns the call that ends an arena of the values, which are in use longer.
func (u *unit) outlived(s storing) (end ssa.Instruction, how string) {
	u.reach(s.values, func(m *object, _ string) {
		if m.kind != memory || end != nil {
			return
		}
		for i := range u.ends {
			e := &u.ends[i]
			if !ends(e.arenas, m.owner) {
				continue
			}
			if how = u.leaves(s, e); how != "" && u.inOrder(s, m, e) {
				end = e.in
				return
			}
		}
	})
	return end, how
}

// ends tells whether an arena is one of those, or a child of one.
func ends(arenas set, owner *object) bool {
	for e := range arenas {
		if e.o == owner {
			return true
		}
	}
	for e := range owner.parents {
		if ends(arenas, e.o) {
			return true
		}
	}
	return false
}

// leaves says how the values get to where they outlive the arenas of an ending, or "".
func (u *unit) leaves(s storing, e *ending) string {
	switch s.in.(type) {
	case *ssa.Return:
		if s.in.Parent() == e.fn {
			return s.how
		}
		return ""
	case *ssa.Go:
		if s.target == nil {
			if u.at(s.in, e.fn) == nil || waits(e.fn) {
				return ""
			}
			return s.how
		}
	}
	for t := range s.target {
		switch o := t.o; {
		case o.kind == static:
			return or(s.how, "stored in a global variable")
		case o.kind == memory:
			if !ends(e.arenas, o.owner) && (!e.deferred || u.longer(o.owner, e.fn)) {
				return or(s.how, "stored in another arena")
			}
		case o.opaque && o.kind == outside && u.longer(o, e.fn), o.kind == local && !o.opaque &&
			u.longer(o, e.fn):
			return or(s.how, "stored in memory from outside the function")
		}
	}
	return ""
}

func or(how, otherwise string) string {
	if how != "" {
		return how
	}
	return otherwise
}

// longer tells whether an object may live on when the function has returned.
func (u *unit) longer(o *object, fn *ssa.Function) bool {
	if o.kind == outside || o.kind == static {
		return true
	}
	for up := fn.Parent(); up != nil; up = up.Parent() {
		if o.fn == up {
			return true
		}
	}
	return false
}

// waits tells whether a function receives from a channel or calls a Wait.
func waits(fn *ssa.Function) bool {
	for _, b := range fn.Blocks {
		for _, in := range b.Instrs {
			switch in := in.(type) {
			case *ssa.UnOp:
				if in.Op == token.ARROW {
					return true
				}
			case *ssa.Select, *ssa.Next:
				return true
			case ssa.CallInstruction:
				common := in.Common()
				if common.IsInvoke() && common.Method.Name() == "Wait" {
					return true
				}
				if callee := common.StaticCallee(); callee != nil && callee.Name() == "Wait" {
					return true
				}
			}
		}
	}
	return false
}

// inOrder tells whether the arena can end after the memory was taken and stored, while it is still
// where it was stored.
func (u *unit) inOrder(s storing, m *object, e *ending) bool {
	site, stored := u.at(m.site, e.fn), u.at(s.in, e.fn)
	if site == nil || stored == nil {
		return e.deferred
	}
	if e.mark != nil && !u.sinceMark(site, e) {
		return false
	}
	overwritten, cleared := u.overwrites(s, e.fn)
	if cleared {
		return false
	}
	if e.deferred {
		_, isReturn := s.in.(*ssa.Return)
		return isReturn || reaches(stored, nil, overwritten)
	}
	if _, isReturn := s.in.(*ssa.Return); isReturn {
		again := []ssa.Instruction{site}
		return reaches(site, e.in, again) && reaches(e.in, stored, again)
	}
	avoid := append(overwritten, stored)
	return (stored == e.in || reaches(stored, e.in, avoid)) && reaches(e.in, nil, avoid)
}

// sinceMark tells whether memory was taken after the Mark of a Rewind.
func (u *unit) sinceMark(site ssa.Instruction, e *ending) bool {
	mark, ok := e.mark.(ssa.Instruction)
	if !ok || mark.Parent() != e.fn {
		return true
	}
	return reaches(mark, site, nil)
}

// at returns the instruction of the function that stands for one of a function literal in it.
func (u *unit) at(in ssa.Instruction, fn *ssa.Function) ssa.Instruction {
	for in != nil && in.Parent() != fn {
		inner := in.Parent()
		if inner.Parent() == nil {
			return nil
		}
		in = useOf(inner)
	}
	return in
}

// useOf returns the first instruction that uses a function literal.
func useOf(fn *ssa.Function) ssa.Instruction {
	for _, b := range fn.Parent().Blocks {
		for _, in := range b.Instrs {
			for _, operand := range in.Operands(nil) {
				if *operand == fn {
					return in
				}
			}
		}
	}
	return nil
}

// overwrites returns the instructions that store something else in the same place, and whether a
// deferred function stores nil there.
func (u *unit) overwrites(s storing, fn *ssa.Function) (all []ssa.Instruction, cleared bool) {
	first, ok := s.in.(*ssa.Store)
	if !ok {
		return nil, false
	}
	for _, b := range fn.Blocks {
		for _, in := range b.Instrs {
			switch in := in.(type) {
			case *ssa.Store:
				if in != first && samePlace(in.Addr, first.Addr) {
					all = append(all, in)
				}
			case *ssa.Defer:
				if inner := in.Common().StaticCallee(); inner != nil && clears(inner, first.Addr) {
					cleared = true
				}
			}
		}
	}
	return all, cleared
}

// clears tells whether a function literal stores nil in the field.
func clears(fn *ssa.Function, address ssa.Value) bool {
	for _, b := range fn.Blocks {
		for _, in := range b.Instrs {
			s, ok := in.(*ssa.Store)
			if !ok {
				continue
			}
			c, ok := s.Val.(*ssa.Const)
			ok = ok && (c.Value == nil || c.Value.Kind() == constant.String)
			if ok && sameField(s.Addr, address) {
				return true
			}
		}
	}
	return false
}

func samePlace(a, b ssa.Value) bool {
	if a == b {
		return true
	}
	x, ok := a.(*ssa.FieldAddr)
	y, ok2 := b.(*ssa.FieldAddr)
	if ok && ok2 && x.Field == y.Field {
		return samePlace(x.X, y.X)
	}
	p, ok := a.(*ssa.UnOp)
	q, ok2 := b.(*ssa.UnOp)
	return ok && ok2 && p.Op == token.MUL && q.Op == token.MUL && samePlace(p.X, q.X)
}

func sameField(a, b ssa.Value) bool {
	x, ok := a.(*ssa.FieldAddr)
	y, ok2 := b.(*ssa.FieldAddr)
	if ok && ok2 {
		return x.Field == y.Field && x.X.Type() == y.X.Type()
	}
	return a == b
}

// reaches tells whether control can get from behind one instruction to another without passing those to
// avoid; nil is the end of the function.
func reaches(from, to ssa.Instruction, avoid []ssa.Instruction) bool {
	seen := map[*ssa.BasicBlock]bool{}
	var walk func(b *ssa.BasicBlock, start int) bool
	walk = func(b *ssa.BasicBlock, start int) bool {
		for _, in := range b.Instrs[start:] {
			if in == to {
				return true
			}
			if slices.Contains(avoid, in) {
				return false
			}
		}
		if len(b.Succs) == 0 {
			return to == nil
		}
		for _, next := range b.Succs {
			if !seen[next] {
				seen[next] = true
				if walk(next, 0) {
					return true
				}
			}
		}
		return false
	}
	return walk(from.Block(), slices.Index(from.Block().Instrs, from)+1)
}
