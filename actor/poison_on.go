//go:build rdmadebug || race

package actor

import "bytes"

// poisoning says that memory which was given back is overwritten, and looked at when it is handed
// out again: whoever still reads it reads nonsense (and the race detector says so), whoever has
// written it is found. Memory that is used off its loop is refused.
const poisoning = true

// poisonByte is what memory is overwritten with that was given back.
const poisonByte = 0xDB

var poisonBlock = bytes.Repeat([]byte{poisonByte}, 64<<10)

// poisonBytes overwrites b.
func poisonBytes(b []byte) {
	for len(b) > 0 {
		b = b[copy(b, poisonBlock):]
	}
}

// checkPoison panics if b, which was poisoned, was written.
func checkPoison(b []byte, what string) {
	for len(b) > 0 {
		n := min(len(b), len(poisonBlock))
		if !bytes.Equal(b[:n], poisonBlock[:n]) {
			panic("rdma: " + what + " was written after it was given back")
		}
		b = b[n:]
	}
}
