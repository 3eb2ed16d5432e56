//go:build !race

package pages

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// drop gives the memory of a run back to the system; it reads as zeros afterwards. The system's madvise
// does not promise zeros, a new mapping does.
func drop(p unsafe.Pointer, size uintptr) {
	flags := unix.MAP_PRIVATE | unix.MAP_ANON | unix.MAP_FIXED | unix.MAP_NORESERVE
	if _, err := unix.MmapPtr(-1, 0, p, size, unix.PROT_READ|unix.PROT_WRITE, flags); err != nil {
		clear(bytesOf(p, size))
	}
}
