package main

import (
	"encoding/binary"
	"math/bits"
)

// mix hashes several numbers into one, so that data of different numbers differs.
func mix(numbers ...uint64) (h uint64) {
	for _, n := range numbers {
		h = (bits.RotateLeft64(h, 23) ^ n) * 0x9E3779B97F4A7C15
		h ^= h >> 29
	}
	return h
}

// fill fills p with bytes that depend only on seed.
func fill(p []byte, seed uint64) []byte {
	x := seed | 1
	for i := 0; i < len(p); i += 8 {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], x)
		copy(p[i:], word[:])
	}
	return p
}

// intact reports whether p has the bytes that fill writes.
func intact(p []byte, seed uint64) bool {
	x := seed | 1
	for i := 0; i < len(p); i += 8 {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], x)
		if rest := p[i:]; string(rest[:min(8, len(rest))]) != string(word[:min(8, len(rest))]) {
			return false
		}
	}
	return true
}
