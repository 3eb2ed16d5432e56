package watch

import (
	"runtime/pprof"
	"sync"

	"github.com/tenure-alloc/tenure/go/internal/observe"
)

// The frames between a profile's entry and the caller of NewArena or Child.
const framesOfArena = 6

var profile struct {
	sync.Mutex
	arenas *pprof.Profile
}

// Profile switches the profile "tenure_arena" on or off: the live arenas by the stacks that made
// them, for runtime/pprof, net/http/pprof and go tool pprof. An arena that was made while it was
// off is not in it. While it is on, an arena costs the recording of a stack, some microseconds.
func Profile(on bool) {
	profile.Lock()
	defer profile.Unlock()
	if !on {
		observe.Set(nil)
		return
	}
	if profile.arenas == nil {
		profile.arenas = pprof.NewProfile("tenure_arena")
	}
	observe.Set(&observe.Observer{
		Made:  func(key any) { profile.arenas.Add(key, framesOfArena) },
		Ended: profile.arenas.Remove,
	})
}
