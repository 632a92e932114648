package core_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/rdmactor/rdmactor/internal/iwarp/core"
	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
)

// boundaries returns where the frames and FPDUs of a stream begin, and its length.
func boundaries(t *testing.T, b []byte) (at []int) {
	t.Helper()
	_, n, err := wire.ConsumeFrame(b)
	if err != nil {
		t.Fatal(err)
	}
	at = []int{0, n}
	for end := n; end < len(b); end += n {
		if _, n, err = wire.ConsumeFPDU(b[end:]); err != nil {
			t.Fatal(err)
		}
		at = append(at, end+n)
	}
	return at
}

// check compares a position with the stream, of which off bytes are behind it.
func check(t *testing.T, why string, got core.Position, stream []byte, at []int, off int) {
	t.Helper()
	begin, end := 0, 0
	for _, a := range at {
		if begin, end = end, a; end > off {
			break
		}
	}
	if off == end { // all of it
		begin = end
	}
	switch {
	case got.Rest == 0 && len(got.Head) == 0 && off == begin:
	case got.Rest == 0 && len(got.Head) > 0 && bytes.Equal(got.Head, stream[begin:off]):
	case got.Rest > 0 && got.Head == nil && off > begin && off+got.Rest == end:
	default:
		t.Fatalf("%s: %d bytes are in, what is there begins at %d and ends at %d: got %+v", why, off, begin, end, got)
	}
}

// TestInputPosition: wherever a peer's stream is cut, the position is known.
func TestInputPosition(t *testing.T) {
	for _, name := range names(t) {
		if malformedRequest[name] {
			continue
		}
		c := load(t, name)
		at := boundaries(t, c.Initiator)
		for step := range 40 {
			s := newSide(t, name, core.Config{})
			s.onRequest = func(core.Request) {
				if err := s.c.Accept(s.now, nil, 4, 4); err != nil {
					t.Fatal(err)
				}
			}
			for i := range 20 {
				s.postRecv(uint64(i), 1<<16)
			}
			s.c.BeginSetup(t0)
			for off := 0; s.closed == 0; {
				check(t, fmt.Sprint(name, " step ", step), s.c.InputPosition(), c.Initiator, at, off)
				s.take(1 << 20)
				k := min(1+step*step, len(c.Initiator)-off)
				if off < at[1] {
					k = min(k, at[1]-off) // what follows a Request directly ends the connection
				}
				if k == 0 {
					break
				}
				s.c.Input(s.now, c.Initiator[off:off+k])
				off += k
			}
			if s.closed > 0 && s.c.InputPosition().Rest != -1 {
				t.Errorf("%s: it has ended with the position %+v", name, s.c.InputPosition())
			}
		}
	}
}

// TestInputPositionWaiting: bytes kept behind a message that waits count as read.
func TestInputPositionWaiting(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 2))
		q := &patient{}
		_, b := connect(t, core.Config{}, core.Config{Queues: core.Queues{SRQ: q}})
		stream, at := []byte{}, []int{0}
		for i := range 8 {
			body := make([]byte, rng.IntN(16))
			stream = append(stream, send(uint32(i+1), string(body))...)
			at = append(at, len(stream))
		}
		for off := 0; off < len(stream); {
			k := min(1+rng.IntN(150), len(stream)-off)
			if !b.c.Waiting() {
				b.c.Input(b.now, stream[off:off+k])
				off += k
			}
			check(t, fmt.Sprint("seed ", seed), b.c.InputPosition(), stream, at, off)
			if rng.IntN(2) == 0 {
				q.post(1)
				b.c.Resume(b.now)
				check(t, fmt.Sprint("seed ", seed, ", resumed"), b.c.InputPosition(), stream, at, off)
			}
		}
		if b.c.Waiting() {
			b.c.Disconnect(b.now)
			b.c.Keep()
			if p := b.c.InputPosition(); p.Rest != -1 {
				t.Errorf("seed %d: what comes is thrown away, and the position is %+v", seed, p)
			}
		}
	}
}

// TestOutputPosition: however much a socket takes at a time, the position is known.
func TestOutputPosition(t *testing.T) {
	for _, crc := range []bool{false, true} {
		for step := 1; step < 2000; step += 37 {
			a, _ := connect(t, core.Config{CRC: crc}, core.Config{})
			for i := range 20 {
				a.postSend(uint64(i), string(pattern(i*i*20)), 0)
			}
			a.c.SetMaxSegment(1000)
			type place struct{ off, rest int }
			var places []place
			a.out = nil
			for a.c.Pending() {
				a.iov = a.c.Gather(a.iov[:0]) // the position is that of the gathered bytes
				p := a.c.OutputPosition()
				if len(p.Head) > 0 {
					t.Fatalf("output with the head %x", p.Head)
				}
				places = append(places, place{len(a.out), p.Rest})
				a.write(step)
			}
			ends := map[int]bool{0: true}
			for off := 0; off < len(a.out); {
				_, n, err := wire.ConsumeFPDU(a.out[off:])
				if err != nil {
					t.Fatal(err)
				}
				off += n
				ends[off] = true
			}
			for _, p := range places {
				if !ends[p.off+p.rest] || ends[p.off] != (p.rest == 0) {
					t.Fatalf("CRC %t, %d bytes at a time: at %d there are %d bytes to the next FPDU", crc, step, p.off, p.rest)
				}
			}
		}
	}
	a := newSide(t, "initiator", core.Config{Initiator: true})
	a.c.BeginSetup(t0)
	a.c.Gather(nil)
	a.c.Advance(t0, 5)
	if p := a.c.OutputPosition(); p.Rest != wire.FrameLen+wire.ControlLen-5 {
		t.Errorf("in the middle of a Request the position is %+v", p)
	}
}
