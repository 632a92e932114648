package uverbs

import (
	"unsafe"

	"github.com/rdmactor/rdmactor/internal/hca"
)

// bytesOf returns memory that is aligned like the kernel's.
func bytesOf(words []uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 8*len(words))
}

func bytesOfEvent(ev *hca.AsyncEvent) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(ev)), unsafe.Sizeof(*ev))
}
