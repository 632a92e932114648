package wire_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
)

// item is a value of one of the five kinds with its encoding.
type item struct {
	name string
	v    any
	hex  string
}

var items = []item{
	{
		"RFC 5044 7.1 Request rev 1",
		wire.Frame{Revision: 1, Private: []byte("hi")},
		"4d504120494420526571204672616d65" + "00010002" + "6869",
	},
	{"RFC 5044 7.1 Request rev 0", wire.Frame{}, "4d504120494420526571204672616d65" + "00000000"},
	{
		"RFC 5044 7.1 Request with M and C",
		wire.Frame{Revision: 1, Flags: wire.FlagMarkers | wire.FlagCRC},
		"4d504120494420526571204672616d65" + "c0010000",
	},
	{
		"RFC 6581 5 Request rev 2 without control word",
		wire.Frame{Revision: 2, Private: []byte("x")},
		"4d504120494420526571204672616d65" + "00020001" + "78",
	},
	{
		"RFC 6581 5 Request rev 2 peer-to-peer",
		wire.Frame{
			Revision: 2, Flags: wire.FlagEnhanced,
			Control: wire.Control{PeerToPeer: true, RTRWrite: true, RTRRead: true, IRD: 4, ORD: 0x3ffe},
		},
		"4d504120494420526571204672616d65" + "10020004" + "8004fffe",
	},
	{
		"RFC 6581 5 Reply rejecting",
		wire.Frame{
			Reply: true, Revision: 2, Flags: wire.FlagEnhanced | wire.FlagReject,
			Control: wire.Control{RTREmpty: true, IRD: wire.NotNegotiated}, Private: []byte("no"),
		},
		"4d504120494420526570204672616d65" + "30020006" + "7fff0000" + "6e6f",
	},
	{"RFC 5044 4 FPDU empty", wire.FPDU{}, "0000" + "0000" + "00000000"},
	{"RFC 5044 4 FPDU without pad", wire.FPDU{ULPDU: []byte{1, 2}, CRC: 0x04030201}, "0002" + "0102" + "01020304"},
	{"RFC 5044 4 FPDU pad 3", wire.FPDU{ULPDU: []byte{1, 2, 3}, Pad: [3]byte{7, 8, 9}}, "0003" + "010203" + "070809" + "00000000"},
	{
		"RFC 5041 4.2 tagged more",
		wire.Header{Tagged: true, Opcode: wire.OpWrite, STag: 0x01020304, TO: 1 << 63},
		"8140" + "01020304" + "8000000000000000",
	},
	{
		"RFC 5041 4.2 tagged last",
		wire.Header{Tagged: true, Last: true, Opcode: wire.OpReadResponse, TO: 5},
		"c142" + "00000000" + "0000000000000005",
	},
	{
		"RFC 5041 4.3 untagged last",
		wire.Header{Last: true, Opcode: wire.OpSendSEInvalidate, STag: 9, MSN: 2, MO: 3},
		"4146" + "00000009" + "00000000" + "00000002" + "00000003",
	},
	{
		"RFC 5041 4.3 untagged more",
		wire.Header{Opcode: wire.OpTerminate, QN: 2, MSN: 1},
		"0147" + "00000000" + "00000002" + "00000001" + "00000000",
	},
	{
		"RFC 7306 Atomic Response",
		wire.Header{Last: true, Opcode: wire.OpAtomicResponse, QN: 3},
		"414b" + "00000000" + "00000003" + "00000000" + "00000000",
	},
	{
		"RFC 5040 4.4 Read Request",
		wire.ReadRequest{SinkSTag: 1, SinkTO: 2, Size: 3, SourceSTag: 4, SourceTO: 5},
		"00000001" + "0000000000000002" + "00000003" + "00000004" + "0000000000000005",
	},
	{"RFC 5040 4.8 Terminate bare", wire.Terminate{Layer: wire.LayerMPA, Code: 2}, "20020000"},
	{
		"RFC 5040 4.8 Terminate with all headers",
		wire.Terminate{
			Layer: wire.LayerRDMAP, Type: wire.RDMAPProtection, HasLength: true, Length: 46,
			DDP: bytes.Repeat([]byte{0x41}, wire.UntaggedLen), RDMAP: bytes.Repeat([]byte{7}, wire.ReadRequestLen),
		},
		"0100e000" + "002e" + fmt.Sprintf("%x%x", bytes.Repeat([]byte{0x41}, 18), bytes.Repeat([]byte{7}, 28)),
	},
	{
		"RFC 5040 4.8 Terminate with a tagged header, siw's bit order",
		wire.Terminate{
			Layer: wire.LayerDDP, Type: wire.DDPUntagged, Code: 5, HasLength: true, Length: 1,
			DDP: bytes.Repeat([]byte{0xc1}, wire.TaggedLen), Reversed: true,
		},
		"21050300" + "0001" + fmt.Sprintf("%x", bytes.Repeat([]byte{0xc1}, 14)),
	},
	{
		"RFC 5040 4.8 Terminate length only",
		wire.Terminate{Layer: wire.LayerDDP, Type: 1, Code: 4, HasLength: true, Length: 258},
		"11048000" + "0102",
	},
}

func encode(v any) []byte {
	switch v := v.(type) {
	case wire.Frame:
		return wire.AppendFrame(nil, &v)
	case wire.FPDU:
		return wire.AppendFPDU(nil, &v)
	case wire.Header:
		return wire.AppendHeader(nil, &v)
	case wire.ReadRequest:
		return wire.AppendReadRequest(nil, &v)
	case wire.Terminate:
		return wire.AppendTerminate(nil, &v)
	}
	panic("unknown item")
}

// decode decodes b as the kind of thing v is.
func decode(v any, b []byte) (any, int, error) {
	switch v.(type) {
	case wire.Frame:
		return result(wire.ConsumeFrame(b))
	case wire.FPDU:
		return result(wire.ConsumeFPDU(b))
	case wire.Header:
		return result(wire.ConsumeHeader(b))
	case wire.ReadRequest:
		return result(wire.ConsumeReadRequest(b))
	case wire.Terminate:
		return result(wire.ConsumeTerminate(b))
	}
	panic("unknown item")
}

func result[T any](v T, n int, err error) (any, int, error) { return v, n, err }

func TestRoundTrip(t *testing.T) {
	for _, it := range items {
		want, err := hex.DecodeString(it.hex)
		if err != nil {
			t.Fatal(err)
		}
		if got := encode(it.v); !bytes.Equal(got, want) {
			t.Errorf("%s: encoded %x, want %x", it.name, got, want)
		}
		// what follows is not part of it
		got, n, err := decode(it.v, append(want[:len(want):len(want)], 0xaa, 0xbb))
		if err != nil || n != len(want) {
			t.Errorf("%s: decoded %d of %d bytes: %v", it.name, n, len(want), err)
			continue
		}
		if d := cmp.Diff(it.v, got, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s: decoded (-want +got):\n%s", it.name, d)
		}
	}
}

// TestPrefixes: no strict prefix of a valid item decodes. The error is always ErrShort.
func TestPrefixes(t *testing.T) {
	for _, it := range items {
		whole, _ := hex.DecodeString(it.hex)
		for n := range whole {
			// in memory of exactly that length: reading beyond it would panic
			b := append(make([]byte, 0, n), whole[:n]...)
			if _, used, err := decode(it.v, b); !errors.Is(err, wire.ErrShort) || used != 0 {
				t.Errorf("%s: first %d of %d bytes: used %d, %v: want ErrShort", it.name, n, len(whole), used, err)
			}
		}
	}
}

func TestMalformed(t *testing.T) {
	req := "4d504120494420526571204672616d65"
	tests := []struct {
		name string
		kind any
		hex  string
		want string // the error's layer, type and code, and its field
	}{
		{"RFC 5044 7.1 wrong key at once", wire.Frame{}, "47", "2/0/4 MPA key byte"},
		{"RFC 5044 7.1 wrong key late", wire.Frame{}, "4d504120494420526571204672616d64", "2/0/4 MPA key byte"},
		{"RFC 6581 revision 3", wire.Frame{}, req + "00030000", "2/0/4 MPA revision"},
		{"RFC 5044 7.1 private data of 513", wire.Frame{}, req + "00010201", "2/0/4 MPA private data length"},
		{"RFC 6581 5 no room for the control word", wire.Frame{}, req + "10020003", "2/0/4 MPA private data length with a control word"},
		{"RFC 5041 4.1 tagged, version 0", wire.Header{}, "c040", "1/1/4 DDP version"},
		{"RFC 5041 4.1 untagged, version 2", wire.Header{}, "4243", "1/2/6 DDP version"},
		{"RFC 5040 4.1 version 0", wire.Header{}, "4103", "0/2/5 RDMAP version"},
		{"RFC 5040 4.1 version 3", wire.Header{}, "41c3", "0/2/5 RDMAP version"},
		{"RFC 5040 4.1 opcode 12", wire.Header{}, "414c", "0/2/6 RDMAP opcode"},
		{"RFC 5040 4.1 tagged Send", wire.Header{}, "c143", "0/2/6 DDP tagged flag for Send"},
		{"RFC 5040 4.1 untagged Write", wire.Header{}, "4140", "0/2/6 DDP tagged flag for Write"},
	}
	for _, tt := range tests {
		b, err := hex.DecodeString(tt.hex)
		if err != nil {
			t.Fatal(err)
		}
		_, n, err := decode(tt.kind, b)
		var e *wire.Error
		if !errors.As(err, &e) || n != 0 {
			t.Errorf("%s: %v, used %d: want a *wire.Error", tt.name, err, n)
			continue
		}
		if got := fmt.Sprintf("%d/%d/%d %s", uint8(e.Layer), e.Type, e.Code, e.Field); got != tt.want {
			t.Errorf("%s: %s: want %s", tt.name, got, tt.want)
		}
		if got, want := errors.Is(err, wire.ErrKey), e.Field == "MPA key byte"; got != want {
			t.Errorf("%s: errors.Is ErrKey %t, want %t", tt.name, got, want)
		}
	}
}

// TestReservedBits: reserved bits are ignored, as siw does.
func TestReservedBits(t *testing.T) {
	h, _, err := wire.ConsumeHeader([]byte{0x7d, 0x73, 17: 0})
	if want := (wire.Header{Last: true, Opcode: wire.OpSend}); err != nil || h != want {
		t.Errorf("%+v, %v: want %+v", h, err, want)
	}
}

// TestTerminateOrder: the two bit orders are distinguished by the header bits, or else by which of
// the two readings is defined.
func TestTerminateOrder(t *testing.T) {
	tests := []struct {
		first, code, bits byte
		want              string
		reversed          bool
	}{
		{0x21, 0x06, 0, "DDP 2/06 invalid DDP version", true},
		{0x12, 0x06, 0, "DDP 2/06 invalid DDP version", false},
		{0x02, 0x02, 0, "MPA 0/02 CRC mismatch", true},
		{0x20, 0x02, 0, "MPA 0/02 CRC mismatch", false},
		{0x20, 0x07, 0, "MPA 0/07 no matching RTR", false},
		{0x02, 0x05, 0, "RDMAP 2/05 invalid RDMAP version", false},
		{0x10, 0x01, 0, "RDMAP 1/01 base or bounds violation", true},
		{0x01, 0x02, 0, "RDMAP 1/02 access rights violation", false},
		{0x11, 0x04, 0, "DDP 1/04 invalid DDP version", false},
		{0x00, 0x7f, 0, "RDMAP 0/7f local catastrophic", false},
		{0x33, 0x33, 0, "layer 3 3/33 unknown error", false},
	}
	for _, tt := range tests {
		term, n, err := wire.ConsumeTerminate([]byte{tt.first, tt.code, tt.bits, 0})
		got := wire.TerminateText(term.Layer, term.Type, term.Code)
		if err != nil || n != 4 || got != tt.want || term.Reversed != tt.reversed {
			t.Errorf("%02x %02x: %q, reversed %v, %v: want %q, %v", tt.first, tt.code, got, term.Reversed, err, tt.want, tt.reversed)
		}
	}
}

// TestCRC has the vector of iSCSI's RFC 3720 appendix B.4, which uses the same polynomial, and one
// FPDU captured from siw.
func TestCRC(t *testing.T) {
	if got := wire.UpdateCRC(wire.UpdateCRC(0, make([]byte, 20)), make([]byte, 12)); got != 0x8a9136aa {
		t.Errorf("32 zero bytes: %#x", got)
	}
	b, _ := hex.DecodeString("0017414300000000000000000000000100000000414243444500" + "0000" + "fca77a09")
	f, n, err := wire.ConsumeFPDU(b)
	if err != nil || n != len(b) || f.CRC != 0x097aa7fc || f.Checksum() != f.CRC {
		t.Errorf("%+v, %d, %v: checksum %#x", f, n, err, f.Checksum())
	}
}

func TestNoAllocations(t *testing.T) {
	buf := make([]byte, 0, 1024)
	f := wire.Frame{Revision: 2, Flags: wire.FlagEnhanced, Private: []byte("abc")}
	h := wire.Header{Last: true, Opcode: wire.OpSend}
	p := wire.FPDU{ULPDU: make([]byte, 40)}
	term := wire.Terminate{HasLength: true, DDP: make([]byte, wire.UntaggedLen)}
	n := testing.AllocsPerRun(100, func() {
		b := wire.AppendFrame(buf, &f)
		_, n, err1 := wire.ConsumeFrame(b)
		b = wire.AppendFPDU(b, &p)
		_, _, err2 := wire.ConsumeFPDU(b[n:])
		_, _, err3 := wire.ConsumeHeader(wire.AppendHeader(buf, &h))
		_, _, err4 := wire.ConsumeTerminate(wire.AppendTerminate(buf, &term))
		if err1 != nil || err2 != nil || err3 != nil || err4 != nil {
			t.Fatal(err1, err2, err3, err4)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestOpcodes: RFC 5040 section 5.4 and RFC 7306 section 5 give every untagged opcode its queue.
func TestOpcodes(t *testing.T) {
	queues := map[wire.Opcode]uint32{
		wire.OpReadRequest: 1, wire.OpSend: 0, wire.OpSendInvalidate: 0, wire.OpSendSE: 0, wire.OpSendSEInvalidate: 0,
		wire.OpTerminate: 2, wire.OpImmediate: 0, wire.OpImmediateSE: 0, wire.OpAtomicRequest: 1, wire.OpAtomicResponse: 3,
	}
	for op := wire.OpWrite; op <= wire.OpAtomicResponse; op++ {
		q, untagged := queues[op]
		if untagged == op.Tagged() || op.Queue() != q {
			t.Errorf("%v: tagged %v, queue %d: want %v, %d", op, op.Tagged(), op.Queue(), !untagged, q)
		}
		h := wire.Header{Tagged: op.Tagged(), Opcode: op}
		if got, _, err := wire.ConsumeHeader(wire.AppendHeader(nil, &h)); err != nil || got != h {
			t.Errorf("%v: decoded %+v, %v", op, got, err)
		}
	}
	if s := wire.OpSendSEInvalidate.String() + ", " + wire.Opcode(13).String(); s != "Send with SE and Invalidate, opcode 13" {
		t.Error(s)
	}
	e := &wire.Error{Layer: wire.LayerMPA, Code: 4, Field: "MPA revision", Value: 9}
	if e.Error() != "wire: MPA revision 0x9: MPA 0/04 invalid Request or Reply frame" {
		t.Error(e)
	}
}
