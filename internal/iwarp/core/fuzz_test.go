package core_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/internal/iwarp/core"
	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// FuzzInput feeds a peer's bytes, in pieces, to both roles with work posted. There must be no panic
// and no upcall after Closed. Every work request completes once, the output ends, and only the
// posted receives are written to.
func FuzzInput(f *testing.F) {
	for _, name := range names(f) {
		c := load(f, name)
		// long seeds only keep the fuzzer busy minimizing
		f.Add(true, false, byte(11), c.Responder[:min(len(c.Responder), 2000)])
		f.Add(false, true, byte(200), c.Initiator[:min(len(c.Initiator), 2000)])
	}
	f.Add(false, false, byte(255), largeMessage())
	f.Fuzz(func(t *testing.T, initiator, crc bool, step byte, b []byte) {
		s := newSide(t, "fuzzed", core.Config{Initiator: initiator, CRC: crc, PeerToPeer: true, IRD: 4, ORD: 4})
		s.onRequest = func(core.Request) {
			if err := s.c.Accept(s.now, []byte("pd"), 4, 4); err != nil {
				t.Fatal(err)
			}
		}
		sends := 0
		s.onEstablished = func() {
			for ; sends < 3; sends++ {
				s.postSend(uint64(sends), string(pattern(sends*100)), 0)
			}
		}
		memory := region(9 * 60000)
		for i := range 8 {
			wr := verbs.RecvWR{ID: uint64(i), SGE: verbs.SGE{MR: memory, Offset: uint32(1 + i*60000), Length: uint32(i * 8000)}}
			if err := s.c.PostRecv(wr); err != nil {
				t.Fatal(err)
			}
		}
		s.c.BeginSetup(t0)
		for n := 0; len(b) > 0; n++ {
			k := 1 + int(step)
			switch _, frame, err := wire.ConsumeFrame(b); {
			case n == 0 && err == nil && !initiator:
				k = frame // bytes that follow a Request directly end the connection
			case n%4 == 2:
				k <<= 8 // several large segments in one Input
			}
			if k = min(k, len(b)); n%2 == 0 {
				b = b[s.readv(b[:k]):]
			} else {
				s.c.Input(s.now, b[:k])
				b = b[k:]
			}
			for turn := 0; s.c.Pending() && s.closed == 0; turn++ {
				if turn > 10000 || s.write(97) == 0 {
					t.Fatal("output does not end")
				}
			}
			s.now = s.now.Add(time.Millisecond)
			s.c.Timeout(s.now)
		}
		s.c.InputEnd(s.now, nil)
		if _, now := s.c.WantClose(); !now || s.closed != 1 || s.c.Pending() {
			t.Fatalf("after FIN: close %v, closed %d", now, s.closed)
		}
		if len(s.done) != 8+sends {
			t.Fatalf("%d work requests posted, %d completed: %s", 8+sends, len(s.done), s.statuses())
		}
		for i := range 8 {
			gap := memory.Bytes[1+i*60000+i*8000 : 1+(i+1)*60000]
			if bytes.IndexFunc(gap, func(r rune) bool { return r != 0 }) >= 0 {
				t.Fatalf("bytes behind receive %d were written", i)
			}
		}
	})
}

// largeMessage makes a Request, messages for small receives, and one in large segments that is
// too long for the last.
func largeMessage() []byte {
	b := frame(wire.Frame{Revision: 1})
	for msn := range uint32(7) {
		b = append(b, send(msn+1, "")...)
	}
	for i := range uint32(4) {
		h := wire.Header{Last: i == 3, Opcode: wire.OpSend, MSN: 8, MO: i * 16500}
		b = append(b, fpdu(h, bytes.Repeat([]byte("large"), 3300)...)...)
	}
	return b
}
