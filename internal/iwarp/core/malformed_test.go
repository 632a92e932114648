package core_test

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/iwarp/core"
	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
)

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestReadFlood: empty Reads are answered one by one, and no more than the announced number are
// kept while the peer does not read.
func TestReadFlood(t *testing.T) {
	_, b := connect(t, core.Config{IRD: 4, ORD: 4}, core.Config{})
	read := func(msn uint32) []byte {
		return fpdu(wire.Header{Last: true, Opcode: wire.OpReadRequest, QN: 1, MSN: msn},
			wire.AppendReadRequest(nil, &wire.ReadRequest{SinkSTag: msn, SinkTO: 7})...)
	}
	b.c.Input(t0, read(1))
	want := fpdu(wire.Header{Tagged: true, Last: true, Opcode: wire.OpReadResponse, STag: 1, TO: 7})
	if got := b.take(1 << 30); !bytes.HasSuffix(got, want) {
		t.Errorf("answer %x, want %x", got, want)
	}
	for msn := uint32(2); msn < 7; msn++ {
		b.c.Input(t0, read(msn))
	}
	if b.closed != 0 {
		t.Fatalf("5 Reads with an IRD of 4: %v: one more than the next power of two is allowed", b.err)
	}
	b.c.Input(t0, read(7))
	if e, _ := b.err.(*core.Error); e == nil || e.Type != wire.RDMAPOperation || e.Code != 7 {
		t.Errorf("6 Reads with an IRD of 4: %v", b.err)
	}
}

// TestTerminateBehindPartial: an FPDU that is partly sent is finished before the Terminate. The
// rest of it is sent from a copy, because its work request is flushed.
func TestTerminateBehindPartial(t *testing.T) {
	a, b := connect(t, core.Config{MaxSegment: 1000}, core.Config{})
	b.out = nil
	a.out = nil
	a.postSend(1, string(pattern(3000)), 0)
	a.postSend(2, "next", 0)
	whole := bytes.Clone(bytes.Join(a.c.Gather(nil), nil))
	a.write(1500) // into the second of three FPDUs
	a.c.Input(t0, make([]byte, 8))
	a.wantDone("everything is flushed", "s1:work request flushed/0 s2:work request flushed/0")
	out := a.take(1 << 30)
	fpdu := 2 + 18 + 1000 + 4
	if len(a.out) < 2*fpdu || !bytes.Equal(a.out[:2*fpdu], whole[:2*fpdu]) {
		t.Fatalf("the FPDU was not finished: %d bytes", len(a.out))
	}
	wantTerminate(t, a, "behind the FPDU", out[2*fpdu-1500:], "20030000")
}

// TestTerminateForms: a Terminate is understood in both bit orders, cut short, and over-long; it
// is never answered.
func TestTerminateForms(t *testing.T) {
	term := wire.Header{Last: true, Opcode: wire.OpTerminate, QN: 2, MSN: 1}
	for payload, text := range map[string]string{
		"1202c000 0012 41430000000000000000000000010000 0000": "DDP 2/02 no receive posted",
		"2102 0300 0012 4143":                  "DDP 2/02 no receive posted",
		"20020000":                             "MPA 0/02 CRC mismatch",
		"00ff0000" + strings.Repeat("aa", 200): "RDMAP 0/ff local catastrophic",
	} {
		a, _ := connect(t, core.Config{}, core.Config{})
		a.c.Input(t0, fpdu(term, unhex(t, payload)...))
		e, _ := a.err.(*core.Error)
		if e == nil || !e.Received || e.Sent || !strings.Contains(e.Error(), text) {
			t.Errorf("%s: %v: want %s", payload, a.err, text)
		}
		wantErrno(t, payload, a.err, unix.ECONNRESET)
		a.quiet("a Terminate is not answered")
	}
}
