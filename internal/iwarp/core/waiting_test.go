package core_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/iwarp/core"
	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// patient is a shared receive queue whose owner posts when he can.
type patient struct{ srq }

func (q *patient) WaitsIfEmpty() bool { return true }

func (q *patient) post(ids ...int) {
	for _, id := range ids {
		q.srq = append(q.srq, verbs.RecvWR{ID: uint64(id), SGE: verbs.SGE{MR: region(16), Length: 16}})
	}
}

// TestWaitForReceive: messages wait for receives in order, however the stream is cut into pieces.
// No deadline applies while one waits.
func TestWaitForReceive(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		q := &patient{}
		_, b := connect(t, core.Config{CRC: seed%2 == 0}, core.Config{MessageTimeout: time.Second, Queues: core.Queues{SRQ: q}})
		frame := fpdu
		if seed%2 == 0 {
			frame = fpduCRC
		}
		var stream []byte
		want := ""
		for i := range 20 {
			body := make([]byte, rng.IntN(16))
			stream = append(stream, frame(wire.Header{Last: true, Opcode: wire.OpSend, MSN: uint32(i + 1)}, body...)...)
			want += fmt.Sprintf(" r%d:success/%d", i, len(body))
		}
		for n := 0; n < 20; {
			if b.c.Waiting() {
				b.at(time.Duration(n+1) * time.Hour)
				b.c.Timeout(b.now)
				if len(q.srq) > 0 || b.closed > 0 {
					t.Fatalf("seed %d: waits with %d receives, ended: %v", seed, len(q.srq), b.err)
				}
				if rng.IntN(2) == 0 {
					b.c.Resume(b.now)
				}
				k := min(1+rng.IntN(3), 20-n)
				for range k {
					q.post(n)
					n++
				}
				b.c.Resume(b.now)
				continue
			}
			k := min(1+rng.IntN(100), len(stream))
			b.input(stream[:k], whole)
			stream = stream[k:]
		}
		b.c.Input(b.now, stream)
		b.wantDone(fmt.Sprint("seed ", seed), want[1:])
		if b.c.Kept() > 0 || b.c.Waiting() {
			t.Errorf("seed %d: %d bytes are kept of nothing", seed, b.c.Kept())
		}
		b.at(1000 * time.Hour)
		b.c.Timeout(b.now)
		if b.closed > 0 {
			t.Errorf("seed %d: ended by %v", seed, b.err)
		}
	}
}

// TestPause: a message that has begun is finished. The next one waits although there is a receive.
// Reads and Writes go on.
func TestPause(t *testing.T) {
	q := &patient{}
	q.post(1, 2)
	_, b := connect(t, core.Config{}, core.Config{Queues: core.Queues{SRQ: q}})
	first := send(1, "first")
	b.c.Input(t0, first[:21])
	b.c.Pause(true)
	b.c.Input(t0, first[21:])
	b.wantDone("what had begun", "r1:success/5")
	b.c.Input(t0, append(fpdu(wire.Header{Tagged: true, Last: true, Opcode: wire.OpWrite, STag: 7}), send(2, "second")...))
	if !b.c.Waiting() || len(q.srq) != 1 {
		t.Fatal("the next message does not wait")
	}
	b.c.Resume(t0)
	if !b.c.Waiting() {
		t.Fatal("resumed while it is paused")
	}
	b.c.Pause(false)
	b.c.Resume(t0)
	b.wantDone("resumed", "r2:success/6")
}

// TestEndWhileWaiting: however a waiting connection ends, nothing further is delivered, and the end
// is reported.
func TestEndWhileWaiting(t *testing.T) {
	waiting := func() *side {
		q := &patient{}
		_, b := connect(t, core.Config{}, core.Config{Queues: core.Queues{SRQ: q}})
		b.input(append(send(1, "one"), send(2, "two")...), whole)
		if !b.c.Waiting() || b.c.Kept() == 0 {
			t.Fatal("it does not wait")
		}
		q.post(1) // an ended connection does not take it, because it would never complete
		t.Cleanup(func() {
			if b.c.Resume(t0); len(q.srq) != 1 {
				t.Error("an ended connection has taken a receive")
			}
		})
		return b
	}
	b := waiting()
	b.c.InputEnd(t0, unix.ECONNRESET)
	wantErrno(t, "a broken socket", b.err, unix.ECONNRESET)
	b = waiting()
	b.c.Abort(t0)
	wantErrno(t, "aborted", b.err, unix.ECONNABORTED)
	if b.c.Waiting() || b.c.Kept() > 0 {
		t.Error("what has ended waits")
	}
	b = waiting()
	b.c.Disconnect(t0)
	b.c.Keep()
	if b.c.Waiting() {
		t.Error("what we have disconnected is not read: the peer's FIN would not be seen")
	}
	b.c.Input(t0, send(3, "nobody takes it"))
	b.c.InputEnd(t0, nil)
	if b.closed != 1 || b.err != nil || len(b.done) > 0 {
		t.Errorf("disconnected: closed %d times, %v, %v", b.closed, b.err, b.done)
	}
}

// TestInputReturns: between Input and Resume the Conn can be used as at any other time, and bytes
// read behind the waiting message are processed in place.
func TestInputReturns(t *testing.T) {
	q := &patient{}
	_, b := connect(t, core.Config{}, core.Config{Queues: core.Queues{SRQ: q}})
	got := append(send(1, "one"), send(2, "two")...)
	b.c.Input(t0, got)
	if !b.c.Waiting() || b.c.Kept() > 0 {
		t.Fatalf("waits: %v, with a copy of %d bytes", b.c.Waiting(), b.c.Kept())
	}
	b.postSend(9, "meanwhile", 0)
	b.take(1 << 30)
	q.post(1)
	b.c.Resume(t0)
	b.wantDone("one receive", "s9:success/9 r1:success/3")
	if !b.c.Waiting() {
		t.Fatal("the second message does not wait")
	}
	b.c.Pause(true)
	q.post(2)
	b.c.Resume(t0)
	b.wantDone("paused", "")
	b.c.Pause(false)
	if n := testing.AllocsPerRun(1, func() { b.c.Resume(t0) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
	b.wantDone("goes on", "r2:success/3")
}
