//go:build rdmadebug || race

package overwrite

import "bytes"

// On reports whether memory is overwritten.
const On = true

// With is the byte that it is overwritten with.
const With = 0xDB

var block = bytes.Repeat([]byte{With}, 64<<10)

// Bytes overwrites b, which was released.
func Bytes(b []byte) {
	for len(b) > 0 {
		b = b[copy(b, block):]
	}
}

// Check panics if b, which was overwritten, was written since. what names the owner.
func Check(b []byte, what string) {
	for len(b) > 0 {
		n := min(len(b), len(block))
		if !bytes.Equal(b[:n], block[:n]) {
			panic("rdma: " + what + " was written after it was given back")
		}
		b = b[n:]
	}
}
