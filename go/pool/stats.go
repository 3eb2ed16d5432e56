package pool

import "github.com/tenure-alloc/tenure/go/internal/registry"

// Stats are the figures of a pool. Without calls under way they are exact, except that the idle
// items of a Local count as in use.
type Stats struct {
	Name      string
	Idle      int   // items that wait for a user
	IdleBytes int64 // their bytes
	InUse     int64 // items built or put, and neither idle nor destroyed
	Hits      int64 // Gets that found an idle item
	Misses    int64 // Gets that built one
	Refused   int64 // items destroyed in Put, for want of room
	Evicted   int64 // items destroyed because they were idle for too long, or by Drain or Close
}

// Stats returns the figures. It costs a look at each idle item.
func (p *Pool[T]) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Stats{
		Name: p.cfg.Name, IdleBytes: p.reserve.used(), Hits: p.hits + p.localHits.Load(),
		Misses: p.misses.Load(), Refused: p.refused.Load(), Evicted: p.evicted,
	}
	for _, n := range p.nodes {
		state := n.state.Load()
		s.Hits += int64(state >> hitShift)
		if state&kindMask == nodeFull {
			s.Idle++
		}
	}
	if p.sizeOf == nil {
		s.IdleBytes = int64(s.Idle) * p.size
	}
	s.InUse = s.Misses + p.prefilled.Load() - int64(s.Idle) - s.Evicted - s.Refused
	return s
}

var named registry.Registry[Stats]

// ReadStats returns the figures of all named pools that are not closed, the oldest first.
func ReadStats() []Stats { return named.Read() }
