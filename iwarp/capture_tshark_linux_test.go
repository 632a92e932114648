//go:build tshark

package iwarp

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmactor/rdmactor/internal/tshark"
)

// dissect makes tshark read the capture.
func (x *captured) dissect() tshark.Report {
	x.t.Helper()
	name := filepath.Join(x.t.TempDir(), "capture.pcapng")
	if err := os.WriteFile(name, x.file.Bytes(), 0o600); err != nil {
		x.t.Fatal(err)
	}
	r, err := tshark.Read(name)
	if err != nil {
		x.t.Fatal(err)
	}
	if r.Packets != len(x.read.Packets) {
		x.t.Errorf("tshark has read %d packets of %d", r.Packets, len(x.read.Packets))
	}
	return r
}

// TestTshark: Wireshark has nothing to complain of in any capture, and finds as many FPDUs as were
// on the sockets, with right CRCs where there are any.
func TestTshark(t *testing.T) {
	eachExchange(t, func(t *testing.T, x *captured) {
		if len(x.read.Packets) == 0 {
			return // of an exchange that needs one device only
		}
		want := x.judge()
		r := x.dissect()
		if len(r.Complaints) > 0 || r.FPDUs != want || r.Connections != x.Stats().Connections {
			t.Errorf("want %d FPDUs on %d connections and no complaint, got %+v", want, x.Stats().Connections, r)
		}
		ours := !strings.Contains(t.Name(), "/a_") // else a peer may send FPDUs without a CRC
		if strings.HasSuffix(t.Name(), "CRC_true") && ours && r.GoodCRCs != want {
			t.Errorf("%d right CRCs of %d", r.GoodCRCs, want)
		}
		switch {
		case strings.Contains(t.Name(), "Terminate") && r.Opcodes["Terminate"] != 1,
			strings.Contains(t.Name(), "one-sided") && (r.Opcodes["Read Request"] != 4 || r.Opcodes["Read Response"] < 4 || r.Opcodes["Write"] < 4),
			strings.Contains(t.Name(), "markers") && r.Frames != 2:
			t.Errorf("%s: %+v", t.Name(), r)
		}
	})
}

// TestTsharkLater: Wireshark knows the protocol of connections that were set up before the capture
// has begun, and finds FPDUs behind packets that were dropped.
func TestTsharkLater(t *testing.T) {
	for _, crc := range []bool{false, true} {
		x := recording(t, Config{CRC: crc})
		client, server := newNodeOf(t, x.drv), newNode(t)
		p := connect(t, client, server, 1)
		p.oneSided(100_000, 1)
		x.start(roomy)
		p.oneSided(200_000, 2)
		p.disconnect()
		x.stop()
		x.judgeLater()
		r := x.dissect()
		if r.Opcodes["Read Request"] != 4 || r.Frames != 2 || len(r.Complaints) > 0 || crc && r.GoodCRCs != r.FPDUs {
			t.Errorf("CRC %t: %+v", crc, r)
		}
	}
}

// TestTsharkGap: after dropped packets Wireshark finds whole FPDUs. It reports missing packets, and
// nothing else.
func TestTsharkGap(t *testing.T) {
	x := gap(t, Config{})
	r := x.dissect()
	missing := 0
	for _, c := range r.Complaints {
		if strings.Contains(c, "captured") {
			missing++
		} else {
			t.Error(c)
		}
	}
	if missing == 0 || r.Opcodes["Send"] == 0 {
		t.Errorf("%d times packets are missing, %+v", missing, r)
	}
}
