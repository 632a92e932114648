//go:build tshark

package main

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/rdmactor/rdmactor/internal/tshark"
)

// TestPcapTshark: Wireshark finds the same in the files of both sides, and ping's pattern: in each
// round a Read, a Write, and four messages.
func TestPcapTshark(t *testing.T) {
	const rounds = 4
	for _, host := range []string{"127.0.0.1", "::1"} {
		for _, size := range []int{64, 300_000} {
			dir := t.TempDir()
			files := [2]string{filepath.Join(dir, "server"), filepath.Join(dir, "client")}
			s := fmt.Sprint(size)
			srv := listen(t, "ping", "-s", "-a", host, "-p", "0", "--device", "iwarp", "-S", s, "--crc", "--pcap", files[0])
			cl := begin(t, nil, "ping", "-c", "-a", host, "-p", srv.port, "--device", "iwarp", "-V", "-C", fmt.Sprint(rounds), "-S", s, "--pcap", files[1])
			cl.mustEnd()
			srv.mustEnd()
			var fpdus [2]int
			for i, name := range files {
				r, err := tshark.Read(name)
				if err != nil {
					t.Fatal(err)
				}
				if r.Opcodes["Read Request"] != rounds || r.Opcodes["Send"] != 4*rounds || r.Opcodes["Write"] < rounds ||
					r.Frames != 2 || r.GoodCRCs != r.FPDUs || len(r.Complaints) > 0 {
					t.Errorf("%s, %d bytes, %s: %+v", host, size, filepath.Base(name), r)
				}
				fpdus[i] = r.FPDUs
			}
			if fpdus[0] != fpdus[1] {
				t.Errorf("%s, %d bytes: the files have %d FPDUs", host, size, fpdus)
			}
		}
	}
}
