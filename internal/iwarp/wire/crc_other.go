//go:build !amd64

package wire

import "hash/crc32"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// UpdateCRC returns the CRC32c crc updated with p. The CRC of no bytes is 0. An FPDU's CRC covers
// its length, ULPDU and pad.
func UpdateCRC(crc uint32, p []byte) uint32 { return crc32.Update(crc, castagnoli, p) }
