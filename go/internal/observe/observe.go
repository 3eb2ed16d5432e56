// Package observe tells an observer which arenas are made and end, without package arena importing
// what the observer needs.
package observe

import "sync/atomic"

// An Observer is called on the goroutine that makes or ends an arena; its functions are given the
// same key.
type Observer struct {
	Made, Ended func(key any)
}

var observer atomic.Pointer[Observer]

// Set replaces the observer; nil is none.
func Set(o *Observer) { observer.Store(o) }

// Made tells of a new arena.
func Made(key any) {
	if o := observer.Load(); o != nil {
		o.Made(key)
	}
}

// Ended tells of the end of an arena, also of one that was made before the observer was set.
func Ended(key any) {
	if o := observer.Load(); o != nil {
		o.Ended(key)
	}
}
