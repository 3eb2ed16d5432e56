// Package pool keeps costly items and buffers for their next users.
//
// It differs from sync.Pool in these points. An idle item survives garbage collections while it is
// in use now and then. The number and the bytes of idle items have a bound. Every idle item that
// two windows of time in a row did not need is destroyed, also when the pool has no traffic at all;
// a burst is given back, and the working set stays. A pool counts, and it can be drained and
// closed. A double Put is found, in builds with the race detector or the build tag tenurecheck.
//
// # When sync.Pool is the better choice
//
// sync.Pool is faster for items that are pointers already: a Put and a Get of ours move two hints
// through sync.Pool and change a state. Take sync.Pool where an item costs less than about 50 ns to
// build, where the pool serves a package that is used rarely (its items vanish with two garbage
// collections, without a timer), or where no bound is wanted.
//
// # Goroutines
//
// Pool and Bytes are for any number of goroutines. A Local is for one goroutine at a time; it is
// the fastest way to use a pool in a loop.
package pool
