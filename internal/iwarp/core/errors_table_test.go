package core_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/iwarp/core"
	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// errorRow is one row of the error tables: an error of a connected peer, and what both sides
// report. The side that finds the error (the finder) has receives 1 (10 bytes) and 2 (20 bytes)
// posted, and Send 3 queued. The other side has receive 11 posted, Send 12 handed over, and Send 13
// queued.
type errorRow struct {
	rfc, name string
	// before is called when both are connected and nothing is posted, later when good has been
	// sent.
	before, later func(s *side, m *memory)
	good          [][]byte // valid ULPDUs that are sent first
	bad           []byte   // the invalid ULPDU
	term          string   // layer, type and code of the Terminate
	// how much of bad it repeats: nothing, or the DDP header, with the RDMAP header of a Read
	// Request
	copied int
	text   string // part of the finder's error text
	done   string // the finder's completions, to the last; empty: everything is flushed
	// done if the CRC of bad is wrong too; empty: as done, but with a general error for the work
	// request that bad hit
	crcDone string
	// how the same Terminate is understood in siw's bit order; empty: in the same way
	siw string
}

const allFlushed = "r1:work request flushed/0 r2:work request flushed/0 s3:work request flushed/0"

// hit returns allFlushed with another status for receive 1.
func hit(status string) string { return strings.Replace(allFlushed, "work request flushed", status, 1) }

func seg(h wire.Header, payload ...byte) []byte {
	return append(wire.AppendHeader(nil, &h), payload...)
}

// framed makes an FPDU of a ULPDU.
func framed(ulpdu []byte, crc bool) []byte {
	f := wire.FPDU{ULPDU: ulpdu}
	if crc {
		f.CRC = f.Checksum()
	}
	return wire.AppendFPDU(nil, &f)
}

// errorTest is one way of playing a row.
type errorTest struct {
	initiator bool // the finder is
	crc       bool // in use
	damaged   bool // the CRC of the wrong FPDU is wrong as well
	step      func() int
}

func runErrors(t *testing.T, rows []errorRow) {
	t.Helper()
	byByte := func() int { return 1 }
	for _, row := range rows {
		t.Run(row.rfc+" "+row.name, func(t *testing.T) {
			for _, initiator := range []bool{false, true} {
				row.play(t, errorTest{initiator: initiator, step: whole})
				row.play(t, errorTest{initiator: initiator, step: byByte})
				row.play(t, errorTest{initiator: initiator, step: whole, crc: true})
				row.play(t, errorTest{initiator: initiator, step: byByte, crc: true, damaged: true})
			}
		})
	}
}

// pair makes a connected finder with memory m, and its peer.
func (how *errorTest) pair(t *testing.T, m *memory) (s, peer *side) {
	t.Helper()
	ca := core.Config{IRD: 4, ORD: 4, CRC: how.crc}
	cb := core.Config{}
	if how.initiator {
		ca.Regions = &m.Regions
		s, peer = connect(t, ca, cb)
	} else {
		cb.Regions = &m.Regions
		peer, s = connect(t, ca, cb)
	}
	for _, x := range []*side{s, peer} {
		x.at(100 * time.Millisecond)
		x.c.Timeout(x.now) // a responder may speak now
	}
	return s, peer
}

func (row *errorRow) play(t *testing.T, how errorTest) {
	t.Helper()
	m := newMemory(t)
	s, peer := how.pair(t, m)
	s.name = strings.Join([]string{s.name, map[bool]string{true: "CRC"}[how.crc], map[bool]string{true: "damaged"}[how.damaged]}, " ")
	if row.before != nil {
		row.before(s, m)
	}
	// registering the receives would make this row's message valid
	if recv := []*verbs.MR{s.postRecv(1, 10), s.postRecv(2, 20)}; row.term != "0109" {
		m.all = append(m.all, recv...)
	}
	s.take(1 << 30)
	s.postSend(3, "queued", 0)
	peer.postRecv(11, 10)
	peer.postSend(12, "gone", 0)
	peer.take(1 << 30)
	peer.postSend(13, "queued", 0)
	peer.out, s.out = nil, nil

	for _, ulpdu := range row.good {
		s.input(framed(ulpdu, how.crc), how.step)
	}
	if row.later != nil {
		row.later(s, m)
	}
	if s.closed != 0 {
		t.Fatalf("%s: closed before the wrong FPDU: %v", s.name, s.err)
	}
	placed := m.snapshot()
	bad := framed(row.bad, how.crc)
	if how.damaged {
		bad[len(bad)-1] ^= 0x40
	}
	s.input(bad, how.step)
	s.input(framed(sendSeg(wire.Header{Last: true, MSN: 9}, "too late"), how.crc), how.step)

	term, done, text := row.term, row.done, row.text
	if done == "" {
		done = allFlushed
	}
	payload := row.terminate()
	// an impossible length is reported immediately, because the end of the FPDU is unknown
	if how.damaged && !strings.HasPrefix(term, "2003") {
		done, term, text, payload = general(done), "2002", "CRC 0x", "20020000"
		if row.crcDone != "" {
			done = row.crcDone
		}
	}
	row.finder(t, s, term, text, done)
	if !bytes.Equal(m.snapshot(), placed) {
		t.Errorf("%s: the wrong FPDU changed memory", s.name)
	}
	out := s.take(1 << 30)
	if p, _, err := wire.ConsumeFPDU(out); how.crc && (err != nil || p.CRC != p.Checksum()) {
		t.Errorf("%s: the Terminate's own CRC is wrong: %v", s.name, err)
	}
	wantTerminate(t, s, s.name, out, payload)
	s.input(bad, how.step)
	s.wantDone("nothing is owed any more", "")

	peer.input(out, how.step)
	wantTerminated(t, peer, term)
	peer.wantDone("the peer", "s12:success/4 r11:work request flushed/0 s13:work request flushed/0")
	if !how.crc {
		row.reversed(t, out)
	}
}

var otherStatus = regexp.MustCompile(`:(local length error|local protection error|remote invalid request|general error)/`)

// general returns done with the status that a wrong CRC has.
func general(done string) string { return otherStatus.ReplaceAllString(done, ":general error/") }

// terminate returns the payload of the row's Terminate: M, D and R are a length, a DDP header and a
// Read Request (RFC 5040 section 4.8).
func (row *errorRow) terminate() string {
	if row.copied == 0 {
		return row.term + "0000"
	}
	bits := "c0"
	if row.copied > wire.UntaggedLen {
		bits = "e0"
	}
	length := binary.BigEndian.AppendUint16(nil, uint16(len(row.bad)))
	return row.term + bits + "00" + hex.EncodeToString(length) + hex.EncodeToString(row.bad[:row.copied])
}

// finder checks the report of the side that got the wrong FPDU to its owner, and that it accepts no
// further work requests.
func (row *errorRow) finder(t *testing.T, s *side, term, text, done string) {
	t.Helper()
	s.wantDone("the finder", done)
	e, _ := s.err.(*core.Error)
	if e == nil || s.closed != 1 || s.rejected != nil {
		t.Fatalf("%s: closed %d, %v, rejected %v: want one *Error", s.name, s.closed, s.err, s.rejected)
	}
	if !e.Sent || e.Received || !e.Protocol || e.Op != "receive" || e.Errno != unix.EPROTO || !strings.Contains(e.Error(), text) {
		t.Errorf("%s: %+v (%v): want %q, reported to the peer", s.name, *e, e, text)
	}
	if got := termOf(e); got != term {
		t.Errorf("%s: the owner got %s, the peer %s", s.name, got, term)
	}
	wantOver(t, s)
}

// termOf returns an error's layer, type and code as a Terminate has them.
func termOf(e *core.Error) string {
	return hex.EncodeToString([]byte{byte(e.Layer)<<4 | e.Type, e.Code})
}

// wantTerminated checks the report of the side that got a Terminate to its owner, and that it
// closes immediately without an answer (RFC 5040 section 5.4).
func wantTerminated(t *testing.T, s *side, term string) {
	t.Helper()
	e, _ := s.err.(*core.Error)
	if e == nil || s.closed != 1 {
		t.Fatalf("%s: closed %d, %v: want an *Error for the Terminate %s", s.name, s.closed, s.err, term)
	}
	if e.Sent || !e.Received || !e.Protocol || e.Op != "receive" || e.Errno != unix.ECONNRESET || termOf(e) != term {
		t.Errorf("%s: %+v: want the Terminate %s, received", s.name, *e, term)
	}
	s.quiet("a Terminate is not answered")
	s.wantClose("a Terminate is not answered", false, true)
	wantOver(t, s)
}

// wantOver checks that an ended connection accepts no work requests.
func wantOver(t *testing.T, s *side) {
	t.Helper()
	wantErrno(t, s.name+": PostSend after the end", s.c.PostSend(&sendNothing), unix.EINVAL)
	wantErrno(t, s.name+": PostRecv after the end", s.c.PostRecv(recvNothing), unix.EINVAL)
}

// reversed sends the row's Terminate as siw would, with the bit fields of bytes 0 and 2 mirrored.
func (row *errorRow) reversed(t *testing.T, out []byte) {
	t.Helper()
	p, _, _ := wire.ConsumeFPDU(out)
	term, _, err := wire.ConsumeTerminate(p.ULPDU[wire.UntaggedLen:])
	if err != nil {
		t.Fatalf("our own Terminate: %v", err)
	}
	term.Reversed = true
	want := row.siw
	if want == "" {
		want = row.term
	}
	_, b := connect(t, core.Config{}, core.Config{})
	b.name = "ended by siw"
	b.c.Input(t0, fpdu(wire.Header{Last: true, Opcode: wire.OpTerminate, QN: 2, MSN: 1}, wire.AppendTerminate(nil, &term)...))
	wantTerminated(t, b, want)
}

// TestTerminatesOfSiw: both sides understand what siw sends for each condition, whole and byte by
// byte. siw has its own bit order, and no copies unless byte 2 announces them. RFC 5040 section
// 4.8.
func TestTerminatesOfSiw(t *testing.T) {
	for _, tt := range []struct{ name, sent, want string }{
		{"CRC error", "02020000", "2002"},
		{"ULPDU shorter than the header", "02030000", "2003"},
		{"DDP version, untagged", "21060000", "1206"},
		{"DDP version, tagged", "11040000", "1104"},
		{"Send on a wrong queue", "21010300", "1201"},
		{"Send with a wrong MSN", "21030300", "1203"},
		{"Send with a wrong MO", "21040300", "1204"},
		{"no receive posted, or one that is too short", "21020300", "1202"},
		{"Write: STag, key, permission", "11000300", "1100"},
		{"Write: bounds, gap", "11010300", "1101"},
		{"Write: another protection domain", "11020300", "1102"},
		{"Read: STag", "10000700", "0100"},
		{"Read: bounds", "10010700", "0101"},
		{"Read: another protection domain", "10030700", "0103"},
		{"Read queue full", "20070300", "0207"},
		{"Read Response unasked for", "01000300", "1000"},
		{"Reply with a wrong key", "02040000", "2004"},
		// byte 2 is 0 and both readings are defined: the standard's is preferred
		{"RDMAP version: taken for a local catastrophe of MPA", "20050000", "2005"},
		{"RDMAP opcode: taken for an insufficient IRD", "20060000", "2006"},
		{"Reply with an ORD above 128: taken for an unexpected opcode", "02060000", "0206"},
	} {
		for _, initiator := range []bool{false, true} {
			for _, step := range []func() int{whole, func() int { return 1 }} {
				a, b := connect(t, core.Config{}, core.Config{})
				if !initiator {
					a = b
				}
				a.name += ": " + tt.name
				a.postRecv(1, 10)
				payload := unhex(t, tt.sent)
				if payload[2] != 0 {
					payload = append(payload, 0, 0) // siw counts payload bytes
					payload = append(payload, seg(wire.Header{Last: true, Opcode: wire.OpSend, MSN: 1})...)
				}
				a.input(fpdu(wire.Header{Last: true, Opcode: wire.OpTerminate, QN: 2, MSN: 1}, payload...), step)
				wantTerminated(t, a, tt.want)
				a.wantDone("flushed", "r1:work request flushed/0")
			}
		}
	}
}

// TestTerminateInAnyShape: even a malformed Terminate ends the connection and is not answered (RFC
// 5040 section 5.4).
func TestTerminateInAnyShape(t *testing.T) {
	payload := unhex(t, "12020000")
	for name, h := range map[string]wire.Header{
		"queue 0":       {Last: true, Opcode: wire.OpTerminate, MSN: 1},
		"MSN 7":         {Last: true, Opcode: wire.OpTerminate, QN: 2, MSN: 7},
		"MO 4":          {Last: true, Opcode: wire.OpTerminate, QN: 2, MSN: 1, MO: 4},
		"not last":      {Opcode: wire.OpTerminate, QN: 2, MSN: 1},
		"reserved bits": {Last: true, Opcode: wire.OpTerminate, QN: 2, MSN: 1, STag: 0xffffffff},
	} {
		_, b := connect(t, core.Config{}, core.Config{})
		b.name = name
		b.postRecv(1, 10)
		b.c.Input(t0, bytes.Join([][]byte{fpdu(h, payload...), send(1, "too late")}, nil))
		wantTerminated(t, b, "1202")
		b.wantDone("flushed", "r1:work request flushed/0")
	}
}
