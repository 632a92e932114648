package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestPcap: both sides write the bytes that they have read and written, and end as without a
// capture.
func TestPcap(t *testing.T) {
	dir := t.TempDir()
	server, client := filepath.Join(dir, "server.pcapng"), filepath.Join(dir, "client.pcapng")
	srv := serve(t, "-v", "--pcap", server, "-S", "100000")
	cl := dial(t, srv.port, "-V", "-C", "3", "-S", "100000", "--pcap", client)
	cl.mustEnd()
	srv.mustEnd()
	for _, name := range []string{server, client} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if i, err := os.Stat(name); err != nil || i.Mode().Perm() != 0o600 {
			t.Errorf("others may read %s: %v, %v", filepath.Base(name), i.Mode(), err)
		}
		// one side's Read and Write of each round
		if len(b) < 3*2*100_000 || !bytes.HasPrefix(b, []byte{0x0a, 0x0d, 0x0d, 0x0a}) || !bytes.Contains(b, []byte("rdma-ping-2: CDEF")) {
			t.Errorf("%s has %d bytes, and begins with %.64q", filepath.Base(name), len(b), b)
		}
	}
	if cl.errs.Len() > 200 {
		t.Errorf("the client complains: %s", cl.errs)
	}
}

// TestPcapFails: a file that cannot be written is an error, and so is a device that cannot capture.
func TestPcapFails(t *testing.T) {
	none := filepath.Join(t.TempDir(), "no", "such", "directory")
	dial(t, "1", "--pcap", none).mustFail("--pcap", "no such file")
	srv := serve(t)
	dial(t, srv.port, "-C", "1", "--pcap", "/dev/full").mustFail("--pcap /dev/full", "no space left")
	srv.mustEnd()
	begin(t, nil, "ping", "-c", "-a", "127.0.0.1", "--device", "kernel", "--pcap", none).mustFail("--pcap", "--device iwarp")
}
