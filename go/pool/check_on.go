//go:build race || tenurecheck

package pool

// Whether Put looks for items that are idle already.
const checked = true
