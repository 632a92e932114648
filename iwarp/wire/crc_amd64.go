package wire

import (
	"hash/crc32"

	"golang.org/x/sys/cpu"
)

// foldMin is from where on fold is faster than hash/crc32, in bytes. fold needs as many.
const foldMin = 256

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// canFold: hash/crc32 uses the CRC32 instruction, which takes 8 bytes at a time. These processors
// multiply 64.
var canFold = cpu.X86.HasAVX512VPCLMULQDQ && cpu.X86.HasAVX512F && cpu.X86.HasSSE42

// folds are what 128 bits are multiplied by to stand further behind in the message, two factors for
// each distance: 2048, 1536, 1024 and 512 bits, between blocks, and 384, 256, 128 and none, in a
// block.
var folds = func() (k [16]uint64) {
	for i, bits := range [...]int{2048, 1536, 1024, 512, 384, 256, 128} {
		k[2*i], k[2*i+1] = power(bits+63), power(bits-1)
	}
	return k
}()

// power is x^n modulo the polynomial, with x^63 in the lowest bit. The product of two such numbers
// is one power higher than theirs, so the factors are one lower.
func power(n int) uint64 {
	const polynomial = 0x82f63b78
	v := uint32(1 << 31)
	for range n {
		v = v>>1 ^ polynomial&-(v&1)
	}
	return uint64(v) << 32
}

// fold adds p, of at least foldMin bytes, to crc, which is not inverted.
//
//go:noescape
func fold(crc uint32, p []byte, k *[16]uint64) uint32

// UpdateCRC adds p to the CRC32c of what came before: 0 to begin with. It covers length, ULPDU and
// pad.
func UpdateCRC(crc uint32, p []byte) uint32 {
	if len(p) >= foldMin && canFold {
		return ^fold(^crc, p, &folds)
	}
	return crc32.Update(crc, castagnoli, p)
}
