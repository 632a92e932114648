package oracle

import "encoding/binary"

// Fill writes the bytes of a message. Each byte follows from the direction, the message's number
// and its place, so that each byte can be attributed.
func Fill(p []byte, direction, number uint64) {
	whole := len(p) &^ 7
	for i := 0; i < whole; i += 8 {
		binary.LittleEndian.PutUint64(p[i:], wordAt(direction, number, i))
	}
	for i := whole; i < len(p); i++ {
		p[i] = byteAt(direction, number, i)
	}
}

// wordAt returns the eight bytes of a message that contain the byte at a place.
func wordAt(direction, number uint64, i int) uint64 {
	return mixBits(direction<<40 ^ number<<8 ^ uint64(i>>3))
}

// byteAt returns one byte of a message.
func byteAt(direction, number uint64, i int) byte {
	return byte(wordAt(direction, number, i) >> (i & 7 * 8))
}

// mixBits applies the finalizer of splitmix64: each bit of the result depends on all of x.
func mixBits(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// isMessage reports whether p is the message.
func isMessage(p []byte, direction, number uint64) bool { return wrongIndex(p, direction, number) < 0 }

// wrongIndex returns the index of the first byte of p that differs from the message's, or -1.
func wrongIndex(p []byte, direction, number uint64) int {
	i := 0
	for i+8 <= len(p) && binary.LittleEndian.Uint64(p[i:]) == wordAt(direction, number, i) {
		i += 8
	}
	for ; i < len(p); i++ {
		if p[i] != byteAt(direction, number, i) {
			return i
		}
	}
	return -1
}
