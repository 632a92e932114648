package wire_test

import (
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// TestUpdateCRC compares UpdateCRC with hash/crc32, at every length and alignment around the block
// sizes.
func TestUpdateCRC(t *testing.T) {
	b := make([]byte, 4096)
	rand.NewChaCha8([32]byte{'C', 'R', 'C'}).Read(b)
	for n := range 1100 {
		for from := range 65 {
			p, before := b[from:from+n], uint32(n*from)*2654435761
			if got, want := wire.UpdateCRC(before, p), crc32.Update(before, castagnoli, p); got != want {
				t.Fatalf("%d bytes from %d behind %#08x: %#08x, hash/crc32 has %#08x", n, from, before, got, want)
			}
		}
	}
}

// FuzzCRC compares them for any bytes, in two parts and in one.
func FuzzCRC(f *testing.F) {
	f.Add([]byte("123456789"), uint32(0), uint16(4))
	f.Add(make([]byte, 1442), uint32(1), uint16(1024))
	f.Fuzz(func(t *testing.T, p []byte, before uint32, cut uint16) {
		k := min(int(cut), len(p))
		want := crc32.Update(before, castagnoli, p)
		if got := wire.UpdateCRC(before, p); got != want {
			t.Errorf("%d bytes: %#08x, hash/crc32 has %#08x", len(p), got, want)
		}
		if got := wire.UpdateCRC(wire.UpdateCRC(before, p[:k]), p[k:]); got != want {
			t.Errorf("%d and %d bytes: %#08x, hash/crc32 has %#08x", k, len(p)-k, got, want)
		}
	})
}

func BenchmarkCRC(b *testing.B) {
	for _, n := range []int{18, 64, 256, 512, 1442, 4096, 32 << 10, 64 << 10, 256 << 10} {
		p := make([]byte, n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.SetBytes(int64(n))
			for b.Loop() {
				wire.UpdateCRC(0, p)
			}
		})
		b.Run(fmt.Sprint(n, "-hash"), func(b *testing.B) {
			b.SetBytes(int64(n))
			for b.Loop() {
				crc32.Update(0, castagnoli, p)
			}
		})
	}
}
