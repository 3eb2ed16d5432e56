package pool

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync"
)

// The idle items of a pool with the places of their Puts, for builds that look for double Puts. An
// item is known by the memory that it points to; other items are not checked.
type checker struct {
	mu   sync.Mutex
	idle map[uintptr]string
}

func (c *checker) put(name string, item any) {
	key := identity(item)
	if key == 0 {
		return
	}
	at := caller()
	c.mu.Lock()
	defer c.mu.Unlock()
	if first, idle := c.idle[key]; idle {
		panic(fmt.Sprintf("pool %q: double Put at %s; the item was put at %s", name, at, first))
	}
	if c.idle == nil {
		c.idle = make(map[uintptr]string)
	}
	c.idle[key] = at
}

func (c *checker) get(item any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.idle, identity(item))
}

// Returns 0 for an item that owns no memory of its own.
func identity(item any) uintptr {
	switch v := reflect.ValueOf(item); v.Kind() {
	case reflect.Pointer:
		if v.Type().Elem().Size() > 0 {
			return v.Pointer()
		}
	case reflect.Map, reflect.Chan, reflect.UnsafePointer:
		return v.Pointer()
	case reflect.Slice:
		if v.Cap() > 0 && v.Type().Elem().Size() > 0 {
			return v.Pointer()
		}
	}
	return 0
}

// Returns the place of the first caller outside this package's own files.
func caller() string {
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		own := strings.Contains(f.Function, "tenure/go/pool.") && !strings.HasSuffix(f.File, "_test.go")
		if !own || !more {
			return fmt.Sprintf("%s:%d", f.File, f.Line)
		}
	}
}
