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

	// So far from a poisoned address all addresses are the same owner's.
	poisonStep = 1 << (12 + 8*wide)
)

// PoisonCount is the number of owners that have a poison of their own.
const PoisonCount = 1 << 12

var poisonBase = sync.OnceValue(func() uintptr { return mapPoison(poisonStep * PoisonCount) })

// Poison returns an address that faults for owner number n; PoisonOwner finds the number.
func Poison(n uint64) uintptr { return poisonBase() + uintptr(n%PoisonCount)*poisonStep }

// PoisonOwner returns the number whose poison the address is, modulo the second result, which is 0 if
// the address is no poison.
func PoisonOwner(address uintptr) (n, modulus uint64) {
	if offset := address - poisonBase(); offset < poisonStep*PoisonCount {
		return uint64(offset / poisonStep), PoisonCount
	}
	return 0, 0
}
