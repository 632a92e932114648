package core

import (
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// The two sides of a set-up agree on limits, CRC and the ready-to-receive message by their frames
// alone, in pieces of any size.
func TestSetupAgreesWithoutConn(t *testing.T) {
	for _, size := range []int{1, 7, 500} {
		asks := setup{initiator: true, revision: 2, peerToPeer: true, crc: true, ird: 3, ord: 9, private: []byte("hello")}
		answers := setup{}
		frame := func(s *setup, b []byte) *wire.Frame {
			for {
				_, f, done, err := s.consume(b[:min(size, len(b))])
				if err != nil {
					t.Fatal(err)
				}
				if b = b[min(size, len(b)):]; done {
					return &f
				}
			}
		}
		r, _, e := answers.judgeRequest(frame(&answers, asks.request()), nil)
		if e != nil || string(r.PrivateData) != "hello" || !answers.awaitsRTR() {
			t.Fatalf("in pieces of %d: Request %+v, %v", size, r, e)
		}
		reply, theirs := answers.accept([]byte("welcome"), 5, 4)
		ours, private, e := asks.judgeReply(frame(&asks, reply), nil)
		if e != nil || string(private) != "welcome" {
			t.Fatalf("in pieces of %d: Reply %q, %v", size, private, e)
		}
		// of 9 and 4 wanted Reads, 5 and 3 are served
		want := terms{ird: 3, ord: 5, crc: true, rtr: ctlWrite}
		if ours != want || theirs != (terms{ird: 5, ord: 3, crc: true}) {
			t.Errorf("in pieces of %d: initiator %+v, responder %+v, want %+v", size, ours, theirs, want)
		}
	}
}

// A Request that is right costs its judgement no memory.
func TestRequestJudgedWithoutMemory(t *testing.T) {
	asks, answers := setup{initiator: true, revision: 2, private: []byte("hello")}, setup{}
	_, f, _, err := answers.consume(asks.request())
	if n := testing.AllocsPerRun(10, func() { answers.judgeRequest(&f, err) }); n != 0 || err != nil {
		t.Errorf("%v allocations, %v", n, err)
	}
}

// A Read waits for a free place at the peer, a fenced work request for all Reads, and those behind
// it wait too.
func TestSendQueueWaitsForReads(t *testing.T) {
	q := sendQueue{limit: 8, keep: -1, reads: outboundReads{ord: 1}}
	for i, op := range []verbs.Opcode{verbs.Read, verbs.Send, verbs.Read, verbs.Send} {
		wr := verbs.SendWR{ID: uint64(i), Op: op}
		if i == 3 {
			wr.Flags = verbs.Fence
		}
		if err := q.post(&wr, 0); err != nil {
			t.Fatal(err)
		}
	}
	out := output{maxSegment: MaxSegment, batch: (*Pool)(nil).get(0, true)}
	st := stream{sends: q}
	var none ctl
	stage := func(want int) {
		t.Helper()
		n := 0
		for st.stageNext(&out, &none) {
			n++
		}
		if n != want {
			t.Errorf("%d work requests were staged, want %d: next is %d", n, want, st.sends.next)
		}
	}
	answered := &segment{h: wire.Header{Opcode: wire.OpReadResponse, Last: true}}
	stage(2) // the second Read waits for the first
	st.sends.deliverResponse(answered, 0, nil)
	stage(1) // the fenced Send waits for the second Read
	st.sends.deliverResponse(answered, 0, nil)
	stage(1)
}

// An initiator kicks 2, 20 and 200 ms after its first FPDU, until the peer's first FPDU.
func TestPacingKicks(t *testing.T) {
	start := time.Unix(0, 0).Add(time.Hour)
	for heard := range 4 {
		var p pacing
		p.armKick(start)
		var at []time.Duration
		for len(at) < heard || heard == 3 && !p.at.IsZero() {
			now := p.at
			p.timeout(now)
			if p.due == ctlWrite {
				at = append(at, now.Sub(start))
			}
			p.due = 0
		}
		p.noteFPDU()
		p.armKick(start)
		for i, want := range []time.Duration{2 * time.Millisecond, 20 * time.Millisecond, 200 * time.Millisecond}[:heard] {
			if at[i] != want {
				t.Errorf("kick %d after %v, want %v", i, at[i], want)
			}
		}
		if len(at) != heard || !p.at.IsZero() {
			t.Errorf("%d kicks, the next at %v: want %d and none", len(at), p.at, heard)
		}
	}
}
