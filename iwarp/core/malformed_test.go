package core_test

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/iwarp/core"
	"github.com/rdmactor/rdmactor/iwarp/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestMalformed: what a peer can do wrong once connected, what it is told, and what becomes of two posted receives (one of 10
// bytes, one of 20) and a queued send.
func TestMalformed(t *testing.T) {
	head := func(h wire.Header) string { return hex.EncodeToString(wire.AppendHeader(nil, &h)) }
	sendHead := func(h wire.Header) wire.Header { h.Opcode = wire.OpSend; return h }
	const flushed = "r1:work request flushed/0 r2:work request flushed/0 s3:work request flushed/0"
	const after1 = "r1:success/3 r2:work request flushed/0 s3:work request flushed/0"
	rr := func(q wire.ReadRequest) []byte { return wire.AppendReadRequest(nil, &q) }
	readHead := wire.Header{Last: true, Opcode: wire.OpReadRequest, QN: 1, MSN: 1}
	tests := []struct {
		name  string
		input []byte
		term  string // payload of the Terminate
		done  string
		text  string
	}{
		{"RFC 5044 FPDU of 1 byte", []byte{0, 1, 0x41, 0, 0, 0, 0, 0}, "20030000", flushed, "too short for any header"},
		{"RFC 5044 empty FPDU", make([]byte, 8), "20030000", flushed, "too short for any header"},
		{"RFC 5041 header cut short", []byte{0, 17, 0x41, 0x43}, "20030000", flushed, "FPDU of 17 bytes, too short for the header of a Send"},
		{"RFC 5040 Read Request cut short", []byte{0, 45, 0x41, 0x41}, "20030000", flushed, "too short for the header of a Read Request"},
		{"RFC 5041 version 2, untagged", []byte{0, 18, 0x42, 0x43}, "12060000", flushed, "DDP version"},
		{"RFC 5041 version 2, tagged", []byte{0, 18, 0xc2, 0x40}, "11040000", flushed, "DDP version"},
		{"RFC 5040 version 2", []byte{0, 18, 0x41, 0x83}, "02050000", flushed, "RDMAP version"},
		{"RFC 5040 opcode 15", []byte{0, 18, 0x41, 0x4f}, "02060000", flushed, "RDMAP opcode"},
		{"RFC 5040 tagged Send", []byte{0, 18, 0xc1, 0x43}, "02060000", flushed, "DDP tagged flag"},
		{
			"RFC 7306 Immediate Data", fpdu(wire.Header{Last: true, Opcode: wire.OpImmediate, MSN: 1}, make([]byte, 8)...),
			"0206c000001a" + head(wire.Header{Last: true, Opcode: wire.OpImmediate, MSN: 1}), flushed, "unexpected Immediate Data",
		},
		{
			"RFC 5041 Send on queue 1", fpdu(sendHead(wire.Header{Last: true, QN: 1, MSN: 1})),
			"1201c0000012" + head(sendHead(wire.Header{Last: true, QN: 1, MSN: 1})), flushed, "Send on queue 1",
		},
		{
			"RFC 5041 Send with MSN 2 first", send(2, ""),
			"1203c0000012" + head(sendHead(wire.Header{Last: true, MSN: 2})), flushed, "MSN 2, should be 1",
		},
		{
			"RFC 5041 MSN twice", append(send(1, "abc"), send(1, "")...),
			"1203c0000012" + head(sendHead(wire.Header{Last: true, MSN: 1})), after1, "MSN 1, should be 2",
		},
		{
			"RFC 5041 Send begins at MO 4", fpdu(sendHead(wire.Header{Last: true, MSN: 1, MO: 4})),
			"1204c0000012" + head(sendHead(wire.Header{Last: true, MSN: 1, MO: 4})), flushed, "MO 4, should be 0",
		},
		{
			"RFC 5041 hole in a message",
			append(fpdu(sendHead(wire.Header{MSN: 1}), 1, 2, 3), fpdu(sendHead(wire.Header{Last: true, MSN: 1, MO: 4}))...),
			"1204c0000012" + head(sendHead(wire.Header{Last: true, MSN: 1, MO: 4})),
			"r1:general error/0 r2:work request flushed/0 s3:work request flushed/0", "MO 4, should be 3",
		},
		{
			"RFC 5040 opcode changes in a message",
			append(fpdu(sendHead(wire.Header{MSN: 1}), 1), fpdu(wire.Header{Last: true, Opcode: wire.OpSendSE, MSN: 1, MO: 1})...),
			"0206c0000012" + head(wire.Header{Last: true, Opcode: wire.OpSendSE, MSN: 1, MO: 1}),
			"r1:general error/0 r2:work request flushed/0 s3:work request flushed/0", "Send with SE in the middle of a Send",
		},
		{
			"RFC 5041 too long in one segment", send(1, "elevenbytes"),
			"1205c000001d" + head(sendHead(wire.Header{Last: true, MSN: 1})),
			"r1:local length error/0 r2:work request flushed/0 s3:work request flushed/0", "11 bytes into a receive of 10",
		},
		{
			"RFC 5041 too long in two segments",
			append(fpdu(sendHead(wire.Header{MSN: 1}), make([]byte, 10)...), fpdu(sendHead(wire.Header{MSN: 1, MO: 10}), 1)...),
			"1205c0000013" + head(sendHead(wire.Header{MSN: 1, MO: 10})),
			"r1:local length error/0 r2:work request flushed/0 s3:work request flushed/0", "11 bytes into a receive of 10",
		},
		{
			"RFC 5041 third message for two receives", bytes.Join([][]byte{send(1, "abc"), send(2, ""), send(3, "x")}, nil),
			"1202c0000013" + head(sendHead(wire.Header{Last: true, MSN: 3})),
			"r1:success/3 r2:success/0 s3:work request flushed/0", "no receive posted",
		},
		{
			"RFC 5040 invalidate", fpdu(wire.Header{Last: true, Opcode: wire.OpSendInvalidate, STag: 77, MSN: 1}, 1),
			"0109c0000013" + head(wire.Header{Last: true, Opcode: wire.OpSendInvalidate, STag: 77, MSN: 1}),
			"r1:remote invalid request/0 r2:work request flushed/0 s3:work request flushed/0", "STag 0x4d",
		},
		{
			"RFC 5040 Write", fpdu(wire.Header{Tagged: true, Last: true, STag: 5, TO: 6}, 1),
			"1100c000000f" + head(wire.Header{Tagged: true, Last: true, STag: 5, TO: 6}), flushed, "Write of 1 bytes to STag 0x5",
		},
		{
			"RFC 5040 Read", fpdu(readHead, rr(wire.ReadRequest{Size: 1, SourceSTag: 9})...),
			"0100e000002e" + head(readHead) + hex.EncodeToString(rr(wire.ReadRequest{Size: 1, SourceSTag: 9})), flushed, "Read of 1 bytes of STag 0x9",
		},
		{
			"RFC 5040 Read Request on queue 0", fpdu(wire.Header{Last: true, Opcode: wire.OpReadRequest, MSN: 1}, rr(wire.ReadRequest{})...),
			"1201e000002e" + head(wire.Header{Last: true, Opcode: wire.OpReadRequest, MSN: 1}) + strings.Repeat("00", 28), flushed, "on queue 0",
		},
		{
			"RFC 5040 Read Request with MSN 2", fpdu(wire.Header{Last: true, Opcode: wire.OpReadRequest, QN: 1, MSN: 2}, rr(wire.ReadRequest{})...),
			"1203e000002e" + head(wire.Header{Last: true, Opcode: wire.OpReadRequest, QN: 1, MSN: 2}) + strings.Repeat("00", 28), flushed, "MSN 2, should be 1",
		},
		{
			"RFC 5040 Read Request with MO 1", fpdu(wire.Header{Last: true, Opcode: wire.OpReadRequest, QN: 1, MSN: 1, MO: 1}, rr(wire.ReadRequest{})...),
			"1204e000002e" + head(wire.Header{Last: true, Opcode: wire.OpReadRequest, QN: 1, MSN: 1, MO: 1}) + strings.Repeat("00", 28), flushed, "MO 1",
		},
		{
			"RFC 5040 Read Request with payload", fpdu(readHead, append(rr(wire.ReadRequest{}), 1)...),
			"1205e000002f" + head(readHead) + strings.Repeat("00", 28), flushed, "longer than its header",
		},
		{
			"RFC 5040 Read Response unasked for", fpdu(wire.Header{Tagged: true, Last: true, Opcode: wire.OpReadResponse}),
			"1000c000000e" + head(wire.Header{Tagged: true, Last: true, Opcode: wire.OpReadResponse}), flushed, "without a Read",
		},
	}
	for _, tt := range tests {
		for _, step := range []func() int{whole, func() int { return 1 }} {
			_, b := connect(t, core.Config{}, core.Config{})
			b.out = nil
			b.postRecv(1, 10)
			b.postRecv(2, 20)
			b.postSend(3, "queued", 0)
			b.input(tt.input, step)
			b.input(send(9, "ignored from here on"), step)
			b.wantDone(tt.name, tt.done)
			var e *core.Error
			if e, _ = b.err.(*core.Error); e == nil || !e.Sent || !e.Protocol || e.Errno != unix.EPROTO || !strings.Contains(e.Error(), tt.text) {
				t.Errorf("%s: Closed(%v): want %q", tt.name, b.err, tt.text)
				continue
			}
			if err := b.c.PostSend(&verbs.SendWR{}); err == nil {
				t.Errorf("%s: PostSend after the end", tt.name)
			}
			if err := b.c.PostRecv(verbs.RecvWR{}); err == nil {
				t.Errorf("%s: PostRecv after the end", tt.name)
			}
			wantTerminate(t, b, tt.name, b.take(1<<30), tt.term)
		}
	}
}

// TestCRCErrors: with CRC on, a wrong CRC is what is reported, whatever else is wrong with the segment, and the message is not
// delivered.
func TestCRCErrors(t *testing.T) {
	spoil := func(b []byte, i int) []byte { b[i] ^= 1; return b }
	one := func() []byte { return fpduCRC(wire.Header{Last: true, Opcode: wire.OpSend, MSN: 1}, 1, 2, 3) }
	tests := []struct {
		name  string
		input []byte
		term  string
		done  string
	}{
		{"payload", spoil(one(), 21), "20020000", "r1:general error/0"},
		{"pad", spoil(one(), 23), "20020000", "r1:general error/0"},
		{"CRC", spoil(one(), 25), "20020000", "r1:general error/0"},
		{"MSN", spoil(one(), 15), "20020000", "r1:work request flushed/0"},
		{"DDP version", spoil(one(), 2), "20020000", "r1:work request flushed/0"},
		{
			"wrong MSN under a right CRC", fpduCRC(wire.Header{Last: true, Opcode: wire.OpSend, MSN: 4}, 1),
			"1203c0000013" + "4143000000000000000000000004" + "00000000", "r1:work request flushed/0",
		},
		{"wrong version under a right CRC", crcOf(append([]byte{0x41, 0x03}, make([]byte, 16)...)), "02050000", "r1:work request flushed/0"},
		{"too short", []byte{0, 3, 0x41, 0x43}, "20030000", "r1:work request flushed/0"},
	}
	for _, tt := range tests {
		_, b := connect(t, core.Config{CRC: true}, core.Config{})
		b.postRecv(1, 10)
		b.input(tt.input, func() int { return 2 })
		term := b.take(1 << 30)
		if p, _, err := wire.ConsumeFPDU(term); err != nil || p.CRC != p.Checksum() {
			t.Errorf("%s: the Terminate's own CRC is wrong: %v", tt.name, err)
		}
		b.wantDone(tt.name, tt.done)
		wantTerminate(t, b, tt.name, term, tt.term)
	}
}

func crcOf(ulpdu []byte) []byte {
	f := wire.FPDU{ULPDU: ulpdu}
	f.CRC = f.Checksum()
	return wire.AppendFPDU(nil, &f)
}

// TestReadFlood: empty Reads are answered one by one, and no more than the announced number are kept while the peer does not read.
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

// TestTerminateBehindPartial: an FPDU that is half out is finished before the Terminate, from a copy: its work request is flushed.
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

// TestTerminateForms: a Terminate is understood in both bit orders, cut short, and over-long; it is never answered.
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
