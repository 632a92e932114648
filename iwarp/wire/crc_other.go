//go:build !amd64

package wire

import "hash/crc32"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// UpdateCRC adds p to the CRC32c of what came before: 0 to begin with. It covers length, ULPDU and
// pad.
func UpdateCRC(crc uint32, p []byte) uint32 { return crc32.Update(crc, castagnoli, p) }
