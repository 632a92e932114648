package core_test

import (
	"bytes"
	"testing"

	"github.com/rdmactor/rdmactor/internal/iwarp/core"
	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// TestDisconnectWithReads: the answer to a Read that Disconnect has flushed may already be under
// way. That is not an error of the peer, and the end is orderly on both sides.
func TestDisconnectWithReads(t *testing.T) {
	for _, n := range []int{0, 10} {
		r := connectMemory(t, 100, core.Config{}, core.Config{})
		r.a.postRecv(5, 10)
		r.a.post(r.wr(1, verbs.Read, 0, 0, n))
		r.ask()
		r.b.postSend(2, "crossing", 0)
		r.a.c.Disconnect(r.a.now)
		r.a.wantDone("the Read", "s1:work request flushed/0")
		r.answer()
		r.a.wantDone("what the peer sent before it saw our FIN", "r5:success/8")
		move(r.a, r.b, 1<<30, whole)
		for _, s := range []*side{r.a, r.b} {
			if s.closed != 1 || s.err != nil {
				t.Errorf("%d bytes: %s: closed %d, %v: want an orderly end", n, s.name, s.closed, s.err)
			}
		}
		if !bytes.Equal(r.near.Bytes, make([]byte, 100)) {
			t.Errorf("%d bytes: memory of a flushed Read was written: it is the owner's again", n)
		}
	}
}

// TestDisconnectInAnAnswer: a Read Response that has begun is finished, although it is behind one
// of our Reads that Disconnect flushes. A further Read Response that has not begun is not sent.
func TestDisconnectInAnAnswer(t *testing.T) {
	for _, half := range []int{1, 10, 500, 1000} {
		r := connectMemory(t, 2000, core.Config{MaxSegment: 1000}, core.Config{})
		r.a.post(r.wr(1, verbs.Read, 0, 0, 10))
		r.ask()
		for msn := range uint32(2) {
			head := readHead
			head.MSN += msn
			r.a.c.Input(t0, framed(readSeg(head, wire.ReadRequest{
				SinkSTag: r.far.RKey, SinkTO: r.far.Addr, Size: 2000, SourceSTag: r.near.RKey, SourceTO: r.near.Addr,
			}), false))
		}
		r.a.write(half)
		r.a.c.Disconnect(r.a.now)
		r.a.take(1 << 30)
		wantOps(t, "the message that had begun", opcodes(t, r.a.fresh()), wire.OpReadResponse, wire.OpReadResponse)
		r.a.wantClose("it is all out", true, false)
		r.a.wantDone("the Read", "s1:work request flushed/0")
	}
}

// TestDisconnectInAnAnswerToUs: Disconnect flushes a Read whose answer has partly arrived, at any
// point of the answer. The memory belongs to the owner again and is no longer written. The end is
// orderly. But a second answer is an error.
func TestDisconnectInAnAnswerToUs(t *testing.T) {
	for _, crc := range []bool{false, true} {
		for _, cut := range []int{1, 10, 100, 1020, 1024, 1030, 1500, 2039} {
			r := connectMemory(t, 2000, core.Config{CRC: crc}, core.Config{MaxSegment: 1000})
			r.a.post(r.wr(1, verbs.Read, 0, 0, 2000))
			r.ask()
			answer := append(r.bSays(t), framed(sendSeg(wire.Header{Last: true, MSN: 1}, "behind"), crc)...)
			r.a.postRecv(2, 10)
			r.a.c.Input(t0, answer[:cut])
			r.a.c.Disconnect(t0)
			r.a.wantDone("the Read", "s1:work request flushed/0")
			was := bytes.Clone(r.near.Bytes)
			r.a.c.Input(t0, answer[cut:])
			r.a.wantDone("what came behind its answer", "r2:success/6")
			if !bytes.Equal(r.near.Bytes, was) {
				t.Errorf("CRC %t, %d bytes: memory was written behind the flush", crc, cut)
			}
			if cut%2 == 0 {
				r.a.c.InputEnd(t0, nil)
				if r.a.closed != 1 || r.a.err != nil {
					t.Errorf("CRC %t, %d bytes: closed %d, %v: want an orderly end", crc, cut, r.a.closed, r.a.err)
				}
				continue
			}
			r.a.c.Input(t0, framed(responseSeg(0, 0, true, 0), crc))
			if e, _ := r.a.err.(*core.Error); e == nil || termOf(e) != "1000" || e.Sent {
				t.Errorf("CRC %t, %d bytes: a second answer: %v: want 1000, not sent: our FIN is out", crc, cut, r.a.err)
			}
		}
	}
}

// TestDisconnectCutsARead: if the staged request of a Read is withdrawn, the Read gets no answer.
// So an answer that arrives nevertheless is an error.
func TestDisconnectCutsARead(t *testing.T) {
	r := connectMemory(t, 100, core.Config{}, core.Config{})
	r.a.postSend(1, "half out", 0)
	r.a.post(r.wr(2, verbs.Read, 0, 0, 10))
	r.a.write(10)
	r.a.c.Disconnect(r.a.now)
	r.a.c.Input(t0, fpdu(wire.Header{Tagged: true, Last: true, Opcode: wire.OpReadResponse, STag: r.near.LKey, TO: r.near.Addr}, make([]byte, 10)...))
	if e, _ := r.a.err.(*core.Error); e == nil || termOf(e) != "1000" {
		t.Errorf("%v: want the end that an unexpected Read Response makes", r.a.err)
	}
}
