package uverbs

import "unsafe"

// bytesOf is memory as aligned as the kernel's.
func bytesOf(words []uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 8*len(words))
}

func bytesOfEvent(ev *asyncEventDesc) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(ev)), unsafe.Sizeof(*ev))
}
