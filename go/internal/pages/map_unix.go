//go:build linux || darwin

package pages

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapped reserves addresses that fault, at the hint if the system agrees.
func mapped(hint, size uintptr) (unsafe.Pointer, error) {
	flags := unix.MAP_PRIVATE | unix.MAP_ANON | unix.MAP_NORESERVE
	return unix.MmapPtr(-1, 0, *(*unsafe.Pointer)(unsafe.Pointer(&hint)), size, unix.PROT_NONE, flags)
}

func mapPoison(size uintptr) uintptr {
	p, err := mapped(poisonHint, size)
	if err != nil {
		return poisonHint
	}
	return uintptr(p)
}
