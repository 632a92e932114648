package cmidtest

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// qpAttr is a queue pair's, on q's completion queue.
func qpAttr(q *rings) verbs.QPInitAttr {
	attr := verbs.QPInitAttr{MaxSendWR: 1, MaxRecvWR: 1}
	if q != nil {
		attr.SendCQ, attr.RecvCQ = q.cq, q.cq
	}
	return attr
}

// dataScenarios are what queue pairs do over a connection.
var dataScenarios = scenarios{
	"order": func(w *world) {
		c := w.connected(ringDepth)
		for i := range ringDepth {
			w.must(c.aq.postSend(i, fmt.Sprintf("message %d", i)))
		}
		w.until("all messages", func() bool { return len(c.bq.of(verbs.Recv)) == ringDepth && len(c.aq.of(verbs.Send)) == ringDepth })
		for i, wc := range c.bq.of(verbs.Recv) {
			want := fmt.Sprintf("message %d", i)
			if wc.ID != uint64(100+i) || wc.Status != verbs.StatusSuccess || string(c.bq.slot(i)[:wc.Bytes]) != want || wc.QP != c.bq.qp {
				w.Errorf("receive %d is %+v with %q, want %q", i, wc, c.bq.slot(i)[:wc.Bytes], want)
			}
		}
		for i, wc := range c.aq.of(verbs.Send) {
			if wc.ID != uint64(i) || wc.Status != verbs.StatusSuccess || wc.Op != verbs.Send {
				w.Errorf("send %d is %+v", i, wc)
			}
		}
		w.must(c.bq.postSend(0, "back"))
		w.until("the answer", func() bool { return len(c.aq.of(verbs.Recv)) == 1 })
	},
	"before established": func(w *world) {
		c, _ := w.requested(1, nil, nil)
		w.wantErr("post_send while connecting", c.aq.postSend(0, "early"), unix.EINVAL)
		c.bq = w.queues(c.passive, 1)
		w.wantErr("post_send before accept", c.bq.postSend(0, "early"), unix.EINVAL)
	},
	"first message right behind the reply": func(w *world) {
		c, _ := w.requested(0, nil, nil)
		c.bq = w.queues(c.passive, 1)
		w.must(c.passive.Accept(nil, nil))
		next[*cmid.Established](w.a, c.active)
		w.must(c.aq.postSend(0, "first"))
		w.until("it", func() bool { return len(c.bq.of(verbs.Recv)) == 1 })
		next[*cmid.Established](w.b, c.passive)
	},
	"completions before Disconnected": func(w *world) {
		c := w.connected(ringDepth)
		for i := range ringDepth - 2 {
			w.must(c.aq.postSend(i, "last words"))
		}
		w.until("them sent", func() bool { return len(c.aq.of(verbs.Send)) == ringDepth-2 })
		w.must(c.active.Disconnect())
		next[*cmid.Disconnected](w.b, c.passive)
		if n := succeeded(c.bq.of(verbs.Recv)); n != ringDepth-2 {
			w.Errorf("%d messages before Disconnected, want %d", n, ringDepth-2)
		}
	},
	"flush": func(w *world) {
		c := w.connected(3)
		w.must(c.active.Disconnect())
		next[*cmid.Disconnected](w.b, c.passive)
		if !w.iwarp {
			w.must(c.passive.Disconnect())
		}
		next[*cmid.Disconnected](w.a, c.active)
		w.settle()
		for side, q := range map[string]*rings{"active": c.aq, "passive": c.bq} {
			wc := q.of(verbs.Recv)
			if len(wc) != 3 {
				w.Fatalf("%s: %d completions of 3 receives", side, len(wc))
			}
			for i := range wc {
				if wc[i].Status != verbs.StatusFlushed || wc[i].ID != uint64(100+i) {
					w.Errorf("%s: receive %d is %+v, want flushed, in order", side, i, wc[i])
				}
			}
			w.wantErr("post_send after the end", q.postSend(0, "late"), unix.EINVAL)
		}
		w.must(c.aq.qp.Destroy())
		w.must(c.aq.cq.Close())
	},
	"queue full": func(w *world) {
		c := w.connected(ringDepth)
		w.wantErr("one receive too many", c.bq.postRecv(0, 1), unix.ENOMEM)
		for i := range ringDepth {
			w.must(c.aq.postSend(i, "x"))
		}
		w.wantErr("one send too many", c.aq.postSend(0, "x"), unix.ENOMEM)
		w.wantErr("destroy_cq in use", c.aq.cq.Close(), unix.EBUSY)
	},
	"no receive posted":  noReceive,
	"receive too short":  tooLong,
	"shared receives":    sharedReceives,
	"receives come late": lateReceives,
	"paused":             pausedReceiver,
	"empty message":      emptyMessage,
	"from inside notify": fromNotify,
}

func succeeded(wc []verbs.WC) (n int) {
	for _, c := range wc {
		if c.Status == verbs.StatusSuccess {
			n++
		}
	}
	return n
}

// noReceive: InfiniBand waits, as long as the receiver has allowed; iWARP ends the connection.
func noReceive(w *world) {
	c := w.connected(0)
	w.must(c.aq.postSend(0, "nobody expects it"))
	if w.iwarp {
		next[*cmid.Disconnected](w.a, c.active)
		next[*cmid.Disconnected](w.b, c.passive)
		return
	}
	w.settle()
	if len(c.aq.done) > 0 {
		w.Fatalf("completed as %+v before there was a receive", c.aq.done)
	}
	w.must(c.bq.postRecv(0, slotSize))
	w.until("it", func() bool { return succeeded(c.bq.of(verbs.Recv)) == 1 && succeeded(c.aq.of(verbs.Send)) == 1 })
}

func tooLong(w *world) {
	c := w.connected(0)
	w.must(c.bq.postRecv(0, 4))
	w.must(c.aq.postSend(0, "far too long"))
	w.until("the receiver's error", func() bool { return len(c.bq.of(verbs.Recv)) == 1 })
	if wc := c.bq.of(verbs.Recv)[0]; wc.Status == verbs.StatusSuccess {
		w.Errorf("a receive of 4 bytes succeeded with %d", wc.Bytes)
	}
	if w.iwarp {
		next[*cmid.Disconnected](w.a, c.active)
		next[*cmid.Disconnected](w.b, c.passive)
		return
	}
	w.until("the sender's error", func() bool { return len(c.aq.of(verbs.Send)) == 1 })
	want := verbs.StatusRemInvReq
	if w.differs(TooLongIsRemOp) {
		want = verbs.StatusRemOp
	}
	if wc := c.aq.of(verbs.Send)[0]; wc.Status != want {
		w.Errorf("the sender was told %v, want %v", wc.Status, want)
	}
	w.wantState("InfiniBand leaves the disconnect to the owner", c.active, states.Connected)
}

// sharedReceives: a shared queue that is empty asks its owner before the connection is given up, where the device can ask; elsewhere the
// owner posts in time, at the limit.
func sharedReceives(w *world) {
	c, _ := w.requested(0, nil, nil)
	q := &rings{}
	dev := c.passive.Device()
	asks := dev.Attr().AsksForReceives
	var err error
	q.mr, err = dev.Alloc(2*ringDepth*slotSize, verbs.LocalWrite)
	w.must(err)
	q.cq, err = dev.CreateCQ(4*ringDepth, q.poll)
	w.must(err)
	asked := 0
	var srq verbs.SRQ
	post := func() {
		if err := srq.PostRecv(verbs.RecvWR{ID: uint64(100 + asked), SGE: part(q.mr, asked*slotSize, slotSize)}); err != nil {
			w.Error(err)
		}
		asked++
	}
	srq, err = dev.CreateSRQ(verbs.SRQInitAttr{
		MaxWR: 2,
		OnEmpty: func(verbs.QP) {
			if !asks {
				w.Error("asked for receives by a device that says it does not (Attr.AsksForReceives)")
			}
			post()
		},
		OnLimit: func() {
			post()
			if err := srq.Arm(2); err != nil {
				w.Error(err)
			}
		},
	})
	w.must(err)
	if !asks {
		post()
		post()
		w.must(srq.Arm(2))
	}
	q.qp, err = c.passive.CreateQP(verbs.QPInitAttr{SendCQ: q.cq, RecvCQ: q.cq, SRQ: srq, MaxSendWR: 1})
	w.must(err)
	w.must(c.passive.Accept(nil, nil))
	next[*cmid.Established](w.a, c.active)
	next[*cmid.Established](w.b, c.passive)
	for i := range 3 {
		w.must(c.aq.postSend(i, "shared"))
		if !asks {
			w.until("the message, and the receive for the next but one", func() bool {
				return succeeded(q.of(verbs.Recv)) == i+1 && asked == i+3
			})
		}
	}
	w.until("the messages", func() bool { return succeeded(q.of(verbs.Recv)) == 3 })
	if asked < 3 {
		w.Errorf("posted %d receives for 3 messages, one at a time", asked)
	}
	w.wantErr("destroy_srq in use", srq.Close(), unix.EBUSY)
	w.must(q.qp.Destroy())
	w.must(srq.Close())
}

// shared connects with a shared receive queue on the passive side, whose owner posts nothing when
// he is asked.
func (w *world) shared(q *rings) (c *link, post func()) {
	w.Helper()
	c, _ = w.requested(0, nil, nil)
	dev := c.passive.Device()
	var err error
	q.mr, err = dev.Alloc(ringDepth*slotSize, verbs.LocalWrite)
	w.must(err)
	q.cq, err = dev.CreateCQ(4*ringDepth, q.poll)
	w.must(err)
	srq, err := dev.CreateSRQ(verbs.SRQInitAttr{MaxWR: ringDepth, OnEmpty: func(verbs.QP) {}})
	w.must(err)
	q.qp, err = c.passive.CreateQP(verbs.QPInitAttr{SendCQ: q.cq, RecvCQ: q.cq, SRQ: srq, MaxSendWR: 1})
	w.must(err)
	w.must(c.passive.Accept(nil, nil))
	next[*cmid.Established](w.a, c.active)
	next[*cmid.Established](w.b, c.passive)
	posted := 0
	return c, func() {
		w.Helper()
		w.must(srq.PostRecv(verbs.RecvWR{ID: uint64(100 + posted), SGE: part(q.mr, posted*slotSize, slotSize)}))
		posted++
	}
}

// asksForReceives is the device's.
func (w *world) asksForReceives() bool {
	w.Helper()
	id := w.b.bound(cmid.PortSpaceTCP, at(w.rig.Address, 0))
	asks := id.Device().Attr().AsksForReceives
	w.must(id.Destroy())
	w.b.heard = nil
	return asks
}

// lateReceives: where the device asks for receives, messages wait for those that come late, for as
// long as it takes, and the end of the connection is behind them on iWARP.
func lateReceives(w *world) {
	if !w.asksForReceives() {
		return
	}
	q := &rings{}
	c, post := w.shared(q)
	for i := range 3 {
		w.must(c.aq.postSend(i, fmt.Sprintf("message %d", i)))
	}
	w.quiet("messages that find no receive")
	if w.rig.Clock != nil {
		w.rig.Clock.Advance(virtualDeadline)
		w.quiet("for a long time")
	}
	if w.iwarp {
		w.until("them sent", func() bool { return len(c.aq.of(verbs.Send)) == 3 })
		w.must(c.active.Disconnect())
	}
	for i := range 3 {
		w.settle()
		if n := succeeded(q.of(verbs.Recv)); n != i {
			w.Fatalf("%d messages in %d receives", n, i)
		}
		post()
		w.until("a message", func() bool { return succeeded(q.of(verbs.Recv)) == i+1 })
		if got, want := string(q.slot(i)[:q.of(verbs.Recv)[i].Bytes]), fmt.Sprintf("message %d", i); got != want {
			w.Errorf("receive %d has %q, want %q", i, got, want)
		}
	}
	if w.iwarp {
		next[*cmid.Disconnected](w.b, c.passive)
		next[*cmid.Disconnected](w.a, c.active)
	}
}

// pausedReceiver: the messages of a paused queue pair wait although there are receives.
func pausedReceiver(w *world) {
	if !w.asksForReceives() {
		return
	}
	q := &rings{}
	c, post := w.shared(q)
	post()
	post()
	p, ok := q.qp.(verbs.Pauser)
	if !ok {
		w.Fatalf("%T of a device that asks for receives is no verbs.Pauser", q.qp)
	}
	p.Pause(true)
	w.must(c.aq.postSend(0, "wait"))
	w.quiet("a message for a paused queue pair")
	if n := len(q.of(verbs.Recv)); n > 0 {
		w.Errorf("%d completions at a paused queue pair", n)
	}
	p.Pause(false)
	w.until("the message", func() bool { return succeeded(q.of(verbs.Recv)) == 1 })
}

func emptyMessage(w *world) {
	c := w.connected(1)
	w.must(c.aq.postSend(0, ""))
	w.until("a message of no bytes", func() bool { return len(c.bq.of(verbs.Recv)) == 1 })
	if wc := c.bq.of(verbs.Recv)[0]; wc.Bytes != 0 || wc.Status != verbs.StatusSuccess {
		w.Errorf("%+v", wc)
	}
}

// fromNotify posts from where completions are told, as an application that echoes does.
func fromNotify(w *world) {
	c := w.connected(2)
	const rounds = 50
	n := 0
	c.bq.then = func() {
		for got := c.bq.of(verbs.Recv); n < len(got); n++ {
			w.must(c.bq.postRecv(int(got[n].ID-100), slotSize))
			w.must(c.bq.postSend(n%ringDepth, "pong"))
		}
	}
	m := 0
	c.aq.then = func() {
		for got := c.aq.of(verbs.Recv); m < len(got); m++ {
			w.must(c.aq.postRecv(int(got[m].ID-100), slotSize))
			if m+1 < rounds {
				w.must(c.aq.postSend(m%ringDepth, "ping"))
			}
		}
	}
	w.must(c.aq.postSend(0, "ping"))
	w.until("the last round", func() bool { return len(c.aq.of(verbs.Recv)) == rounds })
}
