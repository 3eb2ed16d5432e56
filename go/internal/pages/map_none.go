//go:build !(linux || darwin)

package pages

func mapPoison(size uintptr) uintptr { return poisonHint }
