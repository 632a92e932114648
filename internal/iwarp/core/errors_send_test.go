package core_test

import (
	"testing"

	"github.com/rdmactor/rdmactor/internal/iwarp/core"
	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

var (
	sendNothing = verbs.SendWR{}
	recvNothing = verbs.RecvWR{}
)

// sendSeg returns the ULPDU of a Send's segment; Last and MSN 1 unless h sets others.
func sendSeg(h wire.Header, payload string) []byte {
	if h.Opcode == 0 {
		h.Opcode = wire.OpSend
	}
	return seg(h, []byte(payload)...)
}

func list(ulpdus ...[]byte) [][]byte { return ulpdus }

// TestFrameErrors: FPDUs that are malformed for MPA, DDP or RDMAP. Nothing in the header can be
// trusted, so the Terminate has no copy of it (nor has siw's).
func TestFrameErrors(t *testing.T) {
	type h = wire.Header
	ctrl := func(ddp, rdmap byte) []byte { return append([]byte{ddp, rdmap}, make([]byte, 16)...) }
	const mpa, ddp, rdmap = "RFC 5044 section 8", "RFC 5041 section 7.2", "RFC 5040 section 7.2"
	rows := []errorRow{
		{rfc: mpa, name: "empty FPDU", bad: []byte{}, term: "2003", text: "FPDU of 0 bytes, too short for any header"},
		{rfc: mpa, name: "FPDU of 1 byte", bad: []byte{0x41}, term: "2003", text: "FPDU of 1 bytes, too short for any header"},
		{
			rfc: mpa, name: "control bytes only", bad: []byte{0x41, 0x43}, term: "2003",
			text: "FPDU of 2 bytes, too short for the header of a Send",
		},
		{rfc: mpa, name: "untagged header of 17 bytes", bad: sendSeg(h{Last: true, MSN: 1}, "")[:17], term: "2003", text: "header of a Send"},
		{rfc: mpa, name: "tagged header of 13 bytes", bad: seg(h{Tagged: true, Last: true})[:13], term: "2003", text: "header of a Write"},
		{
			rfc: mpa, name: "Read Request of 45 bytes", bad: append(seg(readHead), make([]byte, 27)...), term: "2003",
			text: "header of a Read Request",
		},
		{
			rfc: mpa, name: "Terminate of 3 bytes", term: "2003", text: "header of a Terminate",
			bad: seg(h{Last: true, Opcode: wire.OpTerminate, QN: 2, MSN: 1}, 0, 0, 0),
		},
		{
			rfc: mpa, name: "too short, in the middle of a message", good: list(sendSeg(h{MSN: 1}, "abc")), bad: []byte{0x41},
			term: "2003", text: "too short", done: allFlushed,
		},
		{rfc: ddp, name: "DDP version 0, untagged", bad: ctrl(0x40, 0x43), term: "1206", text: "DDP version 0x0"},
		{rfc: ddp, name: "DDP version 2, untagged", bad: ctrl(0x42, 0x43), term: "1206", text: "DDP version 0x2"},
		{rfc: ddp, name: "DDP version 3, tagged", bad: ctrl(0xc3, 0x40), term: "1104", text: "DDP version 0x3"},
		{rfc: rdmap, name: "RDMAP version 0", bad: ctrl(0x41, 0x03), term: "0205", text: "RDMAP version 0x0", siw: "2005"},
		{rfc: rdmap, name: "RDMAP version 2", bad: ctrl(0xc1, 0x80), term: "0205", text: "RDMAP version 0x2", siw: "2005"},
		{rfc: rdmap, name: "opcode 12", bad: ctrl(0x41, 0x4c), term: "0206", text: "RDMAP opcode 0xc", siw: "2006"},
		{rfc: rdmap, name: "opcode 15", bad: ctrl(0xc1, 0x4f), term: "0206", text: "RDMAP opcode 0xf", siw: "2006"},
		{rfc: rdmap, name: "tagged Send", bad: ctrl(0xc1, 0x43), term: "0206", text: "DDP tagged flag for Send", siw: "2006"},
		{rfc: rdmap, name: "tagged Read Request", bad: ctrl(0xc1, 0x41), term: "0206", text: "tagged flag for Read Request", siw: "2006"},
		{rfc: rdmap, name: "tagged Terminate", bad: ctrl(0xc1, 0x47), term: "0206", text: "tagged flag for Terminate", siw: "2006"},
		{rfc: rdmap, name: "untagged Write", bad: ctrl(0x41, 0x40), term: "0206", text: "DDP tagged flag for Write", siw: "2006"},
		{rfc: rdmap, name: "untagged Read Response", bad: ctrl(0x41, 0x42), term: "0206", text: "flag for Read Response", siw: "2006"},
	}
	// RFC 7306: known and well formed, but not supported by an endpoint of RFC 5040
	for _, op := range []wire.Opcode{wire.OpImmediate, wire.OpImmediateSE, wire.OpAtomicRequest, wire.OpAtomicResponse} {
		rows = append(rows, errorRow{
			rfc: "RFC 7306 section 6", name: op.String(), bad: seg(h{Last: true, Opcode: op, QN: op.Queue(), MSN: 1}, make([]byte, 8)...),
			term: "0206", copied: wire.UntaggedLen, text: "unexpected " + op.String(),
		})
	}
	runErrors(t, rows)
}

// TestSendErrors: what can be wrong with the four Sends. Untagged buffers: RFC 5041 section 7.1.
func TestSendErrors(t *testing.T) {
	type h = wire.Header
	const ddp, rdmap = "RFC 5041 section 7.1", "RFC 5040 section 7.2"
	one := sendSeg(h{Last: true, MSN: 1}, "abc")
	const second = "r1:success/3 r2:work request flushed/0 s3:work request flushed/0"
	rows := []errorRow{
		{rfc: ddp, name: "Send on queue 1", bad: sendSeg(h{Last: true, QN: 1, MSN: 1}, "x"), term: "1201", text: "Send on queue 1"},
		{rfc: ddp, name: "Send on queue 2", bad: sendSeg(h{Last: true, QN: 2, MSN: 1}, "x"), term: "1201", text: "Send on queue 2"},
		{
			rfc: ddp, name: "Send on queue 2^32-1", bad: sendSeg(h{Last: true, QN: 0xffffffff, MSN: 1}, ""), term: "1201",
			text: "Send on queue 4294967295",
		},
		{rfc: ddp, name: "MSN 0", bad: sendSeg(h{Last: true}, "x"), term: "1203", text: "MSN 0, should be 1"},
		{rfc: ddp, name: "MSN 2 first", bad: sendSeg(h{Last: true, MSN: 2}, "x"), term: "1203", text: "MSN 2, should be 1"},
		{rfc: ddp, name: "MSN 1 twice", good: list(one), bad: one, term: "1203", text: "MSN 1, should be 2", done: second},
		{
			rfc: ddp, name: "MSN changes inside a message", good: list(sendSeg(h{MSN: 1}, "abc")), bad: sendSeg(h{Last: true, MSN: 2, MO: 3}, "x"),
			term: "1203", text: "MSN 2, should be 1", done: hit("general error"),
		},
		{rfc: ddp, name: "begins at MO 4", bad: sendSeg(h{Last: true, MSN: 1, MO: 4}, "x"), term: "1204", text: "MO 4, should be 0"},
		{
			rfc: ddp, name: "hole in a message", good: list(sendSeg(h{MSN: 1}, "abc")), bad: sendSeg(h{Last: true, MSN: 1, MO: 4}, "x"),
			term: "1204", text: "MO 4, should be 3", done: hit("general error"),
		},
		{
			rfc: ddp, name: "segments overlap", good: list(sendSeg(h{MSN: 1}, "abc")), bad: sendSeg(h{Last: true, MSN: 1, MO: 2}, "x"),
			term: "1204", text: "MO 2, should be 3", done: hit("general error"),
		},
		{
			rfc: ddp, name: "MO 2^32-1", bad: sendSeg(h{Last: true, MSN: 1, MO: 0xffffffff}, "xy"), term: "1204",
			text: "MO 4294967295, should be 0",
		},
		{
			rfc: ddp, name: "longer than the receive", bad: sendSeg(h{Last: true, MSN: 1}, "elevenbytes"), term: "1205",
			text: "11 bytes into a receive of 10", done: hit("local length error"),
		},
		{
			rfc: ddp, name: "longer than the receive, in two segments", good: list(sendSeg(h{MSN: 1}, "tenletters")),
			bad: sendSeg(h{Last: true, MSN: 1, MO: 10}, "x"), term: "1205", text: "11 bytes into a receive of 10", done: hit("local length error"),
		},
		{
			rfc: ddp, name: "no receive posted", good: list(one, sendSeg(h{Last: true, MSN: 2}, "")), bad: sendSeg(h{Last: true, MSN: 3}, "x"),
			term: "1202", text: "Send with no receive posted", done: "r1:success/3 r2:success/0 s3:work request flushed/0",
		},
		{
			rfc: ddp, name: "no receive posted for an empty Send", good: list(one, sendSeg(h{Last: true, MSN: 2}, "")),
			bad:  sendSeg(h{Last: true, Opcode: wire.OpSendSE, MSN: 3}, ""),
			term: "1202", text: "Send with SE with no receive posted", done: "r1:success/3 r2:success/0 s3:work request flushed/0",
		},
		{
			rfc: rdmap, name: "opcode changes inside a message", good: list(sendSeg(h{MSN: 1}, "a")),
			bad: sendSeg(h{Last: true, Opcode: wire.OpSendSE, MSN: 1, MO: 1}, ""), term: "0206", text: "Send with SE in the middle of a Send",
			done: hit("general error"),
		},
	}
	for _, op := range []wire.Opcode{wire.OpSendInvalidate, wire.OpSendSEInvalidate} {
		rows = append(rows,
			errorRow{
				rfc: rdmap, name: op.String() + " of an unknown STag", bad: sendSeg(h{Last: true, Opcode: op, STag: 77, MSN: 1}, "x"),
				term: "0109", text: op.String() + " of STag 0x4d", done: hit("remote invalid request"),
			},
			errorRow{
				rfc: rdmap, name: op.String() + " of STag 0, empty", bad: sendSeg(h{Last: true, Opcode: op, MSN: 1}, ""),
				term: "0109", text: op.String() + " of STag 0x0", done: hit("remote invalid request"),
			},
			errorRow{
				rfc: rdmap, name: op.String() + " of an unknown STag, in two segments",
				good: list(sendSeg(h{Opcode: op, STag: 77, MSN: 1}, "a")), bad: sendSeg(h{Last: true, Opcode: op, STag: 77, MSN: 1, MO: 1}, "b"),
				term: "0109", text: op.String() + " of STag 0x4d", done: hit("remote invalid request"),
			})
	}
	for i := range rows {
		rows[i].copied = wire.UntaggedLen
	}
	runErrors(t, rows)
}

var readHead = wire.Header{Last: true, Opcode: wire.OpReadRequest, QN: 1, MSN: 1}

// readSeg returns the ULPDU of a Read Request.
func readSeg(h wire.Header, q wire.ReadRequest) []byte {
	h.Opcode = wire.OpReadRequest
	return seg(h, wire.AppendReadRequest(nil, &q)...)
}

// TestReadRequestErrors: what can be wrong with a Read Request as a message, whatever it asks for.
func TestReadRequestErrors(t *testing.T) {
	type h = wire.Header
	const ddp = "RFC 5041 section 7.1"
	none := wire.ReadRequest{}
	good := readSeg(h{Last: true, QN: 1, MSN: 1}, none)
	rows := []errorRow{
		{rfc: ddp, name: "Read Request on queue 0", bad: readSeg(h{Last: true, MSN: 1}, none), term: "1201", text: "Read Request on queue 0"},
		{
			rfc: ddp, name: "Read Request on queue 2", bad: readSeg(h{Last: true, QN: 2, MSN: 1}, none), term: "1201",
			text: "Read Request on queue 2",
		},
		{rfc: ddp, name: "Read Request with MSN 0", bad: readSeg(h{Last: true, QN: 1}, none), term: "1203", text: "MSN 0, should be 1"},
		{rfc: ddp, name: "Read Request with MSN 2", bad: readSeg(h{Last: true, QN: 1, MSN: 2}, none), term: "1203", text: "MSN 2, should be 1"},
		{rfc: ddp, name: "Read Request with MSN 1 twice", good: list(good), bad: good, term: "1203", text: "MSN 1, should be 2"},
		{
			rfc: ddp, name: "Sends and Read Requests count apart", good: list(good, sendSeg(h{Last: true, MSN: 1}, "abc")),
			bad: readSeg(h{Last: true, QN: 1, MSN: 3}, none), term: "1203", text: "MSN 3, should be 2",
			done: "r1:success/3 r2:work request flushed/0 s3:work request flushed/0",
		},
		{rfc: ddp, name: "Read Request with MO 1", bad: readSeg(h{Last: true, QN: 1, MSN: 1, MO: 1}, none), term: "1204", text: "MO 1"},
		{
			rfc: "RFC 5040 section 4.4", name: "Read Request with payload", bad: append(readSeg(readHead, none), 1), term: "1205",
			text: "longer than its header",
		},
		{
			rfc: "RFC 5040 section 4.4", name: "Read Request in two segments", bad: readSeg(h{QN: 1, MSN: 1}, none), term: "1205",
			text: "longer than its header",
		},
	}
	for i := range rows {
		rows[i].copied = wire.UntaggedLen + wire.ReadRequestLen
	}
	runErrors(t, rows)
}

// TestReservedBits: reserved fields are ignored, as siw does: bits of both control bytes, the ULP's
// field of a plain Send, pad bytes (which the CRC covers). RFC 5041 section 4.1, RFC 5040 section
// 4.1, RFC 5044 section 4.1.
func TestReservedBits(t *testing.T) {
	for _, crc := range []bool{false, true} {
		_, b := connect(t, core.Config{CRC: crc}, core.Config{})
		b.postRecv(1, 10)
		f := wire.FPDU{ULPDU: sendSeg(wire.Header{Last: true, MSN: 1, STag: 0xffffffff}, "abc"), Pad: [3]byte{1, 2, 3}}
		f.ULPDU[0] |= 0x3c
		f.ULPDU[1] |= 0x30
		if crc {
			f.CRC = f.Checksum()
		}
		b.c.Input(t0, wire.AppendFPDU(nil, &f))
		b.wantDone("reserved bits", "r1:success/3")
		if b.closed != 0 {
			t.Errorf("CRC %t: %v", crc, b.err)
		}
	}
}
