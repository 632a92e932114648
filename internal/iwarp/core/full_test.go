package core_test

import (
	"bytes"
	"math"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/iwarp/core"
	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// TestMoreThanABatch: more messages, of every size, are queued than one batch of FPDUs has room
// for, and a kick and Read Responses are due as well. Nothing is lost or overtaken.
func TestMoreThanABatch(t *testing.T) {
	for _, size := range []int{0, 100, 128, 129, 2000} {
		pool := &core.Pool{}
		a, b := connect(t, core.Config{Queues: core.Queues{SendWRs: 700, RecvWRs: 1}, Pool: pool, IRD: 64, MaxSegment: 700},
			core.Config{Queues: core.Queues{RecvWRs: 700, SendWRs: 1}})
		for i := range 700 {
			b.postRecv(uint64(i), size)
			a.postSend(uint64(i), string(pattern(size)), 0)
		}
		a.out = nil
		a.write(1) // the batch is full, and stays so
		for msn := uint32(1); msn <= 40; msn++ {
			a.c.Input(t0, fpdu(wire.Header{Last: true, Opcode: wire.OpReadRequest, QN: 1, MSN: msn},
				wire.AppendReadRequest(nil, &wire.ReadRequest{SinkSTag: msn})...))
		}
		a.take(1237)
		responses := 0
		for rest := a.out; len(rest) > 0; {
			p, n, err := wire.ConsumeFPDU(rest)
			if err != nil {
				t.Fatal(err)
			}
			h, _, err := wire.ConsumeHeader(p.ULPDU)
			if err != nil {
				t.Fatal(err)
			}
			if h.Opcode == wire.OpReadResponse {
				if responses++; h.STag != uint32(responses) {
					t.Errorf("Read Response %d to STag %d", responses, h.STag)
				}
			} else {
				b.c.Input(t0, rest[:n])
			}
			rest = rest[n:]
		}
		if len(a.done) != 700 || len(b.done) != 700 || responses != 40 || b.closed != 0 {
			t.Errorf("%d bytes: %d sent, %d received, %d Read Responses: %v", size, len(a.done), len(b.done), responses, b.err)
		}
		for i, wc := range b.done {
			if wc.ID != uint64(i) || int(wc.Bytes) != size {
				t.Fatalf("%d bytes: receive %d is %+v", size, i, wc)
			}
		}
	}
}

// TestKickInAFullBatch: a kick that is due while the batch is full is sent later.
func TestKickInAFullBatch(t *testing.T) {
	a, b := connect(t, core.Config{Queues: core.Queues{SendWRs: 700}}, core.Config{Queues: core.Queues{RecvWRs: 700}})
	for i := range 700 {
		b.postRecv(uint64(i), 100)
		a.postSend(uint64(i), string(pattern(100)), 0)
	}
	a.out = nil
	a.write(1)
	a.fire("kick", 2*time.Millisecond)
	a.take(500)
	b.c.Input(t0, a.out)
	if kick := fpdu(wire.Header{Tagged: true, Last: true, STag: 1}); bytes.Count(a.out, kick) != 1 || len(b.done) != 700 {
		t.Errorf("%d kicks, %d messages, %v", bytes.Count(a.out, kick), len(b.done), b.err)
	}
}

// TestEarlyReply: a bad Reply arrives before the whole Request was sent. The Terminate is sent
// after the rest of the Request.
func TestEarlyReply(t *testing.T) {
	s := newSide(t, "initiator", core.Config{Initiator: true})
	s.c.BeginSetup(t0)
	s.write(10)
	s.c.Input(t0, []byte("SSH-2.0"))
	s.take(1 << 30)
	if want := frame(wire.Frame{Revision: 2, Flags: wire.FlagEnhanced}); !bytes.HasPrefix(s.out, want) {
		t.Fatalf("%x: want the whole Request first", s.out)
	}
	wantTerminate(t, s, "behind the Request", s.out[24:], "20040000")
}

// TestOutOfTurn: calls that make no sense yet do nothing.
func TestOutOfTurn(t *testing.T) {
	s := newSide(t, "idle", core.Config{Initiator: true})
	s.c.Input(t0, []byte("MPA ID Rep Frame"))
	s.c.Advance(t0, 5)
	s.c.Timeout(t0.Add(time.Hour))
	s.quiet("before BeginSetup")
	s.c.BeginSetup(t0)
	s.take(1 << 30)
	s.c.BeginSetup(t0)
	s.quiet("a second BeginSetup")
	if s.closed != 0 {
		t.Error(s.err)
	}
}

// TestAbortInEstablished: a peer-to-peer responder aborts while that is reported; the message that
// came with it is not delivered.
func TestAbortInEstablished(t *testing.T) {
	s := newSide(t, "responder", core.Config{})
	s.postRecv(1, 1)
	s.onEstablished = func() { s.c.Abort(t0) }
	s.c.BeginSetup(t0)
	s.c.Input(t0, frame(wire.Frame{Revision: 2, Flags: wire.FlagEnhanced, Control: wire.Control{PeerToPeer: true, RTRWrite: true}}))
	if err := s.c.Accept(t0, nil, 1, 1); err != nil {
		t.Fatal(err)
	}
	s.take(1 << 30)
	s.c.Input(t0, send(1, "x"))
	s.wantDone("aborted", "r1:work request flushed/0")
	wantErrno(t, "aborted", s.err, unix.ECONNABORTED)
}

// TestMessageTooLong: 4 GiB and more do not fit MO.
func TestMessageTooLong(t *testing.T) {
	a, _ := connect(t, core.Config{}, core.Config{})
	mr := region((math.MaxUint32 + 1) / core.MaxSGE) // never touched
	wr := verbs.SendWR{SGL: make([]verbs.SGE, core.MaxSGE)}
	for i := range wr.SGL {
		wr.SGL[i] = verbs.SGE{MR: mr, Length: uint32(len(mr.Bytes))}
	}
	wantErrno(t, "4 GiB", a.c.PostSend(&wr), unix.EINVAL)
	wr.SGL[0].Length--
	if err := a.c.PostSend(&wr); err != nil {
		t.Errorf("4 GiB less one byte: %v", err)
	}
}

// TestSendWithInvalidate: the STag is where a Send has zeros (RFC 5040 section 5.3).
func TestSendWithInvalidate(t *testing.T) {
	a, _ := connect(t, core.Config{}, core.Config{})
	a.out = nil
	for _, fl := range []verbs.SendFlags{0, verbs.Solicited} {
		wr := verbs.SendWR{Op: verbs.SendWithInvalidate, Flags: fl, RKey: 0x01020304, Inline: []byte("x")}
		if err := a.c.PostSend(&wr); err != nil {
			t.Fatal(err)
		}
	}
	want := append(fpdu(wire.Header{Last: true, Opcode: wire.OpSendInvalidate, STag: 0x01020304, MSN: 1}, 'x'),
		fpdu(wire.Header{Last: true, Opcode: wire.OpSendSEInvalidate, STag: 0x01020304, MSN: 2}, 'x')...)
	if got := a.take(1 << 30); !bytes.Equal(got, want) {
		t.Errorf("%x, want %x", got, want)
	}
}
