package arena

import (
	"reflect"
	"sync"
	"unsafe"

	"github.com/tenure-alloc/tenure/go/internal/pages"
)

// A typeInfo is what the slow paths know of a type. There is one in a process for each type.
type typeInfo struct {
	word     unsafe.Pointer
	typ      reflect.Type
	size     uintptr // never 0
	align    uintptr
	pointers bool
	make     func(count uintptr) unsafe.Pointer
	clear    func(base unsafe.Pointer, count uintptr)
	traps    func() []trap // in one object, for guard mode
}

var types sync.Map // type word -> *typeInfo

// wordOf returns the first word of an interface with a *T: a different one for each T.
func wordOf[T any]() unsafe.Pointer {
	var v any = (*T)(nil)
	return *(*unsafe.Pointer)(unsafe.Pointer(&v))
}

// A variable of type T instead of the pointer would be allocated, where T is large.
func sizeOf[T any]() uintptr  { return unsafe.Sizeof(*(*T)(nil)) }
func alignOf[T any]() uintptr { return unsafe.Alignof(*(*T)(nil)) }

func roundUp(n, align uintptr) uintptr { return (n + align - 1) &^ (align - 1) }

func infoOf[T any]() *typeInfo {
	word := wordOf[T]()
	if known, ok := types.Load(word); ok {
		return known.(*typeInfo)
	}
	return addType(&typeInfo{
		word: word,
		typ:  reflect.TypeFor[T](),
		make: func(count uintptr) unsafe.Pointer {
			return unsafe.Pointer(unsafe.SliceData(make([]T, count)))
		},
		clear: func(base unsafe.Pointer, count uintptr) {
			clear(unsafe.Slice((*T)(base), count))
		},
	})
}

// infoOfType is infoOf for a type known at run time only.
func infoOfType(t reflect.Type) *typeInfo {
	var v any = reflect.Zero(reflect.PointerTo(t)).Interface()
	word := *(*unsafe.Pointer)(unsafe.Pointer(&v))
	if known, ok := types.Load(word); ok {
		return known.(*typeInfo)
	}
	slices := reflect.SliceOf(t)
	return addType(&typeInfo{
		word: word,
		typ:  t,
		make: func(count uintptr) unsafe.Pointer {
			return reflect.MakeSlice(slices, int(count), int(count)).UnsafePointer()
		},
		clear: func(base unsafe.Pointer, count uintptr) {
			reflect.NewAt(reflect.ArrayOf(int(count), t), base).Elem().SetZero()
		},
	})
}

func addType(t *typeInfo) *typeInfo {
	t.size = t.typ.Size()
	t.align = uintptr(t.typ.Align())
	t.pointers = hasPointers(t.typ)
	t.traps = sync.OnceValue(func() []trap { return appendTraps(nil, t.typ, 0) })
	known, _ := types.LoadOrStore(t.word, t)
	return known.(*typeInfo)
}

// hasPointers tells whether the garbage collector has to look at values of the type.
func hasPointers(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return t.Len() > 0 && hasPointers(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if hasPointers(t.Field(i).Type) {
				return true
			}
		}
		return false
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr,
		reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return false
	}
	return true // also of a kind that is newer than this list
}

// A trap is a part of an object that guard mode overwrites when the object is forgotten.
type trap struct {
	offset, size uintptr
	as           trapKind
}

type trapKind uint8

const (
	trapPointer trapKind = iota // a poisoned address
	trapLength                  // a length that makes every use of the pointer beside it fault
	trapBytes                   // bytes of pages.Wiped
)

func appendTraps(traps []trap, t reflect.Type, offset uintptr) []trap {
	switch t.Kind() {
	case reflect.Array:
		for i := range t.Len() {
			traps = appendTraps(traps, t.Elem(), offset+uintptr(i)*t.Elem().Size())
		}
	case reflect.Struct:
		for i := range t.NumField() {
			traps = appendTraps(traps, t.Field(i).Type, offset+t.Field(i).Offset)
		}
	case reflect.Bool: // has no third value
	case reflect.Pointer, reflect.Map, reflect.Chan, reflect.Func, reflect.UnsafePointer:
		traps = append(traps, trap{offset, wordSize, trapPointer})
	case reflect.Interface:
		traps = append(traps, trap{offset, wordSize, trapPointer},
			trap{offset + wordSize, wordSize, trapPointer})
	case reflect.String:
		traps = append(traps, trap{offset, wordSize, trapPointer},
			trap{offset + wordSize, wordSize, trapLength})
	case reflect.Slice:
		traps = append(traps, trap{offset, wordSize, trapPointer},
			trap{offset + wordSize, wordSize, trapLength},
			trap{offset + 2*wordSize, wordSize, trapLength})
	default:
		traps = append(traps, trap{offset, t.Size(), trapBytes})
	}
	return traps
}

// spring overwrites count forgotten objects at base. The typed clear comes first: while a cycle of the
// garbage collector runs, it has to hear of each pointer that goes.
func (t *typeInfo) spring(base unsafe.Pointer, count uintptr, poison uintptr) {
	t.clear(base, count)
	for i := range count {
		object := unsafe.Add(base, i*t.size)
		for _, trap := range t.traps() {
			at := unsafe.Add(object, trap.offset)
			switch trap.as {
			case trapPointer:
				*(*uintptr)(at) = poison
			case trapLength:
				*(*uintptr)(at) = trapLengthValue
			case trapBytes:
				pages.Wipe(at, trap.size)
			}
		}
	}
}

// Long enough for most indexes, and so short that the elements stay within the arena's own poison.
const trapLengthValue = 1 << 12
