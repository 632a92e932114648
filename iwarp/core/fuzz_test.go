package core_test

import (
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/iwarp/core"
	"github.com/rdmactor/rdmactor/verbs"
)

// FuzzInput feeds a peer's bytes, in pieces, to both roles with work posted: no panic, no upcall after Closed, every work request
// completed once, output that ends, and only the posted receives written to.
func FuzzInput(f *testing.F) {
	for _, name := range names(f) {
		c := load(f, name)
		// long seeds only keep the fuzzer busy minimizing
		f.Add(true, false, byte(11), c.Responder[:min(len(c.Responder), 2000)])
		f.Add(false, true, byte(200), c.Initiator[:min(len(c.Initiator), 2000)])
	}
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
		memory := region(4096)
		for i := range 8 {
			wr := verbs.RecvWR{ID: uint64(i), SGE: verbs.SGE{MR: memory, Offset: uint32(1 + i*500), Length: uint32(i * 60)}}
			if err := s.c.PostRecv(wr); err != nil {
				t.Fatal(err)
			}
		}
		s.c.Start(t0)
		for n := 0; len(b) > 0; n++ {
			k := min(len(b), 1+int(step))
			if n%2 == 0 {
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
			for off := 1 + i*500 + i*60; off < 1+(i+1)*500; off++ {
				if off < len(memory.Bytes) && memory.Bytes[off] != 0 {
					t.Fatalf("byte %d, behind receive %d, was written", off, i)
				}
			}
		}
	})
}
