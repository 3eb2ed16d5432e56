package arenacheck

import (
	"go/types"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// An object stands for memory: a variable, what a make or new made, what a parameter points to.
type object struct {
	fn   *ssa.Function // in which it lives; nil if it is global
	kind kind

	// Of one that is known by its place only, as a parameter's: its contents are there too.
	opaque bool
	root   *object // opaque: of the parameter, global variable or call
	index  int     // of the parameter
	path   string

	owner   *object // of memory: the arena
	site    ssa.Instruction
	parents set           // of a child: the arenas that it ends with
	closure *ssa.Function // of a function value
}

type kind uint8

const (
	local   kind = iota
	outside      // a parameter, or what it leads to
	static       // a global variable, or what it leads to
	arena        // an arena or scope made here
	memory       // of an arena
	safe         // a Ref, which knows whether its object is gone
)

// An elem is a value's pointer to a field of an object. That of a struct's value says in which field.
type elem struct {
	in string
	o  *object
	at string
}

type set map[elem]struct{}

// A cell is a field of an object.
type cell struct {
	o  *object
	at string
}

const (
	mostDepth = 3 // of a path
	separator = "."
)

// derive returns what the field of an opaque object leads to.
func (u *unit) derive(o *object, at string) *object {
	if o.path != "" && strings.Count(o.path, separator)+1 >= mostDepth {
		return o
	}
	path := join(o.path, at)
	if o.root != nil {
		o = o.root
	}
	key := objectKey{o, path}
	if d := u.objects[key]; d != nil {
		return d
	}
	d := &object{fn: o.fn, kind: o.kind, opaque: true, root: o, index: o.index, path: path}
	u.objects[key] = d
	return d
}

func join(path, at string) string {
	if at == "" {
		at = "*"
	}
	if path == "" {
		return at
	}
	return path + separator + at
}

type objectKey struct {
	of any
	as any
}

// object returns the one object of a key.
func (u *unit) object(of, as any, made object) *object {
	key := objectKey{of, as}
	if o := u.objects[key]; o != nil {
		return o
	}
	o := &made
	u.objects[key] = o
	return o
}

// memoryOf returns the memory that an instruction takes from an arena.
func (u *unit) memoryOf(owner *object, site ssa.Instruction) *object {
	return u.object(owner, site, object{fn: owner.fn, kind: memory, owner: owner, site: site})
}

// opaqueOf returns the unknown object that an instruction brings in.
func (u *unit) opaqueOf(site ssa.Instruction, index int) *object {
	return u.object(site, index, object{fn: site.Parent(), opaque: true, site: site})
}

// load returns what a field of an object leads to.
func (u *unit) load(o *object, at string) set {
	s := set{}
	if at == "" {
		for e := range u.cells[cell{o, ""}] {
			s[e] = struct{}{}
		}
	} else {
		for _, key := range []string{at, ""} {
			for e := range u.cells[cell{o, key}] {
				s[elem{"", e.o, e.at}] = struct{}{}
			}
		}
	}
	if o.opaque && (len(s) == 0 || o.kind != local) {
		s[elem{"", u.derive(o, at), ""}] = struct{}{}
	}
	return s
}

// loadStruct returns the value of a whole struct.
func (u *unit) loadStruct(o *object) set {
	s := set{}
	for at := range u.fields[o] {
		for e := range u.cells[cell{o, at}] {
			s[elem{at, e.o, e.at}] = struct{}{}
		}
	}
	if o.opaque {
		s[elem{"", o, ""}] = struct{}{}
	}
	return s
}

func (u *unit) store(o *object, at string, values set) {
	for e := range values {
		to := cell{o, at}
		if e.in != "" {
			to.at = e.in
		}
		e.in = ""
		if u.cells[to] == nil {
			u.cells[to] = set{}
			if u.fields[o] == nil {
				u.fields[o] = map[string]bool{}
			}
			u.fields[o][to.at] = true
		}
		if _, has := u.cells[to][e]; !has && len(u.cells[to]) < mostObjects {
			u.cells[to][e] = struct{}{}
			u.changed = true
		}
	}
}

// add puts values into the points-to set of a register.
func (u *unit) add(v ssa.Value, values set) {
	if v == nil || len(values) == 0 || !hasPointers(v.Type(), nil) {
		return
	}
	if u.points[v] == nil {
		u.points[v] = set{}
	}
	for e := range values {
		if _, has := u.points[v][e]; !has && len(u.points[v]) < mostObjects {
			u.points[v][e] = struct{}{}
			u.changed = true
		}
	}
}

func one(o *object) set { return set{elem{"", o, ""}: {}} }

// reach calls visit once for each object that the values lead to, with its path. It does not go through
// what is opaque, or safe.
func (u *unit) reach(values set, visit func(o *object, path string)) {
	seen := map[*object]bool{}
	var walk func(values set, path string, depth int)
	walk = func(values set, path string, depth int) {
		for e := range values {
			if seen[e.o] {
				continue
			}
			seen[e.o] = true
			at := path
			if e.in != "" {
				at = join(path, e.in)
			}
			visit(e.o, at)
			if e.o.kind == safe || e.o.opaque && e.o.kind != local {
				continue
			}
			for field := range u.fields[e.o] {
				next := at
				if depth < mostDepth {
					next = join(at, field)
				}
				walk(u.cells[cell{e.o, field}], next, depth+1)
			}
		}
	}
	walk(values, "", 0)
}

// locate follows a path of fields.
func (u *unit) locate(values set, path string) set {
	if path == "" {
		return values
	}
	for _, at := range strings.Split(path, separator) {
		if at == "*" {
			at = ""
		}
		next := set{}
		for e := range values {
			for found := range u.load(e.o, at) {
				next[found] = struct{}{}
			}
		}
		values = next
	}
	return values
}

// hasPointers tells whether a value of the type can lead to memory.
func hasPointers(t types.Type, above []types.Type) bool {
	for _, a := range above {
		if a == t {
			return true
		}
	}
	switch t := t.Underlying().(type) {
	case *types.Basic:
		return t.Info()&types.IsString != 0 || t.Kind() == types.UnsafePointer
	case *types.Array:
		return hasPointers(t.Elem(), append(above, t))
	case *types.Struct:
		for i := range t.NumFields() {
			if hasPointers(t.Field(i).Type(), append(above, t)) {
				return true
			}
		}
		return false
	case *types.Tuple:
		return true
	}
	return true
}
