package wire

import (
	"hash/crc32"

	"golang.org/x/sys/cpu"
)

// foldMin is the number of bytes from which fold is faster than hash/crc32. fold needs at least
// that many.
const foldMin = 256

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// canFold reports whether the processor has the instructions that fold needs. They process 64 bytes
// at a time. hash/crc32 uses the CRC32 instruction, which processes 8.
var canFold = cpu.X86.HasAVX512VPCLMULQDQ && cpu.X86.HasAVX512F && cpu.X86.HasSSE42

// folds are the factors by which 128 bits are multiplied to move them further back in the message.
// There are two factors for each distance: 2048, 1536, 1024 and 512 bits between blocks, and 384,
// 256, 128 and 0 bits in a block.
var folds = func() (k [16]uint64) {
	for i, bits := range [...]int{2048, 1536, 1024, 512, 384, 256, 128} {
		k[2*i], k[2*i+1] = powerOfX(bits+63), powerOfX(bits-1)
	}
	return k
}()

// powerOfX returns x^n modulo the polynomial, with x^63 in the lowest bit. The product of two such
// numbers comes out one power too high, so the factors are one power lower.
func powerOfX(n int) uint64 {
	const polynomial = 0x82f63b78
	v := uint32(1 << 31)
	for range n {
		v = v>>1 ^ polynomial&-(v&1)
	}
	return uint64(v) << 32
}

// fold updates crc, which is not inverted, with p. p has at least foldMin bytes.
//
//go:noescape
func fold(crc uint32, p []byte, k *[16]uint64) uint32

// UpdateCRC returns the CRC32c crc updated with p. The CRC of no bytes is 0. An FPDU's CRC covers
// its length, ULPDU and pad.
func UpdateCRC(crc uint32, p []byte) uint32 {
	if len(p) >= foldMin && canFold {
		return ^fold(^crc, p, &folds)
	}
	return crc32.Update(crc, castagnoli, p)
}
