package core_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/rdmactor/rdmactor/internal/iwarp/core"
	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// readv reads b once as the owner of a socket does, and returns how much of b it took.
func (s *side) readv(b []byte) int {
	stage := make([]byte, 100)
	landings := s.c.Landings(make([][]byte, 0, 16), stage)
	if len(landings) == 0 {
		s.input(b, whole)
		return len(b)
	}
	n := 0
	for _, p := range landings {
		n += copy(p, b[n:])
	}
	s.c.Landed(s.now, landings, n, make([]byte, core.SpillLen))
	return n
}

// TestLandings checks the memory offered for a large payload in the middle of its message.
func TestLandings(t *testing.T) {
	_, b := connect(t, core.Config{}, core.Config{})
	const seg = 20000
	mr := b.postRecv(1, 3*seg+100)
	first := fpdu(wire.Header{Opcode: wire.OpSend, MSN: 1}, pattern(seg)...)
	if b.c.Landings(nil, nil) != nil {
		t.Error("landings before any header")
	}
	b.c.Input(t0, first[:30])
	got := b.c.Landings(make([][]byte, 0, 16), make([]byte, 200))
	// 10 bytes of the first segment are here. Behind it: its CRC, the next one's length and header.
	want := [][]byte{mr.Bytes[10:seg], make([]byte, 4+20), mr.Bytes[seg : 2*seg], make([]byte, 4+20), mr.Bytes[2*seg : 3*seg], make([]byte, 200-2*24)}
	if len(got) != len(want) {
		t.Fatalf("%d landings, want %d: three segments fit the receive, the 100 bytes behind them are not large", len(got), len(want))
	}
	for i := range got {
		if len(got[i]) != len(want[i]) || i%2 == 0 && &got[i][0] != &want[i][0] {
			t.Errorf("landing %d: %d bytes, want %d of the receive", i, len(got[i]), len(want[i]))
		}
	}
	if n := len(b.c.Landings(make([][]byte, 0, 4), make([]byte, 200))); n != 4 {
		t.Errorf("%d landings in a list with room for 4", n)
	}
	if got := b.c.Landings(nil, make([]byte, 200)); len(got) != 2 {
		t.Errorf("%d landings in a list without room, want the payload and the stage", len(got))
	}
	b.c.Input(t0, first[30:len(first)-4-core.LandingMin+1])
	if b.c.Landings(nil, nil) != nil {
		t.Error("landings for less than LandingMin")
	}
	// The owner learns how many bytes to read in one call, rather than a header's length at a time.
	if got := b.c.Rest(); got != core.LandingMin-1 {
		t.Errorf("%d bytes are to come, want %d", got, core.LandingMin-1)
	}
	b.c.Input(t0, first[len(first)-4-core.LandingMin+1:len(first)-4])
	if got := b.c.Rest(); got != 0 {
		t.Errorf("%d bytes are to come of a payload that is here", got)
	}
}

// TestWriteIsNotForeseen: only the peer knows the length of a Write. So no bytes are read into its
// target beyond its end.
func TestWriteIsNotForeseen(t *testing.T) {
	r := connectMemory(t, 100000, core.Config{}, core.Config{})
	in := framed(writeSeg(r.far.RKey, r.far.Addr, false, 20000), false)
	r.b.c.Input(t0, in[:100])
	if got := r.b.c.Landings(make([][]byte, 0, 16), make([]byte, 200)); len(got) != 2 {
		t.Errorf("%d landings for a Write that goes on, want the segment's payload and the stage", len(got))
	}
}

// TestWriteInTheMiddle: the next segment was expected to belong to a Send, but it belongs to a
// Write of the same size with another destination.
func TestWriteInTheMiddle(t *testing.T) {
	const n = 20000
	r := connectMemory(t, n, core.Config{}, core.Config{})
	mr := r.b.postRecv(1, 3*n)
	stream := fpdu(wire.Header{Opcode: wire.OpSend, MSN: 1}, pattern(n)...)
	write := bytes.Repeat([]byte("w"), n)
	stream = append(stream, fpdu(wire.Header{Tagged: true, Last: true, STag: r.far.RKey, TO: r.far.Addr}, write...)...)
	stream = append(stream, fpdu(wire.Header{Last: true, Opcode: wire.OpSend, MSN: 1, MO: n}, pattern(n)...)...)
	r.b.c.Input(t0, stream[:100])
	for stream = stream[100:]; len(stream) > 0; {
		stream = stream[r.b.readv(stream):]
	}
	r.b.wantDone("around a Write", fmt.Sprintf("r1:success/%d", 2*n))
	if !bytes.Equal(r.far.Bytes, write) {
		t.Error("the Write did not reach its target")
	}
	if !bytes.Equal(mr.Bytes[:2*n], append(pattern(n), pattern(n)...)) {
		t.Error("the Send around it is wrong")
	}
}

// TestLongerSegment: the next segment is longer than expected. So the bytes that were expected to
// be a header are payload, and everything behind them is shifted.
func TestLongerSegment(t *testing.T) {
	for _, crc := range []bool{false, true} {
		_, b := connect(t, core.Config{CRC: crc}, core.Config{})
		frame := fpdu
		if crc {
			frame = fpduCRC
		}
		msg := pattern(100000)
		mr := b.postRecv(1, len(msg))
		var stream []byte
		off := 0
		for _, n := range []int{20000, 40000, 40000} {
			h := wire.Header{Last: off+n == len(msg), Opcode: wire.OpSend, MSN: 1, MO: uint32(off)}
			stream = append(stream, frame(h, msg[off:off+n]...)...)
			off += n
		}
		b.c.Input(t0, stream[:100])
		for stream = stream[100:]; len(stream) > 0; {
			stream = stream[b.readv(stream):]
		}
		b.wantDone("segments that grow", fmt.Sprintf("r1:success/%d", len(msg)))
		if !bytes.Equal(mr.Bytes, msg) {
			t.Errorf("CRC %t: the message arrived wrong", crc)
		}
	}
}

// TestLandingsBetweenSegments: if a peer's segments are as large as TCP's, a read ends between two
// of them. The destination of the next payload is predicted there too, and its header is read with
// it.
func TestLandingsBetweenSegments(t *testing.T) {
	_, b := connect(t, core.Config{}, core.Config{})
	const seg = 20000
	mr := b.postRecv(1, 3*seg+100)
	b.c.Input(t0, fpdu(wire.Header{Opcode: wire.OpSend, MSN: 1}, pattern(seg)...))
	got := b.c.Landings(make([][]byte, 0, 16), make([]byte, 200))
	want := [][]byte{nil, make([]byte, 20), mr.Bytes[seg : 2*seg], make([]byte, 4+20), mr.Bytes[2*seg : 3*seg], make([]byte, 200-20-24)}
	if len(got) != len(want) {
		t.Fatalf("%d landings, want %d: two more segments fit the receive", len(got), len(want))
	}
	for i := range got {
		if len(got[i]) != len(want[i]) || i > 0 && i%2 == 0 && &got[i][0] != &want[i][0] {
			t.Errorf("landing %d: %d bytes, want %d of the receive", i, len(got[i]), len(want[i]))
		}
	}
	b.c.Input(t0, fpdu(wire.Header{Opcode: wire.OpSend, MSN: 1, MO: seg}, pattern(seg)...)[:1])
	if b.c.Landings(nil, make([]byte, 200)) != nil {
		t.Error("landings in the middle of a header")
	}
}

// TestFreedBetweenSegments: nothing is read into memory that was freed.
func TestFreedBetweenSegments(t *testing.T) {
	r := connectMemory(t, 20000, core.Config{}, core.Config{})
	mr := r.b.postRecv(1, 60000)
	r.b.c.Input(t0, fpdu(wire.Header{Opcode: wire.OpSend, MSN: 1}, pattern(20000)...))
	mr.PD = &domain{}
	if r.b.c.Landings(nil, make([]byte, 200)) != nil {
		t.Error("landings in freed memory")
	}
}

// TestBulk: after the small last segment of a large message the next message is still read directly
// into its destination. After a small message it is not.
func TestBulk(t *testing.T) {
	_, b := connect(t, core.Config{}, core.Config{})
	const seg = 20000
	for msn := range uint32(2) {
		b.postRecv(uint64(msn), 3*seg)
		b.c.Input(t0, fpdu(wire.Header{Opcode: wire.OpSend, MSN: msn + 1}, pattern(seg)...))
		b.c.Input(t0, fpdu(wire.Header{Last: true, Opcode: wire.OpSend, MSN: msn + 1, MO: seg}, pattern(100)...))
		if !b.c.Bulk() {
			t.Errorf("no bulk behind message %d of %d bytes", msn, seg+100)
		}
	}
	b.postRecv(2, 100)
	b.c.Input(t0, fpdu(wire.Header{Last: true, Opcode: wire.OpSend, MSN: 3}, pattern(100)...))
	if b.c.Bulk() {
		t.Error("bulk behind a small message")
	}
}

// TestReadsAtBoundaries reads as TestReads does, but each read ends where a segment does.
func TestReadsAtBoundaries(t *testing.T) {
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		r := connectMemory(t, 70000, core.Config{}, core.Config{})
		msg := make([]byte, rnd.IntN(400000))
		for i := range msg {
			msg[i] = byte(rnd.Uint32())
		}
		mr := r.b.postRecv(1, len(msg)+rnd.IntN(100000))
		keep := 16000 + rnd.IntN(49000)
		for off := 0; ; {
			n := keep
			if seed%2 == 1 && rnd.IntN(3) == 0 {
				n = rnd.IntN(65000)
			}
			n = min(n, len(msg)-off)
			h := wire.Header{Last: off+n == len(msg), Opcode: wire.OpSend, MSN: 1, MO: uint32(off)}
			stream := fpdu(h, msg[off:off+n]...)
			if seed%4 >= 2 && rnd.IntN(4) == 0 { // not at all as foreseen
				w := wire.Header{Tagged: true, Last: true, STag: r.far.RKey, TO: r.far.Addr}
				stream = append(fpdu(w, bytes.Repeat([]byte{1}, rnd.IntN(65000))...), stream...)
			}
			for len(stream) > 0 {
				stream = stream[r.b.readv(stream):]
			}
			if off += n; h.Last {
				break
			}
		}
		r.b.wantDone("at boundaries", fmt.Sprintf("r1:success/%d", len(msg)))
		if !bytes.Equal(mr.Bytes[:len(msg)], msg) {
			t.Errorf("seed %d: the message of %d bytes arrived wrong", seed, len(msg))
		}
	}
}

// TestReads reads streams of messages of all sizes, in segments of equal or changing sizes, with
// reads of all lengths. Whether the predictions were right or wrong, every message arrives as it
// was sent.
func TestReads(t *testing.T) {
	for seed := range uint64(200) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			crc := seed%2 == 1
			_, b := connect(t, core.Config{CRC: crc}, core.Config{})
			var stream []byte
			var receives []*verbs.MR
			var want [][]byte
			for msn := range uint32(4) {
				size := rnd.IntN(250000)
				msg := make([]byte, size)
				for i := range msg {
					msg[i] = byte(rnd.Uint32())
				}
				want = append(want, msg)
				receives = append(receives, b.postRecv(uint64(msn), size+rnd.IntN(100000)))
				keep := 16000 + rnd.IntN(49000)
				for off := 0; ; {
					n := keep
					if seed%4 >= 2 && rnd.IntN(3) == 0 {
						n = rnd.IntN(65000) // not as foreseen
					}
					n = min(n, size-off)
					h := wire.Header{Last: off+n == size, Opcode: wire.OpSend, MSN: msn + 1, MO: uint32(off)}
					frame := fpdu
					if crc {
						frame = fpduCRC
					}
					stream = append(stream, frame(h, msg[off:off+n]...)...)
					if off += n; h.Last {
						break
					}
				}
			}
			b.onComplete = func(wc completion) {
				if !bytes.Equal(receives[wc.ID].Bytes[:wc.Bytes], want[wc.ID]) {
					t.Errorf("message %d of %d bytes arrived wrong", wc.ID, len(want[wc.ID]))
				}
				clear(receives[wc.ID].Bytes) // its owner uses it again
			}
			for len(stream) > 0 {
				stream = stream[b.readv(stream[:min(len(stream), 1+rnd.IntN(400000))]):]
			}
			if len(b.done) != 4 || b.closed > 0 {
				t.Errorf("%d of 4 messages, %v", len(b.done), b.err)
			}
		})
	}
}

// TestReadLands: the answer to a Read of many segments lands in its sink, up to its end and not
// further.
func TestReadLands(t *testing.T) {
	for _, crc := range []bool{false, true} {
		for cut := range 50 {
			r := connectMemory(t, 200000, core.Config{CRC: crc}, core.Config{})
			copy(r.far.Bytes, pattern(200000))
			sge := verbs.SGE{MR: r.near, Offset: 1000, Length: 150000}
			wr := verbs.SendWR{ID: 1, Op: verbs.Read, Flags: verbs.Signaled, SGL: []verbs.SGE{sge}, RemoteAddr: r.far.Addr + 7, RKey: r.far.RKey}
			if err := r.a.c.PostSend(&wr); err != nil {
				t.Fatal(err)
			}
			r.b.input(r.a.take(1<<30), whole)
			stream := r.b.take(1 << 30)
			for len(stream) > 0 {
				stream = stream[r.a.readv(stream[:min(len(stream), 100+cut*3971)]):]
			}
			r.a.wantDone("Read", "s1:success/150000")
			if !bytes.Equal(r.near.Bytes[1000:151000], r.far.Bytes[7:150007]) {
				t.Fatal("the Read brought something else")
			}
			if !bytes.Equal(r.near.Bytes[151000:], make([]byte, 49000)) || !bytes.Equal(r.near.Bytes[:1000], make([]byte, 1000)) {
				t.Fatal("bytes beside the sink were touched")
			}
		}
	}
}
