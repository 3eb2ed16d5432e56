// Package account counts bytes in a tree, with limits at every node.
package account

import "sync/atomic"

// An Account is a node of the tree. The zero Account has no parent and no limits. All methods but Init
// are safe for use by multiple goroutines.
type Account struct {
	parent *Account
	limit  atomic.Int64 // 0 is none
	soft   atomic.Int64 // 0 is none
	held   atomic.Int64
	peak   atomic.Int64
	over   atomic.Bool // the soft limit was reported and held has not been below it since
	onSoft func(held int64)
}

// Init gives an account its parent, before its first use.
func (a *Account) Init(parent *Account) { a.parent = parent }

// Held returns the bytes charged to the account and to all below it.
func (a *Account) Held() int64 { return a.held.Load() }

// Peak returns the most bytes that were held at any time.
func (a *Account) Peak() int64 { return a.peak.Load() }

// Limit returns the hard limit in bytes, or 0.
func (a *Account) Limit() int64 { return a.limit.Load() }

// SetLimit sets the hard limit, 0 for none. It returns false and changes nothing if more is held.
func (a *Account) SetLimit(limit int64) bool {
	old := a.limit.Swap(limit)
	if limit > 0 && a.held.Load() > limit {
		a.limit.Store(old)
		return false
	}
	return true
}

// SetSoft sets the soft limit, 0 for none, and the function that each crossing of it calls once, on the
// goroutine that crosses it. It comes before any use by other goroutines.
func (a *Account) SetSoft(limit int64, report func(held int64)) {
	a.onSoft = report
	a.soft.Store(limit)
	a.over.Store(limit > 0 && a.held.Load() >= limit)
}

// Charge adds size bytes to the account and to all above it. If that would exceed a hard limit, it
// changes nothing and returns the account with that limit.
func (a *Account) Charge(size int64) *Account {
	for at := a; at != nil; at = at.parent {
		held := at.held.Add(size)
		if limit := at.limit.Load(); limit > 0 && held > limit {
			for undo := a; ; undo = undo.parent {
				undo.held.Add(-size)
				if undo == at {
					return at
				}
			}
		}
	}
	for at := a; at != nil; at = at.parent {
		at.note(at.held.Load())
	}
	return nil
}

// note keeps the peak, and reports the crossing of the soft limit.
func (a *Account) note(held int64) {
	for peak := a.peak.Load(); held > peak && !a.peak.CompareAndSwap(peak, held); {
		peak = a.peak.Load()
	}
	if soft := a.soft.Load(); soft > 0 && held >= soft && a.over.CompareAndSwap(false, true) {
		a.onSoft(held)
	}
}

// Discharge takes size bytes back.
func (a *Account) Discharge(size int64) {
	for at := a; at != nil; at = at.parent {
		held := at.held.Add(-size)
		if soft := at.soft.Load(); soft > 0 && held < soft {
			at.over.Store(false)
		}
	}
}
