package rpc

import "runtime"

// copyStep is how many bytes are copied without a break.
const copyStep = 64 << 10

// copyLarge copies bytes that may be many. In between it yields to the loops, because Go's
// scheduler cannot interrupt a copy.
func copyLarge(dst, b []byte) {
	for len(b) > copyStep {
		n := copy(dst, b[:copyStep])
		dst, b = dst[n:], b[n:]
		runtime.Gosched()
	}
	copy(dst, b)
}

// cloneLarge copies b into memory, or into other memory if that is too small.
func cloneLarge(memory, b []byte) []byte {
	if cap(memory) < len(b) {
		memory = make([]byte, len(b))
	}
	memory = memory[:len(b)]
	copyLarge(memory, b)
	return memory
}
