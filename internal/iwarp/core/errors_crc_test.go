package core_test

import (
	"testing"

	"github.com/rdmactor/rdmactor/internal/iwarp/core"
	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
)

// TestCRCOfEveryBit: if CRC is in use, any wrong bit of an FPDU behind its length field is a CRC
// error, pad and CRC included (RFC 5044 section 4.4). Nothing is delivered, nothing succeeds, and
// both sides are notified.
func TestCRCOfEveryBit(t *testing.T) {
	type h = wire.Header
	for name, tt := range map[string]struct {
		ulpdu  []byte
		before func(*side, *memory)
	}{
		"Send":          {ulpdu: sendSeg(h{Last: true, MSN: 1}, "abc")},
		"empty Send":    {ulpdu: sendSeg(h{Last: true, MSN: 1}, "")},
		"Write":         {ulpdu: writeSeg(0x0101, 0x10000, true, 5)},
		"Read Request":  {ulpdu: readSeg(readHead, wire.ReadRequest{SinkSTag: 5, Size: 8, SourceSTag: 0x0101, SourceTO: 0x10000})},
		"Read Response": {ulpdu: responseSeg(0x0303, 0x30008, true, 8), before: postRead},
		"Terminate":     {ulpdu: seg(h{Last: true, Opcode: wire.OpTerminate, QN: 2, MSN: 1}, 0x12, 2, 0, 0)},
	} {
		good := framed(tt.ulpdu, true)
		for bit := 16; bit < 8*len(good); bit++ {
			m := newMemory(t)
			how := errorTest{crc: true}
			s, peer := how.pair(t, m)
			if tt.before != nil {
				tt.before(s, m)
			}
			s.postRecv(1, 10)
			s.take(1 << 30)
			s.postSend(2, "queued", 0)
			bad := append([]byte(nil), good...)
			bad[bit/8] ^= 0x80 >> (bit % 8)
			s.input(bad, whole)
			want := "2002"
			e, _ := s.err.(*core.Error)
			if e == nil {
				t.Fatalf("%s: bit %d wrong: nothing noticed: %s", name, bit, s.statuses())
			}
			// another opcode may have a header that does not fit into the FPDU
			if bit/8 == 3 && termOf(e) == "2003" {
				want = "2003"
			}
			if termOf(e) != want || !e.Sent {
				t.Errorf("%s: bit %d wrong: %v: want %s", name, bit, e, want)
			}
			for _, wc := range s.done {
				if wc.Status == 0 {
					t.Errorf("%s: bit %d wrong: %s", name, bit, s.statuses())
				}
			}
			peer.input(s.take(1<<30), whole)
			wantTerminated(t, peer, want)
		}
	}
}

// TestCRCNotInUse: if no CRC was negotiated, the CRC field is ignored (as siw does).
func TestCRCNotInUse(t *testing.T) {
	_, b := connect(t, core.Config{}, core.Config{})
	b.postRecv(1, 10)
	in := send(1, "abc")
	for i := range 4 {
		in[len(in)-1-i] = 0xa5
	}
	b.c.Input(t0, in)
	b.wantDone("CRC off", "r1:success/3")
}

// TestTerminateBeforeFullOperation: an initiator that asked for CRC has it in the Terminate for a
// bad Reply too (RFC 5044 section 7.1: either side's C turns it on).
func TestTerminateBeforeFullOperation(t *testing.T) {
	s := newSide(t, "initiator", core.Config{Initiator: true, CRC: true})
	s.c.BeginSetup(t0)
	s.take(1 << 30)
	s.fresh()
	s.c.Input(t0, []byte("SSH-2.0-OpenSSH_9.2 and more"))
	s.take(1 << 30)
	f, _, err := wire.ConsumeFPDU(s.fresh())
	if err != nil || f.CRC != f.Checksum() || f.CRC == 0 {
		t.Errorf("CRC %#x of the Terminate, want %#x (%v)", f.CRC, f.Checksum(), err)
	}
}
