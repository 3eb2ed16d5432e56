//go:build !race

package pages

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// drop gives the memory of a run back to the system; it reads as zeros afterwards.
func drop(p unsafe.Pointer, size uintptr) {
	if unix.Madvise(bytesOf(p, size), unix.MADV_DONTNEED) != nil {
		// Only locked memory refuses.
		clear(bytesOf(p, size))
	}
}
