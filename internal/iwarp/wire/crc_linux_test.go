package wire_test

import (
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
)

// TestUpdateCRCStaysWithin: nothing is read before or after the bytes, where there may be no
// memory.
func TestUpdateCRCStaysWithin(t *testing.T) {
	page := unix.Getpagesize()
	mem, err := unix.Mmap(-1, 0, 3*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(mem) }()
	for _, p := range [][]byte{mem[:page], mem[2*page:]} {
		if err := unix.Mprotect(p, unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	b := mem[page : 2*page]
	rand.NewChaCha8([32]byte{'C', 'R', 'C'}).Read(b)
	for n := range page + 1 {
		for _, p := range [][]byte{b[:n:n], b[page-n:]} {
			if got, want := wire.UpdateCRC(uint32(n), p), crc32.Update(uint32(n), castagnoli, p); got != want {
				t.Fatalf("%d bytes: %#08x, hash/crc32 has %#08x", n, got, want)
			}
		}
	}
}
