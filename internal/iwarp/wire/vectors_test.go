package wire_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmactor/rdmactor/internal/iwarp/capture"
	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
)

// captures returns the connections in testdata.
func captures(t testing.TB) map[string]capture.Conn {
	t.Helper()
	files, err := filepath.Glob("../testdata/*.pcap")
	if err != nil || len(files) == 0 {
		t.Fatalf("no captures: %v", err)
	}
	m := make(map[string]capture.Conn)
	for _, f := range files {
		c, err := capture.Load(f)
		if err != nil {
			t.Fatal(err)
		}
		m[strings.TrimSuffix(filepath.Base(f), ".pcap")] = c
	}
	return m
}

// TestVectors parses every captured stream completely and encodes it again, byte for byte.
func TestVectors(t *testing.T) {
	seen := make(map[wire.Opcode]int)
	var frames, reversed int
	for name, c := range captures(t) {
		if name == "pdl_252" || name == "pdl_253" || name == "pdl_255" {
			continue // TestVectorsWrappedLength
		}
		crc := strings.Contains(name, "crc")
		for side, stream := range [][]byte{c.Initiator, c.Responder} {
			f, n, err := wire.ConsumeFrame(stream)
			if err != nil {
				t.Fatalf("%s: side %d: MPA frame: %v", name, side, err)
			}
			if f.Reply != (side == 1) {
				t.Errorf("%s: side %d: Reply = %v", name, side, f.Reply)
			}
			frames++
			out := wire.AppendFrame(nil, &f)
			for rest := stream[n:]; len(rest) > 0; rest = rest[n:] {
				var p wire.FPDU
				if p, n, err = wire.ConsumeFPDU(rest); err != nil {
					t.Fatalf("%s: side %d: FPDU at %d: %v", name, side, len(stream)-len(rest), err)
				}
				if crc && p.CRC != p.Checksum() {
					t.Errorf("%s: side %d: CRC %#x, computed %#x", name, side, p.CRC, p.Checksum())
				}
				if !crc && p.CRC != 0 {
					t.Errorf("%s: side %d: CRC %#x where none is in use", name, side, p.CRC)
				}
				var rev bool
				p.ULPDU, rev = reencode(t, name, p.ULPDU, seen)
				if rev {
					reversed++
				}
				out = wire.AppendFPDU(out, &p)
			}
			if !bytes.Equal(out, stream) {
				t.Errorf("%s: side %d: encoded again:\n%x, was\n%x", name, side, out, stream)
			}
		}
	}
	for _, op := range []wire.Opcode{
		wire.OpWrite, wire.OpReadRequest, wire.OpReadResponse, wire.OpSend, wire.OpSendSE, wire.OpTerminate,
	} {
		if seen[op] == 0 {
			t.Errorf("no %v in any capture: the vectors are not what they were", op)
		}
	}
	if frames < 60 || reversed < 8 {
		t.Errorf("%d MPA frames and %d reversed Terminates: the vectors are not what they were", frames, reversed)
	}
}

// reencode decodes a ULPDU down to the last field and encodes it again.
func reencode(t *testing.T, name string, ulpdu []byte, seen map[wire.Opcode]int) (out []byte, reversed bool) {
	t.Helper()
	h, n, err := wire.ConsumeHeader(ulpdu)
	if err != nil {
		t.Fatalf("%s: header %x: %v", name, ulpdu, err)
	}
	seen[h.Opcode]++
	out = wire.AppendHeader(nil, &h)
	body := ulpdu[n:]
	switch h.Opcode {
	case wire.OpReadRequest:
		r, n, err := wire.ConsumeReadRequest(body)
		if err != nil || n != len(body) {
			t.Fatalf("%s: Read Request %x: %d, %v", name, body, n, err)
		}
		out = wire.AppendReadRequest(out, &r)
	case wire.OpTerminate:
		term, n, err := wire.ConsumeTerminate(body)
		if err != nil || n != len(body) {
			t.Fatalf("%s: Terminate %x: %d, %v", name, body, n, err)
		}
		out, reversed = wire.AppendTerminate(out, &term), term.Reversed
	default:
		out = append(out, body...)
	}
	return out, reversed
}

// TestVectorsWrappedLength: siw's malformed Requests are distinguished from good ones if that is
// possible.
func TestVectorsWrappedLength(t *testing.T) {
	all := captures(t)
	for _, name := range []string{"pdl_252", "pdl_253", "pdl_255"} {
		f, n, err := wire.ConsumeFrame(all[name].Initiator)
		var e *wire.Error
		if !errors.As(err, &e) || e.Layer != wire.LayerMPA || e.Code != 4 || n != 0 {
			t.Errorf("%s: %v, %d: want an MPA error 4: no room for the control word", name, err, n)
		}
		if !f.Enhanced() || f.Revision != 2 {
			t.Errorf("%s: flags %#x, revision %d: want them filled in for the answer", name, f.Flags, f.Revision)
		}
	}
	f, n, err := wire.ConsumeFrame(all["pdl_rev1_255"].Initiator)
	if err != nil || len(f.Private) != 255 || n != 275 {
		t.Errorf("pdl_rev1_255: %d bytes of private data, %d, %v: revision 1 has room for 255", len(f.Private), n, err)
	}
}

// TestVectorsTerminate reads siw's Terminates, whose bit fields are reversed, as RFC 5040 section
// 4.8 would have them.
func TestVectorsTerminate(t *testing.T) {
	want := map[string]string{
		"rev1":               "RDMAP 2/07 catastrophic error, this stream",
		"term_write_badkey":  "DDP 1/00 invalid STag",
		"term_write_oob":     "DDP 1/01 base or bounds violation",
		"term_write_otherpd": "DDP 1/02 STag not associated with this stream",
		"term_write_noperm":  "DDP 1/00 invalid STag",
		"term_read_badstag":  "RDMAP 1/00 invalid STag",
		"term_read_oob":      "RDMAP 1/01 base or bounds violation",
		"term_read_otherpd":  "RDMAP 1/03 STag not associated with this stream",
		"term_send_toolong":  "DDP 2/02 no receive posted",
		"term_send_norecv":   "DDP 2/02 no receive posted",
	}
	all := captures(t)
	for name, text := range want {
		stream := all[name].Responder
		_, n, err := wire.ConsumeFrame(stream)
		if err != nil {
			t.Fatal(err)
		}
		p, _, err := wire.ConsumeFPDU(stream[n:])
		if err != nil {
			t.Fatal(err)
		}
		term, _, err := wire.ConsumeTerminate(p.ULPDU[wire.UntaggedLen:])
		if got := wire.TerminateText(term.Layer, term.Type, term.Code); err != nil || got != text || !term.Reversed {
			t.Errorf("%s: %q, reversed %v, %v: want %q", name, got, term.Reversed, err, text)
		}
		if strings.HasPrefix(name, "term_read") != (len(term.RDMAP) > 0) {
			t.Errorf("%s: %d bytes of Read Request", name, len(term.RDMAP))
		}
	}
}
