package pages

import (
	"sync"
	"unsafe"
)

// Wiped is the byte that forgotten memory is filled with where it cannot fault.
const Wiped = 0xdb

// Wipe fills memory, of 1 byte at least, with Wiped.
func Wipe(p unsafe.Pointer, size uintptr) {
	bytes := unsafe.Slice((*byte)(p), size)
	bytes[0] = Wiped
	for done := 1; done < len(bytes); done *= 2 {
		copy(bytes[done:], bytes[:done])
	}
}

const (
	// The first poisoned address where the system grants it, to be recognised in a crash.
	poisonHint = 0x5afe<<(32*wide)*wide | 0xdead0000

	poisonStep  = 4096
	poisonCount = 1 << 14
)

var poisonBase = sync.OnceValue(func() uintptr { return mapPoison(poisonStep * poisonCount) })

// Poison returns an address that faults for owner number n; PoisonOwner finds the number.
func Poison(n uint64) uintptr { return poisonBase() + uintptr(n%poisonCount)*poisonStep }

// PoisonOwner returns the number whose poison the address is, modulo the second result, which is 0 if
// the address is no poison.
func PoisonOwner(address uintptr) (n, modulus uint64) {
	if offset := address - poisonBase(); offset < poisonStep*poisonCount {
		return uint64(offset / poisonStep), poisonCount
	}
	return 0, 0
}
